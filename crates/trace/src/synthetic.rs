//! Traces generated from published figures, where no recording may be redistributed.
//!
//! The model is that of Winstein, Sivaraman and Balakrishnan, "Stochastic Forecasts Achieve High Throughput
//! and Low Delay over Cellular Networks" (NSDI 2013, section 3.1): opportunities form a Poisson process whose
//! rate follows a Brownian motion, with outages that end at a constant rate. Here the rate moves over
//! [`LEVELS`] levels from nearly zero to nearly twice the mean, all equally likely in the long run, so that
//! the mean is the requested one.

use longwire_block::Dice;
use longwire_units::{Nanos, Probability, Rate};
use std::fmt::Write;

use crate::mahimahi::BYTES;

/// Number of levels of the rate.
pub const LEVELS: u64 = 16;

/// Parameters of a link like those of a cellular network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cellular {
    /// The mean rate, outages included, in bytes of opportunities (1504 each).
    pub mean: Rate,
    /// Coherence time of the rate: its autocorrelation falls to 1/e in this time. At least 52 ms.
    pub coherence: Nanos,
    /// The share of time without any opportunity.
    pub outage: Probability,
    /// The mean length of such an outage, at least 1 ms.
    pub outage_length: Nanos,
}

impl Cellular {
    /// Generates a trace of `length` (whole milliseconds, at least one) in mahimahi's format. The same seed
    /// gives the same trace. If the last millisecond has no opportunity, one is added, because the last line
    /// is the length.
    pub fn mahimahi(&self, length: Nanos, seed: u64) -> String {
        let mut walk = Walk::new(self, seed);
        let millis = (length.0 / MILLI).max(1);
        let mut text = String::new();
        let mut last = 0;
        for time in 1..=millis {
            for _ in 0..walk.millisecond() {
                // Writing to a string can't fail.
                let _ = writeln!(text, "{time}");
                last = time;
            }
        }
        if last < millis {
            let _ = writeln!(text, "{millis}");
        }
        text
    }
}

const MILLI: u64 = 1_000_000;
/// One, in the fixed-point format of expected opportunities.
const UNIT: u128 = 1 << 64;

/// State of the model in a millisecond.
struct Walk {
    dice: Dice,
    level: u64,
    is_out: bool,
    /// Probabilities per millisecond, as fractions of 2⁶⁴: to step to a neighbouring level, to begin an
    /// outage, to end it.
    step: u64,
    fall: u64,
    escape: u64,
    /// Trials per millisecond, and the probability of each at level 0.5 (see [`Walk::millisecond`]).
    trials: u64,
    chance: u128,
}

impl Walk {
    fn new(link: &Cellular, seed: u64) -> Self {
        // The slowest mode of a walk over K levels with reflecting ends decays with τ = K²/(π²·D), D = q/2
        // levels² per step.
        let coherence = u128::from(link.coherence.0.max(MILLI));
        let step = u128::from(2 * LEVELS * LEVELS * MILLI) * UNIT * 10_000 / 98_696 / coherence;
        let escape = UNIT * u128::from(MILLI) / u128::from(link.outage_length.0.max(MILLI));
        // Share = fall / (fall + escape), below 100 % for every link.
        let share = u128::from(link.outage.bits()).min(ONE / 100 * 99);
        let fall = escape * share / (ONE - share);
        // Opportunities a millisecond while there is no outage.
        let mean = u128::from(link.mean.0.min(Rate::MAX.0)) * UNIT / u128::from(BYTES * 8 * 1000);
        let mean = ((mean >> 32) * ONE / (ONE - share)) << 32;
        // The highest level is just below twice the mean; four trials for each opportunity keep their number
        // nearly Poisson.
        let trials = (8 * (mean / UNIT + 1)) as u64;
        let mut dice = Dice::named(seed, "cellular");
        let level = dice.below(LEVELS);
        Self {
            dice,
            level,
            is_out: false,
            step: chance(step),
            fall: chance(fall),
            escape: chance(escape),
            trials,
            chance: mean / u128::from(trials) / u128::from(LEVELS),
        }
    }

    /// Opportunities in the next millisecond. Level k means k + ½ of `LEVELS` parts of twice the mean.
    fn millisecond(&mut self) -> u64 {
        let turn = if self.is_out { self.escape } else { self.fall };
        self.is_out ^= self.dice.draw() < turn;
        if self.dice.draw() < self.step {
            let up = self.dice.draw() >> 63 == 1;
            // Steps over an end are not taken, so that all levels are equally likely.
            self.level = if up { (self.level + 1).min(LEVELS - 1) } else { self.level.saturating_sub(1) };
        }
        if self.is_out {
            return 0;
        }
        let chance = chance(self.chance * u128::from(2 * self.level + 1));
        (0..self.trials).filter(|_| self.dice.draw() < chance).count() as u64
    }
}

