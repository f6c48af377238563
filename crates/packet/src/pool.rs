//! The packet pool: pages of equal slots, one size class per page, mapped at the start. The lowest empty
//! pages are used first, and a growing pool takes from the system only what is used.
//!
//! A slot is a line of [`Meta`] followed by enough lines for the bytes. Classes are exact up to 2 KiB and
//! grow in steps of at most a third above. An empty page can serve any class, so memory moves between
//! classes. Each exact class has a shelf of free slots in front of its pages: the slot freed last is taken
//! first, while it is in the cache, and pages are searched once for many packets.

mod pages;
mod probe;
mod runs;

pub use probe::{PacketEvent, Probe};
pub use runs::{Place, Run};

use crate::arena::{Arena, LINE, Line, PoolError};
use crate::class::{CLASSES, EXACT_LINES, class_of, lines_of_class};
use crate::growth::{AHEAD, Growth};
use crate::hints::prefetch_element;
use crate::shelf::{FreeSlots, LOT};
use crate::{Batch, Handle, Meta};
use runs::Chunks;
use std::ops::Range;

/// Longest frame the pool holds: a 64 KiB IP packet with Ethernet and two VLAN headers, in whole lines.
pub const MAX_FRAME: usize = 1026 * LINE;

/// The first cache line of a packet's bytes: Ethernet, IPv6 and ports, or Ethernet, IPv4 and TCP.
pub type FirstLine = [u8; LINE];

const PAGE_LINES: u32 = 4096;
const PAGE_SHIFT: u32 = 12;
const NONE: u32 = u32::MAX;

/// The state of a page: which class it serves and which of its slots are free.
#[derive(Debug, Clone, Copy)]
struct Page {
    /// First freed slot, as a line index into the arena.
    free: u32,
    /// First line of the page that was never handed out.
    fresh: u32,
    live: u32,
    class: u32,
    /// Previous and next page of this class with room.
    next: u32,
    previous: u32,
}

/// The packets of a pool, whose place in memory is looked up once, and not for each.
pub struct Packets<'p> {
    lines: &'p mut [Line],
}

impl<'p> Packets<'p> {
    /// See [`Pool::meta_mut`].
    #[inline(always)]
    pub fn meta_mut(&mut self, handle: Handle) -> &mut Meta {
        bytemuck::cast_mut(&mut self.lines[handle.0 as usize])
    }

    /// See [`Pool::head_mut`].
    #[inline(always)]
    pub fn head_mut(&mut self, handle: Handle) -> (&mut Meta, &mut FirstLine) {
        Packets { lines: self.lines }.into_head(handle)
    }

    #[inline(always)]
    fn into_head(self, handle: Handle) -> (&'p mut Meta, &'p mut FirstLine) {
        let at = handle.0 as usize;
        match &mut self.lines[at..at + 2] {
            [meta, first] => (bytemuck::cast_mut(meta), &mut first.0),
            _ => unreachable!("two lines were asked for"),
        }
    }
}

/// Bounded packet memory of one worker.
pub struct Pool {
    /// Ends before the arena's memory does.
    growth: Option<Growth>,
    arena: Arena,
    pages: Box<[Page]>,
    /// One per exact class.
    shelves: Box<[FreeSlots]>,
    /// Pages that serve no class.
    empty: Vec<u32>,
    /// By class: first page with room.
    room: [u32; CLASSES],
    class_lines: [u32; CLASSES],
    /// Lists of packets.
    runs: Chunks,
    live: u64,
    used_lines: u64,
    peak_lines: u64,
    /// Receives what happens to packets; see [`Pool::report`].
    probe: Option<Box<dyn Probe>>,
    refused: u64,
}

impl Pool {
    /// Allocates a pool of `bytes` (rounded down to whole pages of 256 KiB), all of it resident.
    ///
    /// # Errors
    /// Below 1 MiB, above 256 GiB, or more than the system gives.
    pub fn new(bytes: u64) -> Result<Self, PoolError> {
        Self::with_resident(bytes, usize::MAX)
    }

