//! The timing wheel: the next link to serve, exact to the nanosecond.
//!
//! - The lowest of six levels has 16 384 slots of 1024 ns, for the next 16.7 ms, so that most deadlines are
//!   inserted once. The others have 256 slots, each as wide as the whole level below; their entries move down
//!   when time reaches them.
//! - When time reaches a slot of the lowest level, its entries are taken: in exact order (time, then link) by
//!   [`Wheel::pop`], which sorts a few and puts more into a heap, or in any order by [`Wheel::take_due`], which
//!   copies them out of a slot that is due as a whole.
//! - A slot's entries are in chunks of an array allocated at the start, so they are contiguous, and nothing
//!   is allocated later.
//!
//! Insertion is O(1); an entry moves down a level at most five times.

use longwire_units::Nanos;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Enough for every 64-bit time.
const LEVELS: usize = 6;
/// log2 of the width of a slot of the lowest level, in ns.
const GRAIN_BITS: u32 = 10;
/// log2 of the number of slots of the lowest level, and of each of the others.
const LOW_BITS: u32 = 14;
const SLOT_BITS: u32 = 8;
const SLOTS: usize = (1 << LOW_BITS) + ((LEVELS - 1) << SLOT_BITS);
/// Time covered by the lowest level, in ns.
const LOW_SPAN: u64 = 1 << (GRAIN_BITS + LOW_BITS);
/// Words of 64 slots of the lowest level.
const LOW_WORDS: usize = 1 << (LOW_BITS - 6);
const CHUNK: usize = 15;
/// Most entries of a slot that are sorted.
const RUN: usize = 256;
const NONE: u32 = u32::MAX;

/// A link and its deadline. Ordered by time, then link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    pub time: Nanos,
    pub link: u32,
}

/// Entries of one slot; full chunks are chained.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
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
    /// First chunk of each slot, the lowest level's first.
    slots: Box<[u32; SLOTS]>,
    /// Occupied slots, a bit each, and for the lowest level the words of these bits that are not zero.
    occupied: Box<[u64; SLOTS / 64]>,
    low_words: [u64; LOW_WORDS / 64],
    /// Entries of the slot that was opened last: offset from `run_start`, above the link. If sorted, the
    /// earliest is at the end.
    run: Vec<u64>,
    run_start: u64,
    is_sorted: bool,
    /// Other entries before `horizon`, the earliest on top.
    near: BinaryHeap<Reverse<Entry>>,
    /// All entries before this time are in `run` or `near`; a multiple of the grain.
    horizon: u64,
    len: usize,
    /// Number of entries in the higher levels.
    far: usize,
}

impl crate::WorkerSetup {
    /// Bytes of memory for this worker's timing wheel, which has room for all links to be due at once.
    pub fn wheel_bytes(&self) -> usize {
        let links = self.links.slots();
        size_of::<Wheel>()
            + size_of::<[u32; SLOTS]>()
            + size_of::<[u64; SLOTS / 64]>()
            + chunks_for(links) * size_of::<Chunk>()
            + (links + RUN) * size_of::<Entry>()
    }
}

/// Chunks for `capacity` entries in any distribution: each occupied slot wastes less than one.
fn chunks_for(capacity: usize) -> usize {
    capacity / CHUNK + 1 + SLOTS.min(capacity)
}

impl Wheel {
    /// An empty wheel for `capacity` entries, positioned at `now`.
    pub fn new(capacity: usize, now: Nanos) -> Self {
        let count = chunks_for(capacity);
        let mut chunks = vec![VACANT; count].into_boxed_slice();
        for (index, chunk) in chunks.iter_mut().enumerate() {
            chunk.next = if index + 1 < count { index as u32 + 1 } else { NONE };
        }
        Self {
            chunks,
            free: 0,
            slots: Box::new([NONE; SLOTS]),
            occupied: Box::new([0; SLOTS / 64]),
            low_words: [0; LOW_WORDS / 64],
            run: Vec::with_capacity(RUN),
            run_start: 0,
            is_sorted: true,
            near: BinaryHeap::with_capacity(capacity),
            horizon: now.0 >> GRAIN_BITS << GRAIN_BITS,
            len: 0,
            far: 0,
        }
    }

