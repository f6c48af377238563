//! What can be wrong with an expression's text.

use thiserror::Error;

/// An expression that can't be read: where, what was found there, why it won't do, and the fix.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("column {column}: found {found}: {fault}; {fix}")]
pub struct ExpressionError {
    /// Where it is, in characters counted from 1.
    pub column: usize,
    /// What stands there, in quotes and shortened, or `the end`.
    pub found: String,
    /// Why it won't do.
    pub fault: Fault,
    /// What to write instead.
    pub fix: String,
}

/// Why a piece of an expression won't do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Fault {
    /// Something else has to stand here.
    #[error("it can't stand here")]
    Unexpected,
    /// No such word is known.
    #[error("no such word is known")]
    Unknown,
    /// A number, address or name that is not of the wanted kind, or out of its range.
    #[error("it is not the value that is wanted here")]
    Value,
    /// pcap-filter has it, Longwire can't know the answer.
    #[error("Longwire can't tell this of a frame")]
    Refused,
    /// Too long, or nested too deeply.
    #[error("the expression is beyond a limit")]
    Limit,
}

/// A piece of a text as errors show it: in quotes, at most 24 characters, none of them a control character.
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
