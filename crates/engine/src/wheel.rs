//! The timing wheel: the next link to serve, exact to the nanosecond.
//!
//! - The lowest of six levels has 16 384 slots of 1024 ns, for the next 16.7 ms, so that most deadlines are
//!   inserted once. The others have 256 slots, each as wide as the whole level below; their entries move down
//!   when time reaches them.
//! - When time reaches a slot of the lowest level, its entries are taken: in exact order (time, then link) by
//!   [`Wheel::pop`], which sorts a few and puts more into a heap, or in any order by [`Wheel::take_due`],
//!   which copies them out of a slot that is due as a whole.
//! - Nothing is allocated after the start (`wheel/slots.rs`).
//!
//! Insertion is O(1); an entry moves down a level at most five times.

mod slots;

use longwire_packet::AHEAD;
use longwire_units::Nanos;
use slots::Slots;
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
/// Most entries of a slot that are sorted.
const RUN: usize = 256;

/// A link and its deadline. Ordered by time, then link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    pub time: Nanos,
    pub link: u32,
}

/// A priority queue of at most `capacity` entries.
#[derive(Debug)]
pub struct Wheel {
    slots: Slots,
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
        size_of::<Wheel>() + Slots::bytes(links) + (links + RUN) * size_of::<Entry>()
    }
}

impl Wheel {
    /// An empty wheel for `capacity` entries, positioned at `now`.
    pub fn new(capacity: usize, now: Nanos) -> Self {
        Self {
            slots: Slots::new(capacity),
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
        self.slots.prefetch(slot + AHEAD);
        while end <= limit.0 && count < due.len() && !self.slots.is_empty(slot) {
            count += self.slots.take_last(slot, due.len() - count, |at, entry| due[count + at] = entry.link);
        }
        if self.slots.is_empty(slot) {
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
        let was_near = self.slots.remove(near, entry);
        let was_far = !was_near && self.slots.remove(far, entry);
        self.len -= usize::from(was_near || was_far);
        if was_far || near == far {
            self.far -= 1;
        }
    }

    /// Puts an entry into its slot, or among those before the horizon.
    #[inline]
    fn place(&mut self, entry: Entry) {
        // Of a time before the horizon the difference wraps.
        if entry.time.0.wrapping_sub(self.horizon) < LOW_SPAN {
            self.slots.add(slot_of(0, entry.time.0), entry);
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
        self.slots.add(self.position_far(entry.time.0), entry);
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
        let mut at = self.slots.detach(slot);
        while let Some(entries) = self.slots.entries(at) {
            let (few, more) = entries.split_at(entries.len().min(RUN - self.run.len()));
            self.run.extend(few.iter().map(|entry| (entry.time.0 - start) << 32 | u64::from(entry.link)));
            self.near.extend(more.iter().copied().map(Reverse));
            at = self.slots.release(at);
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
            if horizon.trailing_zeros() >= shift(level) && !self.slots.is_empty(slot) {
                self.cascade(slot);
            }
        }
    }

    /// Redistributes the entries of a slot that the horizon has reached.
    fn cascade(&mut self, slot: usize) {
        let mut at = self.slots.detach(slot);
        while let Some(chunk) = self.slots.chunk(at) {
            at = self.slots.release(at);
            self.far -= chunk.entries().len();
            chunk.entries().iter().for_each(|&entry| self.place(entry));
        }
    }

    /// The occupied slot that begins first, and its level. Of two that begin together, the one of the higher
    /// level comes first.
    fn next_slot(&self) -> Option<(usize, usize)> {
        let low = self.slots.next_low(slot_of(0, self.horizon)).map(|slot| (0, slot));
        if self.far == 0 {
            return low;
        }
        let high = (1..LEVELS).find_map(|level| {
            let first = slot_of(level, 0);
            let range = slot_of(level, self.horizon)..first + (1 << SLOT_BITS);
            self.slots.next_in(range).map(|slot| (level, slot))
        });
        let start = |(level, slot): (usize, usize)| (self.slot_start(level, slot), level == 0);
        low.into_iter().chain(high).min_by_key(|&slot| start(slot))
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