    /// Takes over all entries of another wheel, which is at `now`.
    pub fn take_over(&mut self, other: &mut Self, now: Nanos) {
        debug_assert!(self.len == 0, "a new wheel has no entries");
        self.horizon = now.0 >> GRAIN_BITS << GRAIN_BITS;
        while let Some(entry) = other.pop(Nanos::NEVER) {
            self.insert(entry);
        }
    }

    /// Adds an entry.
    #[inline]
    pub fn insert(&mut self, entry: Entry) {
        self.len += 1;
        self.place(entry);
    }

    /// Adds an entry before the horizon: to the open slot if that is unsorted or empty, else to the heap.
    fn insert_near(&mut self, entry: Entry) {
        let joins = self.run.is_empty() || !self.is_sorted && self.run.len() < RUN;
        if joins && entry.time.0 >= self.run_start && entry.time.0 - self.run_start < 1 << 32 {
            self.is_sorted = self.run.is_empty();
            self.run.push((entry.time.0 - self.run_start) << 32 | u64::from(entry.link));
        } else {
            self.near.push(Reverse(entry));
        }
    }

    /// The earliest entry, if its time is not after `limit`.
    #[inline]
    pub fn peek(&mut self, limit: Nanos) -> Option<Entry> {
        self.sort();
        loop {
            if let Some(entry) = self.first_near() {
                return if entry.time <= limit { Some(entry) } else { None };
            }
            if self.len == 0 || !self.open_next(limit) {
                return None;
            }
            self.sort();
        }
    }

    #[inline]
    fn sort(&mut self) {
        if !self.is_sorted {
            self.run.sort_unstable_by(|one, other| other.cmp(one));
            self.is_sorted = true;
        }
    }

    #[inline]
    fn first_near(&self) -> Option<Entry> {
        match (self.run.last().map(|&held| self.held(held)), self.near.peek()) {
            (Some(entry), None) => Some(entry),
            (Some(entry), Some(&Reverse(other))) => Some(entry.min(other)),
            (None, other) => other.map(|other| other.0),
        }
    }

    /// Decodes an entry of the run.
    #[inline]
    fn held(&self, held: u64) -> Entry {
        Entry { time: Nanos(self.run_start + (held >> 32)), link: held as u32 }
    }

    /// Takes the earliest entry, if its time is not after `limit`.
    #[inline]
    pub fn pop(&mut self, limit: Nanos) -> Option<Entry> {
        let entry = self.peek(limit)?;
        if self.run.last().map(|&held| self.held(held)) == Some(entry) {
            self.run.pop();
        } else {
            self.near.pop();
        }
        self.len -= 1;
        Some(entry)
    }

    /// Takes links that are due by `limit`, in any order, up to the length of `due`, and returns how many.
    #[inline]
    pub fn take_due(&mut self, limit: Nanos, due: &mut [u32]) -> usize {
        let mut count = 0;
        loop {
            let mut at = 0;
            while let Some(&held) = self.run.get(at)
                && count < due.len()
            {
                if self.run_start + (held >> 32) <= limit.0 {
                    due[count] = held as u32;
                    count += 1;
                    // No longer sorted: the last entry replaces this one.
                    self.is_sorted = false;
                    self.run.swap_remove(at);
                } else {
                    at += 1;
                }
            }
            while count < due.len()
                && let Some(Reverse(entry)) = self.near.peek()
                && entry.time <= limit
            {
                due[count] = entry.link;
                count += 1;
                self.near.pop();
            }
            if count < due.len() && self.len > count {
                let taken = self.take_slot(limit, &mut due[count..]);
                count += taken;
                if taken > 0 || self.open_next(limit) {
                    continue;
                }
            }
            self.len -= count;
            return count;
        }
    }

