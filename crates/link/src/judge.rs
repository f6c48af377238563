//! What judges packets: filters and impairments.

use longwire_block::{Block, Offer, Verdict};
use longwire_units::Nanos;

/// A block that decides about packets before they queue, or on the wire.
pub trait Judge: Block {
    /// Decides about a packet, or one segment of a train; what is to happen to it besides goes into
    /// [`Offer::effects`]. Asked once for each, in the order in which they come.
    fn judge(&mut self, offer: &mut Offer<'_>) -> Verdict;

    /// Whether it judges packets once their last bit is sent, rather than when they arrive.
    fn on_wire(&self) -> bool {
        false
    }

    /// Whether it lets the link carry anything at all at `now`: what a station would call a carrier.
    fn is_up(&self, _now: Nanos) -> bool {
        true
    }

    /// Whether it may let packets leave sooner than the link's delay says.
    fn hastens(&self) -> bool {
        false
    }
}
