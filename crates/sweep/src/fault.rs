//! Mistakes in the file of a sweep.

use std::error::Error;
use std::fmt;
use std::ops::Range;

/// A mistake in the file of a sweep: place, fault and fix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SweepFault {
    /// The file.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The key, as in `axes, bottleneck.rate`; may be empty.
    pub field: String,
    /// The fault.
    pub what: String,
    /// The fix; may be empty.
    pub fix: String,
}

impl fmt::Display for SweepFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: ", self.file, self.line, self.column)?;
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        f.write_str(&self.what)?;
        if self.fix.is_empty() { Ok(()) } else { write!(f, "; {}", self.fix) }
    }
}

impl Error for SweepFault {}

/// A fault at a place of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) span: Range<usize>,
    pub(crate) field: String,
    pub(crate) what: String,
    pub(crate) fix: String,
}

impl Fault {
    pub(crate) fn new(
        span: Range<usize>,
        field: impl Into<String>,
        what: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self { span, field: field.into(), what: what.into(), fix: fix.into() }
    }

    /// With the line and column of its place in `text`, which is that of `file`.
    pub(crate) fn in_file(self, file: &str, text: &str) -> SweepFault {
        let before = &text[..text.floor_char_boundary(self.span.start)];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        SweepFault { file: file.into(), line, column, field: self.field, what: self.what, fix: self.fix }
    }
}
