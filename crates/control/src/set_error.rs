//! Why objects are not shown or changed.

use crate::object::Kind;
use thiserror::Error;

/// Why an object can't be shown or changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SetError {
    /// There is no such object.
    #[error("there is no {} \"{name}\"", kind.word())]
    Unknown {
        /// Its kind.
        kind: Kind,
        /// Its name.
        name: String,
    },
    /// An object of this kind has no such setting.
    #[error("a {} has no \"{key}\"; {}", kind.word(), few(known))]
    UnknownKey {
        /// What it is.
        kind: Kind,
        /// The given key.
        key: String,
        /// The known settings.
        known: Vec<String>,
    },
    /// The text is not a valid value of this setting.
    #[error("{key}: {reason}")]
    Value {
        /// The setting.
        key: String,
        /// The fault, with a valid example.
        reason: String,
    },
    /// It can't be changed in this run: the reason, and the fix.
    #[error("{0}")]
    Refused(String),
    /// The instance can't make changes now.
    #[error("nothing can be changed: {0}")]
    Unavailable(String),
    /// It was changed, but the new state could not be saved.
    #[error("it was changed, but a restart will not restore that: {0}")]
    NotSaved(String),
}

/// Most settings that an error lists.
const MOST_LISTED: usize = 24;

/// An object's settings, if there are few.
fn few(known: &[String]) -> String {
    match known.len() {
        0 => "none of its settings can be changed while it runs".into(),
        1..=MOST_LISTED => format!("it has {}", known.join(", ")),
        _ => "longwire blocks lists what it can have".into(),
    }
}
