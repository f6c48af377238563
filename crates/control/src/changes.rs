//! The body of a change request: a JSON object of key and text, in the given order.

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use std::fmt;

/// Most settings in one request: more than a link has.
pub(crate) const MAX_CHANGES: usize = 64;

/// Pairs of key and text, each key once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Changes(pub Vec<(String, String)>);

impl Changes {
    /// The first key whose value names a file by a path that leaves the scenario's folder: no other kind of
    /// value has a word that begins with a slash, but for divisions by numbers and parentheses, or goes up.
    pub(crate) fn key_of_file_outside(&self) -> Option<&str> {
        let divides =
            |rest: &str| rest.is_empty() || rest.starts_with(|c: char| c.is_ascii_digit() || c == '(');
        let leaves = |word: &str| {
            word.strip_prefix('/').is_some_and(|rest| !divides(rest))
                || word.split('/').any(|part| part == "..")
        };
        let ends_word = |c: char| c.is_whitespace() || "=,;\"'".contains(c);
        let outside = self.0.iter().find(|(_, text)| text.split(ends_word).any(leaves));
        outside.map(|(key, _)| &**key)
    }
}

impl<'de> Deserialize<'de> for Changes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ChangesVisitor)
    }
}

struct ChangesVisitor;

impl<'de> Visitor<'de> for ChangesVisitor {
    type Value = Changes;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of settings, such as {\"rate\": \"5 Mbit/s\", \"delay\": \"40 ms\"}")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Changes, A::Error> {
        let mut pairs: Vec<(String, String)> = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            if pairs.iter().any(|(known, _)| *known == key) {
                return Err(Error::custom(format!("\"{key}\" is given twice")));
            }
            if pairs.len() == MAX_CHANGES {
                return Err(Error::custom(format!("at most {MAX_CHANGES} settings in one request")));
            }
            let value: serde_json::Value = map.next_value()?;
            let serde_json::Value::String(text) = value else {
                return Err(Error::custom(format!("\"{key}\" must be text, such as \"5 Mbit/s\"")));
            };
            pairs.push((key, text));
        }
        Ok(Changes(pairs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Result<Vec<(String, String)>, String> {
        serde_json::from_str::<Changes>(text).map(|c| c.0).map_err(|e| e.to_string())
    }

    #[test]
    fn order_is_kept_and_mistakes_are_named() {
        let pairs = read(r#"{"rate": "5 Mbit/s", "delay": "40 ms"}"#).unwrap();
        assert_eq!(pairs, [("rate".into(), "5 Mbit/s".into()), ("delay".into(), "40 ms".into())]);
        assert_eq!(read("{}").unwrap(), []);
        let mistakes = [
            (r#"{"rate": "1", "rate": "2"}"#, "\"rate\" is given twice"),
            (r#"{"rate": 5}"#, "\"rate\" must be text"),
            (r#"["rate"]"#, "expected an object of settings"),
            (r#"{"rate": "#, "EOF"),
        ];
        for (text, expected) in mistakes {
            let error = read(text).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
        let many: Vec<String> = (0..=MAX_CHANGES).map(|i| format!("\"{i}\": \"x\"")).collect();
        assert!(read(&format!("{{{}}}", many.join(","))).unwrap_err().contains("at most 64"));
    }

    #[test]
    fn files_outside_the_folder_are_seen() {
        let key = |text: &str| {
            Changes(vec![("delay".into(), "1 ms".into()), ("rate".into(), text.into())])
                .key_of_file_outside()
                .map(String::from)
        };
        for inside in [
            "5 Mbit/s",
            "fixed 3/4",
            "up.trace",
            "traces/up.trace",
            "a..b",
            "10.0.0.0/8",
            "ip[0] / 4 = 2",
            "len /4 > 9",
        ] {
            assert_eq!(key(inside), None, "{inside}");
        }
        for outside in ["/etc/shadow", "trace /a", "file=/a", "../a", "a/../../b", "\"/a b\"", ".."] {
            assert_eq!(key(outside).as_deref(), Some("rate"), "{outside}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,200}") {
            let _ = read(&text);
        }
    }
}
