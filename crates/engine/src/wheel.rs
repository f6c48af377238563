//! The timing wheel: which link wants to be looked at next, exact to the nanosecond.
//!
//! Seven levels of 256 slots, the lowest 1024 ns wide each. When time comes to a lowest slot, its few entries are sorted, and taken in exact
//! order (time, then link); what is added to it later, or is more than a few, lies in a heap beside them. A slot's entries lie in chunks of an
//! array allocated at the start, so they are contiguous and nothing is allocated later. Insertion is O(1); an entry moves down
//! a level at most six times.

use longwire_units::Nanos;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Enough for every 64-bit time.
const LEVELS: usize = 7;
const SLOT_BITS: u32 = 8;
const SLOTS: usize = 1 << SLOT_BITS;
/// log2 of the width of a slot of the lowest level, in ns.
const GRAIN_BITS: u32 = 10;
const CHUNK: usize = 15;
/// Most entries of a slot that are sorted.
const RUN: usize = 256;
const NONE: u32 = u32::MAX;

/// A link and the time at which it wants to be looked at. Ordered by time, then link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// When.
    pub time: Nanos,
    /// Which link.
    pub link: u32,
}

/// Entries of one slot; full ones are chained.
#[derive(Debug, Clone, Copy)]
struct Chunk {
    entries: [Entry; CHUNK],
    len: u32,
    next: u32,
}

const VACANT: Chunk = Chunk { entries: [Entry { time: Nanos::ZERO, link: 0 }; CHUNK], len: 0, next: NONE };

/// A priority queue of at most `capacity` entries.
#[derive(Debug)]
pub struct Wheel {
    chunks: Box<[Chunk]>,
    free: u32,
    /// First chunk of each slot.
    slots: Box<[[u32; SLOTS]; LEVELS]>,
    /// Which slots hold anything, a bit each.
    occupied: [[u64; SLOTS / 64]; LEVELS],
    /// Entries of the slot that was opened last, the earliest at the end: how long after `run_start`, above the link.
    run: Vec<u64>,
    run_start: u64,
    /// Other entries before `horizon`, the earliest on top.
    near: BinaryHeap<Reverse<Entry>>,
    /// Everything before this time is in `run` or `near`; a multiple of the grain.
    horizon: u64,
    len: usize,
}

impl crate::WorkerSetup {
    /// Bytes of memory that the timing wheel of this worker will take: it has room for every link to be due at once.
    pub fn wheel_bytes(&self) -> usize {
        let links = self.links.slots();
        size_of::<Wheel>()
            + size_of::<[[u32; SLOTS]; LEVELS]>()
            + chunks_for(links) * size_of::<Chunk>()
            + (links + RUN) * size_of::<Entry>()
    }
}

/// Chunks that `capacity` entries need however they lie: each occupied slot wastes less than one.
fn chunks_for(capacity: usize) -> usize {
    capacity / CHUNK + 1 + (LEVELS * SLOTS).min(capacity)
}

impl Wheel {
    /// An empty wheel for `capacity` entries, standing at `now`.
    pub fn new(capacity: usize, now: Nanos) -> Self {
        let count = chunks_for(capacity);
        let mut chunks = vec![VACANT; count].into_boxed_slice();
        for (index, chunk) in chunks.iter_mut().enumerate() {
            chunk.next = if index + 1 < count { index as u32 + 1 } else { NONE };
        }
        Self {
            chunks,
            free: 0,
            slots: Box::new([[NONE; SLOTS]; LEVELS]),
            occupied: [[0; SLOTS / 64]; LEVELS],
            run: Vec::with_capacity(RUN),
            run_start: 0,
            near: BinaryHeap::with_capacity(capacity),
            horizon: now.0 >> GRAIN_BITS << GRAIN_BITS,
            len: 0,
        }
    }

    /// Adds an entry.
    #[inline]
    pub fn insert(&mut self, entry: Entry) {
        self.len += 1;
        if entry.time.0 < self.horizon {
            self.near.push(Reverse(entry));
        } else {
            self.place(entry);
        }
    }

    /// The earliest entry, if its time is not after `limit`.
    #[inline]
    pub fn peek(&mut self, limit: Nanos) -> Option<Entry> {
        loop {
            if let Some(entry) = self.first_near() {
                return if entry.time <= limit { Some(entry) } else { None };
            }
            if self.len == 0 || !self.open_next(limit) {
                return None;
            }
        }
    }

    /// The earliest entry before the horizon.
    #[inline]
    fn first_near(&self) -> Option<Entry> {
        match (self.first_of_run(), self.near.peek()) {
            (Some(entry), None) => Some(entry),
            (Some(entry), Some(&Reverse(other))) => Some(entry.min(other)),
            (None, other) => other.map(|other| other.0),
        }
    }

    #[inline]
    fn first_of_run(&self) -> Option<Entry> {
        let &first = self.run.last()?;
        Some(Entry { time: Nanos(self.run_start + (first >> 32)), link: first as u32 })
    }

