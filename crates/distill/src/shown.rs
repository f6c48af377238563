//! Estimates as text.

use crate::estimate::Estimate;
use longwire_report::in_unit;
use longwire_units::{Nanos, Rate, counted};

/// Significant digits of the ends of intervals.
const DIGITS: i32 = 6;

/// The value with the fewest digits in the interval; of those the nearest to the estimate.
pub fn roundest(estimate: &Estimate) -> f64 {
    let Estimate { value, low, high, .. } = *estimate;
    let rounded = (1..=17).map(|digits| rounded(value, digits, f64::round));
    let mut inside = rounded.filter(|rounded| (low..=high).contains(rounded));
    inside.next().unwrap_or(value)
}

/// Rounds to that many significant digits.
fn rounded(value: f64, digits: i32, to: fn(f64) -> f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let power = digits - 1 - value.abs().log10().floor() as i32;
    // One of the two is exact for powers up to 22.
    if power >= 0 {
        let scale = 10f64.powi(power);
        to(value * scale) / scale
    } else {
        let scale = 10f64.powi(-power);
        to(value / scale) * scale
    }
}

/// An interval in a unit that [`in_unit`] knows, rounded outwards: `9.9 ms to 10.1 ms`.
pub fn interval(estimate: &Estimate, unit: &str) -> String {
    let low = rounded(estimate.low, DIGITS, f64::floor);
    let high = rounded(estimate.high, DIGITS, f64::ceil);
    format!("{} to {}", number(low, unit), number(high, unit))
}

fn number(value: f64, unit: &str) -> String {
    match unit {
        // Both print exactly, in the largest unit that allows it.
        "ns" if value >= 0.0 => nanos(value).to_string(),
        "bit/s" if value >= 0.0 => Rate(value as u64).to_string(),
        "%" => percent(value / 100.0),
        "packets" if value >= 0.0 => counted(value as u64, "packet"),
        _ => in_unit(value, unit),
    }
}

/// A share in per cent, with six significant digits.
pub fn percent(share: f64) -> String {
    let text = format!("{:.9}", rounded(share * 100.0, DIGITS, f64::round));
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

/// A time of a result; 0 if it is negative.
pub fn nanos(value: f64) -> Nanos {
    Nanos(value.round().max(0.0) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(value: f64, low: f64, high: f64) -> Estimate {
        Estimate { value, low, high, samples: 1 }
    }

    #[test]
    fn values_are_as_round_as_their_intervals_allow() {
        for (value, low, high, round) in [
            (4_999_999.5, 4_999_998.0, 5_000_001.0, 5e6),
            (10_000_003.2, 9_999_999.0, 10_000_007.0, 1e7),
            (1234.0, 1230.0, 1239.0, 1230.0),
            (1234.0, 1233.5, 1234.5, 1234.0),
            (0.0, 0.0, 0.0, 0.0),
            (-12.0, -20.0, -8.0, -10.0),
        ] {
            assert_eq!(roundest(&estimate(value, low, high)), round, "{value}");
        }
    }

    #[test]
    fn intervals_are_rounded_outwards() {
        let found = estimate(5e6, 4_999_998.3, 5_000_001.2);
        assert_eq!(interval(&found, "ns"), "4999.99 us to 5000.01 us");
        assert_eq!(interval(&estimate(1e7, 9_999_999.9, 1e7), "bit/s"), "9999.99 kbit/s to 10 Mbit/s");
        assert_eq!(interval(&estimate(2.0, 1.0, 12.0), "packets"), "1 packet to 12 packets");
        assert_eq!(percent(0.019_324_512_3), "1.93245 %");
        assert_eq!(
            (percent(0.0), percent(1.0), percent(1e-9)),
            ("0 %".into(), "100 %".into(), "0.0000001 %".into())
        );
        assert_eq!((nanos(-3.0), nanos(2.6)), (Nanos(0), Nanos(3)));
    }
}
