//! Measured delays: a distribution of times.

use super::jitter::{CORRELATION, ORDER};
use super::{Before, Order, OrderWord, Travel};
use longwire_block::{Block, Dice};
use longwire_random::quantile::{Draws, TIMES, Times};
use longwire_settings::Settings;
use longwire_units::{Nanos, Probability};
use std::sync::Arc;

/// Delays each packet by a time drawn from the distribution itself, without a separate mean or jitter.
/// Packets that a dummynet profile loses are lost on the wire, each segment of a train individually.
///
/// Order, correlation and trains are as in [`super::jitter::Jitter`].
#[derive(Debug)]
pub struct Distribution {
    times: Arc<Times>,
    draws: Draws,
    losses: Dice,
    order: Order,
}

/// Delays packets by times drawn from a measured distribution.
#[derive(Debug, Settings)]
#[settings(
    key = "delay",
    kind = "distribution",
    source = "Realizing a Network Emulator System with Intel IXP1200 Network Processor, sections II-B.2 and \
        II-C.1",
    live
)]
pub struct DistributionSettings {
    /// a file of delays, in ms unless they have a unit: samples, points "x, C(x)", or a dummynet profile
    /// (with its loss)
    #[setting(grammar = TIMES)]
    pub distribution: Arc<Times>,
    #[setting(like = CORRELATION)]
    correlation: Probability,
    #[setting(like = ORDER)]
    order: OrderWord,
    #[setting(like = super::BEFORE)]
    _before: Before,
}

impl Block for Distribution {
    type Settings = DistributionSettings;

    fn build(settings: DistributionSettings, mut dice: Dice) -> Self {
        let losses = Dice::seeded(dice.draw());
        let (times, draws) = (Arc::clone(&settings.distribution), Draws::new(dice));
        Self { times, draws, losses, order: Order::Sorted }.with(settings)
    }

    /// Applies new values to packets whose transmission ends from now on.
    fn change(&mut self, settings: DistributionSettings) {
        self.times = settings.distribution;
        self.draws.correlate(settings.correlation);
        self.order = settings.order.into();
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