    /// Takes the earliest entry, if its time is not after `limit`.
    #[inline]
    pub fn pop(&mut self, limit: Nanos) -> Option<Entry> {
        if self.near.is_empty()
            && let Some(entry) = self.first_of_run()
        {
            if entry.time > limit {
                return None;
            }
            self.run.pop();
            self.len -= 1;
            return Some(entry);
        }
        self.pop_others(limit)
    }

    /// The same where the run is over, or has others beside it.
    #[inline(never)]
    fn pop_others(&mut self, limit: Nanos) -> Option<Entry> {
        let entry = self.peek(limit)?;
        if self.first_of_run() == Some(entry) {
            self.run.pop();
        } else {
            self.near.pop();
        }
        self.len -= 1;
        Some(entry)
    }

    /// A time before which there is no entry; exact once the entry's slot is open. Never if there are none.
    pub fn bound(&self) -> Nanos {
        if let Some(entry) = self.first_near() {
            return entry.time;
        }
        match self.next_slot() {
            Some((level, slot)) => Nanos(self.slot_start(level, slot).max(self.horizon)),
            None => Nanos::NEVER,
        }
    }

    /// Takes out an entry that is in the wheel: its link is to be looked at earlier than thought.
    pub fn remove(&mut self, entry: Entry) {
        if entry.time.0 < self.horizon {
            let before = self.run.len() + self.near.len();
            let start = self.run_start;
            let is_it = |held: u64| entry == Entry { time: Nanos(start + (held >> 32)), link: held as u32 };
            self.run.retain(|held| !is_it(*held));
            self.near.retain(|held| held.0 != entry);
            self.len -= before - self.run.len() - self.near.len();
            return;
        }
        let (level, slot) = self.position(entry.time.0);
        let mut at = self.slots[level][slot];
        while at != NONE {
            let chunk = &self.chunks[at as usize];
            if let Some(index) = chunk.entries[..chunk.len as usize].iter().position(|held| *held == entry) {
                let last = self.take_last(level, slot);
                if last != entry {
                    self.chunks[at as usize].entries[index] = last;
                }
                self.len -= 1;
                return;
            }
            at = chunk.next;
        }
    }

    /// Puts an entry into its slot.
    #[inline]
    fn place(&mut self, entry: Entry) {
        let (level, slot) = self.position(entry.time.0);
        let first = self.slots[level][slot];
        if first != NONE {
            let chunk = &mut self.chunks[first as usize];
            if (chunk.len as usize) < CHUNK {
                chunk.entries[chunk.len as usize] = entry;
                chunk.len += 1;
                return;
            }
        } else {
            self.occupied[level][slot / 64] |= 1 << (slot % 64);
        }
        let fresh = self.free;
        let chunk = &mut self.chunks[fresh as usize];
        self.free = chunk.next;
        (chunk.entries[0], chunk.len, chunk.next) = (entry, 1, first);
        self.slots[level][slot] = fresh;
    }

    /// Level and slot for a time not before the horizon: the level of the highest digit in which they differ.
    #[inline]
    fn position(&self, time: u64) -> (usize, usize) {
        let differ = (time ^ self.horizon) >> GRAIN_BITS | 1;
        let level = (63 - differ.leading_zeros()) / SLOT_BITS;
        (level as usize, (time >> (GRAIN_BITS + SLOT_BITS * level)) as usize % SLOTS)
    }

    /// Opens the next occupied slot if it begins by `limit`: what is in a lowest one is sorted, a higher one moves down.
    fn open_next(&mut self, limit: Nanos) -> bool {
        let Some((level, slot)) = self.next_slot() else { return false };
        let start = self.slot_start(level, slot).max(self.horizon);
        if start > limit.0 {
            return false;
        }
        if level > 0 {
            self.horizon = start;
            self.cascade(level, slot);
            return true;
        }
        let mut at = self.detach(0, slot);
        while at != NONE {
            let chunk = &self.chunks[at as usize];
            let entries = &chunk.entries[..chunk.len as usize];
            let (few, more) = entries.split_at(entries.len().min(RUN - self.run.len()));
            self.run.extend(few.iter().map(|entry| (entry.time.0 - start) << 32 | u64::from(entry.link)));
            self.near.extend(more.iter().copied().map(Reverse));
            at = self.release(at);
        }
        self.run_start = start;
        self.run.sort_unstable_by(|one, other| other.cmp(one));
        self.advance(start + (1 << GRAIN_BITS));
        true
    }

    /// Moves the horizon, and down what belongs to the slots it thereby enters, highest level first.
    fn advance(&mut self, horizon: u64) {
        self.horizon = horizon;
        for level in (1..LEVELS).rev() {
            let shift = GRAIN_BITS + SLOT_BITS * level as u32;
            if horizon.trailing_zeros() >= shift {
                let slot = (horizon >> shift) as usize % SLOTS;
                if self.slots[level][slot] != NONE {
                    self.cascade(level, slot);
                }
            }
        }
    }

