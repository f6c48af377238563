//! The memory shared by the kernel and all AF_XDP ports of a worker.

use std::io;
use std::ptr::NonNull;

/// Bytes of a frame, and of a memory page: native XDP needs a frame to be in one page.
pub(super) const FRAME: usize = 4096;

/// Consecutive frames. Each belongs to one port permanently, so that ports share only the mapping.
pub(super) struct Umem {
    base: NonNull<u8>,
    bytes: usize,
}

/// The part of a [`Umem`] that belongs to one pair of rings.
pub(super) struct Frames {
    /// Address of the first frame, from the start of the memory.
    pub(super) first: u64,
    /// Number of frames.
    pub(super) count: u32,
}

// SAFETY: the mapping is plain memory that does not move; `Frames` divides it among users.
unsafe impl Send for Umem {}
// SAFETY: as above: threads use different frames.
unsafe impl Sync for Umem {}

impl Umem {
    /// Maps memory for this number of frames, and touches it.
    pub(super) fn new(frames: usize) -> io::Result<Self> {
        let bytes = frames * FRAME;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
        // SAFETY: a new anonymous mapping overlaps nothing.
        let base = unsafe {
            libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0)
        };
        match NonNull::new(base.cast::<u8>()) {
            Some(base) if base.as_ptr().cast() != libc::MAP_FAILED => Ok(Self { base, bytes }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    pub(super) fn address(&self) -> u64 {
        self.base.as_ptr().expose_provenance() as u64
    }

    pub(super) fn len(&self) -> u64 {
        self.bytes as u64
    }

    /// The `len` bytes at `at`; none if they are not all in the memory.
    ///
    /// # Safety
    /// The bytes are in a frame of the caller that the kernel does not hold.
    pub(super) unsafe fn bytes(&self, at: u64, len: usize) -> Option<&[u8]> {
        self.contains(at, len).then(|| {
            // SAFETY: inside the mapping, and the caller ensures that nobody writes there.
            unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(at as usize), len) }
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
                std::ptr::copy_nonoverlapping(data.as_ptr(), self.base.as_ptr().add(at as usize), data.len());
            };
        }
        fits
    }

    fn contains(&self, at: u64, len: usize) -> bool {
        at.checked_add(len as u64).is_some_and(|end| end <= self.len())
    }
}

impl Drop for Umem {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no slice of it outlives `self`; the kernel holds its own reference
        // to the pages.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}
