//! The kind of line that this transmitter models, in a sentence.

use super::Sender;
use super::framing::{BYTE, FRAMING_PARAM, Framing, Layer, OVERHEAD_PARAM};
use longwire_block::{Block, Dice};
use longwire_settings::Settings;
use longwire_units::{Nanos, Rate};

/// Sends at a constant rate. Work is in bits · 10⁹: a rate of r bit/s does r of it per nanosecond.
#[derive(Debug)]
pub struct Template {
    rate: u64,
    framing: Framing,
    start: Nanos,
    /// Work left at `start`, including the remainder of the last division.
    work: u64,
}

/// Sends at a constant rate.
#[derive(Debug, Settings)]
#[settings(key = "rate", kind = "template", source = "the standard, paper or measurement that defines it")]
pub struct TemplateSettings {
    /// 300 bit/s to 400 Gbit/s, 0 for an outage, or unlimited
    rate: Rate,
    #[setting(like = FRAMING_PARAM)]
    layer: Layer,
    #[setting(like = OVERHEAD_PARAM)]
    overhead: u64,
}

impl Block for Template {
    type Settings = TemplateSettings;

    /// All random draws come from the dice.
    fn build(settings: TemplateSettings, _: Dice) -> Self {
        Self {
            rate: settings.rate.0,
            framing: Framing::of(settings.layer, settings.overhead),
            start: Nanos::ZERO,
            work: 0,
        }
    }

    /// Applies new parameters to every bit not yet sent (after `settle`).
    fn change(&mut self, settings: TemplateSettings) {
        (self.rate, self.framing) = (settings.rate.0, Framing::of(settings.layer, settings.overhead));
    }
}

impl Sender for Template {
    #[inline]
    fn framing(&self) -> Framing {
        self.framing
    }

    /// Begins after an idle period, without a remainder.
    #[inline]
    fn begin(&mut self, start: Nanos, bytes: u64) {
        (self.start, self.work) = (start, bytes * BYTE);
    }

    /// Begins at the previous finish, with the remainder of the last division.
    #[inline]
    fn follow(&mut self, finish: Nanos, bytes: u64) {
        self.settle(finish);
        self.work += bytes * BYTE;
    }

    /// Finish time of the packet being sent, rounded down.
    #[inline]
    fn finish(&self) -> Nanos {
        match self.rate {
            0 => Nanos::NEVER,
            u64::MAX => self.start,
            rate => self.start + Nanos(self.work / rate),
        }
    }

    /// Subtracts the work done by `now`.
    fn settle(&mut self, now: Nanos) {
        let done = match self.rate {
            u64::MAX => self.work,
            rate => now.since(self.start).0.saturating_mul(rate),
        };
        self.work = self.work.saturating_sub(done);
        self.start = self.start.max(now);
    }

    #[inline]
    fn rate(&self) -> Rate {
        Rate(self.rate)
    }

    fn work_left(&self) -> u64 {
        self.work
    }

    fn take_over(&mut self, now: Nanos, work: u64) {
        (self.start, self.work) = (now, work);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 64 bytes at 10 Gbit/s take 51.2 ns: five packets end in exactly 256 ns.
    #[test]
    fn carries_the_remainder() {
        let values = TemplateSettings::read(&[("rate", "10 Gbit/s")]).unwrap();
        let mut block = Template::build(values, Dice::named(1, "test/template"));
        block.begin(Nanos(0), 64);
        let mut ends = vec![block.finish().0];
        for _ in 0..4 {
            crate::transmit::follow(&mut block, 64);
            ends.push(block.finish().0);
        }
        assert_eq!(ends, [51, 102, 153, 204, 256]);
    }
}
