//! The memory shared by the kernel and all AF_XDP ports of a worker.

use crate::system::MappedMemory;
use std::io;

/// Bytes of a frame, and of a memory page: native XDP needs a frame to be in one page.
pub(super) const FRAME: usize = 4096;

/// Consecutive frames. Each belongs to one port permanently, so that ports share only the mapping.
pub(super) struct Umem(MappedMemory);

/// The part of a [`Umem`] that belongs to one pair of rings.
pub(super) struct Frames {
    /// Address of the first frame, from the start of the memory.
    pub(super) first: u64,
    /// Number of frames.
    pub(super) count: u32,
}

// SAFETY: the mapping is plain memory that does not move; `Frames` divides it among users: threads use
// different frames.
unsafe impl Sync for Umem {}

impl Umem {
    /// Maps memory for this number of frames, and touches it.
    pub(super) fn new(frames: usize) -> io::Result<Self> {
        MappedMemory::map(None, 0, frames * FRAME).map(Self)
    }

    pub(super) fn address(&self) -> u64 {
        self.0.start().as_ptr().expose_provenance() as u64
    }

    pub(super) fn len(&self) -> u64 {
        self.0.bytes() as u64
    }

    /// The `len` bytes at `at`; none if they are not all in the memory.
    ///
    /// # Safety
    /// The bytes are in a frame of the caller that the kernel does not hold.
    pub(super) unsafe fn bytes(&self, at: u64, len: usize) -> Option<&[u8]> {
        self.contains(at, len).then(|| {
            // SAFETY: inside the mapping, and the caller ensures that nobody writes there.
            unsafe { std::slice::from_raw_parts(self.0.start().as_ptr().add(at as usize), len) }
        })
    }

    /// Copies `data` to `at`; false if it does not fit there.
    ///
    /// # Safety
    /// `at` is in a frame of the caller that the kernel does not hold.
    pub(super) unsafe fn write(&self, at: u64, data: &[u8]) -> bool {
        let fits = self.contains(at, data.len());
        if fits {
            // SAFETY: inside the mapping, and the caller ensures that nobody else accesses it.
            unsafe {
                let place = self.0.start().as_ptr().add(at as usize);
                std::ptr::copy_nonoverlapping(data.as_ptr(), place, data.len());
            };
        }
        fits
    }

    fn contains(&self, at: u64, len: usize) -> bool {
        at.checked_add(len as u64).is_some_and(|end| end <= self.len())
    }
}
