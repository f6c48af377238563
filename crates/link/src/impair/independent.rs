//! Independent loss with the same probability for each packet.

use super::{ECN_PARAM, Place, WHERE_PARAM};
use crate::judge::Judge;
use longwire_block::{Block, Dice, Offer, Verdict};
use longwire_settings::Settings;
use longwire_units::Probability;

/// Drops each packet with the same probability, drawn before the queue as in LinkEM, or on the wire.
#[derive(Debug)]
pub struct Independent {
    probability: Probability,
    dice: Dice,
    on_wire: bool,
    mark: bool,
}

/// Loses each packet with the same probability.
#[derive(Debug, Settings)]
#[settings(
    key = "loss",
    kind = "independent",
    source = "High capacity network link emulation using network processors, section 4.2.1",
    live
)]
pub struct IndependentSettings {
    /// share of packets lost, 0 % to 100 %
    probability: Probability,
    #[setting(like = WHERE_PARAM)]
    place: Place,
    #[setting(like = ECN_PARAM)]
    ecn: bool,
}

impl Block for Independent {
    type Settings = IndependentSettings;

    fn build(settings: IndependentSettings, dice: Dice) -> Self {
        Self::new(Probability::ZERO, dice).with(settings)
    }

    fn change(&mut self, settings: IndependentSettings) {
        self.probability = settings.probability;
        self.on_wire = settings.place == Place::Wire;
        self.mark = settings.ecn;
    }
}

impl Independent {
    /// A block that drops packets before the queue.
    pub(crate) fn new(probability: Probability, dice: Dice) -> Self {
        Self { probability, dice, on_wire: false, mark: false }
    }

    /// Whether it strikes the next packet. Draws once for each, even at 0 %, so that a change of probability
    /// does not shift later draws.
    #[inline(always)]
    fn strikes(&mut self) -> bool {
        self.probability.happens(self.dice.draw())
    }

    /// Draws for as many packets, if none of them is struck. If one is, nothing has been drawn.
    pub(crate) fn spares(&mut self, packets: u16) -> bool {
        let mut ahead = self.dice.clone();
        let spares = (0..packets).all(|_| !self.probability.happens(ahead.draw()));
        if spares {
            self.dice = ahead;
        }
        spares
    }

    /// The probability of a drop, if that is its only effect.
    pub(crate) fn drops(&self) -> Option<Probability> {
        (!self.mark).then_some(self.probability)
    }

    /// Its dice.
    pub(crate) fn dice(&mut self) -> &mut Dice {
        &mut self.dice
    }
}

impl Judge for Independent {
    #[inline(always)]
    fn judge(&mut self, offer: &mut Offer<'_>) -> Verdict {
        if self.strikes() { super::lose(offer, self.mark) } else { Verdict::Pass }
    }

    fn on_wire(&self) -> bool {
        self.on_wire
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_units::Nanos;

    fn losses(text: &str, packets: u32) -> Vec<bool> {
        let values = IndependentSettings::read(&[("probability", text)]).unwrap();
        let mut loss = Independent::build(values, Dice::named(1, "test/loss"));
        let mut offer = Offer::new(Nanos::ZERO, 1500, &[]);
        (0..packets).map(|_| loss.judge(&mut offer) != Verdict::Pass).collect()
    }

    /// The LinkEM thesis' table 5.6: 120 000 packets at 1, 3, 7 and 10 %, within the 99 % binomial interval.
    #[test]
    fn observed_loss_lies_in_the_binomial_interval() {
        for (text, p) in [("1 %", 0.01), ("3 %", 0.03), ("7 %", 0.07), ("10 %", 0.10)] {
            let n = 120_000f64;
            let lost = losses(text, 120_000).iter().filter(|&&lost| lost).count() as f64;
            let half_width = 2.576 * (n * p * (1.0 - p)).sqrt();
            assert!((lost - n * p).abs() < half_width, "{text}: {lost}");
        }
    }

    /// Independence: the mean run of losses is 1/(1 − p).
    #[test]
    fn losses_do_not_cluster() {
        let lost = losses("10 %", 120_000);
        let total = lost.iter().filter(|&&l| l).count() as f64;
        let runs = lost.windows(2).filter(|w| !w[0] && w[1]).count() as f64;
        // Variance of the mean run length is p/(1 − p)² / runs.
        let deviation = (0.1f64 / 0.81 / runs).sqrt();
        assert!((total / runs - 1.0 / 0.9).abs() < 3.0 * deviation, "{}", total / runs);
    }

    #[test]
    fn none_and_all() {
        assert!(losses("0 %", 1000).iter().all(|&l| !l));
        assert!(losses("100 %", 1000).iter().all(|&l| l));
    }
}