    /// Allocates a pool of `bytes` (rounded down to whole pages of 256 KiB) that becomes resident as it is
    /// used: a thread keeps 8 MiB more resident than were ever in use.
    ///
    /// # Errors
    /// Below 1 MiB, above 256 GiB, or more than the system gives.
    pub fn growing(bytes: u64) -> Result<Self, PoolError> {
        let mut pool = Self::with_resident(bytes, AHEAD)?;
        pool.growth = Some(Growth::start(&pool.arena));
        Ok(pool)
    }

    fn with_resident(bytes: u64, resident: usize) -> Result<Self, PoolError> {
        let pages = bytes / u64::from(PAGE_LINES) / LINE as u64;
        if !(4..1 << 20).contains(&pages) {
            return Err(PoolError { bytes });
        }
        let lines = pages as usize * PAGE_LINES as usize;
        let arena = Arena::new(lines, resident / LINE).ok_or(PoolError { bytes })?;
        // The shortest packet takes two lines.
        let runs = Chunks::new(lines / 2).ok_or(PoolError { bytes })?;
        let idle = Page { free: NONE, fresh: 0, live: 0, class: 0, next: NONE, previous: NONE };
        Ok(Self {
            growth: None,
            arena,
            pages: vec![idle; pages as usize].into(),
            shelves: (0..=EXACT_LINES).map(|_| FreeSlots::empty()).collect(),
            empty: (0..pages as u32).rev().collect(),
            room: [NONE; CLASSES],
            class_lines: std::array::from_fn(lines_of_class),
            runs,
            live: 0,
            used_lines: 0,
            peak_lines: 0,
            probe: None,
            refused: 0,
        })
    }

    /// Allocates a packet of `len` bytes with fresh metadata and arbitrary contents; none if the pool is full
    /// or `len` is above [`MAX_FRAME`].
    #[inline]
    pub fn alloc(&mut self, len: usize) -> Option<Handle> {
        if len > MAX_FRAME {
            return None;
        }
        let class = class_of(len);
        let index = match self.shelves.get_mut(class).and_then(FreeSlots::pop) {
            Some(index) => index,
            None => self.take(class)?,
        };
        let slot_lines = self.class_lines[class];
        self.live += 1;
        self.used_lines += u64::from(slot_lines);
        self.peak_lines = self.peak_lines.max(self.used_lines);
        *bytemuck::cast_mut::<Line, Meta>(&mut self.arena[index as usize]) =
            Meta::fresh(len as u32, slot_lines);
        Some(Handle(index))
    }

    /// Allocates up to `count` packets into a batch, limited by the room in the batch and in the pool. See
    /// [`Pool::alloc`].
    #[inline]
    pub fn alloc_batch(&mut self, len: usize, count: usize, batch: &mut Batch) {
        let mut left = count.min(batch.room());
        while left > 0 {
            // Fills the shelf, too.
            let Some(handle) = self.alloc(len) else { return };
            batch.push(handle);
            left -= 1;
            left -= self.alloc_from_shelf(len, left, batch);
        }
    }

    /// Allocates up to `count` packets from the shelf of their class into a batch, and returns how many.
    #[inline]
    fn alloc_from_shelf(&mut self, len: usize, count: usize, batch: &mut Batch) -> usize {
        let class = class_of(len);
        let Self { arena, shelves, class_lines, .. } = self;
        let Some(shelf) = shelves.get_mut(class) else { return 0 };
        let lines = class_lines[class];
        let taken = shelf.last(count);
        let count = taken.len();
        let fresh = fresh_line(len, lines);
        for &index in taken {
            arena[index as usize] = fresh;
        }
        batch.extend(taken.iter().map(|&index| Handle(index)));
        shelf.forget(count);
        self.live += count as u64;
        self.used_lines += count as u64 * u64::from(lines);
        self.peak_lines = self.peak_lines.max(self.used_lines);
        count
    }

    /// Allocates a packet with a copy of `frame`.
    #[inline]
    pub fn insert(&mut self, frame: &[u8]) -> Option<Handle> {
        let handle = self.alloc(frame.len())?;
        self.data_mut(handle).copy_from_slice(frame);
        Some(handle)
    }

