//! Clustered loss, defined by its share and the correlation of successive packets.

use super::chance::Chance;
use super::lossy::{Loss, Lossy};
use super::{ECN_PARAM, Place, WHERE_PARAM};
use longwire_block::Dice;
use longwire_settings::Settings;
use longwire_units::Probability;

/// Loses a share of the packets, with correlation between successive packets.
pub type Correlated = Lossy<Chance>;

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

impl Loss for Chance {
    type Settings = CorrelatedSettings;

    fn new(dice: Dice) -> Self {
        Self::new(dice)
    }

    fn change(&mut self, settings: CorrelatedSettings) -> (Place, bool) {
        self.change(settings.probability, settings.correlation);
        (settings.place, settings.ecn)
    }
}
