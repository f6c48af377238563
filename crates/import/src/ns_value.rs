//! Values of ns scripts.

use super::quantity::{time, whole};
use super::{ImportError, Result};
use longwire_units::Nanos;

/// A value parsed by `reader`.
pub(super) fn read<T>(
    line: usize,
    what: &str,
    word: Option<&String>,
    example: &str,
    reader: impl FnOnce(&str) -> Option<T>,
) -> Result<T> {
    let word = word.map_or("", String::as_str);
    reader(word).ok_or_else(|| {
        let what = format!("{what}: \"{word}\" can't be understood");
        ImportError::new(line, what, format!("write one such as {example}"))
    })
}

/// A whole number, also as a real expression's result: `20.0`.
pub(super) fn count(text: &str) -> Option<u64> {
    whole(text.strip_suffix(".0").unwrap_or(text))
}

/// A time in ns: seconds by default.
pub(super) fn seconds(text: &str) -> Option<Nanos> {
    time(text, 1_000_000_000)
}
