//! Distributions of times: exact extremes, mean and deviation, and quantiles from a histogram.

use longwire_units::{LogHistogram, Nanos, buckets};
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

/// Distances from the first value, to 1/128 of themselves.
type Distances = LogHistogram<{ buckets(7) }>;

/// Collects times in nanoseconds, in memory allocated at the start.
///
/// The histogram is centred on the first value: quantiles of a link with 100 ms of delay and 10 µs of jitter
/// are exact to a fraction of a microsecond, whatever the offset of clocks.
///
/// ```
/// use longwire_lab::traffic::Spread;
/// let mut spread = Spread::new();
/// (1..=1000).for_each(|us| spread.record(us * 1000));
/// let times = spread.distribution().unwrap();
/// assert_eq!((times.min_ns, times.max_ns, times.mean_ns), (1_000, 1_000_000, 500_500.0));
/// assert!((times.p50_ns - 500_000).abs() < 5_000);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Spread {
    count: u64,
    origin: i64,
    min: i64,
    max: i64,
    /// Sums of distances from the origin, and of their squares.
    sum: i128,
    squares: u128,
    below: Distances,
    above: Distances,
}

impl Spread {
    /// An empty collection.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a time in nanoseconds. Distances of more than 2⁶² ns from the first are cut to that.
    pub fn record(&mut self, value: i64) {
        if self.count == 0 {
            (self.origin, self.min, self.max) = (value, value, value);
        }
        self.count += 1;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        let distance = value.saturating_sub(self.origin).clamp(-(1 << 62), 1 << 62);
        self.sum += i128::from(distance);
        self.squares = self.squares.saturating_add(u128::from(distance.unsigned_abs()).pow(2));
        let side = if distance < 0 { &mut self.below } else { &mut self.above };
        side.record(Nanos(distance.unsigned_abs()));
    }

    /// Number of times added.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The distribution of the times; none if there are none.
    pub fn distribution(&self) -> Option<Distribution> {
        if self.count == 0 {
            return None;
        }
        let count = self.count as f64;
        let mean = self.sum as f64 / count;
        let variance = (self.squares as f64 / count - mean * mean).max(0.0);
        Some(Distribution {
            count: self.count,
            min_ns: self.min,
            mean_ns: self.origin as f64 + mean,
            deviation_ns: variance.sqrt(),
            p50_ns: self.quantile(0.5),
            p90_ns: self.quantile(0.9),
            p99_ns: self.quantile(0.99),
            p999_ns: self.quantile(0.999),
            max_ns: self.max,
        })
    }

    /// The `q` quantile, to the width of a bucket.
    fn quantile(&self, q: f64) -> i64 {
        let rank = ((q * self.count as f64).ceil() as u64).clamp(1, self.count);
        // Distances are at most 2⁶², so that those that were counted fit.
        let middle = |values: RangeInclusive<u64>| {
            (values.start() + (values.end() - values.start()).div_ceil(2)) as i64
        };
        let counted = |(_, count): &(RangeInclusive<u64>, u64)| *count > 0;
        let below = self.below.iter().rev().filter(counted).map(|(values, count)| (-middle(values), count));
        let above = self.above.iter().filter(counted).map(|(values, count)| (middle(values), count));
        let mut seen = 0;
        for (distance, count) in below.chain(above) {
            seen += count;
            if seen >= rank {
                return self.origin.saturating_add(distance).clamp(self.min, self.max);
            }
        }
        self.max
    }
}

/// A distribution of times. Minimum, mean, deviation and maximum are exact, quantiles to 0.8 % of their
/// distance from the first time recorded.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// Number of times.
    pub count: u64,
    /// The smallest, in nanoseconds.
    pub min_ns: i64,
    /// The mean, in nanoseconds.
    pub mean_ns: f64,
    /// The standard deviation, in nanoseconds.
    pub deviation_ns: f64,
    /// The median, in nanoseconds.
    pub p50_ns: i64,
    /// The 90th percentile, in nanoseconds.
    pub p90_ns: i64,
    /// The 99th percentile, in nanoseconds.
    pub p99_ns: i64,
    /// The 99.9th percentile, in nanoseconds.
    pub p999_ns: i64,
    /// The largest, in nanoseconds.
    pub max_ns: i64,
}

impl Distribution {
    /// The distribution with every time reduced by `shift` nanoseconds.
    pub fn less(self, shift: i64) -> Self {
        Self {
            min_ns: self.min_ns.saturating_sub(shift),
            mean_ns: self.mean_ns - shift as f64,
            p50_ns: self.p50_ns.saturating_sub(shift),
            p90_ns: self.p90_ns.saturating_sub(shift),
            p99_ns: self.p99_ns.saturating_sub(shift),
            p999_ns: self.p999_ns.saturating_sub(shift),
            max_ns: self.max_ns.saturating_sub(shift),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(times: &[i64]) -> Distribution {
        let mut spread = Spread::new();
        times.iter().for_each(|time| spread.record(*time));
        spread.distribution().unwrap()
    }

    #[test]
    fn small_sets_are_exact() {
        assert!(Spread::new().distribution().is_none());
        let one = of(&[7]);
        assert_eq!((one.min_ns, one.p50_ns, one.p999_ns, one.max_ns, one.deviation_ns), (7, 7, 7, 7, 0.0));
        let four = of(&[2, 4, 4, 6]);
        assert_eq!((four.mean_ns, four.p50_ns, four.max_ns), (4.0, 4, 6));
        assert!((four.deviation_ns - 2f64.sqrt()).abs() < 1e-12);
        let hundred: Vec<i64> = (1..=100).collect();
        let hundred = of(&hundred);
        assert_eq!((hundred.p50_ns, hundred.p90_ns, hundred.p99_ns, hundred.p999_ns), (50, 90, 99, 100));
    }

    #[test]
    fn precision_is_about_the_first_value() {
        let base = 3_600_000_000_000;
        let times: Vec<i64> = (0..1001).map(|k| base + (k - 500) * 100).collect();
        let spread = of(&times);
        assert!((spread.p50_ns - base).abs() <= 400, "{spread:?}");
        let shifted = spread.less(spread.min_ns);
        assert_eq!((shifted.min_ns, shifted.max_ns), (0, 100_000));
    }

    proptest! {
        #[test]
        fn any_times_are_ordered_and_nothing_panics(times in proptest::collection::vec(any::<i64>(),
            1..100)) {
            let d = of(&times);
            prop_assert_eq!(d.min_ns, *times.iter().min().unwrap());
            prop_assert_eq!(d.max_ns, *times.iter().max().unwrap());
            prop_assert!(d.min_ns <= d.p50_ns && d.p50_ns <= d.p90_ns && d.p90_ns <= d.p99_ns);
            prop_assert!(d.p99_ns <= d.p999_ns && d.p999_ns <= d.max_ns);
        }

        #[test]
        fn quantiles_are_near_the_sorted_ones(times in proptest::collection::vec(0i64..1_000_000_000,
            1..300)) {
            let d = of(&times);
            let mut sorted = times.clone();
            sorted.sort_unstable();
            let exact = sorted[times.len().div_ceil(2) - 1];
            let width = (exact - times[0]).abs() / 128 + 1;
            prop_assert!((d.p50_ns - exact).abs() <= width, "{} {} {}", d.p50_ns, exact, width);
        }
    }
}
