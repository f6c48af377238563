//! The reply of a router to the sender of a packet that is too big for the next link.

use crate::checksum::{Sum, pseudo_v6};
use crate::icmp::{icmp_kind, icmpv6_kind, is_icmp_error, is_icmpv6_error, unreachable};
use crate::{Ethernet, Ipv4, Ipv4Header, Ipv6, Ipv6Header, ethertype, l3_offset, protocol};
use longwire_packet::{Handle, Pool};

/// Maximum size of an ICMPv4 error's packet (RFC 1812, section 4.3.2.3).
const LONGEST_V4: usize = 576;
/// Maximum size of an ICMPv6 error's packet (RFC 4443, section 3.2).
const LONGEST_V6: usize = 1280;
const V4_HEADER: usize = 20;
const V6_HEADER: usize = 40;
const ICMP_HEADER: usize = 8;
const HOP_LIMIT: u8 = 64;
/// Don't fragment, in the flags of an IPv4 header.
const DONT_FRAGMENT: u8 = 0x40;

/// Makes a packet that informs the sender of `handle` about a next link with this `mtu`: "fragmentation
/// needed" (RFC 792, RFC 1191) for IPv4 packets with DF set, "packet too big" (RFC 4443, section 3.2) for
/// IPv6. None for packets that must not be answered (RFC 1812, section 4.3.2.7; RFC 4443, section 2.4), or if
/// the pool is full.
///
/// A link has no address: the reply comes from the packet's destination, and packets to a group get none.
pub fn too_big(pool: &mut Pool, handle: Handle, mtu: u32) -> Option<Handle> {
    let frame = pool.data(handle);
    let network = l3_offset(frame);
    let ethernet = Ethernet::check(frame).ok()?;
    if (frame[0] | ethernet.source()[0]) & 1 != 0 {
        return None;
    }
    let reply = match ethernet.ethertype() {
        ethertype::IPV4 => fragmentation_needed(frame, network, mtu)?,
        ethertype::IPV6 => packet_too_big(frame, network, mtu)?,
        _ => return None,
    };
    pool.insert(&reply)
}

/// A reply to a frame: an ICMP message of this type, code and rest of its header, about the bytes that it
/// quotes. The Ethernet header is the frame's own with its addresses exchanged, tags included.
fn reply(
    (frame, network): (&[u8], usize),
    header: &[u8],
    (kind, code, rest): (u8, u8, u32),
    (pseudo, quoted): (Sum, &[u8]),
) -> Vec<u8> {
    let [a, b, c, d] = rest.to_be_bytes();
    let mut message = [kind, code, 0, 0, a, b, c, d];
    let sum = pseudo.bytes(&message).bytes(quoted).checksum();
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    [&frame[6..12], &frame[..6], &frame[12..network], header, &message[..], quoted].concat()
}

fn fragmentation_needed(frame: &[u8], network: usize, mtu: u32) -> Option<Vec<u8>> {
    let packet = &frame[network..];
    let ip = Ipv4::check(packet).ok()?;
    // Sources: this network, loopback, multicast and reserved addresses.
    let goes_nowhere = ip.destination() >= 0xe000_0000 || matches!(ip.source() >> 24, 0 | 127 | 224..);
    if packet[6] & DONT_FRAGMENT == 0 || ip.is_later_fragment() || goes_nowhere || is_icmp_error(&ip) {
        return None;
    }
    let quoted = &packet[..packet.len().min(LONGEST_V4 - V4_HEADER - ICMP_HEADER)];
    let header = Ipv4Header {
        source: ip.destination(),
        destination: ip.source(),
        protocol: protocol::ICMP,
        ttl: HOP_LIMIT,
        traffic_class: 0,
        id: 0,
        payload_len: (ICMP_HEADER + quoted.len()) as u16,
    };
    let message = (icmp_kind::UNREACHABLE, unreachable::TOO_BIG, mtu.min(u16::MAX.into()));
    Some(reply((frame, network), &header.bytes(), message, (Sum::ZERO, quoted)))
}

