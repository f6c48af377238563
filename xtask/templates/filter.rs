//! The frames that this filter drops, in a sentence.

use crate::judge::Judge;
use longwire_block::{Block, Dice, DropReason, Offer, Verdict};
use longwire_settings::Settings;

/// Drops frames that are longer than a limit.
#[derive(Debug)]
pub struct Template {
    longest: u64,
}

/// Drops frames that are longer than a limit.
#[derive(Debug, Settings)]
#[settings(key = "template", kind = "template", source = "the RFC, paper or measurement that defines it")]
pub struct TemplateSettings {
    /// longest frame in bytes without FCS, 60 to 65535
    #[setting(min = 60, max = 65_535)]
    longest: u64,
}

impl Block for Template {
    type Settings = TemplateSettings;

    /// All random draws come from the dice.
    fn build(settings: TemplateSettings, _: Dice) -> Self {
        Self { longest: settings.longest }
    }

    /// Applies new parameters; accumulated state stays.
    fn change(&mut self, settings: TemplateSettings) {
        self.longest = settings.longest;
    }
}

impl Judge for Template {
    /// Drops frames that are too long. A new drop reason is one more line in `crates/block/src/drop.rs`;
    /// effects on a packet that passes are written into `offer.effects()`.
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
        let values = TemplateSettings::read(&[("longest", "1514")]).unwrap();
        let mut block = Template::build(values, Dice::named(1, "test/template"));
        for (bytes, verdict) in [(1514, Verdict::Pass), (1515, Verdict::Drop(DropReason::Mtu))] {
            assert_eq!(block.judge(&mut Offer::new(Nanos::ZERO, bytes, &[])), verdict);
        }
    }
}
