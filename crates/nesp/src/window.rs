//! Replay window of a session (RFC 4303, section 3.4.3, with numbers that do not wrap).

/// Novelty of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// Not received before.
    New,
    /// Received before: a retransmission, or a replay.
    Repeated,
    /// Too old to decide.
    Old,
}

/// Size of the window.
const SPAN: u32 = 64;

/// The last numbers of a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Window {
    /// The highest number received; 0 if none.
    highest: u32,
    /// Bit `n`: whether `highest - n` was received.
    seen: u64,
}

impl Window {
    /// Classifies a number. There is no number 0.
    pub const fn look(&self, number: u32) -> Freshness {
        if number > self.highest {
            return Freshness::New;
        }
        let back = self.highest - number;
        if number == 0 || back >= SPAN {
            Freshness::Old
        } else if self.seen >> back & 1 == 1 {
            Freshness::Repeated
        } else {
            Freshness::New
        }
    }

    /// Records a new, authentic number.
    pub const fn note(&mut self, number: u32) {
        if number > self.highest {
            let ahead = number - self.highest;
            self.seen = if ahead >= SPAN { 0 } else { self.seen << ahead };
            self.highest = number;
        }
        self.seen |= 1 << (self.highest - number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// Compares with a set of all numbers received.
        #[test]
        fn is_what_a_set_says(numbers in prop::collection::vec(prop_oneof![0u32..200, any::<u32>()],
            0..300)) {
            let (mut window, mut come) = (Window::default(), BTreeSet::new());
            for number in numbers {
                let highest = come.last().copied().unwrap_or(0);
                let expected = if number == 0 || number.saturating_add(SPAN) <= highest {
                    Freshness::Old
                } else if come.contains(&number) {
                    Freshness::Repeated
                } else {
                    Freshness::New
                };
                prop_assert_eq!(window.look(number), expected);
                if expected == Freshness::New {
                    window.note(number);
                    come.insert(number);
                }
            }
        }
    }
}
