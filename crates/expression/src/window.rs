//! The fastest form of tests: eight bytes of the frame in a register, and one comparison.

use crate::question::{Load, Question, Relation, Test, Width};

/// Bytes of a window.
pub(crate) const WIDTH: usize = 8;

/// Tests whether the masked bits of eight bytes, in network order, are a number within a range; with the next
/// tests. Consecutive tests of adjacent bytes share one window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    mask: u64,
    /// The range's lowest number.
    low: u64,
    /// Width of the range.
    span: u64,
    /// Offset of the bytes: the tested ones are the last of them, so that a window lies within the frame if
    /// they do.
    pub at: u32,
    pub yes: u16,
    pub no: u16,
}

impl Window {
    /// A test without this form: the window lies within no frame.
    const NONE: Self = Self { mask: 0, low: 0, span: 0, at: u32::MAX, yes: 0, no: 0 };

    /// The windows of tests, each of which leads to later ones only.
    pub fn of(tests: &[Test]) -> Box<[Self]> {
        let mut windows = vec![Self::NONE; tests.len()];
        for (number, test) in tests.iter().enumerate().rev() {
            let Some(mut window) = Self::single(test) else { continue };
            // Later tests already have their windows.
            while let Some(joined) = windows.get(usize::from(window.yes)).and_then(|next| window.and(next)) {
                window = joined;
            }
            windows[number] = window;
        }
        windows.into()
    }

    /// Whether the bytes match.
    #[inline(always)]
    pub fn holds(&self, bytes: [u8; WIDTH]) -> bool {
        (u64::from_be_bytes(bytes) & self.mask).wrapping_sub(self.low) <= self.span
    }

    /// The window of one test, if it compares bytes at a fixed offset with a possible value.
    fn single(test: &Test) -> Option<Self> {
        let Question::Compare { load: Load::Frame { at, width }, mask, relation, value } = test.question
        else {
            return None;
        };
        let (bytes, highest) = match width {
            Width::Byte => (1, 0xff),
            Width::Half => (2, 0xffff),
            Width::Word => (4, u32::MAX),
        };
        let end = at.checked_add(bytes).filter(|_| value <= highest)?;
        let (low, high) = match relation {
            Relation::Equal | Relation::Unequal => (value, value),
            Relation::Less => (0, value.checked_sub(1)?),
            Relation::LessOrEqual => (0, value),
            Relation::Greater => (value.checked_add(1).filter(|&low| low <= highest)?, highest),
            Relation::GreaterOrEqual => (value, highest),
        };
        let at = end.saturating_sub(WIDTH as u32);
        let shift = 8 * (at + WIDTH as u32 - end);
        let (low, high) = (u64::from(low) << shift, u64::from(high) << shift);
        let (yes, no) = if relation == Relation::Unequal { (test.no, test.yes) } else { (test.yes, test.no) };
        Some(Self { mask: u64::from(mask & highest) << shift, low, span: high - low, at, yes, no })
    }

    /// Combines this window and `next`, its successor after a yes, if their no-successors are equal and they
    /// fit.
    fn and(&self, next: &Self) -> Option<Self> {
        if self.no != next.no || next.at == Self::NONE.at {
            return None;
        }
        let (yes, no) = (next.yes, next.no);
        if (self.at, self.mask) == (next.at, next.mask) {
            let low = self.low.max(next.low);
            let high = (self.low + self.span).min(next.low + next.span);
            return Some(Self { low, span: high.checked_sub(low)?, yes, no, ..*self });
        }
        // A value outside the mask is never found; joined, its bits would be those of the other window.
        let is_possible = |window: &Self| window.low & !window.mask == 0;
        if self.span != 0 || next.span != 0 || !is_possible(self) || !is_possible(next) {
            return None;
        }
        let at = self.at.max(next.at);
        let (first, second) = (self.moved(at)?, next.moved(at)?);
        let common = first.mask & second.mask;
        ((first.low ^ second.low) & common == 0).then_some(Self {
            mask: first.mask | second.mask,
            low: first.low | second.low,
            span: 0,
            at,
            yes,
            no,
        })
    }

