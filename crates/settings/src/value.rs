//! Values of settings, which are read, compared, replaced and printed generically.

use crate::{Param, ParamKind, Spec, SpecError};
use longwire_units::{Bytes, Nanos, Probability, Rate};
use std::any::Any;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// A text and the value parsed from it. Equality compares the texts.
#[derive(Clone)]
pub struct Parsed {
    /// The text as written.
    pub text: Arc<str>,
    /// The value that the parameter's [`Grammar`](crate::Grammar) made.
    pub value: Arc<dyn Any + Send + Sync>,
}

impl fmt::Debug for Parsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

impl PartialEq for Parsed {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Parsed {}

/// A value of a parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Bits per second.
    Rate(Rate),
    /// A time.
    Time(Nanos),
    /// A probability.
    Probability(Probability),
    /// A whole number.
    Integer(u64),
    /// A number of packets.
    Packets(u64),
    /// A number of bytes.
    Bytes(Bytes),
    /// What leaves in this time.
    Waiting(Nanos),
    /// Millionths of one.
    Decimal(u64),
    /// A word, as its index in [`ParamKind::Choice`].
    Choice(usize),
    /// What a text says.
    Parsed(Parsed),
}

/// A block's parameters with their values, in the order of its [`Spec`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Values(Vec<Value>);

/// A number with a fraction, in millionths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Millionths(pub u64);

/// A queue limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// A number of packets; [`u64::MAX`] for no limit.
    Packets(u64),
    /// So many bytes.
    Bytes(Bytes),
    /// What leaves in this time.
    Waiting(Nanos),
}

impl Values {
    /// Reads `given` pairs of parameter and text, filling in defaults.
    ///
    /// # Errors
    /// Names the parameter that is unknown, missing or unreadable, and says how to fix it.
    pub fn read(spec: &Spec, given: &[(&str, &str)]) -> Result<Self, SpecError> {
        Self::read_in(spec, given, Path::new("."))
    }

    /// Reads as [`Values::read`] does; file names are relative to the folder `base`.
    ///
    /// # Errors
    /// As [`Values::read`].
    pub fn read_in(spec: &Spec, given: &[(&str, &str)], base: &Path) -> Result<Self, SpecError> {
        Self::known(spec, given)?;
        let value = |param: &Param| {
            let text = text_of(given, param).or(param.default).ok_or(SpecError::Missing {
                key: spec.key,
                kind: spec.kind,
                name: param.name,
                help: param.help,
            })?;
            param.read_in(text, base)
        };
        spec.params.iter().map(value).collect::<Result<_, _>>().map(Self)
    }

    fn known(spec: &Spec, given: &[(&str, &str)]) -> Result<(), SpecError> {
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
        Ok(())
    }

    /// These values with the `given` ones replaced; all others are kept.
    ///
    /// # Errors
    /// As [`Values::read`].
    pub fn with(&self, spec: &Spec, given: &[(&str, &str)]) -> Result<Self, SpecError> {
        Self::known(spec, given)?;
        let value = |(param, kept): (&Param, &Value)| match text_of(given, param) {
            Some(text) => param.read(text),
            None => Ok(kept.clone()),
        };
        spec.params.iter().zip(&self.0).map(value).collect::<Result<_, _>>().map(Self)
    }

    /// Values that need no parsing, in the order of their [`Spec`].
    pub fn made(values: Vec<Value>) -> Self {
        Self(values)
    }

    /// These values with the one at `index` replaced, for a step of a ramp.
    ///
    /// # Panics
    /// If the spec has no such parameter.
    pub fn replaced(&self, index: usize, value: Value) -> Self {
        let mut values = self.clone();
        values.0[index] = value;
        values
    }

    /// The value of the parameter at `index` in the spec.
    ///
    /// # Panics
    /// If the spec has no such parameter.
    pub fn at(&self, index: usize) -> Value {
        self.0[index].clone()
    }

    /// The values, in the spec's order.
    pub fn as_slice(&self) -> &[Value] {
        &self.0
    }
}

impl Value {
    /// Formats the value so that [`Param::read`] reads it back. `kind` is the parameter's.
    pub fn print(&self, kind: ParamKind) -> String {
        match (self, kind) {
            (Self::Rate(rate), _) => rate.to_string(),
            (Self::Time(time) | Self::Waiting(time), _) => time.to_string(),
            (Self::Probability(p), _) => p.to_string(),
            (Self::Integer(n), _) => n.to_string(),
            (Self::Packets(u64::MAX), _) => "unlimited".into(),
            (Self::Packets(n), _) => format!("{n} packets"),
            (Self::Bytes(bytes), _) => bytes.to_string(),
            (Self::Decimal(millionths), _) => written(*millionths),
            (Self::Parsed(parsed), _) => parsed.text.to_string(),
            (Self::Choice(index), ParamKind::Choice(words)) => {
                words.get(*index).copied().unwrap_or("?").into()
            }
            (Self::Choice(index), _) => index.to_string(),
        }
    }
}

/// The text given for a parameter; the last one wins.
fn text_of<'t>(given: &[(&str, &'t str)], param: &Param) -> Option<&'t str> {
    given.iter().rev().find(|(name, _)| *name == param.name).map(|(_, text)| *text)
}

/// Millionths as a decimal number with as many digits as needed.
pub(crate) fn written(millionths: u64) -> String {
    let text = format!("{}.{:06}", millionths / 1_000_000, millionths % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').into()
}
