//! Two-piece service curves: service due by a time, and the time at which a service is due.
//!
//! Times are nanoseconds, service is bytes. Slopes are stored as 2⁻⁵⁸ bytes per nanosecond and as 2⁻³⁹
//! nanoseconds per byte, each accurate to one part in 10¹⁰ from 300 bit/s to 400 Gbit/s; products have 128
//! bits and saturate. There are no divisions after a curve has been parsed.

use longwire_units::{Nanos, Rate};

/// Nanoseconds per byte at 1 bit/s.
const NANOBITS: u128 = 8_000_000_000;
/// Fractional bits of bytes per nanosecond and of nanoseconds per byte.
const BYTES_POINT: u32 = 58;
const NANOS_POINT: u32 = 39;

/// The slope of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Slope {
    bytes: u64,
    /// Unused for a slope of zero.
    nanos: u64,
}

/// A service curve: `first` from a moment on, and `second` after `knee` (m1, d, m2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Service {
    first: Slope,
    second: Slope,
    /// The slope of `first` above `second`.
    excess: Slope,
    knee: u128,
    /// Bytes by then.
    height: u64,
}

/// A positioned service curve: from (x, y) on, with the remaining width of its first piece.
#[derive(Debug, Clone, Copy)]
pub(super) struct Curve {
    x: u128,
    y: u64,
    width: u128,
    height: u64,
}

impl Slope {
    fn new(rate: u64) -> Self {
        let clip = |slope: u128| u64::try_from(slope).unwrap_or(u64::MAX);
        Self {
            bytes: clip(((u128::from(rate) << BYTES_POINT) + NANOBITS / 2) / NANOBITS),
            nanos: (NANOBITS << NANOS_POINT).checked_div(rate.into()).map_or(u64::MAX, clip),
        }
    }

    #[inline]
    fn bytes_in(self, nanos: u128) -> u64 {
        let nanos = u64::try_from(nanos).unwrap_or(u64::MAX);
        u64::try_from(rounded(u128::from(nanos) * u128::from(self.bytes), BYTES_POINT)).unwrap_or(u64::MAX)
    }

    #[inline]
    fn nanos_for(self, bytes: u64) -> u128 {
        match (bytes, self.bytes) {
            (0, _) => 0,
            (_, 0) => u128::MAX,
            _ => rounded(u128::from(bytes) * u128::from(self.nanos), NANOS_POINT),
        }
    }
}

impl Service {
    /// The curve with rate `first` for a time, then `second`.
    pub(super) fn new(first: Rate, knee: Nanos, second: Rate) -> Self {
        let slope = Slope::new(first.0);
        Self {
            first: slope,
            second: Slope::new(second.0),
            excess: Slope::new(first.0.saturating_sub(second.0)),
            knee: knee.0.into(),
            height: slope.bytes_in(knee.0.into()),
        }
    }

    /// Whether its rate never decreases.
    fn is_convex(&self) -> bool {
        self.first.bytes <= self.second.bytes
    }
}

impl Default for Curve {
    /// The curve of a class that was never active: no bound.
    fn default() -> Self {
        Self { x: 0, y: u64::MAX, width: 0, height: 0 }
    }
}

impl Curve {
    /// The service due by `x`.
    #[inline]
    fn at(&self, service: &Service, x: u128) -> u64 {
        let after = x.saturating_sub(self.x);
        let more = if after <= self.width {
            service.first.bytes_in(after).min(self.height)
        } else {
            self.height.saturating_add(service.second.bytes_in(after - self.width))
        };
        self.y.saturating_add(more)
    }

    /// The time at which a service of `y` is due; [`u128::MAX`] for never.
    #[inline]
    pub(super) fn inverse(&self, service: &Service, y: u64) -> u128 {
        let above = y.saturating_sub(self.y);
        let after = if above <= self.height {
            service.first.nanos_for(above).min(self.width)
        } else {
            self.width.saturating_add(service.second.nanos_for(above - self.height))
        };
        self.x.saturating_add(after)
    }

