//! Invariants for arbitrary bytes as a distribution; also the fuzz target `distribution`.

use longwire_random::quantile::{Chances, Shape, Times};
use longwire_units::{Nanos, Probability};

/// Draws at both ends of a generator's range, and between.
const DRAWS: [u64; 5] = [0, 1, 1 << 63, u64::MAX - 1, u64::MAX];

/// Parses the bytes as every kind of distribution. Accepted ones give times and probabilities within their
/// bounds, monotonic in the draw.
pub fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match Shape::read(&text) {
        Ok(shape) => {
            let offsets = DRAWS.map(|draw| shape.offset(draw, Nanos::from_secs(1)));
            assert!(offsets.is_sorted(), "{text:?}: {offsets:?}");
            assert!(shape.mean().is_finite() && shape.deviation().is_finite(), "{text:?}");
            assert_eq!(DRAWS.map(|draw| shape.offset(draw, Nanos::ZERO)), [0; 5], "{text:?}");
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    match Times::read(&text) {
        Ok(times) => {
            let drawn = DRAWS.map(|draw| times.at(draw));
            assert!(drawn.is_sorted() && drawn[4] <= Times::MAX, "{text:?}: {drawn:?}");
            let (least, most) = times.ends();
            assert!(least <= most, "{text:?}");
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    match Chances::read(&text) {
        Ok(chances) => {
            let drawn = DRAWS.map(|draw| chances.at(draw));
            assert!(drawn.is_sorted() && drawn[4] <= Probability::ONE, "{text:?}: {drawn:?}");
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