    /// Duplicates a packet with its bytes and metadata.
    pub fn duplicate(&mut self, handle: Handle) -> Option<Handle> {
        let meta = *self.meta(handle);
        let twin = self.alloc(meta.len as usize)?;
        let lines = self.meta(twin).lines;
        *self.meta_mut(twin) = meta.placed(lines, meta.len);
        let (from, to) = (handle.0 as usize + 1, twin.0 as usize + 1);
        let count = (meta.len as usize).div_ceil(LINE);
        self.arena.copy_within(from..from + count, to);
        Some(twin)
    }

    /// Copies `bytes` of one packet over another's, from its byte `at` on, without a buffer between them.
    ///
    /// # Panics
    /// If either packet is too short.
    #[inline]
    pub fn copy(&mut self, from: Handle, bytes: Range<usize>, to: Handle, at: usize) {
        assert!(bytes.start <= bytes.end && bytes.end <= self.meta(from).len as usize);
        assert!(at + bytes.len() <= self.meta(to).len as usize);
        let (source, target) = ((from.0 as usize + 1) * LINE, (to.0 as usize + 1) * LINE);
        let arena = bytemuck::cast_slice_mut::<Line, u8>(&mut self.arena);
        arena.copy_within(source + bytes.start..source + bytes.end, target + at);
    }

    /// Copies metadata from a packet of the same length in another pool to a freshly allocated packet.
    pub fn adopt(&mut self, handle: Handle, from: &Meta) {
        let Meta { lines, len, .. } = *self.meta(handle);
        *self.meta_mut(handle) = from.placed(lines, len);
    }

    /// Frees a packet.
    #[inline]
    pub fn free(&mut self, handle: Handle) {
        let meta = bytemuck::cast_mut::<Line, Meta>(&mut self.arena[handle.0 as usize]);
        debug_assert_ne!(meta.lines, 0, "packet freed twice");
        let lines = std::mem::take(&mut meta.lines);
        self.live -= 1;
        self.used_lines -= u64::from(lines);
        if !self.shelves.get_mut(usize::from(lines)).is_some_and(|shelf| shelf.push(handle.0)) {
            self.put_into_page(handle.0);
        }
    }

    /// Frees all packets of a batch.
    #[inline]
    pub fn free_batch(&mut self, batch: &Batch) {
        let mut rest = batch.as_slice();
        while let Some(&first) = rest.first() {
            let count = self.shelve_alike(rest);
            if count == 0 {
                self.free(first);
            }
            rest = &rest[count.max(1)..];
        }
    }

    /// Puts the leading packets that have as many lines as the first onto their shelf while it has room, and
    /// returns how many.
    #[inline]
    fn shelve_alike(&mut self, handles: &[Handle]) -> usize {
        let Self { arena, shelves, .. } = self;
        let Some(&first) = handles.first() else { return 0 };
        let lines = meta_of(&arena[first.0 as usize]).lines;
        let Some(shelf) = shelves.get_mut(usize::from(lines)) else { return 0 };
        let mut count = 0;
        for (slot, &handle) in shelf.room().iter_mut().zip(handles) {
            let meta = bytemuck::cast_mut::<Line, Meta>(&mut arena[handle.0 as usize]);
            if meta.lines != lines {
                break;
            }
            debug_assert_ne!(lines, 0, "packet freed twice");
            meta.lines = 0;
            *slot = handle.0;
            count += 1;
        }
        shelf.keep(count);
        self.live -= count as u64;
        self.used_lines -= count as u64 * u64::from(lines);
        count
    }

    /// Takes a slot of a class that has no shelf or an empty one.
    #[cold]
    fn take(&mut self, class: usize) -> Option<u32> {
        let slot = match self.take_from_page(class) {
            Some(slot) => slot,
            // Slots on the shelves may be all that keeps a page from being empty.
            None => {
                self.clear_shelves();
                let slot = self.take_from_page(class);
                self.refused += u64::from(slot.is_none());
                slot?
            }
        };
        while class <= EXACT_LINES && self.shelves[class].len() < LOT && self.room[class] != NONE {
            let Some(more) = self.take_from_page(class) else { break };
            self.shelves[class].push(more);
        }
        Some(slot)
    }

