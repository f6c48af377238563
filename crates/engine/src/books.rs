//! What a worker writes down: packets that it has seen apart from what its links count, how late they left,
//! and how far it is.

use crate::fidelity::{Lateness, Tolerance};
use longwire_block::{DropCounts, DropReason};
use longwire_packet::{Handle, Pool};
use longwire_units::Nanos;

/// Packets that a worker has seen, apart from what its links count. Segments of a train count one each.
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

/// See the module.
pub(crate) struct Books {
    pub flow: Flow,
    pub lateness: Lateness,
    pub tolerance: Tolerance,
    /// Time and place of the last event that was carried out, where they are carried out in their exact
    /// order.
    pub done: (u64, u32),
}

impl Books {
    pub fn new(start: Nanos, tolerance: Tolerance) -> Self {
        Self { flow: Flow::default(), lateness: Lateness::default(), tolerance, done: (start.0, 0) }
    }

    /// Notes that something has been carried out at this time, in this place.
    #[inline]
    pub fn did(&mut self, moment: (u64, u32)) {
        self.done = self.done.max(moment);
    }

    /// Ends a packet, for a reason.
    pub fn drop(&mut self, pool: &mut Pool, handle: Handle, reason: DropReason) {
        self.count_drop(reason, pool.meta(handle).segments.into());
        pool.free(handle);
    }

    /// Counts packets that there was no packet for.
    pub fn count_drop(&mut self, reason: DropReason, segments: u64) {
        self.flow.drops[reason as usize] += segments;
    }

    /// Ends a packet that its node has taken.
    pub fn consume(&mut self, pool: &mut Pool, handle: Handle) {
        self.flow.consumed += u64::from(pool.meta(handle).segments);
        pool.free(handle);
    }
}
