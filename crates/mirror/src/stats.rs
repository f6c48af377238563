//! Statistics of a mirror.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of a mirror.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MirrorStats {
    /// Messages read from the kernel, dumps included.
    pub messages: u64,
    /// Dumps of everything: the first, and those after lost messages or unannounced changes.
    pub dumps: u64,
    /// Overflows of the receive buffer.
    pub overflows: u64,
    /// Malformed messages: too short, or with impossible lengths.
    pub malformed: u64,
    /// Datagrams from senders other than the kernel.
    pub foreign: u64,
    /// Changes applied by the router.
    pub changes: u64,
    /// Changes refused by the router: a table was full.
    pub refused: u64,
    /// Current routes in the router from the mirror.
    pub routes: u64,
    /// Current neighbours in the router from the mirror.
    pub neighbours: u64,
}

impl MirrorStats {
    /// Its counters by name.
    pub const fn rows(&self) -> [(&'static str, u64); 9] {
        [
            ("messages", self.messages),
            ("dumps", self.dumps),
            ("overflows", self.overflows),
            ("malformed", self.malformed),
            ("foreign", self.foreign),
            ("changes", self.changes),
            ("refused", self.refused),
            ("routes", self.routes),
            ("neighbours", self.neighbours),
        ]
    }
}

/// Shared counters, written by the mirror's thread and read by others.
#[derive(Debug, Default)]
pub struct Counters {
    pub messages: AtomicU64,
    pub dumps: AtomicU64,
    pub overflows: AtomicU64,
    pub malformed: AtomicU64,
    pub foreign: AtomicU64,
    pub changes: AtomicU64,
    pub refused: AtomicU64,
    pub routes: AtomicU64,
    pub neighbours: AtomicU64,
}

/// Increments a counter. Only the mirror's thread does, and no other memory access depends on the order.
pub fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl Counters {
    /// The current counters.
    pub fn read(&self) -> MirrorStats {
        let at = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        MirrorStats {
            messages: at(&self.messages),
            dumps: at(&self.dumps),
            overflows: at(&self.overflows),
            malformed: at(&self.malformed),
            foreign: at(&self.foreign),
            changes: at(&self.changes),
            refused: at(&self.refused),
            routes: at(&self.routes),
            neighbours: at(&self.neighbours),
        }
    }
}
