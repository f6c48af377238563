//! What can be wrong with a trace.

use std::path::PathBuf;
use thiserror::Error;

/// A trace that can't be used; names the place and the fix.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TraceError {
    /// The file can't be read.
    #[error("can't read the trace {}: {why}; write the name of a file, or a text such as \"{example}\"", path.display())]
    File {
        /// Where it was looked for.
        path: PathBuf,
        /// What the system says.
        why: String,
        /// A text that would do without a file.
        example: &'static str,
    },
    /// A line is not what its format wants.
    #[error("line {line}: {what}")]
    Line {
        /// The line's number, from 1.
        line: usize,
        /// What is wrong, and the fix.
        what: String,
    },
    /// The whole is not a trace.
    #[error("{what}")]
    Whole {
        /// What is wrong, and the fix.
        what: String,
    },
    /// Something is wrong in the file named.
    #[error("{}: {source}", path.display())]
    In {
        /// The file.
        path: PathBuf,
        /// What is wrong in it.
        source: Box<TraceError>,
    },
}

impl TraceError {
    pub(crate) fn line(line: usize, what: impl Into<String>) -> Self {
        Self::Line { line, what: what.into() }
    }

    pub(crate) fn whole(what: impl Into<String>) -> Self {
        Self::Whole { what: what.into() }
    }
}
