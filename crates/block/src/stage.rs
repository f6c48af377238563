//! What a link's stages before the queue are shown, and what they answer.

use crate::DropReason;
use longwire_units::Nanos;

/// A packet, or one segment of a train, as a stage sees it.
#[derive(Debug, Clone, Copy)]
pub struct Offer {
    /// When it arrived at the link.
    pub now: Nanos,
    /// Length of its frame without FCS, in bytes.
    pub bytes: u32,
}

/// What a stage decides about a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on.
    Pass,
    /// It is dropped.
    Drop(DropReason),
}
