//! Confidence intervals of runs and of spreads, and counts of what is missing.

use longwire_report::chances::central;

/// Central interval of the chi-squared distribution with four degrees of freedom with `share` of its mass.
/// Its distribution function is F(x) = 1 − (1 + x/2)·e^(−x/2).
pub(crate) fn chi_squared_interval_4(share: f64) -> (f64, f64) {
    let tail = (1.0 - share) / 2.0;
    let below = |x: f64| 1.0 - (1.0 + x / 2.0) * (-x / 2.0).exp();
    let quantile = |wanted: f64| {
        let (mut low, mut high) = (0.0, 200.0);
        for _ in 0..100 {
            let middle = f64::midpoint(low, high);
            if below(middle) < wanted { low = middle } else { high = middle }
        }
        low
    };
    (quantile(tail), quantile(1.0 - tail))
}

/// Expected number of runs of successive losses among `n` packets of which `lost` are lost, if each order of
/// them is equally likely, and the interval with at least `share` of all orders.
///
/// C(lost − 1, r − 1) · C(n − lost + 1, r) of the C(n, lost) orders have r runs (Wald and Wolfowitz 1940): a
/// hypergeometric distribution.
pub(crate) fn runs_interval(n: u64, lost: u64, share: f64) -> (f64, (u64, u64)) {
    let kept = n.saturating_sub(lost);
    if lost == 0 || kept == 0 {
        let runs = u64::from(lost > 0);
        return (runs as f64, (runs, runs));
    }
    let (total, losses) = (n as f64, lost as f64);
    let mean = losses * (kept as f64 + 1.0) / total;
    let variance = mean * (losses - 1.0) / total * kept as f64 / (total - 1.0);
    let step = |r: u64| (lost - r) as f64 / r as f64 * (kept + 1 - r) as f64 / (r + 1) as f64;
    (mean, central((1, lost.min(kept + 1)), (mean, variance.sqrt()), step, share))
}

/// Number of runs of successive missing numbers below `n`, and of missing numbers; `seen` is unordered.
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
    fn chi_squared_as_tables_have_it() {
        let near =
            |(low, high): (f64, f64), (a, b): (f64, f64)| (low - a).abs() < 1e-3 && (high - b).abs() < 1e-3;
        assert!(near(chi_squared_interval_4(0.99), (0.207, 14.860)), "{:?}", chi_squared_interval_4(0.99));
        assert!(near(chi_squared_interval_4(0.95), (0.484, 11.143)));
    }

    #[test]
    fn runs_by_hand() {
        // Two lost of four: 3 of 6 orders have one run, 3 have two.
        assert_eq!(runs_interval(4, 2, 0.99), (1.5, (1, 2)));
        // Three lost of 100: 98 of 161 700 orders have one run, 9506 two, 152 096 three.
        assert_eq!(runs_interval(100, 3, 0.99), (2.94, (2, 3)));
        assert_eq!(runs_interval(100, 3, 0.9), (2.94, (2, 3)));
        assert_eq!(runs_interval(100, 3, 0.85), (2.94, (3, 3)));
        assert_eq!((runs_interval(10, 0, 0.99), runs_interval(3, 3, 0.99)), ((0.0, (0, 0)), (1.0, (1, 1))));
        assert_eq!(missing(6, &[2, 0, 3, 9]), (2, 3), "1 and 4–5");
        assert_eq!(missing(3, &[2]), (1, 2));
        assert_eq!(missing(0, &[]), (0, 0));
    }
}
