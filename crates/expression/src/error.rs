//! Errors of expressions.

use thiserror::Error;

/// An invalid expression: position, text found there, kind of error, and the fix.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("column {column}: found {found}: {fault}; {fix}")]
pub struct ExpressionError {
    /// Where it is, in characters counted from 1.
    pub column: usize,
    /// The text found there, quoted and shortened, or `the end`.
    pub found: String,
    /// Kind of error.
    pub fault: Fault,
    /// What to write instead.
    pub fix: String,
}

/// Kinds of errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Fault {
    /// Unexpected token.
    #[error("it can't stand here")]
    Unexpected,
    /// No such word is known.
    #[error("no such word is known")]
    Unknown,
    /// A number, address or name of the wrong kind, or out of range.
    #[error("it is not the value that is wanted here")]
    Value,
    /// Supported by pcap-filter, but not answerable here.
    #[error("Longwire can't tell this of a frame")]
    Refused,
    /// Too long, or too deeply nested.
    #[error("the expression is beyond a limit")]
    Limit,
}

/// A part of a text for error messages: quoted, at most 24 characters, without control characters.
pub fn quoted(found: &str) -> String {
    const SHOWN: usize = 24;
    let shown: String = found.chars().take(SHOWN).flat_map(char::escape_debug).collect();
    if found.chars().nth(SHOWN).is_some() { format!("\"{shown}…\"") } else { format!("\"{shown}\"") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_is_shown_short_and_harmless() {
        assert_eq!(quoted("tcp"), "\"tcp\"");
        assert_eq!(quoted("a\u{1b}[2J\n"), "\"a\\u{1b}[2J\\n\"");
        assert_eq!(quoted(&"x".repeat(30)), format!("\"{}…\"", "x".repeat(24)));
    }
}
