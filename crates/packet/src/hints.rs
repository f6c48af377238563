//! Hints to the processor and the system about memory. They have no effect on results.

use crate::arena::LINE;

/// How many elements of a loop are prefetched ahead, of at most three cache lines each: far enough for
/// memory, and few enough for the processor, which waits for some twenty lines at once and forgets
/// prefetches beyond.
pub const AHEAD: usize = 8;

/// Prefetches the cache line in which `target` begins.
#[inline]
pub fn prefetch<T>(target: &T) {
    fetch(std::ptr::from_ref(target).cast());
}

/// Prefetches an element that starts on a cache line, or is within one, without looking at its index: one
/// beyond the last does no harm.
#[inline]
pub fn prefetch_element<T>(all: &[T], index: usize) {
    let start = all.as_ptr().wrapping_add(index).cast::<u8>();
    let mut at = 0;
    // A loop over steps would be a call for each in the build of the tests.
    while at < size_of::<T>() {
        fetch(start.wrapping_add(at));
        at += LINE;
    }
}

#[inline]
#[allow(unsafe_code)]
fn fetch(address: *const u8) {
    // SAFETY: a prefetch has no architectural effect, whatever the address.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// A vector with room for `capacity` values, on huge pages where the system has them.
pub fn huge_vec<T>(capacity: usize) -> Vec<T> {
    on_huge_pages(Vec::with_capacity(capacity))
}

/// A vector like those of [`huge_vec`]; none if the system refuses the memory.
pub(crate) fn try_huge_vec<T>(capacity: usize) -> Option<Vec<T>> {
    let mut memory = Vec::new();
    memory.try_reserve_exact(capacity).ok()?;
    Some(on_huge_pages(memory))
}

/// Asks for huge pages. Without them a million links and their packets miss the TLB at every step.
#[allow(unsafe_code)]
fn on_huge_pages<T>(memory: Vec<T>) -> Vec<T> {
    const HUGE: usize = 1 << 21;
    let (start, bytes) = (memory.as_ptr(), memory.capacity() * size_of::<T>());
    let first = start.addr().next_multiple_of(HUGE);
    let end = (start.addr() + bytes) & !(HUGE - 1);
    if first < end {
        let at = start.cast_mut().with_addr(first);
        // SAFETY: the range lies inside the vector's allocation, and MADV_HUGEPAGE changes no contents. A
        // refusal only costs speed, so the result is ignored.
        unsafe { libc::madvise(at.cast(), end - first, libc::MADV_HUGEPAGE) };
    }
    memory
}
