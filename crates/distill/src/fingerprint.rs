//! What stays the same of a packet on its path, as a number.

use longwire_wire::protocol::{ICMP, ICMPV6, TCP, UDP};
use longwire_wire::{Ethernet, ethertype};
use std::hash::{DefaultHasher, Hasher};

/// A hash of the invariant bytes of an IP packet: 128 bits, so that two different packets share one with a
/// probability of 10⁻²⁴ in a capture of ten million.
///
/// Of IPv4 these are all but the type of service (routers mark and remark it), the time to live and the
/// header checksum; of IPv6 all but traffic class, flow label and hop limit. Checksums of TCP, UDP and ICMP
/// are left out, because offloads complete them after the sender's capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(u128);

/// Hashes parts of a packet, two times with different beginnings.
struct Both([DefaultHasher; 2]);

impl Both {
    fn new() -> Self {
        let seeded = |seed: u8| {
            let mut hasher = DefaultHasher::new();
            hasher.write_u8(seed);
            hasher
        };
        Self([seeded(1), seeded(2)])
    }

    fn add(&mut self, bytes: &[u8]) {
        self.0.iter_mut().for_each(|hasher| hasher.write(bytes));
    }

    fn end(&self) -> Fingerprint {
        let [high, low] = self.0.each_ref().map(Hasher::finish);
        Fingerprint(u128::from(high) << 64 | u128::from(low))
    }
}

impl Fingerprint {
    /// The fingerprint of a frame, of which at most `most` bytes count; none if it is not a complete IPv4 or
    /// IPv6 header at least.
    pub fn of(frame: &[u8], most: usize) -> Option<Self> {
        let frame = &frame[..frame.len().min(most)];
        let ethernet = Ethernet::check(frame).ok()?;
        match ethernet.ethertype() {
            ethertype::IPV4 => ipv4(ethernet.payload()),
            ethertype::IPV6 => ipv6(ethernet.payload()),
            _ => None,
        }
    }
}

fn ipv4(packet: &[u8]) -> Option<Fingerprint> {
    let header = packet.first_chunk::<20>()?;
    let header_len = usize::from(header[0] & 0xf) * 4;
    if header[0] >> 4 != 4 || header_len < 20 {
        return None;
    }
    // Ethernet pads short packets.
    let total = usize::from(u16::from_be_bytes([header[2], header[3]])).max(header_len);
    let packet = &packet[..packet.len().min(total)];
    let mut hash = Both::new();
    hash.add(&header[..1]);
    hash.add(&header[2..8]);
    hash.add(&header[9..10]);
    hash.add(&header[12..20]);
    let (options, payload) = packet[20..].split_at((header_len - 20).min(packet.len() - 20));
    hash.add(options);
    let is_first = u16::from_be_bytes([header[6], header[7]]) & 0x1fff == 0;
    transport(&mut hash, if is_first { header[9] } else { 0 }, payload);
    Some(hash.end())
}

fn ipv6(packet: &[u8]) -> Option<Fingerprint> {
    let header = packet.first_chunk::<40>()?;
    if header[0] >> 4 != 6 {
        return None;
    }
    let total = 40 + usize::from(u16::from_be_bytes([header[4], header[5]]));
    let packet = &packet[..packet.len().min(total)];
    let mut hash = Both::new();
    hash.add(&[6]);
    hash.add(&header[4..7]);
    hash.add(&header[8..40]);
    transport(&mut hash, header[6], &packet[40..]);
    Some(hash.end())
}

/// Adds a transport header and what follows, without its checksum.
fn transport(hash: &mut Both, protocol: u8, payload: &[u8]) {
    let checksum = match protocol {
        TCP => 16,
        UDP => 6,
        ICMP | ICMPV6 => 2,
        _ => payload.len(),
    };
    let (before, from) = payload.split_at(checksum.min(payload.len()));
    hash.add(before);
    hash.add(from.get(2..).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(protocol: u8) -> Vec<u8> {
        let mut frame = vec![0; 64];
        frame[12..15].copy_from_slice(&[8, 0, 0x45]);
        frame[16..18].copy_from_slice(&50u16.to_be_bytes());
        frame[18..20].copy_from_slice(&[1, 2]);
        frame[22..24].copy_from_slice(&[64, protocol]);
        frame[34..].fill(7);
        frame
    }

    fn of(frame: &[u8]) -> Option<Fingerprint> {
        Fingerprint::of(frame, usize::MAX)
    }

    #[test]
    fn what_routers_change_does_not_count() {
        let original = frame(UDP);
        // Type of service, time to live, header checksum, UDP checksum; hardware addresses.
        for at in [0, 6, 15, 22, 24, 25, 40, 41] {
            let mut changed = original.clone();
            changed[at] ^= 0x5a;
            assert_eq!(of(&changed), of(&original), "{at}");
        }
        // Length, identification, protocol, addresses, ports, payload.
        for at in [17, 18, 23, 26, 33, 34, 37, 39, 42, 63] {
            let mut changed = original.clone();
            changed[at] ^= 0x10;
            assert_ne!(of(&changed), of(&original), "{at}");
        }
    }

    #[test]
    fn padding_does_not_count() {
        let original = frame(UDP);
        let padded = [&original[..], &[1, 2, 3]].concat();
        assert_eq!(of(&padded), of(&original));
        assert_ne!(Fingerprint::of(&original, 60), of(&original));
    }

    /// What is a checksum in UDP and TCP is data in other protocols.
    #[test]
    fn checksums_are_where_the_protocol_has_them() {
        for (protocol, at) in [(TCP, 50), (UDP, 40), (ICMP, 36)] {
            for other in [TCP, UDP, ICMP, 99] {
                let (original, mut changed) = (frame(other), frame(other));
                changed[at] ^= 1;
                assert_eq!(of(&changed) == of(&original), other == protocol, "{protocol} {other}");
            }
        }
        // A later fragment has no transport header.
        let mut fragment = frame(UDP);
        fragment[21] = 1;
        let mut changed = fragment.clone();
        changed[40] ^= 1;
        assert_ne!(of(&changed), of(&fragment));
    }

    #[test]
    fn ipv6_and_others() {
        let mut six = vec![0; 80];
        six[12..15].copy_from_slice(&[0x86, 0xdd, 0x60]);
        six[19] = 26;
        six[20] = UDP;
        for (at, same) in
            [(15, true), (17, true), (21, true), (60, true), (20, false), (22, false), (70, false)]
        {
            let mut changed = six.clone();
            changed[at] ^= 3;
            assert_eq!(of(&changed) == of(&six), same, "{at}");
        }
        assert_eq!((of(&[]), of(&[0; 60]), of(&six[..50])), (None, None, None));
    }
}
