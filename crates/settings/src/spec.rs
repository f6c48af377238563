//! The row of a block: its name, key and parameters. Command-line help, the scenario's schema, the API and
//! the reference pages are made from it.

use crate::value::{Parsed, Value, written};
use crate::{Choice, ParamKind, SpecError};
use longwire_units::Nanos;
use std::path::Path;

/// A block's row in the registry.
#[derive(Debug, Clone, Copy)]
pub struct Spec {
    /// The key of a link that holds it: `loss`, `queue`, `rate`, `delay`, `mtu`.
    pub key: &'static str,
    /// The kind among the blocks for that key: `independent`, `tail-drop`.
    pub kind: &'static str,
    /// Summary in one sentence.
    pub summary: &'static str,
    /// The source of its definition: an RFC, a paper, this design.
    pub source: &'static str,
    /// Its parameters; the first is the one that `key = "value"` sets.
    pub params: &'static [Param],
}

impl Spec {
    /// Whether this is the row `other`.
    pub fn is(&self, other: &Self) -> bool {
        (self.key, self.kind) == (other.key, other.kind)
    }

    /// The index of the parameter of this name.
    pub fn place(&self, name: &str) -> Option<usize> {
        self.params.iter().position(|param| param.name == name)
    }
}

/// A parameter of a block.
#[derive(Debug, Clone, Copy)]
pub struct Param {
    /// Its key in the scenario.
    pub name: &'static str,
    /// The type and range of its values.
    pub kind: ParamKind,
    /// The value if none is given.
    pub default: Fallback,
    /// Help, with units and range.
    pub help: &'static str,
    /// Whether it can change at run time.
    pub live: bool,
}

/// The value of a parameter if none is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fallback {
    /// None: one must be given.
    Required,
    /// A constant.
    Value(&'static str),
    /// One that follows from other settings, in words.
    Computed(&'static str),
}

impl Fallback {
    /// The constant, if it is one.
    pub const fn value(self) -> Option<&'static str> {
        match self {
            Self::Value(text) => Some(text),
            Self::Required | Self::Computed(_) => None,
        }
    }

    /// Whether a value must be given.
    pub const fn is_required(self) -> bool {
        matches!(self, Self::Required)
    }
}

impl Param {
    /// The accepted values, in words.
    pub fn takes(&self) -> String {
        match self.kind {
            ParamKind::Rate => "a rate such as \"10 Mbit/s\", or \"unlimited\"".into(),
            ParamKind::Time { min: Nanos::ZERO, max: Nanos::NEVER } => "a time".into(),
            ParamKind::Time { min, max: Nanos::NEVER } => format!("a time of {min} or more"),
            ParamKind::Time { min: Nanos::ZERO, max } => format!("a time up to {max}"),
            ParamKind::Time { min, max } => format!("a time from {min} to {max}"),
            ParamKind::Probability => "a share such as \"2 %\"".into(),
            ParamKind::Integer { min, max: u64::MAX } => format!("a whole number, {min} or more"),
            ParamKind::Integer { min, max } => format!("a whole number from {min} to {max}"),
            ParamKind::Limit => "\"100 packets\", \"64 KiB\", \"50 ms\" or \"unlimited\"".into(),
            ParamKind::Size { min, max } => format!("a size from {min} to {max}"),
            ParamKind::Decimal { min, max } => format!("a number from {} to {}", written(min), written(max)),
            ParamKind::Choice(words) => words.join(", "),
            ParamKind::Parsed(grammar) => grammar.wanted.into(),
        }
    }

    /// Whether it is yes or no.
    pub fn is_switch(&self) -> bool {
        matches!(self.kind, ParamKind::Choice(words) if words == <bool as Choice>::WORDS)
    }

    /// Reads a value of this parameter.
    ///
    /// # Errors
    /// If `text` is not of its kind or out of its range.
    pub fn read(&self, text: &str) -> Result<Value, SpecError> {
        self.read_in(text, Path::new("."))
    }

