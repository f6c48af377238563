//! Exact numbers with the units of other tools: rates in bit/s, times in nanoseconds, sizes in bytes, shares.

use super::{ImportError, Result};
use longwire_units::{Bytes, Nanos, Rate};

/// The longest delay of a link.
pub(super) const LONGEST_DELAY: Nanos = Nanos::from_secs(100);

/// A fraction in steps of 10⁻¹², so that percentages are exact.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Share(u64);

/// One of [`Share`].
const WHOLE: u64 = 1_000_000_000_000;
const PERCENT: u64 = WHOLE / 100;

impl Share {
    pub(super) const ZERO: Self = Self(0);
    pub(super) const ALL: Self = Self(WHOLE);

    /// tc's format: `1%`, and a bare `1` is one per cent, too (`parse_percent` of tc).
    pub(super) fn percent(text: &str) -> Option<Self> {
        let (number, rest) = decimal(text)?;
        Self::of(&number, PERCENT).filter(|_| rest.is_empty() || rest == "%")
    }

    /// A fraction from 0 to 1.
    pub(super) fn fraction(text: &str) -> Option<Self> {
        let (number, rest) = decimal(text)?;
        Self::of(&number, WHOLE).filter(|_| rest.is_empty())
    }

    /// This many of `unit` steps, if they are no more than all.
    fn of(number: &Decimal, unit: u64) -> Option<Self> {
        number.times(u128::from(unit)).filter(|steps| *steps <= WHOLE).map(Self)
    }

    /// One in `count`; all for zero.
    pub(super) fn one_in(count: u64) -> Self {
        Self(WHOLE / count.max(1))
    }

    /// One minus this.
    pub(super) fn rest(self) -> Self {
        Self(WHOLE - self.0)
    }

    /// The loss of each of two links in series with this total loss: 1 − √(1 − loss), rounded to ppm.
    pub(super) fn half_of_two(self) -> Self {
        const MILLION: u64 = 1_000_000;
        // Integer root: √(1 − loss) in millionths is the root of (1 − loss)·10¹².
        Self((MILLION - self.rest().0.isqrt()) * MILLION)
    }

    /// As a fraction: `0.015`.
    pub(super) fn decimal(self) -> String {
        in_units(self.0, WHOLE)
    }

    /// As a scenario writes it: `1.5 %`.
    pub(super) fn text(self) -> String {
        format!("{} %", in_units(self.0, PERCENT))
    }
}

