//! Messages on the wire. Numbers are big-endian.
//!
//! Every message begins with `LT`, the version and the kind. A hello has the salts of both ends in the clear,
//! and ends with an authenticator. All others have the number of their session and a sequence number in the
//! clear, an encrypted body, and a tag.

use longwire_nesp::{MacKey, TAG};

/// Version of the protocol.
pub const VERSION: u8 = 1;
/// First bytes of every message.
const MAGIC: [u8; 2] = *b"LT";
/// Bytes before the encrypted body.
pub(crate) const HEADER: usize = 16;
/// Bytes of the leaving time, at the beginning of a frame's body.
pub(crate) const STAMP: usize = 8;
/// Bytes that a tunnel adds to a frame, without UDP and IP.
pub const OVERHEAD: usize = HEADER + STAMP + TAG;
/// Bytes of a salt.
const SALT: usize = 16;
/// The longest hello of any version.
const LONGEST_HELLO: usize = 256;

/// A random number of one end for one session.
pub(crate) type Salt = [u8; SALT];
/// In a hello: the sender does not know its peer's salt.
const NO_SALT: Salt = [0; SALT];

/// Kinds of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// The salts of a session.
    Hello = 1,
    /// An Ethernet frame with its leaving time.
    Frame = 2,
    /// The time at which this message was sent.
    Probe = 3,
    /// The answer to a probe: see [`Echo`].
    Echo = 4,
}

impl Kind {
    fn of(number: u8) -> Option<Self> {
        [Self::Hello, Self::Frame, Self::Probe, Self::Echo].into_iter().find(|kind| *kind as u8 == number)
    }
}

/// The fixed part of a sealed message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub kind: Kind,
    pub session: u32,
    pub sequence: u64,
}

impl Header {
    /// Its bytes.
    #[inline]
    pub fn write(self) -> [u8; HEADER] {
        let [m0, m1] = MAGIC;
        let ([s0, s1, s2, s3], [n0, n1, n2, n3, n4, n5, n6, n7]) =
            (self.session.to_be_bytes(), self.sequence.to_be_bytes());
        [m0, m1, VERSION, self.kind as u8, s0, s1, s2, s3, n0, n1, n2, n3, n4, n5, n6, n7]
    }

    /// Parses the header of a sealed message of this version.
    #[inline]
    pub fn read(bytes: &[u8; HEADER]) -> Option<Self> {
        let [m0, m1, version, kind, s0, s1, s2, s3, sequence @ ..] = *bytes;
        let kind = Kind::of(kind).filter(|kind| *kind != Kind::Hello)?;
        let (session, sequence) = (u32::from_be_bytes([s0, s1, s2, s3]), u64::from_be_bytes(sequence));
        ([m0, m1] == MAGIC && version == VERSION).then_some(Self { kind, session, sequence })
    }
}

/// A short message, to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    bytes: [u8; Self::LONGEST],
    length: usize,
}

impl Message {
    const LONGEST: usize = 64;

    /// A message that consists of these bytes, at most 64.
    pub(crate) fn of(parts: &[&[u8]]) -> Self {
        let mut message = Self { bytes: [0; Self::LONGEST], length: 0 };
        for part in parts {
            let end = (message.length + part.len()).min(Self::LONGEST);
            let taken = end - message.length;
            message.bytes[message.length..end].copy_from_slice(&part[..taken]);
            message.length = end;
        }
        message
    }

    /// Its bytes.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.length]
    }
}

/// A hello: the sender's salt, and the receiver's as the sender knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hello {
    pub own: Salt,
    pub echo: Option<Salt>,
}

/// A message that is no hello that can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BadHello {
    Malformed,
    Forged,
    /// Authentic, but of another version.
    Version(u8),
}

impl Hello {
    const BEGINNING: usize = 8;
    const LENGTH: usize = Self::BEGINNING + 2 * SALT + TAG;

    /// Whether a message claims to be a hello, of any version.
    pub fn is_one(message: &[u8]) -> bool {
        message.starts_with(&MAGIC) && message.get(3) == Some(&(Kind::Hello as u8))
    }

    /// The message.
    pub fn write(&self, key: &MacKey) -> Message {
        let [m0, m1] = MAGIC;
        let beginning = [m0, m1, VERSION, Kind::Hello as u8, 0, 0, 0, 0];
        let echo = self.echo.unwrap_or(NO_SALT);
        let signed = Message::of(&[&beginning, &self.own, &echo]);
        Message::of(&[signed.as_slice(), &key.tag(signed.as_slice())])
    }

