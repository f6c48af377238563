//! The kernel's timestamps of packets, in CLOCK_REALTIME, mapped to CLOCK_MONOTONIC.
//!
//! Both clocks run at the same (disciplined) rate; only steps of the real-time clock change their offset. The
//! tightest measurement is kept until one differs from it by more than the error of both.

use crate::{monotonic, realtime};

/// The offset between the clocks, and its error.
#[derive(Debug, Clone, Copy)]
pub struct Mapping {
    /// Monotonic minus real time, in nanoseconds.
    offset: i64,
    /// Duration of the measurement, which bounds its error, in nanoseconds.
    width: i64,
}

impl Mapping {
    /// Measures the offset a few times.
    #[must_use]
    pub fn measure() -> Self {
        let mut best = Self::measure_once();
        for _ in 1..5 {
            let new = Self::measure_once();
            if new.width < best.width {
                best = new;
            }
        }
        best
    }

    fn measure_once() -> Self {
        let before = monotonic().0 as i64;
        let real = realtime().0 as i64;
        let width = monotonic().0 as i64 - before;
        Self { offset: before + width / 2 - real, width }
    }

    /// Measures again, and follows a step of the real-time clock.
    pub fn renew(&mut self) {
        *self = self.merge(Self::measure());
    }

    /// As [`Mapping::renew`], but measures only once: for frequent calls.
    pub fn refine(&mut self) {
        *self = self.merge(Self::measure_once());
    }

    fn merge(self, new: Self) -> Self {
        let stepped = (new.offset - self.offset).abs() > (new.width + self.width) / 2 + 1;
        if stepped || new.width < self.width { new } else { self }
    }

    /// The monotonic time of a real-time stamp, in nanoseconds.
    #[inline]
    #[must_use]
    pub fn monotonic(&self, seconds: u32, nanoseconds: u32) -> i64 {
        i64::from(seconds) * 1_000_000_000 + i64::from(nanoseconds) + self.offset
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tighter_measurement_stays_until_the_clock_steps() {
        let old = Mapping { offset: 1000, width: 60 };
        let cases = [
            // (offset, width) measured, offset kept
            ((1010, 100), 1000),
            ((1010, 40), 1010),
            ((5_000_000, 100), 5_000_000),
            ((-9, 300), 1000 - 1009),
            ((900, 200), 1000),
        ];
        for ((offset, width), kept) in cases {
            assert_eq!(old.merge(Mapping { offset, width }).offset, kept, "{offset} {width}");
        }
    }

    #[test]
    fn maps_the_present_to_the_present() {
        let mapping = Mapping::measure();
        let before = monotonic().0 as i64;
        let real = realtime().0 as i64;
        let after = monotonic().0 as i64;
        let mapped = mapping.monotonic((real / 1_000_000_000) as u32, (real % 1_000_000_000) as u32);
        assert!(
            (before - mapping.width..=after + mapping.width).contains(&mapped),
            "{before} {mapped} {after}"
        );
    }
}
