//! What a link does not carry at all, or carries in a way of its own.

pub mod mtu;

use crate::judge::Judge;
use longwire_block::{Offer, Verdict};

crate::registry::stage! {
    /// A filter.
    Filter: Judge {
        inline {
            Mtu = mtu::Mtu,
        }
        boxed {}
    }
    fn judge(&mut self, offer: &mut Offer<'_>) -> Verdict;
    fn on_wire(&mut self) -> bool;
}
