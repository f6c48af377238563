//! Replay window of a session (RFC 4303, section 3.4.3, with numbers that do not wrap), without shifting its
//! bits (RFC 6479).

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

/// Bits of a word.
const WORD: u64 = u64::BITS as u64;

/// The last numbers of a session, with `WORDS` words of memory, at least two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window<const WORDS: usize> {
    /// The highest number received; 0 if none.
    highest: u64,
    /// Numbers received: 64 in each word, whose place is the number's upper bits modulo the words.
    seen: [u64; WORDS],
}

impl<const WORDS: usize> Default for Window<WORDS> {
    fn default() -> Self {
        Self { highest: 0, seen: [0; WORDS] }
    }
}

impl<const WORDS: usize> Window<WORDS> {
    /// Numbers so far below the highest are too old. One word is partly ahead of the highest number.
    pub const SPAN: u64 = {
        assert!(WORDS >= 2, "a window has at least two words");
        (WORDS as u64 - 1) * WORD
    };

    /// The highest number received; 0 if none.
    pub const fn highest(&self) -> u64 {
        self.highest
    }

    /// Classifies a number. There is no number 0.
    #[inline]
    pub const fn look(&self, number: u64) -> Freshness {
        if number > self.highest {
            return Freshness::New;
        }
        if number == 0 || self.highest - number >= Self::SPAN {
            Freshness::Old
        } else if self.seen[Self::place(number / WORD)] >> (number % WORD) & 1 == 1 {
            Freshness::Repeated
        } else {
            Freshness::New
        }
    }

    /// Records a new, authentic number.
    #[inline]
    pub const fn note(&mut self, number: u64) {
        if number > self.highest {
            let (mut word, last) = (self.highest / WORD, number / WORD);
            if last - word > WORDS as u64 {
                word = last - WORDS as u64;
            }
            while word < last {
                word += 1;
                self.seen[Self::place(word)] = 0;
            }
            self.highest = number;
        }
        self.seen[Self::place(number / WORD)] |= 1 << (number % WORD);
    }

    const fn place(word: u64) -> usize {
        (word % WORDS as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Compares with a set of all numbers received.
    fn compare<const WORDS: usize>(numbers: &[u64]) {
        let (mut window, mut come) = (Window::<WORDS>::default(), BTreeSet::new());
        for &number in numbers {
            let highest = come.last().copied().unwrap_or(0);
            let expected = if number == 0 || number.saturating_add(Window::<WORDS>::SPAN) <= highest {
                Freshness::Old
            } else if come.contains(&number) {
                Freshness::Repeated
            } else {
                Freshness::New
            };
            assert_eq!(window.look(number), expected, "{number} after {highest}");
            if expected == Freshness::New {
                window.note(number);
                come.insert(number);
            }
            assert_eq!(window.highest(), come.last().copied().unwrap_or(0));
        }
    }

    proptest! {
        #[test]
        fn is_what_a_set_says(
            numbers in prop::collection::vec(prop_oneof![0u64..400, any::<u64>()], 0..300),
        ) {
            compare::<2>(&numbers);
            compare::<3>(&numbers);
            compare::<32>(&numbers);
        }
    }
}
