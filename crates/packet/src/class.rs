//! Size classes of the pool's slots: exact up to 2 KiB, and growing in steps of at most a third above
//! (decision 8).

use crate::arena::LINE;

/// Up to this many lines every class is exact.
pub(crate) const EXACT_LINES: usize = 33;
pub(crate) const CLASSES: usize = EXACT_LINES + 1 + LARGE.len();
/// Lines of the classes above the exact ones.
const LARGE: [u32; 18] =
    [38, 44, 51, 60, 72, 89, 102, 128, 157, 195, 256, 292, 341, 455, 585, 682, 819, 1027];

/// The class whose slots hold `len` bytes and the metadata.
#[inline]
pub(crate) fn class_of(len: usize) -> usize {
    let lines = 1 + len.div_ceil(LINE);
    if lines <= EXACT_LINES {
        return lines;
    }
    EXACT_LINES + 1 + LARGE.partition_point(|&large| (large as usize) < lines)
}

pub(crate) fn lines_of_class(class: usize) -> u32 {
    class.checked_sub(EXACT_LINES + 1).map_or(class.max(1) as u32, |large| LARGE[large])
}
