//! Prediction of the processing cost of a flow's next packet from measurements.

/// A method of prediction, in integers only: feasible on a processor without floating point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Estimator {
    /// Single exponential smoothing: estimate ← α · measured + (1 − α) · estimate, with a fraction of 2⁻¹⁶
    /// cycles.
    Smoothed {
        /// α in 1/65 536, 1 to 65 536.
        alpha: u32,
    },
    /// The paper's variant with α = ½, in whole cycles: (measured + estimate) >> 1, rounded down each time.
    Shift,
    /// What was measured last.
    Last,
    /// The mean of all measurements.
    Mean,
    /// No prediction: the cost of each packet is known on arrival (virtual time). Otherwise the last
    /// measurement.
    Exact,
}

impl Estimator {
    /// Smoothed with the paper's α of ½.
    pub const HALF: Self = Self::Smoothed { alpha: 1 << 15 };

    /// All kinds with their names, for help texts and tests; α is ½.
    pub const ALL: [(&'static str, Self); 5] = [
        ("ses", Self::HALF),
        ("ses-shift", Self::Shift),
        ("last", Self::Last),
        ("mean", Self::Mean),
        ("exact", Self::Exact),
    ];
}

/// Estimator state of a flow.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Memory {
    /// 2⁻¹⁶ cycles, whole cycles, or the sum of all, depending on the estimator.
    value: u64,
    samples: u32,
}

impl Memory {
    /// The state of a flow without measurements.
    pub(crate) fn new(estimator: Estimator, first: u64) -> Self {
        let value = match estimator {
            Estimator::Smoothed { .. } => first << 16,
            _ => first,
        };
        Self { value, samples: 0 }
    }

    /// Adds a measurement of at most 2³⁰ cycles. Returns the new estimate in whole cycles.
    #[inline]
    pub(crate) fn take(&mut self, estimator: Estimator, measured: u64) -> u64 {
        match estimator {
            Estimator::Smoothed { alpha } => {
                let (old, new) = (self.value as i64, (measured << 16) as i64);
                let alpha = i64::from(alpha.min(1 << 16));
                self.value = (old + (((new - old) * alpha) >> 16)) as u64;
                self.value >> 16
            }
            Estimator::Shift => {
                self.value = (measured + self.value) >> 1;
                self.value
            }
            Estimator::Last | Estimator::Exact => {
                self.value = measured;
                measured
            }
            Estimator::Mean => {
                // The initial estimate is not a measurement. A sum at its limit keeps its mean, with half its
                // weight.
                let sum = if self.samples == 0 { 0 } else { self.value };
                let full = self.samples == u32::MAX || sum > u64::MAX >> 1;
                let (sum, samples) = if full { (sum / 2, self.samples / 2) } else { (sum, self.samples) };
                self.value = sum + measured;
                self.samples = samples + 1;
                self.value / u64::from(self.samples)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimates(estimator: Estimator, first: u64, measured: &[u64]) -> Vec<u64> {
        let mut memory = Memory::new(estimator, first);
        measured.iter().map(|cycles| memory.take(estimator, *cycles)).collect()
    }

    #[test]
    fn estimates_by_hand() {
        let measured = [101, 200, 200, 1];
        for (estimator, expected) in [
            // 50.5, 125.25, 162.625, 81.8125
            (Estimator::HALF, [50, 125, 162, 81]),
            // The half cycle is lost each time: 50, 125, 162, 81.
            (Estimator::Shift, [50, 125, 162, 81]),
            // 25.25, 68.94, 101.7, 76.5
            (Estimator::Smoothed { alpha: 1 << 14 }, [25, 68, 101, 76]),
            (Estimator::Last, [101, 200, 200, 1]),
            (Estimator::Mean, [101, 150, 167, 125]),
            (Estimator::Exact, [101, 200, 200, 1]),
        ] {
            assert_eq!(estimates(estimator, 0, &measured), expected, "{estimator:?}");
        }
    }

    #[test]
    fn the_papers_shift_is_exact_but_for_the_last_fraction() {
        // ⌊(m + ⌊e⌋) / 2⌋ = ⌊(m + e) / 2⌋ for whole m: rounding errors do not accumulate, and stay below the
        // paper's one cycle.
        let measured: Vec<u64> = (0..1000).map(|n| 2400 + (n * 7919) % 1201).collect();
        assert_eq!(estimates(Estimator::HALF, 0, &measured), estimates(Estimator::Shift, 0, &measured));
    }

    #[test]
    fn a_mean_that_is_full_goes_on() {
        let mut memory = Memory { value: u64::MAX, samples: u32::MAX };
        let before = u64::MAX / u64::from(u32::MAX);
        let after = memory.take(Estimator::Mean, before);
        assert!(after.abs_diff(before) <= 1, "{after}");
    }
}
