//! Packets that arrive twice.

use super::chance::Chance;
use crate::judge::Judge;
use longwire_block::{Block, Dice, Offer, Param, ParamKind, Spec, Values, Verdict};
use longwire_units::Nanos;

/// Sends a copy of some packets: on the wire, with a delay of its own besides the link's, or before the queue, so that it
/// waits and takes its time to be sent like any other packet.
#[derive(Debug)]
pub struct Duplicate {
    chance: Chance,
    delay: Nanos,
    on_wire: bool,
}

impl Block for Duplicate {
    const SPEC: Spec = Spec {
        key: "duplicate",
        kind: "independent",
        summary: "Sends a copy of some packets.",
        source: "tc-netem(8), duplicate; RFC 2680, section 2.8 (duplicates are counted apart)",
        params: &[
            Param {
                name: "probability",
                kind: ParamKind::Probability,
                default: None,
                help: "share of packets of which a copy is sent",
            },
            Param {
                name: "correlation",
                kind: ParamKind::Probability,
                default: Some("0 %"),
                help: "how much each outcome follows the one before, 0 % to 100 %",
            },
            Param {
                name: "delay",
                kind: ParamKind::Time { max: Nanos::from_secs(100) },
                default: Some("0 ms"),
                help: "how much longer than its packet a copy travels, 0 to 100 s; on the wire only",
            },
            Param { default: Some("wire"), ..super::WHERE_PARAM },
        ],
    };

    fn build(values: &Values, dice: Dice) -> Self {
        let mut block = Self { chance: Chance::new(dice), delay: Nanos::ZERO, on_wire: true };
        block.change(values);
        block
    }

    fn change(&mut self, values: &Values) {
        self.chance.change(values.probability(0), values.probability(1));
        (self.delay, self.on_wire) = (values.time(2), values.choice(3) == 1);
    }
}

impl Judge for Duplicate {
    #[inline]
    fn judge(&mut self, offer: &mut Offer<'_>) -> Verdict {
        if self.chance.happens() {
            offer.effects().copy = Some(self.delay);
        }
        Verdict::Pass
    }

    fn on_wire(&self) -> bool {
        self.on_wire
    }
}
