//! A calendar of short days: buckets of a few times each, in a ring that rotates with time (Brown, "Calendar
//! queues: a fast O(1) priority queue implementation for the simulation event set problem", 1988).

use longwire_packet::Handle;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::fmt;

/// An entry in a heap that returns the greatest first: a time, and what is to happen then.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry<T> {
    pub(crate) time: u64,
    pub(crate) number: u64,
    pub(crate) content: T,
}

impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.time, other.number).cmp(&(self.time, self.number))
    }
}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for Entry<T> {}

/// The content of an entry, and its representation in a bucket with its position in 2^[`MAX_SHIFT`] ns, by
/// which it is ordered.
pub(crate) trait Content: Copy + fmt::Debug {
    type Lane: Copy + fmt::Debug;
    const EMPTY: Self::Lane;
    /// Whether entries of the same time are distinguishable, so that their order matters.
    const DISTINCT: bool;
    fn lane(self, place: u32) -> Self::Lane;
    /// Greater than any position if the lane is empty.
    fn place(lane: Self::Lane) -> u32;
    fn content(lane: Self::Lane) -> Self;
}

impl Content for () {
    type Lane = u32;
    const EMPTY: u32 = u32::MAX;
    const DISTINCT: bool = false;

    #[inline]
    fn lane(self, place: u32) -> u32 {
        place
    }

    #[inline]
    fn place(lane: u32) -> u32 {
        lane
    }

    #[inline]
    fn content(_: u32) {}
}

impl Content for Handle {
    type Lane = u64;
    const EMPTY: u64 = u64::MAX;
    const DISTINCT: bool = true;

    #[inline]
    fn lane(self, place: u32) -> u64 {
        u64::from(place) << 32 | u64::from(self.0)
    }

    #[inline]
    fn place(lane: u64) -> u32 {
        (lane >> 32) as u32
    }

    #[inline]
    fn content(lane: u64) -> Self {
        Self(lane as u32)
    }
}

/// Number of blocks above which an empty ring is freed.
const LARGE: usize = 8;

/// Entries of a bucket.
const LANES: usize = 4;

/// A bucket is at most 2³¹ ns long.
const MAX_SHIFT: u32 = 31;

/// Prefetch distance in buckets.
const AHEAD: u64 = 3;

/// Number of blocks that is a long search.
const FAR: usize = 8;

/// Buckets of 2^`shift` ns; a time's bucket is its number modulo the number of buckets.
#[derive(Debug)]
pub(crate) struct Ring<T: Content> {
    first: u64,
    shift: u32,
    held: usize,
    /// Number of buckets minus one.
    mask: u64,
    /// Number of the bucket from which the last entry was taken. All entries are in buckets from this one on,
    /// within one revolution.
    cursor: u64,
    /// Cursor at which [`Ring::recall`] and [`Ring::is_sparse`] must be checked.
    alarm: u64,
    blocks: Box<[Block<T::Lane>]>,
    /// Entries one revolution or more from the cursor.
    pub(crate) beyond: BinaryHeap<Entry<T>>,
    /// Misfits since the cursor was at `mark`, and the limit.
    misfits: usize,
    bearable: usize,
    mark: u64,
    /// Number of entries for which it was made.
    made_for: usize,
    /// Whether the search for the next entry was long.
    far: bool,
}

/// Buckets of a block: one per bit.
const BUCKETS: usize = 64;

#[derive(Debug, Clone)]
struct Block<L> {
    /// Buckets that hold anything.
    some: u64,
    /// Buckets with misfits, until the cursor has left them: later entries must not precede the misfits.
    shut: u64,
    /// In ascending order, equal times in order of insertion.
    buckets: [[L; LANES]; BUCKETS],
}

