//! What this filter keeps off the link, in a sentence.

use crate::judge::Judge;
use longwire_block::{Block, Dice, DropReason, Offer, Param, ParamKind, Spec, Values, Verdict};

/// Drops frames that are longer than a limit.
#[derive(Debug)]
pub struct Template {
    longest: u64,
}

impl Block for Template {
    const SPEC: Spec = Spec {
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

    /// What it draws, it draws from the dice and from nothing else.
    fn build(values: &Values, _: Dice) -> Self {
        Self { longest: values.integer(0) }
    }

    /// Takes new parameters; what it has gathered stays.
    fn change(&mut self, values: &Values) {
        self.longest = values.integer(0);
    }
}

impl Judge for Template {
    /// Drops what is too long. A reason of its own is one more line in `crates/block/src/drop.rs`; what is to happen to a
    /// packet that goes on is written into `offer.effects()`.
    #[inline]
    fn judge(&mut self, offer: &mut Offer<'_>) -> Verdict {
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
            assert_eq!(block.judge(&mut Offer::new(Nanos::ZERO, bytes, &[])), verdict);
        }
    }
}
