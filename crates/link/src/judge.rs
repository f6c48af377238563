//! Judges of packets: filters and impairments.

use crate::fate::{Affected, Coming};
use crate::foresight::Foresight;
use crate::stage::{Holds, OfStage};
use longwire_block::{Block, DropReason, Effects, Offer, Verdict};
use longwire_packet::{Handle, Pool};
use longwire_units::Nanos;

/// Verdict of judges on a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JudgesVerdict {
    /// It passes.
    Passes,
    /// It is dropped.
    Lost(DropReason),
    /// There are further effects, recorded beside the verdict.
    Affected,
}

/// A block that decides about packets before they queue, or on the wire.
pub trait Judge: Block {
    /// Decides about a packet, or one segment of a train; other effects go into [`Offer::effects`]. Called
    /// once for each, in order of arrival.
    fn judge(&mut self, offer: &mut Offer<'_>) -> Verdict;

    /// Whether a packet of `bytes` frame bytes in the pool certainly passes, without effects, and without a
    /// change of the judge: a short answer for the common case, after which it is not asked.
    #[inline(always)]
    fn spares(&self, _pool: &Pool, _handle: Handle, _bytes: u32) -> bool {
        false
    }

    /// Which of the next packets it certainly passes, after it has been asked about one at `now`. It is not
    /// asked about these, so it goes on as if they had come.
    #[inline(always)]
    fn foresee(&mut self, _now: Nanos) -> Option<Foresight> {
        None
    }

    /// Goes back: the last `unused` of the packets that it foresaw have not come. A change follows, or a
    /// packet that is not one of them.
    fn recall(&mut self, _unused: u32) {}

    /// Called before new settings at `now`: what it has gathered by then follows the old ones.
    fn settle(&mut self, _now: Nanos) {}

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

/// A function that asks a judge, found in its place `C`, about a packet of so many frame bytes in the pool. A
/// verdict with further effects is recorded.
pub(crate) type PacketJudge<C> = fn(&mut C, &Pool, Handle, Nanos, u32, &mut Affected) -> JudgesVerdict;

/// See [`PacketJudge`]. Compiled for each judge, so that an offer is made only if the judge reads it. Called
/// for packets that it has not foreseen.
pub(crate) fn judge_held<C: Holds<S>, S, J: Judge + OfStage<S>>(
    place: &mut C,
    pool: &Pool,
    handle: Handle,
    now: Nanos,
    bytes: u32,
    affected: &mut Affected,
) -> JudgesVerdict {
    let (held, foreseen) = place.held();
    match held.and_then(J::of) {
        Some(judge) if !judge.spares(pool, handle, bytes) => {
            if foreseen.packets() > 0 {
                judge.recall(foreseen.packets());
                *foreseen = Foresight::NONE;
            }
            let coming = Coming { now, frame: bytes };
            let judged = ask_fully(|offer| judge.judge(offer), pool, handle, coming, affected);
            if let Some(next) = judge.foresee(now) {
                *foreseen = next;
            }
            judged
        }
        _ => JudgesVerdict::Passes,
    }
}

/// Makes an offer of a packet, asks judges about it, and separates its effects from their verdict.
pub(crate) fn ask_fully(
    ask: impl FnOnce(&mut Offer<'_>) -> Verdict,
    pool: &Pool,
    handle: Handle,
    Coming { now, frame }: Coming,
    affected: &mut Affected,
) -> JudgesVerdict {
    let mut offer = Offer::pooled(now, frame, pool, handle);
    let (verdict, effects) = match (ask(&mut offer), offer.into_effects()) {
        (Verdict::Pass, None) => return JudgesVerdict::Passes,
        (Verdict::Drop(reason), None) => return JudgesVerdict::Lost(reason),
        (Verdict::Mark, effects) => (Verdict::Pass, Effects { mark: true, ..effects.unwrap_or_default() }),
        (verdict, Some(effects)) => (verdict, effects),
    };
    *affected = Some((verdict, effects));
    JudgesVerdict::Affected
}
