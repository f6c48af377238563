//! What a link does not carry at all, or carries in a way of its own.

pub mod mtu;
mod policer;
mod rule_set;
pub mod rules;
pub mod state;

/// What `cargo xtask new` begins a block with, so that it is one.
#[cfg(test)]
#[path = "../../../../xtask/templates/filter.rs"]
mod template;

use crate::judge::Judge;
use longwire_block::{Offer, Verdict};
use longwire_units::Nanos;

pub use policer::Allowance;
pub(crate) use rule_set::{Piece, shown};
pub use rule_set::{RuleError, RuleSet};

crate::stage::stage! {
    /// A filter.
    Filter: Judge {
        inline {
            Mtu = mtu::Mtu,
            TooBig = mtu::TooBig,
            Fixed = state::Fixed,
        }
        boxed {
            Flap = state::Flap,
            Rules = rules::Rules,
        }
    }
    ask
    fn on_wire(&self) -> bool;
    fn hastens(&self) -> bool;
    fn is_up(&self, now: Nanos) -> bool;
    apart
    fn judge(&mut self, offer: &mut Offer<'_>) -> Verdict;
}
