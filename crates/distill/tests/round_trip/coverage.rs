//! Over many seeds, intervals at 95 % contain the true value as often as they say.

use super::path::{captures, distilled};
use longwire_distill::{DelayFinding, Distilled, Estimate, Process};

const SEEDS: u64 = 200;

/// The most misses of intervals at 95 % that `trials` correct ones have, but for one case in ten thousand.
fn most_misses(trials: u64) -> u64 {
    let mut probability = 0.95f64.powi(trials as i32);
    let mut sum = probability;
    let mut misses = 0;
    while sum < 0.9999 {
        probability *= (trials - misses) as f64 / (misses + 1) as f64 * 0.05 / 0.95;
        sum += probability;
        misses += 1;
    }
    misses
}

/// Distils a path for each seed, and counts how often an estimate misses its true value.
fn assert_covered(link: &str, source: &str, estimates: fn(&Distilled) -> Vec<(&'static str, Estimate, f64)>) {
    let mut all: Vec<(&str, u64, u64)> = Vec::new();
    for seed in 1..=SEEDS {
        for (name, estimate, truth) in estimates(&distilled(&captures(link, &[source], seed), 0.95)) {
            let place = all.iter().position(|(known, ..)| *known == name).unwrap_or_else(|| {
                all.push((name, 0, 0));
                all.len() - 1
            });
            all[place].1 += 1;
            all[place].2 += u64::from(!estimate.contains(truth));
        }
    }
    assert!(!all.is_empty());
    for (name, trials, misses) in all {
        let most = most_misses(trials);
        assert!(trials > SEEDS / 2, "{name}: found with {trials} seeds only");
        assert!(misses <= most, "{name}: {misses} of {trials} intervals miss, at most {most} may");
    }
}

#[test]
fn the_binomial_by_hand() {
    // 200 trials miss 10 times on average, with a deviation of 3.1.
    assert!((20..=25).contains(&most_misses(200)), "{}", most_misses(200));
    assert_eq!(most_misses(0), 0);
}

#[test]
fn of_rate_delay_loss_and_duplicates() {
    let link = "rate = \"10 Mbit/s\"\nqueue = \"unlimited\"\nloss = \"3 %\"\nduplicate = \"2 %\"\n\
        delay = { delay = \"30 ms\", jitter = \"1 ms\", distribution = \"normal\", order = \"reorder\" }";
    let source = "size = \"996 B\"\nmodel = \"poisson\"\nrate = \"9 Mbit/s\"\npackets = 1200";
    assert_covered(link, source, |found| {
        let mut all = vec![("loss", found.loss.share, 0.03), ("duplicates", found.copies.share, 0.02)];
        all.extend(found.rate.estimate().map(|rate| ("rate", rate, 1e7)));
        // Without the rate the delay is that of queue and transmission, too.
        if let (Some(DelayFinding::Varying(varying)), Some(_)) = (&found.delay, found.rate.estimate()) {
            let quantiles = [("delay 5 %", 1, -1.64485), ("delay 50 %", 3, 0.0), ("delay 95 %", 5, 1.64485)];
            for (name, place, deviations) in quantiles {
                let found = varying.quantiles_ns[place];
                all.extend(found.map(|quantile| (name, quantile, 30e6 + deviations * 1e6)));
            }
            all.push(("mean delay", varying.mean_ns, 30e6));
        }
        all
    });
}

#[test]
fn of_bursts_and_reordering() {
    let link = "delay = \"20 ms\"\nreorder = { probability = \"10 %\", by = \"3 ms\" }\n\
        loss = { kind = \"gilbert-elliott\", p = \"3 %\", r = \"30 %\" }";
    assert_covered(link, "size = \"200 B\"\ninterval = \"1 ms\"\npackets = 2500", |found| {
        let mut all = vec![("loss", found.loss.share, 0.03 / 0.33)];
        if let Process::Bursts { p, r, .. } = found.loss.process {
            all.extend([("p", p, 0.03), ("r", r, 0.3)]);
        }
        if let Some(DelayFinding::Constant { delay_ns, early: Some(early) }) = &found.delay {
            all.extend([("delay", *delay_ns, 20e6), ("reorder", early.share, 0.1), ("by", early.by_ns, 3e6)]);
        }
        all
    });
}
