//! Confidence intervals of counts.

/// Central interval of a binomial distribution with at least `share` of its mass: with `share` 0.99 at most
/// 0.5 % are below and at most 0.5 % above. For `n` trials of `probability`.
pub fn binomial_interval(n: u64, probability: f64, share: f64) -> (u64, u64) {
    if probability <= 0.0 {
        return (0, 0);
    }
    if probability >= 1.0 {
        return (n, n);
    }
    let odds = probability / (1.0 - probability);
    let mean = n as f64 * probability;
    let step = |k: u64| (n - k) as f64 / (k + 1) as f64 * odds;
    central((0, n), (mean, (mean * (1.0 - probability)).sqrt()), step, share)
}

/// Central interval of a unimodal distribution on whole numbers with its peak near its mean. `step` is the
/// ratio of the next number's weight to a number's own.
pub fn central(
    (least, most): (u64, u64),
    (mean, deviation): (f64, f64),
    step: impl Fn(u64) -> f64,
    share: f64,
) -> (u64, u64) {
    // Weights beyond 12 standard deviations, plus a margin for small ones, are negligible.
    let reach = (12.0 * deviation) as u64 + 40;
    let middle = (mean as u64).clamp(least, most);
    let (low, high) = (middle.saturating_sub(reach).max(least), (middle + reach).min(most));
    let at = |k: u64| (k - low) as usize;
    let mut weights = vec![0.0; at(high) + 1];
    weights[at(middle)] = 1.0;
    for k in middle..high {
        weights[at(k) + 1] = weights[at(k)] * step(k);
    }
    for k in (low..middle).rev() {
        weights[at(k)] = weights[at(k) + 1] / step(k);
    }
    let tail = weights.iter().sum::<f64>() * (1.0 - share) / 2.0;
    let below = cut(weights.iter(), tail);
    let above = cut(weights.iter().rev(), tail);
    (low + below, high - above)
}

/// Number of leading weights whose sum is at most `tail`.
fn cut<'a>(weights: impl Iterator<Item = &'a f64>, tail: f64) -> u64 {
    let sums = weights.scan(0.0, |sum, weight| {
        *sum += weight;
        Some(*sum)
    });
    sums.take_while(|sum| *sum <= tail).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binomial_intervals_by_hand() {
        // Ten tosses: P(0) = 1/1024 and P(0 or 1) = 11/1024, so that 99 % leave out 0 and 10 only.
        assert_eq!(binomial_interval(10, 0.5, 0.99), (1, 9));
        assert_eq!(binomial_interval(10, 0.5, 0.95), (2, 8));
        assert_eq!((binomial_interval(5, 0.0, 0.99), binomial_interval(5, 1.0, 0.99)), ((0, 0), (5, 5)));
        // With many trials: mean ± 2.576 standard deviations of √(np(1−p)) = 34.47, to a whole packet.
        let (low, high) = binomial_interval(120_000, 0.01, 0.99);
        assert!((1111..=1112).contains(&low) && (1289..=1290).contains(&high), "{low} {high}");
    }

    #[test]
    fn many_trials_and_few() {
        // Four tosses of a coin: 1, 4, 6, 4, 1 sixteenths.
        assert_eq!(binomial_interval(4, 0.5, 0.99), (0, 4));
        assert_eq!(binomial_interval(4, 0.5, 0.8), (1, 3));
        assert_eq!(binomial_interval(0, 0.3, 0.99), (0, 0));
        // 257 ± 3.9 · 15.9 by the normal approximation.
        let (low, high) = binomial_interval(12_842, 0.02, 0.9999);
        assert!((190..=200).contains(&low) && (317..=327).contains(&high), "{low} {high}");
        let (low, high) = binomial_interval(10_000_000, 0.02, 0.9999);
        assert!(low > 198_000 && high < 202_000 && low < 200_000 && high > 200_000, "{low} {high}");
    }
}
