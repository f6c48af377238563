//! What kind of line this transmitter is, in a sentence.

use longwire_block::{Dice, Param, ParamKind, Spec, Value, Values};
use longwire_units::{Nanos, Rate};

/// Sends at a constant rate, counting Ethernet frames with their check sequence.
///
/// Work is kept in bits · 10⁹, of which a rate of r bit/s does r in a nanosecond; a packet's stays below 2⁵¹.
#[derive(Debug)]
pub struct Template {
    rate: u64,
    start: Nanos,
    /// Work left at `start`, the remainder of the last division included.
    work: u64,
}

const FCS: u32 = 4;
const NANOS: u64 = 1_000_000_000;

impl Template {
    /// Its row in the registry.
    pub const SPEC: Spec = Spec {
        key: "rate",
        kind: "template",
        summary: "Sends at a constant rate.",
        source: "the standard, paper or measurement that defines it",
        params: &[Param {
            name: "rate",
            kind: ParamKind::Rate,
            default: None,
            help: "300 bit/s to 400 Gbit/s, 0 for an outage, or unlimited",
        }],
    };

    /// The block with these parameters. What it draws, it draws from the dice and from nothing else.
    pub fn build(values: &Values, _: Dice) -> Self {
        let mut block = Self { rate: 0, start: Nanos::ZERO, work: 0 };
        block.change(values);
        block
    }

    /// Takes new parameters, for every bit not yet sent (after [`Template::settle`]).
    pub fn change(&mut self, values: &Values) {
        if let Value::Rate(rate) = values.at(0) {
            self.rate = rate.0;
        }
    }

    /// The frame and its check sequence.
    #[inline]
    pub fn counted(&mut self, frame: u32, _: u32) -> u64 {
        u64::from(frame + FCS)
    }

    /// The rate counts frames.
    #[inline]
    pub fn counts_ip(&mut self) -> bool {
        false
    }

    /// Begins after a pause: the remainder is forgotten.
    #[inline]
    pub fn begin(&mut self, start: Nanos, bytes: u64) {
        self.start = start;
        self.work = bytes * 8 * NANOS;
    }

    /// Begins at the last finish, with the remainder of the last division.
    #[inline]
    pub fn follow(&mut self, bytes: u64) {
        let finish = self.finish();
        self.settle(finish);
        self.work += bytes * 8 * NANOS;
    }

    /// When the packet being sent is finished, rounded down.
    #[inline]
    pub fn finish(&mut self) -> Nanos {
        match self.rate {
            0 => Nanos::NEVER,
            u64::MAX => self.start,
            rate => self.start + Nanos(self.work / rate),
        }
    }

    /// Whether all but the last `bytes` are sent by `now`.
    pub fn has_sent_all_but(&mut self, bytes: u64, now: Nanos) -> bool {
        let until = self.work.saturating_sub(bytes * 8 * NANOS);
        match self.rate {
            0 => until == 0,
            u64::MAX => true,
            rate => until / rate <= now.since(self.start).0,
        }
    }

    /// Takes what is sent by `now` off the work.
    pub fn settle(&mut self, now: Nanos) {
        let done = match self.rate {
            u64::MAX => self.work,
            rate => now.since(self.start).0.saturating_mul(rate),
        };
        self.work = self.work.saturating_sub(done);
        self.start = self.start.max(now);
    }

    /// The current rate.
    #[inline]
    pub fn rate(&mut self) -> Rate {
        Rate(self.rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 64 bytes at 10 Gbit/s take 51.2 ns: five packets end in exactly 256 ns.
    #[test]
    fn carries_the_remainder() {
        let values = Values::read(&Template::SPEC, &[("rate", "10 Gbit/s")]).unwrap();
        let mut block = Template::build(&values, Dice::named(1, "test/template"));
        block.begin(Nanos(0), 64);
        let mut ends = vec![block.finish().0];
        for _ in 0..4 {
            block.follow(64);
            ends.push(block.finish().0);
        }
        assert_eq!(ends, [51, 102, 153, 204, 256]);
        assert!(block.has_sent_all_but(0, Nanos(256)) && !block.has_sent_all_but(0, Nanos(255)));
    }
}
