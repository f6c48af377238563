//! What makes packets travel this long, in a sentence.

use super::Travel;
use longwire_block::{Block, Dice, Param, ParamKind, Spec, Values};
use longwire_units::Nanos;

/// Delays each packet by a time drawn evenly from a range.
#[derive(Debug)]
pub struct Template {
    least: Nanos,
    spread: Nanos,
    dice: Dice,
}

impl Block for Template {
    const SPEC: Spec = Spec {
        key: "delay",
        kind: "template",
        summary: "Delays each packet by a time drawn evenly from a range.",
        source: "the RFC, paper or measurement that defines it",
        params: &[
            Param {
                name: "least",
                kind: ParamKind::Time { max: Nanos::from_secs(100) },
                default: None,
                help: "shortest delay, 0 to 100 s",
            },
            Param {
                name: "spread",
                kind: ParamKind::Time { max: Nanos::from_secs(100) },
                default: Some("0 ms"),
                help: "how much longer the longest may be, 0 to 100 s",
            },
        ],
    };

    /// What it draws, it draws from the dice and from nothing else.
    fn build(values: &Values, dice: Dice) -> Self {
        Self { least: values.time(0), spread: values.time(1), dice }
    }

    /// Takes new parameters, for packets whose transmission ends from now on; the stream of draws goes on.
    fn change(&mut self, values: &Values) {
        (self.least, self.spread) = (values.time(0), values.time(1));
    }
}

impl Travel for Template {
    /// Draws once for each packet. None leaves before the one sent before it, unless `order` says otherwise.
    #[inline]
    fn travel(&mut self, _: Nanos) -> Nanos {
        self.least + Nanos(self.dice.below(self.spread.0 + 1))
    }

    #[inline]
    fn least(&self) -> Nanos {
        self.least
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_lie_in_the_range() {
        let values = Values::read(&Template::SPEC, &[("least", "5 ms"), ("spread", "2 ms")]).unwrap();
        let mut block = Template::build(&values, Dice::named(1, "test/template"));
        let delays: Vec<Nanos> = (0..1000).map(|_| block.travel(Nanos::ZERO)).collect();
        assert!(delays.iter().all(|d| (Nanos::from_millis(5)..=Nanos::from_millis(7)).contains(d)));
        assert!(delays.iter().any(|d| *d != delays[0]) && block.least() == Nanos::from_millis(5));
    }
}
