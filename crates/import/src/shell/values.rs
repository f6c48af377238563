//! Values in a script's words: variables, arguments, defaults, arithmetic.

use super::{MOST_BYTES, Shell};
use crate::lines::{PLAIN_DOLLAR, QUOTED_DOLLAR};
use crate::tcl_value;

/// Longest expression after a dollar, and longest sum with its values, in bytes. Longer ones have no value:
/// the work on a word must not grow with the square of its length.
const LONGEST: usize = 2000;
/// Deepest nesting of braces.
const DEEPEST: i32 = 10;

impl Shell<'_> {
    /// Adds a word with variables replaced. Unquoted values are split into words, unless it stays `whole`.
    pub(super) fn expand(&mut self, word: &str, whole: bool, all: &mut Vec<String>) {
        let (mut text, mut rest, mut given) = (String::new(), word, !word.starts_with('$'));
        while let Some(at) = rest.find(['$', PLAIN_DOLLAR, QUOTED_DOLLAR]) {
            text += &rest[..at];
            let dollar = rest[at..].chars().next().unwrap_or('$');
            rest = &rest[at + dollar.len_utf8()..];
            if dollar == PLAIN_DOLLAR {
                text.push('$');
                continue;
            }
            let (value, length) = self.value(rest, dollar == QUOTED_DOLLAR);
            if let (Some(name), Some(value)) = (set_by(&rest[..length]), &value) {
                self.values.insert(name.to_owned(), value.clone());
            }
            let Some(value) = value else {
                given = true;
                text.push('$');
                text += &rest[..length];
                rest = &rest[length..];
                continue;
            };
            rest = &rest[length..];
            self.bytes += value.len();
            if self.bytes > MOST_BYTES {
                return;
            }
            if dollar == QUOTED_DOLLAR || whole {
                given = true;
                text += &value;
                continue;
            }
            let mut parts = value.split_whitespace().peekable();
            while let Some(part) = parts.next() {
                text += part;
                given = true;
                if parts.peek().is_some() {
                    all.push(std::mem::take(&mut text));
                }
            }
        }
        text += rest;
        if given || !text.is_empty() {
            all.push(text);
        }
    }

    /// The value of the expression after a dollar, if known, and the length of the expression. `quoted`
    /// determines which quotes of a default are literal.
    fn value(&self, text: &str, quoted: bool) -> (Option<String>, usize) {
        let inner = |open: &str, close: &str| {
            let rest = text.strip_prefix(open)?;
            let end = rest[..rest.floor_char_boundary(LONGEST)].find(close)?;
            Some((&rest[..end], open.len() + end + close.len()))
        };
        if let Some((sum, length)) = inner("((", "))") {
            let sum = self.names_replaced(sum);
            return (sum.and_then(|sum| tcl_value::evaluate(&sum).ok()), length);
        }
        if let Some((_, length)) = inner("(", ")") {
            return (None, length);
        }
        if let Some((inner, length)) = in_braces(text) {
            return (self.braced(inner, quoted), length);
        }
        let length = match text.chars().next() {
            Some(c) if "@*#".contains(c) || c.is_ascii_digit() => 1,
            _ => text.find(|c: char| !in_name(c)).unwrap_or(text.len()),
        };
        (self.named(&text[..length]), length)
    }

    /// The value of what is in braces: `NAME`, `NAME:-DEFAULT`, `NAME:=DEFAULT`, `NAME:+INSTEAD`. None if it
    /// is not known, as for other operators.
    fn braced(&self, inner: &str, quoted: bool) -> Option<String> {
        let (name, rest) = named_first(inner);
        let value = self.named(name);
        if rest.is_empty() {
            return value;
        }
        let value = value.filter(|value| !value.is_empty());
        if let Some(instead) = rest.strip_prefix(":+") {
            return Some(value.map_or_else(String::new, |_| self.instead(instead, quoted)));
        }
        let default = rest.strip_prefix(':').unwrap_or(rest).strip_prefix(['-', '='])?;
        value.or_else(|| Some(self.instead(default, quoted)))
    }

    /// The default of a variable without a value, without its quotes: nothing is replaced between single
    /// quotes. Within double quotes single ones are literal.
    fn instead(&self, text: &str, quoted: bool) -> String {
        let (mut all, mut rest) = (String::new(), text);
        let quotes = if quoted { &['"'][..] } else { &['\'', '"'] };
        while let Some(at) = rest.find(quotes).filter(|_| all.len() < MOST_BYTES) {
            all += &self.replaced(&rest[..at]);
            let quote = &rest[at..=at];
            let inner = &rest[at + 1..];
            let end = inner.find(quote).unwrap_or(inner.len());
            all += &if quote == "'" { inner[..end].to_owned() } else { self.replaced(&inner[..end]) };
            rest = inner.get(end + 1..).unwrap_or_default();
        }
        all + &self.replaced(rest)
    }

    /// A text with the values of variables in it.
    fn replaced(&self, text: &str) -> String {
        let (mut plain, mut rest) = (String::new(), text);
        while let Some(at) = rest.find(['$', QUOTED_DOLLAR]).filter(|_| plain.len() < MOST_BYTES) {
            plain += &rest[..at];
            let dollar = rest[at..].chars().next().map_or(1, char::len_utf8);
            let (value, length) = self.value(&rest[at + dollar..], false);
            plain += &value.unwrap_or_else(|| rest[at..at + dollar + length].to_owned());
            rest = &rest[at + dollar + length..];
        }
        plain + rest
    }

    /// The value of a variable, or of an argument of the function; a missing argument is empty.
    fn named(&self, name: &str) -> Option<String> {
        match (name, &self.given) {
            ("@" | "*", Some(given)) => Some(given.join(" ")),
            ("#", Some(given)) => Some(given.len().to_string()),
            (name, Some(given)) if name.starts_with(|c: char| c.is_ascii_digit() && c != '0') => {
                let at: usize = name.parse().ok()?;
                Some(given.get(at - 1).cloned().unwrap_or_default())
            }
            _ => self.values.get(name).cloned(),
        }
    }

    /// An arithmetic expression with names replaced by values, with or without a dollar. None if one
    /// behind a dollar has no value, or if it becomes too long.
    fn names_replaced(&self, sum: &str) -> Option<String> {
        const DOLLARS: [char; 3] = ['$', PLAIN_DOLLAR, QUOTED_DOLLAR];
        let begins = |c: char| c.is_ascii_alphabetic() || c == '_' || DOLLARS.contains(&c);
        let (mut plain, mut rest) = (String::new(), sum);
        while let Some(at) = rest.find(begins) {
            plain += &rest[..at];
            let inner = rest[at..].trim_start_matches(DOLLARS);
            let has_dollar = inner.len() < rest.len() - at;
            let bare = inner.trim_start_matches('{');
            let is_argument = bare.len() == inner.len() && inner.starts_with(|c: char| c.is_ascii_digit());
            let length = match bare.find(|c: char| !in_name(c)).unwrap_or(bare.len()) {
                // Digits behind that of an argument are not part of its number.
                _ if is_argument => 1,
                length => length,
            };
            let name = &bare[..length];
            let value = if has_dollar { Some(self.named(name)?) } else { self.values.get(name).cloned() };
            plain += value.as_deref().unwrap_or(name);
            if plain.len() > LONGEST {
                return None;
            }
            rest = bare[length..].trim_start_matches('}');
        }
        Some(plain + rest)
    }
}