    /// Reads a value of this parameter; file names are relative to the folder `base`.
    ///
    /// # Errors
    /// As [`Param::read`].
    pub fn read_in(&self, text: &str, base: &Path) -> Result<Value, SpecError> {
        let unit = |source| SpecError::Unit { name: self.name, source };
        let range = |wanted: String| SpecError::Range { name: self.name, text: text.into(), wanted };
        let outside = |wanted: String| SpecError::Outside { name: self.name, text: text.into(), wanted };
        match self.kind {
            ParamKind::Rate => text.parse().map(Value::Rate).map_err(unit),
            ParamKind::Probability => text.parse().map(Value::Probability).map_err(unit),
            ParamKind::Time { min, max } => {
                let time: Nanos = text.parse().map_err(unit)?;
                let wanted = || {
                    if min == Nanos::ZERO { format!("at most {max}") } else { self.takes() }
                };
                if (min..=max).contains(&time) { Ok(Value::Time(time)) } else { Err(outside(wanted())) }
            }
            ParamKind::Integer { min, max } => match text.trim().replace('_', "").parse::<i128>() {
                Ok(n) => {
                    let within = u64::try_from(n).ok().filter(|n| (min..=max).contains(n));
                    within.map(Value::Integer).ok_or_else(|| outside(self.takes()))
                }
                Err(_) => Err(range(self.takes())),
            },
            ParamKind::Size { min, max } => match text.parse() {
                Ok(bytes) if (min..=max).contains(&bytes) => Ok(Value::Bytes(bytes)),
                Ok(_) => Err(outside(self.takes())),
                Err(error) => Err(unit(error)),
            },
            ParamKind::Decimal { min, max } => match decimal(text) {
                Some(millionths) if (min..=max).contains(&millionths) => Ok(Value::Decimal(millionths)),
                Some(_) => Err(outside(self.takes())),
                None => Err(range(self.takes())),
            },
            ParamKind::Parsed(grammar) => match (grammar.read)(text, base) {
                Ok(value) => Ok(Value::Parsed(Parsed { text: text.into(), value })),
                Err(what) => Err(SpecError::Text { name: self.name, what }),
            },
            ParamKind::Limit => limit(text).ok_or_else(|| {
                range("a limit such as \"100 packets\", \"64 KiB\" or \"50 ms\", or \"unlimited\"".into())
            }),
            ParamKind::Choice(words) => match words.iter().position(|w| *w == text.trim()) {
                Some(index) => Ok(Value::Choice(index)),
                None => Err(range(format!("one of {}", words.join(", ")))),
            },
        }
    }
}

