//! What a link does to packets before they queue, or on the wire.

pub mod independent;

use crate::judge::Judge;
use longwire_block::{DropReason, Offer, Param, ParamKind, Verdict};
use longwire_wire::{Ecn, ecn};

crate::registry::stage! {
    /// An impairment.
    Impair: Judge {
        inline {
            Independent = independent::Independent,
        }
        boxed {}
    }
    fn judge(&mut self, offer: &mut Offer<'_>) -> Verdict;
    fn on_wire(&mut self) -> bool;
}

/// The parameter that says whether an impairment strikes before the queue or on the wire.
pub(crate) const WHERE_PARAM: Param = Param {
    name: "where",
    kind: ParamKind::Choice(&["queue", "wire"]),
    default: Some("queue"),
    help: "queue: before it, so that lost packets use no bandwidth; wire: after transmission",
};

/// The parameter that says whether packets are marked rather than lost.
pub(crate) const ECN_PARAM: Param = Param {
    name: "ecn",
    kind: ParamKind::Choice(&["no", "yes"]),
    default: Some("no"),
    help: "yes: ECN-capable packets are marked as having met congestion instead of being lost (RFC 3168)",
};

/// What becomes of a packet that is to be lost, or marked if it can be.
#[inline]
pub(crate) fn lose(offer: &Offer<'_>, mark: bool) -> Verdict {
    if mark && ecn(offer.frame) != Ecn::NotCapable { Verdict::Mark } else { Verdict::Drop(DropReason::Loss) }
}
