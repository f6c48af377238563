//! Kernel receive timestamps, in CLOCK_REALTIME, mapped to CLOCK_MONOTONIC.
//!
//! Both clocks run at the same (disciplined) rate; only steps of the real-time clock change their offset. The
//! tightest measurement is kept until one differs from it by more than the error of both.

use longwire_clock::{monotonic, realtime};

/// The offset between the clocks, and its error.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mapping {
    /// Monotonic minus real time, in nanoseconds.
    offset: i64,
    /// Duration of the measurement, which bounds its error, in nanoseconds.
    width: i64,
}

impl Mapping {
    /// Measures the offset.
    pub(crate) fn measure() -> Self {
        let mut best = Self { offset: 0, width: i64::MAX };
        for _ in 0..5 {
            let before = monotonic().0 as i64;
            let real = realtime().0 as i64;
            let after = monotonic().0 as i64;
            let width = after - before;
            if width < best.width {
                best = Self { offset: before + width / 2 - real, width };
            }
        }
        best
    }

    /// Measures again, and follows a step of the real-time clock.
    pub(crate) fn renew(&mut self) {
        *self = self.merge(Self::measure());
    }

    fn merge(self, new: Self) -> Self {
        let stepped = (new.offset - self.offset).abs() > (new.width + self.width) / 2 + 1;
        if stepped || new.width < self.width { new } else { self }
    }

    /// The monotonic time of a real-time stamp, in nanoseconds.
    #[inline]
    pub(crate) fn monotonic(&self, seconds: u32, nanoseconds: u32) -> i64 {
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
