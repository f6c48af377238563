//! The filters and impairments of a link, in order: those that judge packets on arrival, and those on the
//! wire.

use crate::filter::Filter;
use crate::impair::Impair;
use longwire_block::{Dice, Offer, Spec, Values, Verdict};
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
                Verdict::Mark => _ = mark(offer),
                dropped @ Verdict::Drop(_) => return dropped,
            }
            if offer.done().is_some_and(|effects| effects.steer.is_some()) {
                break;
            }
        }
        Verdict::Pass
    }

    /// The variant for the packet path, where a single impairment is the usual case.
    #[inline(always)]
    pub(crate) fn judge_one(&mut self, offer: &mut Offer<'_>) -> Verdict {
        let verdict = match self {
            Self::One(AnyJudge::Impair(impair)) => impair.judge(offer),
            Self::One(AnyJudge::Filter(filter)) => filter.judge(offer),
            _ => return self.judge(offer),
        };
        match verdict {
            Verdict::Mark => mark(offer),
            verdict => verdict,
        }
    }
}

#[inline(never)]
fn mark(offer: &mut Offer<'_>) -> Verdict {
    offer.effects().mark = true;
    Verdict::Pass
}
