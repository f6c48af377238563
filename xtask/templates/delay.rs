//! The cause of this delay, in a sentence.

use super::Travel;
use longwire_block::{Block, Dice};
use longwire_settings::Settings;
use longwire_units::Nanos;

/// Delays each packet by a time drawn evenly from a range.
#[derive(Debug)]
pub struct Template {
    least: Nanos,
    spread: Nanos,
    dice: Dice,
}

/// Delays each packet by a time drawn evenly from a range.
#[derive(Debug, Settings)]
#[settings(key = "delay", kind = "template", source = "the RFC, paper or measurement that defines it")]
pub struct TemplateSettings {
    /// shortest delay, 0 to 100 s
    #[setting(max = Nanos::from_secs(100))]
    least: Nanos,
    /// the maximum additional delay, 0 to 100 s
    #[setting(default = "0 ms", max = Nanos::from_secs(100))]
    spread: Nanos,
}

impl Block for Template {
    type Settings = TemplateSettings;

    /// All random draws come from the dice.
    fn build(settings: TemplateSettings, dice: Dice) -> Self {
        Self { least: settings.least, spread: settings.spread, dice }
    }

    /// Applies new parameters to packets whose transmission ends from now on; the stream of draws continues.
    fn change(&mut self, settings: TemplateSettings) {
        (self.least, self.spread) = (settings.least, settings.spread);
    }
}

impl Travel for Template {
    /// Draws once for each packet. None leaves before the packet sent before it, unless `order` says
    /// otherwise.
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
        let values = TemplateSettings::read(&[("least", "5 ms"), ("spread", "2 ms")]).unwrap();
        let mut block = Template::build(values, Dice::named(1, "test/template"));
        let delays: Vec<Nanos> = (0..1000).map(|_| block.travel(Nanos::ZERO)).collect();
        assert!(delays.iter().all(|d| (Nanos::from_millis(5)..=Nanos::from_millis(7)).contains(d)));
        assert!(delays.iter().any(|d| *d != delays[0]) && block.least() == Nanos::from_millis(5));
    }
}
