//! Memory that becomes resident before a pool uses it, on a thread of its own, so that no packet waits for
//! the system.

use crate::arena::{Arena, LINE};
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;

/// Memory that is resident beyond what was ever in use.
pub(crate) const AHEAD: usize = 8 << 20;
/// Memory that becomes resident at once: a huge page.
const STEP: usize = 2 << 20;

/// Keeps [`AHEAD`] of an arena's memory resident beyond what is in use. Dropping it ends the thread; that
/// must happen before the arena goes.
pub(crate) struct Growth {
    shared: Arc<GrowthState>,
    thread: Option<JoinHandle<()>>,
    /// As in `shared`, for comparing.
    wanted: usize,
    bytes: usize,
}

struct GrowthState {
    /// Bytes from the start of the arena that are to be resident.
    wanted: AtomicUsize,
    has_ended: AtomicBool,
}

impl Growth {
    /// Starts the thread of an arena of which [`AHEAD`] is resident. Without a thread, packets wait for the
    /// system to provide memory.
    pub fn start(arena: &Arena) -> Self {
        let bytes = arena.len() * LINE;
        let wanted = bytes.min(AHEAD);
        let shared = Arc::new(GrowthState { wanted: wanted.into(), has_ended: false.into() });
        let start = arena.as_ptr().expose_provenance();
        let (theirs, memory) = (Arc::clone(&shared), start..start + bytes);
        let builder = std::thread::Builder::new().name("memory".into());
        let is_whole = wanted == bytes;
        let thread = (!is_whole).then(|| builder.spawn(move || grow(&theirs, &memory, wanted)).ok());
        Self { shared, thread: thread.flatten(), wanted, bytes }
    }

    /// Announces that the first `used` bytes are in use.
    pub fn reach(&mut self, used: usize) {
        let wanted = (used + AHEAD).next_multiple_of(STEP).min(self.bytes);
        if wanted > self.wanted {
            self.wanted = wanted;
            self.shared.wanted.store(wanted, Ordering::Relaxed);
            self.wake();
        }
    }

    fn wake(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for Growth {
    fn drop(&mut self) {
        self.shared.has_ended.store(true, Ordering::Relaxed);
        self.wake();
        // A thread that broke has nothing left to do.
        drop(self.thread.take().map(JoinHandle::join));
    }
}

/// Makes memory resident as it is wanted, until the end; `done` bytes are.
fn grow(shared: &GrowthState, memory: &Range<usize>, mut done: usize) {
    while !shared.has_ended.load(Ordering::Relaxed) {
        if done >= shared.wanted.load(Ordering::Relaxed) {
            std::thread::park();
            continue;
        }
        let start = memory.start + done;
        // On a huge page's boundary from the second step on.
        let end = (start + 1).next_multiple_of(STEP).min(memory.end);
        if populate(start..end).is_err() {
            // An older kernel, or no memory: packets find out by themselves.
            return;
        }
        done = end - memory.start;
    }
}

/// Makes the pages of a mapping resident and writable, without changing what is in them.
#[allow(unsafe_code)]
fn populate(range: Range<usize>) -> io::Result<()> {
    let start = std::ptr::with_exposed_provenance_mut::<libc::c_void>(range.start);
    // SAFETY: the arena's mapping outlives the thread, which `Growth` joins, and neither advice changes
    // contents. Whether there are huge pages makes a difference in speed only.
    let done = unsafe {
        libc::madvise(start, range.len(), libc::MADV_HUGEPAGE);
        libc::madvise(start, range.len(), libc::MADV_POPULATE_WRITE)
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
