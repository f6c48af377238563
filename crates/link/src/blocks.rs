//! What a link has of its own: blocks, and what stands between them. A plain link has none until it serves a train or a change, or drops a packet.

use crate::chain::Chain;
use crate::delay::{Delay, Order};
use crate::queue::{Books, Queue};
use crate::transmit::Transmit;
use longwire_packet::Handle;
use longwire_units::Nanos;

/// The blocks of a link, and what stands between them.
#[derive(Debug)]
pub(crate) struct Blocks {
    pub transmit: Transmit,
    pub queue: Queue,
    pub delay: Delay,
    /// What judges packets when they arrive, and on the wire.
    pub chain: Chain,
    pub wire: Chain,
    /// What becomes of the order of packets, as the delay says.
    pub order: Order,
    /// The latest time at which a packet leaves the line that keeps its place, or has left; on a decided link, as long as that does not follow from
    /// what is on the line.
    pub last: Nanos,
    /// The packet being sent, or none; none on a decided link.
    pub sending: Handle,
    pub books: Books,
}

impl Blocks {
    pub(crate) fn new(chain: Chain, queue: Queue, transmit: Transmit, delay: Delay) -> Self {
        let (order, last, books) = (Order::InOrder, Nanos::ZERO, Books::default());
        let wire = Chain::None;
        Self { transmit, queue, delay, chain, wire, order, last, sending: Handle::NONE, books }
    }
}
