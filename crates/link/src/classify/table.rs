//! A hash table that is filled once: open addressing, three quarters full, no more memory than that.

use longwire_packet::{huge_vec, prefetch};

/// Most entries of a table that lies in the near caches.
const MANY: usize = 512;
/// Most entries of one that hardly takes any memory however large it is.
const FEW: usize = 64;

/// From keys to 32-bit values.
#[derive(Debug)]
pub(super) struct Table<K> {
    slots: Vec<(K, u32)>,
    entries: usize,
}

/// No path is written like this: cursors into the plan's hops stay far below.
const VACANT: u32 = u32::MAX - 1;

/// A key and its hash.
pub(super) trait Key: Copy + Eq + Default {
    fn hash(self) -> u64;
}

impl Key for u64 {
    #[inline]
    fn hash(self) -> u64 {
        // Multiply and fold: both halves of the product depend on all of the key.
        let product = u128::from(self ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93_u128;
        let folded = (product >> 64) as u64 ^ product as u64;
        folded.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

impl Key for (u128, u128) {
    #[inline]
    fn hash(self) -> u64 {
        let words = [self.0 as u64, (self.0 >> 64) as u64, self.1 as u64, (self.1 >> 64) as u64];
        words.into_iter().fold(0, |hash: u64, word| (hash.rotate_left(29) ^ word).hash())
    }
}

impl<K: Key> Table<K> {
    /// A table of `entries` pairs. Of equal keys the first stays.
    pub(super) fn new(entries: usize, pairs: impl Iterator<Item = (K, u32)>) -> Self {
        let slots = match entries {
            0 => 0,
            // Where memory is no question, few keys have another one at home.
            1..=FEW => 16 * entries,
            ..=MANY => 4 * entries,
            _ => entries + entries / 3 + 1,
        };
        let mut table = Self { slots: huge_vec(slots), entries };
        table.slots.resize(slots, (K::default(), VACANT));
        for (key, value) in pairs {
            let slot = table.slot_for(key);
            if table.slots[slot].1 == VACANT {
                table.slots[slot] = (key, value);
            }
        }
        table
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Whether looking something up may have to wait for memory.
    #[inline]
    pub(super) fn is_large(&self) -> bool {
        self.entries > MANY
    }

    #[inline]
    pub(super) fn find(&self, key: K) -> Option<u32> {
        self.find_from(self.home(key), key)
    }

    /// The same for a key whose [`Table::home`] is known.
    #[inline(always)]
    pub(super) fn find_from(&self, home: usize, key: K) -> Option<u32> {
        match self.slots.get(home) {
            Some((held, value)) if *held == key && *value != VACANT => Some(*value),
            Some((_, VACANT)) | None => None,
            Some(_) => self.find_behind(home, key),
        }
    }

    /// The same for a key whose home has another one.
    #[inline(never)]
    fn find_behind(&self, home: usize, key: K) -> Option<u32> {
        let (_, value) = self.slots[self.slot_from(home, key)];
        if value == VACANT { None } else { Some(value) }
    }

    /// Reads the slots of a home into the cache ahead of use.
    #[inline]
    pub(super) fn prefetch(&self, home: usize) {
        if let Some(slot) = self.slots.get(home) {
            prefetch(slot);
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.slots)
    }

    /// The first slot to look in: the hash scaled to the table, so that its size need not be a power of two.
    #[inline]
    pub(super) fn home(&self, key: K) -> usize {
        ((u128::from(key.hash()) * self.slots.len() as u128) >> 64) as usize
    }

    /// The slot that holds `key`, or the vacant one where it would go. A quarter of the slots is vacant.
    #[inline]
    fn slot_for(&self, key: K) -> usize {
        self.slot_from(self.home(key), key)
    }

    #[inline]
    fn slot_from(&self, mut slot: usize, key: K) -> usize {
        loop {
            let (held, value) = self.slots[slot];
            if value == VACANT || held == key {
                return slot;
            }
            slot += 1;
            if slot == self.slots.len() {
                slot = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn agrees_with_a_map() {
        for entries in [0usize, 1, 2, 3, 10, 1000, 50_000] {
            let key = |n: usize| (n as u64).wrapping_mul(0x1_0000_0001) % 70_000;
            let pairs: Vec<_> = (0..entries).map(|n| (key(n), n as u32)).collect();
            let table = Table::new(entries, pairs.iter().copied());
            let mut map = HashMap::new();
            pairs.iter().for_each(|&(key, value)| {
                map.entry(key).or_insert(value);
            });
            for key in 0..80_000u64 {
                assert_eq!(table.find(key), map.get(&key).copied(), "{entries} {key}");
            }
        }
    }

    /// Knuth, The Art of Computer Programming 3, 6.4: at load a linear probing finds a key after (1 + 1/(1 − a))/2
    /// looks on average, 2.5 at three quarters. Addresses in sequence must not do much worse.
    #[test]
    fn sequential_keys_spread() {
        let key = |n: u64| (0x0a00_0000 + n) << 32 | (0x0a80_0000 + n);
        let table = Table::new(100_000, (0..100_000u64).map(|n| (key(n), n as u32)));
        let looks = (0..100_000u64).map(|n| {
            let (home, slot) = (table.home(key(n)), table.slot_for(key(n)));
            (slot + table.slots.len() - home) % table.slots.len() + 1
        });
        let mean = looks.sum::<usize>() as f64 / 100_000.0;
        assert!((1.5..3.0).contains(&mean), "{mean}");
    }

    #[test]
    fn wide_keys() {
        let key = |n: u128| (n << 64 | 1, n);
        let table = Table::new(500, (0..500).map(|n| (key(n), n as u32)));
        assert!((0..500).all(|n| table.find(key(n)) == Some(n as u32)));
        assert_eq!(table.find(key(500)), None);
    }
}