    /// Returns the slots on all shelves to their pages.
    fn clear_shelves(&mut self) {
        for class in 0..=EXACT_LINES {
            while let Some(slot) = self.shelves[class].pop() {
                self.put_into_page(slot);
            }
        }
    }

    fn take_from_page(&mut self, class: usize) -> Option<u32> {
        let mut page = self.room[class];
        if page == NONE {
            page = self.page_for(class)?;
        }
        let slot_lines = self.class_lines[class];
        let state = &mut self.pages[page as usize];
        let index = if state.free != NONE {
            let index = state.free;
            state.free = meta_of(&self.arena[index as usize]).next;
            index
        } else {
            let index = (page << PAGE_SHIFT) + state.fresh;
            state.fresh += slot_lines;
            index
        };
        state.live += 1;
        if state.free == NONE && state.fresh + slot_lines > PAGE_LINES {
            self.unlink(page, class);
        }
        Some(index)
    }

    /// Returns a slot to its page.
    #[cold]
    fn put_into_page(&mut self, slot: u32) {
        let page = slot >> PAGE_SHIFT;
        let state = &mut self.pages[page as usize];
        let class = state.class as usize;
        let was_full = state.free == NONE && state.fresh + self.class_lines[class] > PAGE_LINES;
        bytemuck::cast_mut::<Line, Meta>(&mut self.arena[slot as usize]).next = state.free;
        state.free = slot;
        state.live -= 1;
        let vacant = state.live == 0;
        if was_full {
            self.link(page, class);
        }
        if vacant && (self.pages[page as usize].next != NONE || self.pages[page as usize].previous != NONE) {
            self.retire(page, class);
        }
    }

    /// The metadata of a packet.
    #[inline]
    pub fn meta(&self, handle: Handle) -> &Meta {
        meta_of(&self.arena[handle.0 as usize])
    }

    /// The metadata of a packet, mutable. `len` may be lowered, which truncates the packet, but only
    /// [`Pool::resize`] may raise it.
    #[inline]
    pub fn meta_mut(&mut self, handle: Handle) -> &mut Meta {
        bytemuck::cast_mut(&mut self.arena[handle.0 as usize])
    }

    /// Changes a packet's length, if its slot has room. New bytes at the end are arbitrary; the length on the
    /// wire is not changed.
    #[must_use]
    pub fn resize(&mut self, handle: Handle, len: usize) -> bool {
        let meta = self.meta_mut(handle);
        let fits = len.div_ceil(LINE) < usize::from(meta.lines);
        if fits {
            meta.len = len as u32;
        }
        fits
    }

    /// A packet's bytes, from the Ethernet header on.
    #[inline]
    pub fn data(&self, handle: Handle) -> &[u8] {
        let len = self.meta(handle).len as usize;
        let first = handle.0 as usize + 1;
        &bytemuck::cast_slice::<Line, u8>(&self.arena[first..])[..len]
    }

    /// A packet's first bytes, whatever its length: bytes beyond the end of a shorter packet are arbitrary.
    #[inline]
    pub fn first_line(&self, handle: Handle) -> &FirstLine {
        self.arena.get(handle.0 as usize + 1).map_or(&[0; LINE], |line| &line.0)
    }

    /// Metadata and the first bytes (see [`Pool::first_line`]) at once, mutable.
    ///
    /// # Panics
    /// If there is no such packet.
    #[inline]
    pub fn head_mut(&mut self, handle: Handle) -> (&mut Meta, &mut FirstLine) {
        self.packets().into_head(handle)
    }

