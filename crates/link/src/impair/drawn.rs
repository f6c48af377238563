//! Loss with a probability drawn for each packet.

use super::foreseen::Process;
use super::lossy::{Loss, Lossy};
use super::{ECN_PARAM, Place, WHERE_PARAM};
use longwire_block::Dice;
use longwire_random::quantile::{CHANCES, Chances};
use longwire_settings::Settings;
use std::sync::Arc;

/// Draws a probability from a distribution for each packet, and loses the packet with it. Over many packets
/// the share lost is the distribution's mean; the distribution only varies the risk of individual packets.
pub type Drawn = Lossy<Draws>;

/// The process of [`Drawn`].
#[derive(Debug, Clone)]
pub struct Draws {
    chances: Option<Arc<Chances>>,
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

impl Loss for Draws {
    type Settings = DrawnSettings;

    fn new(dice: Dice) -> Self {
        Self { chances: None, dice }
    }

    fn change(&mut self, settings: DrawnSettings) -> (Place, bool) {
        self.chances = Some(settings.distribution);
        (settings.place, settings.ecn)
    }
}

impl Process for Draws {
    /// Draws twice for each packet: the probability, and the loss.
    #[inline]
    fn strikes(&mut self) -> bool {
        let Some(chances) = &self.chances else { return false };
        let probability = chances.at(self.dice.draw());
        probability.happens(self.dice.draw())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::Judge;
    use longwire_block::{Block, Offer, Verdict};
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
