//! Clustered loss, defined by its share and the correlation of successive packets.

use super::chance::Chance;
use super::{ECN_PARAM, Place, WHERE_PARAM};
use crate::judge::Judge;
use longwire_block::{Block, Dice, Offer, Verdict};
use longwire_settings::Settings;
use longwire_units::Probability;

/// Loses a share of the packets, with correlation between successive packets.
#[derive(Debug)]
pub struct Correlated {
    chance: Chance,
    on_wire: bool,
    mark: bool,
}

/// Loses a share of the packets; each outcome is correlated with the one before.
#[derive(Debug, Settings)]
#[settings(
    key = "loss",
    kind = "correlated",
    source = "two-state Markov chain; the parameters are those of tc-netem(8), loss random",
    live
)]
pub struct CorrelatedSettings {
    /// share of packets lost, 0 % to 100 %
    probability: Probability,
    /// correlation of each outcome with the one before, 0 % to 100 %
    #[setting(default = "0 %")]
    correlation: Probability,
    #[setting(like = WHERE_PARAM)]
    place: Place,
    #[setting(like = ECN_PARAM)]
    ecn: bool,
}

impl Block for Correlated {
    type Settings = CorrelatedSettings;

    fn build(settings: CorrelatedSettings, dice: Dice) -> Self {
        let mut block = Self { chance: Chance::new(dice), on_wire: false, mark: false };
        block.change(settings);
        block
    }

    fn change(&mut self, settings: CorrelatedSettings) {
        self.chance.change(settings.probability, settings.correlation);
        (self.on_wire, self.mark) = (settings.place == Place::Wire, settings.ecn);
    }
}

impl Judge for Correlated {
    #[inline(always)]
    fn judge(&mut self, offer: &mut Offer<'_>) -> Verdict {
        if self.chance.happens() { super::lose(offer, self.mark) } else { Verdict::Pass }
    }

    fn on_wire(&self) -> bool {
        self.on_wire
    }
}
