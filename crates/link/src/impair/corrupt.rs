//! Packets with a few flipped bits, regardless of length.

use super::chance::Chance;
use super::foreseen::Foreseen;
use super::{HEADERS_PARAM, Headers, Place, WHERE_PARAM};
use crate::foresight::Foresight;
use crate::judge::Judge;
use longwire_block::{Block, Dice, Flips, Offer, Verdict};
use longwire_settings::Settings;
use longwire_units::{Nanos, Probability};

/// Flips a number of bits in some packets. Their checksums are not updated.
#[derive(Debug)]
pub struct Corrupt {
    chance: Foreseen<Chance>,
    bits: u16,
    spare_headers: bool,
    on_wire: bool,
}

/// Flips bits in some packets, whatever their length.
#[derive(Debug, Settings)]
#[settings(key = "bit-error", kind = "per-packet", source = "tc-netem(8), corrupt", live)]
pub struct CorruptSettings {
    /// share of packets that are corrupted
    probability: Probability,
    /// correlation of each outcome with the one before, 0 % to 100 %
    #[setting(default = "0 %")]
    correlation: Probability,
    /// how many different bits of such a packet are flipped, 1 to 65535
    #[setting(default = "1", min = 1, max = 65_535)]
    bits: u64,
    #[setting(like = HEADERS_PARAM)]
    headers: Headers,
    #[setting(like = WHERE_PARAM)]
    place: Place,
}

impl Block for Corrupt {
    type Settings = CorruptSettings;

    fn build(settings: CorruptSettings, dice: Dice) -> Self {
        let chance = Foreseen::new(Chance::new(dice));
        Self { chance, bits: 1, spare_headers: false, on_wire: false }.with(settings)
    }

    fn change(&mut self, settings: CorruptSettings) {
        self.chance.process().change(settings.probability, settings.correlation);
        self.bits = settings.bits as u16;
        (self.spare_headers, self.on_wire) =
            (settings.headers == Headers::Spare, settings.place == Place::Wire);
    }
}

impl Judge for Corrupt {
    #[inline(always)]
    fn judge(&mut self, offer: &mut Offer<'_>) -> Verdict {
        if self.chance.strikes() {
            let (count, spare_headers, seed) = (self.bits, self.spare_headers, self.chance.process().draw());
            offer.effects().flips = Some(Flips { count, spare_headers, seed });
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
