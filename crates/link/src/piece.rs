//! Parts of texts with a rule or a class in each line, and errors that say where they are.

use longwire_expression::{Expression, ExpressionError, quoted};
use std::fmt::Display;
use std::str::FromStr;
use thiserror::Error;

/// A text that can't be parsed. Lines (those that are not skipped) and columns are counted from 1.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LineError {
    /// The text as a whole is wrong.
    #[error("{0}")]
    Whole(String),
    /// A part of a line is wrong.
    #[error("{kind} {line}, column {column}: {what}")]
    Part {
        /// What a line is: a rule or a class.
        kind: &'static str,
        /// Which line.
        line: usize,
        /// Where the part begins.
        column: usize,
        /// The fault and its fix.
        what: String,
    },
    /// The condition can't be read.
    #[error("{kind} {line}, {source}")]
    Condition {
        /// What a line is: a rule or a class.
        kind: &'static str,
        /// Which line.
        line: usize,
        /// The reason; its column counts from the start of the line.
        source: ExpressionError,
    },
}

/// A part of a line with its position.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piece<'a> {
    pub text: &'a str,
    start: usize,
    whole: &'a str,
    /// What a line is, and its number.
    kind: &'static str,
    line: usize,
}

impl<'a> Piece<'a> {
    /// The lines of a text, of which each is a `kind`, but blank ones and those that begin with `#`.
    pub fn lines(text: &'a str, kind: &'static str) -> impl Iterator<Item = Self> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let piece = move |(line, text)| Self { text, start: 0, whole: text, kind, line };
        (1..).zip(lines).map(piece)
    }

    /// The part between two offsets, without surrounding spaces.
    pub fn part(self, from: usize, to: usize) -> Self {
        let text = &self.text[from..to];
        let start = self.start + from + (text.len() - text.trim_start().len());
        Self { text: text.trim(), start, ..self }
    }

    /// The part before the first separate `word`, and the one after it; all and none, if it has no such word.
    pub fn divided(self, word: &str) -> (Self, Option<Self>) {
        let mut words = self.text.split_whitespace();
        let Some(found) = words.find(|found| *found == word) else { return (self, None) };
        // The word is a slice of the text, so its position follows from the addresses.
        let at = found.as_ptr() as usize - self.text.as_ptr() as usize;
        (self.part(0, at), Some(self.part(at + word.len(), self.text.len())))
    }

    /// The first word, and the part after it.
    pub fn first_word(self) -> (&'a str, Self) {
        let len = self.text.find(char::is_whitespace).unwrap_or(self.text.len());
        (&self.text[..len], self.part(len, self.text.len()))
    }

    /// Parses all of it.
    pub fn parse<T: FromStr<Err: Display>>(self) -> Result<T, LineError> {
        self.text.parse().map_err(|error| self.wrong(error))
    }

    /// Parses it as the condition behind `if`.
    pub fn condition(self) -> Result<Expression, LineError> {
        let failed = |source: ExpressionError| {
            let source = ExpressionError { column: source.column + self.column() - 1, ..source };
            LineError::Condition { kind: self.kind, line: self.line, source }
        };
        let condition = Expression::parse(self.text).map_err(failed)?;
        if condition.as_str().is_empty() {
            return Err(self.found("write a condition such as \"udp port 53\" behind \"if\""));
        }
        Ok(condition)
    }

    /// The error that it is what it is; with how to fix that.
    pub fn found(self, fix: impl Display) -> LineError {
        self.wrong(format!("found {}; {fix}", shown(self.text)))
    }

    /// An error in this place.
    pub fn wrong(self, what: impl Display) -> LineError {
        let (column, what) = (self.column(), what.to_string());
        LineError::Part { kind: self.kind, line: self.line, column, what }
    }

    /// Its column, counted from 1 in characters.
    fn column(self) -> usize {
        self.whole.get(..self.start).unwrap_or(self.whole).chars().count() + 1
    }
}

/// A found text for error messages.
pub(crate) fn shown(found: &str) -> String {
    if found.is_empty() { "nothing".into() } else { quoted(found) }
}
