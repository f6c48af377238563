//! A worker's records: packets seen outside links, lateness, and progress.

use crate::fidelity::{Lateness, Tolerance};
use crate::stats::FlowStats;
use longwire_block::{DropCounts, DropReason};
use longwire_packet::{Handle, Pool};
use longwire_units::Nanos;

pub(crate) struct WorkerCounters {
    /// Packets seen outside links, without those dropped. Each segment of a train is counted.
    pub flow: FlowStats,
    /// Packets dropped outside links.
    pub drops: DropCounts,
    pub lateness: Lateness,
    pub tolerance: Tolerance,
    /// Time and place of the last executed event, where events are executed in exact order.
    pub done: (u64, u32),
}

impl WorkerCounters {
    pub fn new(start: Nanos, tolerance: Tolerance) -> Self {
        let (flow, drops) = (FlowStats::default(), DropCounts::default());
        Self { flow, drops, lateness: Lateness::default(), tolerance, done: (start.0, 0) }
    }

    /// Packets seen outside links, with those dropped.
    pub fn all_flow(&self) -> FlowStats {
        let drops = DropReason::ALL.iter().map(|&reason| (reason.name(), self.drops[reason as usize]));
        FlowStats { drops: drops.filter(|(_, packets)| *packets > 0).collect(), ..self.flow.clone() }
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
        self.drops[reason as usize] += segments;
    }

    /// Frees a packet consumed by its node.
    pub fn consume(&mut self, pool: &mut Pool, handle: Handle) {
        self.flow.consumed += u64::from(pool.meta(handle).segments);
        pool.free(handle);
    }
}
