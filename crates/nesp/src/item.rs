//! Items of bodies: objects, settings, errors. Each item consists of type, length and value.

use crate::message::Malformed;
use std::borrow::Cow;

/// Defines an enum whose variants have numbers in items, from 1 in their order, and words.
macro_rules! numbered {
    ($(#[$about:meta])+ $name:ident { $($(#[$help:meta])+ $variant:ident $word:literal;)+ }) => {
        $(#[$about])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name { $($(#[$help])+ $variant),+ }

        impl $name {
            /// All of them, in order.
            pub const ALL: [Self; [$(Self::$variant),+].len()] = [$(Self::$variant),+];

            fn from_number(number: u8) -> Option<Self> {
                Self::ALL.get(usize::from(number).checked_sub(1)?).copied()
            }

            /// Its number in an item.
            const fn number(self) -> u8 {
                self as u8 + 1
            }

            /// The word for it in machine-readable output.
            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }
    };
}

numbered! {
    /// Kinds of objects, in the order in which lists have them.
    Kind {
        /// A simplex link.
        Link "link";
        /// A traffic source.
        Source "source";
        /// A shared medium.
        Medium "medium";
        /// A router: its routes.
        Router "router";
        /// A program of a router, by `ROUTER/NAME`.
        Forwarder "forwarder";
        /// A flow that shares a router's processors, by `ROUTER/FLOW`: its weight.
        Flow "flow";
        /// A port.
        Port "port";
    }
}

numbered! {
    /// Reason for a refusal.
    ErrorCode {
        /// There is no such object.
        UnknownObject "unknown-object";
        /// There is no such setting, or it can't have this value.
        BadValue "bad-value";
        /// Requests may only read here.
        NotPermitted "not-permitted";
        /// The time is in the past, or too far in the future.
        BadTime "bad-time";
        /// Resources are exhausted now.
        TooMany "too-many";
        /// Not possible now.
        Unavailable "unavailable";
        /// The request is inconsistent.
        BadRequest "bad-request";
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
        let (number, head, text) = match self {
            Self::Object(kind, name) => (OBJECT, vec![kind.number()], cut(name, MOST_NAME)),
            Self::Setting(name, value) => {
                let name = cut(name, MOST_NAME).as_bytes();
                (SETTING, [&[name.len() as u8], name].concat(), cut(value, MOST_TEXT))
            }
            Self::Name(name) => (NAME, Vec::new(), cut(name, MOST_NAME)),
            Self::Error(code, text) => (ERROR, vec![code.number()], cut(text, MOST_TEXT)),
            Self::Next(from) => (NEXT, from.to_be_bytes().to_vec(), ""),
        };
        let length = (head.len() + text.len()) as u16;
        body.push(number);
        body.extend_from_slice(&length.to_be_bytes());
        body.extend_from_slice(&head);
        body.extend_from_slice(text.as_bytes());
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
            let kind = Kind::from_number(*kind);
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
            let code = ErrorCode::from_number(*code);
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
