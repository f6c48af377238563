//! Rare state of a link.

use crate::background::Background;
use crate::front::Front;
use crate::line::Heaps;
use crate::medium::StationRef;
use longwire_block::DropCounts;
use longwire_units::{Histogram, Nanos};

/// Rare state of a link.
#[derive(Debug, Default)]
pub(crate) struct Rare {
    pub drops: DropCounts,
    /// The highest lateness, if the link's record has no room for it.
    pub max_late: Nanos,
    /// Allocated at the start for links that request it.
    pub histogram: Option<Box<Histogram>>,
    /// Packets marked with CE, by the queue or before it.
    pub marked: u64,
    /// Copies made, and background packets.
    pub made: u64,
    /// Background packets that were sent.
    pub consumed: u64,
    /// Packets sent to another link.
    pub steered: u64,
    /// Packets with flipped bits.
    pub corrupted: u64,
    /// State of the delay line for packets that overtake.
    pub heaps: Heaps,
    /// Time at which a non-empty queue will have a packet for the transmitter.
    pub resume: Nanos,
    /// The packet being sent, if it has left the queue.
    pub taken: PartlyTaken,
    /// Background packets in the queue.
    pub phantoms: u32,
    /// Source of background packets.
    pub background: Option<Background>,
    /// The delay before the queue.
    pub front: Option<Box<Front>>,
    /// Its station at a shared medium.
    pub station_ref: Option<StationRef>,
}

/// A packet partly taken by opportunities: it no longer waits, and is not sent yet.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PartlyTaken {
    /// One, or none.
    pub packets: u32,
    /// Its counted size.
    pub bytes: u64,
}
