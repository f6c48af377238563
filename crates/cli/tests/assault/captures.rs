//! Captures with wrong lengths, times and kinds.

use super::support::{Folder, Frame, frame, pcap, repository};
use super::{Dice, Ran, times};

/// Wrong headers, at fixed places of a small capture.
fn lies() -> Vec<(String, Vec<u8>)> {
    let frames: Vec<_> =
        (0..4).map(|n| Frame { time: n * 1_000_000, wire_len: 100, bytes: frame(1, 2, 100, 7) }).collect();
    let honest = pcap(&frames);
    let mut all = vec![("honest".to_owned(), honest.clone())];
    let words = [0, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 65_536];
    // Magic, version, length limit and link type of the file; seconds, nanoseconds and both lengths of the
    // second packet.
    let second = 24 + 16 + 100;
    for at in [0, 4, 16, 20, second, second + 4, second + 8, second + 12] {
        for word in words {
            let mut bytes = honest.clone();
            bytes[at..at + 4].copy_from_slice(&u32::to_le_bytes(word));
            all.push((format!("{word:#x} at {at}"), bytes));
        }
    }
    for length in [0, 3, 23, 24, 30, second + 15, honest.len() - 1] {
        all.push((format!("cut at {length}"), honest[..length].to_vec()));
    }
    all
}

/// A pcapng block: kind, stated total length, body, and the length again.
fn block(kind: u32, says: u32, body: &[u8]) -> Vec<u8> {
    [&kind.to_le_bytes()[..], &says.to_le_bytes(), body, &says.to_le_bytes()].concat()
}

fn next_generation_lies() -> Vec<(String, Vec<u8>)> {
    let section =
        block(0x0a0d_0d0a, 28, &[&0x1a2b_3c4du32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat());
    let interface = |options: &[u8]| {
        let body = [&[1, 0, 0, 0][..], &[0; 4], options].concat();
        block(1, 12 + body.len() as u32, &body)
    };
    let mut all = Vec::new();
    // Clock resolutions from seconds to beyond 64 bits, as powers of ten and of two.
    for resolution in [0, 1, 6, 9, 12, 19, 20, 63, 127, 128, 129, 160, 191, 192, 255] {
        let options = [9, 0, 1, 0, resolution, 0, 0, 0, 0, 0, 0, 0];
        let packet = [&[0; 4][..], &[0xff; 8], &[60, 0, 0, 0, 60, 0, 0, 0], &frame(1, 2, 60, 1)].concat();
        let packets = block(6, 12 + packet.len() as u32, &packet).repeat(2);
        all.push((
            format!("resolution {resolution}"),
            [&section[..], &interface(&options), &packets].concat(),
        ));
    }
    for says in [0, 4, 8, 11, 13, 0x7fff_fffc, 0xffff_fffc] {
        all.push((format!("a block of {says} bytes"), [&section[..], &block(6, says, &[0; 20])].concat()));
        all.push((format!("a section of {says} bytes"), block(0x0a0d_0d0a, says, &[0; 16])));
    }
    let simple = [&section[..], &interface(&[]), &block(3, 20, &[0xff; 4])].concat();
    all.push(("a simple packet that says it is long".to_owned(), simple));
    all
}

#[test]
fn no_capture_hurts() {
    let folder = Folder::new("captures");
    let scenario = repository("scenarios/virtual-pcap.toml").display().to_string();
    let mut dice = Dice::new("no_capture_hurts");
    let mut all: Vec<_> = lies().into_iter().chain(next_generation_lies()).collect();
    // Wrong headers with some more bytes changed.
    for number in 0..times(20, 2000) {
        let (_, mut bytes) = all[dice.below(all.len() as u64) as usize].clone();
        for _ in 0..1 + dice.below(4) {
            if !bytes.is_empty() {
                let at = dice.below(bytes.len() as u64) as usize;
                bytes[at] = dice.next() as u8;
            }
        }
        all.push((format!("changed {number}"), bytes));
    }
    for (name, bytes) in all {
        let input = format!("ground={}", folder.write("input", &bytes));
        let output = format!("space={}", folder.text("output.pcap"));
        let args = ["run", &scenario, "--virtual", "--input", &input, "--output", &output, "--for", "10s"];
        let ran = Ran::bounded(&args);
        ran.assert_orderly(&name);
        assert!(name != "honest" || ran.status.is_some_and(|status| status.success()), "{}", ran.told);
    }
}