    /// All packets, for a loop in which many are changed.
    #[inline]
    pub fn packets(&mut self) -> Packets<'_> {
        Packets { lines: &mut self.arena }
    }

    /// A packet's bytes, mutable.
    #[inline]
    pub fn data_mut(&mut self, handle: Handle) -> &mut [u8] {
        self.parts_mut(handle).1
    }

    /// Metadata and bytes at once.
    #[inline]
    pub fn parts_mut(&mut self, handle: Handle) -> (&mut Meta, &mut [u8]) {
        let (head, tail) = self.arena[handle.0 as usize..].split_at_mut(1);
        let meta: &mut Meta = bytemuck::cast_mut(&mut head[0]);
        let len = meta.len as usize;
        (meta, &mut bytemuck::cast_slice_mut::<Line, u8>(tail)[..len])
    }

    /// Index of the 64-byte line at which the packet's bytes begin, among all lines of the pool (see
    /// [`Pool::bytes_mut`]).
    #[inline]
    pub const fn line(handle: Handle) -> u32 {
        handle.0 + 1
    }

    /// All bytes of the pool, metadata included, for code that processes one packet after another.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut::<Line, u8>(&mut self.arena)
    }

    /// Packets held now.
    pub fn live(&self) -> u64 {
        self.live
    }

    /// Bytes in use now, in whole slots.
    pub fn used_bytes(&self) -> u64 {
        self.used_lines * LINE as u64
    }

    /// The most bytes ever in use.
    pub fn peak_bytes(&self) -> u64 {
        self.peak_lines * LINE as u64
    }

    /// How often a packet found no room.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Bytes of the pool.
    pub fn capacity_bytes(&self) -> u64 {
        (self.arena.len() * LINE) as u64
    }

    /// Bytes that a waiting packet of `len` bytes occupies.
    pub fn cost_of(len: usize) -> u64 {
        u64::from(lines_of_class(class_of(len.min(MAX_FRAME)))) * LINE as u64
    }

    /// Prefetches a packet's metadata and first bytes.
    #[inline]
    pub fn prefetch(&self, handle: Handle) {
        prefetch_element(&self.arena, handle.0 as usize);
        prefetch_element(&self.arena, handle.0 as usize + 1);
    }
}

/// The metadata of a new packet of `len` bytes as a line. Out of line: a compiler that knows what is in it
/// would write it field by field.
#[inline(never)]
fn fresh_line(len: usize, lines: u32) -> Line {
    bytemuck::cast(Meta::fresh(len as u32, lines))
}