    /// Lowers it to the minimum with a curve that begins at (x, y).
    ///
    /// Two pieces are enough: of convex curves the one that is lower at x stays lower; of concave ones the
    /// first piece of the new can cut the second piece of the old once.
    pub(super) fn join(&mut self, service: &Service, x: u128, y: u64) {
        let old = self.at(service, x);
        if old < y {
            return;
        }
        let new = Self { x, y, width: service.knee, height: service.height };
        if service.is_convex() {
            *self = new;
            return;
        }
        let by_knee = self.at(service, x.saturating_add(service.knee));
        if by_knee >= y.saturating_add(service.height) {
            *self = new;
            return;
        }
        // They are parallel as long as the old has a first piece; then the gap closes.
        let parallel = self.x.saturating_add(self.width).saturating_sub(x);
        let width = parallel.saturating_add(service.excess.nanos_for(old - y)).min(service.knee);
        *self = Self { x, y, width, height: service.first.bytes_in(width) };
    }

    /// The curve without its first piece, if that is the flatter one: the eligible curve, which ensures that
    /// later deadlines can be met.
    #[inline]
    pub(super) fn eligible(&self, service: &Service) -> Self {
        if service.is_convex() { Self { width: 0, height: 0, ..*self } } else { *self }
    }

    /// Shifts it to later times.
    #[inline]
    pub(super) fn delay(&mut self, by: u128) {
        self.x = self.x.saturating_add(by);
    }
}

/// A product of two 64-bit numbers without fractional bits, rounded to nearest.
#[inline]
fn rounded(product: u128, point: u32) -> u128 {
    product.saturating_add(1 << (point - 1)) >> point
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u128 = 1_000_000;

    /// 8 Mbit/s is a byte per microsecond.
    fn service(first: u64, knee: u64, second: u64) -> Service {
        Service::new(Rate(first * 8_000_000), Nanos::from_millis(knee), Rate(second * 8_000_000))
    }

    #[test]
    fn both_ways() {
        let concave = service(2, 10, 1);
        let mut curve = Curve::default();
        curve.join(&concave, 5 * MS, 500);
        for (x, y) in [(5, 500), (6, 2_500), (15, 20_500), (16, 21_500), (1015, 1_020_500)] {
            assert!(curve.at(&concave, x * MS).abs_diff(y) <= 1, "{x} {y}");
            assert!(curve.inverse(&concave, y).abs_diff(x * MS) <= 1, "{x} {y}");
        }
        let never = service(2, 10, 0);
        let mut curve = Curve::default();
        curve.join(&never, 0, 0);
        assert_eq!(curve.inverse(&never, 20_001), u128::MAX);
    }

    /// A class with 2 bytes/µs for 10 ms, then 1, becomes active again: (time, service so far) → knee of the
    /// joined curve.
    #[test]
    fn a_burst_comes_back_as_far_as_it_was_not_used() {
        let concave = service(2, 10, 1);
        // From (0, 0): at 20 ms 30000 are due.
        let table = [
            (20, 30_000, 0, 0, "all that was due was served: no burst is left"),
            (20, 25_000, 5, 10_000, "5000 fewer were: they come at 1 byte/µs above the second slope"),
            (20, 10_000, 10, 20_000, "20000 fewer: a whole burst again"),
            (4, 5_000, 9, 18_000, "still in the first piece: parallel for 6 ms, 3000 apart"),
        ];
        for (x, y, width, height, why) in table {
            let mut curve = Curve::default();
            curve.join(&concave, 0, 0);
            curve.join(&concave, x * MS, y);
            assert!(curve.width.abs_diff(width * MS) <= 2000, "{why}: {curve:?}");
            assert!(curve.height.abs_diff(height) <= 4, "{why}: {curve:?}");
        }
    }

    proptest! {
        /// The joined curve is the minimum of the two, anywhere after x.
        #[test]
        fn joining_takes_the_lower(
            (m1, knee, m2) in (1u64..20, 0u64..50, 1u64..20),
            (x, y, look) in (0u128..100, 0u64..200_000, 0u128..200),
        ) {
            let service = service(m1, knee, m2);
            let mut old = Curve::default();
            old.join(&service, 0, 0);
            let mut fresh = Curve::default();
            fresh.join(&service, x * MS, y);
            let mut joined = old;
            joined.join(&service, x * MS, y);
            let at = (x + look) * MS;
            // Of convex curves only one is kept: the lower one at x.
            let lower = match service.is_convex() {
                true if old.at(&service, x * MS) < y => old.at(&service, at),
                true => fresh.at(&service, at),
                false => old.at(&service, at).min(fresh.at(&service, at)),
            };
            prop_assert!(joined.at(&service, at).abs_diff(lower) <= 50, "{joined:?} {lower}");
        }
    }
}
