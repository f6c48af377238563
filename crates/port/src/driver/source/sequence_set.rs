//! Sequence numbers of a flow's received packets, to recognise copies.

use std::collections::VecDeque;

/// Numbers of a chunk.
const CHUNK: u64 = 4096;
/// Most chunks: of a flow with losses the last 16 million numbers are kept.
const MOST_CHUNKS: usize = 4096;

type Bits = Box<[u64; CHUNK as usize / 64]>;

/// A set of sequence numbers. Numbers far below the newest, and complete chunks at the start, take no memory.
#[derive(Debug, Default)]
pub(super) struct SequenceSet {
    /// All numbers below are treated as seen; the start of a chunk.
    below: u64,
    /// Ascending by their number.
    chunks: VecDeque<Chunk>,
    spare: Option<Bits>,
}

#[derive(Debug)]
struct Chunk {
    number: u64,
    count: u64,
    bits: Bits,
}

impl SequenceSet {
    /// Adds a number; returns whether it is new. A number more than 16 million behind is treated as present.
    pub(super) fn note(&mut self, sequence: u64) -> bool {
        if sequence < self.below {
            return false;
        }
        let number = sequence / CHUNK;
        let at = match self.chunks.back() {
            Some(last) if last.number == number => self.chunks.len() - 1,
            _ => match self.chunks.binary_search_by_key(&number, |chunk| chunk.number) {
                Ok(at) => at,
                Err(at) => return self.begin(at, number, sequence),
            },
        };
        self.set(at, sequence)
    }

    /// Adds the first number of a chunk, at index `at`.
    #[cold]
    fn begin(&mut self, mut at: usize, number: u64, sequence: u64) -> bool {
        if self.chunks.len() == MOST_CHUNKS {
            if at == 0 {
                return false;
            }
            self.retire();
            at -= 1;
        }
        let bits = self.spare.take().unwrap_or_else(|| Box::new([0; CHUNK as usize / 64]));
        self.chunks.insert(at, Chunk { number, count: 0, bits });
        self.set(at, sequence)
    }

    fn set(&mut self, at: usize, sequence: u64) -> bool {
        let chunk = &mut self.chunks[at];
        let (word, bit) = ((sequence % CHUNK / 64) as usize, 1 << (sequence % 64));
        let fresh = chunk.bits[word] & bit == 0;
        chunk.bits[word] |= bit;
        chunk.count += u64::from(fresh);
        while self
            .chunks
            .front()
            .is_some_and(|chunk| chunk.count == CHUNK && chunk.number * CHUNK == self.below)
        {
            self.retire();
        }
        fresh
    }

    /// Drops the first chunk: all numbers up to its end are treated as seen.
    fn retire(&mut self) {
        if let Some(mut chunk) = self.chunks.pop_front() {
            self.below = (chunk.number + 1) * CHUNK;
            chunk.bits.fill(0);
            self.spare = Some(chunk.bits);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    #[test]
    fn what_came_whole_takes_no_room() {
        let mut seen = SequenceSet::default();
        assert!((0..10 * CHUNK).all(|number| seen.note(number)));
        assert_eq!((seen.chunks.len(), seen.below), (0, 10 * CHUNK));
        assert!((0..10 * CHUNK).all(|number| !seen.note(number)));
        // The first of a chunk is lost: the chunk stays until it arrives.
        assert!((10 * CHUNK + 1..12 * CHUNK).all(|number| seen.note(number)));
        assert_eq!(seen.chunks.len(), 2);
        assert!(seen.note(10 * CHUNK) && !seen.note(10 * CHUNK));
        assert_eq!(seen.chunks.len(), 0);
    }

    #[test]
    fn what_is_far_behind_counts_as_seen() {
        let mut seen = SequenceSet::default();
        for chunk in 0..=MOST_CHUNKS as u64 {
            assert!(seen.note(chunk * CHUNK + 7));
        }
        assert_eq!((seen.chunks.len(), seen.below), (MOST_CHUNKS, CHUNK));
        assert!(!seen.note(8) && seen.note(CHUNK + 8));
        // An impossible number far ahead costs only a chunk.
        assert!(seen.note(1 << 47) && seen.note(2 * CHUNK + 9) && !seen.note(2 * CHUNK + 9));
    }

    proptest! {
        #[test]
        fn agrees_with_a_set(numbers in proptest::collection::vec(0u64..20_000, 0..3000)) {
            let (mut seen, mut set) = (SequenceSet::default(), HashSet::new());
            for number in numbers {
                prop_assert_eq!(seen.note(number), set.insert(number));
            }
        }
    }
}