#[inline]
fn meta_of(line: &Line) -> &Meta {
    bytemuck::cast_ref(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(bytes: u64) -> Pool {
        Pool::new(bytes).unwrap()
    }

    #[test]
    fn every_length_fits_its_slot_and_little_more() {
        for len in 0..=MAX_FRAME {
            let lines = lines_of_class(class_of(len)) as usize;
            assert!((lines - 1) * LINE >= len, "{len}");
            let need = 1 + len.div_ceil(LINE);
            assert!(lines * 3 <= need * 4 + 3, "{len}: {lines} lines for {need}");
        }
        assert_eq!(Pool::cost_of(64), 128);
        assert_eq!(Pool::cost_of(60), 128);
        assert_eq!(Pool::cost_of(1514), 1600);
    }

    #[test]
    fn keeps_bytes_apart_and_gives_memory_back() {
        let mut pool = pool(4 << 20);
        let mut held = Vec::new();
        for round in 0..20_000u32 {
            let len = (round as usize * 7919) % 3000 + 1;
            match pool.insert(&vec![(round % 251) as u8; len]) {
                Some(handle) => held.push((handle, (round % 251) as u8, len)),
                None => {
                    for (handle, byte, len) in held.drain(..) {
                        assert_eq!(pool.data(handle), vec![byte; len]);
                        pool.free(handle);
                    }
                }
            }
            if round % 3 == 0 && !held.is_empty() {
                let (handle, byte, len) = held.swap_remove((round as usize * 31) % held.len());
                assert_eq!(pool.data(handle), vec![byte; len]);
                pool.free(handle);
            }
        }
        for (handle, _, _) in held {
            pool.free(handle);
        }
        assert_eq!((pool.live(), pool.used_bytes()), (0, 0));
    }

    #[test]
    fn holds_as_many_small_packets_as_the_memory_allows_then_says_full() {
        let mut pool = pool(1 << 20);
        let held: Vec<_> = std::iter::from_fn(|| pool.alloc(64)).collect();
        assert_eq!((held.len(), pool.refused()), ((1 << 20) / 128, 1));
        held.iter().for_each(|&handle| pool.free(handle));
        // The pages move to another class.
        let large: Vec<_> = std::iter::from_fn(|| pool.alloc(MAX_FRAME)).collect();
        assert_eq!(large.len(), 4 * (4096 / 1027));
    }

    #[test]
    fn what_lies_on_shelves_is_not_lost() {
        let mut pool = pool(1 << 20);
        // Every page serves its own class, and its packets are only on the shelf.
        for len in [64, 128, 192, 256] {
            let handle = pool.alloc(len).unwrap();
            pool.free(handle);
        }
        let held: Vec<_> = std::iter::from_fn(|| pool.alloc(1500)).collect();
        assert_eq!(held.len(), 4 * (4096 / 25));
        assert_eq!(pool.used_bytes(), held.len() as u64 * 1600);
        held.iter().for_each(|&handle| pool.free(handle));
        assert_eq!((pool.live(), pool.used_bytes()), (0, 0));
    }

    #[test]
    fn an_empty_page_serves_other_classes() {
        const SLOTS: usize = 4096 / 25;
        let mut pool = pool(1 << 20);
        let [first, second] = [(); 2].map(|()| [(); SLOTS].map(|()| pool.alloc(1500).unwrap()));
        // The first page becomes empty before the second has room.
        pool.free(second[0]);
        first.into_iter().for_each(|handle| pool.free(handle));
        let small: Vec<_> = std::iter::from_fn(|| pool.alloc(64)).collect();
        assert_eq!(small.len(), 3 * 4096 / 2);
        small.iter().chain(&second[1..]).for_each(|&handle| pool.free(handle));
        assert_eq!((pool.live(), pool.used_bytes()), (0, 0));
    }

    #[test]
    fn copies_a_part_of_one_packet_over_another() {
        let mut pool = pool(1 << 20);
        let from = pool.insert(&[1, 2, 3, 4, 5]).unwrap();
        let to = pool.insert(&[9; 100]).unwrap();
        pool.copy(from, 1..4, to, 97);
        pool.copy(from, 0..0, to, 100);
        assert_eq!(pool.data(from), [1, 2, 3, 4, 5]);
        assert_eq!(pool.data(to)[95..], [9, 9, 2, 3, 4]);
    }

    #[test]
    fn duplicates_bytes_and_facts() {
        let mut pool = pool(1 << 20);
        let one = pool.insert(&[7; 100]).unwrap();
        pool.meta_mut(one).arrival = 42;
        let two = pool.duplicate(one).unwrap();
        pool.data_mut(one).fill(0);
        pool.free(one);
        assert_eq!(pool.data(two), [7; 100]);
        assert_eq!(pool.meta(two).arrival, 42);
        pool.free(two);
        assert_eq!(pool.live(), 0);
    }

    /// 8 MiB are resident beyond what is used, and hardly more.
    #[test]
    fn a_growing_pool_is_resident_ahead_of_its_packets() {
        const MIB: usize = 1 << 20;
        let mut pool = Pool::growing(64 << 20).unwrap();
        assert_eq!(pool.arena.resident_bytes(), AHEAD);
        let mut held = Vec::new();
        for used in (MIB..=63 * MIB).step_by(MIB) {
            while (pool.used_bytes() as usize) < used - 1600 {
                held.push(pool.insert(&[7; 1536]).unwrap());
            }
            let wanted = (used + AHEAD).min(64 * MIB);
            let mut resident = 0;
            for _ in 0..100_000 {
                resident = pool.arena.resident_bytes();
                if resident >= wanted {
                    break;
                }
                std::thread::yield_now();
            }
            assert!((wanted..=wanted + 4 * MIB).contains(&resident), "{resident} of {wanted}");
        }
        assert!(held.iter().all(|&handle| pool.data(handle) == [7; 1536]));
        let mut small = Pool::growing(1 << 20).unwrap();
        assert!(small.arena.resident_bytes() == MIB && small.insert(&[1; 60]).is_some());
    }

    #[test]
    fn refuses_what_it_cannot_hold() {
        assert!(Pool::new(1000).is_err());
        assert!(pool(1 << 20).alloc(MAX_FRAME + 1).is_none());
    }
}
