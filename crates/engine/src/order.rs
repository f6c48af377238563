//! The order of what happens at one moment: by place in the plan, then by number.

use longwire_packet::{Handle, Pool};
use longwire_units::Nanos;

/// Places of ports in the order of ties come after those of links.
pub(crate) const PORT_PLACES: u32 = 1 << 31;
/// Where events come in the order of what happens at one time: after links, before ports.
pub(crate) const EVENT_PLACE: u32 = PORT_PLACES - 1;
/// Where deadlines of nodes come in the order of what happens at one time: after links, before changes.
pub(crate) const TICK_PLACE: u32 = EVENT_PLACE - 1;

/// Sequence numbers that a packet from a port takes up: its own and those of its copies when it is flooded,
/// so that two copies on one link have an order too.
pub(crate) const COPIES: u64 = 1 << 24;

/// Sequence numbers that one such copy takes up, for what comes of it at one moment.
pub(crate) const PIECES: u64 = 1 << 8;

/// The longest window of a simulated run with several workers, so that not too much input is taken in at
/// once.
pub(crate) const LONGEST: Nanos = Nanos::from_millis(10);

/// The order of arrivals at equal places in the code: time, then place in the plan, then sequence.
#[inline]
pub(crate) fn order_key(pool: &Pool, handle: Handle) -> (u64, u32, u64) {
    let meta = pool.meta(handle);
    (meta.arrival, meta.place, meta.seq)
}
