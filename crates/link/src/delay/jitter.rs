//! Delays that vary around a mean.

use super::{Before, Order, OrderWord, Travel};
use longwire_block::{Block, Dice, Param, ParamKind};
use longwire_random::quantile::{Draws, SHAPE, Shape};
use longwire_settings::{Choice, Settings};
use longwire_units::{Nanos, Probability};
use std::collections::VecDeque;
use std::sync::Arc;

/// Delays each packet by T + J·x, T being `delay`, J `jitter` and x drawn from the distribution; by 0 where
/// that is negative.
///
/// What is cut off at 0 adds to the mean: for a normal distribution with T = J it becomes 1.083·T, with T =
/// 2·J 1.0042·T; with T = 4·J nothing is cut. With `order = "keep"` packets leave in the order in which they
/// were sent, at the times T + J·x after they were sent, sorted: the mean stays T, but under load the spread
/// shrinks, since early packets change places with late ones. With `order = "reorder"` each packet keeps its
/// own time and overtakes.
///
/// Consecutive delays with a `correlation` of ρ are, with the probability ρ, the same: see [`Draws`] for how
/// that differs from netem. The segments of a train have a delay each.
#[derive(Debug)]
pub struct Jitter {
    delay: Nanos,
    jitter: Nanos,
    least: Nanos,
    shape: Arc<Shape>,
    draws: Draws,
    order: Order,
    /// What it was before changes, the oldest first, while packets that were sent under it are on their way.
    past: VecDeque<Past>,
}

/// Parameters that packets on their way were sent under.
///
/// Sorted packets leave as early as they do because later ones lend them shorter times. Those lent under new
/// parameters must not be shorter than they would have been under these, until the last of those packets has
/// left.
#[derive(Debug)]
struct Past {
    until: Nanos,
    delay: Nanos,
    jitter: Nanos,
    shape: Arc<Shape>,
}

/// Parameters that delays with a distribution have in common: how consecutive ones depend on each other, and
/// what becomes of the packets' order.
pub(super) const CORRELATION: Param = Param {
    name: "correlation",
    kind: ParamKind::Probability,
    default: Some("0 %"),
    help: "autocorrelation of consecutive delays, 0 to 100 %: so often is one the same as the one before",
};
pub(super) const ORDER: Param = Param {
    name: "order",
    kind: ParamKind::Choice(OrderWord::WORDS),
    default: Some("keep"),
    help: "keep: packets leave in order, at the sorted times, with the same mean; reorder: each at its own time",
};

/// Delays packets by times that vary around a mean.
#[derive(Debug, Settings)]
#[settings(
    key = "delay",
    kind = "jitter",
    source = "Realizing a Network Emulator System with Intel IXP1200 Network Processor, sections II-B.2 and II-C.1"
)]
pub struct JitterSettings {
    /// mean one-way delay, 0 to 100 s
    #[setting(max = Nanos::from_secs(100))]
    pub delay: Nanos,
    /// what the distribution is multiplied by, 0 to 100 s: uniform reaches so far to either side, for the
    /// others it is the standard deviation (of pareto 0.83 and pareto-normal 0.84 of it, as their tables in
    /// tc-netem have it); a delay below 0 becomes 0
    #[setting(max = Nanos::from_secs(100))]
    pub jitter: Nanos,
    /// uniform, normal, pareto, pareto-normal, exponential, log-normal, gamma, or a file: a netem table, or
    /// samples, points "x, C(x)" or a dummynet profile, brought to mean 0 and deviation 1
    #[setting(default = "uniform", grammar = SHAPE)]
    pub distribution: Arc<Shape>,
    #[setting(like = CORRELATION)]
    correlation: Probability,
    #[setting(like = ORDER)]
    order: OrderWord,
    #[setting(like = super::BEFORE)]
    _before: Before,
}

impl Block for Jitter {
    type Settings = JitterSettings;

    fn build(settings: JitterSettings, dice: Dice) -> Self {
        let mut block = Self {
            delay: Nanos::ZERO,
            jitter: Nanos::ZERO,
            least: Nanos::ZERO,
            shape: Shape::uniform(),
            draws: Draws::new(dice),
            order: Order::Sorted,
            past: VecDeque::new(),
        };
        block.change(settings);
        block
    }

    /// Takes new values for packets whose transmission ends from now on.
    fn change(&mut self, settings: JitterSettings) {
        (self.delay, self.jitter) = (settings.delay, settings.jitter);
        self.shape = settings.distribution;
        self.least = self.at(0);
        self.draws.correlate(settings.correlation);
        self.order = settings.order.into();
        if self.order != Order::Sorted {
            self.past.clear();
        }
    }
}

impl Jitter {
    /// The delay at the probability `draw`/2⁶⁴: it never falls as that rises.
    #[inline]
    fn at(&self, draw: u64) -> Nanos {
        at(&self.shape, (self.delay, self.jitter), draw)
    }

    /// The same, or as much more as what was sent before the last changes needs.
    #[cold]
    fn at_first(&mut self, finish: Nanos, draw: u64) -> Nanos {
        while self.past.front().is_some_and(|past| past.until <= finish) {
            self.past.pop_front();
        }
        let lent = |past: &Past| at(&past.shape, (past.delay, past.jitter), draw).min(past.until - finish);
        self.past.iter().map(lent).fold(self.at(draw), Nanos::max)
    }
}

#[inline]
fn at(shape: &Shape, (delay, jitter): (Nanos, Nanos), draw: u64) -> Nanos {
    Nanos(delay.0.saturating_add_signed(shape.offset(draw, jitter)))
}

impl Travel for Jitter {
    #[inline]
    fn travel(&mut self, finish: Nanos) -> Nanos {
        let draw = self.draws.draw();
        if self.past.is_empty() { self.at(draw) } else { self.at_first(finish, draw) }
    }

    #[inline]
    fn least(&self) -> Nanos {
        self.least
    }

    #[inline]
    fn order(&mut self) -> Order {
        self.order
    }

    fn hand_over(&mut self, until: Nanos) -> bool {
        if self.order == Order::Sorted {
            let (delay, jitter, shape) = (self.delay, self.jitter, Arc::clone(&self.shape));
            let covered = |past: &mut Past| {
                past.delay <= delay && past.jitter == jitter && Arc::ptr_eq(&past.shape, &shape)
            };
            while self.past.pop_back_if(covered).is_some() {}
            self.past.push_back(Past { until, delay, jitter, shape });
        }
        self.order == Order::Sorted
    }
}
