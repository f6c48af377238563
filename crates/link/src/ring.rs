//! A calendar of short days: buckets of a few times each, in a ring that goes round with time (Brown, "Calendar queues: a fast O(1)
//! priority queue implementation for the simulation event set problem", 1988).

use crate::entry::Entry;
use longwire_packet::Handle;
use std::collections::BinaryHeap;
use std::fmt;

/// What an entry is about, and how it lies in a bucket with its place there in 2^[`MAX_SHIFT`] ns: ordered by that place.
pub(crate) trait What: Copy + fmt::Debug {
    type Lane: Copy + fmt::Debug;
    const EMPTY: Self::Lane;
    /// Whether entries of the same time can be told apart, so that their order matters.
    const DISTINCT: bool;
    fn lane(self, place: u32) -> Self::Lane;
    /// More than any place if the lane is empty.
    fn place(lane: Self::Lane) -> u32;
    fn what(lane: Self::Lane) -> Self;
}

impl What for () {
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
    fn what(_: u32) {}
}

impl What for Handle {
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
    fn what(lane: u64) -> Self {
        Self(lane as u32)
    }
}

/// A ring of more blocks than these is given back when it is empty.
const LARGE: usize = 8;

/// Entries of a bucket.
const LANES: usize = 4;

/// A bucket is at most 2³¹ ns long.
const MAX_SHIFT: u32 = 31;

/// Which bucket is looked at ahead.
const AHEAD: u64 = 3;

/// So many blocks are a long way.
const FAR: usize = 8;

/// Buckets of 2^`shift` ns, that of a time being its number modulo how many there are.
#[derive(Debug)]
pub(crate) struct Ring<T: What> {
    first: u64,
    shift: u32,
    held: usize,
    /// One less than there are buckets.
    mask: u64,
    /// The number of the bucket from which the last entry was taken. All entries are in buckets from this one on, less than once around.
    cursor: u64,
    /// At which cursor [`Ring::recall`] and [`Ring::is_sparse`] have something to say.
    alarm: u64,
    blocks: Box<[Block<T::Lane>]>,
    /// What is once around or more from the cursor.
    pub(crate) beyond: BinaryHeap<Entry<T>>,
    /// What did not fit since the cursor was at `mark`, and how many of that are too many.
    misfits: usize,
    bearable: usize,
    mark: u64,
    /// For how many entries it was made.
    made_for: usize,
    /// Whether the next entry was far to seek.
    far: bool,
}

/// Buckets of a block: one to a bit.
const BUCKETS: usize = 64;

#[derive(Debug, Clone)]
struct Block<L> {
    /// Buckets that hold anything.
    some: u64,
    /// Those that something did not fit into, until the cursor has left them: what comes later must not come before it.
    shut: u64,
    /// In ascending order, equal times as they were added.
    buckets: [[L; LANES]; BUCKETS],
}

impl<T: What> Ring<T> {
    /// A ring for entries like these, in order, in place of `old`: about one to a bucket, and farther than all but the last eighth of
    /// them reach.
    pub(crate) fn new(all: &[(u64, T)], old: Option<&Self>) -> Self {
        let first = all.first().map_or(0, |entry| entry.0);
        let reach = all.get(all.len() * 7 / 8).map_or(0, |entry| entry.0) - first;
        // Between 0.7 and 1.4 of what is between two entries.
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

    /// The earliest time; the end of time if there is none.
    #[inline]
    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.held == 0
    }

    /// What may come a little after the first.
    #[inline]
    pub(crate) fn soon(&self) -> Option<T> {
        let (block, bucket) = self.place((self.first >> self.shift).wrapping_add(AHEAD));
        self.blocks.get(block).map(|block| T::what(block.buckets[bucket][0]))
    }

    /// Adds an entry if it fits.
    #[inline(always)]
    pub(crate) fn push(&mut self, time: u64, what: T) -> bool {
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
        insert::<T>(lanes, what.lane((time - (number << self.shift)) as u32));
        block.some |= 1 << bucket;
        self.held += 1;
        self.first = self.first.min(time);
        true
    }

