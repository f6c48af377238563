//! Judges of packets: filters and impairments.

use longwire_block::{Block, Offer, Verdict};
use longwire_units::Nanos;

/// A block that decides about packets before they queue, or on the wire.
pub trait Judge: Block {
    /// Decides about a packet, or one segment of a train; other effects go into [`Offer::effects`]. Called
    /// once for each, in order of arrival.
    fn judge(&mut self, offer: &mut Offer<'_>) -> Verdict;

    /// Whether it judges packets when their last bit is sent, rather than on arrival.
    fn on_wire(&self) -> bool {
        false
    }

    /// Whether the link carries anything at `now`, like a station's carrier.
    fn is_up(&self, _now: Nanos) -> bool {
        true
    }

    /// Whether it may let packets leave earlier than their delay.
    fn hastens(&self) -> bool {
        false
    }
}
