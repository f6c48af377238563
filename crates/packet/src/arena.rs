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
mod tests {
    use super::*;

    /// Resident memory, in kilobytes, of the mappings that contain the lines.
    fn resident_kb(lines: &[Line]) -> u64 {
        let range = lines.as_ptr_range();
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let (mut within, mut sum) = (false, 0);
        for line in maps.lines() {
            let first = line.split_whitespace().next().unwrap_or_default();
            let ends = first
                .split_once('-')
                .map(|(from, to)| [from, to].map(|end| usize::from_str_radix(end, 16).unwrap_or(usize::MAX)));
            if let Some([from, to]) = ends {
                within = from < range.end.addr() && to > range.start.addr();
            } else if within && first == "Rss:" {
                sum += line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap();
            }
        }
        sum
    }

    #[test]
    fn only_what_shall_be_there_is_there() {
        let count = (64 << 20) / LINE;
        let mut arena = Arena::new(count, count / 4).unwrap();
        let first = resident_kb(&arena);
        // Another test's arena may be in the same mapping.
        assert!((16 << 10..48 << 10).contains(&first), "{first} kB of 16 MiB");
        assert!(arena.iter().all(|line| line.0 == [0; LINE]));
        arena.iter_mut().for_each(|line| line.0[0] = 1);
        assert!(resident_kb(&arena) >= 64 << 10);
    }

    #[test]
    fn more_than_the_system_gives_is_refused() {
        assert!(Arena::new(usize::MAX / 2 / LINE, 0).is_none());
    }
}
