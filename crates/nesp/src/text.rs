//! Objects and their changes as people write them.

use crate::item::{Item, Items, Kind, MOST_NAME, MOST_TEXT};
use thiserror::Error;

/// A text that is no setting, or has none.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct TextError(String);

/// Parses an object: a link unless it begins with a kind, as `source:video` does.
pub fn object(text: &str) -> Item<'static> {
    let named = text.split_once(':').and_then(|(word, name)| {
        let kind = Kind::ALL.into_iter().find(|kind| kind.word() == word)?;
        Some((kind, name))
    });
    let (kind, name) = named.unwrap_or((Kind::Link, text));
    Item::Object(kind, name.to_owned().into())
}

/// Parses a setting: `rate=5mbit`.
///
/// # Errors
/// If it has no name, or can't be in a message.
pub fn setting(text: &str) -> Result<Item<'static>, TextError> {
    let parts = text.split_once('=').map(|(name, value)| (name.trim(), value.trim()));
    let Some((name, value)) = parts.filter(|(name, _)| !name.is_empty()) else {
        let what = format!("\"{text}\" is not a setting; write KEY=VALUE, such as rate=5mbit");
        return Err(TextError(what));
    };
    // A longer name would be truncated, and mean something else.
    if name.len() > MOST_NAME {
        return Err(TextError(format!("the name of a setting has at most {MOST_NAME} bytes")));
    }
    if value.len() > MOST_TEXT {
        let length = value.len();
        let what = format!("{name}: a value has at most {MOST_TEXT} bytes, this one {length}");
        return Err(TextError(what));
    }
    // The emulator refuses the whole message, without a reason.
    if name.contains(char::is_control) {
        return Err(TextError("the name of a setting has no control characters".to_owned()));
    }
    if value.contains(char::is_control) {
        return Err(TextError(format!("{name}: a value has no control characters, such as line breaks")));
    }
    Ok(Item::Setting(name.to_owned().into(), value.to_owned().into()))
}

/// Parses changes: an object and its settings on each line. `#` begins a comment.
///
/// # Errors
/// The line, and its mistake.
pub fn changes(text: &str) -> Result<Items<'static>, TextError> {
    let mut items = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
        let Some(first) = words.next() else { continue };
        items.push(object(first));
        let before = items.len();
        for word in words {
            items.push(setting(word).map_err(|TextError(what)| TextError(format!("line {number}: {what}")))?);
        }
        if items.len() == before {
            return Err(TextError(format!("line {number}: {first} has no settings")));
        }
    }
    Ok(items)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_and_settings_are_read() {
        assert_eq!(object("up.forward"), Item::Object(Kind::Link, "up.forward".into()));
        assert_eq!(object("medium:cell"), Item::Object(Kind::Medium, "cell".into()));
        assert_eq!(object("a:b"), Item::Object(Kind::Link, "a:b".into()));
        assert_eq!(setting("queue=50 ms").unwrap(), Item::Setting("queue".into(), "50 ms".into()));
        assert_eq!(setting("loss=").unwrap(), Item::Setting("loss".into(), "".into()));
        assert_eq!(setting(" rate = 5mbit\n").unwrap(), Item::Setting("rate".into(), "5mbit".into()));
        for wrong in ["rate", "=5", " =5"] {
            assert!(setting(wrong).unwrap_err().to_string().contains("is not a setting"), "{wrong:?}");
        }
        assert_eq!(object("forwarder:west/seen"), Item::Object(Kind::Forwarder, "west/seen".into()));
        assert!(setting(&format!("data={}", "0".repeat(1000))).is_ok());
        let error = setting(&format!("data={}", "0".repeat(1001))).unwrap_err().to_string();
        assert_eq!(error, "data: a value has at most 1000 bytes, this one 1001");
        let error = setting("rate=5\nmbit").unwrap_err().to_string();
        assert_eq!(error, "rate: a value has no control characters, such as line breaks");
        assert!(setting("ra\x1bte=5").unwrap_err().to_string().contains("no control characters"));
    }

    #[test]
    fn changes_have_a_line_each() {
        let items = changes("up rate=5mbit loss=1% # slower\n\nmedium:cell rate=2mbit\n").unwrap();
        assert_eq!(items.len(), 5);
        assert_eq!(items[3], Item::Object(Kind::Medium, "cell".into()));
        assert_eq!(changes("# nothing\n"), Ok(Vec::new()));
        let error = |text| changes(text).unwrap_err().to_string();
        assert_eq!(error("up rate=1\nup # rate=2"), "line 2: up has no settings");
        assert!(error("up rate").starts_with("line 1: \"rate\" is not a setting"));
    }
}
