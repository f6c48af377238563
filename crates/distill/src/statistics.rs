//! Intervals and tests: Wilson's interval, order statistics, Fisher's exact test.
//!
//! Floating point throughout: these are results for people, not decisions about packets.

use std::f64::consts::PI;

/// Confidence of intervals: the share of measurements whose intervals contain the true value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Level(f64);

impl Level {
    /// 95 %.
    pub const DEFAULT: Self = Self(0.95);

    /// A level from 50 % to 99.9999 %, as a fraction; none outside.
    pub fn new(share: f64) -> Option<Self> {
        (0.5..=0.999_999).contains(&share).then_some(Self(share))
    }

    /// The level as a fraction.
    pub const fn share(self) -> f64 {
        self.0
    }

    /// The probability beyond one end of a two-sided interval.
    pub fn tail(self) -> f64 {
        (1.0 - self.0) / 2.0
    }

    /// The number of standard deviations between the mean and an end of a two-sided interval.
    pub fn deviations(self) -> f64 {
        let (mut low, mut high) = (0.0, 10.0);
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            (low, high) = if normal_tail(middle) > self.tail() { (middle, high) } else { (low, middle) };
        }
        low
    }
}

/// P(Z > z) of the standard normal distribution, z ≥ 0: Abramowitz & Stegun 26.2.17, within 7.5·10⁻⁸.
fn normal_tail(z: f64) -> f64 {
    const FACTORS: [f64; 5] = [1.330_274_429, -1.821_255_978, 1.781_477_937, -0.356_563_782, 0.319_381_530];
    let t = 1.0 / (1.0 + 0.231_641_9 * z);
    let series = FACTORS.iter().fold(0.0, |sum, factor| (sum + factor) * t);
    series * (-z * z / 2.0).exp() / (2.0 * PI).sqrt()
}

/// Wilson's interval of a probability of which `hits` of `trials` independent trials are known (Wilson 1927).
/// Both may be fractions of effective numbers. From 0 to 1 without trials.
pub fn wilson(hits: f64, trials: f64, level: Level) -> (f64, f64) {
    if trials <= 0.0 {
        return (0.0, 1.0);
    }
    let z2 = level.deviations().powi(2);
    let share = hits / trials;
    let centre = share + z2 / (2.0 * trials);
    let spread = (z2 * (share * (1.0 - share) + z2 / (4.0 * trials)) / trials).max(0.0).sqrt();
    let scale = 1.0 + z2 / trials;
    let low = if hits <= 0.0 { 0.0 } else { ((centre - spread) / scale).clamp(0.0, 1.0) };
    let high = if hits >= trials { 1.0 } else { ((centre + spread) / scale).clamp(0.0, 1.0) };
    (low, high)
}

/// Ranks, from 0, of the two order statistics of `count` independent samples between which the quantile at
/// `share` lies with the level; none if there are too few samples for one of them.
pub fn quantile_ranks(count: usize, share: f64, level: Level) -> Option<(usize, usize)> {
    let low = rank_below(count, share, level.tail())?;
    let high = rank_below(count, 1.0 - share, level.tail())?;
    // From the other end.
    Some((low - 1, count - high))
}

/// The largest rank, from 1, of an order statistic that lies above the quantile with at most the probability
/// `tail`: fewer samples than the rank are below the quantile, whose number is binomial.
fn rank_below(count: usize, share: f64, tail: f64) -> Option<usize> {
    let n = count as f64;
    let deviation = (n * share * (1.0 - share)).sqrt();
    // Less than 10⁻²⁰ is neglected.
    let first = (n * share - 10.0 * deviation).max(0.0).floor() as usize;
    let (mut sum, mut below) = (0.0, first);
    while below <= count {
        sum += binomial(count, below, share);
        if sum > tail {
            break;
        }
        below += 1;
    }
    // `below` samples below the quantile are too likely; one fewer is not.
    (below > 0).then_some(below)
}

/// The probability of exactly `hits` in `count` trials.
fn binomial(count: usize, hits: usize, share: f64) -> f64 {
    if share <= 0.0 || share >= 1.0 {
        let sure = if share <= 0.0 { 0 } else { count };
        return if hits == sure { 1.0 } else { 0.0 };
    }
    let (n, k) = (count as f64, hits as f64);
    let ways = ln_factorial(n) - ln_factorial(k) - ln_factorial(n - k);
    (ways + k * share.ln() + (n - k) * (-share).ln_1p()).exp()
}

/// The probability of `hits` or more in `count` trials; one if that is no more than to be expected.
pub fn binomial_tail(count: usize, hits: usize, share: f64) -> f64 {
    if hits as f64 <= count as f64 * share {
        return 1.0;
    }
    let mut sum = 0.0;
    for more in hits..=count {
        let next = binomial(count, more, share);
        sum += next;
        // The terms fall quickly beyond the mean.
        if next < sum * 1e-12 {
            break;
        }
    }
    sum.min(1.0)
}

/// The logarithm of n!: by Stirling's series above 20, which is exact to 10⁻¹⁰ there.
fn ln_factorial(n: f64) -> f64 {
    if n <= 20.0 {
        return (2..=n as u64).map(|k| (k as f64).ln()).sum();
    }
    let series = 1.0 / (12.0 * n) - 1.0 / (360.0 * n.powi(3)) + 1.0 / (1260.0 * n.powi(5));
    n * n.ln() - n + 0.5 * (2.0 * PI * n).ln() + series
}

/// Counts of two events in two groups, for [`Fourfold::by_chance`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Fourfold {
    /// In the first group: with and without the event.
    pub first: (u64, u64),
    /// In the second.
    pub second: (u64, u64),
}

