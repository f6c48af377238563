//! Histogram of times.

use longwire_units::Nanos;

/// Counts of times in buckets that are at most an eighth of their value wide: exact up to 15 ns, up to 584
/// years.
#[derive(Debug, Clone)]
pub struct Histogram {
    counts: Box<[u64; BUCKETS]>,
    max: u64,
}

const SUB_BITS: u32 = 3;
const BUCKETS: usize = (64 - SUB_BITS as usize + 1) << SUB_BITS;

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: Box::new([0; BUCKETS]), max: 0 }
    }
}

impl Histogram {
    /// Memory of a histogram in bytes.
    pub const BYTES: usize = size_of::<Self>() + size_of::<[u64; BUCKETS]>();

    /// Counts a time.
    #[inline]
    pub fn record(&mut self, time: Nanos) {
        self.record_all(time, 1);
    }

    /// Counts a time `count` times, at least once.
    #[inline]
    pub fn record_all(&mut self, time: Nanos, count: u64) {
        self.counts[bucket(time.0)] += count;
        if time.0 > self.max {
            self.raise(time.0);
        }
    }

    /// Records a new maximum: a rare event.
    #[cold]
    #[inline(never)]
    fn raise(&mut self, max: u64) {
        self.max = max;
    }

    /// Number of counted times.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The largest time.
    pub fn max(&self) -> Nanos {
        Nanos(self.max)
    }

    /// The quantile `share` (0 to 1): the upper edge of its bucket.
    pub fn quantile(&self, share: f64) -> Nanos {
        let total = self.total();
        let wanted = ((total as f64 * share).ceil() as u64).clamp(1, total.max(1));
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return Nanos(upper_edge(index).min(self.max));
            }
        }
        Nanos(self.max)
    }

    /// Number of times above `limit`; those in the limit's own bucket are not included.
    pub fn above(&self, limit: Nanos) -> u64 {
        self.counts[bucket(limit.0) + 1..].iter().sum()
    }

    /// Adds another's counts.
    pub fn merge(&mut self, other: &Self) {
        self.counts.iter_mut().zip(other.counts.iter()).for_each(|(mine, theirs)| *mine += theirs);
        self.max = self.max.max(other.max);
    }

    /// Becomes equal to another, without memory of its own.
    pub fn copy_from(&mut self, other: &Self) {
        self.counts.copy_from_slice(&other.counts[..]);
        self.max = other.max;
    }

    /// What was counted since an earlier copy. Its largest time is exact if it is a new maximum, else the
    /// upper edge of its bucket.
    pub fn since(&self, earlier: &Self) -> Self {
        let mut fresh = self.clone();
        fresh.counts.iter_mut().zip(earlier.counts.iter()).for_each(|(now, then)| *now -= then);
        if self.max == earlier.max {
            let last = fresh.counts.iter().rposition(|&count| count > 0);
            fresh.max = last.map_or(0, |index| upper_edge(index).min(self.max));
        }
        fresh
    }
}

#[inline]
fn bucket(value: u64) -> usize {
    if value < 1 << SUB_BITS {
        return value as usize;
    }
    let top = 63 - value.leading_zeros();
    let sub = (value >> (top - SUB_BITS)) as usize & ((1 << SUB_BITS) - 1);
    ((top - SUB_BITS + 1) as usize) << SUB_BITS | sub
}

/// The largest value in the bucket.
fn upper_edge(index: usize) -> u64 {
    if index < 1 << SUB_BITS {
        return index as u64;
    }
    let shift = (index >> SUB_BITS) as u32 - 1;
    let sub = (index & ((1 << SUB_BITS) - 1)) as u64 + (1 << SUB_BITS);
    ((u128::from(sub) + 1) << shift).saturating_sub(1).min(u64::MAX.into()) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_narrow_and_in_order() {
        let mut last = 0;
        for shift in 0..64u32 {
            for near in [0u64, 1, 2] {
                let value = (1u64 << shift).saturating_add(near << shift.saturating_sub(2));
                let index = bucket(value);
                assert!(index >= last || value < 8, "{value}");
                assert!(
                    upper_edge(index) >= value && upper_edge(index) <= value.saturating_add(value / 8),
                    "{value}"
                );
                last = last.max(index);
            }
        }
        assert!(bucket(u64::MAX) < BUCKETS);
    }

    #[test]
    fn quantiles() {
        let mut histogram = Histogram::default();
        (1..=1000).for_each(|n| histogram.record(Nanos(n * 1000)));
        let p50 = histogram.quantile(0.5).0;
        assert!((500_000..=562_500).contains(&p50), "{p50}");
        assert_eq!(histogram.quantile(1.0), Nanos(1_000_000));
        assert_eq!(histogram.max(), Nanos(1_000_000));
        assert_eq!(Histogram::default().quantile(0.99), Nanos::ZERO);
        let above = histogram.above(Nanos(900_000));
        assert!((20..=100).contains(&above), "{above}");
    }

    #[test]
    fn the_difference_has_what_came_in_between() {
        let (mut histogram, mut copy) = (Histogram::default(), Histogram::default());
        histogram.record_all(Nanos(5), 10);
        histogram.record(Nanos(1000));
        copy.copy_from(&histogram);
        assert_eq!((histogram.since(&copy).total(), histogram.since(&copy).max()), (0, Nanos::ZERO));
        histogram.record_all(Nanos(7), 3);
        let fresh = histogram.since(&copy);
        assert_eq!((fresh.total(), fresh.max(), fresh.quantile(0.5)), (3, Nanos(7), Nanos(7)));
        histogram.record(Nanos(1001));
        assert_eq!(histogram.since(&copy).max(), Nanos(1001));
    }
}
