//! Successive draws that resemble each other.

use longwire_block::Dice;
use longwire_units::Probability;

/// Uniform 64-bit draws of which each is, with a given probability, the one before it again.
///
/// That probability ρ is the autocorrelation of whatever is looked up with the draws: ρ from one draw to the
/// next, ρᵏ over k draws. What is looked up keeps its distribution exactly, whichever it is. netem instead
/// takes (1 − ρ)·fresh + ρ·last of the uniform numbers: its values drift where these stay and leap, but they
/// are no longer uniform (at ρ = 50 % their deviation is 58 % of what it should be), so that the stated
/// deviation is not kept, nor the mean of a distribution that is not symmetric.
#[derive(Debug)]
pub struct Draws {
    dice: Dice,
    correlation: Probability,
    last: u64,
}

impl Draws {
    /// Draws from `dice`, each independent of the others.
    pub fn new(mut dice: Dice) -> Self {
        let last = dice.draw();
        Self { dice, correlation: Probability::ZERO, last }
    }

    /// Gives the draws from now on this autocorrelation.
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
                // Four deviations of the estimate; runs of mean 1/(1 − ρ) leave so many fewer independent
                // products.
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
            // Kolmogorov–Smirnov at 1 %, of as many independent draws as the runs leave.
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
