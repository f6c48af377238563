//! What a mirror has done.

use std::sync::atomic::{AtomicU64, Ordering};

/// What a mirror has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MirrorStats {
    /// Messages of the kernel that were read, those of dumps included.
    pub messages: u64,
    /// Dumps of everything: the first, and those after messages were lost or the kernel may have kept
    /// something to itself.
    pub dumps: u64,
    /// How often messages were lost because too many came at once.
    pub overflows: u64,
    /// Messages that are none: too short, or with lengths that can't be.
    pub malformed: u64,
    /// Datagrams that came from somebody else than the kernel.
    pub foreign: u64,
    /// Changes that the router has carried out.
    pub changes: u64,
    /// Changes that it has refused: a table was full.
    pub refused: u64,
    /// Routes that the router has from the mirror now.
    pub routes: u64,
    /// Neighbours that it has from the mirror now.
    pub neighbours: u64,
}

impl MirrorStats {
    /// Its numbers by name.
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

/// The same, counted by the mirror's thread and read by others.
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

/// One more. Only the mirror's thread counts, and nothing else hangs on the order.
pub fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl Counters {
    /// As of now.
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
