//! Values of settings, which are read, compared, replaced and printed generically.

use crate::ParamKind;
use longwire_units::{Bytes, Nanos, Probability, Rate};
use std::any::Any;
use std::fmt;
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
    /// The backlog that leaves within this time.
    Waiting(Nanos),
    /// Millionths of one.
    Decimal(u64),
    /// A word, as its index in [`ParamKind::Choice`].
    Choice(usize),
    /// A parsed text.
    Parsed(Parsed),
    /// An optional setting that was not given.
    Absent,
}

/// A number with a fraction, in millionths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Millionths(pub u64);

/// A queue limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// A number of packets; [`u64::MAX`] for no limit.
    Packets(u64),
    /// A number of bytes.
    Bytes(Bytes),
    /// The backlog that leaves within this time.
    Waiting(Nanos),
}

impl Value {
    /// Writes the value so that [`Param::read`](crate::Param::read) reads it back. `kind` is the parameter's.
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
            (Self::Absent, _) => String::new(),
        }
    }
}

/// Millionths as a decimal number with as many digits as needed.
pub(crate) fn written(millionths: u64) -> String {
    let text = format!("{}.{:06}", millionths / 1_000_000, millionths % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').into()
}
