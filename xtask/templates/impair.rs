//! What this impairment is like in the world, in a sentence.

use crate::judge::Judge;
use longwire_block::{Block, Dice, Offer, Param, ParamKind, Spec, Values, Verdict};

/// Drops every n-th packet.
#[derive(Debug)]
pub struct Template {
    every: u64,
    seen: u64,
    on_wire: bool,
    mark: bool,
}

impl Block for Template {
    const SPEC: Spec = Spec {
        key: "loss",
        kind: "template",
        summary: "Drops every n-th packet.",
        source: "the RFC, paper or measurement that defines it",
        params: &[
            Param {
                name: "every",
                kind: ParamKind::Integer { min: 1, max: 1_000_000 },
                default: None,
                help: "n, 1 to 1000000",
            },
            super::WHERE_PARAM,
            super::ECN_PARAM,
        ],
    };

    /// What it draws, it draws from the dice and from nothing else.
    fn build(values: &Values, _: Dice) -> Self {
        let mut block = Self { every: 1, seen: 0, on_wire: false, mark: false };
        block.change(values);
        block
    }

    /// Takes new parameters; what it has seen stays.
    fn change(&mut self, values: &Values) {
        self.every = values.integer(0);
        self.on_wire = values.choice(1) == 1;
        self.mark = values.choice(2) == 1;
    }
}

impl Judge for Template {
    /// Drops the packets whose turn it is. What is to happen to others is written into `offer.effects()`.
    #[inline]
    fn judge(&mut self, offer: &mut Offer<'_>) -> Verdict {
        self.seen += 1;
        if self.seen.is_multiple_of(self.every) { super::lose(offer, self.mark) } else { Verdict::Pass }
    }

    fn on_wire(&self) -> bool {
        self.on_wire
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_units::Nanos;

    #[test]
    fn every_third_is_dropped() {
        let values = Values::read(&Template::SPEC, &[("every", "3")]).unwrap();
        let mut block = Template::build(&values, Dice::named(1, "test/template"));
        let mut offer = Offer::new(Nanos::ZERO, 1500, &[]);
        let dropped: Vec<bool> = (0..6).map(|_| block.judge(&mut offer) != Verdict::Pass).collect();
        assert_eq!(dropped, [false, false, true, false, false, true]);
    }
}
