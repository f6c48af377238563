//! Probabilities as fixed-point integers.

use crate::decimal::{Reader, Unit, UnitError, as_text, unit};
use std::fmt;
use std::str::FromStr;

/// A probability from 0 to 1 in steps of 2⁻⁶³, so that 1 is exact.
///
/// A draw is a uniform 63-bit integer. The event happens if the draw is below the value, which is exact at
/// both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Probability(u64);

const ONE: u64 = 1 << 63;

const READER: Reader = Reader {
    units: &[
        unit("", ONE as u128),
        Unit { name: "%", numerator: ONE as u128, denominator: 100 },
        Unit { name: "‰", numerator: ONE as u128, denominator: 1000 },
        Unit { name: "ppm", numerator: ONE as u128, denominator: 1_000_000 },
    ],
    elsewhere: &[("percent", "%"), ("per cent", "%"), ("pct", "%"), ("permille", "‰")],
    names: "%, ‰, ppm, or none for a fraction of one",
    example: "\"1.5 %\"",
    range: "0 % to 100 %",
};

impl Probability {
    /// Never.
    pub const ZERO: Self = Self(0);
    /// Always.
    pub const ONE: Self = Self(ONE);

    /// Whether a uniform 64-bit `draw` makes the event happen.
    #[inline]
    pub const fn happens(self, draw: u64) -> bool {
        draw >> 1 < self.0
    }

    /// `bits`·2⁻⁶³, clamped to 1.
    pub const fn from_bits(bits: u64) -> Self {
        Self(if bits > ONE { ONE } else { bits })
    }

    /// The value in steps of 2⁻⁶³.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// The value as a fraction, for reports and closed forms in tests.
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / ONE as f64
    }
}

impl FromStr for Probability {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let range = || UnitError::Range { text: text.into(), range: READER.range };
        let value = READER.read(text)?;
        if value > ONE { Err(range()) } else { Ok(Self(value)) }
    }
}

impl fmt::Display for Probability {
    /// Writes per cent with as many decimals as reading back the same value needs, at most twelve.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scaled = (u128::from(self.0) * 100_000_000_000_000 + u128::from(ONE / 2)) / u128::from(ONE);
        let (whole, part) = (scaled / 1_000_000_000_000, scaled % 1_000_000_000_000);
        let part = format!("{part:012}");
        match part.trim_end_matches('0') {
            "" => write!(f, "{whole} %"),
            part => write!(f, "{whole}.{part} %"),
        }
    }
}

as_text!(Probability, "A probability, in per cent or as a fraction of one", "1.5 %");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_prints() {
        for (text, fraction, printed) in [
            ("1.5 %", 0.015, "1.5 %"),
            ("1.5%", 0.015, "1.5 %"),
            ("0.01", 0.01, "1 %"),
            ("1e-3", 0.001, "0.1 %"),
            ("1", 1.0, "100 %"),
            ("0 %", 0.0, "0 %"),
            ("5 ppm", 5e-6, "0.0005 %"),
            ("0.333333333333333333333333333333333333333333", 1.0 / 3.0, "33.333333333333 %"),
            ("12.3456789012345678901234 %", 0.123_456_789_012_345_68, "12.345678901235 %"),
        ] {
            let got: Probability = text.parse().unwrap();
            assert!((got.as_f64() - fraction).abs() < 1e-15, "{text}");
            assert_eq!(got.to_string(), printed);
        }
        for text in ["1e-20", "1e-300 %", "0.00000000000000000000000000000000000000001"] {
            let error = text.parse::<Probability>().unwrap_err();
            assert!(matches!(error, UnitError::Small { .. }), "{error}");
        }
        for text in ["1e300", "100000000000000000000000000000000000000000000000000 %", "101 %"] {
            let error = text.parse::<Probability>().unwrap_err();
            assert!(matches!(error, UnitError::Range { .. }), "{error}");
        }
        assert_eq!("0e-300".parse(), Ok(Probability::ZERO));
        assert!("1e".parse::<Probability>().unwrap_err().to_string().contains("unknown unit"));
        assert!("2".parse::<Probability>().is_err());
        assert!("1 percent".parse::<Probability>().is_err());
    }

    #[test]
    fn bits_are_steps_of_two_to_the_minus_63() {
        let quarter: Probability = "25 %".parse().unwrap();
        assert_eq!((quarter.bits(), Probability::from_bits(1 << 61)), (1 << 61, quarter));
        assert_eq!(Probability::from_bits(u64::MAX), Probability::ONE);
    }

    #[test]
    fn is_exact_at_both_ends() {
        for draw in [0, 1, u64::MAX / 2, u64::MAX] {
            assert!(!Probability::ZERO.happens(draw));
            assert!(Probability::ONE.happens(draw));
        }
        let half: Probability = "50 %".parse().unwrap();
        assert!(half.happens((1 << 63) - 1) && !half.happens(1 << 63));
    }
}