impl Fourfold {
    /// Probability that chance alone gives the first group as many events as it has, or more: Fisher's exact
    /// test, one-sided. One if there is nothing to compare.
    pub fn by_chance(self) -> f64 {
        let first = self.first.0 + self.first.1;
        let events = self.first.0 + self.second.0;
        let all = first + self.second.0 + self.second.1;
        let (first, events, all) = (first as f64, events as f64, all as f64);
        let fixed = ln_factorial(first)
            + ln_factorial(all - first)
            + ln_factorial(events)
            + ln_factorial(all - events)
            - ln_factorial(all);
        let probability = |hits: f64| {
            let ways = ln_factorial(hits)
                + ln_factorial(first - hits)
                + ln_factorial(events - hits)
                + ln_factorial(all - first - events + hits);
            (fixed - ways).exp()
        };
        let most = first.min(events);
        let mut hits = self.first.0 as f64;
        let mut sum = 0.0;
        while hits <= most {
            let next = probability(hits);
            sum += next;
            // The terms fall quickly beyond the mean.
            if next < sum * 1e-12 && hits > first * events / all.max(1.0) {
                break;
            }
            hits += 1.0;
        }
        sum.min(1.0)
    }
}

/// The middle value of ascending ones, at the probability `share`; none if there are none.
pub fn quantile(ascending: &[f64], share: f64) -> Option<f64> {
    let last = ascending.len().checked_sub(1)?;
    let place = share.clamp(0.0, 1.0) * last as f64;
    let (below, above) = (place.floor() as usize, place.ceil() as usize);
    Some(ascending[below] + (ascending[above] - ascending[below]) * place.fract())
}

/// Mean and variance; zeros without values.
pub fn mean_and_variance(values: impl Iterator<Item = f64>) -> (f64, f64) {
    // Welford's method, which does not cancel.
    let (mut count, mut mean, mut squares) = (0.0, 0.0, 0.0);
    for value in values {
        count += 1.0;
        let change = value - mean;
        mean += change / count;
        squares += change * (value - mean);
    }
    (mean, if count > 0.0 { squares / count } else { 0.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(share: f64) -> Level {
        Level::new(share).unwrap()
    }

    #[test]
    fn deviations_are_those_of_tables() {
        for (share, z) in [(0.5, 0.67449), (0.95, 1.95996), (0.99, 2.57583), (0.9999, 3.89059)] {
            assert!((level(share).deviations() - z).abs() < 1e-3, "{share}");
        }
        assert_eq!((Level::new(1.0), Level::new(0.4), Level::new(f64::NAN)), (None, None, None));
    }

    /// Brown, Cai and DasGupta 2001, and by hand: 0 of 10 at 95 % is 0 to z²/(10 + z²).
    #[test]
    fn wilson_by_hand() {
        let (low, high) = wilson(0.0, 10.0, Level::DEFAULT);
        assert!(low == 0.0 && (high - 3.8415 / 13.8415).abs() < 1e-3, "{high}");
        let (low, high) = wilson(5.0, 10.0, Level::DEFAULT);
        assert!((low - 0.2366).abs() < 1e-3 && (high - 0.7634).abs() < 1e-3, "{low} {high}");
        assert_eq!(wilson(10.0, 10.0, Level::DEFAULT).1, 1.0);
        assert_eq!(wilson(0.0, 0.0, Level::DEFAULT), (0.0, 1.0));
    }

    /// The median of six samples is between the least and the greatest with 1 − 2/2⁶ = 96.9 %, of five not
    /// with 95 %; of 100 between the 40th and the 61st (Conover, table).
    #[test]
    fn ranks_by_hand() {
        assert_eq!(quantile_ranks(6, 0.5, Level::DEFAULT), Some((0, 5)));
        assert_eq!(quantile_ranks(5, 0.5, Level::DEFAULT), None);
        assert_eq!(quantile_ranks(100, 0.5, Level::DEFAULT), Some((39, 60)));
        assert_eq!(quantile_ranks(0, 0.5, Level::DEFAULT), None);
        let (low, high) = quantile_ranks(1_000_000, 0.9, Level::DEFAULT).unwrap();
        // 1.96·√(0.09·10⁶) = 588.
        assert!(low.abs_diff(899_412) < 3 && high.abs_diff(900_588) < 3, "{low} {high}");
    }

    /// Fisher's tea: all four cups right happens in 1 of 70 cases, three or more in 17.
    #[test]
    fn the_lady_tasting_tea() {
        let chance =
            |right: u64| Fourfold { first: (right, 4 - right), second: (4 - right, right) }.by_chance();
        assert!((chance(4) - 1.0 / 70.0).abs() < 1e-9);
        assert!((chance(3) - 17.0 / 70.0).abs() < 1e-9);
        assert!((chance(0) - 1.0).abs() < 1e-9);
        assert_eq!(Fourfold::default().by_chance(), 1.0);
    }

    #[test]
    fn large_factorials() {
        assert!((ln_factorial(25.0) - 58.003_605_222_980_5).abs() < 1e-9);
        assert!((ln_factorial(20.0) - 42.335_616_460_753_5).abs() < 1e-9);
    }

    #[test]
    fn quantiles_and_moments() {
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(quantile(&[1.0, 2.0, 4.0], 0.75), Some(3.0));
        assert_eq!(mean_and_variance([1.0, 3.0].into_iter()), (2.0, 1.0));
        assert_eq!(mean_and_variance([].into_iter()), (0.0, 0.0));
    }
}
