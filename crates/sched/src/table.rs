//! Hash table from a flow's key to its index: open addressing with linear probing, at most half full, of
//! fixed size.

use longwire_packet::{huge_vec, prefetch};

/// No place.
pub(crate) const NONE: u32 = u32::MAX;

/// Places by key.
#[derive(Debug)]
pub(crate) struct Table {
    /// Key and index; free if the index is [`NONE`].
    entries: Vec<(u32, u32)>,
    mask: usize,
    shift: u32,
}

impl Table {
    /// For this many keys.
    pub(crate) fn new(keys: u32) -> Self {
        // With few keys the table is sparse, so that most lookups hit at once.
        Self::of((keys as usize * 2).next_power_of_two().max(256))
    }

    /// A table of `size` entries, a power of two.
    fn of(size: usize) -> Self {
        let mut entries = huge_vec(size);
        entries.resize(size, (0, NONE));
        Self { entries, mask: size - 1, shift: 64 - size.trailing_zeros() }
    }

    #[inline]
    pub(crate) fn find(&self, key: u32) -> Option<u32> {
        let mut at = self.home(key);
        loop {
            let (other, place) = self.entries[at];
            if place == NONE {
                return None;
            }
            if other == key {
                return Some(place);
            }
            at = (at + 1) & self.mask;
        }
    }

    /// Prefetches the entry of a key.
    #[inline]
    pub(crate) fn prefetch(&self, key: u32) {
        prefetch(&self.entries[self.home(key)]);
    }

    /// Adds a key that is not in the table.
    pub(crate) fn add(&mut self, key: u32, place: u32) {
        let mut at = self.home(key);
        while self.entries[at].1 != NONE {
            at = (at + 1) & self.mask;
        }
        self.entries[at] = (key, place);
    }

    /// Removes a key and closes the gap, so that searches don't end early.
    pub(crate) fn remove(&mut self, key: u32) {
        let mut gap = self.home(key);
        loop {
            let (other, place) = self.entries[gap];
            if place == NONE {
                return;
            }
            if other == key {
                break;
            }
            gap = (gap + 1) & self.mask;
        }
        let mut at = gap;
        loop {
            at = (at + 1) & self.mask;
            let (key, place) = self.entries[at];
            if place == NONE {
                break;
            }
            // It may move back unless its home lies after the gap.
            let from_home = at.wrapping_sub(self.home(key)) & self.mask;
            if from_home >= at.wrapping_sub(gap) & self.mask {
                self.entries[gap] = (key, place);
                gap = at;
            }
        }
        self.entries[gap].1 = NONE;
    }

    /// Fibonacci hashing: the high bits of the key times 2⁶⁴ over the golden ratio.
    #[inline]
    fn home(&self, key: u32) -> usize {
        (u64::from(key).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn behaves_like_a_map(steps in prop::collection::vec((0u32..24, any::<bool>()), 1..200)) {
            let (mut table, mut map) = (Table::of(64), BTreeMap::new());
            for (n, (key, add)) in steps.into_iter().enumerate() {
                // Distant keys, so that their homes are many and their hashes collide.
                let key = key * 0x0101_0101;
                if !add {
                    table.remove(key);
                    map.remove(&key);
                } else if let std::collections::btree_map::Entry::Vacant(free) = map.entry(key) {
                    table.add(key, n as u32);
                    free.insert(n as u32);
                }
                for key in (0..24).map(|key| key * 0x0101_0101) {
                    prop_assert_eq!(table.find(key), map.get(&key).copied());
                }
            }
        }
    }
}
