//! The rate limit of a filter's rule: a token bucket in whole numbers.

use crate::transmit::framing::{BYTE, Framing};
use longwire_units::{Bytes, Nanos, Rate};

/// Permitted traffic: a mean rate and a burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowance {
    /// The long-term rate.
    pub rate: Rate,
    /// Bytes that may pass at once after a pause; at most [`Allowance::MAX_BURST`].
    pub burst: Bytes,
}

impl Allowance {
    /// The smallest burst: the shortest frame.
    pub const MIN_BURST: Bytes = Bytes(64);
    /// The largest burst: its work fits 64 bits.
    pub const MAX_BURST: Bytes = Bytes(1_000_000_000);

    /// The default burst: 10 ms at the rate, but at least ten frames of 1518 bytes.
    pub fn default_burst(rate: Rate) -> Bytes {
        Bytes((rate.0 / 800).clamp(15_180, Self::MAX_BURST.0))
    }

    fn work(&self) -> u64 {
        self.burst.0.min(Self::MAX_BURST.0) * BYTE
    }
}

/// A token bucket (RFC 2697 with one bucket): full at first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bucket {
    allowance: Allowance,
    /// Available work at `filled`, in bits · 10⁹.
    work: u64,
    filled: Nanos,
}

impl Bucket {
    pub fn new(allowance: Allowance) -> Self {
        Self { allowance, work: allowance.work(), filled: Nanos::ZERO }
    }

    /// Changes the allowance from the time of the last packet or [`Bucket::settle`] on; the remaining work is
    /// kept as far as it fits.
    pub fn change(&mut self, allowance: Allowance) {
        self.work = self.work.min(allowance.work());
        self.allowance = allowance;
    }

    /// Adds what the rate has made by `now`.
    #[inline]
    pub fn settle(&mut self, now: Nanos) {
        let made = now.since(self.filled).0.saturating_mul(self.allowance.rate.0);
        self.work = self.work.saturating_add(made).min(self.allowance.work());
        self.filled = self.filled.max(now);
    }

    /// Whether a frame of `bytes` (without FCS) passes at `now`. Its length is that of a link's rate: at
    /// least 64 bytes with its FCS. A frame that does not pass takes nothing.
    #[inline]
    pub fn passes(&mut self, now: Nanos, bytes: u32) -> bool {
        if self.allowance.rate == Rate::UNLIMITED {
            return true;
        }
        self.settle(now);
        let wanted = Framing::ETHERNET.counted_on_wire(bytes);
        match self.work.checked_sub(wanted.saturating_mul(BYTE)) {
            Some(left) => {
                self.work = left;
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket(rate: u64, burst: u64) -> Bucket {
        Bucket::new(Allowance { rate: Rate(rate), burst: Bytes(burst) })
    }

    #[test]
    fn a_burst_passes_at_once_and_then_the_rate() {
        // 8 Mbit/s is a byte per microsecond; frames of 96 + 4 bytes.
        let mut bucket = bucket(8_000_000, 250);
        let table = [
            (0, true, "150 left"),
            (0, true, "50 left"),
            (0, false, "not enough"),
            (49_999, false, "99.999 left"),
            (50_000, true, "exactly 100, none left"),
            (50_000, false, ""),
            (150_000, true, ""),
            (10_000_000, true, "full again, no more: 150 left"),
            (10_000_000, true, ""),
            (10_000_000, false, ""),
        ];
        for (now, passes, why) in table {
            assert_eq!(bucket.passes(Nanos(now), 96), passes, "{now} {why}");
        }
    }

    #[test]
    fn nothing_is_rounded_away() {
        // 1 Gbit/s and a third, a frame per microsecond: of 166.625 bytes made, 100 are used; of 84 at 672
        // Mbit/s, 84.
        let mut exact = bucket(672_000_000, 84);
        assert!((0..10_000u64).all(|n| exact.passes(Nanos(n * 1000), 80)));
        let mut less = bucket(671_999_999, 84);
        let passed = (0..10_000u64).filter(|n| less.passes(Nanos(n * 1000), 80)).count();
        assert_eq!(passed, 5000, "each second one waits for the byte that is not quite there");
    }

    #[test]
    fn extremes() {
        let mut stalled = bucket(0, 128);
        assert_eq!([0, 1, u64::MAX].map(|now| stalled.passes(Nanos(now), 1)), [true, true, false]);
        let mut unlimited = bucket(u64::MAX, 64);
        assert!((0..9).all(|_| unlimited.passes(Nanos::ZERO, 1514)));
        let mut fast = bucket(Rate::MAX.0, Allowance::MAX_BURST.0);
        assert!(fast.passes(Nanos(u64::MAX - 1), u32::MAX / 8));
        let mut small = bucket(1_000_000, 64);
        assert!((0..9).all(|n| !small.passes(Nanos(n * 1_000_000_000), 61)), "longer than the burst: never");
    }

    #[test]
    fn a_change_keeps_what_was_left() {
        let mut bucket = bucket(8_000_000, 1000);
        assert!(bucket.passes(Nanos(5), 696));
        bucket.change(Allowance { rate: Rate(0), burst: Bytes(500) });
        assert_eq!([0; 4].map(|_| bucket.passes(Nanos(5), 96)), [true, true, true, false], "300 were left");
        bucket.change(Allowance { rate: Rate(8_000_000), burst: Bytes(100) });
        assert!(!bucket.passes(Nanos(100_004), 96) && bucket.passes(Nanos(100_005), 96));
    }

    /// A byte per microsecond until 300 µs, then nothing, then no limit, at which the bucket is full.
    #[test]
    fn each_rate_makes_what_comes_in_its_time() {
        let mut bucket = bucket(8_000_000, 1000);
        assert!(bucket.passes(Nanos(0), 996));
        for (at, rate) in [(300_000, 0), (900_000, u64::MAX), (900_001, 8_000_000_000)] {
            bucket.settle(Nanos(at));
            bucket.change(Allowance { rate: Rate(rate), burst: Bytes(1000) });
            if rate == 0 {
                assert_eq!([800_000; 4].map(|now| bucket.passes(Nanos(now), 96)), [true, true, true, false]);
            }
        }
        assert!(bucket.passes(Nanos(900_001), 996) && !bucket.passes(Nanos(900_001), 60));
    }

    #[test]
    fn the_burst_where_none_is_given() {
        for (rate, burst) in
            [(0, 15_180), (10_000_000, 15_180), (100_000_000, 125_000), (u64::MAX, 1_000_000_000)]
        {
            assert_eq!(Allowance::default_burst(Rate(rate)), Bytes(burst));
        }
    }
}
