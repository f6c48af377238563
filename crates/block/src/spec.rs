//! What a block says of itself: its name, place and parameters. Command-line help, the scenario's schema, the API and
//! the reference pages are made from this row.

use longwire_units::{Bytes, Nanos, Probability, Rate, UnitError};
use thiserror::Error;

/// A block's row in the registry.
#[derive(Debug, Clone, Copy)]
pub struct Spec {
    /// The key of a link that holds it: `loss`, `queue`, `rate`, `delay`, `mtu`.
    pub key: &'static str,
    /// Which of the blocks for that key: `independent`, `tail-drop`.
    pub kind: &'static str,
    /// What it does, in one sentence.
    pub summary: &'static str,
    /// Where it is defined: an RFC, a paper, this design.
    pub source: &'static str,
    /// Its parameters; the first is the one that `key = "value"` sets.
    pub params: &'static [Param],
}

/// A parameter of a block.
#[derive(Debug, Clone, Copy)]
pub struct Param {
    /// Its key in the scenario.
    pub name: &'static str,
    /// What values it takes.
    pub kind: ParamKind,
    /// Its value when none is given; none if it must be given.
    pub default: Option<&'static str>,
    /// What it sets, with units and range.
    pub help: &'static str,
}

/// Kinds of parameter values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParamKind {
    /// A [`Rate`].
    Rate,
    /// A [`Nanos`] up to the given one.
    Time {
        /// The highest value.
        max: Nanos,
    },
    /// A [`Probability`].
    Probability,
    /// A whole number in a range.
    Integer {
        /// The lowest value.
        min: u64,
        /// The highest value.
        max: u64,
    },
    /// A queue's limit: packets, bytes or time.
    Limit,
    /// One of these words.
    Choice(&'static [&'static str]),
}

/// A value of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value {
    /// Bits per second.
    Rate(Rate),
    /// A time.
    Time(Nanos),
    /// A probability.
    Probability(Probability),
    /// A whole number.
    Integer(u64),
    /// At most so many packets.
    Packets(u64),
    /// At most so many bytes.
    Bytes(Bytes),
    /// At most what the current rate sends in this time.
    Waiting(Nanos),
    /// A word, as its index in [`ParamKind::Choice`].
    Choice(usize),
}

/// A block's parameters with their values, in the order of its [`Spec`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Values(Vec<Value>);

/// A parameter that is not what its block takes.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SpecError {
    /// There is no such parameter.
    #[error("{key} ({kind}) has no parameter \"{name}\"; it has {known}")]
    Unknown {
        /// The link's key.
        key: &'static str,
        /// The block.
        kind: &'static str,
        /// What was given.
        name: String,
        /// The parameters there are.
        known: String,
    },
    /// A parameter has no default and was not given.
    #[error("{key} ({kind}) needs \"{name}\": {help}")]
    Missing {
        /// The link's key.
        key: &'static str,
        /// The block.
        kind: &'static str,
        /// The parameter.
        name: &'static str,
        /// What it sets.
        help: &'static str,
    },
    /// The value can't be read.
    #[error("{name}: {source}")]
    Unit {
        /// The parameter.
        name: &'static str,
        /// Why not.
        source: UnitError,
    },
    /// The value is outside the parameter's range or none of its words.
    #[error("{name}: \"{text}\" is not {wanted}")]
    Range {
        /// The parameter.
        name: &'static str,
        /// What was given.
        text: String,
        /// What would do.
        wanted: String,
    },
}

impl Values {
    /// Reads `given` pairs of parameter and text, filling in defaults.
    ///
    /// # Errors
    /// Names the parameter that is unknown, missing or unreadable, and the mend.
    pub fn read(spec: &Spec, given: &[(&str, &str)]) -> Result<Self, SpecError> {
        for (name, _) in given {
            if !spec.params.iter().any(|p| p.name == *name) {
                return Err(SpecError::Unknown {
                    key: spec.key,
                    kind: spec.kind,
                    name: (*name).into(),
                    known: spec.params.iter().map(|p| p.name).collect::<Vec<_>>().join(", "),
                });
            }
        }
        let value = |param: &Param| {
            let text = given.iter().rev().find(|(name, _)| *name == param.name).map(|(_, text)| *text);
            let text = text.or(param.default).ok_or(SpecError::Missing {
                key: spec.key,
                kind: spec.kind,
                name: param.name,
                help: param.help,
            })?;
            param.read(text)
        };
        spec.params.iter().map(value).collect::<Result<_, _>>().map(Self)
    }

