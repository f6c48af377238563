//! What this filter keeps off the link, in a sentence.

use longwire_block::{Dice, DropReason, Offer, Param, ParamKind, Spec, Value, Values, Verdict};

/// Drops frames that are longer than a limit.
#[derive(Debug)]
pub struct Template {
    longest: u64,
}

impl Template {
    /// Its row in the registry.
    pub const SPEC: Spec = Spec {
        key: "template",
        kind: "template",
        summary: "Drops frames that are longer than a limit.",
        source: "the RFC, paper or measurement that defines it",
        params: &[Param {
            name: "longest",
            kind: ParamKind::Integer { min: 60, max: 65_535 },
            default: None,
            help: "longest frame in bytes without FCS, 60 to 65535",
        }],
    };

    /// The block with these parameters. What it draws, it draws from the dice and from nothing else.
    pub fn build(values: &Values, _: Dice) -> Self {
        let mut block = Self { longest: 0 };
        block.change(values);
        block
    }

    /// Takes new parameters.
    pub fn change(&mut self, values: &Values) {
        if let Value::Integer(longest) = values.at(0) {
            self.longest = longest;
        }
    }

    /// Drops what is too long. A reason of its own is one more line in `crates/block/src/drop.rs`.
    #[inline]
    pub fn judge(&mut self, offer: &Offer) -> Verdict {
        if u64::from(offer.bytes) > self.longest { Verdict::Drop(DropReason::Mtu) } else { Verdict::Pass }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_units::Nanos;

    #[test]
    fn the_limit_itself_passes() {
        let values = Values::read(&Template::SPEC, &[("longest", "1514")]).unwrap();
        let mut block = Template::build(&values, Dice::named(1, "test/template"));
        for (bytes, verdict) in [(1514, Verdict::Pass), (1515, Verdict::Drop(DropReason::Mtu))] {
            assert_eq!(block.judge(&Offer { now: Nanos::ZERO, bytes }), verdict);
        }
    }
}
