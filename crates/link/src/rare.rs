//! What few links have.

use crate::background::Background;
use crate::front::Front;
use crate::histogram::Histogram;
use crate::line::Heaps;
use crate::medium::Seat;
use longwire_block::DropCounts;
use longwire_units::Nanos;

/// What few links have.
#[derive(Debug, Default)]
pub(crate) struct Rare {
    pub drops: DropCounts,
    /// The most a packet was late, if the link's record has no room for it.
    pub max_late: Nanos,
    /// Made at the start for links that ask for it.
    pub histogram: Option<Box<Histogram>>,
    /// Packets marked as having met congestion, by the queue or before it.
    pub marked: u64,
    /// Copies made, and background packets.
    pub made: u64,
    /// Background packets that were sent.
    pub consumed: u64,
    /// Packets sent to another link.
    pub steered: u64,
    /// Packets of which bits were flipped.
    pub corrupted: u64,
    /// What the delay line needs for packets that overtake.
    pub heaps: Heaps,
    /// When the queue, which has packets, will have one for the transmitter.
    pub resume: Nanos,
    /// The packet being sent, where it has left the queue.
    pub taken: Taken,
    /// Background packets in the queue.
    pub phantoms: u32,
    /// Where background packets come from.
    pub background: Option<Background>,
    /// The delay before the queue.
    pub front: Option<Box<Front>>,
    /// Its place at a shared medium.
    pub seat: Option<Seat>,
}

/// A packet that opportunities have taken a part of: it waits no longer, and is not sent yet.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Taken {
    /// One, or none.
    pub packets: u32,
    /// The bytes it counts.
    pub bytes: u64,
}
