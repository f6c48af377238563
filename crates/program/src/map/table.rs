//! Finds the entry of a key: each key has two buckets of eight slots, so that a search takes at most sixteen
//! words, whatever the keys.
//!
//! A slot is empty, or has an entry's index and 16 bits of its key's hash, with a counter that makes every
//! write distinct. Keys are in an array by entry. A search takes no lock: it reads a slot, compares the key,
//! and checks that the slot has not changed. Writers take turns, which [`Map`](super::Map) manages.
//!
//! The buckets have twice as many slots as there are entries, and a new key goes into the emptier of its two
//! buckets, so that both are full very rarely (with all entries in use, in about 10⁻¹⁵ of insertions). Then
//! the map is full for this key.

use crate::Size;
use crate::hash::hash;
use crate::words::Words;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

const BUCKET: usize = 8;
/// Most words of use marks inspected to find a victim: 64 entries each.
const SWEEP: usize = 64;

#[derive(Debug)]
pub(super) struct Table {
    slots: Box<[AtomicU64]>,
    keys: Words,
    key_size: usize,
    entries: u32,
    seed: u64,
    /// Free entries, as a queue: the one freed first is reused first, so that addresses of removed values
    /// stay valid as long as possible.
    free: Box<[AtomicU32]>,
    first_free: AtomicU32,
    free_count: AtomicU32,
    /// Number of writes to slots.
    count: AtomicU64,
    /// For LRU maps: a bit for each entry, set by lookups and updates, not by insertion: a key that is used
    /// once leaves before one that is used again. Then the start of the next sweep, and the last entry
    /// inserted.
    recent: Box<[AtomicU64]>,
    hand: AtomicU32,
    newest: AtomicU32,
}

/// A key's two buckets, as indices of their first slots, and the 16 hash bits stored in slots.
#[derive(Clone, Copy)]
struct Place {
    buckets: [usize; 2],
    mark: u64,
}

impl Table {
    /// A table for this many entries. With `lru`, [`Table::insert`] evicts entries.
    pub(super) fn new(key_size: usize, entries: u32, lru: bool, seed: u64) -> Self {
        let buckets = (entries as usize).div_ceil(BUCKET / 2).next_power_of_two();
        let recent = if lru { (entries as usize).div_ceil(64) } else { 0 };
        Self {
            slots: (0..buckets * BUCKET).map(|_| AtomicU64::new(0)).collect(),
            keys: Words::new(key_size.next_multiple_of(8) * entries as usize),
            key_size,
            entries,
            seed,
            free: (0..entries).map(AtomicU32::new).collect(),
            first_free: AtomicU32::new(0),
            free_count: AtomicU32::new(entries),
            count: AtomicU64::new(0),
            recent: (0..recent).map(|_| AtomicU64::new(0)).collect(),
            hand: AtomicU32::new(0),
            newest: AtomicU32::new(0),
        }
    }

    /// The entry of this key.
    pub(super) fn find(&self, key: &[u8]) -> Option<u32> {
        self.slot_of(key, self.place(key)).map(|(_, entry)| entry)
    }

    /// Marks an entry as recently used.
    pub(super) fn touch(&self, entry: u32) {
        if let Some(word) = self.recent.get(entry as usize / 64) {
            let bit = 1 << (entry % 64);
            if word.load(Ordering::Relaxed) & bit == 0 {
                word.fetch_or(bit, Ordering::Relaxed);
            }
        }
    }

    /// Inserts a new key. `fill` writes its value before anyone can find it. `None` if there is no room. The
    /// caller must have the turn.
    pub(super) fn insert(&self, key: &[u8], fill: impl FnOnce(u32)) -> Option<u32> {
        let place = self.place(key);
        let lru = !self.recent.is_empty();
        if lru && self.free_count.load(Ordering::Relaxed) == 0 {
            self.evict_oldest();
        }
        let slot = match self.empty_slot(place) {
            Some(slot) => slot,
            None if lru => self.evict_from(place),
            None => return None,
        };
        let entry = self.take_free()?;
        self.keys.write(self.key_place(entry), key);
        fill(entry);
        let count = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        let word = count << 48 | place.mark << 32 | u64::from(entry + 1);
        self.slots[slot].store(word, Ordering::Release);
        self.forget(entry);
        self.newest.store(entry, Ordering::Relaxed);
        Some(entry)
    }