    /// Parses a message that claims to be one. In every version a hello ends with the authenticator of all
    /// bytes before: the version of a stranger is not believed.
    pub fn read(message: &[u8], key: &MacKey) -> Result<Self, BadHello> {
        let (signed, tag) = message.split_last_chunk::<TAG>().ok_or(BadHello::Malformed)?;
        if message.len() > LONGEST_HELLO {
            return Err(BadHello::Malformed);
        }
        if !key.verify(signed, tag) {
            return Err(BadHello::Forged);
        }
        let version = *signed.get(2).ok_or(BadHello::Malformed)?;
        if version != VERSION {
            return Err(BadHello::Version(version));
        }
        if message.len() != Self::LENGTH {
            return Err(BadHello::Malformed);
        }
        let salts = signed.get(Self::BEGINNING..).and_then(|salts| salts.split_first_chunk::<SALT>());
        let (own, echo) = salts.ok_or(BadHello::Malformed)?;
        let echo: Salt = echo.try_into().map_err(|_| BadHello::Malformed)?;
        if *own == NO_SALT {
            return Err(BadHello::Malformed);
        }
        Ok(Self { own: *own, echo: (echo != NO_SALT).then_some(echo) })
    }
}

/// A probe of the peer's that was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// When the peer sent it, on its clock.
    pub(crate) sent: u64,
    /// When it came, on the own clock.
    pub(crate) came: u64,
}

/// The answer to a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Echo {
    /// When the probe was sent, on its sender's clock.
    pub sent: u64,
    /// When it came, on the answering clock.
    pub came: u64,
    /// When it was answered, on the same.
    pub answered: u64,
}

impl Echo {
    pub const LENGTH: usize = 24;

    pub fn write(self) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        let times = [self.sent, self.came, self.answered];
        for (place, time) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(times) {
            *place = time.to_be_bytes();
        }
        bytes
    }

    pub fn read(body: &[u8]) -> Option<Self> {
        let [sent, came, answered] = *body.as_chunks::<8>().0 else { return None };
        let time = u64::from_be_bytes;
        let echo = Self { sent: time(sent), came: time(came), answered: time(answered) };
        (body.len() == Self::LENGTH).then_some(echo)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_nesp::Key;

    fn key() -> MacKey {
        Key::read(&"5a".repeat(16)).unwrap().derive(&[b"a test"])
    }

    #[test]
    fn hellos_are_read_as_they_were_written() {
        for hello in [Hello { own: [1; 16], echo: None }, Hello { own: [2; 16], echo: Some([3; 16]) }] {
            let message = hello.write(&key());
            assert!(Hello::is_one(message.as_slice()));
            assert_eq!(Hello::read(message.as_slice(), &key()), Ok(hello));
            for at in 0..message.as_slice().len() {
                let mut other = message;
                other.as_mut_slice()[at] ^= 1;
                assert_eq!(Hello::read(other.as_slice(), &key()), Err(BadHello::Forged), "byte {at}");
                let cut = Hello::read(&message.as_slice()[..at], &key());
                assert!(matches!(cut, Err(BadHello::Malformed | BadHello::Forged)), "{at} bytes");
            }
        }
        let nameless = Hello { own: NO_SALT, echo: None }.write(&key());
        assert_eq!(Hello::read(nameless.as_slice(), &key()), Err(BadHello::Malformed));
    }

    /// A later version may have longer hellos.
    #[test]
    fn another_version_is_believed_if_it_is_authentic() {
        let signed = [&b"LT\x07\x01"[..], &[9; 60]].concat();
        let message = [&signed[..], &key().tag(&signed)].concat();
        assert!(Hello::is_one(&message));
        assert_eq!(Hello::read(&message, &key()), Err(BadHello::Version(7)));
        let forged = [&signed[..], &[0; TAG]].concat();
        assert_eq!(Hello::read(&forged, &key()), Err(BadHello::Forged));
    }

    #[test]
    fn headers_and_echoes_are_read_as_they_were_written() {
        let header = Header { kind: Kind::Frame, session: 0x0102_0304, sequence: 5 << 40 };
        assert_eq!(Header::read(&header.write()), Some(header));
        for (at, value) in [(0, b'M'), (1, b'N'), (2, VERSION + 1), (3, 1), (3, 9)] {
            let mut bytes = header.write();
            bytes[at] = value;
            assert_eq!(Header::read(&bytes), None, "byte {at}");
        }
        let echo = Echo { sent: 1, came: u64::MAX, answered: 3 };
        assert_eq!(Echo::read(&echo.write()), Some(echo));
        assert_eq!(Echo::read(&echo.write()[..16]), None);
        assert_eq!(Echo::read(&[0; 25]), None);
    }
}
