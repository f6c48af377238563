//! Histogram of times.

use crate::Nanos;
use std::ops::RangeInclusive;

/// A histogram whose buckets are at most an eighth of their value wide: exact up to 15 ns.
pub type Histogram = LogHistogram<{ buckets(3) }>;

/// Counts of times of up to 584 years, in buckets whose width grows with their value.
///
/// `BUCKETS` is [`buckets`] of the precision.
#[derive(Debug, Clone)]
pub struct LogHistogram<const BUCKETS: usize> {
    counts: Box<[u64; BUCKETS]>,
    max: u64,
}

/// Number of buckets that are at most 2⁻ᵇⁱᵗˢ of their value wide, for all of `u64`.
pub const fn buckets(bits: u32) -> usize {
    (64 - bits as usize + 1) << bits
}

/// The precision that leads to a number of buckets.
const fn precision(count: usize) -> u32 {
    let mut bits = 0;
    while buckets(bits) < count {
        bits += 1;
    }
    assert!(buckets(bits) == count, "no precision has this number of buckets");
    bits
}

impl<const BUCKETS: usize> Default for LogHistogram<BUCKETS> {
    fn default() -> Self {
        Self { counts: Box::new([0; BUCKETS]), max: 0 }
    }
}

impl<const BUCKETS: usize> LogHistogram<BUCKETS> {
    /// Memory of a histogram in bytes.
    pub const BYTES: usize = size_of::<Self>() + size_of::<[u64; BUCKETS]>();
    const BITS: u32 = precision(BUCKETS);

    /// Counts a time.
    #[inline]
    pub fn record(&mut self, time: Nanos) {
        self.record_all(time, 1);
    }

    /// Counts a time `count` times, at least once.
    #[inline]
    pub fn record_all(&mut self, time: Nanos, count: u64) {
        self.counts[Self::bucket(time.0)] += count;
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
        for (values, count) in self.iter() {
            seen += count;
            if seen >= wanted {
                return Nanos((*values.end()).min(self.max));
            }
        }
        Nanos(self.max)
    }

    /// The buckets in the order of their values, each with its values and its count.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (RangeInclusive<u64>, u64)> {
        let values = |index: usize| Self::lower_edge(index)..=Self::upper_edge(index);
        self.counts.iter().enumerate().map(move |(index, &count)| (values(index), count))
    }

    /// Number of times above `limit`; those in the limit's own bucket are not included.
    pub fn above(&self, limit: Nanos) -> u64 {
        self.counts[Self::bucket(limit.0) + 1..].iter().sum()
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
            fresh.max = last.map_or(0, |index| Self::upper_edge(index).min(self.max));
        }
        fresh
    }

    #[inline]
    const fn bucket(value: u64) -> usize {
        // Small values are their own buckets: nothing is shifted out.
        let shift = (value | 1 << Self::BITS).ilog2() - Self::BITS;
        ((shift as usize) << Self::BITS) + ((value >> shift) as usize & ((2 << Self::BITS) - 1))
    }

    const fn lower_edge(index: usize) -> u64 {
        if index < 1 << Self::BITS {
            return index as u64;
        }
        let shift = (index >> Self::BITS) as u32 - 1;
        ((index & ((1 << Self::BITS) - 1)) as u64 + (1 << Self::BITS)) << shift
    }

    const fn upper_edge(index: usize) -> u64 {
        let shift = (index >> Self::BITS).saturating_sub(1) as u32;
        Self::lower_edge(index) + ((1 << shift) - 1)
    }
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
                let index = Histogram::bucket(value);
                assert!(index >= last || value < 8, "{value}");
                let (low, high) = (Histogram::lower_edge(index), Histogram::upper_edge(index));
                assert!(low <= value && value <= high && high <= value.saturating_add(value / 8), "{value}");
                last = last.max(index);
            }
        }
        assert_eq!(Histogram::upper_edge(Histogram::bucket(u64::MAX)), u64::MAX);
    }

    #[test]
    fn buckets_tile_all_values() {
        let histogram = LogHistogram::<{ buckets(7) }>::default();
        let mut next = Some(0);
        for (values, _) in histogram.iter() {
            assert_eq!(Some(*values.start()), next);
            next = values.end().checked_add(1);
        }
        assert_eq!((next, histogram.iter().count()), (None, buckets(7)));
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
