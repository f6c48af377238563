//! Sizes in bytes.

use crate::decimal::{Reader, UnitError, as_text, print, unit};
use std::fmt;
use std::str::FromStr;

/// A size in whole bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(pub u64);

const READER: Reader = Reader {
    units: &[
        unit("B", 1),
        unit("bytes", 1),
        unit("byte", 1),
        unit("kB", 1_000),
        unit("MB", 1_000_000),
        unit("GB", 1_000_000_000),
        unit("KiB", 1 << 10),
        unit("MiB", 1 << 20),
        unit("GiB", 1 << 30),
    ],
    elsewhere: &[("K", "KiB"), ("M", "MiB"), ("G", "GiB"), ("KB", "kB"), ("octets", "B"), ("bit", "B")],
    names: "B, kB, MB, GB, KiB, MiB, GiB",
    example: "\"64 KiB\"",
    range: "0 to 16 EiB",
};

const PRINT: &[(&str, u64)] = &[
    ("B", 1),
    ("kB", 1_000),
    ("KiB", 1 << 10),
    ("MB", 1_000_000),
    ("MiB", 1 << 20),
    ("GB", 1_000_000_000),
    ("GiB", 1 << 30),
];

impl FromStr for Bytes {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        READER.read(text).map(Self)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&print(self.0, PRINT))
    }
}

as_text!(Bytes, "A size, in B, kB, MB, GB, KiB, MiB or GiB", "64 KiB");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_prints() {
        for (text, bytes, printed) in [
            ("64 KiB", 65_536, "64 KiB"),
            ("100 kB", 100_000, "100 kB"),
            ("1500 B", 1_500, "1.5 kB"),
            ("1501 bytes", 1_501, "1.501 kB"),
            ("1 MiB", 1_048_576, "1 MiB"),
        ] {
            let got: Bytes = text.parse().unwrap();
            assert_eq!(got, Bytes(bytes), "{text}");
            assert_eq!(got.to_string(), printed);
            assert_eq!(printed.parse::<Bytes>().unwrap(), got);
        }
        assert!("64 KB".parse::<Bytes>().is_err());
    }
}
