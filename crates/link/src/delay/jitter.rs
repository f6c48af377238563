//! Delays that vary around a mean.

use super::{Before, Order, OrderWord, Travel};
use longwire_block::{Block, Dice, Fallback, Param, ParamKind};
use longwire_random::quantile::{Draws, SHAPE, Shape};
use longwire_settings::{Choice, Settings};
use longwire_units::{Nanos, Probability};
use std::collections::VecDeque;
use std::sync::Arc;

/// Delays each packet by T + J·x, where T is `delay`, J `jitter` and x is drawn from the distribution; by 0
/// if that is negative.
///
/// The cut at 0 adds to the mean: for a normal distribution with T = J it becomes 1.083·T, with T = 2·J
/// 1.0042·T; with T = 4·J nothing is cut. With `order = "keep"` packets leave in the order in which they were
/// sent, at the sorted times T + J·x after transmission: the mean stays T, but under load the spread shrinks,
/// because early packets exchange times with late ones. With `order = "reorder"` each packet keeps its own
/// time and overtakes.
///
/// Consecutive delays with a `correlation` of ρ are equal with the probability ρ: see [`Draws`] for the
/// difference to netem. The segments of a train have individual delays.
#[derive(Debug)]
pub struct Jitter {
    delay: Nanos,
    jitter: Nanos,
    least: Nanos,
    shape: Arc<Shape>,
    draws: Draws,
    order: Order,
    /// Parameters before changes, the oldest first, while packets sent under them are in flight.
    past: VecDeque<Past>,
}

/// Previous parameters with packets in flight.
///
/// Sorted packets leave early because later ones lend them shorter times. Times lent under new parameters
/// must not be shorter than under these, until the last of those packets has left.
#[derive(Debug)]
struct Past {
    until: Nanos,
    delay: Nanos,
    jitter: Nanos,
    shape: Arc<Shape>,
}

/// Shared parameters of delays with a distribution: correlation of consecutive ones, and order of packets.
pub(super) const CORRELATION: Param = Param {
    name: "correlation",
    kind: ParamKind::Probability,
    default: Fallback::Value("0 %"),
    help: "autocorrelation of consecutive delays, 0 to 100 %: the share of delays that repeat the one before",
    live: true,
};
pub(super) const ORDER: Param = Param {
    name: "order",
    kind: ParamKind::Choice(OrderWord::WORDS),
    default: Fallback::Value("keep"),
    help: "keep: packets leave in order, at the sorted times, with the same mean; reorder: each at its own \
        time",
    live: true,
};

/// Delays packets by times that vary around a mean.
#[derive(Debug, Settings)]
#[settings(
    key = "delay",
    kind = "jitter",
    source = "Realizing a Network Emulator System with Intel IXP1200 Network Processor, sections II-B.2 and \
        II-C.1",
    live
)]
pub struct JitterSettings {
    /// mean one-way delay, 0 to 100 s
    #[setting(max = Nanos::from_secs(100))]
    pub delay: Nanos,
    /// factor of the distribution, 0 to 100 s: uniform goes up to it on either side, for the others it is the
    /// standard deviation (pareto has 0.83 of it, pareto-normal 0.84, as in tc-netem's tables); a negative
    /// delay becomes 0
    #[setting(max = Nanos::from_secs(100))]
    pub jitter: Nanos,
    /// uniform, normal, pareto, pareto-normal, exponential, log-normal, gamma, or a file: a netem table, or
    /// samples, points "x, C(x)" or a dummynet profile, normalized to mean 0 and standard deviation 1
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
        let (zero, shape, draws) = (Nanos::ZERO, Arc::clone(&settings.distribution), Draws::new(dice));
        let (order, past) = (Order::Sorted, VecDeque::new());
        Self { delay: zero, jitter: zero, least: zero, shape, draws, order, past }.with(settings)
    }

    /// Applies new values to packets whose transmission ends from now on.
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
    /// The delay at the probability `draw`/2⁶⁴, monotonic in `draw`.
    #[inline]
    fn at(&self, draw: u64) -> Nanos {
        at(&self.shape, (self.delay, self.jitter), draw)
    }

    /// The delay for a draw, increased as required for packets sent before the last changes.
    #[cold]
    fn at_first(&mut self, finish: Nanos, draw: u64) -> Nanos {
        while self.past.front().is_some_and(|past| past.until <= finish) {
            self.past.pop_front();
        }
        // After a move before or behind the queue, a later entry may have ended earlier.
        let left = |past: &Past| past.until.since(finish);
        let lent = |past: &Past| at(&past.shape, (past.delay, past.jitter), draw).min(left(past));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delay::Delay;
    use crate::{LinkConfig, Links, registry};
    use longwire_block::Values;
    use longwire_packet::Pool;

    #[test]
    fn an_idle_link_keeps_no_former_values() {
        let spec = registry().into_iter().find(|spec| (spec.key, spec.kind) == ("delay", "jitter")).unwrap();
        let values = |jitter: &str| Values::read(spec, &[("delay", "9 ms"), ("jitter", jitter)]).unwrap();
        let mut links = Links::with_capacity(1, 1, Nanos::ZERO);
        links.add(0, "test", &LinkConfig::default().with(spec, values("1 ms")));
        let mut pool = Pool::new(1 << 20).unwrap();
        for jitter in ["2 ms", "3 ms", "4 ms"] {
            links.change(&mut pool, 0, Nanos::from_secs(1), &[(spec, values(jitter))]).unwrap();
        }
        let Some(Delay::Jitter(jitter)) = links.links[0].known_blocks().map(|blocks| &blocks.delay) else {
            panic!("there is no jitter");
        };
        assert!(jitter.past.is_empty(), "{:?}", jitter.past);
    }
}
