//! Addresses that choose a packet's link.

use crate::ethernet::ethertype;
use crate::ipv6::Ipv6;
use crate::transport::{is_neighbour_discovery, protocol};

const ETHERNET: usize = 14;

/// Source and destination of a packet, for choosing its link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Addresses {
    /// An IPv4 packet.
    V4 {
        /// Its source address.
        source: u32,
        /// Its destination address, multicast and broadcast included.
        destination: u32,
    },
    /// An IPv6 packet other than neighbour discovery.
    V6 {
        /// Its source address.
        source: u128,
        /// Its destination address, multicast included.
        destination: u128,
    },
    /// Everything else: ARP, neighbour discovery, VLAN-tagged frames, other protocols, malformed headers.
    Other,
}

/// Reads the addresses of a frame.
///
/// The total length is not checked, so that frames truncated by a capture are forwarded too.
#[inline]
pub fn addresses(frame: &[u8]) -> Addresses {
    let Some(&[_, _, _, _, _, _, _, _, _, _, _, _, high, low, first, ..]) = frame.first_chunk::<34>() else {
        return Addresses::Other;
    };
    match (u16::from_be_bytes([high, low]), first >> 4) {
        (ethertype::IPV4, 4) => v4(frame, first),
        (ethertype::IPV6, 6) => v6(frame),
        _ => Addresses::Other,
    }
}

#[inline]
fn v4(frame: &[u8], first: u8) -> Addresses {
    let header_len = usize::from(first & 15) * 4;
    if header_len < 20 || frame.len() < ETHERNET + header_len {
        return Addresses::Other;
    }
    match (word(frame, ETHERNET + 12), word(frame, ETHERNET + 16)) {
        (Some(source), Some(destination)) => {
            Addresses::V4 { source: u32::from_be_bytes(source), destination: u32::from_be_bytes(destination) }
        }
        _ => Addresses::Other,
    }
}

#[inline]
fn v6(frame: &[u8]) -> Addresses {
    let (Some(source), Some(destination)) = (word(frame, ETHERNET + 8), word(frame, ETHERNET + 24)) else {
        return Addresses::Other;
    };
    match frame[ETHERNET + 6] {
        protocol::TCP | protocol::UDP => {}
        _ if is_discovery(frame) => return Addresses::Other,
        _ => {}
    }
    Addresses::V6 { source: u128::from_be_bytes(source), destination: u128::from_be_bytes(destination) }
}

/// Whether the packet is neighbour discovery, also behind extension headers. An ICMPv6 message too short for
/// a type is treated as neighbour discovery, so that it belongs to no address pair.
fn is_discovery(frame: &[u8]) -> bool {
    let bytes = &frame[ETHERNET..];
    let Some(transport) = Ipv6::check(bytes).ok().and_then(|ip| ip.transport()) else { return false };
    transport.protocol == protocol::ICMPV6
        && bytes.get(transport.offset).is_none_or(|&kind| is_neighbour_discovery(kind))
}

#[inline]
fn word<const N: usize>(frame: &[u8], at: usize) -> Option<[u8; N]> {
    frame.get(at..at + N)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACS: [u8; 12] = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];

    fn frame(ethertype: u16, packet: &[u8]) -> Vec<u8> {
        [&MACS[..], &ethertype.to_be_bytes(), packet].concat()
    }

    fn ipv4(destination: [u8; 4]) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1];
        packet.extend(destination);
        packet.extend([0; 8]);
        packet
    }

    fn ipv6(next: u8, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x60, 0, 0, 0, 0, payload.len() as u8, next, 64];
        packet.extend((0xfd00u128 << 112 | 1).to_be_bytes());
        packet.extend((0xff02u128 << 112 | 2).to_be_bytes());
        packet.extend(payload);
        packet
    }

    const V6: Addresses = Addresses::V6 { source: 0xfd00 << 112 | 1, destination: 0xff02 << 112 | 2 };

    #[test]
    fn tells_what_has_addresses() {
        let v4 = |destination| Addresses::V4 { source: 0x0a00_0001, destination };
        let tagged = frame(0x8100, &[&[0, 5, 8, 0][..], &ipv4([10, 0, 0, 2])].concat());
        let hop_by_hop = |kind| ipv6(0, &[58, 0, 0, 0, 0, 0, 0, 0, kind, 0, 0, 0]);
        let table = [
            ("unicast", frame(0x0800, &ipv4([10, 0, 0, 2])), v4(0x0a00_0002)),
            ("broadcast", frame(0x0800, &ipv4([255; 4])), v4(u32::MAX)),
            ("multicast", frame(0x0800, &ipv4([224, 0, 0, 251])), v4(0xe000_00fb)),
            ("cut short", frame(0x0800, &ipv4([10, 0, 0, 2])[..20]), v4(0x0a00_0002)),
            ("too short", frame(0x0800, &ipv4([10, 0, 0, 2])[..19]), Addresses::Other),
            ("tagged", tagged, Addresses::Other),
            ("ARP", frame(0x0806, &[0; 46]), Addresses::Other),
            ("UDP over IPv6", frame(0x86dd, &ipv6(17, &[0; 8])), V6),
            ("no payload", frame(0x86dd, &ipv6(17, &[])), V6),
            ("echo", frame(0x86dd, &ipv6(58, &[128, 0, 0, 0])), V6),
            ("solicitation", frame(0x86dd, &ipv6(58, &[135, 0, 0, 0])), Addresses::Other),
            ("redirect", frame(0x86dd, &ipv6(58, &[137, 0, 0, 0])), Addresses::Other),
            ("renumbering", frame(0x86dd, &ipv6(58, &[138, 0, 0, 0])), V6),
            ("no type", frame(0x86dd, &ipv6(58, &[])), Addresses::Other),
            ("listener report", frame(0x86dd, &hop_by_hop(143)), V6),
            ("hidden solicitation", frame(0x86dd, &hop_by_hop(135)), Addresses::Other),
            ("too short for IPv6", frame(0x86dd, &ipv6(17, &[])[..39]), Addresses::Other),
        ];
        for (what, frame, expected) in table {
            assert_eq!(addresses(&frame), expected, "{what}");
        }
    }

    #[test]
    fn a_lying_header_has_none() {
        for first in [0x44, 0x55, 0x65, 0x4f, 0x00] {
            let mut frame = frame(0x0800, &ipv4([10, 0, 0, 2]));
            frame[14] = first;
            assert_eq!(addresses(&frame), Addresses::Other, "{first:#x}");
        }
        assert_eq!(addresses(&frame(0x86dd, &ipv4([10, 0, 0, 2]))), Addresses::Other);
        assert_eq!(addresses(&[]), Addresses::Other);
    }
}
