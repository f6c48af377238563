//! What makes packets travel this long, in a sentence.

use longwire_block::{Dice, Param, ParamKind, Spec, Value, Values};
use longwire_units::Nanos;

/// Delays each packet by a time drawn evenly from a range.
#[derive(Debug)]
pub struct Template {
    /// Boxed, because a whole link has to fit in four cache lines, and the common delay needs eight bytes of them.
    state: Box<State>,
}

#[derive(Debug)]
struct State {
    least: Nanos,
    spread: Nanos,
    dice: Dice,
}

impl Template {
    /// Its row in the registry.
    pub const SPEC: Spec = Spec {
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

    /// The block with these parameters. What it draws, it draws from the dice and from nothing else.
    pub fn build(values: &Values, dice: Dice) -> Self {
        let state = State { least: Nanos::ZERO, spread: Nanos::ZERO, dice };
        let mut block = Self { state: Box::new(state) };
        block.change(values);
        block
    }

    /// Takes new parameters, for packets whose transmission ends from now on; the stream of draws goes on.
    pub fn change(&mut self, values: &Values) {
        if let (Value::Time(least), Value::Time(spread)) = (values.at(0), values.at(1)) {
            (self.state.least, self.state.spread) = (least, spread);
        }
    }

    /// Draws once for each packet. The link keeps packets in order, whatever the delays are.
    #[inline]
    pub fn travel(&mut self, _: Nanos) -> Nanos {
        let state = &mut *self.state;
        state.least + Nanos(state.dice.below(state.spread.0 + 1))
    }

    /// Not known beforehand.
    #[inline]
    pub fn fixed(&mut self) -> Option<Nanos> {
        None
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
        assert!(delays.iter().any(|d| *d != delays[0]));
    }
}