/// What is in the braces with which a text begins, and the length with them. None if they are not closed, or
/// if others are nested too deeply in them.
fn in_braces(text: &str) -> Option<(&str, usize)> {
    let inner = text.strip_prefix('{')?;
    let mut depth = 1;
    for (at, byte) in inner.bytes().enumerate().take(LONGEST) {
        depth += i32::from(byte == b'{') - i32::from(byte == b'}');
        match depth {
            0 => return Some((&inner[..at], at + 2)),
            DEEPEST => return None,
            _ => {}
        }
    }
    None
}

/// The name at the beginning of what is in braces, and the rest.
fn named_first(inner: &str) -> (&str, &str) {
    let end = match inner.chars().next() {
        Some('@' | '*' | '#') => 1,
        _ => inner.find(|c: char| !in_name(c)).unwrap_or(inner.len()),
    };
    inner.split_at(end)
}

/// The variable that an expression sets if it has no value: `{NAME:=DEFAULT}`.
fn set_by(expression: &str) -> Option<&str> {
    let (name, rest) = named_first(expression.strip_prefix('{')?);
    (is_name(name) && rest.trim_start_matches(':').starts_with('=')).then_some(name)
}

/// Whether a word is an assignment: `A=1`, or `A+=1`.
pub(super) fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| is_name(name.strip_suffix('+').unwrap_or(name)))
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && text.chars().all(in_name)
}

fn in_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}
