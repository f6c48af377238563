//! Kinds of settings, by the values they take.

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
    /// A text with its own grammar, or the name of a file with such a text: a distribution, a trace, rules.
    Parsed(Grammar),
}

/// The parsed value of a text, or the error.
pub type Reading = Result<Arc<dyn Any + Send + Sync>, String>;

/// A parser for texts.
#[derive(Clone, Copy)]
pub struct Grammar {
    /// The expected text, with its article: `a distribution such as "normal", or a file of one`.
    pub wanted: &'static str,
    /// Parses a text; file names are relative to the folder given. The error says what is wrong and how to
    /// fix it.
    pub read: fn(&str, &Path) -> Reading,
    /// Valid texts that need no file; tests try all of them.
    pub examples: &'static [&'static str],
    /// The form of all its texts; none if only `read` knows it, or if they may be lists of lines.
    pub form: Option<Form>,
}

/// The form of a grammar's texts, for editors that check files against the schema.
#[derive(Debug, Clone, Copy)]
pub struct Form {
    /// A regular expression of JSON Schema.
    pub pattern: &'static str,
    /// Whether a whole number may stand there as well.
    pub numbers: bool,
}

impl fmt::Debug for Grammar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grammar").field("wanted", &self.wanted).finish_non_exhaustive()
    }
}
