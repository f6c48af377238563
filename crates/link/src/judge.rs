//! The filters and impairments of a link, in order.

use crate::filter::Filter;
use crate::impair::Impair;
use longwire_block::{Offer, Verdict};

/// One filter or impairment.
#[derive(Debug)]
pub(crate) enum Judge {
    Filter(Filter),
    Impair(Impair),
}

impl Judge {
    pub(crate) fn key(&self) -> &'static str {
        match self {
            Self::Filter(filter) => filter.spec().key,
            Self::Impair(impair) => impair.spec().key,
        }
    }

    #[inline]
    fn judge(&mut self, offer: &Offer) -> Verdict {
        match self {
            Self::Filter(filter) => filter.judge(offer),
            Self::Impair(impair) => impair.judge(offer),
        }
    }
}

/// All of a link's judges: most links have none or one, which lies in the link's own record.
#[derive(Debug, Default)]
pub(crate) enum Chain {
    #[default]
    None,
    One(Judge),
    Many(Box<[Judge]>),
}

impl Chain {
    pub(crate) fn new(mut judges: Vec<Judge>) -> Self {
        match judges.len() {
            0 => Self::None,
            1 => judges.pop().map_or(Self::None, Self::One),
            _ => Self::Many(judges.into()),
        }
    }

    pub(crate) fn into_vec(self) -> Vec<Judge> {
        match self {
            Self::None => Vec::new(),
            Self::One(judge) => vec![judge],
            Self::Many(judges) => judges.into(),
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Self::None)
    }

    /// The first verdict that is not to pass.
    #[inline]
    pub(crate) fn judge(&mut self, offer: &Offer) -> Verdict {
        match self {
            Self::None => Verdict::Pass,
            Self::One(judge) => judge.judge(offer),
            Self::Many(judges) => {
                let mut verdicts = judges.iter_mut().map(|judge| judge.judge(offer));
                verdicts.find(|verdict| *verdict != Verdict::Pass).unwrap_or(Verdict::Pass)
            }
        }
    }
}
