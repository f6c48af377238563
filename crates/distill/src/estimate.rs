//! A value with its interval.

use crate::statistics::{Level, wilson};

/// An estimate of one quantity, in the unit that its field names.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The most plausible value.
    pub value: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
    /// Independent observations that it rests on.
    pub samples: u64,
}

impl Estimate {
    /// The probability of which `hits` of `trials` independent trials are known, with Wilson's interval.
    pub fn share(hits: u64, trials: u64, level: Level) -> Self {
        let (low, high) = wilson(hits as f64, trials as f64, level);
        Self { value: hits as f64 / trials.max(1) as f64, low, high, samples: trials }
    }

    /// Whether the interval contains `value`, ends included.
    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// With value and interval changed by a monotonic function.
    pub fn map(self, change: impl Fn(f64) -> f64) -> Self {
        let (one, other) = (change(self.low), change(self.high));
        Self { value: change(self.value), low: one.min(other), high: one.max(other), ..self }
    }
}
