//! The real-world cause of this impairment, in a sentence.

use super::{ECN_PARAM, Place, WHERE_PARAM};
use crate::judge::Judge;
use longwire_block::{Block, Dice, Offer, Verdict};
use longwire_settings::Settings;

/// Drops every n-th packet.
#[derive(Debug)]
pub struct Template {
    every: u64,
    seen: u64,
    on_wire: bool,
    mark: bool,
}

/// Drops every n-th packet.
#[derive(Debug, Settings)]
#[settings(key = "loss", kind = "template", source = "the RFC, paper or measurement that defines it")]
pub struct TemplateSettings {
    /// n, 1 to 1000000
    #[setting(min = 1, max = 1_000_000)]
    every: u64,
    #[setting(like = WHERE_PARAM)]
    place: Place,
    #[setting(like = ECN_PARAM)]
    ecn: bool,
}

impl Block for Template {
    type Settings = TemplateSettings;

    /// All random draws come from the dice.
    fn build(settings: TemplateSettings, _: Dice) -> Self {
        let mut block = Self { every: 1, seen: 0, on_wire: false, mark: false };
        block.change(settings);
        block
    }

    /// Applies new parameters; accumulated state stays.
    fn change(&mut self, settings: TemplateSettings) {
        self.every = settings.every;
        self.on_wire = settings.place == Place::Wire;
        self.mark = settings.ecn;
    }
}

impl Judge for Template {
    /// Drops the packets whose turn it is. Effects on others are written into `offer.effects()`.
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
        let values = TemplateSettings::read(&[("every", "3")]).unwrap();
        let mut block = Template::build(values, Dice::named(1, "test/template"));
        let mut offer = Offer::new(Nanos::ZERO, 1500, &[]);
        let dropped: Vec<bool> = (0..6).map(|_| block.judge(&mut offer) != Verdict::Pass).collect();
        assert_eq!(dropped, [false, false, true, false, false, true]);
    }
}
