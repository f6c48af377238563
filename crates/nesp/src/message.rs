//! The outermost layer: header, body, and authenticator over both.

use crate::key::{MacKey, TAG};
use thiserror::Error;

/// The beginning of every message.
pub const MAGIC: [u8; 4] = *b"NESP";
/// The version of the protocol.
pub const VERSION: u8 = 1;
/// The longest message, header and authenticator included: it fits a UDP datagram in an Ethernet frame, with
/// room for tags.
pub const MOST: usize = 1400;
/// Bytes before the body.
const HEADER: usize = 20;

/// Kinds of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageKind {
    /// A client asks for a session.
    Hello,
    /// The server gives one.
    Welcome,
    /// A client reads or changes settings.
    Request,
    /// The outcome of a request.
    Answer,
}

impl MessageKind {
    const ALL: [Self; 4] = [Self::Hello, Self::Welcome, Self::Request, Self::Answer];

    /// Its number in the header, from 1.
    const fn number(self) -> u8 {
        self as u8 + 1
    }
}

/// Bytes that are not a message, or a message with an invalid body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Malformed {
    /// It ends within its header, or before its stated length.
    #[error("it is cut short")]
    Short,
    /// It does not begin with the magic number.
    #[error("it does not begin with \"NESP\"")]
    Magic,
    /// It is of another version.
    #[error("its version is {0}, not {VERSION}")]
    Version(u8),
    /// There is no such kind.
    #[error("there is no kind {0}")]
    Kind(u8),
    /// Its length is impossible.
    #[error("its length {0} is not possible")]
    Length(u16),
    /// A field of the body has an invalid value.
    #[error("{0}")]
    Body(&'static str),
}

/// A message whose header has been checked. Its authenticator has only been verified if it comes from
/// [`Message::open`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'b> {
    /// Its kind.
    pub kind: MessageKind,
    /// Its session; 0 in a hello.
    pub session: u64,
    /// Its number in the session; 0 in hello and welcome. An answer repeats that of its request.
    pub sequence: u32,
    /// The bytes between header and authenticator.
    pub body: &'b [u8],
    /// The authenticated bytes: header and body.
    signed: &'b [u8],
    /// The authenticator.
    pub tag: &'b [u8; TAG],
}

impl<'b> Message<'b> {
    /// Parses a header. Bytes after the message, such as the padding of a short Ethernet frame, are ignored.
    ///
    /// # Errors
    /// If the bytes are not a message of this version.
    pub fn read(bytes: &'b [u8]) -> Result<Self, Malformed> {
        let (magic, rest) = bytes.split_first_chunk::<4>().ok_or(Malformed::Short)?;
        if *magic != MAGIC {
            return Err(Malformed::Magic);
        }
        let (&[version, kind, high, low], _) = rest.split_first_chunk::<4>().ok_or(Malformed::Short)?;
        if version != VERSION {
            return Err(Malformed::Version(version));
        }
        let kinds = MessageKind::ALL.into_iter();
        let kind = kinds.clone().find(|known| known.number() == kind).ok_or(Malformed::Kind(kind))?;
        let length = u16::from_be_bytes([high, low]);
        if !(HEADER + TAG..=MOST).contains(&usize::from(length)) {
            return Err(Malformed::Length(length));
        }
        let whole = bytes.get(..usize::from(length)).ok_or(Malformed::Short)?;
        let (signed, tag) = whole.split_last_chunk::<TAG>().ok_or(Malformed::Short)?;
        let session = signed[8..].first_chunk().ok_or(Malformed::Short)?;
        let sequence = signed[16..].first_chunk().ok_or(Malformed::Short)?;
        Ok(Self {
            kind,
            session: u64::from_be_bytes(*session),
            sequence: u32::from_be_bytes(*sequence),
            body: &signed[HEADER..],
            signed,
            tag,
        })
    }

    /// Whether its authenticator is valid.
    pub fn is_signed_with(&self, key: &MacKey) -> bool {
        key.verify(self.signed, self.tag)
    }

    /// Opens a message of one kind with a valid authenticator; none for anything else.
    pub fn open(bytes: &'b [u8], kind: MessageKind, key: &MacKey) -> Option<Self> {
        Self::read(bytes).ok().filter(|message| message.kind == kind && message.is_signed_with(key))
    }
}

/// Makes a message. None if the body is too long.
pub fn seal(kind: MessageKind, session: u64, sequence: u32, body: &[u8], key: &MacKey) -> Option<Vec<u8>> {
    let length = HEADER + body.len() + TAG;
    let written = u16::try_from(length).ok().filter(|_| length <= MOST)?;
    let mut bytes = Vec::with_capacity(length);
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&[VERSION, kind.number()]);
    bytes.extend_from_slice(&written.to_be_bytes());
    bytes.extend_from_slice(&session.to_be_bytes());
    bytes.extend_from_slice(&sequence.to_be_bytes());
    bytes.extend_from_slice(body);
    let tag = key.tag(&bytes);
    bytes.extend_from_slice(&tag);
    Some(bytes)
}

/// The longest body.
pub(crate) const MOST_BODY: usize = MOST - HEADER - TAG;
