//! The four rings of a socket, shared with the kernel: one side produces and the other consumes.

use crate::system::MappedMemory;
use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// A mapped ring of `T`. A ring uses either the producing or the consuming methods.
pub(super) struct Ring<T> {
    _memory: MappedMemory,
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    flags: NonNull<AtomicU32>,
    slots: NonNull<T>,
    mask: u32,
    /// Our index, ahead of the published one.
    own: u32,
    /// The kernel's index when it was last read, so that its cache line is read only when needed.
    seen: u32,
}

// SAFETY: the mapping does not move, and this end of the ring is used through one `Ring` only.
unsafe impl<T: Send> Send for Ring<T> {}

impl<T: Copy> Ring<T> {
    /// Maps the ring of `fd` at page offset `page`, of `size` slots (a power of two).
    pub(super) fn map(
        fd: BorrowedFd<'_>,
        page: i64,
        offsets: &libc::xdp_ring_offset,
        size: u32,
    ) -> io::Result<Self> {
        let bytes = offsets.desc as usize + size as usize * size_of::<T>();
        let memory = MappedMemory::map(Some(fd), page, bytes)?;
        let base = memory.start();
        // SAFETY: the kernel's offsets are inside the mapping and aligned for their contents.
        let index = |offset: u64| unsafe { base.add(offset as usize).cast::<AtomicU32>() };
        Ok(Self {
            _memory: memory,
            producer: index(offsets.producer),
            consumer: index(offsets.consumer),
            flags: index(offsets.flags),
            slots: index(offsets.desc).cast(),
            mask: size - 1,
            own: 0,
            seen: 0,
        })
    }

    /// Whether the kernel needs a system call to continue.
    pub(super) fn wants_wakeup(&self) -> bool {
        self.load(self.flags, Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }

    /// Producer: number of free slots, read from the kernel only if fewer than `wanted` are known.
    pub(super) fn room(&mut self, wanted: u32) -> u32 {
        let size = self.mask + 1;
        let known = size - self.own.wrapping_sub(self.seen);
        if known >= wanted {
            return known;
        }
        self.seen = self.load(self.consumer, Ordering::Acquire);
        size - self.own.wrapping_sub(self.seen)
    }

    /// Producer: fills the next slot, of those found by [`Ring::room`].
    pub(super) fn put(&mut self, value: T) {
        // SAFETY: the masked index is inside the ring, and the slot is ours until published.
        unsafe { self.slots.add((self.own & self.mask) as usize).write(value) };
        self.own = self.own.wrapping_add(1);
    }

    /// Producer: publishes filled slots.
    pub(super) fn publish_filled(&self) {
        self.store(self.producer);
    }

    /// Producer: position after the last filled slot; positions wrap at 2³².
    pub(super) fn end(&self) -> u32 {
        self.own
    }

    /// Producer: position up to which the kernel has taken slots.
    pub(super) fn taken(&mut self) -> u32 {
        self.seen = self.load(self.consumer, Ordering::Acquire);
        self.seen
    }

    /// Consumer: number of filled slots, read from the kernel only if fewer than `wanted` are known.
    pub(super) fn filled(&mut self, wanted: u32) -> u32 {
        let known = self.seen.wrapping_sub(self.own);
        if known >= wanted {
            return known;
        }
        self.seen = self.load(self.producer, Ordering::Acquire);
        self.seen.wrapping_sub(self.own)
    }

    /// Consumer: the contents of a slot ahead of the next, of those found by [`Ring::filled`].
    pub(super) fn ahead(&self, places: u32) -> T {
        self.slot(self.own.wrapping_add(places))
    }

    /// Consumer: takes the next slot, of those found by [`Ring::filled`].
    pub(super) fn take(&mut self) -> T {
        let value = self.slot(self.own);
        self.own = self.own.wrapping_add(1);
        value
    }

    /// Consumer: returns taken slots to the kernel.
    pub(super) fn publish_taken(&self) {
        self.store(self.consumer);
    }

    fn slot(&self, index: u32) -> T {
        // SAFETY: the masked index is inside the ring; the other side does not write our slots.
        unsafe { self.slots.add((index & self.mask) as usize).read() }
    }

    fn load(&self, index: NonNull<AtomicU32>, ordering: Ordering) -> u32 {
        // SAFETY: it points into the mapping, which lives as long as `self`.
        unsafe { index.as_ref() }.load(ordering)
    }

    fn store(&self, index: NonNull<AtomicU32>) {
        // SAFETY: it points into the mapping, which lives as long as `self`.
        unsafe { index.as_ref() }.store(self.own, Ordering::Release);
    }
}
