//! Frames for the tests: a few with known contents, and any number of random ones.

/// Draws for making frames (the xorshift64* generator of Vigna, "An experimental exploration of Marsaglia's
/// xorshift generators, scrambled", 2016).
pub struct Draws(u64);

impl Draws {
    /// A separate stream for each seed except zero.
    pub fn new(seed: u64) -> Self {
        assert_ne!(seed, 0);
        Self(seed)
    }

    /// Uniform over 32 bits.
    pub fn word(&mut self) -> u32 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) as u32
    }

    /// One of `choices`.
    pub fn one<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.word() as usize % choices.len()]
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.word() as u8).collect()
    }
}

const MACS: [[u8; 6]; 4] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2], [0xff; 6], [0x01, 0x00, 0x5e, 0, 0, 1]];
const V4: [[u8; 4]; 6] =
    [[10, 0, 0, 1], [10, 0, 0, 2], [10, 1, 2, 3], [192, 168, 1, 1], [224, 0, 0, 5], [255, 255, 255, 255]];
const V6: [u128; 4] = [1, 0xfe80 << 112 | 1, 0xff02 << 112 | 1, 0x2001_0db8 << 96 | 5];
const PORTS: [u16; 8] = [22, 53, 80, 443, 8000, 8080, 8999, 50_000];
const PROTOCOLS: [u8; 11] = [1, 2, 6, 6, 6, 17, 17, 50, 51, 58, 132];

/// A frame whose fields are drawn from few values, so that expressions match often; sometimes with tags.
pub fn drawn(draws: &mut Draws) -> Vec<u8> {
    let mut frame = [draws.one(&MACS), draws.one(&MACS)].concat();
    for _ in 0..draws.one(&[0, 0, 0, 1, 2]) {
        frame.extend(draws.one(&[0x8100u16, 0x88a8, 0x9100]).to_be_bytes());
        frame.extend(draws.one(&[5u16, 7, 0x2005, 4095]).to_be_bytes());
    }
    match draws.one(&[0, 0, 0, 1, 1, 2, 3, 4]) {
        0 => {
            frame.extend([8, 0]);
            v4(draws, &mut frame);
        }
        1 => {
            frame.extend([0x86, 0xdd]);
            v6(draws, &mut frame);
        }
        2 => {
            frame.extend(draws.one(&[[8, 6], [0x80, 0x35]]));
            frame.extend([0, 1, 8, 0, 6, 4, 0, draws.one(&[1, 2])]);
            frame.extend(draws.one(&MACS));
            frame.extend(draws.one(&V4));
            frame.extend(draws.one(&MACS));
            frame.extend(draws.one(&V4));
        }
        3 => frame.extend(draws.one(&[[0x05, 0xdd], [0x88, 0xcc], [0x00, 0x40]])),
        _ => frame.extend(draws.bytes(2)),
    }
    let padding = draws.one(&[64, 70, 100]);
    frame.extend(draws.bytes(padding));
    frame
}

fn v4(draws: &mut Draws, frame: &mut Vec<u8>) {
    let words = draws.one(&[5u8, 5, 5, 6, 15]);
    let fragment = draws.one(&[0u16, 0, 0, 0x4000, 0x2000, 0x2001, 0x00b9]);
    let protocol = draws.one(&PROTOCOLS);
    frame.extend([0x40 | words, draws.one(&[0, 0xb8, 0xb9, 0x03, 0x28])]);
    frame.extend(draws.one(&[40u16, 576, 1500]).to_be_bytes());
    frame.extend([0, 1]);
    frame.extend(fragment.to_be_bytes());
    frame.extend([draws.one(&[1, 64, 255]), protocol, 0, 0]);
    frame.extend(draws.one(&V4));
    frame.extend(draws.one(&V4));
    frame.extend(draws.bytes(usize::from(words - 5) * 4));
    transport(draws, frame);
}

fn v6(draws: &mut Draws, frame: &mut Vec<u8>) {
    let next = draws.one(&[0, 43, 44, 44, 6, 6, 17, 58, 58, 132]);
    frame.extend(draws.one(&[0x6000_0000u32, 0x6b80_1234, 0x6030_0000]).to_be_bytes());
    frame.extend([0, 60, next, draws.one(&[1, 255])]);
    frame.extend(draws.one(&V6).to_be_bytes());
    frame.extend(draws.one(&V6).to_be_bytes());
    if next == 44 {
        frame.extend([draws.one(&PROTOCOLS), 0, 0, draws.one(&[0, 1, 8])]);
        frame.extend(draws.bytes(4));
    }
    transport(draws, frame);
}

/// Sixteen bytes valid for any transport: ports, or an ICMP type among those with names.
fn transport(draws: &mut Draws, frame: &mut Vec<u8>) {
    if draws.one(&[true, false]) {
        frame.extend(draws.one(&PORTS).to_be_bytes());
        frame.extend(draws.one(&PORTS).to_be_bytes());
    } else {
        frame.extend([draws.one(&[0, 3, 8, 128, 135]), draws.one(&[0, 1, 4])]);
        frame.extend(draws.bytes(2));
    }
    frame.extend(draws.bytes(8));
    frame.extend([0x50, draws.one(&[0x02, 0x12, 0x10, 0x11, 0x04, 0xc2])]);
    frame.extend(draws.bytes(6));
}
