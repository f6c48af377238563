//! Statistics of a mirror.

use std::sync::{Mutex, MutexGuard, PoisonError};

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

/// Increments a counter.
pub fn count(stats: &Mutex<MirrorStats>, counter: impl FnOnce(&mut MirrorStats) -> &mut u64) {
    *counter(&mut held(stats)) += 1;
}

/// The counters, which the mirror's thread writes and others read.
pub fn held(stats: &Mutex<MirrorStats>) -> MutexGuard<'_, MirrorStats> {
    stats.lock().unwrap_or_else(PoisonError::into_inner)
}
