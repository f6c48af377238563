//! Packets that wait above the router: for bytes of their own, or for the first part of theirs.

use super::packet::{PartKey, part};
use std::collections::HashMap;

/// A packet that has come up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Up {
    pub token: u64,
    /// When it came, in nanoseconds.
    pub time: u64,
    /// How long it is.
    pub length: usize,
    /// Its first bytes, or all.
    pub frame: Vec<u8>,
}

/// Those that wait. Every packet of which bytes were asked for is answered, with none if it is up no more: so
/// nothing stays here for good.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// Of which bytes were asked for, by token.
    asked: HashMap<u64, Asked>,
    /// Later parts, by packets of whose first part bytes were asked for.
    parts: HashMap<PartKey, Vec<Up>>,
}

/// A packet of which bytes were asked for: when it came, how long it is, and whose first part it is.
#[derive(Debug)]
struct Asked {
    time: u64,
    length: usize,
    first_of: Option<PartKey>,
}

impl Waiting {
    /// Keeps a later part whose first has come, but is not yet known; gives back what need not wait.
    pub fn hold(&mut self, up: Up) -> Option<Up> {
        if let Some((key, true)) = part(&up.frame)
            && let Some(parts) = self.parts.get_mut(&key)
        {
            parts.push(up);
            return None;
        }
        Some(up)
    }

    /// Bytes of a packet are asked for.
    pub fn ask(&mut self, up: &Up) {
        let first_of = first_of(&up.frame);
        if let Some(key) = first_of {
            self.parts.entry(key).or_default();
        }
        self.asked.insert(up.token, Asked { time: up.time, length: up.length, first_of });
    }

    /// Bytes that were asked for have come. Answers the packet with them; of one that is up no more, the
    /// later parts that waited for it.
    pub fn come(&mut self, token: u64, bytes: &[u8]) -> Vec<Up> {
        match self.asked.remove(&token) {
            None => Vec::new(),
            Some(Asked { first_of, .. }) if bytes.is_empty() => self.released(first_of),
            Some(Asked { time, length, .. }) => vec![Up { token, time, length, frame: bytes.to_vec() }],
        }
    }

    /// The later parts that waited for a first one, in their order.
    pub fn released(&mut self, first_of: Option<PartKey>) -> Vec<Up> {
        first_of.and_then(|key| self.parts.remove(&key)).unwrap_or_default()
    }
}

/// The packet of which a frame has the first part, of several.
pub(super) fn first_of(frame: &[u8]) -> Option<PartKey> {
    part(frame).filter(|(_, is_later)| !is_later).map(|(key, _)| key)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A part of a packet with this identification.
    fn up(token: u64, identification: u8, fragment: u16) -> Up {
        let mut frame = vec![0; 34];
        (frame[12], frame[14], frame[19], frame[23]) = (8, 0x45, identification, 17);
        frame[20..22].copy_from_slice(&fragment.to_be_bytes());
        Up { token, time: 5, length: 1514, frame }
    }

    #[test]
    fn later_parts_wait_for_their_first() {
        let mut waiting = Waiting::default();
        let (first, later) = (up(1, 7, 0x2000), up(2, 7, 0x20b9));
        assert_eq!(waiting.hold(later.clone()), Some(later.clone()), "nothing is known of its first");
        waiting.ask(&first);
        // Its first again, others' parts, and whole packets don't wait.
        for other in [&first, &up(3, 8, 0x20b9), &up(4, 7, 0)] {
            assert_eq!(waiting.hold(other.clone()).as_ref(), Some(other));
        }
        let last = up(5, 7, 0x0172);
        for part in [&later, &last] {
            assert_eq!(waiting.hold(part.clone()), None);
        }
        assert_eq!(waiting.come(1, &first.frame), std::slice::from_ref(&first));
        assert_eq!(waiting.hold(last.clone()), None, "not before it is ruled on");
        assert_eq!(waiting.released(first_of(&first.frame)), [later, last.clone(), last.clone()]);
        assert_eq!(waiting.hold(last.clone()), Some(last));
        assert!(waiting.come(1, &first.frame).is_empty(), "it has come once");
    }

    #[test]
    fn those_whose_first_is_gone_wait_no_more() {
        let mut waiting = Waiting::default();
        let (first, later) = (up(1, 7, 0x2000), up(2, 7, 0x20b9));
        waiting.ask(&first);
        assert_eq!(waiting.hold(later.clone()), None);
        assert_eq!(waiting.come(1, &[]), std::slice::from_ref(&later));
        assert_eq!(waiting.hold(later.clone()), Some(later));
        assert!(waiting.asked.is_empty() && waiting.parts.is_empty());
    }
}
