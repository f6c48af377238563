//! Order of events at one time: by place in the plan, then by sequence number.

use longwire_packet::{Handle, Pool};
use longwire_units::Nanos;

/// Ports come after links in the order of places.
pub(crate) const PORT_PLACES: u32 = 1 << 31;
/// Place of changes in the order of one time: after links, before ports.
pub(crate) const EVENT_PLACE: u32 = PORT_PLACES - 1;
/// Place of nodes' deadlines in the order of one time: after links, before changes.
pub(crate) const TICK_PLACE: u32 = EVENT_PLACE - 1;

/// Sequence numbers reserved for a packet from a port: its own, and those of its copies when it is flooded,
/// so that two copies on one link are ordered.
pub(crate) const COPIES: u64 = 1 << 24;

/// Sequence numbers reserved for one such copy, for packets that result from it at one instant.
pub(crate) const PIECES: u64 = 1 << 8;

/// The longest window of a simulated run with several workers, to limit how much input is read at once.
pub(crate) const LONGEST: Nanos = Nanos::from_millis(10);

/// Sort key of arrivals: time, then place in the plan, then sequence.
#[inline]
pub(crate) fn order_key(pool: &Pool, handle: Handle) -> (u64, u32, u64) {
    let meta = pool.meta(handle);
    (meta.arrival, meta.place, meta.seq)
}
