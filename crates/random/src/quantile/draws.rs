//! Correlated successive draws.

use longwire_block::Dice;
use longwire_units::Probability;

/// Uniform 64-bit draws, each of which repeats the previous one with a given probability.
///
/// That probability ρ is the autocorrelation of any value looked up with the draws: ρ from one draw to the
/// next, ρᵏ over k draws. The distribution of these values is exactly preserved. netem instead uses (1 −
/// ρ)·fresh + ρ·last of the uniform numbers: its values drift where these stay and jump, but they are no
/// longer uniform (at ρ = 50 % their deviation is 58 % of the correct one), so that neither the stated
/// deviation nor the mean of an asymmetric distribution is preserved.
#[derive(Debug)]
pub struct Draws {
    dice: Dice,
    correlation: Probability,
    last: u64,
}

impl Draws {
    /// Independent draws from `dice`.
    pub fn new(mut dice: Dice) -> Self {
        let last = dice.draw();
        Self { dice, correlation: Probability::ZERO, last }
    }

    /// Sets the autocorrelation of later draws.
    pub fn correlate(&mut self, correlation: Probability) {
        self.correlation = correlation;
    }

    /// The next draw.
    #[inline]
    pub fn draw(&mut self) -> u64 {
        let again = self.correlation != Probability::ZERO && self.correlation.happens(self.dice.draw());
        if !again {
            self.last = self.dice.draw();
        }
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const N: usize = 100_000;

    fn series(correlation: &str) -> Vec<f64> {
        let mut draws = Draws::new(Dice::named(1, "draws"));
        draws.correlate(correlation.parse().unwrap());
        (0..N).map(|_| draws.draw() as f64 / 2f64.powi(64) - 0.5).collect()
    }

    #[test]
    fn autocorrelation_is_as_stated() {
        for (text, rho) in [("0 %", 0.0f64), ("25 %", 0.25), ("50 %", 0.5), ("90 %", 0.9)] {
            let series = series(text);
            let variance = series.iter().map(|x| x * x).sum::<f64>() / N as f64;
            for lag in 1..4 {
                let product = series.windows(lag + 1).map(|w| w[0] * w[lag]).sum::<f64>() / (N - lag) as f64;
                // Four deviations of the estimate; runs of mean length 1/(1 − ρ) reduce the number of
                // independent products.
                let bound = 4.0 * ((1.0 + rho) / (1.0 - rho) / N as f64).sqrt();
                let (got, wanted) = (product / variance, rho.powi(lag as i32));
                assert!((got - wanted).abs() < bound, "{text}, lag {lag}: {got}, not {wanted} ± {bound}");
            }
        }
    }

    #[test]
    fn the_distribution_stays_uniform() {
        for (text, rho) in [("0 %", 0.0f64), ("50 %", 0.5), ("90 %", 0.9)] {
            let mut sorted = series(text);
            sorted.sort_by(f64::total_cmp);
            let gap = |(i, x): (usize, &f64)| (i as f64 / N as f64 - (x + 0.5)).abs();
            let worst = sorted.iter().enumerate().map(gap).fold(0.0, f64::max);
            // Kolmogorov–Smirnov at 1 %, for the number of independent draws.
            let bound = 1.628 * ((1.0 + rho) / (1.0 - rho) / N as f64).sqrt();
            assert!(worst < bound, "{text}: {worst} {bound}");
        }
    }

    #[test]
    fn all_or_nothing() {
        let mut draws = Draws::new(Dice::named(1, "draws"));
        draws.correlate(Probability::ONE);
        let first = draws.draw();
        assert!((0..100).all(|_| draws.draw() == first));
        draws.correlate(Probability::ZERO);
        assert!((0..100).all(|_| draws.draw() != first));
    }
}