    /// The window moved to `at`, if the tested bytes are still within it.
    fn moved(&self, at: u32) -> Option<Self> {
        let shift = at.checked_sub(self.at)?.checked_mul(8)?;
        let moved = |bits: u64| bits.checked_shl(shift).filter(|&moved| moved >> shift == bits);
        Some(Self { mask: moved(self.mask)?, low: moved(self.low)?, at, ..*self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{MATCH, MISS, Program};
    use crate::question::PacketMetadata;

    /// Compares with the test itself, for bytes within a frame, at its end and beyond, and for values that do
    /// not fit.
    #[test]
    fn a_window_answers_what_its_test_does() {
        use Relation::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, Unequal};
        let frame = [0x45, 1, 2, 3, 0, 0xff, 0xff, 0xff, 7, 0x10, 0];
        let values =
            [0, 1, 2, 3, 5, 0x45, 0xfe, 0xff, 0x102, 0x145, 0xff01, 0xffff, 0x10001, 0x0102_0300, u32::MAX];
        let mut answered = [0; 2];
        for width in [Width::Byte, Width::Half, Width::Word] {
            for at in (0..12).chain([u32::MAX - 1, u32::MAX]) {
                for mask in [u32::MAX, 0xff, 0x0f, 0xf1, 0] {
                    for relation in [Equal, Unequal, Less, LessOrEqual, Greater, GreaterOrEqual] {
                        for value in values {
                            let question =
                                Question::Compare { load: Load::Frame { at, width }, mask, relation, value };
                            let tests = [Test { question, yes: MATCH, no: MISS }];
                            let with = Program {
                                first: 0,
                                windows: Window::of(&tests),
                                tests: Box::new(tests),
                                steps: Box::default(),
                            };
                            let without = Program { windows: Box::new([Window::NONE]), ..with.clone() };
                            let [with, without] = [with, without]
                                .map(|program| program.matches(&frame, PacketMetadata::default()));
                            assert_eq!(with, without, "{question:?}");
                            answered[usize::from(with)] += 1;
                        }
                    }
                }
            }
        }
        assert!(answered.iter().all(|&times| times > 1000), "{answered:?}");
    }

    #[test]
    fn what_lies_together_is_one_window() {
        let equal = |at, width, value| Question::Compare {
            load: Load::Frame { at, width },
            mask: u32::MAX,
            relation: Relation::Equal,
            value,
        };
        let source = Test { question: equal(26, Width::Word, 0x0a00_0001), yes: 1, no: MISS };
        let destination = Test { question: equal(30, Width::Word, 0x0a00_0002), yes: MATCH, no: MISS };
        let windows = Window::of(&[source, destination]);
        assert_eq!((windows[0].at, windows[0].yes, windows[0].mask), (26, MATCH, u64::MAX));
        let beyond = Test { question: equal(36, Width::Half, 80), ..destination };
        assert_eq!(Window::of(&[source, beyond])[0].yes, 1, "twelve bytes");
        let other = Test { no: MATCH, ..source };
        assert_eq!(Window::of(&[other, destination])[0].yes, 1, "a no leads elsewhere");
        let against = Test { question: equal(26, Width::Word, 0x0a00_0003), ..destination };
        assert_eq!(Window::of(&[source, against])[0].yes, 1, "both are never so");
    }

    /// Whole expressions with and without windows, on frames of any length, with and without options.
    #[test]
    fn expressions_mean_the_same_without_windows() {
        let texts = [
            "tcp port 80",
            "port 53 or 443",
            "udp portrange 40-60 and not src port 50",
            "not (tcp[13] & 2 != 0 or ip[8] < 5)",
            "tcp[2:2] > 79 and tcp[2:2] <= 80 and ip src 10.0.0.1",
            "src 10.0.0.1 and dst 10.0.0.2",
            "vlan 5 and udp dst port 53",
            "ether src 0:0:0:0:0:1 or ip6 host fe80::1",
            "dscp ef or ecn 3 or greater 100",
            // Never so: values outside their masks.
            "ether[0] & 0x0f = 0xf1 and ether[0] & 0xf0 = 0xf0",
            "ether[0] & 0x0f >= 0xf1 and ether[0] & 0x0f <= 0xf1 and ether[0] & 0xf0 = 0xf0",
            "ether[0] & 0xf0 = 0xf0 and not ether[0] & 0x0f != 0xf1",
            "tcp[13] & 0x10 = 0x12 and tcp[13] & 2 = 2",
        ];
        let mut answered = [0; 2];
        for text in texts {
            let with = crate::parse::program(text).unwrap();
            let windows = vec![Window::NONE; with.tests.len()].into();
            let without = Program { windows, ..with.clone() };
            for bits in 0..512u32 {
                let bit = |number: u32| bits >> number & 1 == 1;
                let mut frame = [0; 64];
                frame[0] = 0xf1;
                frame[12..14].copy_from_slice(if bit(0) { &[8, 0] } else { &[0x81, 0] });
                frame[15] = if bit(1) { 5 } else { 0xb8 };
                let header = if bit(0) { 14 } else { 18 };
                frame[16..18].copy_from_slice(&[8, 0]);
                let words: u8 = if bit(2) { 5 } else { 6 };
                frame[header] = 0x40 | words;
                frame[header + 9] = if bit(3) { 6 } else { 17 };
                frame[header + 12..header + 20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
                let ports = header + 4 * usize::from(words);
                frame[ports + 1] = if bit(4) { 50 } else { 53 };
                frame[ports + 3] = if bit(5) { 53 } else { 80 };
                frame[ports + 13] = 0x12;
                let len = 64 - (bits as usize >> 6) * 4;
                let known = PacketMetadata { wire_len: len as u32 * 2, mark: 0 };
                let [found, wanted] = [&with, &without].map(|program| program.matches(&frame[..len], known));
                assert_eq!(found, wanted, "{text} {:x?}", &frame[..len]);
                answered[usize::from(found)] += 1;
            }
        }
        assert!(answered.iter().all(|&times| times > 500), "{answered:?}");
    }
}
