//! A rate that is constant until it is changed.

use super::framing::{BYTE, FRAMING_PARAM, Framing, Layer, OVERHEAD_PARAM};
use super::{Sender, Transmit};
use longwire_block::{Block, Dice};
use longwire_settings::Settings;
use longwire_units::{Nanos, Rate};

/// A constant rate: the exact completion times of work.
///
/// Work is in bits · 10⁹: a rate of r bit/s does r of it per nanosecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Law {
    rate: u64,
    /// ⌊(2⁶⁴ − 1) / rate⌋: a division by the rate becomes a multiplication and a correction.
    reciprocal: u64,
}

/// Sends at a constant rate: f = s + bytes · 8 / rate, exactly.
///
/// f is rounded down, and the remainder is carried into the next packet of the busy period, so that rounding
/// errors never accumulate.
#[derive(Debug)]
pub struct Constant {
    law: Law,
    start: Nanos,
    /// Remaining work at `start`, the carried remainder included.
    work: u64,
    framing: Framing,
}

/// Sends at a constant rate, exact to the nanosecond.
#[derive(Debug, Settings)]
#[settings(
    key = "rate",
    kind = "constant",
    source = "High capacity network link emulation using network processors, section 4.2.1; IEEE 802.3, \
        4A.4.2",
    live
)]
pub struct ConstantSettings {
    /// 300 bit/s to 400 Gbit/s, 0 for an outage, or unlimited
    #[setting(default = "unlimited")]
    pub(crate) rate: Rate,
    #[setting(like = FRAMING_PARAM)]
    pub(crate) layer: Layer,
    #[setting(like = OVERHEAD_PARAM)]
    pub(crate) overhead: u64,
}

impl Block for Constant {
    type Settings = ConstantSettings;

    fn build(settings: ConstantSettings, _: Dice) -> Self {
        let (law, framing) = (Law::of(settings.rate), Framing::of(settings.layer, settings.overhead));
        Self { law, start: Nanos::ZERO, work: 0, framing }
    }

    /// Applies a new rate to every bit not yet sent (after [`Constant::settle`]), and a new framing to
    /// packets that begin to be sent from now on.
    fn change(&mut self, settings: ConstantSettings) {
        (self.law, self.framing) = (Law::of(settings.rate), Framing::of(settings.layer, settings.overhead));
    }
}

impl Default for Law {
    /// Unlimited.
    fn default() -> Self {
        Self::of(Rate::UNLIMITED)
    }
}

impl Law {
    pub(crate) fn of(Rate(rate): Rate) -> Self {
        Self { rate, reciprocal: u64::MAX.checked_div(rate).unwrap_or(0) }
    }

    /// The law of a transmitter, and whether the transmitter must be asked instead.
    pub(crate) fn of_transmit(transmit: &Transmit) -> (Self, bool) {
        match transmit {
            Transmit::Constant(Constant { law, .. }) if law.rate != 0 => (*law, false),
            _ => (Self::default(), true),
        }
    }

    #[inline(always)]
    pub(crate) fn rate(self) -> Rate {
        Rate(self.rate)
    }

    /// Completion of a packet of `bytes` that begins at `start` with this remainder, and the new remainder.
    /// For rates other than an outage, whose end is unknown.
    #[inline(always)]
    pub(crate) fn send(self, start: Nanos, rest: u64, bytes: u64) -> (Nanos, u64) {
        // At an unlimited rate this takes no time, and the remainder delays nothing.
        let (nanos, rest) = self.divide(rest + bytes * BYTE);
        (start + Nanos(nanos), rest)
    }

    /// Time for this much work, rounded down, and the remaining work.
    #[inline(always)]
    fn divide(self, work: u64) -> (u64, u64) {
        // Work is below 2⁵¹, so the estimate is at most one too small.
        let estimate = ((u128::from(work) * u128::from(self.reciprocal)) >> 64) as u64;
        let rest = work - estimate * self.rate;
        if rest >= self.rate { (estimate + 1, rest - self.rate) } else { (estimate, rest) }
    }
}

impl Constant {
    /// A transmitter that is idle.
    pub(crate) fn new(law: Law, framing: Framing) -> Self {
        Self { law, start: Nanos::ZERO, work: 0, framing }
    }
}

impl Sender for Constant {
    #[inline]
    fn framing(&self) -> Framing {
        self.framing
    }

    /// Begins after a pause, without a remainder.
    #[inline]
    fn begin(&mut self, start: Nanos, bytes: u64) {
        self.start = start;
        self.work = bytes * BYTE;
    }

    /// Begins at the previous finish, with the remainder of the last division.
    #[inline]
    fn follow(&mut self, finish: Nanos, bytes: u64) {
        let done = match self.law.rate {
            0 | u64::MAX => self.work,
            rate => (finish.0 - self.start.0) * rate,
        };
        self.start = finish;
        self.work = self.work - done + bytes * BYTE;
    }

    #[inline]
    fn finish(&self) -> Nanos {
        match self.law.rate {
            0 => Nanos::NEVER,
            u64::MAX => self.start,
            _ => self.start + Nanos(self.law.divide(self.work).0),
        }
    }

    #[inline]
    fn foresees(&self) -> bool {
        self.law.rate != 0
    }

