//! Reader for the words of a command, and abbreviated names.

use super::quantity::is_number;
use super::{ImportError, Result};

/// The name in `all` for this word: the first that begins with it, as tc and ip match abbreviations
/// (iproute2, `matches`).
pub(super) fn named(word: &str, all: &[&'static str]) -> Option<&'static str> {
    all.iter().find(|name| !word.is_empty() && name.starts_with(word)).copied()
}

/// The remaining words of a command.
pub(super) struct Words<'w> {
    pub(super) line: usize,
    pub(super) rest: &'w [String],
}

impl<'w> Words<'w> {
    pub(super) fn new(line: usize, rest: &'w [String]) -> Self {
        Self { line, rest }
    }

    /// The next word.
    pub(super) fn next(&mut self) -> Option<&'w str> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    /// The next word, which stays.
    pub(super) fn peek(&self) -> Option<&'w str> {
        self.rest.first().map(String::as_str)
    }

    /// The next word, if it begins a number.
    pub(super) fn number(&mut self) -> Option<&'w str> {
        self.rest.first().filter(|word| is_number(word))?;
        self.next()
    }

    /// The error of an option that a tool does not have, with those that it has.
    pub(super) fn no_option<T>(&self, tool: &str, option: &str, known: &str) -> Result<T> {
        let what = format!("{tool} has no option \"{option}\"");
        Err(ImportError::new(self.line, what, format!("options are {known}")))
    }

    /// The value of `option`, parsed by `read`; `example` is a valid one for errors.
    pub(super) fn value<T>(
        &mut self,
        option: &str,
        example: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T> {
        let (line, fix) = (self.line, format!("write {option} {example}"));
        let missing = || ImportError::new(line, format!("{option} has no value"), &*fix);
        let word = self.next().ok_or_else(missing)?;
        read(word).ok_or_else(|| self.bad(option, word, &fix))
    }

    /// An optional value; `default` if the next word is not a number.
    pub(super) fn optional<T>(
        &mut self,
        option: &str,
        default: T,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T> {
        match self.number() {
            Some(word) => read(word).ok_or_else(|| self.bad(option, word, "correct it")),
            None => Ok(default),
        }
    }

    pub(super) fn bad(&self, option: &str, word: &str, fix: &str) -> ImportError {
        if word.contains(['$', '`']) {
            let what = format!("{option}: \"{word}\" has no value in this text");
            return ImportError::new(self.line, what, format!("write its value in its place, as in: {fix}"));
        }
        ImportError::new(self.line, format!("{option}: \"{word}\" can't be understood"), fix)
    }

    /// Passes over the next word if it is this one.
    pub(super) fn skip(&mut self, word: &str) {
        if self.rest.first().is_some_and(|next| next.eq_ignore_ascii_case(word)) {
            self.rest = &self.rest[1..];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_name_that_begins_with_the_word() {
        const NAMES: [&str; 3] = ["latency", "loss", "limit"];
        let table = [
            ("l", Some("latency")),
            ("lo", Some("loss")),
            ("limit", Some("limit")),
            ("limits", None),
            ("", None),
        ];
        for (word, name) in table {
            assert_eq!(named(word, &NAMES), name, "{word}");
        }
    }
}
