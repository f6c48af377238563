//! Loss with a probability drawn for each packet.

use super::{ECN_PARAM, Place, WHERE_PARAM};
use crate::judge::Judge;
use longwire_block::{Block, Dice, Offer, Verdict};
use longwire_random::quantile::{CHANCES, Chances};
use longwire_settings::Settings;
use std::sync::Arc;

/// Draws a probability from a distribution for each packet, and loses the packet with it. Over many packets
/// the share lost is the distribution's mean; the distribution only varies the risk of individual packets.
#[derive(Debug)]
pub struct Drawn {
    chances: Option<Arc<Chances>>,
    on_wire: bool,
    mark: bool,
    dice: Dice,
}

/// Loses each packet with a probability drawn from a distribution.
#[derive(Debug, Settings)]
#[settings(
    key = "loss",
    kind = "drawn",
    source = "Realizing a network emulator system with Intel IXP1200 network processor, sections II-B.1 and \
        II-C.1",
    live
)]
pub struct DrawnSettings {
    /// of the probability: a table of x and C(x), or samples of x, with x from 0 to 1
    #[setting(grammar = CHANCES)]
    distribution: Arc<Chances>,
    #[setting(like = WHERE_PARAM)]
    place: Place,
    #[setting(like = ECN_PARAM)]
    ecn: bool,
}

impl Block for Drawn {
    type Settings = DrawnSettings;

    fn build(settings: DrawnSettings, dice: Dice) -> Self {
        let mut block = Self { chances: None, on_wire: false, mark: false, dice };
        block.change(settings);
        block
    }

    fn change(&mut self, settings: DrawnSettings) {
        self.chances = Some(settings.distribution);
        (self.on_wire, self.mark) = (settings.place == Place::Wire, settings.ecn);
    }
}

impl Judge for Drawn {
    /// Draws twice for each packet: the probability, and the loss.
    #[inline(always)]
    fn judge(&mut self, offer: &mut Offer<'_>) -> Verdict {
        let Some(chances) = &self.chances else { return Verdict::Pass };
        let probability = chances.at(self.dice.draw());
        if probability.happens(self.dice.draw()) { super::lose(offer, self.mark) } else { Verdict::Pass }
    }

    fn on_wire(&self) -> bool {
        self.on_wire
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_units::Nanos;

    /// A probability uniform from 0 to 10 % loses 5 % of 200 000 packets, within four deviations √(np(1 −
    /// p)).
    #[test]
    fn loses_the_mean_of_the_distribution() {
        let values = DrawnSettings::read(&[("distribution", "0 0; 0.1 1")]).unwrap();
        let mut block = Drawn::build(values, Dice::named(1, "test/loss"));
        let (n, p) = (200_000u32, 0.05f64);
        let mut offer = Offer::new(Nanos::ZERO, 1500, &[]);
        let lost = (0..n).filter(|_| block.judge(&mut offer) != Verdict::Pass).count();
        let deviation = (f64::from(n) * p * (1.0 - p)).sqrt();
        assert!((lost as f64 - f64::from(n) * p).abs() < 4.0 * deviation, "{lost}");
    }
}
