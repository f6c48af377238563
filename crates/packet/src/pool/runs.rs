//! Lists of packets with lookahead: handles in chunks of a cache line.
//!
//! In a list linked through the packets, each packet must be loaded before the next is known. In a run the
//! handles are adjacent, so the next packets can be prefetched together. The first handle is stored in the
//! run itself: a run of one packet needs no chunk.

use crate::hints::{prefetch, try_huge_vec};
use crate::{Handle, Meta, Pool};

/// Handles of a chunk.
const HANDLES: usize = 15;
/// Index behind the last handle of a chunk, where the number of the next chunk is stored.
const END: u32 = HANDLES as u32;
const NONE: u32 = u32::MAX;
/// Prefetch distance in packets.
const AHEAD: usize = 4;

/// A list of packets, in order. A packet is in at most one list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    first: Handle,
    /// Chunk and index of the second handle, and of the next free place; both are none if there is no second.
    head: u32,
    tail: u32,
}

/// Position of a packet in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place(u32);

impl Place {
    /// Position of the first packet of any run.
    pub const FIRST: Self = Self(NONE);
}

impl Run {
    /// No packets.
    pub const EMPTY: Self = Self { first: Handle::NONE, head: NONE, tail: NONE };

    /// One packet.
    #[inline]
    pub fn of(first: Handle) -> Self {
        Self { first, head: NONE, tail: NONE }
    }

    /// The first packet.
    #[inline]
    pub fn first(&self) -> Option<Handle> {
        if self.first.is_none() { None } else { Some(self.first) }
    }

    /// The first packet of a run that is not empty.
    #[inline]
    pub fn first_known(&self) -> Handle {
        self.first
    }

    /// Whether there are no packets.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }
}

/// The chunks of all runs of a pool's packets. A chunk has handles and the number of the next chunk, of its
/// run or of the free list.
pub(crate) struct Chunks {
    chunks: Vec<Chunk>,
    free: u32,
}

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Chunk([u32; HANDLES + 1]);

impl Chunks {
    /// Enough chunks for `packets` in any distribution: a run of three can need two chunks, with one place
    /// used in each. None if the system refuses the memory.
    pub fn new(packets: usize) -> Option<Self> {
        let chunks = try_huge_vec(2 * packets / 3 + packets / HANDLES + 1)?;
        Some(Self { chunks, free: NONE })
    }

    /// Adds a chunk to a run.
    #[inline(never)]
    fn extend(&mut self, run: &mut Run) {
        let fresh = self.alloc();
        if run.tail == NONE {
            run.head = fresh << 4;
        } else {
            self.chunks[(run.tail >> 4) as usize].0[HANDLES] = fresh;
        }
        run.tail = fresh << 4;
    }

    fn alloc(&mut self) -> u32 {
        match self.chunks.get(self.free as usize) {
            Some(chunk) => std::mem::replace(&mut self.free, chunk.0[HANDLES]),
            None => {
                self.chunks.push(Chunk([NONE; HANDLES + 1]));
                self.chunks.len() as u32 - 1
            }
        }
    }

    /// Frees the first chunk of a run, which is no longer needed.
    #[inline(never)]
    fn shorten(&mut self, run: &mut Run) {
        let (number, next) = (run.head >> 4, self.at(run.head | END));
        (run.head, run.tail) = if run.head == run.tail { (NONE, NONE) } else { (next << 4, run.tail) };
        self.give(number);
    }

    #[inline]
    fn give(&mut self, number: u32) {
        self.chunks[number as usize].0[HANDLES] = std::mem::replace(&mut self.free, number);
    }

    #[inline]
    fn at(&self, place: u32) -> u32 {
        self.chunks[(place >> 4) as usize].0[(place & END) as usize]
    }
}

impl Pool {
    /// Adds a packet at the end of a run.
    #[inline(always)]
    pub fn push(&mut self, run: &mut Run, handle: Handle) {
        if run.is_empty() {
            *run = Run::of(handle);
        } else {
            self.append(run, handle);
        }
    }

    /// Adds a packet at the end of a run that is not empty, and returns its position.
    #[inline(always)]
    pub fn append(&mut self, run: &mut Run, handle: Handle) -> Place {
        if run.tail & END == END {
            self.runs.extend(run);
        }
        let place = run.tail;
        if let Some(chunk) = self.runs.chunks.get_mut((place >> 4) as usize) {
            chunk.0[(place & END) as usize] = handle.0;
        }
        run.tail = place + 1;
        Place(place)
    }

    /// Takes the first packet of a run.
    #[inline]
    pub fn pop(&mut self, run: &mut Run) -> Option<Handle> {
        let first = run.first()?;
        run.first = self.pop_second(run).unwrap_or(Handle::NONE);
        Some(first)
    }

    /// Takes the second packet of a run, which becomes its first.
    #[inline(always)]
    fn pop_second(&mut self, run: &mut Run) -> Option<Handle> {
        let chunk = self.runs.chunks.get((run.head >> 4) as usize)?;
        let place = (run.head & END) as usize;
        let second = Handle(chunk.0[place]);
        // Entries behind the last are stale, and a prefetch of them is harmless.
        match chunk.0[..HANDLES].get(place + AHEAD) {
            Some(&ahead) => self.prefetch(Handle(ahead)),
            None => self.prefetch_behind(chunk.0[HANDLES], place + AHEAD - HANDLES),
        }
        run.head += 1;
        if run.head == run.tail || run.head & END == END {
            self.runs.shorten(run);
        }
        Some(second)
    }