const ONE: u128 = Probability::ONE.bits() as u128;

fn chance(of: u128) -> u64 {
    of.min(UNIT - 1) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Opportunities;

    fn link(mean: &str, outage: &str) -> Cellular {
        Cellular {
            mean: mean.parse().unwrap(),
            coherence: Nanos::from_millis(500),
            outage: outage.parse().unwrap(),
            outage_length: Nanos::from_millis(300),
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_trace() {
        let link = link("5 Mbit/s", "2 %");
        let length = Nanos::from_secs(5);
        assert_eq!(link.mahimahi(length, 1), link.mahimahi(length, 1));
        assert_ne!(link.mahimahi(length, 1), link.mahimahi(length, 2));
        assert_eq!(Opportunities::parse(&link.mahimahi(length, 1)).unwrap().length(), length);
    }

    /// The rate is uniform over levels of standard deviation 0.577 of the mean with a correlation time of 0.5
    /// s: over 2000 s the mean has a standard error of 0.577·√(2·0.5/2000) = 1.3 %; outages of 0.3 s add
    /// √(0.1·0.9·2·0.27/2000)/0.9 = 0.55 %. Four of √(1.3² + 0.55²) are 5.6 %.
    #[test]
    fn has_the_mean_asked_for() {
        let length = Nanos::from_secs(2000);
        for (mean, outage) in [("1 Mbit/s", "0 %"), ("9 Mbit/s", "10 %"), ("40 Mbit/s", "2 %")] {
            let trace = Opportunities::parse(&link(mean, outage).mahimahi(length, 3)).unwrap();
            let wanted: Rate = mean.parse().unwrap();
            let ratio = trace.mean().as_f64() / wanted.as_f64();
            assert!((ratio - 1.0).abs() < 0.056, "{mean}: {ratio}");
        }
    }

    /// Outages of 300 ms are 10 % of the time. Of 2000 s that is a standard deviation of
    /// √(0.1·0.9·2·0.27/2000) = 0.49 %, and gaps of 100 ms without an outage are so rare at 40 Mbit/s (3
    /// opportunities a ms, 0.1 at the lowest level) that they are in the noise. A gap shows the part of an
    /// outage that is above 100 ms in full: e^(−1/3)·(1 + 1/3) = 95.5 % of the time.
    #[test]
    fn is_out_for_the_share_asked_for() {
        let trace =
            Opportunities::parse(&link("40 Mbit/s", "10 %").mahimahi(Nanos::from_secs(2000), 9)).unwrap();
        let gaps = trace.times().windows(2).map(|pair| pair[1] - pair[0]).filter(|&gap| gap > 100);
        let share = f64::from(gaps.sum::<u32>()) / 2_000_000.0;
        assert!((share - 0.0955).abs() < 4.0 * 0.0049, "{share}");
    }

    /// The autocorrelation of the rate over windows of 20 ms falls to 1/e at about the coherence time.
    #[test]
    fn forgets_itself_in_the_coherence_time() {
        let trace =
            Opportunities::parse(&link("40 Mbit/s", "0 %").mahimahi(Nanos::from_secs(1000), 4)).unwrap();
        let mut counts = vec![0.0; 50_001];
        for &time in trace.times() {
            counts[time as usize / 20] += 1.0;
        }
        let mean = counts.iter().sum::<f64>() / counts.len() as f64;
        let covariance = |lag: usize| -> f64 {
            counts.iter().zip(&counts[lag..]).map(|(a, b)| (a - mean) * (b - mean)).sum()
        };
        // Lag 0 has the Poisson noise, lag 1 next to none of the decay. Effective samples: 1000 s / (2·0.5 s)
        // = 1000, so a standard error of about 0.03 in the correlation.
        let correlation = covariance(25) / covariance(1);
        assert!((correlation - 0.368).abs() < 0.12, "{correlation}");
    }

    #[test]
    fn extremes_do_no_harm() {
        for (mean, outage) in [("0", "0 %"), ("300 bit/s", "100 %"), ("unlimited", "0 %")] {
            let mut odd = link(mean, outage);
            (odd.coherence, odd.outage_length) = (Nanos::ZERO, Nanos::ZERO);
            let text = odd.mahimahi(Nanos::from_millis(3), 1);
            assert_eq!(Opportunities::parse(&text).unwrap().length(), Nanos::from_millis(3));
        }
    }
}
