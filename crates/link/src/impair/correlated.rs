//! Loss in clusters, given by its share and the correlation of successive packets' fates.

use super::chance::Chance;
use crate::judge::Judge;
use longwire_block::{Block, Dice, Offer, Param, ParamKind, Spec, Values, Verdict};

/// Loses a share of the packets, each packet's fate correlated with the one's before.
#[derive(Debug)]
pub struct Correlated {
    chance: Chance,
    on_wire: bool,
    mark: bool,
}

impl Block for Correlated {
    const SPEC: Spec = Spec {
        key: "loss",
        kind: "correlated",
        summary: "Loses a share of the packets, each one's fate correlated with that of the one before.",
        source: "two-state Markov chain; the parameters are those of tc-netem(8), loss random",
        params: &[
            Param {
                name: "probability",
                kind: ParamKind::Probability,
                default: None,
                help: "share of packets lost, 0 % to 100 %",
            },
            Param {
                name: "correlation",
                kind: ParamKind::Probability,
                default: Some("0 %"),
                help: "how much each outcome follows the one before, 0 % to 100 %",
            },
            super::WHERE_PARAM,
            super::ECN_PARAM,
        ],
    };

    fn build(values: &Values, dice: Dice) -> Self {
        let mut block = Self { chance: Chance::new(dice), on_wire: false, mark: false };
        block.change(values);
        block
    }

    fn change(&mut self, values: &Values) {
        self.chance.change(values.probability(0), values.probability(1));
        (self.on_wire, self.mark) = (values.choice(2) == 1, values.choice(3) == 1);
    }
}

impl Judge for Correlated {
    #[inline]
    fn judge(&mut self, offer: &mut Offer<'_>) -> Verdict {
        if self.chance.happens() { super::lose(offer, self.mark) } else { Verdict::Pass }
    }

    fn on_wire(&self) -> bool {
        self.on_wire
    }
}