    /// Takes the earliest entry, which there is. Whether to call [`Ring::recall`] and [`Ring::is_sparse`] then.
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
            return (T::what(lane), true);
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
        (T::what(lane), number >= self.alarm)
    }

    /// Takes something that did not fit as it was too late, and is so no longer, or is the first that there is.
    pub(crate) fn recall(&mut self) -> Option<Entry<T>> {
        let number = self.beyond.peek()?.time >> self.shift;
        if self.held > 0 && number - self.cursor > self.mask {
            self.alarm = number - self.mask;
            return None;
        }
        self.beyond.pop()
    }

    /// Turns the ring, in which nothing is, so that it has room before and behind a time; back if it is `alone`, as all is gone that ever
    /// did not fit.
    pub(crate) fn turn(&mut self, time: u64, alone: bool) {
        let cursor = (time >> self.shift).saturating_sub(self.mask / 2);
        self.leave(if alone { cursor } else { cursor.max(self.cursor) });
        (self.mark, self.misfits) = (self.cursor, 0);
    }

    /// Keeps an entry that did not fit, if that is as it is too late. Other entries at its time go where it goes.
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

    /// What did not fit of the entries that it was made for is no matter.
    pub(crate) fn settle(&mut self) {
        self.misfits = 0;
    }

    /// Whether so much did not fit that a ring of other buckets should be tried for the `len` entries that there are.
    pub(crate) fn is_strained(&mut self, len: usize) -> bool {
        if self.misfits < self.bearable {
            return false;
        }
        // One in ten, or there are many more than there were.
        let strained =
            self.misfits as u64 > self.cursor.saturating_sub(self.mark) / 10 || len > 2 * self.made_for;
        (self.mark, self.misfits) = (self.cursor, 0);
        strained
    }

    /// Whether it was noticed that the `len` entries that there are lie far apart, as they have become few.
    pub(crate) fn is_sparse(&mut self, len: usize) -> bool {
        if self.beyond.is_empty() {
            self.alarm = u64::MAX;
        }
        std::mem::take(&mut self.far) && 8 * len < self.made_for
    }

    /// Whether nothing is in it, and it takes much memory.
    pub(crate) fn is_idle(&self) -> bool {
        self.held == 0 && self.beyond.is_empty() && self.blocks.len() > LARGE
    }

    /// All entries in the ring, earliest first.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (u64, T)> {
        (0..=self.mask).flat_map(move |round| {
            let number = self.cursor.wrapping_add(round);
            let (block, bucket) = self.place(number);
            let held = self.blocks[block].buckets[bucket].into_iter().filter(|lane| !is_empty::<T>(*lane));
            held.map(move |lane| ((number << self.shift) + u64::from(T::place(lane)), T::what(lane)))
        })
    }

    /// The time of the first entry, which is in a block after `block`, where the bucket `number` is.
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

    /// The cursor goes to another bucket, or stays: if something did not fit where it was, that does not matter any more.
    #[inline(always)]
    fn leave(&mut self, number: u64) {
        if T::DISTINCT {
            let (block, bucket) = self.place(self.cursor);
            self.blocks[block].shut &= !(u64::from(number != self.cursor) << bucket);
        }
        self.cursor = number;
    }

    /// The block and the place there of a bucket.
    #[inline(always)]
    fn place(&self, number: u64) -> (usize, usize) {
        let slot = (number & self.mask) as usize;
        (slot / BUCKETS, slot % BUCKETS)
    }
}

#[inline]
fn is_empty<T: What>(lane: T::Lane) -> bool {
    T::place(lane) == T::place(T::EMPTY)
}

/// Adds a lane to a bucket that has room, behind those of the same place: without jumps, which nobody could guess.
#[inline(always)]
fn insert<T: What>(lanes: &mut [T::Lane; LANES], new: T::Lane) {
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
