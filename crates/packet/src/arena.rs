//! The pool's memory: whole lines, mapped as zeros; the part that shall be there from the start is on huge
//! pages and touched.

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

/// Why a pool can't be made.
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

/// So many lines. What is not touched takes no memory until it is used.
pub(crate) struct Arena {
    lines: NonNull<Line>,
    count: usize,
    /// What `lines` points to.
    _map: MmapMut,
}

// SAFETY: the memory belongs to this alone, as a box's does; a line can be sent.
#[allow(unsafe_code)]
unsafe impl Send for Arena {}

impl Arena {
    /// `count` lines of zeros, of which the first `resident` are there at once; none if the system does not
    /// give them.
    pub(crate) fn new(count: usize, resident: usize) -> Option<Self> {
        let mut map = MmapMut::map_anon(count * LINE).ok()?;
        let resident = resident.min(count) * LINE;
        // Before anything is touched: what small pages hold stays on them. A refusal costs speed only.
        let _ = map.advise_range(Advice::HugePage, 0, resident);
        for page in map[..resident].chunks_mut(4096) {
            // A volatile-like write the optimiser keeps: black_box makes the page resident now, not on the
            // path.
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
        // SAFETY: the map is as long as this is there, aligned (its start was cast to lines), and nothing
        // else refers to it.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr(), self.count) }
    }
}

impl DerefMut for Arena {
    #[inline]
    #[allow(unsafe_code)]
    fn deref_mut(&mut self) -> &mut [Line] {
        // SAFETY: as above, and `self` is borrowed for as long as the lines are.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_ptr(), self.count) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kilobytes that the system holds of the mappings in which the lines lie.
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
        // A neighbour of this may lie in the same mapping.
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
