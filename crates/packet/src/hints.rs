//! What processor and system are told about memory: hints, without effect on results.

use crate::arena::LINE;

/// Reads the cache line where `target` begins ahead of use; a hint without effect on results.
#[inline]
pub fn prefetch<T>(target: &T) {
    fetch(std::ptr::from_ref(target).cast());
}

/// The same for all cache lines of `target`, which begins with one.
#[inline]
pub fn prefetch_whole<T>(target: &T) {
    let start = std::ptr::from_ref(target).cast::<u8>();
    (0..size_of::<T>()).step_by(LINE).for_each(|at| fetch(start.wrapping_add(at)));
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

/// Asks for huge pages for `bytes` of memory from `start` on: without them a million links and their packets
/// miss the TLB at every step. A hint without effect on results.
#[allow(unsafe_code)]
fn advise_huge(start: *const u8, bytes: usize) {
    const HUGE: usize = 1 << 21;
    let first = start.addr().next_multiple_of(HUGE);
    let end = (start.addr() + bytes) & !(HUGE - 1);
    if first < end {
        let at = start.cast_mut().with_addr(first);
        // SAFETY: the range lies inside an allocation that the caller owns; MADV_HUGEPAGE changes no
        // contents. A refusal costs speed only, so its result is not looked at.
        unsafe { libc::madvise(at.cast(), end - first, libc::MADV_HUGEPAGE) };
    }
}

/// A vector with room for `capacity` values, on huge pages where the system has them.
pub fn huge_vec<T>(capacity: usize) -> Vec<T> {
    let memory: Vec<T> = Vec::with_capacity(capacity);
    advise_huge(memory.as_ptr().cast(), memory.capacity() * size_of::<T>());
    memory
}
