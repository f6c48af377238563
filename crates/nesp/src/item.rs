//! Items of bodies: objects, settings, errors. Each item consists of type, length and value.

use crate::message::Malformed;
use std::borrow::Cow;

/// Kinds of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A simplex link.
    Link,
    /// A traffic source.
    Source,
    /// A shared medium.
    Medium,
    /// A router: its routes.
    Router,
    /// A program of a router, by `ROUTER/NAME`.
    Forwarder,
    /// A flow that shares a router's processors, by `ROUTER/FLOW`: its weight.
    Flow,
    /// A port.
    Port,
}

impl Kind {
    /// All kinds, in the order in which lists have them.
    pub const ALL: [Self; 7] =
        [Self::Link, Self::Source, Self::Medium, Self::Router, Self::Forwarder, Self::Flow, Self::Port];

    /// Its number in an item, from 1.
    const fn number(self) -> u8 {
        self as u8 + 1
    }

    /// Its word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Link => "link",
            Self::Source => "source",
            Self::Medium => "medium",
            Self::Router => "router",
            Self::Forwarder => "forwarder",
            Self::Flow => "flow",
            Self::Port => "port",
        }
    }
}

/// Reason for a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorCode {
    /// There is no such object.
    UnknownObject,
    /// There is no such setting, or it can't have this value.
    BadValue,
    /// Requests may only read here.
    NotPermitted,
    /// The time is in the past, or too far in the future.
    BadTime,
    /// Resources are exhausted now.
    TooMany,
    /// Not possible now.
    Unavailable,
    /// The request is inconsistent.
    BadRequest,
}

impl ErrorCode {
    const ALL: [Self; 7] = [
        Self::UnknownObject,
        Self::BadValue,
        Self::NotPermitted,
        Self::BadTime,
        Self::TooMany,
        Self::Unavailable,
        Self::BadRequest,
    ];

    /// Its number in an item, from 1.
    const fn number(self) -> u8 {
        self as u8 + 1
    }

    /// The word for it in machine-readable output.
    pub const fn word(self) -> &'static str {
        match self {
            Self::UnknownObject => "unknown-object",
            Self::BadValue => "bad-value",
            Self::NotPermitted => "not-permitted",
            Self::BadTime => "bad-time",
            Self::TooMany => "too-many",
            Self::Unavailable => "unavailable",
            Self::BadRequest => "bad-request",
        }
    }
}

/// One item of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item<'b> {
    /// The object of the following settings.
    Object(Kind, Cow<'b, str>),
    /// A setting's name and value.
    Setting(Cow<'b, str>, Cow<'b, str>),
    /// A setting's name, in a request to read it.
    Name(Cow<'b, str>),
    /// Reason why nothing was done.
    Error(ErrorCode, Cow<'b, str>),
    /// Position at which a list continues; in a request, at which it begins.
    Next(u32),
}

/// The items of a body, checked.
pub type Items<'b> = Vec<Item<'b>>;

/// Numbers of the types.
const OBJECT: u8 = 1;
const SETTING: u8 = 2;
const NAME: u8 = 3;
const ERROR: u8 = 4;
const NEXT: u8 = 5;

impl Item<'_> {
    /// A copy that owns its texts.
    pub fn into_owned(self) -> Item<'static> {
        let own = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        match self {
            Self::Object(kind, name) => Item::Object(kind, own(name)),
            Self::Setting(name, value) => Item::Setting(own(name), own(value)),
            Self::Name(name) => Item::Name(own(name)),
            Self::Error(code, text) => Item::Error(code, own(text)),
            Self::Next(from) => Item::Next(from),
        }
    }

    /// Appends it to a body. Texts longer than 1000 bytes, and names longer than 255, are truncated.
    pub fn write(&self, body: &mut Vec<u8>) {
        let start = body.len();
        let mut begin = |number: u8| body.extend_from_slice(&[number, 0, 0]);
        match self {
            Self::Object(kind, name) => {
                begin(OBJECT);
                body.push(kind.number());
                body.extend_from_slice(cut(name, MOST_NAME).as_bytes());
            }
            Self::Setting(name, value) => {
                begin(SETTING);
                let name = cut(name, MOST_NAME);
                body.push(name.len() as u8);
                body.extend_from_slice(name.as_bytes());
                body.extend_from_slice(cut(value, MOST_TEXT).as_bytes());
            }
            Self::Name(name) => {
                begin(NAME);
                body.extend_from_slice(cut(name, MOST_NAME).as_bytes());
            }
            Self::Error(code, text) => {
                begin(ERROR);
                body.push(code.number());
                body.extend_from_slice(cut(text, MOST_TEXT).as_bytes());
            }
            Self::Next(from) => {
                begin(NEXT);
                body.extend_from_slice(&from.to_be_bytes());
            }
        }
        let length = (body.len() - start - 3) as u16;
        body[start + 1..start + 3].copy_from_slice(&length.to_be_bytes());
    }

    /// Its size in bytes.
    pub fn size(&self) -> usize {
        let mut body = Vec::new();
        self.write(&mut body);
        body.len()
    }
}

