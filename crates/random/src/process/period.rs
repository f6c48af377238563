//! How long states last.

use crate::math::{NEG_LN_SHIFT, exp_bits, neg_ln};
use longwire_units::Nanos;

/// An exponential time of this mean, to the nearest nanosecond.
pub(super) fn exponential(mean: Nanos, draw: u64) -> Nanos {
    let product = u128::from(mean.0) * u128::from(neg_ln(draw));
    Nanos(saturated((product + (1 << (NEG_LN_SHIFT - 1))) >> NEG_LN_SHIFT))
}

/// A Pareto time of this mean, to the nearest nanosecond: k·u^(−1/α) for a uniform u, with the least time k =
/// mean·(α − 1)/α. The shape α is in millionths, above one.
pub(super) fn pareto(mean: Nanos, shape: u64, draw: u64) -> Nanos {
    const ONE: u128 = 1_000_000;
    /// Fractional bits of the minimum time.
    const LEAST: u32 = 16;
    let shape = u128::from(shape).max(ONE + 1);
    let least = ((u128::from(mean.0) * (shape - ONE)) << LEAST) / shape;
    let (mantissa, shift) = exp_bits((u128::from(neg_ln(draw)) * ONE / shape) as u64);
    // 48 fractional bits of the mantissa; below 2⁶⁴⁺¹⁶ and 2⁴⁸ together, and shift is at most 63.
    let down = (48 + LEAST) - shift.min(63);
    let Some(product) = least.checked_mul(u128::from(mantissa >> 14)) else { return Nanos::NEVER };
    Nanos(saturated((product + (1 << (down - 1))) >> down))
}

/// As 64 bits.
pub(super) fn saturated(nanos: u128) -> u64 {
    u64::try_from(nanos).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The draw for which neg_ln returns −ln(1/2ⁿ).
    const fn halved(n: u32) -> u64 {
        u64::MAX >> n
    }

    #[test]
    fn times_by_hand() {
        let mean = Nanos::from_millis(1);
        // n·ln 2 milliseconds.
        for (n, wanted) in [(0, 0), (1, 693_147), (2, 1_386_294), (10, 6_931_472), (64, 44_361_420)] {
            let draw = if n == 64 { 0 } else { halved(n) };
            assert_eq!(exponential(mean, draw), Nanos(wanted), "{n}");
        }
        // The minimum time is (α − 1)/α of the mean; each halving of the draw multiplies it by 2^(1/α).
        for (shape, n, wanted) in [
            (2_000_000, 0, 500_000),
            (2_000_000, 2, 1_000_000),
            (2_000_000, 20, 512_000_000),
            (1_250_000, 0, 200_000),
            (1_250_000, 5, 3_200_000),
            (4_000_000, 4, 1_500_000),
        ] {
            assert_eq!(pareto(mean, shape, halved(n)), Nanos(wanted), "{shape} {n}");
        }
    }

    #[test]
    fn the_longest_times_are_never() {
        assert_eq!(exponential(Nanos(u64::MAX / 2), 0), Nanos::NEVER);
        assert_eq!(pareto(Nanos::from_secs(86_400), 1_010_000, 0), Nanos::NEVER);
        assert_eq!(pareto(Nanos(u64::MAX), 10_000_000, 0), Nanos::NEVER);
        assert_eq!(pareto(Nanos(1000), 0, u64::MAX), Nanos::ZERO);
    }
}
