//! A worker's records: packets seen outside links, lateness, and progress.

use crate::fidelity::{Lateness, Tolerance};
use longwire_block::{DropCounts, DropReason};
use longwire_packet::{Handle, Pool};
use longwire_units::Nanos;

/// Packets seen by a worker outside its links. Each segment of a train is counted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Flow {
    pub taken: u64,
    pub made: u64,
    pub consumed: u64,
    pub sent: u64,
    pub received: u64,
    pub handed_over: u64,
    pub drops: DropCounts,
}

pub(crate) struct WorkerCounters {
    pub flow: Flow,
    pub lateness: Lateness,
    pub tolerance: Tolerance,
    /// Time and place of the last executed event, where events are executed in exact order.
    pub done: (u64, u32),
}

impl WorkerCounters {
    pub fn new(start: Nanos, tolerance: Tolerance) -> Self {
        Self { flow: Flow::default(), lateness: Lateness::default(), tolerance, done: (start.0, 0) }
    }

    /// Records that an event was executed.
    #[inline]
    pub fn did(&mut self, moment: (u64, u32)) {
        self.done = self.done.max(moment);
    }

    pub fn drop(&mut self, pool: &mut Pool, handle: Handle, reason: DropReason) {
        self.count_drop(reason, pool.meta(handle).segments.into());
        pool.free(handle);
    }

    /// Counts drops that have no packet.
    pub fn count_drop(&mut self, reason: DropReason, segments: u64) {
        self.flow.drops[reason as usize] += segments;
    }

    /// Frees a packet consumed by its node.
    pub fn consume(&mut self, pool: &mut Pool, handle: Handle) {
        self.flow.consumed += u64::from(pool.meta(handle).segments);
        pool.free(handle);
    }
}
