//! What a link does to packets before they queue.

pub mod independent;

use longwire_block::{Offer, Verdict};

crate::registry::stage! {
    /// An impairment.
    Impair {
        Independent = independent::Independent,
    }
    /// Decides about a packet.
    fn judge(&mut self, offer: &Offer) -> Verdict;
}
