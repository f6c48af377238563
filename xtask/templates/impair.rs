//! What this impairment is like in the world, in a sentence.

use longwire_block::{Dice, DropReason, Offer, Param, ParamKind, Spec, Value, Values, Verdict};

/// Drops every n-th packet.
#[derive(Debug)]
pub struct Template {
    every: u64,
    seen: u64,
}

impl Template {
    /// Its row in the registry.
    pub const SPEC: Spec = Spec {
        key: "loss",
        kind: "template",
        summary: "Drops every n-th packet.",
        source: "the RFC, paper or measurement that defines it",
        params: &[Param {
            name: "every",
            kind: ParamKind::Integer { min: 1, max: 1_000_000 },
            default: None,
            help: "n, 1 to 1000000",
        }],
    };

    /// The block with these parameters. What it draws, it draws from the dice and from nothing else.
    pub fn build(values: &Values, _: Dice) -> Self {
        let mut block = Self { every: 1, seen: 0 };
        block.change(values);
        block
    }

    /// Takes new parameters; what it has seen stays.
    pub fn change(&mut self, values: &Values) {
        if let Value::Integer(every) = values.at(0) {
            self.every = every;
        }
    }

    /// Drops the packets whose turn it is.
    #[inline]
    pub fn judge(&mut self, _: &Offer) -> Verdict {
        self.seen += 1;
        if self.seen.is_multiple_of(self.every) { Verdict::Drop(DropReason::Loss) } else { Verdict::Pass }
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
        let offer = Offer { now: Nanos::ZERO, bytes: 1500 };
        let dropped: Vec<bool> = (0..6).map(|_| block.judge(&offer) != Verdict::Pass).collect();
        assert_eq!(dropped, [false, false, true, false, false, true]);
    }
}
