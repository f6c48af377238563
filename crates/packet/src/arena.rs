//! The pool's memory: whole cache lines, mapped as zeros. The resident part is on huge pages and touched at
//! the start.

use bytemuck::{Pod, Zeroable};
use memmap2::{Advice, MmapMut};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Bytes of a line.
pub(crate) const LINE: usize = 64;

/// A cache line.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
pub(crate) struct Line(pub [u8; LINE]);

/// A pool that could not be allocated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolError {
    /// Bytes asked for.
    pub bytes: u64,
}

impl fmt::Display for PoolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a packet pool of {} bytes can't be had; it must be 1 MiB to 256 GiB and fit in memory",
            self.bytes
        )
    }
}

impl std::error::Error for PoolError {}

/// Lines of memory. Untouched lines take no physical memory until they are used.
pub(crate) struct Arena {
    lines: NonNull<Line>,
    count: usize,
    /// The mapping that `lines` points to.
    _map: MmapMut,
}

// SAFETY: the arena is the only owner of the memory, as with a box, and a line is `Send`.
#[allow(unsafe_code)]
unsafe impl Send for Arena {}

impl Arena {
    /// Maps `count` lines of zeros and makes the first `resident` resident; none if the system refuses.
    pub(crate) fn new(count: usize, resident: usize) -> Option<Self> {
        let mut map = MmapMut::map_anon(count * LINE).ok()?;
        let resident = resident.min(count) * LINE;
        // Advised before the first touch, because pages that are already small stay small. A refusal only
        // costs speed.
        let _ = map.advise_range(Advice::HugePage, 0, resident);
        for page in map[..resident].chunks_mut(4096) {
            // black_box keeps the optimizer from removing the write: the page becomes resident now, not on
            // the packet path.
            page[0] = std::hint::black_box(0);
        }
        let lines: &mut [Line] = bytemuck::cast_slice_mut(&mut map);
        Some(Self { lines: NonNull::new(lines.as_mut_ptr())?, count, _map: map })
    }
}

impl Deref for Arena {
    type Target = [Line];

    #[inline]
    #[allow(unsafe_code)]
    fn deref(&self) -> &[Line] {
        // SAFETY: the map lives as long as `self`, is aligned (its start was cast to lines), and has no other
        // references.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr(), self.count) }
    }
}

impl DerefMut for Arena {
    #[inline]
    #[allow(unsafe_code)]
    fn deref_mut(&mut self) -> &mut [Line] {
        // SAFETY: as above, and `self` is borrowed mutably for the lifetime of the slice.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_ptr(), self.count) }
    }
}

#[cfg(test)]
impl Arena {
    /// Bytes of it that are resident.
    #[allow(unsafe_code)]
    pub(crate) fn resident_bytes(&self) -> usize {
        const PAGE: usize = 4096;
        let bytes = self.count * LINE;
        let mut pages = vec![0u8; bytes.div_ceil(PAGE)];
        // SAFETY: the mapping begins on a page, and there is a byte for each of its pages.
        let done = unsafe { libc::mincore(self.lines.as_ptr().cast(), bytes, pages.as_mut_ptr()) };
        assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
        pages.iter().filter(|page| **page & 1 == 1).count() * PAGE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_shall_be_there_is_there() {
        let count = (64 << 20) / LINE;
        let mut arena = Arena::new(count, count / 4).unwrap();
        assert_eq!(arena.resident_bytes(), 16 << 20);
        assert!(arena.iter().all(|line| line.0 == [0; LINE]));
        arena.iter_mut().for_each(|line| line.0[0] = 1);
        assert_eq!(arena.resident_bytes(), 64 << 20);
    }

    #[test]
    fn more_than_the_system_gives_is_refused() {
        assert!(Arena::new(usize::MAX / 2 / LINE, 0).is_none());
    }
}