    /// Places a slot's entries anew, relative to the horizon that has reached the slot.
    fn cascade(&mut self, level: usize, slot: usize) {
        let mut at = self.detach(level, slot);
        while at != NONE {
            let chunk = self.chunks[at as usize];
            at = self.release(at);
            chunk.entries[..chunk.len as usize].iter().for_each(|&entry| self.place(entry));
        }
    }

    /// The occupied slot that comes first: all of a lower level come before those of a higher one.
    fn next_slot(&self) -> Option<(usize, usize)> {
        (0..LEVELS).find_map(|level| {
            let current = (self.horizon >> (GRAIN_BITS + SLOT_BITS * level as u32)) as usize % SLOTS;
            first_from(&self.occupied[level], current).map(|slot| (level, slot))
        })
    }

    fn slot_start(&self, level: usize, slot: usize) -> u64 {
        let shift = GRAIN_BITS + SLOT_BITS * level as u32;
        let below = u64::MAX.checked_shl(shift + SLOT_BITS).map_or(u64::MAX, |above| !above);
        (self.horizon & !below) + ((slot as u64) << shift)
    }

    fn detach(&mut self, level: usize, slot: usize) -> u32 {
        self.occupied[level][slot / 64] &= !(1 << (slot % 64));
        std::mem::replace(&mut self.slots[level][slot], NONE)
    }

    /// Gives a chunk back and returns the one after it.
    fn release(&mut self, at: u32) -> u32 {
        let chunk = &mut self.chunks[at as usize];
        let next = std::mem::replace(&mut chunk.next, self.free);
        self.free = at;
        next
    }

    /// Takes the last entry of a slot's first chunk.
    fn take_last(&mut self, level: usize, slot: usize) -> Entry {
        let first = self.slots[level][slot];
        let chunk = &mut self.chunks[first as usize];
        chunk.len -= 1;
        let (last, len) = (chunk.entries[chunk.len as usize], chunk.len);
        if len == 0 {
            self.slots[level][slot] = self.release(first);
            if self.slots[level][slot] == NONE {
                self.detach(level, slot);
            }
        }
        last
    }
}

/// The first set bit at `from` or above.
fn first_from(bits: &[u64; SLOTS / 64], from: usize) -> Option<usize> {
    let mut word = from / 64;
    let mut masked = bits[word] & (u64::MAX << (from % 64));
    loop {
        if masked != 0 {
            return Some(word * 64 + masked.trailing_zeros() as usize);
        }
        word += 1;
        masked = *bits.get(word)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_block::Dice;

    /// Random insertions, removals and pops with delays from nothing to weeks, against a binary heap.
    #[test]
    fn agrees_with_a_heap() {
        for seed in 0..40 {
            let mut dice = Dice::named(seed, "wheel");
            let start = dice.draw() >> 20;
            let mut wheel = Wheel::new(300, Nanos(start));
            let mut heap: Vec<Entry> = Vec::new();
            let mut now = start;
            for step in 0..20_000u32 {
                if heap.len() < 300 && dice.below(3) > 0 {
                    let reach = dice.below(56);
                    let entry = Entry { time: Nanos(now + dice.below(1 << reach)), link: step };
                    wheel.insert(entry);
                    heap.push(entry);
                } else if dice.below(10) == 0 && !heap.is_empty() {
                    let entry = heap.swap_remove(dice.below(heap.len() as u64) as usize);
                    wheel.remove(entry);
                } else {
                    let reach = dice.below(50);
                    let limit = now + dice.below(1 << reach);
                    heap.sort_unstable_by(|a, b| b.cmp(a));
                    let wanted = heap.last().copied().filter(|entry| entry.time.0 <= limit);
                    assert!(heap.last().is_none_or(|entry| wheel.bound() <= entry.time));
                    assert_eq!(wheel.pop(Nanos(limit)), wanted, "seed {seed} step {step}");
                    match wanted {
                        Some(entry) => {
                            heap.pop();
                            now = now.max(entry.time.0);
                        }
                        None => now = limit,
                    }
                }
                assert_eq!(wheel.len, heap.len());
            }
        }
    }

    #[test]
    fn equal_times_come_by_link() {
        let mut wheel = Wheel::new(100, Nanos::ZERO);
        for link in [5, 3, 9, 1, 7] {
            wheel.insert(Entry { time: Nanos(5000), link });
        }
        let order: Vec<_> = std::iter::from_fn(|| wheel.pop(Nanos(5000)).map(|entry| entry.link)).collect();
        assert_eq!(order, [1, 3, 5, 7, 9]);
    }

    /// All links due in the same slot and one in every slot: the two extremes of chunk use.
    #[test]
    fn capacity_is_enough_however_entries_lie() {
        for spread in [0u64, 1 << 10, 1 << 18, 1 << 26] {
            let mut wheel = Wheel::new(5000, Nanos(123));
            for round in 0..3 {
                let base = round * (5001 * spread + 10_000);
                for n in 0..5000 {
                    wheel.insert(Entry { time: Nanos(base + 9999 + n * spread), link: n as u32 });
                }
                let taken = std::iter::from_fn(|| wheel.pop(Nanos::NEVER)).count();
                assert_eq!(taken, 5000);
            }
        }
    }
}