/// A count of steps as a decimal number of units, each a power of ten of them: `1.5`.
pub(super) fn in_units(steps: u64, unit: u64) -> String {
    let digits = unit.ilog10() as usize;
    let text = format!("{}.{:0digits$}", steps / unit, steps % unit);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A size in dummynet's burst format: bytes, with `k`, `m`, `g` as powers of 1024; `B`, `Byte` or `Bytes` may
/// follow.
pub(super) fn ipfw_size(text: &str) -> Option<Bytes> {
    let (number, rest) = decimal(text)?;
    let unit = rest.to_ascii_lowercase();
    let prefix =
        unit.strip_suffix("bytes").or_else(|| unit.strip_suffix("byte")).or_else(|| unit.strip_suffix('b'));
    let factor = match prefix.unwrap_or(&unit) {
        "" => 1,
        "k" => 1 << 10,
        "m" => 1 << 20,
        "g" => 1 << 30,
        _ => return None,
    };
    number.times(factor).map(Bytes)
}

/// A time with tc's units; a bare number is in units of `bare` nanoseconds.
pub(super) fn time(text: &str, bare: u64) -> Option<Nanos> {
    let (number, rest) = decimal(text)?;
    let unit = match rest.to_ascii_lowercase().as_str() {
        "" => bare,
        "s" | "sec" | "secs" => 1_000_000_000,
        "ms" | "msec" | "msecs" => 1_000_000,
        "us" | "usec" | "usecs" => 1_000,
        "ns" | "nsec" | "nsecs" => 1,
        _ => return None,
    };
    number.times(u128::from(unit)).filter(|nanos| *nanos < u64::MAX / 4).map(Nanos)
}

/// A rate in tc's format: `kbit` is kilobits, `kbps` kilobytes, a bare number bits per second (tc(8), UNITS).
pub(super) fn tc_rate(text: &str) -> Option<u64> {
    let (number, rest) = decimal(text)?;
    let unit = rest.to_ascii_lowercase();
    if unit.is_empty() || unit == "bit" {
        return number.times(1);
    }
    let (prefix, bits) = match (unit.strip_suffix("bps"), unit.strip_suffix("bit")) {
        (Some(prefix), _) => (prefix, 8),
        (_, Some(prefix)) => (prefix, 1),
        _ => return None,
    };
    let power = match prefix {
        "" => 1,
        "k" => 1_000,
        "m" => 1_000_000,
        "g" => 1_000_000_000,
        "t" => 1_000_000_000_000,
        "ki" => 1 << 10,
        "mi" => 1 << 20,
        "gi" => 1 << 30,
        "ti" => 1 << 40,
        _ => return None,
    };
    number.times(power * bits)
}

/// A rate in ns-3's format (`DataRate`): `10Mbps` and `10Mb/s` are megabits, `10MBps` megabytes; prefixes are
/// decimal, or binary with an `i`. A bare number is bits per second.
pub(super) fn ns3_rate(text: &str) -> Option<u64> {
    let (number, rest) = decimal(text)?;
    let unit = rest.strip_suffix("ps").or_else(|| rest.strip_suffix("/s")).unwrap_or(rest);
    let (prefix, bits) = match unit.strip_suffix('b') {
        Some(prefix) => (prefix, 1),
        None => match unit.strip_suffix('B') {
            Some(prefix) => (prefix, 8),
            None if rest.is_empty() => ("", 1),
            None => return None,
        },
    };
    let power = match prefix {
        "" => 1,
        "k" | "K" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        _ => return None,
    };
    number.times(power * bits)
}

/// A size in tc's format: bare bytes, `k` and `kb` 1024 of them, `kbit` 1024 bits.
pub(super) fn tc_size(text: &str) -> Option<Bytes> {
    let (number, rest) = decimal(text)?;
    let (numerator, denominator) = match rest.to_ascii_lowercase().as_str() {
        "" | "b" => (1, 1),
        "k" | "kb" => (1 << 10, 1),
        "m" | "mb" => (1 << 20, 1),
        "g" | "gb" => (1 << 30, 1),
        "kbit" => (1 << 10, 8),
        "mbit" => (1 << 20, 8),
        "gbit" => (1 << 30, 8),
        _ => return None,
    };
    number.times(numerator).map(|bytes| Bytes(bytes / denominator))
}

/// A whole number, with `0x` in hexadecimal and with `0` in octal, as tc parses a seed; the highest bit,
/// which a scenario's seed can't have, is dropped.
pub(super) fn any_base(text: &str) -> Option<u64> {
    let number = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16),
        None if text.len() > 1 && text.starts_with('0') => u64::from_str_radix(&text[1..], 8),
        None => text.parse(),
    };
    number.ok().filter(|_| !text.contains('+')).map(|number| number & (u64::MAX >> 1))
}

/// A rate in ipfw's format: a whole number (strtoul); `K`, `M`, `G` are powers of 1000; then bits, or bytes
/// if `by…`, or a `B` not followed by `i`, follows (sbin/ipfw/dummynet.c, `read_bandwidth`).
pub(super) fn ipfw_rate(text: &str) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    let (power, unit) = power_of_1000(rest);
    let bits = match unit.to_ascii_lowercase().as_str() {
        "b" | "b/s" | "bps" if unit.starts_with('B') => 8,
        "" | "b" | "b/s" | "bps" | "bit" | "bits" | "bit/s" | "bits/s" => 1,
        "byte" | "bytes" | "byte/s" | "bytes/s" => 8,
        _ => return None,
    };
    number.checked_mul(power * bits)
}

/// A rate in an ns script: `1.5Mb`, `128kb`, `100Mbps`; a bare number is bit/s. A capital `B` alone means
/// bytes.
pub(super) fn ns_rate(text: &str) -> Option<u64> {
    let (number, rest) = decimal(text)?;
    let (power, unit) = power_of_1000(rest);
    let bits = match unit {
        "B" => 8,
        _ if ["", "b", "bps", "bit", "bits"].contains(&unit.to_ascii_lowercase().as_str()) => 1,
        _ => return None,
    };
    number.times(u128::from(power * bits))
}