    /// These values with the `given` ones in their place: everything not named is kept.
    ///
    /// # Errors
    /// As [`Values::read`].
    pub fn with(&self, spec: &Spec, given: &[(&str, &str)]) -> Result<Self, SpecError> {
        let kept: Vec<_> = spec
            .params
            .iter()
            .zip(&self.0)
            .map(|(param, value)| (param.name, value.print(param.kind)))
            .collect();
        let kept = kept.iter().map(|(name, text)| (*name, text.as_str()));
        Self::read(spec, &kept.chain(given.iter().copied()).collect::<Vec<_>>())
    }

    /// The value of the parameter at `index` in the spec.
    ///
    /// # Panics
    /// If the spec has no such parameter.
    pub fn at(&self, index: usize) -> Value {
        self.0[index]
    }

    /// The values, in the spec's order.
    pub fn as_slice(&self) -> &[Value] {
        &self.0
    }
}

impl Param {
    /// Reads a value of this parameter.
    ///
    /// # Errors
    /// If `text` is not of its kind or out of its range.
    pub fn read(&self, text: &str) -> Result<Value, SpecError> {
        let unit = |source| SpecError::Unit { name: self.name, source };
        let range = |wanted: String| SpecError::Range { name: self.name, text: text.into(), wanted };
        match self.kind {
            ParamKind::Rate => text.parse().map(Value::Rate).map_err(unit),
            ParamKind::Probability => text.parse().map(Value::Probability).map_err(unit),
            ParamKind::Time { max } => {
                let time: Nanos = text.parse().map_err(unit)?;
                if time > max { Err(range(format!("at most {max}"))) } else { Ok(Value::Time(time)) }
            }
            ParamKind::Integer { min, max } => match text.trim().parse() {
                Ok(n) if (min..=max).contains(&n) => Ok(Value::Integer(n)),
                _ => Err(range(format!("a whole number from {min} to {max}"))),
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

impl Value {
    /// Writes the value so that [`Param::read`] reads it back. `kind` is the parameter's.
    pub fn print(&self, kind: ParamKind) -> String {
        match (*self, kind) {
            (Self::Rate(rate), _) => rate.to_string(),
            (Self::Time(time) | Self::Waiting(time), _) => time.to_string(),
            (Self::Probability(p), _) => p.to_string(),
            (Self::Integer(n), _) => n.to_string(),
            (Self::Packets(u64::MAX), _) => "unlimited".into(),
            (Self::Packets(n), _) => format!("{n} packets"),
            (Self::Bytes(bytes), _) => bytes.to_string(),
            (Self::Choice(index), ParamKind::Choice(words)) => {
                words.get(index).copied().unwrap_or("?").into()
            }
            (Self::Choice(index), _) => index.to_string(),
        }
    }
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

    const SPEC: Spec = Spec {
        key: "queue",
        kind: "test",
        summary: "",
        source: "",
        params: &[
            Param { name: "limit", kind: ParamKind::Limit, default: Some("1000 packets"), help: "" },
            Param { name: "loss", kind: ParamKind::Probability, default: None, help: "how many" },
            Param { name: "mode", kind: ParamKind::Choice(&["a", "b"]), default: Some("a"), help: "" },
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
        assert_eq!(values.at(2), Value::Choice(1));
        for text in ["100 packets", "64 KiB", "50 ms", "unlimited"] {
            let value = SPEC.params[0].read(text).unwrap();
            assert_eq!(value.print(ParamKind::Limit), text);
        }
    }

    #[test]
    fn names_what_is_wrong() {
        let error = |given: &[(&str, &str)]| Values::read(&SPEC, given).unwrap_err().to_string();
        assert!(error(&[("limt", "1")]).contains("limit, loss, mode"));
        assert!(error(&[]).contains("needs \"loss\""));
        assert!(error(&[("loss", "200 %")]).contains("out of range"));
        assert!(error(&[("loss", "1 %"), ("mode", "c")]).contains("one of a, b"));
        assert!(error(&[("loss", "1 %"), ("limit", "many")]).contains("100 packets"));
    }
}
