//! Seeds of random rows: several for each, derived from the run's seed and the row's name, so that a row's
//! draws do not depend on which others run.

use crate::Settings;
use crate::chances::chi_squared_interval_4;
use longwire_block::Dice;

/// Number of seeds per row.
pub(crate) const SEEDS: usize = 5;

/// The seeds of the row with this name.
pub(crate) fn of_row(settings: &Settings<'_>, name: &str) -> [u64; SEEDS] {
    let mut dice = Dice::named(settings.seed, name);
    std::array::from_fn(|_| dice.below(1 << 32))
}

/// Tests whether the spread of counts from one binomial distribution is random, with `share` of all cases
/// inside. Identical counts, which show that nothing was drawn anew, fail.
pub(crate) fn spread(counts: [u64; SEEDS], n: u64, probability: f64, share: f64) -> (f64, bool) {
    let mean = counts.iter().sum::<u64>() as f64 / SEEDS as f64;
    let squares: f64 = counts.iter().map(|count| (*count as f64 - mean).powi(2)).sum();
    // Chi-squared distribution with one degree of freedom less than the number of counts.
    let spread = squares / (n as f64 * probability * (1.0 - probability));
    let (low, high) = chi_squared_interval_4(share);
    (spread, (low..=high).contains(&spread))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn rows_have_seeds_of_their_own_and_the_same_ones_again() {
        let stop = AtomicBool::new(false);
        let settings = Settings::of_test(&stop);
        let one = of_row(&settings, "loss of 1 %");
        assert_eq!(one, of_row(&settings, "loss of 1 %"));
        assert_ne!(one, of_row(&settings, "loss of 3 %"));
        assert_ne!(one, of_row(&Settings { seed: 8, ..settings }, "loss of 1 %"));
        assert!((1..SEEDS).all(|at| one[at] != one[at - 1]));
    }

    #[test]
    fn counts_of_one_frozen_draw_are_seen() {
        // 1 % of 120 000: the standard deviation is 34.5.
        let judge = |counts| spread(counts, 120_000, 0.01, 0.99).1;
        assert!(judge([1180, 1230, 1195, 1240, 1160]));
        assert!(!judge([1204, 1204, 1204, 1204, 1204]), "the same draw five times");
        assert!(!judge([1100, 1300, 1350, 1150, 1050]), "further apart than chance has them");
    }
}
