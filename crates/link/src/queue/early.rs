//! Early drops of the RED family: with a probability that grows with the average, evenly spaced (Floyd &
//! Jacobson, "Random early detection gateways for congestion avoidance", 1993, the second of its two
//! methods).

use super::Admission;
use super::average::UNIT;
use super::settings::{Limit, signal};
use longwire_block::{Dice, DropReason, Verdict};

/// A probability of 1, in steps of 2⁻³².
pub(super) const CERTAIN: u64 = 1 << 32;

/// Consequence of the average for a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Nothing.
    Spared,
    /// Selected: it is dropped or marked.
    Chosen,
    /// The average is so high that all packets are dropped.
    Refused,
}

impl Outcome {
    /// The verdict on a packet, which may also find a full queue. ECN-capable packets are marked instead of
    /// dropped early, if `marks`.
    #[inline(always)]
    pub(super) fn verdict(self, packet: &Admission<'_>, limit: Limit, marks: bool) -> Verdict {
        match self {
            Self::Refused => Verdict::Drop(DropReason::Aqm),
            _ if !limit.has_room(packet) => Verdict::Drop(DropReason::QueueFull),
            Self::Chosen => signal(marks, packet),
            Self::Spared => Verdict::Pass,
        }
    }
}

/// The thresholds, and the number of packets spared since the last selected one.
#[derive(Debug, Default)]
pub(super) struct Early {
    dice: Dice,
    /// In steps of 2⁻³², like the average.
    min: u64,
    max: u64,
    /// The average from which all packets are refused.
    end: u64,
    /// Probability (2⁻³²) per packet or byte of the average, in steps of 2⁻⁵⁶: below `max`, and from there to
    /// `end`.
    slopes: [u64; 2],
    /// Probability at `max`, in steps of 2⁻³².
    max_p: u64,
    /// Packets spared since the last selected one, while the average was above `min`.
    count: u64,
}

impl Early {
    pub(super) fn new(dice: Dice) -> Self {
        Self { dice, ..Self::default() }
    }

    /// Sets thresholds in packets or bytes (`max` is at least `min`), the probability at `max` in steps of
    /// 2⁻³², and whether it continues to rise to 1 at twice `max` (Floyd, "Recommendation on using the gentle
    /// variant of RED", 2000).
    pub(super) fn set(&mut self, (min, max): (u64, u64), max_p: u64, gentle: bool) {
        let max = max.max(min);
        (self.min, self.max, self.max_p) = (min << 32, max << 32, max_p);
        self.end = if gentle { self.max * 2 } else { self.max };
        let slope = |rise: u64, run: u64| match run {
            0 => 0,
            _ => ((u128::from(rise) << 56) / u128::from(run)) as u64,
        };
        self.slopes = [slope(max_p, self.max - self.min), slope(CERTAIN - max_p, self.max)];
    }

    /// p_b at an average between the thresholds, in steps of 2⁻³².
    #[inline]
    pub(super) fn base(&self, average: u64) -> u64 {
        let rise = |above: u64, slope: u64| ((u128::from(above) * u128::from(slope)) >> 56) as u64;
        if average < self.max {
            rise(average - self.min, self.slopes[0])
        } else {
            self.max_p + rise(average - self.max, self.slopes[1])
        }
    }

    /// Judges a packet at this average; `size` is the factor of p_b, in steps of 2⁻³².
    #[inline]
    pub(super) fn judge(&mut self, average: u64, size: u64) -> Outcome {
        if average < self.min {
            self.count = 0;
            return Outcome::Spared;
        }
        if average >= self.end {
            self.count = 0;
            return Outcome::Refused;
        }
        let base = ((u128::from(self.base(average)) * u128::from(size)) >> 32) as u64;
        self.draw(base)
    }

    /// Draws with p_a = p_b / (1 − count·p_b), without a division: u < p_a is u·(1 − count·p_b) < p_b.
    #[inline]
    fn draw(&mut self, base: u64) -> Outcome {
        let used = self.count.saturating_mul(base);
        let chosen =
            used.saturating_add(base) >= CERTAIN || (self.dice.draw() >> 32) * (CERTAIN - used) < base << 32;
        self.count = if chosen { 0 } else { self.count + 1 };
        if chosen { Outcome::Chosen } else { Outcome::Spared }
    }

    /// Counts a packet that is spared regardless of the average.
    #[inline]
    pub(super) fn spare(&mut self) {
        self.count += 1;
    }

    /// The thresholds, in steps of 2⁻³².
    #[inline]
    pub(super) fn thresholds(&self) -> (u64, u64) {
        (self.min, self.max)
    }
}

/// Converts a parameter's probability to steps of 2⁻³².
pub(super) const fn in_steps(probability: u64) -> u64 {
    probability >> 31
}

/// An average or length in packets or bytes, in steps of 2⁻³².
pub(super) const fn length(of: u64) -> u64 {
    of * UNIT
}

#[cfg(test)]
mod tests {
    use super::*;

    fn early(thresholds: (u64, u64), max_p: u64, gentle: bool) -> Early {
        let mut early = Early::new(Dice::named(1, "early"));
        early.set(thresholds, max_p, gentle);
        early
    }

    #[test]
    fn probability_by_the_average() {
        let early = early((5, 15), CERTAIN / 10, true);
        // (average, p_b in thousandths): halfway, at max, and gently on to 30.
        for (average, thousandths) in [(5.0, 0.0), (10.0, 50.0), (15.0, 100.0), (22.5, 550.0), (29.9, 994.0)]
        {
            let p = early.base((average * UNIT as f64) as u64) as f64 / CERTAIN as f64;
            assert!((p * 1000.0 - thousandths).abs() < 1e-3, "{average}: {p}");
        }
    }

    #[test]
    fn thresholds_part_the_outcomes() {
        let mut abrupt = early((5, 15), 0, false);
        let mut gentle = early((5, 15), 0, true);
        for (average, one, other) in [
            (length(5) - 1, Outcome::Spared, Outcome::Spared),
            (length(15) - 1, Outcome::Spared, Outcome::Spared),
            (length(15), Outcome::Refused, Outcome::Spared),
            (length(30), Outcome::Refused, Outcome::Refused),
        ] {
            assert_eq!((abrupt.judge(average, CERTAIN), gentle.judge(average, CERTAIN)), (one, other));
        }
        let mut both = early((7, 7), CERTAIN / 2, false);
        assert_eq!(both.judge(length(7), CERTAIN), Outcome::Refused);
        assert_eq!(both.judge(length(7) - 1, CERTAIN), Outcome::Spared);
    }

    /// With p_b = 1/50 the gaps are uniform on 1 … 50: chi-square with 49 degrees of freedom, 99.99 % below
    /// 96.
    #[test]
    fn gaps_are_uniform() {
        let mut early = early((0, 10), CERTAIN / 10, false);
        let (mut gap, mut gaps, mut seen) = (0, [0u32; 50], 0);
        while seen < 50_000 {
            gap += 1;
            // 1/50 of 2³², rounded up, so that the fiftieth is certain.
            if early.draw(85_899_346) == Outcome::Chosen {
                gaps[gap - 1] += 1;
                (gap, seen) = (0, seen + 1);
            }
        }
        let chi: f64 = gaps.iter().map(|&n| (f64::from(n) - 1000.0).powi(2) / 1000.0).sum();
        assert!(chi < 96.0, "{chi} {gaps:?}");
    }
}
