//! Transmission rates in bits per second.

use crate::decimal::{Reader, Unit, UnitError, as_text, print, unit};
use std::fmt;
use std::str::FromStr;

/// A rate in whole bits per second. Zero stalls a link; with [`Rate::UNLIMITED`] transmission takes no time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(pub u64);

const UNITS: &[Unit] = &[
    unit("bit/s", 1),
    unit("bit", 1),
    unit("bps", 1),
    unit("kbit/s", 1_000),
    unit("kbit", 1_000),
    unit("Mbit/s", 1_000_000),
    unit("Mbit", 1_000_000),
    unit("Gbit/s", 1_000_000_000),
    unit("Gbit", 1_000_000_000),
    unit("B/s", 8),
    unit("kB/s", 8_000),
    unit("MB/s", 8_000_000),
    unit("GB/s", 8_000_000_000),
];

const READER: Reader = Reader {
    units: UNITS,
    // Capitals matter: MBps are bytes, Mbps are bits.
    elsewhere: &[
        ("Bps", "B/s"),
        ("KBps", "kB/s"),
        ("kBps", "kB/s"),
        ("MBps", "MB/s"),
        ("GBps", "GB/s"),
        ("KB/s", "kB/s"),
        ("kbps", "kbit/s"),
        ("mbps", "Mbit/s"),
        ("gbps", "Gbit/s"),
        ("b/s", "bit/s"),
        ("kb/s", "kbit/s"),
        ("mb/s", "Mbit/s"),
        ("gb/s", "Gbit/s"),
        ("k", "kbit/s"),
        ("m", "Mbit/s"),
        ("g", "Gbit/s"),
        ("mbits", "Mbit/s"),
        ("mbits/s", "Mbit/s"),
        ("kbits/s", "kbit/s"),
        ("gbits/s", "Gbit/s"),
    ],
    names: "bit/s, kbit/s, Mbit/s, Gbit/s, B/s, kB/s, MB/s, GB/s",
    example: "\"10 Mbit/s\"",
    range: "300 bit/s to 400 Gbit/s, 0 for an outage, or \"unlimited\"",
};

const PRINT: &[(&str, u64)] =
    &[("bit/s", 1), ("kbit/s", 1_000), ("Mbit/s", 1_000_000), ("Gbit/s", 1_000_000_000)];

impl Rate {
    /// No limit: transmission takes no time.
    pub const UNLIMITED: Self = Self(u64::MAX);
    /// Rate zero: nothing is sent, an outage.
    pub const STALLED: Self = Self(0);
    /// The lowest rate other than zero: 300 bit/s.
    pub const MIN: Self = Self(300);
    /// The highest finite rate: 400 Gbit/s.
    pub const MAX: Self = Self(400_000_000_000);

    /// Bits per second as a floating-point number, for reports only; infinite if unlimited.
    pub fn as_f64(self) -> f64 {
        if self == Self::UNLIMITED { f64::INFINITY } else { self.0 as f64 }
    }
}

impl FromStr for Rate {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        if text.trim().eq_ignore_ascii_case("unlimited") {
            return Ok(Self::UNLIMITED);
        }
        let rate = if text.trim() == "0" { Ok(0) } else { READER.read(text) };
        match rate {
            Ok(rate) if rate == 0 || (Self::MIN.0..=Self::MAX.0).contains(&rate) => Ok(Self(rate)),
            Ok(_) | Err(UnitError::Small { .. }) => {
                Err(UnitError::Range { text: text.into(), range: READER.range })
            }
            Err(error) => Err(error),
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::UNLIMITED => f.write_str("unlimited"),
            Self::STALLED => f.write_str("0 bit/s"),
            Self(rate) => f.write_str(&print(rate, PRINT)),
        }
    }
}

as_text!(Rate, "A rate: 300 bit/s to 400 Gbit/s, 0 for an outage, or \"unlimited\"", "10 Mbit/s");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_of_elsewhere_is_told_with_the_one_that_is_meant() {
        for (text, meant) in [
            ("10Mbps", "Mbit/s"),
            ("10 mbps", "Mbit/s"),
            ("10 MBps", "MB/s"),
            ("10 Mb/s", "Mbit/s"),
            ("10 KB/s", "kB/s"),
            ("10 gb/S", "Gbit/s"),
        ] {
            let error = text.parse::<Rate>().unwrap_err().to_string();
            assert!(error.contains(&format!("did you mean \"{meant}\"?")), "{error}");
        }
        assert!(!"10 x".parse::<Rate>().unwrap_err().to_string().contains("mean"));
    }

    #[test]
    fn almost_nothing_is_no_outage() {
        for text in ["0.0000001 bit/s", "0.4 bit/s", "0.6 bit/s", "1e-300 bit/s"] {
            assert!(matches!(text.parse::<Rate>(), Err(UnitError::Range { .. })), "{text}");
        }
        assert_eq!("0 Mbit/s".parse(), Ok(Rate(0)));
        assert_eq!("0.0 bit/s".parse(), Ok(Rate(0)));
    }

    #[test]
    fn reads_and_prints() {
        let table = [
            ("10 Mbit/s", 10_000_000, "10 Mbit/s"),
            ("10mbit", 10_000_000, "10 Mbit/s"),
            ("1.544 Mbit/s", 1_544_000, "1.544 Mbit/s"),
            ("300 bit/s", 300, "300 bit/s"),
            ("400 Gbit/s", 400_000_000_000, "400 Gbit/s"),
            ("125 kB/s", 1_000_000, "1 Mbit/s"),
            ("0", 0, "0 bit/s"),
            ("unlimited", u64::MAX, "unlimited"),
        ];
        for (text, rate, printed) in table {
            let got: Rate = text.parse().unwrap();
            assert_eq!(got, Rate(rate), "{text}");
            assert_eq!(got.to_string(), printed);
            assert_eq!(printed.parse::<Rate>().unwrap(), got);
        }
    }

    #[test]
    fn refuses() {
        let error = "10 Mbitt".parse::<Rate>().unwrap_err().to_string();
        assert!(error.contains("\"Mbitt\"") && error.contains("Mbit/s"), "{error}");
        // tc's kbps are kilobytes, other tools' are kilobits: the text is rejected.
        assert!("64 kbps".parse::<Rate>().is_err());
        assert!("1 mB/s".parse::<Rate>().is_err());
        assert!("299 bit/s".parse::<Rate>().is_err());
        assert!("401 Gbit/s".parse::<Rate>().is_err());
        assert!("10".parse::<Rate>().is_err());
    }
}