    /// Removes a key. Returns whether it existed. Its value stays until the entry is reused. The caller must
    /// have the turn.
    pub(super) fn remove(&self, key: &[u8]) -> bool {
        let found = self.slot_of(key, self.place(key));
        if let Some((slot, _)) = found {
            self.free_slot(slot);
        }
        found.is_some()
    }

    /// Number of slots for [`Table::at`].
    pub(super) fn slots(&self) -> usize {
        self.slots.len()
    }

    /// The entry in this slot; its key is written to `key`.
    pub(super) fn at(&self, slot: usize, key: &mut [u8]) -> Option<u32> {
        let entry = entry_of(self.slots[slot].load(Ordering::Acquire))?;
        self.keys.read(self.key_place(entry), key);
        Some(entry)
    }

    /// Number of keys.
    pub(super) fn len(&self) -> u32 {
        self.entries - self.free_count.load(Ordering::Relaxed)
    }

    fn place(&self, key: &[u8]) -> Place {
        let hash = hash(self.seed, key);
        let mask = self.slots.len() / BUCKET - 1;
        let first = hash as usize & mask;
        let second = (hash >> 24) as usize & mask;
        // Two different buckets, if possible.
        let second = if second == first { (first ^ 1) & mask } else { second };
        Place { buckets: [first * BUCKET, second * BUCKET], mark: hash >> 48 }
    }

    fn key_place(&self, entry: u32) -> usize {
        entry as usize * self.key_size.next_multiple_of(8)
    }

    /// The slots of both buckets.
    fn both(place: Place) -> impl Iterator<Item = usize> {
        let [first, second] = place.buckets;
        let again = if first == second { 0 } else { BUCKET };
        (first..first + BUCKET).chain(second..second + again)
    }

    fn slot_of(&self, key: &[u8], place: Place) -> Option<(usize, u32)> {
        Self::both(place).find_map(|slot| {
            let word = self.slots[slot].load(Ordering::Acquire);
            let entry = entry_of(word).filter(|_| word >> 32 & 0xffff == place.mark)?;
            let same = self.has_key(entry, key);
            // The key was compared before this load, so it belongs to this slot's entry.
            fence(Ordering::Acquire);
            (same && self.slots[slot].load(Ordering::Relaxed) == word).then_some((slot, entry))
        })
    }

    fn has_key(&self, entry: u32, key: &[u8]) -> bool {
        let base = self.key_place(entry);
        key.chunks(8).enumerate().all(|(index, chunk)| {
            let mut bytes = [0; 8];
            bytes[..chunk.len()].copy_from_slice(chunk);
            self.keys.load(base + index * 8, Size::Double) == u64::from_le_bytes(bytes)
        })
    }

    /// An empty slot of the emptier bucket.
    fn empty_slot(&self, place: Place) -> Option<usize> {
        let empty = |&slot: &usize| self.slots[slot].load(Ordering::Relaxed) == 0;
        let count = |first: usize| (first..first + BUCKET).filter(empty).count();
        let [first, second] = place.buckets;
        let bucket = if count(second) > count(first) { second } else { first };
        (bucket..bucket + BUCKET).find(empty)
    }

    fn take_free(&self) -> Option<u32> {
        let count = self.free_count.load(Ordering::Relaxed).checked_sub(1)?;
        let first = self.first_free.load(Ordering::Relaxed);
        self.free_count.store(count, Ordering::Relaxed);
        self.first_free.store((first + 1) % self.entries, Ordering::Relaxed);
        Some(self.free[first as usize].load(Ordering::Relaxed))
    }

    fn free_slot(&self, slot: usize) {
        let Some(entry) = entry_of(self.slots[slot].swap(0, Ordering::Relaxed)) else { return };
        // Key and value are overwritten only after anyone who compares them can see the slot changed.
        fence(Ordering::SeqCst);
        let count = self.free_count.load(Ordering::Relaxed);
        let last =
            (u64::from(self.first_free.load(Ordering::Relaxed)) + u64::from(count)) % u64::from(self.entries);
        self.free[last as usize].store(entry, Ordering::Relaxed);
        self.free_count.store(count + 1, Ordering::Relaxed);
    }

