//! A counting allocator: proof that the packet path allocates nothing.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator with a counter of allocations per thread.
///
/// A program that needs the count makes it its `#[global_allocator]`. The overhead is one increment of a
/// thread-local variable.
#[derive(Debug)]
pub struct CountingAllocator;

// SAFETY: every call is passed on to the system's allocator unchanged; counting allocates nothing.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as the caller promises; all memory comes from the system's allocator.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises; all memory comes from the system's allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

fn count() {
    // A thread that is ending has no counter left, and no code that reads it.
    let _ = COUNT.try_with(|count| count.set(count.get() + 1));
}

/// Number of allocations by this thread; 0 if the program's allocator is not [`CountingAllocator`].
pub fn allocations() -> u64 {
    COUNT.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[global_allocator]
    static ALLOCATOR: CountingAllocator = CountingAllocator;

    #[test]
    fn counts_this_threads_requests_only() {
        let before = allocations();
        let mut list = vec![1u8; 100];
        list.reserve(1000);
        assert_eq!(allocations() - before, 2);
        drop(list);
        assert_eq!(allocations() - before, 2);
        std::thread::spawn(|| drop(std::hint::black_box(Box::new(7)))).join().unwrap();
        let own = std::thread::spawn(|| {
            let before = allocations();
            drop(std::hint::black_box(Box::new(7)));
            allocations() - before
        });
        assert_eq!(own.join().unwrap(), 1);
    }
}