impl<T: Content> Ring<T> {
    /// A ring for entries like these, in order, replacing `old`: about one entry per bucket, and reaching
    /// beyond all but the last eighth of them.
    pub(crate) fn new(all: &[(u64, T)], old: Option<&Self>) -> Self {
        let first = all.first().map_or(0, |entry| entry.0);
        let reach = all.get(all.len() * 7 / 8).map_or(0, |entry| entry.0) - first;
        // Between 0.7 and 1.4 of the mean distance between entries.
        let each = u128::from(reach) * 10 / 7 / all.len().max(1) as u128;
        let shift = each.max(1).ilog2().min(MAX_SHIFT);
        let most = 4 * all.len().max(BUCKETS / 4);
        let count = ((reach >> shift) as usize / 4 * 5).clamp(BUCKETS, most).next_power_of_two();
        let mask = count as u64 - 1;
        let same = old.filter(|old| (old.shift, old.mask) == (shift, mask));
        let bearable = same.map_or(count / 16, |old| (2 * old.bearable).min(16 * count.max(all.len())));
        let empty = Block { some: 0, shut: 0, buckets: [[T::EMPTY; LANES]; BUCKETS] };
        Self {
            first: u64::MAX,
            shift,
            held: 0,
            mask,
            cursor: first >> shift,
            alarm: u64::MAX,
            blocks: vec![empty; count / BUCKETS].into(),
            beyond: BinaryHeap::new(),
            misfits: 0,
            bearable,
            mark: first >> shift,
            made_for: all.len(),
            far: false,
        }
    }

