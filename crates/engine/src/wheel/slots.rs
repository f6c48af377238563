//! The slots of the timing wheel. A slot's entries are in chunks of an array allocated at the start, so they
//! are contiguous.

use super::{Entry, LOW_BITS, SLOTS};
use longwire_packet::{huge_vec, prefetch};
use longwire_units::Nanos;
use std::ops::Range;

/// Words of 64 slots of the lowest level.
const LOW_WORDS: usize = 1 << (LOW_BITS - 6);
const CHUNK: usize = 15;
const NONE: u32 = u32::MAX;

/// Entries of one slot; full chunks are chained. The first ones share a cache line with their number.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Chunk {
    len: u32,
    next: u32,
    entries: [Entry; CHUNK],
}

const VACANT: Chunk = Chunk { len: 0, next: NONE, entries: [Entry { time: Nanos::ZERO, link: 0 }; CHUNK] };

/// Entries by slot, in no order.
#[derive(Debug)]
pub(super) struct Slots {
    chunks: Vec<Chunk>,
    free: u32,
    /// First chunk of each slot, the lowest level's first.
    first: Box<[u32; SLOTS]>,
    /// Occupied slots, a bit each, and for the lowest level the words of these bits that are not zero.
    occupied: Box<[u64; SLOTS / 64]>,
    low_words: [u64; LOW_WORDS / 64],
}

/// Chunks for `capacity` entries in any distribution: each occupied slot wastes less than one.
fn chunks_for(capacity: usize) -> usize {
    capacity / CHUNK + 1 + SLOTS.min(capacity)
}

impl Chunk {
    #[inline]
    pub fn entries(&self) -> &[Entry] {
        &self.entries[..self.len as usize]
    }
}

impl Slots {
    /// Empty slots for `capacity` entries.
    pub fn new(capacity: usize) -> Self {
        let count = chunks_for(capacity);
        let mut chunks = huge_vec(count);
        chunks.resize(count, VACANT);
        for (index, chunk) in chunks.iter_mut().enumerate() {
            chunk.next = if index + 1 < count { index as u32 + 1 } else { NONE };
        }
        Self {
            chunks,
            free: 0,
            first: Box::new([NONE; SLOTS]),
            occupied: Box::new([0; SLOTS / 64]),
            low_words: [0; LOW_WORDS / 64],
        }
    }

    /// Bytes beside the record for `capacity` entries.
    pub fn bytes(capacity: usize) -> usize {
        size_of::<[u32; SLOTS]>() + size_of::<[u64; SLOTS / 64]>() + chunks_for(capacity) * size_of::<Chunk>()
    }

    #[inline]
    pub fn is_empty(&self, slot: usize) -> bool {
        self.first[slot] == NONE
    }

    #[inline(always)]
    pub fn add(&mut self, slot: usize, entry: Entry) {
        if let Some(chunk) = self.chunks.get_mut(self.first[slot] as usize)
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
        let (first, fresh) = (self.first[slot], self.free);
        if first == NONE {
            self.occupy(slot);
        }
        let chunk = &mut self.chunks[fresh as usize];
        self.free = chunk.next;
        (chunk.entries[0], chunk.len, chunk.next) = (entry, 1, first);
        self.first[slot] = fresh;
    }

    /// Removes an entry from a slot. Returns false if it is not there.
    pub fn remove(&mut self, slot: usize, entry: Entry) -> bool {
        let mut at = self.first[slot];
        while let Some(chunk) = self.chunks.get(at as usize) {
            if let Some(index) = chunk.entries().iter().position(|held| *held == entry) {
                let mut last = entry;
                self.take_last(slot, 1, |_, taken| last = taken);
                if last != entry {
                    self.chunks[at as usize].entries[index] = last;
                }
                return true;
            }
            at = chunk.next;
        }
        false
    }

    /// Prefetches the first entries of a slot.
    #[inline]
    pub fn prefetch(&self, slot: usize) {
        if let Some(chunk) = self.first.get(slot).and_then(|&first| self.chunks.get(first as usize)) {
            prefetch(chunk);
            prefetch(&chunk.entries[CHUNK / 3]);
        }
    }

    /// Takes the last entries, at most so many, of the first chunk of a slot that is not empty. Each goes to
    /// `out` with its index among those taken. Returns how many.
    #[inline]
    pub fn take_last(&mut self, slot: usize, most: usize, mut out: impl FnMut(usize, Entry)) -> usize {
        let first = self.first[slot];
        let chunk = &mut self.chunks[first as usize];
        let left = (chunk.len as usize).saturating_sub(most);
        let taken = &chunk.entries[left..chunk.len as usize];
        taken.iter().enumerate().for_each(|(at, entry)| out(at, *entry));
        let count = taken.len();
        chunk.len = left as u32;
        if left == 0 {
            self.first[slot] = self.release(first);
            if self.first[slot] == NONE {
                self.vacate(slot);
            }
        }
        count
    }

    /// Empties a slot, and returns its first chunk.
    pub fn detach(&mut self, slot: usize) -> u32 {
        self.vacate(slot);
        std::mem::replace(&mut self.first[slot], NONE)
    }

    /// A detached chunk; none behind the last.
    pub fn chunk(&self, at: u32) -> Option<Chunk> {
        self.chunks.get(at as usize).copied()
    }

    /// The entries of a detached chunk; none behind the last.
    pub fn entries(&self, at: u32) -> Option<&[Entry]> {
        self.chunks.get(at as usize).map(Chunk::entries)
    }

    /// Frees a chunk and returns the one after it.
    pub fn release(&mut self, at: u32) -> u32 {
        let chunk = &mut self.chunks[at as usize];
        let next = std::mem::replace(&mut chunk.next, self.free);
        self.free = at;
        next
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

    /// The first occupied slot of the lowest level from `now` on; behind the last comes slot 0.
    pub fn next_low(&self, now: usize) -> Option<usize> {
        if let Some(slot) = first_from(&self.occupied[now / 64..now / 64 + 1], now % 64) {
            return Some(now / 64 * 64 + slot);
        }
        let word = first_from(&self.low_words, now / 64 + 1).or_else(|| first_from(&self.low_words, 0))?;
        Some(word * 64 + self.occupied[word].trailing_zeros() as usize)
    }

    /// The first occupied slot of these, which end with a word.
    pub fn next_in(&self, slots: Range<usize>) -> Option<usize> {
        first_from(&self.occupied[..slots.end / 64], slots.start)
    }
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