/// The power of 1000 that a `K`, `M` or `G` at the beginning means, and the unit behind it.
fn power_of_1000(text: &str) -> (u64, &str) {
    match text.as_bytes().first() {
        Some(b'K' | b'k') => (1_000, &text[1..]),
        Some(b'M' | b'm') => (1_000_000, &text[1..]),
        Some(b'G' | b'g') => (1_000_000_000, &text[1..]),
        _ => (1, text),
    }
}

/// A whole number.
pub(super) fn whole(text: &str) -> Option<u64> {
    text.parse().ok()
}

/// A positive decimal number in plain notation, for a parameter without unit.
pub(super) fn plain(text: &str) -> Option<String> {
    let (number, rest) = decimal(text)?;
    let steps = rest.is_empty().then(|| number.times(u128::from(WHOLE))).flatten()?;
    Some(in_units(steps, WHOLE))
}

/// A rate as a scenario writes it.
///
/// # Errors
/// If no link can have it.
pub(super) fn rate_text(line: usize, bits: u64) -> Result<String> {
    if (Rate::MIN.0..=Rate::MAX.0).contains(&bits) {
        return Ok(Rate(bits).to_string());
    }
    let what = format!("no link can have a rate of {bits} bit/s");
    Err(ImportError::new(line, what, "300 bit/s to 400 Gbit/s"))
}

/// Whether a word begins a number.
pub(super) fn is_number(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit() || c == '.')
}

/// A decimal number: mantissa and how many of its digits are decimals.
struct Decimal(u128, u32);

impl Decimal {
    /// This many of `unit`, rounded down; none on overflow.
    fn times(&self, unit: u128) -> Option<u64> {
        let all = self.0.checked_mul(unit)? / 10u128.checked_pow(self.1)?;
        u64::try_from(all).ok()
    }
}