    /// Takes links of the next slot of the lowest level, if all of it is due by `limit`; returns how many.
    fn take_slot(&mut self, limit: Nanos, due: &mut [u32]) -> usize {
        let Some((0, slot)) = self.next_slot() else { return 0 };
        let end = self.slot_start(0, slot).saturating_add(1 << GRAIN_BITS);
        let mut count = 0;
        while end <= limit.0
            && count < due.len()
            && let Some(chunk) = self.chunks.get_mut(self.slots[slot] as usize)
        {
            let left = (chunk.len as usize).saturating_sub(due.len() - count);
            let entries = &chunk.entries[left..chunk.len as usize];
            due[count..].iter_mut().zip(entries).for_each(|(due, entry)| *due = entry.link);
            count += entries.len();
            chunk.len = left as u32;
            if left == 0 {
                self.slots[slot] = self.release(self.slots[slot]);
            }
        }
        if self.slots[slot] == NONE {
            self.vacate(slot);
            self.advance(end);
        }
        count
    }

    /// A lower bound on the times of all entries, exact once the earliest entry's slot is open;
    /// [`Nanos::NEVER`] if there are none.
    pub fn bound(&self) -> Nanos {
        let run = self.run.iter().map(|&held| self.held(held).time).min();
        let near = self.near.peek().map(|entry| entry.0.time);
        if let Some(time) = run.into_iter().chain(near).min() {
            return time;
        }
        match self.next_slot() {
            Some((level, slot)) => Nanos(self.slot_start(level, slot).max(self.horizon)),
            None => Nanos::NEVER,
        }
    }

