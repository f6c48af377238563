//! Delays as they were measured: a distribution of times.

use super::jitter::{CORRELATION, ORDER, order};
use super::{Order, Travel};
use longwire_block::{Block, Dice, Param, ParamKind, Spec, Values};
use longwire_random::quantile::{Draws, TIMES, Times};
use longwire_units::{Nanos, Probability};
use std::sync::Arc;

/// Delays each packet by a time drawn from the distribution itself, without a mean or a jitter of its own. What a dummynet
/// profile loses is lost on the wire, each segment of a train by itself.
///
/// Order, correlation and trains are as [`super::jitter::Jitter`] has them.
#[derive(Debug)]
pub struct Distribution {
    times: Arc<Times>,
    draws: Draws,
    losses: Dice,
    order: Order,
}

impl Block for Distribution {
    const SPEC: Spec = Spec {
        key: "delay",
        kind: "distribution",
        summary: "Delays packets by times drawn from measured ones.",
        source: "Realizing a Network Emulator System with Intel IXP1200 Network Processor, sections II-B.2 and II-C.1",
        params: &[
            Param {
                name: "distribution",
                kind: ParamKind::Parsed(TIMES),
                default: None,
                help: "a file of delays, in ms where they have no unit: samples, points \"x, C(x)\", or a dummynet \
                       profile (with its loss)",
            },
            CORRELATION,
            ORDER,
            super::BEFORE,
        ],
    };

    fn build(values: &Values, mut dice: Dice) -> Self {
        let losses = Dice::seeded(dice.draw());
        let mut block = Self {
            times: Arc::new(Times::always(Nanos::ZERO)),
            draws: Draws::new(dice),
            losses,
            order: Order::Sorted,
        };
        block.change(values);
        block
    }

    /// Takes new values for packets whose transmission ends from now on.
    fn change(&mut self, values: &Values) {
        if let Some(times) = values.parsed(0) {
            self.times = times;
        }
        self.draws.correlate(values.probability(1));
        self.order = order(values, 2);
    }
}

impl Travel for Distribution {
    #[inline]
    fn travel(&mut self, _: Nanos) -> Nanos {
        self.times.at(self.draws.draw())
    }

    #[inline]
    fn least(&self) -> Nanos {
        self.times.ends().0
    }

    #[inline]
    fn order(&mut self) -> Order {
        self.order
    }

    fn may_lose(&self) -> bool {
        self.times.lost_share() != Probability::ZERO
    }

    #[inline]
    fn loses(&mut self) -> bool {
        self.times.lost_share().happens(self.losses.draw())
    }
}
