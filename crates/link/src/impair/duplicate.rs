//! Packets that arrive twice.

use super::chance::Chance;
use super::foreseen::Foreseen;
use super::{Place, WHERE_PARAM};
use crate::foresight::Foresight;
use crate::judge::Judge;
use longwire_block::{Block, Dice, Offer, Verdict};
use longwire_settings::Settings;
use longwire_units::{Nanos, Probability};

/// Sends a copy of some packets: on the wire, with a delay in addition to the link's, or before the queue, so
/// that it waits and is transmitted like any other packet.
#[derive(Debug)]
pub struct Duplicate {
    chance: Foreseen<Chance>,
    delay: Nanos,
    on_wire: bool,
}

/// Duplicates some packets.
#[derive(Debug, Settings)]
#[settings(
    key = "duplicate",
    kind = "independent",
    source = "tc-netem(8), duplicate; RFC 2680, section 2.8 (duplicates are counted apart)",
    live
)]
pub struct DuplicateSettings {
    /// share of packets that are duplicated
    pub probability: Probability,
    /// correlation of each outcome with the one before, 0 % to 100 %
    #[setting(default = "0 %")]
    correlation: Probability,
    /// extra delay of the copy, 0 to 100 s; on the wire only
    #[setting(default = "0 ms", max = Nanos::from_secs(100))]
    pub delay: Nanos,
    #[setting(like = WHERE_PARAM, default = "wire")]
    place: Place,
}

impl Block for Duplicate {
    type Settings = DuplicateSettings;

    fn build(settings: DuplicateSettings, dice: Dice) -> Self {
        let chance = Foreseen::new(Chance::new(dice));
        Self { chance, delay: Nanos::ZERO, on_wire: true }.with(settings)
    }

    fn change(&mut self, settings: DuplicateSettings) {
        self.chance.process().change(settings.probability, settings.correlation);
        (self.delay, self.on_wire) = (settings.delay, settings.place == Place::Wire);
    }
}

impl Judge for Duplicate {
    #[inline(always)]
    fn judge(&mut self, offer: &mut Offer<'_>) -> Verdict {
        if self.chance.strikes() {
            offer.effects().copy = Some(self.delay);
        }
        Verdict::Pass
    }

    #[inline(always)]
    fn foresee(&mut self, _: Nanos) -> Option<Foresight> {
        self.chance.foresee()
    }

    fn recall(&mut self, unused: u32) {
        self.chance.recall(unused);
    }

    fn on_wire(&self) -> bool {
        self.on_wire
    }
}
