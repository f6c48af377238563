//! When a flow's packets are due.

use super::flow::Flow;

use longwire_block::Dice;
use longwire_random::math::{NEG_LN_SHIFT, neg_ln};
use longwire_units::{Nanos, Rate};

/// The time from packet to packet: `nanos` for every `per` packets, so that no rate has to be rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    nanos: u64,
    per: u64,
}

/// How a flow's packets are spaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pacing {
    /// The n-th packet, from 0, is due at start + n·interval, rounded down: rounding never accumulates.
    Constant(Interval),
    /// Exponential gaps of this mean, the first one before the first packet: a Poisson process.
    Poisson(Interval),
}

impl Interval {
    /// This time between packets; none if it is 0 or above 292 years.
    pub fn of(time: Nanos) -> Option<Self> {
        Self::checked(time.0, 1)
    }

    /// So many packets a second; none if 0.
    pub fn per_second(packets: u64) -> Option<Self> {
        Self::checked(1_000_000_000, packets)
    }

    /// What sends packets of `bytes` at `rate`. The layer is that at which `bytes` are counted. None if the rate is
    /// 0 or unlimited, or there are no bytes.
    pub fn at_rate(rate: Rate, bytes: u64) -> Option<Self> {
        if rate == Rate::UNLIMITED {
            return None;
        }
        Self::checked(bytes.checked_mul(8_000_000_000)?, rate.0)
    }

    fn checked(nanos: u64, per: u64) -> Option<Self> {
        // The top bit stays free for the sums of `Pace::next`.
        (nanos > 0 && per > 0 && nanos < 1 << 63).then_some(Self { nanos, per })
    }
}

/// The times of one flow.
pub(super) struct Pace {
    pacing: Pacing,
    start: Nanos,
    until: Nanos,
    count: u64,
    made: u64,
    dice: Dice,
    /// Poisson: the time reached, and what is left over, in units of 2⁻⁵⁸/per ns.
    reached: Nanos,
    remainder: u128,
}

impl Pace {
    pub(super) fn new(flow: &Flow, dice: Dice) -> Self {
        let Flow { pacing, start, until, count, .. } = *flow;
        Self { pacing, start, until, count, made: 0, dice, reached: start, remainder: 0 }
    }

    /// When the next packet is due; [`Nanos::NEVER`] once the limit is reached.
    pub(super) fn next(&mut self) -> Nanos {
        if self.made == self.count {
            return Nanos::NEVER;
        }
        let time = match self.pacing {
            Pacing::Constant(Interval { nanos, per }) => {
                let offset = u128::from(self.made) * u128::from(nanos) / u128::from(per);
                self.start + saturated(offset)
            }
            Pacing::Poisson(Interval { nanos, per }) => {
                let whole = u128::from(per) << NEG_LN_SHIFT;
                // Below 2⁶⁴·2⁶³ + 2¹²².
                let sum = u128::from(neg_ln(self.dice.draw())) * u128::from(nanos) + self.remainder;
                self.remainder = sum % whole;
                self.reached += saturated(sum / whole);
                self.reached
            }
        };
        if time >= self.until {
            self.count = self.made;
            return Nanos::NEVER;
        }
        self.made += 1;
        time
    }
}

fn saturated(nanos: u128) -> Nanos {
    Nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_that_are_none() {
        assert_eq!(Interval::of(Nanos::ZERO), None);
        assert_eq!(Interval::per_second(0), None);
        assert_eq!(Interval::at_rate(Rate::STALLED, 100), None);
        assert_eq!(Interval::at_rate(Rate::UNLIMITED, 100), None);
        assert_eq!(Interval::at_rate(Rate(1000), 0), None);
        assert_eq!(Interval::at_rate(Rate(1000), u64::MAX), None);
        assert_eq!(
            Interval::at_rate(Rate(8_000_000_000), 1),
            Some(Interval { nanos: 8_000_000_000, per: 8_000_000_000 })
        );
    }
}