    /// The earliest time; the end of time if it is empty.
    #[inline]
    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.held == 0
    }

    /// An entry that may come soon after the first.
    #[inline]
    pub(crate) fn soon(&self) -> Option<T> {
        let (block, bucket) = self.place((self.first >> self.shift).wrapping_add(AHEAD));
        self.blocks.get(block).map(|block| T::content(block.buckets[bucket][0]))
    }

    /// Adds an entry if it fits.
    #[inline(always)]
    pub(crate) fn push(&mut self, time: u64, content: T) -> bool {
        let number = time >> self.shift;
        let (block, bucket) = self.place(number);
        if number.wrapping_sub(self.cursor) > self.mask {
            return false;
        }
        let block = &mut self.blocks[block];
        let lanes = &mut block.buckets[bucket];
        if !is_empty::<T>(lanes[LANES - 1]) || T::DISTINCT && block.shut >> bucket & 1 != 0 {
            return false;
        }
        insert::<T>(lanes, content.lane((time - (number << self.shift)) as u32));
        block.some |= 1 << bucket;
        self.held += 1;
        self.first = self.first.min(time);
        true
    }

    /// Takes the earliest entry, which must exist. Returns whether to call [`Ring::recall`] and
    /// [`Ring::is_sparse`] next.
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> (T, bool) {
        let number = self.first >> self.shift;
        self.leave(number);
        let (at, bucket) = self.place(number);
        let block = &mut self.blocks[at];
        let [lane, next, third, fourth] = block.buckets[bucket];
        block.buckets[bucket] = [next, third, fourth, T::EMPTY];
        block.some &= !(u64::from(is_empty::<T>(next)) << bucket);
        self.held -= 1;
        if self.held == 0 {
            self.first = u64::MAX;
            return (T::content(lane), true);
        }
        let bits = block.some >> bucket;
        if bits == 0 {
            self.first = self.seek(at, number);
        } else {
            // Perhaps the same bucket.
            let ahead = bits.trailing_zeros();
            let next = block.buckets[(bucket + ahead as usize) % BUCKETS][0];
            self.first = ((number + u64::from(ahead)) << self.shift) + u64::from(T::place(next));
        }
        (T::content(lane), number >= self.alarm)
    }

    /// Takes an entry that was too late to fit and no longer is, or is the first of all.
    pub(crate) fn recall(&mut self) -> Option<Entry<T>> {
        let number = self.beyond.peek()?.time >> self.shift;
        if self.held > 0 && number - self.cursor > self.mask {
            self.alarm = number - self.mask;
            return None;
        }
        self.beyond.pop()
    }

    /// Rotates an empty ring, so that it has room before and after a time; backwards if it is `alone`,
    /// without misfits anywhere.
    pub(crate) fn turn(&mut self, time: u64, alone: bool) {
        let cursor = (time >> self.shift).saturating_sub(self.mask / 2);
        self.leave(if alone { cursor } else { cursor.max(self.cursor) });
        (self.mark, self.misfits) = (self.cursor, 0);
    }

    /// Keeps an entry that did not fit because it is too late. Other entries at its time go to the same
    /// place.
    pub(crate) fn defer(&mut self, entry: Entry<T>) -> bool {
        self.misfits += 1;
        let number = entry.time >> self.shift;
        if number < self.cursor {
            return false;
        }
        if number - self.cursor > self.mask {
            self.alarm = self.alarm.min(number - self.mask);
            self.beyond.push(entry);
            return true;
        }
        let (block, bucket) = self.place(number);
        self.blocks[block].shut |= 1 << bucket;
        false
    }

    /// Ignores misfits among the entries that it was made for.
    pub(crate) fn settle(&mut self) {
        self.misfits = 0;
    }

    /// Whether there were so many misfits that another bucket size should be tried for the `len` current
    /// entries.
    pub(crate) fn is_strained(&mut self, len: usize) -> bool {
        if self.misfits < self.bearable {
            return false;
        }
        // One in ten, or many more entries than before.
        let strained =
            self.misfits as u64 > self.cursor.saturating_sub(self.mark) / 10 || len > 2 * self.made_for;
        (self.mark, self.misfits) = (self.cursor, 0);
        strained
    }

    /// Whether the `len` current entries were found to be far apart, because they have become few.
    pub(crate) fn is_sparse(&mut self, len: usize) -> bool {
        if self.beyond.is_empty() {
            self.alarm = u64::MAX;
        }
        std::mem::take(&mut self.far) && 8 * len < self.made_for
    }

    /// Whether it is empty and takes much memory.
    pub(crate) fn is_idle(&self) -> bool {
        self.held == 0 && self.beyond.is_empty() && self.blocks.len() > LARGE
    }

    /// All entries in the ring, earliest first.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (u64, T)> {
        (0..=self.mask).flat_map(move |round| {
            let number = self.cursor.wrapping_add(round);
            let (block, bucket) = self.place(number);
            let held = self.blocks[block].buckets[bucket].into_iter().filter(|lane| !is_empty::<T>(*lane));
            held.map(move |lane| ((number << self.shift) + u64::from(T::place(lane)), T::content(lane)))
        })
    }

    /// The time of the first entry, which is in a block after `block`, with the bucket `number`.
    #[inline(never)]
    fn seek(&mut self, mut block: usize, number: u64) -> u64 {
        let last = self.blocks.len() - 1;
        let mut number = number & !(BUCKETS as u64 - 1);
        let mut words = 0;
        loop {
            block = (block + 1) & last;
            number += BUCKETS as u64;
            words += 1;
            let found = &self.blocks[block];
            if found.some != 0 {
                if words > FAR {
                    (self.far, self.alarm) = (true, 0);
                }
                let bucket = found.some.trailing_zeros();
                let place = T::place(found.buckets[bucket as usize % BUCKETS][0]);
                return ((number + u64::from(bucket)) << self.shift) + u64::from(place);
            }
        }
    }

    /// Moves the cursor to another bucket, or leaves it: misfits of the old one no longer matter.
    #[inline(always)]
    fn leave(&mut self, number: u64) {
        if T::DISTINCT {
            let (block, bucket) = self.place(self.cursor);
            self.blocks[block].shut &= !(u64::from(number != self.cursor) << bucket);
        }
        self.cursor = number;
    }

    /// The block of a bucket, and its index there.
    #[inline(always)]
    fn place(&self, number: u64) -> (usize, usize) {
        let slot = (number & self.mask) as usize;
        (slot / BUCKETS, slot % BUCKETS)
    }
}

#[inline]
fn is_empty<T: Content>(lane: T::Lane) -> bool {
    T::place(lane) == T::place(T::EMPTY)
}

/// Inserts a lane into a bucket with room, after those of the same position: without branches, which would be
/// unpredictable.
#[inline(always)]
fn insert<T: Content>(lanes: &mut [T::Lane; LANES], new: T::Lane) {
    let [first, second, third, _] = *lanes;
    let place = T::place(new);
    let (after_first, after_second, after_third) =
        (T::place(first) <= place, T::place(second) <= place, T::place(third) <= place);
    *lanes = [
        if after_first { first } else { new },
        if after_second {
            second
        } else if after_first {
            new
        } else {
            first
        },
        if after_third {
            third
        } else if after_second {
            new
        } else {
            second
        },
        if after_third { new } else { third },
    ];
}
