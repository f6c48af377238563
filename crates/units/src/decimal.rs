//! Exact parser for "number unit" texts, shared by the four quantities.

use thiserror::Error;

/// Reason why a text is not a valid quantity. The message says how to fix it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum UnitError {
    /// The text does not begin with a number.
    #[error("\"{text}\" does not begin with a number; write {example}")]
    NoNumber {
        /// The text.
        text: String,
        /// A valid example.
        example: &'static str,
    },
    /// The unit is missing or unknown.
    #[error("\"{text}\" has {found}; use one of {units}, as in {example}")]
    Unit {
        /// The text.
        text: String,
        /// `no unit` or `the unknown unit "x"`, with the unit that was probably meant.
        found: String,
        /// The valid units.
        units: &'static str,
        /// A valid example.
        example: &'static str,
    },
    /// The number is not zero, and would become zero.
    #[error("\"{text}\" is too small, and not 0; write 0, or more")]
    Small {
        /// The text.
        text: String,
    },
    /// The number does not fit the quantity's range.
    #[error("\"{text}\" is out of range: {range}")]
    Range {
        /// The text.
        text: String,
        /// The range in words.
        range: &'static str,
    },
}

/// A unit: its name, and its size in base units as `numerator / denominator`.
pub(crate) struct Unit {
    pub name: &'static str,
    pub numerator: u128,
    pub denominator: u128,
}

/// A whole number of base units as a [`Unit`].
pub(crate) const fn unit(name: &'static str, numerator: u128) -> Unit {
    Unit { name, numerator, denominator: 1 }
}

/// Description of a quantity for the parser: its units, and texts for errors.
pub(crate) struct Reader {
    pub units: &'static [Unit],
    /// Unit names of other tools, and the unit here that each means.
    pub elsewhere: &'static [(&'static str, &'static str)],
    pub names: &'static str,
    pub example: &'static str,
    pub range: &'static str,
}

impl Reader {
    /// Reads `text` into base units, rounding half up.
    pub(crate) fn read(&self, text: &str) -> Result<u64, UnitError> {
        let trimmed = text.trim();
        let (mantissa, exponent, rest) = number(trimmed)
            .ok_or_else(|| UnitError::NoNumber { text: text.into(), example: self.example })?;
        let name = rest.trim();
        let unit = self.find(name).ok_or_else(|| UnitError::Unit {
            text: text.into(),
            found: match (name, self.meant(name)) {
                ("", _) => "no unit".into(),
                (_, None) => format!("the unknown unit \"{name}\""),
                (_, Some(meant)) => format!("the unknown unit \"{name}\" (did you mean \"{meant}\"?)"),
            },
            units: self.names,
            example: self.example,
        })?;
        if mantissa == 0 {
            return Ok(0);
        }
        let power = |of: i32| 10u128.checked_pow(of.max(0).unsigned_abs());
        let range = || UnitError::Range { text: text.into(), range: self.range };
        // A small value must not become zero: a rate of almost 0 is not an outage.
        let small = || UnitError::Small { text: text.into() };
        let numerator = power(exponent).and_then(|tens| tens.checked_mul(unit.numerator));
        let numerator = numerator.and_then(|factor| factor.checked_mul(mantissa)).ok_or_else(range)?;
        let denominator =
            power(exponent.saturating_neg()).and_then(|tens| tens.checked_mul(unit.denominator));
        let denominator = denominator.ok_or_else(small)?;
        let rounds_up = numerator % denominator >= denominator.div_ceil(2);
        match numerator / denominator + u128::from(rounds_up) {
            0 => Err(small()),
            whole => u64::try_from(whole).map_err(|_| range()),
        }
    }