    /// Removes an entry that is in the wheel, because its link has an earlier deadline now.
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
        // An entry that was far when inserted may be near now, but still in a far slot.
        let (near, far) = (self.position(entry.time.0), self.position_far(entry.time.0));
        if !self.remove_from(near, entry) && self.remove_from(far, entry) || near == far {
            self.far -= 1;
        }
    }

    /// Removes an entry from a slot. Returns false if it is not there.
    fn remove_from(&mut self, slot: usize, entry: Entry) -> bool {
        let mut at = self.slots[slot];
        while at != NONE {
            let chunk = &self.chunks[at as usize];
            if let Some(index) = chunk.entries[..chunk.len as usize].iter().position(|held| *held == entry) {
                let last = self.take_last(slot);
                if last != entry {
                    self.chunks[at as usize].entries[index] = last;
                }
                self.len -= 1;
                return true;
            }
            at = chunk.next;
        }
        false
    }

    /// Puts an entry into its slot, or among those before the horizon.
    #[inline]
    fn place(&mut self, entry: Entry) {
        // Of a time before the horizon the difference wraps.
        if entry.time.0.wrapping_sub(self.horizon) < LOW_SPAN {
            self.add_to(slot_of(0, entry.time.0), entry);
        } else {
            self.place_elsewhere(entry);
        }
    }

    /// Places an entry that does not belong to the lowest level.
    #[inline(never)]
    fn place_elsewhere(&mut self, entry: Entry) {
        if entry.time.0 < self.horizon {
            return self.insert_near(entry);
        }
        self.far += 1;
        self.add_to(self.position_far(entry.time.0), entry);
    }

    #[inline(always)]
    fn add_to(&mut self, slot: usize, entry: Entry) {
        if let Some(chunk) = self.chunks.get_mut(self.slots[slot] as usize)
            && let Some(free) = chunk.entries.get_mut(chunk.len as usize)
        {
            *free = entry;
            chunk.len += 1;
        } else {
            self.add_chunk(slot, entry);
        }
    }

    /// Adds an entry to a slot whose first chunk is full, or that has none.
    #[inline(never)]
    fn add_chunk(&mut self, slot: usize, entry: Entry) {
        let (first, fresh) = (self.slots[slot], self.free);
        if first == NONE {
            self.occupy(slot);
        }
        let chunk = &mut self.chunks[fresh as usize];
        self.free = chunk.next;
        (chunk.entries[0], chunk.len, chunk.next) = (entry, 1, first);
        self.slots[slot] = fresh;
    }

    fn occupy(&mut self, slot: usize) {
        self.occupied[slot / 64] |= 1 << (slot % 64);
        if let Some(words) = self.low_words.get_mut(slot / 64 / 64) {
            *words |= 1 << (slot / 64 % 64);
        }
    }

    fn vacate(&mut self, slot: usize) {
        self.occupied[slot / 64] &= !(1 << (slot % 64));
        if self.occupied[slot / 64] == 0
            && let Some(words) = self.low_words.get_mut(slot / 64 / 64)
        {
            *words &= !(1 << (slot / 64 % 64));
        }
    }

    /// The slot for a time not before the horizon, which is a multiple of a slot's width.
    fn position(&self, time: u64) -> usize {
        if time - self.horizon < LOW_SPAN { slot_of(0, time) } else { self.position_far(time) }
    }

    /// The slot of a higher level for a time not before the horizon: its level is that of the highest digit
    /// in which they differ.
    #[inline]
    fn position_far(&self, time: u64) -> usize {
        let differ = (time ^ self.horizon) >> (GRAIN_BITS + LOW_BITS) | 1;
        let level = (63 - differ.leading_zeros()) / SLOT_BITS + 1;
        slot_of(level as usize, time)
    }

    /// Opens the next occupied slot if it begins by `limit`: entries of a lowest-level slot join the run,
    /// those of a higher one move down.
    fn open_next(&mut self, limit: Nanos) -> bool {
        let Some((level, slot)) = self.next_slot() else { return false };
        let start = self.slot_start(level, slot).max(self.horizon);
        if start > limit.0 {
            return false;
        }
        if level > 0 {
            self.horizon = start;
            self.cascade(slot);
            return true;
        }
        debug_assert!(self.run.is_empty(), "all of it was due before the next slot");
        self.run_start = start;
        let mut at = self.detach(slot);
        while at != NONE {
            let chunk = &self.chunks[at as usize];
            let entries = &chunk.entries[..chunk.len as usize];
            let (few, more) = entries.split_at(entries.len().min(RUN - self.run.len()));
            self.run.extend(few.iter().map(|entry| (entry.time.0 - start) << 32 | u64::from(entry.link)));
            self.near.extend(more.iter().copied().map(Reverse));
            at = self.release(at);
        }
        self.is_sorted = self.run.len() < 2;
        self.advance(start + (1 << GRAIN_BITS));
        true
    }

    /// Moves the horizon, and moves down entries of the slots that it enters, highest level first.
    fn advance(&mut self, horizon: u64) {
        self.horizon = horizon;
        for level in (1..LEVELS).rev() {
            let slot = slot_of(level, horizon);
            if horizon.trailing_zeros() >= shift(level) && self.slots[slot] != NONE {
                self.cascade(slot);
            }
        }
    }

    /// Redistributes the entries of a slot that the horizon has reached.
    fn cascade(&mut self, slot: usize) {
        let mut at = self.detach(slot);
        while at != NONE {
            let chunk = self.chunks[at as usize];
            at = self.release(at);
            self.far -= chunk.len as usize;
            chunk.entries[..chunk.len as usize].iter().for_each(|&entry| self.place(entry));
        }
    }

    /// The occupied slot that begins first, and its level. Of two that begin together, the one of the higher
    /// level comes first.
    fn next_slot(&self) -> Option<(usize, usize)> {
        let low = self.next_low().map(|slot| (0, slot));
        if self.far == 0 {
            return low;
        }
        let high = (1..LEVELS).find_map(|level| {
            let first = slot_of(level, 0);
            let bits = &self.occupied[first / 64..][..(1 << SLOT_BITS) / 64];
            first_from(bits, slot_of(level, self.horizon) - first).map(|slot| (level, first + slot))
        });
        let start = |(level, slot): (usize, usize)| (self.slot_start(level, slot), level == 0);
        low.into_iter().chain(high).min_by_key(|&slot| start(slot))
    }

    /// The first occupied slot of the lowest level; slots before the horizon's wrap around behind the last.
    fn next_low(&self) -> Option<usize> {
        let now = slot_of(0, self.horizon);
        if let Some(slot) = first_from(&self.occupied[now / 64..now / 64 + 1], now % 64) {
            return Some(now / 64 * 64 + slot);
        }
        let word = first_from(&self.low_words, now / 64 + 1).or_else(|| first_from(&self.low_words, 0))?;
        Some(word * 64 + self.occupied[word].trailing_zeros() as usize)
    }

    fn slot_start(&self, level: usize, slot: usize) -> u64 {
        if level == 0 {
            let now = self.horizon >> GRAIN_BITS;
            let ahead = (slot as u64).wrapping_sub(now) % (1 << LOW_BITS);
            return (now + ahead) << GRAIN_BITS;
        }
        let below = u64::MAX.checked_shl(shift(level) + SLOT_BITS).map_or(u64::MAX, |above| !above);
        (self.horizon & !below) + (((slot - slot_of(level, 0)) as u64) << shift(level))
    }

    fn detach(&mut self, slot: usize) -> u32 {
        self.vacate(slot);
        std::mem::replace(&mut self.slots[slot], NONE)
    }

    /// Frees a chunk and returns the one after it.
    fn release(&mut self, at: u32) -> u32 {
        let chunk = &mut self.chunks[at as usize];
        let next = std::mem::replace(&mut chunk.next, self.free);
        self.free = at;
        next
    }

    /// Takes the last entry of a slot's first chunk.
    fn take_last(&mut self, slot: usize) -> Entry {
        let first = self.slots[slot];
        let chunk = &mut self.chunks[first as usize];
        chunk.len -= 1;
        let (last, len) = (chunk.entries[chunk.len as usize], chunk.len);
        if len == 0 {
            self.slots[slot] = self.release(first);
            if self.slots[slot] == NONE {
                self.detach(slot);
            }
        }
        last
    }
}

