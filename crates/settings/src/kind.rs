//! Kinds of settings: what values each takes.

use longwire_units::{Bytes, Nanos};
use std::any::Any;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// Kinds of parameter values.
#[derive(Debug, Clone, Copy)]
pub enum ParamKind {
    /// A [`Rate`](longwire_units::Rate).
    Rate,
    /// A [`Nanos`] in a range.
    Time {
        /// The lowest value.
        min: Nanos,
        /// The highest value.
        max: Nanos,
    },
    /// A [`Probability`](longwire_units::Probability).
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
    /// A size in bytes.
    Size {
        /// The lowest value.
        min: Bytes,
        /// The highest value.
        max: Bytes,
    },
    /// A number with a fraction, kept in millionths.
    Decimal {
        /// The lowest value, in millionths.
        min: u64,
        /// The highest value, in millionths.
        max: u64,
    },
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A text with a grammar of its own, or the name of a file with one: a distribution, a trace, rules.
    Parsed(Grammar),
}

/// What a text became, or what is wrong with it.
pub type Reading = Result<Arc<dyn Any + Send + Sync>, String>;

/// How a text becomes what a block works with.
#[derive(Clone, Copy)]
pub struct Grammar {
    /// What it is, with its article: `a distribution such as "normal", or a file of one`.
    pub wanted: &'static str,
    /// Reads a text; files are looked for in the folder given. The error says what is wrong and the fix.
    pub read: fn(&str, &Path) -> Reading,
    /// Texts that can be read without any file; tests try them all.
    pub examples: &'static [&'static str],
}

impl fmt::Debug for Grammar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grammar").field("wanted", &self.wanted).finish_non_exhaustive()
    }
}
