//! Strings and keys as TOML text.

use std::fmt::Write;

/// A string in quotes, on one line and without control characters.
pub fn quoted(text: &str) -> String {
    // JSON escapes like TOML, except for DEL. The control characters above it are valid in TOML, but steer
    // terminals.
    let json = serde_json::Value::from(text).to_string();
    let mut quoted = String::with_capacity(json.len());
    for c in json.chars() {
        if c.is_control() {
            // Writing to a String can't fail.
            let _ = write!(quoted, "\\u{:04x}", u32::from(c));
        } else {
            quoted.push(c);
        }
    }
    quoted
}

/// A key, in quotes if it needs them.
pub fn quoted_key(key: &str) -> String {
    let is_bare = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
    if is_bare { key.into() } else { quoted(key) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_is_read_back() {
        let text: String = (0..0x3000).filter_map(char::from_u32).chain(['\u{feff}', '\u{10ffff}']).collect();
        let written = format!("{} = {}", quoted_key(&text), quoted(&text));
        assert!(!written.contains(char::is_control), "{written:?}");
        let read: toml::Table = written.parse().unwrap();
        assert_eq!(read[&text].as_str(), Some(&*text));
        assert_eq!(quoted("a\"b\\\n\u{7f}\u{9b}"), "\"a\\\"b\\\\\\n\\u007f\\u009b\"");
    }

    #[test]
    fn keys_have_quotes_only_if_they_need_them() {
        for (key, written) in [("a-b_1", "a-b_1"), ("a.b", "\"a.b\""), ("", "\"\""), ("é", "\"é\"")] {
            assert_eq!(quoted_key(key), written);
        }
    }
}
