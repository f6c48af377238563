//! Queueing theory: Poisson arrivals at a link of constant rate.

use super::bench::{Bench, NOT_ECT};
use longwire_block::Dice;

/// M/D/1: the mean wait is ρ / (2·(1 − ρ)) service times (Pollaczek–Khinchine). The deviation of the mean is
/// taken from 40 batches.
#[test]
fn poisson_arrivals_wait_as_long_as_they_should() {
    // 125 bytes at 1 Mbit/s take 1 ms.
    let service = 1e6;
    for load in [0.3, 0.5, 0.8] {
        let mut bench = Bench::new("tail-drop", &[("limit", "unlimited")], "1 Mbit/s");
        let mut dice = Dice::named(1, "poisson");
        let mut at = 0.0;
        let mut batches = Vec::new();
        for _ in 0..40 {
            for _ in 0..5000 {
                let uniform = (dice.draw() >> 11) as f64 / (1u64 << 53) as f64;
                at -= (1.0 - uniform).ln() * service / load;
                bench.arrive(at as u64, 1, NOT_ECT, 125);
            }
            let waits: f64 = bench.left.iter().map(|left| (left.leave - left.arrival) as f64 - service).sum();
            batches.push(waits / bench.left.len() as f64 / service);
            bench.left.clear();
        }
        let mean = batches.iter().sum::<f64>() / 40.0;
        let variance = batches.iter().map(|batch| (batch - mean).powi(2)).sum::<f64>() / 39.0;
        let wanted = load / (2.0 * (1.0 - load));
        // Four deviations of the mean; the batches are nearly independent.
        let tolerance = 4.0 * (variance / 40.0).sqrt();
        assert!(tolerance < 0.15 * wanted, "{load}: the test would see nothing");
        assert!((mean - wanted).abs() < tolerance, "{load}: {mean} {wanted} ± {tolerance}");
    }
}