/// Reads digits with at most six behind the point as millionths.
fn decimal(text: &str) -> Option<u64> {
    let (whole, fraction) = text.trim().split_once('.').unwrap_or((text.trim(), ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if fraction.len() > 6 || !digits(whole) || !digits(fraction) || whole.len() + fraction.len() == 0 {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let fraction: u64 = format!("{fraction:0<6}").parse().ok()?;
    whole.checked_mul(1_000_000)?.checked_add(fraction)
}

fn limit(text: &str) -> Option<Value> {
    let text = text.trim();
    if text.eq_ignore_ascii_case("unlimited") {
        return Some(Value::Packets(u64::MAX));
    }
    let count = text.strip_suffix("packets").or_else(|| text.strip_suffix("packet")).unwrap_or(text);
    if let Ok(packets) = count.trim().replace('_', "").parse::<u64>() {
        return Some(Value::Packets(packets));
    }
    let bytes = text.parse().map(Value::Bytes);
    bytes.ok().or_else(|| text.parse().map(Value::Waiting).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Values;
    use longwire_units::Bytes;

    /// A value out of range is reported with the range; an unreadable one with a valid example.
    #[test]
    fn values_out_of_range_are_named_with_their_limits() {
        let time = ParamKind::Time { min: Nanos::ZERO, max: Nanos::from_secs(100) };
        let size = ParamKind::Size { min: Bytes(1), max: Bytes(1000) };
        let number = ParamKind::Decimal { min: 0, max: 1_500_000 };
        for (kind, text, wanted) in [
            (time, "200 s", "p: \"200 s\" is out of range; write at most 100 s"),
            (
                ParamKind::Integer { min: 1, max: 64 },
                "65",
                "p: \"65\" is out of range; write a whole number from 1 to 64",
            ),
            (
                ParamKind::Integer { min: 1, max: 64 },
                "-1",
                "p: \"-1\" is out of range; write a whole number from 1 to 64",
            ),
            (
                ParamKind::Integer { min: 1, max: u64::MAX },
                "0",
                "p: \"0\" is out of range; write a whole number, 1 or more",
            ),
            (
                ParamKind::Time { min: Nanos(1), max: Nanos::NEVER },
                "0 s",
                "p: \"0 s\" is out of range; write a time of 1 ns or more",
            ),
            (ParamKind::Integer { min: 1, max: 64 }, "x", "p: \"x\" is not a whole number from 1 to 64"),
            (size, "1001 B", "p: \"1001 B\" is out of range; write a size from 1 B to 1 kB"),
            (number, "1.6", "p: \"1.6\" is out of range; write a number from 0 to 1.5"),
        ] {
            let error = Param { name: "p", kind, default: Fallback::Required, help: "", live: true }
                .read(text)
                .unwrap_err();
            assert_eq!(error.to_string(), wanted);
        }
    }

    const SPEC: Spec = Spec {
        key: "queue",
        kind: "test",
        summary: "",
        source: "",
        params: &[
            Param {
                name: "limit",
                kind: ParamKind::Limit,
                default: Fallback::Value("1000 packets"),
                help: "",
                live: true,
            },
            Param {
                name: "loss",
                kind: ParamKind::Probability,
                default: Fallback::Required,
                help: "how many",
                live: true,
            },
            Param {
                name: "mode",
                kind: ParamKind::Choice(&["a", "b"]),
                default: Fallback::Value("a"),
                help: "",
                live: true,
            },
            Param {
                name: "rows",
                kind: ParamKind::Integer { min: 0, max: 9999 },
                default: Fallback::Computed("as many as come"),
                help: "",
                live: true,
            },
        ],
    };

    #[test]
    fn reads_prints_and_defaults() {
        let values = Values::read(&SPEC, &[("loss", "2 %"), ("mode", "b")]).unwrap();
        let changed = values.with(&SPEC, &[("limit", "5 packets")]).unwrap();
        assert_eq!(
            (changed.at(0), changed.at(1), changed.at(2)),
            (Value::Packets(5), values.at(1), values.at(2))
        );
        assert_eq!(values.at(0), Value::Packets(1000));
        assert_eq!((values.at(2), values.at(3)), (Value::Choice(1), Value::Absent));
        assert_eq!(values.with(&SPEC, &[("rows", "1_000")]).unwrap().at(3), Value::Integer(1000));
        for text in ["100 packets", "64 KiB", "50 ms", "unlimited"] {
            let value = SPEC.params[0].read(text).unwrap();
            assert_eq!(value.print(ParamKind::Limit), text);
        }
    }

    #[test]
    fn numbers_with_a_fraction() {
        let kind = ParamKind::Decimal { min: 2, max: 5_000_000 };
        let param = Param { name: "weight", kind, default: Fallback::Required, help: "", live: true };
        for (text, value) in [("0.002", 2000), ("5", 5_000_000), ("1.25", 1_250_000), (".5", 500_000)] {
            assert_eq!(param.read(text).unwrap(), Value::Decimal(value), "{text}");
            assert_eq!(param.read(&Value::Decimal(value).print(kind)).unwrap(), Value::Decimal(value));
        }
        for text in ["", ".", "-1", "1e3", "0.0000001", "0.000001", "5.000001", "99999999999999999999"] {
            assert!(param.read(text).unwrap_err().to_string().contains("from 0.000002 to 5"), "{text}");
        }
    }

    #[test]
    fn names_what_is_wrong() {
        let error = |given: &[(&str, &str)]| Values::read(&SPEC, given).unwrap_err().to_string();
        assert!(error(&[("limt", "1")]).contains("limit, loss, mode, rows"));
        assert!(error(&[]).contains("needs \"loss\""));
        assert!(error(&[("loss", "200 %")]).contains("out of range"));
        assert!(error(&[("loss", "1 %"), ("mode", "c")]).contains("one of a, b"));
        assert!(error(&[("loss", "1 %"), ("limit", "many")]).contains("100 packets"));
    }
}
