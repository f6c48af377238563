//! Objects and their changes as people write them.

use crate::item::{Item, Items, Kind, MOST_NAME, MOST_TEXT};
use std::borrow::Cow;
use thiserror::Error;

/// A text that is no setting, or has none.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct TextError(String);

/// Parses an object: a link unless it begins with a kind, as `source:video` does.
///
/// # Errors
/// If its name can't be in a message.
pub fn object(text: &str) -> Result<Item<'static>, TextError> {
    let named = text.split_once(':').and_then(|(word, name)| {
        let kind = Kind::ALL.into_iter().find(|kind| kind.word() == word)?;
        Some((kind, name))
    });
    let (kind, name) = named.unwrap_or((Kind::Link, text));
    Ok(Item::Object(kind, checked(name, "an object")?))
}

/// Parses the name of a setting to be read: `rate`.
///
/// # Errors
/// If it can't be in a message.
pub fn setting_name(text: &str) -> Result<Item<'static>, TextError> {
    checked(text, "a setting").map(Item::Name)
}

/// A name, if it can be in a message; `of` says whose it is.
fn checked(name: &str, of: &str) -> Result<Cow<'static, str>, TextError> {
    // A longer name would be truncated, and mean something else.
    if name.is_empty() || name.len() > MOST_NAME {
        return Err(TextError(format!("the name of {of} has 1 to {MOST_NAME} bytes")));
    }
    // The emulator refuses the whole message, without a reason.
    if name.contains(char::is_control) {
        return Err(TextError(format!("the name of {of} has no control characters")));
    }
    Ok(name.to_owned().into())
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
    let name = checked(name, "a setting")?;
    if value.len() > MOST_TEXT {
        let length = value.len();
        let what = format!("{name}: a value has at most {MOST_TEXT} bytes, this one {length}");
        return Err(TextError(what));
    }
    if value.contains(char::is_control) {
        return Err(TextError(format!("{name}: a value has no control characters, such as line breaks")));
    }
    Ok(Item::Setting(name, value.to_owned().into()))
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
        let in_line = |TextError(what)| TextError(format!("line {number}: {what}"));
        items.push(object(first).map_err(in_line)?);
        let before = items.len();
        for word in words {
            items.push(setting(word).map_err(in_line)?);
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
        for (text, kind, name) in [
            ("up.forward", Kind::Link, "up.forward"),
            ("medium:cell", Kind::Medium, "cell"),
            ("a:b", Kind::Link, "a:b"),
            ("forwarder:west/seen", Kind::Forwarder, "west/seen"),
        ] {
            assert_eq!(object(text), Ok(Item::Object(kind, name.into())), "{text}");
        }
        assert_eq!(setting_name("rate"), Ok(Item::Name("rate".into())));
        assert_eq!(setting("queue=50 ms").unwrap(), Item::Setting("queue".into(), "50 ms".into()));
        assert_eq!(setting("loss=").unwrap(), Item::Setting("loss".into(), "".into()));
        assert_eq!(setting(" rate = 5mbit\n").unwrap(), Item::Setting("rate".into(), "5mbit".into()));
        for wrong in ["rate", "=5", " =5"] {
            assert!(setting(wrong).unwrap_err().to_string().contains("is not a setting"), "{wrong:?}");
        }
        assert!(setting(&format!("data={}", "0".repeat(1000))).is_ok());
        let error = setting(&format!("data={}", "0".repeat(1001))).unwrap_err().to_string();
        assert_eq!(error, "data: a value has at most 1000 bytes, this one 1001");
        let error = setting("rate=5\nmbit").unwrap_err().to_string();
        assert_eq!(error, "rate: a value has no control characters, such as line breaks");
        assert!(setting("ra\x1bte=5").unwrap_err().to_string().contains("no control characters"));
    }

    /// A name of more than 255 bytes would be that of another object, whose name begins so.
    #[test]
    fn names_that_no_message_has_are_refused() {
        let (most, longer) = ("x".repeat(255), "x".repeat(256));
        assert!(object(&most).is_ok() && setting_name(&most).is_ok());
        for (name, why) in
            [("", "1 to 255 bytes"), (&longer, "1 to 255 bytes"), ("a\u{7}", "no control characters")]
        {
            for refused in [object(name), object(&format!("router:{name}")), setting_name(name)] {
                assert!(refused.unwrap_err().to_string().contains(why), "{name:?}");
            }
        }
        let error = changes(&format!("up rate=1\n{longer} rate=1")).unwrap_err().to_string();
        assert!(error.starts_with("line 2: the name of an object has"), "{error}");
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
