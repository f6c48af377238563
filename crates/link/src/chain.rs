//! The filters and impairments of a link, in order: those that judge packets on arrival, and those on the
//! wire.

use crate::fate::{Coming, VerdictWithEffects};
use crate::filter::Filter;
use crate::impair::Impair;
use crate::judge::{JudgesVerdict, PacketJudge, ask_fully};
use crate::stage::Holds;
use longwire_block::{Dice, Offer, Spec, Values, Verdict};
use longwire_packet::{Handle, Pool};
use longwire_units::Nanos;

/// A filter or an impairment.
#[derive(Debug)]
pub(crate) enum AnyJudge {
    Filter(Filter),
    Impair(Impair),
}

impl AnyJudge {
    /// The block for `spec`, if it is a judge.
    pub(crate) fn build(spec: &Spec, values: &Values, dice: impl Fn() -> Dice) -> Option<Self> {
        let filter = Filter::build(spec, values, &dice).map(Self::Filter);
        filter.or_else(|| Impair::build(spec, values, &dice).map(Self::Impair))
    }

    pub(crate) fn spec(&self) -> &'static Spec {
        match self {
            Self::Filter(filter) => filter.spec(),
            Self::Impair(impair) => impair.spec(),
        }
    }

    pub(crate) fn change(&mut self, values: &Values) {
        match self {
            Self::Filter(filter) => filter.change(values),
            Self::Impair(impair) => impair.change(values),
        }
    }

    pub(crate) fn start(&mut self, begin: Nanos) {
        match self {
            Self::Filter(filter) => filter.start(begin),
            Self::Impair(impair) => impair.start(begin),
        }
    }

    pub(crate) fn on_wire(&self) -> bool {
        match self {
            Self::Filter(filter) => filter.on_wire(),
            Self::Impair(impair) => impair.on_wire(),
        }
    }

    pub(crate) fn hastens(&self) -> bool {
        match self {
            Self::Filter(filter) => filter.hastens(),
            Self::Impair(impair) => impair.hastens(),
        }
    }

    pub(crate) fn is_up(&self, now: Nanos) -> bool {
        match self {
            Self::Filter(filter) => filter.is_up(now),
            Self::Impair(_) => true,
        }
    }

    #[inline(always)]
    fn judge(&mut self, offer: &mut Offer<'_>) -> Verdict {
        match self {
            Self::Filter(filter) => filter.judge(offer),
            Self::Impair(impair) => impair.judge(offer),
        }
    }

    /// Filters before impairments, each in registry order, whatever the order in the scenario.
    fn place(&self) -> usize {
        let key = self.spec().key;
        let rows = Filter::SPECS.iter().chain(Impair::SPECS);
        rows.map(|spec| spec.key).position(|other| other == key).unwrap_or(usize::MAX)
    }
}

/// A sequence of judges: most links have at most one, stored in the link's own record.
#[derive(Debug, Default)]
pub(crate) enum Chain {
    #[default]
    None,
    One(AnyJudge),
    Many(Box<[AnyJudge]>),
}

impl Chain {
    pub(crate) fn new(mut judges: Vec<AnyJudge>) -> Self {
        judges.sort_by_key(AnyJudge::place);
        match judges.len() {
            0 => Self::None,
            1 => judges.pop().map_or(Self::None, Self::One),
            _ => Self::Many(judges.into()),
        }
    }

    pub(crate) fn into_vec(self) -> Vec<AnyJudge> {
        match self {
            Self::None => Vec::new(),
            Self::One(judge) => vec![judge],
            Self::Many(judges) => judges.into(),
        }
    }

    pub(crate) fn as_slice(&self) -> &[AnyJudge] {
        match self {
            Self::None => &[],
            Self::One(judge) => std::slice::from_ref(judge),
            Self::Many(judges) => judges,
        }
    }

    #[inline]
    pub(crate) fn as_mut_slice(&mut self) -> &mut [AnyJudge] {
        match self {
            Self::None => &mut [],
            Self::One(judge) => std::slice::from_mut(judge),
            Self::Many(judges) => judges,
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Self::None)
    }

    /// Returns the first drop, else pass; a mark is one of the effects.
    #[inline(never)]
    pub(crate) fn judge(&mut self, offer: &mut Offer<'_>) -> Verdict {
        let judges = self.as_mut_slice();
        for judge in judges {
            match judge.judge(offer) {
                Verdict::Pass => {}
                Verdict::Mark => offer.effects().mark = true,
                dropped @ Verdict::Drop(_) => return dropped,
            }
            if offer.done().is_some_and(|effects| effects.steer.is_some()) {
                break;
            }
        }
        Verdict::Pass
    }

    /// The function that asks them about a packet. A single judge is the usual case.
    pub(crate) fn packet_judge(&self) -> PacketJudge<Self> {
        match self {
            Self::One(AnyJudge::Impair(impair)) => impair.packet_judge(),
            Self::One(AnyJudge::Filter(filter)) => filter.packet_judge(),
            Self::None | Self::Many(_) => judge_in_turn,
        }
    }
}

/// See [`PacketJudge`]: asks all judges of a sequence.
fn judge_in_turn(
    chain: &mut Chain,
    pool: &Pool,
    handle: Handle,
    now: Nanos,
    bytes: u32,
    affected: &mut Option<VerdictWithEffects>,
) -> JudgesVerdict {
    ask_fully(|offer| chain.judge(offer), pool, handle, Coming { now, frame: bytes }, affected)
}

impl Holds<Filter> for Chain {
    #[inline(always)]
    fn held(&mut self) -> Option<&mut Filter> {
        if let Self::One(AnyJudge::Filter(filter)) = self { Some(filter) } else { None }
    }
}

impl Holds<Impair> for Chain {
    #[inline(always)]
    fn held(&mut self) -> Option<&mut Impair> {
        if let Self::One(AnyJudge::Impair(impair)) = self { Some(impair) } else { None }
    }
}

/// Judges and the function that asks them.
#[derive(Debug)]
pub(crate) struct Judges {
    /// In order.
    pub chain: Chain,
    ask: PacketJudge<Chain>,
}

impl Default for Judges {
    fn default() -> Self {
        Self::new(Chain::None)
    }
}

impl Judges {
    pub(crate) fn new(chain: Chain) -> Self {
        Self { ask: chain.packet_judge(), chain }
    }

    /// Asks them about a packet in the pool. Further effects go to `affected`.
    #[inline(always)]
    pub(crate) fn judge_packet(
        &mut self,
        pool: &Pool,
        handle: Handle,
        Coming { now, frame }: Coming,
        affected: &mut Option<VerdictWithEffects>,
    ) -> JudgesVerdict {
        (self.ask)(&mut self.chain, pool, handle, now, frame, affected)
    }
}
