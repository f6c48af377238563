//! A hash table that is filled once: buckets of a cache line, five eighths full, without further memory.

use longwire_packet::{huge_vec, prefetch};

/// Most entries of a table that fits the nearest caches.
const MANY: usize = 512;
/// Keys of a bucket: as many as share a cache line with their values, for pairs of IPv4 addresses.
const KEYS: usize = 5;

/// From keys to 32-bit values.
#[derive(Debug)]
pub(super) struct Table<K> {
    buckets: Vec<Bucket<K>>,
    entries: usize,
}

/// Keys with this home, and overflow from others. Free places come last.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Bucket<K> {
    keys: [K; KEYS],
    values: [u32; KEYS],
}

/// Never a valid path: cursors into the plan's hops stay far below.
const VACANT: u32 = u32::MAX - 1;

/// A key and its hash.
pub(super) trait Key: Copy + Eq + Default {
    fn hash(self) -> u64;
}

impl Key for u64 {
    #[inline]
    fn hash(self) -> u64 {
        // Multiply and fold: both halves of the product depend on the whole key.
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
    /// A table of the pairs of key and value of `rules`. Of equal keys the first wins.
    pub(super) fn new<R>(rules: &[R], pair: impl Fn(&R) -> (K, u32)) -> Self {
        let entries = rules.len();
        let count = match entries {
            0 => 0,
            // Small tables are sparse, so that buckets hardly ever overflow.
            1..=MANY => entries,
            // Few overflow, because the bucket behind is not prefetched.
            _ => (entries * 8).div_ceil(KEYS * 5) + 1,
        };
        let mut table = Self { buckets: huge_vec(count), entries };
        table.buckets.resize(count, Bucket { keys: [K::default(); KEYS], values: [VACANT; KEYS] });
        for (key, value) in rules.iter().map(pair) {
            let mut at = table.home(key);
            loop {
                let bucket = &mut table.buckets[at];
                let places = bucket.keys.iter_mut().zip(&mut bucket.values);
                if let Some((held, at)) = { places }.find(|(held, at)| **at == VACANT || **held == key) {
                    if *at == VACANT {
                        (*held, *at) = (key, value);
                    }
                    break;
                }
                at = if at + 1 == count { 0 } else { at + 1 };
            }
        }
        table
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Whether a lookup may have to wait for memory.
    #[inline]
    pub(super) fn is_large(&self) -> bool {
        self.entries > MANY
    }

    #[inline]
    pub(super) fn find(&self, key: K) -> Option<u32> {
        self.find_from(self.home(key), key)
    }

    /// Finds a key with a known [`Table::home`].
    #[inline(always)]
    pub(super) fn find_from(&self, home: usize, key: K) -> Option<u32> {
        let bucket = self.buckets.get(home)?;
        let value = bucket.find(key);
        if value == VACANT && bucket.values[KEYS - 1] != VACANT {
            return self.find_behind(home, key);
        }
        if value == VACANT { None } else { Some(value) }
    }

    /// Finds a key that may have overflowed its home.
    #[inline(never)]
    fn find_behind(&self, home: usize, key: K) -> Option<u32> {
        let mut at = home;
        loop {
            at = if at + 1 == self.buckets.len() { 0 } else { at + 1 };
            let bucket = &self.buckets[at];
            match bucket.find(key) {
                VACANT if bucket.values[KEYS - 1] == VACANT || at == home => return None,
                VACANT => {}
                value => return Some(value),
            }
        }
    }

    /// Prefetches a bucket.
    #[inline]
    pub(super) fn prefetch(&self, home: usize) {
        if let Some(bucket) = self.buckets.get(home) {
            prefetch(bucket);
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.buckets)
    }

    /// The first bucket to search: the hash scaled to the table, so that its size need not be a power of two.
    #[inline]
    pub(super) fn home(&self, key: K) -> usize {
        ((u128::from(key.hash()) * self.buckets.len() as u128) >> 64) as usize
    }
}

impl<K: Key> Bucket<K> {
    /// The value of a key, or [`VACANT`].
    #[inline(always)]
    fn find(&self, key: K) -> u32 {
        // From the last, because free places come last and their keys are meaningless. Without branches,
        // because the position is unpredictable.
        let pairs = self.keys.iter().zip(&self.values).rev();
        pairs.fold(VACANT, |found, (held, value)| if *held == key { *value } else { found })
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
            let table = Table::new(&pairs, |pair| *pair);
            let mut map = HashMap::new();
            pairs.iter().for_each(|&(key, value)| {
                map.entry(key).or_insert(value);
            });
            for key in 0..80_000u64 {
                assert_eq!(table.find(key), map.get(&key).copied(), "{entries} {key}");
            }
        }
    }

    /// Five eighths full, with five keys per bucket and a random hash, one key in twenty overflows: by
    /// Poisson's law, with 3.125 keys per bucket on average. Addresses in sequence must not be much worse.
    #[test]
    fn sequential_keys_spread() {
        let key = |n: u64| (0x0a00_0000 + n) << 32 | (0x0a80_0000 + n);
        let numbers: Vec<u64> = (0..100_000).collect();
        let table = Table::new(&numbers, |&n| (key(n), n as u32));
        let elsewhere = (0..100_000u64).filter(|&n| table.buckets[table.home(key(n))].find(key(n)) == VACANT);
        let share = elsewhere.count() as f64 / 100_000.0;
        assert!((0.02..0.1).contains(&share), "{share}");
    }

    #[test]
    fn wide_keys() {
        let key = |n: u128| (n << 64 | 1, n);
        let numbers: Vec<u128> = (0..500).collect();
        let table = Table::new(&numbers, |&n| (key(n), n as u32));
        assert!((0..500).all(|n| table.find(key(n)) == Some(n as u32)));
        assert_eq!(table.find(key(500)), None);
    }
}