/// Splits a number off the front.
fn decimal(text: &str) -> Option<(Decimal, &str)> {
    let (mut mantissa, mut scale, mut digits, mut point, mut end) = (0u128, 0u32, 0u32, false, 0);
    for (at, c) in text.char_indices() {
        match c.to_digit(10) {
            Some(digit) => {
                mantissa = mantissa.checked_mul(10)?.checked_add(u128::from(digit))?;
                digits += 1;
                scale += u32::from(point);
            }
            None if c == '.' && !point => point = true,
            None => break,
        }
        end = at + 1;
    }
    if digits == 0 || digits > 18 {
        return None;
    }
    let rest = &text[end..];
    let Some(tail) = rest.strip_prefix(['e', 'E']) else { return Some((Decimal(mantissa, scale), rest)) };
    let (negative, tail) = match tail.strip_prefix('-') {
        Some(tail) => (true, tail),
        None => (false, tail.strip_prefix('+').unwrap_or(tail)),
    };
    let length = tail.bytes().take_while(u8::is_ascii_digit).count();
    let power: u32 = match tail[..length].parse() {
        Ok(power) if power <= 18 => power,
        _ => return Some((Decimal(mantissa, scale), rest)),
    };
    let number = if negative {
        Decimal(mantissa, scale + power)
    } else {
        Decimal(mantissa.checked_mul(10u128.pow(power))?, scale)
    };
    Some((number, &tail[length..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_of_tc() {
        // tc(8): bit and bps differ by 8, k by 1000, Ki by 1024.
        let rates = [
            ("1000", 1000),
            ("1kbit", 1000),
            ("1kbps", 8000),
            ("1.5Mbit", 1_500_000),
            ("2mbps", 16_000_000),
            ("1Kibit", 1024),
            ("10gbit", 10_000_000_000),
            ("8bps", 64),
            ("5bit", 5),
        ];
        for (text, bits) in rates {
            assert_eq!(tc_rate(text), Some(bits), "{text}");
        }
        let sizes =
            [("1540", 1540), ("32kb", 32768), ("32k", 32768), ("32kbit", 4096), ("1m", 1 << 20), ("5b", 5)];
        for (text, bytes) in sizes {
            assert_eq!(tc_size(text), Some(Bytes(bytes)), "{text}");
        }
        let times =
            [("100ms", 100_000_000), ("1.5s", 1_500_000_000), ("10", 10_000), ("20us", 20_000), ("7NS", 7)];
        for (text, nanos) in times {
            assert_eq!(time(text, 1000), Some(Nanos(nanos)), "{text}");
        }
        for bad in ["", "x", "1mbyte", "50%", "-5", "1e", ".", "99999999999999999999gbit"] {
            assert_eq!((tc_rate(bad), tc_size(bad), time(bad, 1)), (None, None, None), "{bad}");
        }
    }

    #[test]
    fn units_of_ipfw_and_ns() {
        let ipfw = [
            ("1Mbit/s", 1_000_000),
            ("10KByte/s", 80_000),
            ("512Kbit/s", 512_000),
            ("1000", 1000),
            ("2M", 2_000_000),
            ("1MB", 8_000_000),
            ("1MBps", 8_000_000),
            ("1Mbps", 1_000_000),
            ("300kb", 300_000),
            ("1Gbit/s", 1_000_000_000),
        ];
        for (text, bits) in ipfw {
            assert_eq!(ipfw_rate(text), Some(bits), "{text}");
        }
        let ns = [
            ("100Mb", 100_000_000),
            ("1.5Mb", 1_500_000),
            ("128kb", 128_000),
            ("10Mbps", 10_000_000),
            ("1MB", 8_000_000),
        ];
        for (text, bits) in ns {
            assert_eq!(ns_rate(text), Some(bits), "{text}");
        }
        assert_eq!((ipfw_rate("1.5Mbit/s"), ipfw_rate("1e3"), ipfw_rate("Mbit/s")), (None, None, None));
        assert_eq!((ipfw_rate("em0"), ns_rate("fast"), ns_rate("5xb")), (None, None, None));
        let sizes = [
            ("1500", Some(1500)),
            ("64k", Some(65_536)),
            ("10KBytes", Some(10_240)),
            ("10KB", Some(10_240)),
            ("1Byte", Some(1)),
            ("2M", Some(2 << 20)),
            ("1Mbit", None),
            ("k", None),
        ];
        for (text, bytes) in sizes {
            assert_eq!(ipfw_size(text), bytes.map(Bytes), "{text}");
        }
    }

    #[test]
    fn shares_come_out_as_written() {
        for (percent, text) in [
            ("1%", "1 %"),
            ("1", "1 %"),
            ("0.1%", "0.1 %"),
            ("25.05%", "25.05 %"),
            ("100%", "100 %"),
            ("1e-3%", "0.001 %"),
        ] {
            assert_eq!(Share::percent(percent).unwrap().text(), text);
        }
        assert_eq!(Share::fraction("0.05").unwrap().text(), "5 %");
        assert_eq!(Share::fraction(".015").unwrap().rest().text(), "98.5 %");
        let decimals = [("0.05", "0.05"), ("1", "1"), ("0", "0"), ("1e-3", "0.001")];
        for (given, text) in decimals {
            assert_eq!(Share::fraction(given).unwrap().decimal(), text);
        }
        assert_eq!(
            (Share::percent("101%"), Share::fraction("1.1"), Share::percent("-1%")),
            (None, None, None)
        );
        // Two links of 5.1317 % lose 1 − 0.948683² = 10 %.
        assert_eq!(Share::fraction("0.1").unwrap().half_of_two().text(), "5.1317 %");
        assert_eq!(Share::ZERO.half_of_two(), Share::ZERO);
        assert_eq!(Share::ALL.half_of_two(), Share::ALL);
    }

    #[test]
    fn numbers_without_units() {
        for (given, text) in
            [("0.002", "0.002"), ("5", "5"), (".5", "0.5"), ("2e-3", "0.002"), ("1.250", "1.25")]
        {
            assert_eq!(plain(given).as_deref(), Some(text));
        }
        assert_eq!(rate_text(1, 300).unwrap(), "300 bit/s");
        for bits in [299, 400_000_000_001] {
            let error = rate_text(1, bits).unwrap_err().to_string();
            assert_eq!(
                error,
                format!("line 1: no link can have a rate of {bits} bit/s; 300 bit/s to 400 Gbit/s")
            );
        }
    }
}
