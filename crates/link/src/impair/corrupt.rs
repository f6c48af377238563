//! Packets of which some have a few bits flipped, whatever their length.

use super::chance::Chance;
use crate::judge::Judge;
use longwire_block::{Block, Dice, Flips, Offer, Param, ParamKind, Spec, Values, Verdict};

/// Flips a number of bits in some packets. Their checksums are left as they were.
#[derive(Debug)]
pub struct Corrupt {
    chance: Chance,
    bits: u16,
    spare_headers: bool,
    on_wire: bool,
}

impl Block for Corrupt {
    const SPEC: Spec = Spec {
        key: "bit-error",
        kind: "per-packet",
        summary: "Flips bits in some packets, whatever their length.",
        source: "tc-netem(8), corrupt",
        params: &[
            Param {
                name: "probability",
                kind: ParamKind::Probability,
                default: None,
                help: "share of packets that are corrupted",
            },
            Param {
                name: "correlation",
                kind: ParamKind::Probability,
                default: Some("0 %"),
                help: "how much each outcome follows the one before, 0 % to 100 %",
            },
            Param {
                name: "bits",
                kind: ParamKind::Integer { min: 1, max: 65_535 },
                default: Some("1"),
                help: "how many bits of such a packet are flipped, 1 to 65535; never the same twice",
            },
            super::HEADERS_PARAM,
            super::WHERE_PARAM,
        ],
    };

    fn build(values: &Values, dice: Dice) -> Self {
        let chance = Chance::new(dice);
        let mut block = Self { chance, bits: 1, spare_headers: false, on_wire: false };
        block.change(values);
        block
    }

    fn change(&mut self, values: &Values) {
        self.chance.change(values.probability(0), values.probability(1));
        self.bits = values.integer(2) as u16;
        (self.spare_headers, self.on_wire) = (values.choice(3) == 1, values.choice(4) == 1);
    }
}

impl Judge for Corrupt {
    #[inline]
    fn judge(&mut self, offer: &mut Offer<'_>) -> Verdict {
        if self.chance.happens() {
            let (count, spare_headers, seed) = (self.bits, self.spare_headers, self.chance.draw());
            offer.effects().flips = Some(Flips { count, spare_headers, seed });
        }
        Verdict::Pass
    }

    fn on_wire(&self) -> bool {
        self.on_wire
    }
}
