//! State of a link beyond its profile: blocks, and the state between them. A plain link has none until it
//! serves a train or a change, or drops a packet.

use crate::chain::{Chain, Judges};
use crate::delay::{Delay, Order};
use crate::queue::{Queue, WaitingList};
use crate::transmit::Transmit;
use longwire_packet::Handle;
use longwire_units::Nanos;

/// The blocks of a link, and the state between them.
#[derive(Debug)]
pub(crate) struct Blocks {
    pub transmit: Transmit,
    pub queue: Queue,
    pub delay: Delay,
    /// The judges of packets, on arrival and on the wire.
    pub before: Judges,
    pub wire: Judges,
    /// Whether those on the wire are asked in place of the others, of which there are none: a packet that
    /// comes to a decided link is sent at once.
    pub wire_first: bool,
    /// Order of packets, as defined by the delay.
    pub order: Order,
    /// The latest departure from the line of packets in order; on a decided link, as long as it does not
    /// follow from the line's contents.
    pub last: Nanos,
    /// The packet being sent, or none; always none on a decided link.
    pub sending: Handle,
    pub books: WaitingList,
}

impl Blocks {
    pub(crate) fn new(chain: Chain, queue: Queue, transmit: Transmit, delay: Delay) -> Self {
        let (order, last, books) = (Order::InOrder, Nanos::ZERO, WaitingList::default());
        let (before, wire) = (Judges::new(chain), Judges::default());
        let (wire_first, sending) = (false, Handle::NONE);
        Self { transmit, queue, delay, before, wire, wire_first, order, last, sending, books }
    }
}
