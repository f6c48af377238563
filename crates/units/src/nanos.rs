//! Time and durations in nanoseconds.

use crate::decimal::{Reader, UnitError, as_text, print, unit};
use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::str::FromStr;

/// A point in time or a duration in whole nanoseconds: 0 to about 584 years.
///
/// Points in time count from the start of the clock in use (monotonic or virtual). [`Nanos::NEVER`] is later
/// than every real time. Addition saturates at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Nanos(pub u64);

const READER: Reader = Reader {
    units: &[
        unit("ns", 1),
        unit("us", 1_000),
        unit("µs", 1_000),
        unit("μs", 1_000),
        unit("ms", 1_000_000),
        unit("s", 1_000_000_000),
        unit("min", 60_000_000_000),
        unit("h", 3_600_000_000_000),
    ],
    elsewhere: &[
        ("nsec", "ns"),
        ("nanoseconds", "ns"),
        ("usec", "us"),
        ("usecs", "us"),
        ("microseconds", "us"),
        ("msec", "ms"),
        ("msecs", "ms"),
        ("millis", "ms"),
        ("milliseconds", "ms"),
        ("sec", "s"),
        ("secs", "s"),
        ("second", "s"),
        ("seconds", "s"),
        ("minute", "min"),
        ("minutes", "min"),
        ("hour", "h"),
        ("hours", "h"),
    ],
    names: "ns, us, ms, s, min, h",
    example: "\"25 ms\"",
    range: "0 to 584 years",
};

const PRINT: &[(&str, u64)] = &[("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];

impl Nanos {
    /// Time zero, or an empty duration.
    pub const ZERO: Self = Self(0);
    /// A time later than every real time.
    pub const NEVER: Self = Self(u64::MAX);

    /// Whole microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros * 1_000)
    }

    /// Whole milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis * 1_000_000)
    }

    /// Whole seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs * 1_000_000_000)
    }

    /// Seconds as a floating-point number, for reports only.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// This time minus `other`, or zero if `other` is later.
    pub const fn since(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// Serializes the nanoseconds as an integer, for a field whose name ends in `_ns`.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn as_integer<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0)
    }

    /// This duration as a standard duration.
    pub const fn as_duration(self) -> std::time::Duration {
        std::time::Duration::from_nanos(self.0)
    }
}

impl Add for Nanos {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Nanos {
    type Output = Self;
    /// # Panics
    /// In debug builds, if `other` is later: use [`Nanos::since`] where that can happen.
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl From<std::time::Duration> for Nanos {
    fn from(d: std::time::Duration) -> Self {
        Self(u64::try_from(d.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl FromStr for Nanos {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        READER.read(text).map(Self)
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::ZERO => f.write_str("0 ms"),
            Self::NEVER => f.write_str("never"),
            Self(n) => f.write_str(&print(n, PRINT)),
        }
    }
}

as_text!(Nanos, "A time, in ns, us, ms, s, min or h", "25 ms");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_prints() {
        let table = [
            ("25 ms", 25_000_000, "25 ms"),
            ("25ms", 25_000_000, "25 ms"),
            ("1.5s", 1_500_000_000, "1.5 s"),
            ("0.5 us", 500, "500 ns"),
            ("10 µs", 10_000, "10 us"),
            ("1e-3 s", 1_000_000, "1 ms"),
            ("2 min", 120_000_000_000, "120 s"),
            ("1234567ns", 1_234_567, "1234.567 us"),
            ("0 ms", 0, "0 ms"),
        ];
        for (text, nanos, printed) in table {
            let got: Nanos = text.parse().unwrap();
            assert_eq!(got, Nanos(nanos), "{text}");
            assert_eq!(got.to_string(), printed);
            assert_eq!(printed.parse::<Nanos>().unwrap(), got);
        }
    }

    #[test]
    fn refuses() {
        assert!("25".parse::<Nanos>().unwrap_err().to_string().contains("no unit"));
        assert!("25 mss".parse::<Nanos>().unwrap_err().to_string().contains("\"mss\""));
        assert!("-1 ms".parse::<Nanos>().is_err());
        assert!("1e30 h".parse::<Nanos>().is_err());
        assert!("".parse::<Nanos>().is_err());
    }
}
