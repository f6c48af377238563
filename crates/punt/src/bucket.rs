//! Exact rate limits: a token bucket stored as the time at which it is full again.

use longwire_units::Nanos;

const SECOND: u64 = 1_000_000_000;

/// A rate limit (the generic cell rate algorithm of ITU-T I.371). Until the bucket is full again, fractions
/// of a nanosecond are carried over, so that the rate is exact. By default it never allows anything.
#[derive(Debug, Clone, Copy, Default)]
pub struct Bucket {
    rate: u64,
    interval: u64,
    /// Remainder of a second after `rate` intervals, in nanoseconds.
    rest: u64,
    carried: u64,
    depth: u64,
    full_at: u64,
}

impl Bucket {
    /// `rate` times per second, up to a billion, and `burst` times at once. A rate of 0 means never.
    pub fn new(rate: u64, burst: u64) -> Self {
        let rate = rate.min(SECOND);
        let (interval, rest) = match rate {
            0 => (0, 0),
            rate => (SECOND / rate, SECOND % rate),
        };
        // Of the exact interval: a multiple of the rounded one would be less than the burst.
        let depth = u128::from(burst.max(1) - 1) * u128::from(SECOND) / u128::from(rate.max(1));
        let depth = u64::try_from(depth).unwrap_or(u64::MAX);
        Self { rate, interval, rest, carried: 0, depth, full_at: 0 }
    }

    /// Whether a token is available at `now`, without taking it.
    #[inline]
    pub fn has(&self, now: Nanos) -> bool {
        self.full_at.saturating_sub(now.0) <= self.depth && self.rate > 0
    }

    /// Takes a token at `now`, if available.
    #[inline]
    pub fn take(&mut self, now: Nanos) -> bool {
        if !self.has(now) {
            return false;
        }
        if now.0 > self.full_at {
            (self.full_at, self.carried) = (now.0, 0);
        }
        self.full_at = self.full_at.saturating_add(self.interval);
        self.carried += self.rest;
        if self.carried >= self.rate {
            self.carried -= self.rate;
            self.full_at += 1;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_then_the_rate() {
        let mut bucket = Bucket::new(1000, 3);
        let ms = 1_000_000;
        let table = [
            (5 * ms, true),
            (5 * ms, true),
            (5 * ms, true),
            (5 * ms, false),
            (6 * ms - 1, false),
            (6 * ms, true),
            (6 * ms, false),
            (7 * ms, true),
            // After a pause a burst again.
            (20 * ms, true),
            (20 * ms, true),
            (20 * ms, true),
            (20 * ms, false),
            // Packets' times may be slightly out of order.
            (19 * ms, false),
        ];
        for (at, allowed) in table {
            assert_eq!(bucket.take(Nanos(at)), allowed, "at {at}");
        }
        assert!(!Bucket::new(0, 9).take(Nanos(5)));
    }

    #[test]
    fn a_burst_is_whole_whatever_the_rate() {
        for (rate, burst) in [(600, 128), (30_000, 64), (900_000_000, 1000)] {
            let mut bucket = Bucket::new(rate, burst);
            // The second time after a pause.
            for second in [1, 20] {
                let now = Nanos(second * SECOND);
                let taken = (0..2 * burst).filter(|_| bucket.take(now)).count();
                assert_eq!(taken as u64, burst, "{rate}/s at {second} s");
            }
        }
    }

    #[test]
    fn rates_that_do_not_divide_a_second_hold_exactly() {
        // 3 000 000/s is one in 333⅓ ns. Requested every nanosecond of a tenth of a millisecond: 300, and the
        // first.
        let mut bucket = Bucket::new(3_000_000, 1);
        let taken = (0..=100_000).filter(|&at| bucket.take(Nanos(at))).count();
        assert_eq!(taken, 301);
    }
}
