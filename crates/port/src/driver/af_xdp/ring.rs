//! The four rings of a socket, shared with the kernel: one side produces, the other consumes, with an index
//! each.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// A mapped ring of `T`; which end is ours, the methods called say.
pub(super) struct Ring<T> {
    base: NonNull<u8>,
    bytes: usize,
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    flags: NonNull<AtomicU32>,
    slots: NonNull<T>,
    mask: u32,
    /// Our own index, ahead of the one that the kernel sees until we publish it.
    own: u32,
    /// The kernel's index as we last saw it, so that its cache line is read only when needed.
    seen: u32,
}

// SAFETY: the mapping stays where it is, and this end of the ring is used through one `Ring` only.
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
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        // SAFETY: a new mapping overlaps nothing; the kernel made the ring of at least this size.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                flags,
                fd.as_raw_fd(),
                page,
            )
        };
        let base = match NonNull::new(base.cast::<u8>()) {
            Some(base) if base.as_ptr().cast() != libc::MAP_FAILED => base,
            _ => return Err(io::Error::last_os_error()),
        };
        // SAFETY: the kernel's offsets lie inside the mapping, and are aligned for what stands there.
        let index = |offset: u64| unsafe { base.add(offset as usize).cast::<AtomicU32>() };
        Ok(Self {
            base,
            bytes,
            producer: index(offsets.producer),
            consumer: index(offsets.consumer),
            flags: index(offsets.flags),
            slots: index(offsets.desc).cast(),
            mask: size - 1,
            own: 0,
            seen: 0,
        })
    }

    /// Whether the kernel wants a system call to go on.
    pub(super) fn wants_wakeup(&self) -> bool {
        self.load(self.flags, Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }

    /// Producing: slots that can be filled, looked up only if fewer than `wanted` are known.
    pub(super) fn room(&mut self, wanted: u32) -> u32 {
        let size = self.mask + 1;
        let known = size - self.own.wrapping_sub(self.seen);
        if known >= wanted {
            return known;
        }
        self.seen = self.load(self.consumer, Ordering::Acquire);
        size - self.own.wrapping_sub(self.seen)
    }

    /// Producing: fills the next slot. Only after [`Ring::room`] has said there is one.
    pub(super) fn put(&mut self, value: T) {
        // SAFETY: the masked index is inside the ring, and the slot is ours until published.
        unsafe { self.slots.add((self.own & self.mask) as usize).write(value) };
        self.own = self.own.wrapping_add(1);
    }

    /// Producing: shows the kernel what was filled.
    pub(super) fn publish_filled(&self) {
        self.store(self.producer);
    }

    /// Producing: the place after the last slot filled; places count on and on, and wrap at 2³².
    pub(super) fn end(&self) -> u32 {
        self.own
    }

    /// Producing: the place up to which the kernel says it has taken the slots.
    pub(super) fn taken(&mut self) -> u32 {
        self.seen = self.load(self.consumer, Ordering::Acquire);
        self.seen
    }

    /// Consuming: slots that are filled, looked up only if fewer than `wanted` are known.
    pub(super) fn filled(&mut self, wanted: u32) -> u32 {
        let known = self.seen.wrapping_sub(self.own);
        if known >= wanted {
            return known;
        }
        self.seen = self.load(self.producer, Ordering::Acquire);
        self.seen.wrapping_sub(self.own)
    }

    /// Consuming: what is in the slot so many places after the next. Only after [`Ring::filled`] has said
    /// there is one.
    pub(super) fn ahead(&self, places: u32) -> T {
        self.slot(self.own.wrapping_add(places))
    }

    /// Consuming: takes the next slot. Only after [`Ring::filled`] has said there is one.
    pub(super) fn take(&mut self) -> T {
        let value = self.slot(self.own);
        self.own = self.own.wrapping_add(1);
        value
    }

    /// Consuming: gives the slots taken back to the kernel.
    pub(super) fn publish_taken(&self) {
        self.store(self.consumer);
    }

    fn slot(&self, index: u32) -> T {
        // SAFETY: the masked index is inside the ring; the other side does not write a slot that is not its
        // own.
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

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and nothing refers to it any more.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}
