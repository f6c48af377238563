//! The shared key, and the keys for authenticating messages, one for each direction and purpose.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::fmt;
use thiserror::Error;

/// The least number of bytes of a shared key: 128 bits.
pub const SHORTEST_KEY: usize = 16;
/// The most.
const LONGEST_KEY: usize = 64;

/// Bytes of an authenticator.
pub const TAG: usize = 16;

/// Secret shared by operator and emulator. It is never printed.
#[derive(Clone)]
pub struct Key(Vec<u8>);

/// Text that is no key.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum KeyError {
    /// It contains a character other than hexadecimal digits.
    #[error(
        "a key is hexadecimal digits on one line; make one with: longwire nesp key FILE, or longwire tunnel \
         key FILE"
    )]
    NotHexadecimal,
    /// It is too short or too long.
    #[error(
        "a key has {SHORTEST_KEY} to {LONGEST_KEY} bytes, this one {0}; make one with: longwire nesp key \
         FILE, or longwire tunnel key FILE"
    )]
    Length(usize),
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

impl Key {
    /// Parses the contents of a key file: hexadecimal digits, surrounded by white space.
    ///
    /// # Errors
    /// Other contents, or a key that is too short or too long.
    pub fn read(text: &str) -> Result<Self, KeyError> {
        let digits = text.trim().as_bytes();
        let value = |digit: u8| (digit as char).to_digit(16).map(|value| value as u8);
        let pair = |pair: &[u8]| Some(value(pair[0])? << 4 | value(*pair.get(1)?)?);
        let bytes: Option<Vec<u8>> = digits.chunks(2).map(pair).collect();
        let bytes = bytes.ok_or(KeyError::NotHexadecimal)?;
        if !(SHORTEST_KEY..=LONGEST_KEY).contains(&bytes.len()) {
            return Err(KeyError::Length(bytes.len()));
        }
        Ok(Self(bytes))
    }

    /// The contents of a key file.
    pub fn text_of(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).chain(["\n".into()]).collect()
    }

    /// The key of hellos, which request a session.
    pub fn of_hello(&self) -> MacKey {
        self.derive(&[b"NESP1 hello"])
    }

    /// The key of welcomes, which grant a session.
    pub fn of_welcome(&self) -> MacKey {
        self.derive(&[b"NESP1 welcome"])
    }

    /// The key of a session's requests.
    pub fn of_requests(&self, instance: &[u8; 16], session: u64) -> MacKey {
        self.derive(&[b"NESP1 request", instance, &session.to_be_bytes()])
    }

    /// The key of a session's answers.
    pub fn of_answers(&self, instance: &[u8; 16], session: u64) -> MacKey {
        self.derive(&[b"NESP1 answer", instance, &session.to_be_bytes()])
    }

    /// A key that authenticates what the label says. Labels of different purposes begin with different words.
    pub fn derive(&self, label: &[&[u8]]) -> MacKey {
        MacKey(hmac(&self.secret(label)))
    }

    /// A secret for what the label says, from which this key can't be computed.
    pub fn secret(&self, label: &[&[u8]]) -> [u8; 32] {
        let mut mac = hmac(&self.0);
        label.iter().for_each(|part| mac.update(part));
        mac.finalize().into_bytes().into()
    }
}

/// A key that authenticates messages of one direction and purpose.
#[derive(Clone)]
pub struct MacKey(Hmac<Sha256>);

impl fmt::Debug for MacKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MacKey(…)")
    }
}

impl MacKey {
    /// The authenticator of `bytes`: the first 16 bytes of their HMAC-SHA-256 (RFC 2104, section 5).
    pub fn tag(&self, bytes: &[u8]) -> [u8; TAG] {
        let mut mac = self.0.clone();
        mac.update(bytes);
        let full = mac.finalize().into_bytes();
        let mut tag = [0; TAG];
        tag.copy_from_slice(&full[..TAG]);
        tag
    }

    /// Verifies `tag` for `bytes`, in constant time.
    pub fn verify(&self, bytes: &[u8], tag: &[u8; TAG]) -> bool {
        let mut mac = self.0.clone();
        mac.update(bytes);
        mac.verify_truncated_left(tag).is_ok()
    }
}

/// HMAC takes keys of any length.
fn hmac(key: &[u8]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).unwrap_or_else(|_| unreachable!("HMAC takes keys of any length"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_and_refused() {
        let text = "000102030405060708090a0b0c0d0e0F\n";
        assert_eq!(Key::read(text).unwrap().0, (0..16).collect::<Vec<u8>>());
        assert_eq!(Key::text_of(&Key::read(text).unwrap().0), text.to_lowercase());
        for (text, error) in [
            ("", KeyError::Length(0)),
            ("00", KeyError::Length(1)),
            (&"ab".repeat(65), KeyError::Length(65)),
            (&"g0".repeat(16), KeyError::NotHexadecimal),
            (&"0".repeat(33), KeyError::NotHexadecimal),
            (&"ä".repeat(16), KeyError::NotHexadecimal),
        ] {
            assert_eq!(Key::read(text).unwrap_err(), error, "{text:?}");
        }
        assert_eq!(format!("{:?}", Key::read(text)), "Ok(Key(…))");
    }

    #[test]
    fn each_direction_session_and_start_has_its_own() {
        let key = Key::read(&"5a".repeat(32)).unwrap();
        let tags = [
            key.of_hello(),
            key.of_welcome(),
            key.of_requests(&[0; 16], 1),
            key.of_answers(&[0; 16], 1),
            key.of_requests(&[0; 16], 2),
            key.of_requests(&[1; 16], 1),
        ]
        .map(|key| key.tag(b"x"));
        for (at, tag) in tags.iter().enumerate() {
            assert!(!tags[..at].contains(tag), "{at}");
        }
    }

    /// RFC 4231, test case 2, cut to 16 bytes: apart from the derivation the authenticator is HMAC-SHA-256.
    #[test]
    fn the_authenticator_is_hmac_sha_256() {
        let key = MacKey(hmac(b"Jefe"));
        let tag = key.tag(b"what do ya want for nothing?");
        assert_eq!(Key::text_of(&tag).trim(), "5bdcc146bf60754e6a042426089575c7");
        assert!(key.verify(b"what do ya want for nothing?", &tag));
        assert!(!key.verify(b"what do ya want for nothing!", &tag));
    }
}
