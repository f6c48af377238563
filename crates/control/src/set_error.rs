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
    /// There is no object of this name, of any kind.
    #[error("there is no link or other object \"{name}\"")]
    NoObject {
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
    /// The text of a scenario, or of sections to add, has mistakes.
    #[error("{mistakes}")]
    Scenario {
        /// The key of the request that has the text; the mistakes call the text so, too.
        key: String,
        /// The mistakes, each with its line, column and fix.
        mistakes: String,
    },
    /// A fault of settings of which one names a file of this machine: it may quote the file.
    #[error("{0}")]
    OfFile(Box<Self>),
    /// Several settings are wrong: at least two of the faults above.
    #[error("{}", in_lines(.0))]
    Several(Vec<Self>),
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

impl SetError {
    /// The error of one or several faults.
    ///
    /// # Panics
    /// Without a fault.
    pub fn of_all(mut faults: Vec<Self>) -> Self {
        let first = faults.remove(0);
        if faults.is_empty() { first } else { Self::Several([vec![first], faults].concat()) }
    }

    /// The error, if the text of a scenario in the request was that of `file`.
    pub fn in_file(&self, file: &str) -> String {
        match self {
            Self::Scenario { key, mistakes } => called(key, file, mistakes),
            other => other.to_string(),
        }
    }
}

/// Mistakes whose lines begin with `key`, with `file` in its place.
pub(crate) fn called(key: &str, file: &str, mistakes: &str) -> String {
    let place = |line: &str| {
        let rest = line.strip_prefix(key)?.strip_prefix(':')?;
        rest.starts_with(|c: char| c.is_ascii_digit()).then(|| format!("{file}:{rest}"))
    };
    let lines = mistakes.split('\n').map(|line| place(line).unwrap_or_else(|| line.into()));
    lines.collect::<Vec<_>>().join("\n")
}

/// Each fault on a line of its own.
fn in_lines(faults: &[SetError]) -> String {
    faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
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