    /// Evicts an entry of a full table.
    fn evict_oldest(&self) {
        let entry = self.oldest();
        let mut key = [0; crate::MapSpec::MAX_KEY as usize];
        let key = &mut key[..self.key_size];
        self.keys.read(self.key_place(entry), key);
        let holds = |&slot: &usize| entry_of(self.slots[slot].load(Ordering::Relaxed)) == Some(entry);
        if let Some(slot) = Self::both(self.place(key)).find(holds) {
            self.free_slot(slot);
        }
    }

    /// The first entry from the hand on that was not used since the last sweep. If the next [`SWEEP`] words
    /// have none: the last entry inserted if unused, else the next.
    fn oldest(&self) -> u32 {
        let mut hand = self.hand.load(Ordering::Relaxed);
        for _ in 0..SWEEP {
            let (word, first) = (&self.recent[hand as usize / 64], hand % 64);
            let count = (self.entries - (hand - first)).min(64);
            let valid = u64::MAX << first & u64::MAX >> (64 - count);
            let unused = !word.load(Ordering::Relaxed) & valid;
            let passed = if unused == 0 { valid } else { valid & ((unused.wrapping_neg() & unused) - 1) };
            word.fetch_and(!passed, Ordering::Relaxed);
            if unused != 0 {
                let entry = hand - first + unused.trailing_zeros();
                self.hand.store((entry + 1) % self.entries, Ordering::Relaxed);
                return entry;
            }
            hand = (hand - first + count) % self.entries;
        }
        let newest = self.newest.load(Ordering::Relaxed);
        let entry = if self.is_marked(newest) { hand } else { newest };
        self.hand.store(hand, Ordering::Relaxed);
        entry
    }

    fn is_marked(&self, entry: u32) -> bool {
        let word = self.recent.get(entry as usize / 64);
        word.is_some_and(|word| word.load(Ordering::Relaxed) >> (entry % 64) & 1 == 1)
    }

    /// Evicts from two full buckets: a slot not recently used, or the first.
    fn evict_from(&self, place: Place) -> usize {
        let old = |&slot: &usize| {
            entry_of(self.slots[slot].load(Ordering::Relaxed)).is_some_and(|entry| !self.forget(entry))
        };
        let slot = Self::both(place).find(old).unwrap_or(place.buckets[0]);
        self.free_slot(slot);
        slot
    }

    /// Clears the use mark of an entry. Returns whether it was set.
    fn forget(&self, entry: u32) -> bool {
        let bit = 1 << (entry % 64);
        let word = self.recent.get(entry as usize / 64);
        word.is_some_and(|word| word.fetch_and(!bit, Ordering::Relaxed) & bit != 0)
    }
}