    /// Takes the first packet of a run that is not empty, with the metadata of the packet behind it.
    #[inline(always)]
    pub fn pop_known(&mut self, run: &mut Run) -> (Handle, Option<&Meta>) {
        let first = run.first;
        match self.pop_second(run) {
            Some(second) => {
                run.first = second;
                (first, Some(self.meta(second)))
            }
            None => {
                run.first = Handle::NONE;
                (first, None)
            }
        }
    }

    /// Prefetches a packet of the run's next chunk, and the chunk after that.
    #[inline(never)]
    fn prefetch_behind(&self, next: u32, place: usize) {
        if let Some(chunk) = self.runs.chunks.get(next as usize) {
            self.prefetch(Handle(chunk.0[place]));
            if let Some(after) = self.runs.chunks.get(chunk.0[HANDLES] as usize) {
                prefetch(after);
            }
        }
    }

    /// The packet at a position of a run.
    #[inline]
    pub fn at(&self, run: &Run, place: Place) -> Handle {
        if place == Place::FIRST { run.first } else { Handle(self.runs.at(place.0)) }
    }

    /// The position after another; none if that is the last.
    #[inline]
    pub fn after(&self, run: &Run, place: Place) -> Option<Place> {
        let next = if place == Place::FIRST { run.head } else { place.0 + 1 };
        if next == run.tail {
            return None;
        }
        Some(Place(if next & END == END { self.runs.at(next) << 4 } else { next }))
    }

    /// The packets of a run, in order.
    pub fn each<'p>(&'p self, run: &'p Run) -> impl Iterator<Item = Handle> + use<'p> {
        let mut place = (!run.is_empty()).then_some(Place::FIRST);
        std::iter::from_fn(move || {
            let here = place?;
            place = self.after(run, here);
            Some(self.at(run, here))
        })
    }

    /// The last packet of a run.
    pub fn last_of(&self, run: &Run) -> Option<Handle> {
        if run.tail == NONE { run.first() } else { Some(Handle(self.runs.at(run.tail - 1))) }
    }

    /// Removes the packet at a position of a run and all behind it; each is passed to `out`.
    pub fn split_off(&mut self, run: &mut Run, place: Place, mut out: impl FnMut(&mut Self, Handle)) {
        if place == Place::FIRST {
            while let Some(handle) = self.pop(run) {
                out(self, handle);
            }
            return;
        }
        let mut rest = Run::of(self.at(run, place));
        let mut behind = self.after(run, place);
        while let Some(here) = behind {
            let handle = self.at(run, here);
            self.push(&mut rest, handle);
            behind = self.after(run, here);
        }
        self.cut(run, place.0);
        while let Some(handle) = self.pop(&mut rest) {
            out(self, handle);
        }
    }

    /// Truncates a run at a position behind the first.
    fn cut(&mut self, run: &mut Run, place: u32) {
        let last = (run.tail - 1) >> 4;
        run.tail = place;
        let mut chunk = run.head >> 4;
        let mut kept = run.head != place;
        loop {
            let next = self.runs.at(chunk << 4 | END);
            let ends = chunk == last;
            if !kept {
                self.runs.give(chunk);
            } else if chunk == place >> 4 {
                kept = false;
            } else if next == place >> 4 && place & END == 0 {
                // The chunk of the position is now empty.
                (kept, run.tail) = (false, chunk << 4 | END);
            }
            if ends {
                break;
            }
            chunk = next;
        }
        if run.head == place {
            (run.head, run.tail) = (NONE, NONE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    #[test]
    fn more_chunks_than_the_system_gives_are_refused() {
        assert!(Chunks::new(1 << 56).is_none());
    }

    /// Compares runs with a simple list over random pushes, pops and splits; no chunk is leaked.
    #[test]
    fn a_run_is_a_list() {
        let mut pool = Pool::new(1 << 20).unwrap();
        let (mut runs, mut lists) = ([Run::EMPTY; 3], [const { VecDeque::<u32>::new() }; 3]);
        let (mut state, mut number) = (1u64, 0);
        for _ in 0..200_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let which = (state >> 33) as usize % 3;
            let (run, list) = (&mut runs[which], &mut lists[which]);
            match (state >> 40) % 64 {
                0..=31 if list.len() < 100 => {
                    number += 1;
                    match run.is_empty() {
                        true => pool.push(run, Handle(number)),
                        false => {
                            let place = pool.append(run, Handle(number));
                            assert_eq!(pool.at(run, place), Handle(number));
                        }
                    }
                    list.push_back(number);
                }
                32 => {
                    let from = (state >> 50) as usize % (list.len() + 1);
                    let Some(mut place) = (from < list.len()).then_some(Place::FIRST) else { continue };
                    for _ in 0..from {
                        place = pool.after(run, place).unwrap();
                    }
                    let mut taken = VecDeque::new();
                    pool.split_off(run, place, |_, handle| taken.push_back(handle.0));
                    assert_eq!(taken, list.split_off(from));
                }
                _ => assert_eq!(pool.pop(run).map(|handle| handle.0), list.pop_front()),
            }
            assert_eq!(run.first().map(|handle| handle.0), list.front().copied());
            assert_eq!(pool.last_of(run).map(|handle| handle.0), list.back().copied());
        }
        for (run, list) in runs.iter_mut().zip(&mut lists) {
            assert!(pool.each(run).map(|handle| handle.0).eq(list.drain(..)));
            while pool.pop(run).is_some() {}
        }
        let mut free = 0;
        let mut at = pool.runs.free;
        while let Some(chunk) = pool.runs.chunks.get(at as usize) {
            (free, at) = (free + 1, chunk.0[HANDLES]);
        }
        assert_eq!(free, pool.runs.chunks.len());
    }
}
