//! Seeds of the rows that draw: several for each, derived from the run's own and the row's name, so that a
//! row draws the same whichever others run.

use crate::Settings;
use crate::chances::chi_squared_interval_4;
use longwire_block::Dice;

/// How many seeds a row has.
pub(crate) const SEEDS: usize = 5;

/// The seeds of the row of this name.
pub(crate) fn of_row(settings: &Settings<'_>, name: &str) -> [u64; SEEDS] {
    let mut dice = Dice::named(settings.seed, name);
    std::array::from_fn(|_| dice.below(1 << 32))
}

/// Whether counts that should come from one binomial distribution lie as far apart as chance has them,
/// with `share` of all cases inside. Counts that are all the same, because nothing was drawn anew, do not.
pub(crate) fn spread(counts: [u64; SEEDS], n: u64, probability: f64, share: f64) -> (f64, bool) {
    let mean = counts.iter().sum::<u64>() as f64 / SEEDS as f64;
    let squares: f64 = counts.iter().map(|count| (*count as f64 - mean).powi(2)).sum();
    // Of chi-squared distribution with one degree of freedom less than there are counts.
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
        // 1 % of 120 000: 34.5 is the standard deviation.
        let judge = |counts| spread(counts, 120_000, 0.01, 0.99).1;
        assert!(judge([1180, 1230, 1195, 1240, 1160]));
        assert!(!judge([1204, 1204, 1204, 1204, 1204]), "the same draw five times");
        assert!(!judge([1100, 1300, 1350, 1150, 1050]), "further apart than chance has them");
    }
}