    /// Guesses the unit meant by an unknown name: another tool's name, or other capitals.
    fn meant(&self, name: &str) -> Option<&'static str> {
        let alike = |other: &str| other.eq_ignore_ascii_case(name) && !ambiguous(other);
        let exact = self.elsewhere.iter().find(|(other, _)| *other == name);
        let elsewhere = exact.or_else(|| self.elsewhere.iter().find(|(other, _)| alike(other)));
        let capitals =
            || self.units.iter().map(|unit| unit.name).find(|unit| unit.eq_ignore_ascii_case(name));
        elsewhere.map(|(_, unit)| *unit).or_else(capitals)
    }

    fn find(&self, name: &str) -> Option<&'static Unit> {
        let exact = self.units.iter().find(|u| u.name == name);
        exact.or_else(|| self.units.iter().find(|u| u.name.eq_ignore_ascii_case(name) && !ambiguous(u.name)))
    }
}

/// Units whose letters' case carries meaning (B bytes, b bits) are matched exactly only.
fn ambiguous(name: &str) -> bool {
    name.contains('B')
}

/// The mantissa from which on decimals are ignored: with another digit it could reach 2⁶⁵. Every 64-bit value
/// is below that, and the product with a unit of 2⁶³ fits 128 bits.
const ENOUGH: u128 = (1 << 65) / 10;

/// Splits a decimal number off the front: its digits, the power of ten that they are multiplied by, and the
/// rest. Decimals beyond enough digits are ignored; a whole number of too many is as large as can be.
fn number(text: &str) -> Option<(u128, i32, &str)> {
    let mut mantissa = 0u128;
    let mut decimals = 0i32;
    let mut digits = 0;
    let mut seen_point = false;
    let mut end = 0;
    for (at, c) in text.char_indices() {
        match c {
            '0'..='9' if seen_point && mantissa >= ENOUGH => {}
            '0'..='9' => {
                mantissa = mantissa.saturating_mul(10).saturating_add(u128::from(c as u8 - b'0'));
                decimals = decimals.saturating_add(i32::from(seen_point));
                digits += 1;
            }
            '.' if !seen_point => seen_point = true,
            '_' if digits > 0 => {}
            _ => break,
        }
        end = at + c.len_utf8();
    }
    let (power, rest) = exponent(&text[end..]);
    let power = if mantissa == u128::MAX { i32::MAX } else { power.saturating_sub(decimals) };
    (digits > 0).then_some((mantissa, power, rest))
}

/// The power of ten of an exponent such as `e-3`, if the text begins with one, and the rest.
fn exponent(text: &str) -> (i32, &str) {
    let Some(tail) = text.strip_prefix(['e', 'E']) else { return (0, text) };
    let unsigned = tail.strip_prefix(['-', '+']).unwrap_or(tail);
    let length = unsigned.bytes().take_while(u8::is_ascii_digit).count();
    if length == 0 {
        return (0, text);
    }
    let power = unsigned[..length].parse().unwrap_or(i32::MAX);
    (if tail.starts_with('-') { -power } else { power }, &unsigned[length..])
}

/// Writes `value` in the largest of `units` (name, size; ascending) that leaves at most three decimals.
pub(crate) fn print(value: u64, units: &[(&str, u64)]) -> String {
    let fits = |&&(_, size): &&(&str, u64)| {
        value >= size && (u128::from(value) * 1000).is_multiple_of(u128::from(size))
    };
    let (name, size) = units.iter().rev().find(fits).copied().unwrap_or(units[0]);
    let thousandths = u128::from(value) * 1000 / u128::from(size);
    let (whole, part) = (thousandths / 1000, thousandths % 1000);
    if part == 0 {
        return format!("{whole} {name}");
    }
    let part = format!("{part:03}");
    format!("{whole}.{} {name}", part.trim_end_matches('0'))
}

/// Serde and JSON schema for a quantity that reads from text and prints itself.
macro_rules! as_text {
    ($type:ty, $what:literal, $example:literal) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str> as serde::Deserialize>::deserialize(d)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }

        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "description": $what, "examples": [$example] })
            }
        }
    };
}
pub(crate) use as_text;