/// The longest name, in bytes.
pub const MOST_NAME: usize = 255;
/// The longest value, and the longest text of an error, in bytes.
pub const MOST_TEXT: usize = 1000;

/// The prefix of a text with at most `most` bytes.
fn cut(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

/// Parses a body's items.
///
/// # Errors
/// If one is incomplete, of an unknown type, or its text is invalid UTF-8 or has control characters.
pub(crate) fn read_all(mut bytes: &[u8]) -> Result<Items<'_>, Malformed> {
    let mut items = Vec::new();
    while let Some((&[number, high, low], rest)) = bytes.split_first_chunk::<3>() {
        let length = usize::from(u16::from_be_bytes([high, low]));
        let (value, rest) = rest.split_at_checked(length).ok_or(Malformed::Body("an item is cut short"))?;
        items.push(read_one(number, value)?);
        bytes = rest;
    }
    if bytes.is_empty() { Ok(items) } else { Err(Malformed::Body("an item is cut short")) }
}

fn read_one(number: u8, value: &[u8]) -> Result<Item<'_>, Malformed> {
    let first = || value.split_first().ok_or(Malformed::Body("an item is empty"));
    Ok(match number {
        OBJECT => {
            let (kind, name) = first()?;
            let kind = Kind::ALL.into_iter().find(|known| known.number() == *kind);
            Item::Object(kind.ok_or(Malformed::Body("there is no such kind of object"))?, read_name(name)?)
        }
        SETTING => {
            let (length, rest) = first()?;
            let (name, value) = rest
                .split_at_checked(usize::from(*length))
                .ok_or(Malformed::Body("a setting is cut short"))?;
            Item::Setting(read_name(name)?, read_text(value)?)
        }
        NAME => Item::Name(read_name(value)?),
        ERROR => {
            let (code, text) = first()?;
            let code = ErrorCode::ALL.into_iter().find(|known| known.number() == *code);
            Item::Error(code.ok_or(Malformed::Body("there is no such error"))?, read_text(text)?)
        }
        NEXT => {
            let place = value.try_into().map_err(|_| Malformed::Body("a place has four bytes"))?;
            Item::Next(u32::from_be_bytes(place))
        }
        _ => return Err(Malformed::Body("there is no such type of item")),
    })
}

fn read_name(bytes: &[u8]) -> Result<Cow<'_, str>, Malformed> {
    if bytes.is_empty() || bytes.len() > MOST_NAME {
        return Err(Malformed::Body("a name has 1 to 255 bytes"));
    }
    read_text(bytes)
}

/// Parses printable text, which may come from anyone with the key.
fn read_text(bytes: &[u8]) -> Result<Cow<'_, str>, Malformed> {
    let text = std::str::from_utf8(bytes).map_err(|_| Malformed::Body("a text is not UTF-8"))?;
    if bytes.len() > MOST_TEXT {
        return Err(Malformed::Body("a text has at most 1000 bytes"));
    }
    if text.chars().any(char::is_control) {
        return Err(Malformed::Body("a text has a control character"));
    }
    Ok(Cow::Borrowed(text))
}
