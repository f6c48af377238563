//! What a link does not carry at all.

pub mod mtu;

use longwire_block::{Offer, Verdict};

crate::registry::stage! {
    /// A filter.
    Filter {
        Mtu = mtu::Mtu,
    }
    /// Decides about a packet.
    fn judge(&mut self, offer: &Offer) -> Verdict;
}
