//! The memory that the kernel and all AF_XDP ports of a worker share.

use std::io;
use std::ptr::NonNull;

/// Bytes of a frame; also of a memory page, which native XDP wants a frame to be in.
pub(super) const FRAME: usize = 4096;

/// Frames next to each other. Each belongs to one port for good, so that ports share nothing but the mapping.
pub(super) struct Umem {
    base: NonNull<u8>,
    bytes: usize,
}

/// The part of a [`Umem`] that belongs to one ring pair: nobody else touches it.
pub(super) struct Frames {
    /// Address of the first frame, from the start of the memory.
    pub(super) first: u64,
    /// How many there are.
    pub(super) count: u32,
}

// SAFETY: the mapping is plain memory that stays where it is; who may touch which part is settled by
// `Frames`.
unsafe impl Send for Umem {}
// SAFETY: as above: threads touch different frames.
unsafe impl Sync for Umem {}

impl Umem {
    /// Maps room for so many frames, and touches it.
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

    /// The `len` bytes at `at`, or none if they are not all in the memory.
    ///
    /// # Safety
    /// The bytes lie in a frame of the caller that the kernel does not hold at present.
    pub(super) unsafe fn bytes(&self, at: u64, len: usize) -> Option<&[u8]> {
        self.contains(at, len).then(|| {
            // SAFETY: inside the mapping, and the caller sees to it that nobody writes there.
            unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(at as usize), len) }
        })
    }

    /// Copies `data` to `at`; false if it does not fit there.
    ///
    /// # Safety
    /// `at` lies in a frame of the caller that the kernel does not hold at present.
    pub(super) unsafe fn write(&self, at: u64, data: &[u8]) -> bool {
        let fits = self.contains(at, data.len());
        if fits {
            // SAFETY: inside the mapping, and the caller sees to it that nobody else looks there.
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
        // SAFETY: the mapping is ours, and no slice of it outlives us; the kernel holds its pages by itself.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}
