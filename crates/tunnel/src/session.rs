//! A session: the keys, sequence numbers and replay window that two salts make.
//!
//! Each direction has a key of its own, and a sequence number is used once with it: no nonce repeats.

use crate::message::{HEADER, Header, Kind, Salt};
use longwire_nesp::{Freshness, Key, TAG, Window};
use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

/// Words of the replay window: 1984 numbers. The kernel spreads packets over queues, and may reorder them.
const WINDOW: usize = 32;

/// Why a message is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    Malformed,
    /// It belongs to no session of now.
    OtherSession,
    /// Its number was received before, or is too old to tell.
    Replayed,
    Forged,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Session {
    pub own: Salt,
    pub peer: Salt,
    number: u32,
    sealing: LessSafeKey,
    opening: LessSafeKey,
    /// The last number sent.
    sent: u64,
    window: Window<WINDOW>,
    received: u64,
    /// Received behind a message with a higher number.
    pub reordered: u64,
}

impl Session {
    pub fn new(key: &Key, own: Salt, peer: Salt) -> Self {
        let (first, second) = (own.min(peer), own.max(peer));
        let [n0, n1, n2, n3, ..] = key.secret(&[b"LWT1 session", &first, &second]);
        Self {
            own,
            peer,
            number: u32::from_be_bytes([n0, n1, n2, n3]),
            sealing: key_of(key, own, peer),
            opening: key_of(key, peer, own),
            sent: 0,
            window: Window::default(),
            received: 0,
            reordered: 0,
        }
    }

    /// Messages of the peer's that were not received, though later ones were.
    pub fn lost(&self) -> u64 {
        self.window.highest() - self.received
    }

    /// Seals a message whose body is in its place, between header and tag.
    #[inline]
    pub fn seal(&mut self, kind: Kind, message: &mut [u8]) -> Option<()> {
        let sequence = self.sent.checked_add(1)?;
        let (header, rest) = message.split_first_chunk_mut::<HEADER>()?;
        let (body, place) = rest.split_last_chunk_mut::<TAG>()?;
        *header = Header { kind, session: self.number, sequence }.write();
        let tag = self.sealing.seal_in_place_separate_tag(nonce(sequence), Aad::from(&*header), body).ok()?;
        place.copy_from_slice(tag.as_ref());
        self.sent = sequence;
        Some(())
    }

    /// Opens a message in place: its kind and its body.
    #[inline]
    pub fn open<'m>(&mut self, message: &'m mut [u8]) -> Result<(Kind, &'m [u8]), Refusal> {
        let (header, body) = message.split_first_chunk_mut::<HEADER>().ok_or(Refusal::Malformed)?;
        let Header { kind, session, sequence } = Header::read(header).ok_or(Refusal::Malformed)?;
        if session != self.number {
            return Err(Refusal::OtherSession);
        }
        if self.window.look(sequence) != Freshness::New {
            return Err(Refusal::Replayed);
        }
        let opened = self.opening.open_in_place(nonce(sequence), Aad::from(&*header), body);
        let body = opened.map_err(|_| Refusal::Forged)?;
        self.reordered += u64::from(sequence < self.window.highest());
        self.window.note(sequence);
        self.received += 1;
        Ok((kind, &*body))
    }
}

#[inline]
fn nonce(sequence: u64) -> Nonce {
    let [a, b, c, d, e, f, g, h] = sequence.to_be_bytes();
    Nonce::assume_unique_for_key([0, 0, 0, 0, a, b, c, d, e, f, g, h])
}

/// The key of what the first end sends to the second.
fn key_of(key: &Key, from: Salt, to: Salt) -> LessSafeKey {
    let secret = key.secret(&[b"LWT1 packets", &from, &to]);
    let unbound = UnboundKey::new(&AES_128_GCM, &secret[..AES_128_GCM.key_len()]);
    LessSafeKey::new(unbound.unwrap_or_else(|_| unreachable!("the key has the algorithm's length")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (Session, Session) {
        let key = Key::read(&"5a".repeat(32)).unwrap();
        (Session::new(&key, [1; 16], [2; 16]), Session::new(&key, [2; 16], [1; 16]))
    }

    fn sealed(session: &mut Session, body: &[u8]) -> Vec<u8> {
        let mut message = [&[0; HEADER][..], body, &[0; TAG]].concat();
        session.seal(Kind::Frame, &mut message).unwrap();
        message
    }

    #[test]
    fn what_one_end_seals_the_other_opens_once() {
        let (mut here, mut there) = pair();
        let message = sealed(&mut here, b"a frame");
        assert!(!message.windows(7).any(|bytes| bytes == b"a frame"), "it is encrypted");
        assert_eq!(there.open(&mut message.clone()), Ok((Kind::Frame, &b"a frame"[..])));
        assert_eq!(there.open(&mut message.clone()), Err(Refusal::Replayed));
        assert_eq!(here.open(&mut message.clone()), Err(Refusal::Forged), "each direction has its own key");
        assert_eq!(there.open(&mut []), Err(Refusal::Malformed));
    }

    #[test]
    fn a_changed_byte_is_found() {
        let (mut here, mut there) = pair();
        let message = sealed(&mut here, b"a frame");
        for at in 0..message.len() {
            let mut changed = message.clone();
            changed[at] ^= 0x80;
            assert!(there.open(&mut changed).is_err(), "byte {at}");
            assert!(there.open(&mut message[..at].to_vec()).is_err(), "{at} bytes");
        }
        assert!(there.open(&mut message.clone()).is_ok(), "and the true one is still taken");
    }

    #[test]
    fn loss_and_order_are_counted() {
        let (mut here, mut there) = pair();
        let messages: Vec<_> = (0..6u8).map(|n| sealed(&mut here, &[n])).collect();
        for (at, lost, reordered) in [(0, 0, 0), (3, 2, 0), (1, 1, 1), (5, 2, 1), (4, 1, 2), (2, 0, 3)] {
            assert_eq!(there.open(&mut messages[at].clone()), Ok((Kind::Frame, &[at as u8][..])));
            assert_eq!((there.lost(), there.reordered), (lost, reordered), "after {at}");
        }
    }

    #[test]
    fn other_salts_make_another_session() {
        let key = Key::read(&"5a".repeat(32)).unwrap();
        let (mut here, _) = pair();
        let message = sealed(&mut here, b"a frame");
        let mut other = Session::new(&key, [3; 16], [1; 16]);
        assert_eq!(other.open(&mut message.clone()), Err(Refusal::OtherSession));
    }
}
