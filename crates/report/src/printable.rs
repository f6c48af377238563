//! Escaping of untrusted text for a terminal.

use std::borrow::Cow;

/// Escapes the control characters of `text`: `\u001b` for an escape. Newlines and tabs stay.
///
/// A name chosen by another process, host or user could otherwise move the cursor, change the title, or make
/// text read from right to left. The same notation is valid in JSON.
///
/// ```
/// assert_eq!(longwire_report::printable("a\u{1b}[2Jb"), "a\\u001b[2Jb");
/// ```
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hostile) {
        return Cow::Borrowed(text);
    }
    let escape = |c: char| if is_hostile(c) { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() };
    Cow::Owned(text.chars().map(escape).collect())
}

/// C0, C1 and DEL, line and paragraph separators, and characters that change the text direction (UAX #9).
fn is_hostile(c: char) -> bool {
    let turns =
        matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || (c.is_control() && !matches!(c, '\n' | '\t'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_written_out_and_nothing_else() {
        assert!(matches!(printable("a µ\u{a0}ß 漢\n\tb"), Cow::Borrowed(_)));
        for (text, shown) in [
            ("\u{1b}]0;x\u{7}", "\\u001b]0;x\\u0007"),
            ("\u{9b}2J\u{7f}\r", "\\u009b2J\\u007f\\u000d"),
            ("a\u{202e}b\u{2066}", "a\\u202eb\\u2066"),
        ] {
            assert_eq!(printable(text), shown);
        }
        let json = printable("{\"name\": \"\u{9b}2J\"}").into_owned();
        assert_eq!(serde_json::from_str::<serde_json::Value>(&json).unwrap()["name"], "\u{9b}2J");
    }
}