/// log2 of the width of a slot of a level, in ns.
#[inline]
const fn shift(level: usize) -> u32 {
    if level == 0 { GRAIN_BITS } else { GRAIN_BITS + LOW_BITS + SLOT_BITS * (level as u32 - 1) }
}

/// The slot of a level in which a time lies.
#[inline]
const fn slot_of(level: usize, time: u64) -> usize {
    if level == 0 {
        return (time >> GRAIN_BITS) as usize % (1 << LOW_BITS);
    }
    let first = (1 << LOW_BITS) + ((level - 1) << SLOT_BITS);
    first + (time >> shift(level)) as usize % (1 << SLOT_BITS)
}

/// The first set bit at `from` or above.
fn first_from(bits: &[u64], from: usize) -> Option<usize> {
    let mut word = from / 64;
    let mut masked = bits.get(word)? & (u64::MAX << (from % 64));
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

    /// Random insertions, removals and pops with delays from zero to weeks, compared with a binary heap.
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

    /// A random delay of up to `bits` bits, with all lengths equally likely.
    fn reach(dice: &mut Dice, bits: u64) -> u64 {
        let bits = dice.below(bits);
        dice.below(1 << bits)
    }

    /// Unordered taking returns exactly what is due, whether or not entries were taken in order before or
    /// after.
    #[test]
    fn whatever_is_due_is_taken_in_any_order() {
        for seed in 0..40 {
            let mut dice = Dice::named(seed, "wheel/due");
            let mut now = dice.draw() >> 20;
            let mut wheel = Wheel::new(600, Nanos(now));
            let mut held: Vec<Entry> = Vec::new();
            for step in 0..5000u32 {
                while held.len() < 600 && dice.below(4) > 0 {
                    let link = held.len() as u32 + step * 600;
                    let entry = Entry { time: Nanos(now + reach(&mut dice, 30)), link };
                    wheel.insert(entry);
                    held.push(entry);
                }
                now += reach(&mut dice, 24);
                held.sort_unstable_by(|a, b| b.cmp(a));
                if dice.below(4) == 0 {
                    let wanted = held.pop_if(|entry| entry.time.0 <= now);
                    assert_eq!(wheel.pop(Nanos(now)), wanted, "seed {seed} step {step}");
                    continue;
                }
                let mut due = [0; 32];
                let count = wheel.take_due(Nanos(now), &mut due);
                let (before, all) = (held.len(), held.iter().filter(|entry| entry.time.0 <= now).count());
                assert_eq!(count, all.min(due.len()), "seed {seed} step {step}");
                held.retain(|entry| entry.time.0 > now || !due[..count].contains(&entry.link));
                assert_eq!((held.len(), wheel.len), (before - count, before - count));
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

    /// All links due in the same slot, and one in every slot: the extremes of chunk use.
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
