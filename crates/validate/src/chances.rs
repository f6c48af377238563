//! How far chance alone takes a count.

/// Two-sided 99 %, in standard deviations of a normal distribution.
pub(crate) const SIGMAS_99: f64 = 2.5758;

/// The central interval of a binomial distribution that holds at least `share` of it: with `share` 0.99 at most 0.5 %
/// lie below and at most 0.5 % above. For `n` trials of `probability`.
pub(crate) fn binomial_interval(n: u64, probability: f64, share: f64) -> (u64, u64) {
    if probability <= 0.0 {
        return (0, 0);
    }
    if probability >= 1.0 {
        return (n, n);
    }
    let odds = probability / (1.0 - probability);
    let mode = ((n + 1) as f64 * probability) as u64;
    // Weights relative to the mode's, each from its neighbour's; beyond 12 standard deviations there is nothing.
    let reach = (12.0 * (n as f64 * probability * (1.0 - probability)).sqrt()) as u64 + 12;
    let (low, high) = (mode.saturating_sub(reach), (mode + reach).min(n));
    let mut weights = vec![0.0; (high - low + 1) as usize];
    weights[(mode - low) as usize] = 1.0;
    for k in mode..high {
        let at = (k - low) as usize;
        weights[at + 1] = weights[at] * (n - k) as f64 / (k + 1) as f64 * odds;
    }
    for k in (low + 1..=mode).rev() {
        let at = (k - low) as usize;
        weights[at - 1] = weights[at] * k as f64 / (n - k + 1) as f64 / odds;
    }
    let tail = weights.iter().sum::<f64>() * (1.0 - share) / 2.0;
    let cut = |weights: &mut dyn Iterator<Item = &f64>| {
        let mut sum = 0.0;
        weights
            .take_while(|weight| {
                sum += **weight;
                sum <= tail
            })
            .count() as u64
    };
    let below = cut(&mut weights.iter());
    let above = cut(&mut weights.iter().rev());
    (low + below, high - above)
}

/// How many runs of successive losses are to be expected among `n` packets of which `lost` are lost, if each order of them
/// is equally likely, and the standard deviation: the number of runs is hypergeometric (Wald and Wolfowitz 1940).
pub(crate) fn expected_runs(n: u64, lost: u64) -> (f64, f64) {
    let (n, lost) = (n as f64, lost as f64);
    if n < 2.0 {
        return (lost, 0.0);
    }
    let share = (n - lost + 1.0) / n;
    let variance = lost * share * (lost - 1.0) / n * (n - lost) / (n - 1.0);
    (lost * share, variance.max(0.0).sqrt())
}

/// How many runs of successive numbers are missing of those below `n`, and how many numbers; `seen` are in any order.
pub(crate) fn missing(n: u64, seen: &[u64]) -> (u64, u64) {
    let mut there = vec![false; n as usize];
    for number in seen {
        if let Some(there) = usize::try_from(*number).ok().and_then(|number| there.get_mut(number)) {
            *there = true;
        }
    }
    let lost = there.iter().filter(|there| !**there).count() as u64;
    let first = u64::from(there.first().is_some_and(|there| !there));
    let runs = first + there.windows(2).filter(|pair| pair[0] && !pair[1]).count() as u64;
    (runs, lost)
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
        // Many trials: mean ± 2.576 standard deviations of √(np(1−p)) = 34.47, to a whole packet.
        let (low, high) = binomial_interval(120_000, 0.01, 0.99);
        assert!((1111..=1112).contains(&low) && (1289..=1290).contains(&high), "{low} {high}");
    }

    #[test]
    fn runs_by_hand() {
        // Two lost of four: 3 of 6 orders have one run, 3 have two.
        assert_eq!(expected_runs(4, 2), (1.5, 0.5));
        assert_eq!(expected_runs(10, 0), (0.0, 0.0));
        assert_eq!(missing(6, &[2, 0, 3, 9]), (2, 3), "1 and 4–5");
        assert_eq!(missing(3, &[2]), (1, 2));
        assert_eq!(missing(0, &[]), (0, 0));
    }
}
