//! Effects of a link on packets before they queue, or on the wire.

pub mod bit_error;
mod chance;
pub mod correlated;
pub mod corrupt;
pub mod drawn;
pub mod duplicate;
mod foreseen;
pub mod gilbert_elliott;
pub mod independent;
pub mod limited;
pub mod loss_trace;
pub mod lossy;
pub mod markov;
pub mod pattern;
pub mod reorder;

/// The template of `cargo xtask new`, compiled as a block.
#[cfg(test)]
#[path = "../../../../xtask/templates/impair.rs"]
mod template;

use crate::judge::{Judge, PacketJudge, judge_held};
use crate::stage::Holds;
use longwire_block::{DropReason, Fallback, Offer, Param, ParamKind, Verdict};
use longwire_settings::Choice;
use longwire_units::Nanos;
use longwire_wire::{Ecn, ecn};

crate::stage::stage! {
    /// An impairment.
    Impair: Judge {
        inline {
            Independent = independent::Independent,
        }
        boxed {
            Correlated = correlated::Correlated,
            Burst = gilbert_elliott::Burst,
            GilbertElliott = gilbert_elliott::GilbertElliott,
            Markov = markov::Markov,
            Drawn = drawn::Drawn,
            Limited = limited::Limited,
            Pattern = pattern::Pattern,
            LossTrace = loss_trace::LossTrace,
            BitError = bit_error::BitError,
            Corrupt = corrupt::Corrupt,
            Duplicate = duplicate::Duplicate,
            Reorder = reorder::Reorder,
        }
    }
    fn recall(&mut self, unused: u32);
    fn settle(&mut self, now: Nanos);
    ask
    fn on_wire(&self) -> bool;
    fn hastens(&self) -> bool;
    apart
    fn judge(&mut self, offer: &mut Offer<'_>) -> Verdict;
    entry fn packet_judge<C: Holds<Impair>>(&self) -> PacketJudge<C> = judge_held;
}

/// Position of an impairment: the words of `where`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Choice)]
pub enum Place {
    /// Before the queue.
    Queue,
    /// After transmission.
    Wire,
}

/// Treatment of headers: the words of `headers`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Choice)]
pub(crate) enum Headers {
    Hit,
    Spare,
}

/// The setting for the position of an impairment: before the queue or on the wire.
pub(crate) const WHERE_PARAM: Param = Param {
    name: "where",
    kind: ParamKind::Choice(Place::WORDS),
    default: Fallback::Value("queue"),
    help: "queue: before the queue, so that no bandwidth is used; wire: after transmission",
    live: true,
};

/// The setting for marking packets instead of losing them.
pub(crate) const ECN_PARAM: Param = Param {
    name: "ecn",
    kind: ParamKind::Choice(<bool as Choice>::WORDS),
    default: Fallback::Value("no"),
    help: "yes: ECN-capable packets are marked CE instead of being lost (RFC 3168)",
    live: true,
};

/// The setting that protects headers.
pub(crate) const HEADERS_PARAM: Param = Param {
    name: "headers",
    kind: ParamKind::Choice(Headers::WORDS),
    default: Fallback::Value("hit"),
    help: "hit: any bit of a delivered packet may flip; spare: none in its Ethernet, IP and transport \
        headers",
    live: true,
};

/// The verdict on a packet to be lost, or marked if possible.
#[inline(always)]
pub(crate) fn lose(offer: &Offer<'_>, mark: bool) -> Verdict {
    /// Out of line, so that the offer's address is not passed on, and it need not be in memory.
    #[inline(never)]
    fn is_capable(frame: &[u8]) -> bool {
        ecn(frame) != Ecn::NotCapable
    }
    if mark && is_capable(offer.frame()) { Verdict::Mark } else { Verdict::Drop(DropReason::Loss) }
}
