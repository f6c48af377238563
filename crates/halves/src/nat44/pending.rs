//! Packets that wait above the router: for their own bytes, or for their first fragment.

use super::packet::{FragmentKey, fragment_key};
use std::collections::HashMap;

/// A packet that has come up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PendingPacket {
    pub token: u64,
    /// Arrival time, in nanoseconds.
    pub time: u64,
    /// Its length.
    pub length: usize,
    /// Its first bytes, or all.
    pub frame: Vec<u8>,
}

/// Waiting packets. Every request for bytes is answered, with none if the packet is no longer up, so nothing
/// stays here for good.
#[derive(Debug, Default)]
pub(super) struct PendingPackets {
    /// Packets with requested bytes, by token.
    requested: HashMap<u64, RequestedPacket>,
    /// Later fragments, by packets whose first fragment's bytes were requested.
    parts: HashMap<FragmentKey, Vec<PendingPacket>>,
}

/// A packet with requested bytes: arrival time, length, and whose first fragment it is.
#[derive(Debug)]
struct RequestedPacket {
    time: u64,
    length: usize,
    first_of: Option<FragmentKey>,
}

impl PendingPackets {
    /// Keeps a later fragment whose first one has arrived but is not parsed yet; returns any other packet.
    pub fn hold(&mut self, up: PendingPacket) -> Option<PendingPacket> {
        if let Some((key, true)) = fragment_key(&up.frame)
            && let Some(parts) = self.parts.get_mut(&key)
        {
            parts.push(up);
            return None;
        }
        Some(up)
    }

    /// Records a request for bytes of a packet.
    pub fn ask(&mut self, up: &PendingPacket) {
        let first_of = first_of(&up.frame);
        if let Some(key) = first_of {
            self.parts.entry(key).or_default();
        }
        self.requested.insert(up.token, RequestedPacket { time: up.time, length: up.length, first_of });
    }

    /// Handles requested bytes. Returns the packet with them, or, if it is no longer up, the later fragments
    /// that waited for it.
    pub fn come(&mut self, token: u64, bytes: &[u8]) -> Vec<PendingPacket> {
        match self.requested.remove(&token) {
            None => Vec::new(),
            Some(RequestedPacket { first_of, .. }) if bytes.is_empty() => self.released(first_of),
            Some(RequestedPacket { time, length, .. }) => {
                vec![PendingPacket { token, time, length, frame: bytes.to_vec() }]
            }
        }
    }

    /// The later fragments that waited for a first one, in order.
    pub fn released(&mut self, first_of: Option<FragmentKey>) -> Vec<PendingPacket> {
        first_of.and_then(|key| self.parts.remove(&key)).unwrap_or_default()
    }
}

/// The packet of which a frame is the first of several fragments.
pub(super) fn first_of(frame: &[u8]) -> Option<FragmentKey> {
    fragment_key(frame).filter(|(_, is_later)| !is_later).map(|(key, _)| key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn up(token: u64, identification: u8, fragment: u16) -> PendingPacket {
        let mut frame = vec![0; 34];
        (frame[12], frame[14], frame[19], frame[23]) = (8, 0x45, identification, 17);
        frame[20..22].copy_from_slice(&fragment.to_be_bytes());
        PendingPacket { token, time: 5, length: 1514, frame }
    }

    #[test]
    fn later_parts_wait_for_their_first() {
        let mut pending = PendingPackets::default();
        let (first, later) = (up(1, 7, 0x2000), up(2, 7, 0x20b9));
        assert_eq!(pending.hold(later.clone()), Some(later.clone()), "nothing is known of its first");
        pending.ask(&first);
        // A repeated first, other packets' fragments, and whole packets don't wait.
        for other in [&first, &up(3, 8, 0x20b9), &up(4, 7, 0)] {
            assert_eq!(pending.hold(other.clone()).as_ref(), Some(other));
        }
        let last = up(5, 7, 0x0172);
        for part in [&later, &last] {
            assert_eq!(pending.hold(part.clone()), None);
        }
        assert_eq!(pending.come(1, &first.frame), std::slice::from_ref(&first));
        assert_eq!(pending.hold(last.clone()), None, "not before it is ruled on");
        assert_eq!(pending.released(first_of(&first.frame)), [later, last.clone(), last.clone()]);
        assert_eq!(pending.hold(last.clone()), Some(last));
        assert!(pending.come(1, &first.frame).is_empty(), "it has come once");
    }

    #[test]
    fn those_whose_first_is_gone_wait_no_more() {
        let mut pending = PendingPackets::default();
        let (first, later) = (up(1, 7, 0x2000), up(2, 7, 0x20b9));
        pending.ask(&first);
        assert_eq!(pending.hold(later.clone()), None);
        assert_eq!(pending.come(1, &[]), std::slice::from_ref(&later));
        assert_eq!(pending.hold(later.clone()), Some(later));
        assert!(pending.requested.is_empty() && pending.parts.is_empty());
    }
}
