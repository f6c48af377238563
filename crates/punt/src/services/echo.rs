//! `echo`: sends UDP packets back to their senders.

use crate::layout::Verdict;
use crate::service::{PuntedPacket, Service, ServiceOutput};

pub(super) struct Echo;

impl Service for Echo {
    fn handle(&mut self, packet: &mut PuntedPacket<'_>, _made: &mut ServiceOutput) -> Verdict {
        let port = packet.facts().in_port;
        if !is_udp(packet.bytes()) {
            return Verdict::Pass;
        }
        reflect(packet.bytes_mut());
        Verdict::Send { port, band: None }
    }
}

/// Offsets of addresses and ports in a frame with UDP over IPv4 without options: destination and source of
/// Ethernet, source and destination of IP (RFC 791, section 3.1), ports (RFC 768).
const PAIRS: [(usize, usize, usize); 3] = [(0, 6, 6), (26, 30, 4), (34, 36, 2)];
/// Bytes up to the end of the ports: less than what goes up to a process.
const LEAST: usize = 38;

/// Reverses a packet if it is UDP over IPv4 without options, and not a fragment: addresses and ports are
/// swapped, which keeps all checksums valid. Returns whether it was. The first 64 bytes suffice.
pub fn reflect(frame: &mut [u8]) -> bool {
    let can_be = is_udp(frame);
    if can_be {
        for (one, other, len) in PAIRS {
            (0..len).for_each(|at| frame.swap(one + at, other + at));
        }
    }
    can_be
}

fn is_udp(frame: &[u8]) -> bool {
    const IPV4: [u8; 2] = [8, 0];
    const PLAIN: u8 = 0x45;
    const UDP: u8 = 17;
    /// More fragments, and the offset.
    const FRAGMENT: [u8; 2] = [0x3f, 0xff];
    frame.len() >= LEAST
        && frame[12..14] == IPV4
        && frame[14] == PLAIN
        && frame[20] & FRAGMENT[0] == 0
        && frame[21] & FRAGMENT[1] == 0
        && frame[23] == UDP
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_udp_is_turned_round() {
        let mut frame: Vec<u8> = (0..64).collect();
        (frame[12], frame[13], frame[14], frame[20], frame[21], frame[23]) = (8, 0, 0x45, 0x40, 0, 17);
        let before = frame.clone();
        assert!(reflect(&mut frame));
        assert_eq!((&frame[..6], &frame[6..12]), (&before[6..12], &before[..6]));
        assert_eq!((&frame[26..30], &frame[30..34]), (&before[30..34], &before[26..30]));
        assert_eq!((&frame[34..36], &frame[36..38]), (&before[36..38], &before[34..36]));
        assert!(reflect(&mut frame) && frame == before, "and back");
        for (at, byte) in [(23, 6), (14, 0x46), (12, 0x86), (20, 0x20), (21, 1)] {
            let mut other = before.clone();
            other[at] = byte;
            let unchanged = other.clone();
            assert!(!reflect(&mut other) && other == unchanged, "byte {at}");
        }
        assert!(!reflect(&mut before.clone()[..37]));
    }
}