fn entry_of(word: u64) -> Option<u32> {
    (word as u32).checked_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_table_holds_every_key() {
        for (entries, seed) in [(1, 1), (5, 2), (8, 3), (16, 4), (1000, 5), (65_536, 6)] {
            let table = Table::new(4, entries, false, seed);
            for key in 0..entries {
                assert!(table.insert(&key.to_le_bytes(), |_| {}).is_some(), "{key} of {entries}");
            }
            assert_eq!(table.insert(&entries.to_le_bytes(), |_| {}), None);
            let mut found: Vec<u32> = (0..entries).map(|k| table.find(&k.to_le_bytes()).unwrap()).collect();
            found.sort_unstable();
            assert!(found.into_iter().eq(0..entries));
            assert_eq!(table.len(), entries);
        }
    }

    #[test]
    fn a_search_for_room_looks_at_so_many_entries_and_no_more() {
        // All were used: after 4096 of them the next one is evicted, though it was used, too.
        let table = Table::new(4, 5000, true, 1);
        let entry = |key: u32| table.insert(&key.to_le_bytes(), |_| {}).unwrap();
        for key in 0..5000 {
            table.touch(entry(key));
        }
        assert_eq!(entry(5000), 4096);
        let marked = |entries: std::ops::Range<u32>| entries.filter(|&entry| table.is_marked(entry)).count();
        assert_eq!([marked(0..4096), marked(4097..5000)], [0, 903]);
    }

    #[test]
    fn removed_entries_are_used_again_last() {
        let table = Table::new(8, 3, false, 1);
        let insert = |key: u64| table.insert(&key.to_le_bytes(), |_| {});
        assert_eq!((insert(10), insert(11)), (Some(0), Some(1)));
        assert!(table.remove(&10u64.to_le_bytes()));
        assert!(!table.remove(&10u64.to_le_bytes()));
        assert_eq!((insert(12), insert(13), insert(14)), (Some(2), Some(0), None));
        assert_eq!(table.find(&11u64.to_le_bytes()), Some(1));
        assert_eq!(table.find(&10u64.to_le_bytes()), None);
    }

    #[test]
    fn keys_of_odd_lengths_are_compared_whole() {
        let table = Table::new(13, 4, false, 9);
        let (mut key, mut other) = ([1; 13], [1; 13]);
        key[12] = 2;
        other[0] = 3;
        assert!(table.insert(&key, |_| {}).is_some());
        assert_eq!((table.find(&key), table.find(&other), table.find(&[1; 13])), (Some(0), None, None));
        let mut read = [0; 13];
        let entries: Vec<u32> = (0..table.slots()).filter_map(|slot| table.at(slot, &mut read)).collect();
        assert_eq!((entries.as_slice(), read), (&[0][..], key));
    }

    #[test]
    fn what_was_looked_up_stays() {
        let table = Table::new(4, 64, true, 1);
        let key = |k: u32| k.to_le_bytes();
        for k in 0..64 {
            table.insert(&key(k), |_| {}).unwrap();
        }
        table.find(&key(7)).into_iter().for_each(|entry| table.touch(entry));
        for k in 64..1000 {
            table.insert(&key(k), |_| {}).unwrap();
            let kept = table.find(&key(7));
            kept.into_iter().for_each(|entry| table.touch(entry));
            assert_eq!(table.len(), 64);
        }
        assert!(table.find(&key(7)).is_some());
        assert_eq!((0..64).filter(|&k| table.find(&key(k)).is_some()).count(), 1);
    }

    /// An exact LRU with this many keys and the times of their last use.
    struct Reference {
        room: usize,
        uses: std::collections::BTreeMap<u32, u64>,
        now: u64,
    }

    impl Reference {
        /// Uses a key. Returns whether it existed.
        fn meet(&mut self, key: u32) -> bool {
            self.now += 1;
            let there = self.uses.insert(key, self.now).is_some();
            if self.uses.len() > self.room {
                let oldest = *self.uses.iter().min_by_key(|&(_, time)| time).unwrap().0;
                self.uses.remove(&oldest);
            }
            there
        }
    }

    /// Uses a key as programs do: a lookup, and insertion if missing. Returns whether it existed.
    fn meet(table: &Table, key: u32) -> bool {
        let key = key.to_le_bytes();
        match table.find(&key) {
            Some(entry) => {
                table.touch(entry);
                true
            }
            None => {
                table.insert(&key, |_| {}).unwrap();
                false
            }
        }
    }

    /// Keys below `hot` in turn or at random, and every fifth one used only once.
    fn uses(hot: u32, count: u32, at_random: bool) -> impl Iterator<Item = u32> {
        (0..count).map(move |i| match (i % 5, at_random) {
            (4, _) => 1_000_000 + i,
            (_, false) => (i - i / 5) % hot,
            (_, true) => (hash(3, &i.to_le_bytes()) % u64::from(hot)) as u32,
        })
    }

    #[test]
    fn keys_in_constant_use_stay_as_in_an_exact_lru() {
        for (room, hot) in [(1000, 500), (100, 80), (64, 40), (20_000, 15_000)] {
            let table = Table::new(4, room, true, 5);
            // Inserted first, so that they are adjacent.
            (0..hot).for_each(|key| assert!(!meet(&table, key)));
            let lost = uses(hot, 40 * hot, false).filter(|&key| !meet(&table, key) && key < hot).count();
            assert_eq!(lost, 0, "{room} {hot}");
        }
    }

    #[test]
    fn what_is_lost_is_about_what_an_exact_lru_loses() {
        let (table, mut exact) =
            (Table::new(4, 500, true, 5), Reference { room: 500, uses: [].into(), now: 0 });
        let (mut lost, mut lost_exactly) = (0, 0);
        for key in uses(450, 50_000, true) {
            let there = meet(&table, key);
            let wanted = exact.meet(key);
            lost += u32::from(key < 450 && !there);
            lost_exactly += u32::from(key < 450 && !wanted);
        }
        assert!(lost_exactly > 1000 && lost < lost_exactly * 11 / 10, "{lost}, exactly {lost_exactly}");
    }
}
