//! Errors of traces.

use std::path::PathBuf;
use thiserror::Error;

/// A trace that can't be used. The message names the place and says how to fix it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TraceError {
    /// The file can't be read.
    #[error("can't read the trace {}: {why}; write the name of a file, or a text such as \"{example}\"",
        path.display())]
    File {
        /// The path that was tried.
        path: PathBuf,
        /// The system's error.
        why: String,
        /// A valid text that needs no file.
        example: &'static str,
    },
    /// A line does not match its format.
    #[error("line {line}: {what}")]
    Line {
        /// The line's number, from 1.
        line: usize,
        /// The fault and its fix.
        what: String,
    },
    /// The trace as a whole is invalid.
    #[error("{what}")]
    Whole {
        /// The fault and its fix.
        what: String,
    },
    /// The named file has an error.
    #[error("{}: {source}", path.display())]
    In {
        /// The file.
        path: PathBuf,
        /// The error.
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
