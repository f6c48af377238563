//! Packets that a link does not carry, or treats specially.

pub mod mtu;
mod policer;
mod rule_set;
pub mod rules;
pub mod state;
pub mod state_trace;

/// The template of `cargo xtask new`, compiled as a block.
#[cfg(test)]
#[path = "../../../../xtask/templates/filter.rs"]
mod template;

use crate::judge::{Judge, PacketJudge, judge_held};
use crate::stage::Holds;
use longwire_block::{Offer, Verdict};
use longwire_units::Nanos;

pub use crate::piece::LineError;
pub use policer::Allowance;
pub use rule_set::RuleSet;

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
            StateTrace = state_trace::StateTrace,
            Rules = rules::Rules,
        }
    }
    fn recall(&mut self, unused: u32);
    fn settle(&mut self, now: Nanos);
    ask
    fn on_wire(&self) -> bool;
    fn hastens(&self) -> bool;
    fn is_up(&self, now: Nanos) -> bool;
    apart
    fn judge(&mut self, offer: &mut Offer<'_>) -> Verdict;
    entry fn packet_judge<C: Holds<Filter>>(&self) -> PacketJudge<C> = judge_held;
}