fn packet_too_big(frame: &[u8], network: usize, mtu: u32) -> Option<Vec<u8>> {
    let packet = &frame[network..];
    let ip = Ipv6::check(packet).ok()?;
    let is_group = |address: u128| address >> 120 == 0xff;
    let goes_nowhere = is_group(ip.destination()) || is_group(ip.source()) || ip.source() <= 1;
    if goes_nowhere || is_icmpv6_error(&ip, packet) {
        return None;
    }
    let quoted = &packet[..packet.len().min(LONGEST_V6 - V6_HEADER - ICMP_HEADER)];
    let length = (ICMP_HEADER + quoted.len()) as u16;
    let header = Ipv6Header {
        source: ip.destination(),
        destination: ip.source(),
        next_header: protocol::ICMPV6,
        hop_limit: HOP_LIMIT,
        payload_len: length,
    };
    let pseudo = pseudo_v6(ip.destination(), ip.source(), protocol::ICMPV6, length.into());
    let message = (icmpv6_kind::TOO_BIG, 0, mtu);
    Some(reply((frame, network), &header.bytes(), message, (pseudo, quoted)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Icmp;

    fn answer(frame: &[u8], mtu: u32) -> Option<Vec<u8>> {
        let mut pool = Pool::new(1 << 20).unwrap();
        let handle = pool.insert(frame).unwrap();
        too_big(&mut pool, handle, mtu).map(|reply| pool.data(reply).to_vec())
    }

    fn v4(flags: u8, protocol: u8, kind: u8) -> Vec<u8> {
        let mut frame = vec![0; 14 + 1400];
        frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0]);
        let header = [0x45, 0, 5, 120, 0, 7, flags, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, kind];
        frame[14..35].copy_from_slice(&header);
        frame
    }

    /// A packet of 1440 bytes from ::9 to ::2.
    fn v6() -> Vec<u8> {
        let mut frame = vec![0; 14 + 40 + 1400];
        frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x86, 0xdd]);
        frame[14..22].copy_from_slice(&[0x60, 0, 0, 0, 5, 120, protocol::UDP, 64]);
        (frame[37], frame[53]) = (9, 2);
        frame
    }

    #[test]
    fn answers_packets_that_must_not_be_fragmented() {
        let reply = answer(&v4(DONT_FRAGMENT, protocol::TCP, 0), 1300).unwrap();
        assert_eq!(reply.len(), 14 + 576);
        assert_eq!(&reply[..14], &[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0]);
        let ip = Ipv4::check(&reply[14..]).unwrap();
        assert_eq!((ip.source(), ip.destination()), (0x0a00_0002, 0x0a00_0001));
        assert_eq!(Sum::default().bytes(&reply[14..34]).checksum(), 0);
        let icmp = Icmp::check(ip.payload()).unwrap();
        assert_eq!((icmp.kind(), ip.payload()[1], icmp.rest_of_header()), (3, 4, 1300));
        assert_eq!(Sum::default().bytes(ip.payload()).checksum(), 0);
        assert_eq!(&ip.payload()[8..], &v4(DONT_FRAGMENT, protocol::TCP, 0)[14..14 + 548]);
    }

    #[test]
    fn answers_every_packet_of_ipv6() {
        let mut frame = v6();
        let reply = answer(&frame, 1280).unwrap();
        assert_eq!(reply.len(), 14 + 1280);
        let ip = Ipv6::check(&reply[14..]).unwrap();
        assert_eq!((ip.source(), ip.destination(), ip.next_header()), (2, 9, protocol::ICMPV6));
        assert_eq!(ip.payload()[..2], [2, 0]);
        assert_eq!(ip.payload()[4..8], 1280u32.to_be_bytes());
        let whole = pseudo_v6(2, 9, protocol::ICMPV6, ip.payload().len() as u32).bytes(ip.payload());
        assert_eq!(whole.checksum(), 0);
        // An error is not answered.
        frame[20] = protocol::ICMPV6;
        frame[54] = 1;
        assert!(answer(&frame, 1280).is_none());
    }

    #[test]
    fn some_packets_get_no_answer() {
        assert!(answer(&v4(0, protocol::TCP, 0), 1300).is_none(), "may be fragmented");
        assert!(answer(&v4(DONT_FRAGMENT, protocol::ICMP, 8), 1300).is_some(), "an echo request");
        assert!(answer(&v4(DONT_FRAGMENT, protocol::ICMP, 3), 1300).is_none(), "an error");
        let mut to_all = v4(DONT_FRAGMENT, protocol::UDP, 0);
        to_all[30] = 224;
        assert!(answer(&to_all, 1300).is_none());
        // A frame to a group, and sources that nobody has.
        for (at, byte) in [(0, 3), (26, 0), (26, 127), (26, 224), (26, 255)] {
            let mut frame = v4(DONT_FRAGMENT, protocol::UDP, 0);
            frame[at] = byte;
            assert!(answer(&frame, 1300).is_none(), "{at} {byte}");
        }
        for (at, byte) in [(0, 0x33), (22, 0xff), (38, 0xff), (37, 0), (37, 1)] {
            let mut frame = v6();
            frame[37] = 2;
            assert!(answer(&frame, 1280).is_some());
            frame[at] = byte;
            assert!(answer(&frame, 1280).is_none(), "{at} {byte}");
        }
        for len in 0..60 {
            let _ = answer(&v4(DONT_FRAGMENT, protocol::TCP, 0)[..len], 1300);
        }
    }
}