    /// The remainder of a division goes into the next packet, so from one to the next work = rest + (next f -
    /// f) · rate - next rest: the remainder at the first follows from that at the last, and need not be
    /// stored.
    fn go_back(&mut self, now: Nanos, first: Nanos, last: Nanos, behind: u64) {
        if self.law.rate == 0 || self.law.rate == u64::MAX {
            return;
        }
        let rate = u128::from(self.law.rate);
        let rest = u128::from(self.work) - u128::from((last - self.start).0) * rate;
        let rest = rest + u128::from((last - first).0) * rate - u128::from(behind) * u128::from(BYTE);
        self.start = now.min(first);
        self.work = (rest + u128::from((first - self.start).0) * rate) as u64;
    }

    /// Whether all but the last `bytes` are sent: the same rounding as [`Constant::finish`] for a packet that
    /// ended there.
    fn has_sent_all_but(&self, bytes: u64, now: Nanos) -> bool {
        let until = u128::from(self.work.saturating_sub(bytes * BYTE));
        match self.law.rate {
            0 => until == 0,
            u64::MAX => true,
            rate => until < u128::from(now.since(self.start).0 + 1) * u128::from(rate),
        }
    }

    /// Subtracts the work done by `now`.
    fn settle(&mut self, now: Nanos) {
        let done = match self.law.rate {
            0 => 0,
            u64::MAX => self.work,
            rate => u128::from(now.since(self.start).0)
                .saturating_mul(u128::from(rate))
                .min(u128::from(self.work)) as u64,
        };
        self.work -= done;
        self.start = self.start.max(now);
    }

    /// The current rate.
    #[inline]
    fn rate(&self) -> Rate {
        self.law.rate()
    }

    fn work_left(&self) -> u64 {
        self.work
    }

    fn rest(&self, finish: Nanos) -> u64 {
        match self.law.rate {
            0 | u64::MAX => 0,
            rate => self.work - (finish.0 - self.start.0) * rate,
        }
    }

    fn take_over(&mut self, now: Nanos, work: u64) {
        (self.start, self.work) = (now, work);
    }

    #[inline]
    fn whole_trains(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(rate: &str, framing: &str, overhead: &str) -> Constant {
        let given = [("rate", rate), ("framing", framing), ("overhead", overhead)];
        Constant::build(Settings::read(&given).unwrap(), Dice::named(0, ""))
    }

    /// 10 Gbit/s: 64 bytes take 51.2 ns, so transmissions end at 51, 102, 153, 204, 256: five packets in
    /// exactly 256 ns.
    #[test]
    fn carries_the_remainder() {
        let mut link = at("10 Gbit/s", "ethernet", "0");
        link.begin(Nanos(0), 64);
        let mut ends = vec![link.finish().0];
        for _ in 0..4 {
            crate::transmit::follow(&mut link, 64);
            ends.push(link.finish().0);
        }
        assert_eq!(ends, [51, 102, 153, 204, 256]);
        link.begin(Nanos(300), 64);
        assert_eq!(link.finish(), Nanos(351));
    }

    /// Compares with plain division, for rates and sizes over the whole range.
    #[test]
    fn equals_the_division() {
        let mut rate = 300u64;
        while rate <= 400_000_000_000 {
            for bytes in [1u64, 14, 64, 1518, 65_535, 70_000] {
                let mut link = at("unlimited", "ethernet", "0");
                let text = format!("{rate} bit/s");
                link.change(ConstantSettings::read(&[("rate", &text)]).unwrap());
                link.begin(Nanos(7), bytes);
                assert_eq!(link.finish(), Nanos(7 + bytes * BYTE / rate), "{rate} {bytes}");
                crate::transmit::follow(&mut link, bytes);
                assert_eq!(link.finish(), Nanos(7 + 2 * bytes * BYTE / rate), "{rate} {bytes}");
            }
            rate = rate * 17 / 13 + 1;
        }
    }

    /// 1000 bytes at 1 Mbit/s take 8 ms; half-way the rate doubles: 4 ms + 2 ms.
    #[test]
    fn a_change_of_rate_takes_every_bit_not_yet_sent() {
        let mut link = at("1 Mbit/s", "ethernet", "0");
        link.begin(Nanos(0), 1000);
        assert_eq!(link.finish(), Nanos::from_millis(8));
        link.settle(Nanos::from_millis(4));
        link.change(ConstantSettings::read(&[("rate", "2 Mbit/s")]).unwrap());
        assert_eq!(link.finish(), Nanos::from_millis(6));
        link.settle(Nanos::from_millis(5));
        link.change(ConstantSettings::read(&[("rate", "0")]).unwrap());
        assert_eq!(link.finish(), Nanos::NEVER);
        link.settle(Nanos::from_millis(100));
        link.change(ConstantSettings::read(&[("rate", "2 Mbit/s")]).unwrap());
        assert_eq!(link.finish(), Nanos::from_millis(101));
    }

    #[test]
    fn knows_how_much_is_sent() {
        let mut link = at("8 Mbit/s", "ethernet", "0");
        link.begin(Nanos(0), 3000);
        assert!(!link.has_sent_all_but(2000, Nanos(999_999)));
        assert!(link.has_sent_all_but(2000, Nanos(1_000_000)));
        assert!(!link.has_sent_all_but(1000, Nanos(1_999_999)));
        assert!(link.has_sent_all_but(0, Nanos(3_000_000)));
    }
}
