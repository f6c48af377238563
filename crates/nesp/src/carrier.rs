//! Carriers of messages: Ethernet frames of an experimental type, or UDP over IPv4 or IPv6; with or without
//! VLAN tags.

mod resolution;

pub use resolution::resolution_answer;

use crate::message::MAGIC;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The first of the two EtherTypes for local experiments (IEEE 802, clause 9.2.3).
pub const ETHERTYPE: u16 = 0x88b5;
/// Destination of clients' Ethernet frames: a locally administered group address.
pub const GROUP_ADDRESS: [u8; 6] = [0x03, 0x4e, 0x45, 0x53, 0x50, 0x01];
/// Source of the emulator's frames: the individual address with the same bits.
pub(crate) const OWN_ADDRESS: [u8; 6] = [0x02, 0x4e, 0x45, 0x53, 0x50, 0x01];
/// The default UDP port.
pub const PORT: u16 = 8805;

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const ARP: u16 = 0x0806;
/// EtherTypes of VLAN tags: of customers and of services (IEEE 802.1Q, clause 9.5).
const TAG_TYPES: [u16; 2] = [0x8100, 0x88a8];
/// Most tags that are parsed.
const MOST_TAGS: usize = 2;
const UDP: u8 = 17;
/// Bytes of the fixed header of IPv6.
const IPV6_HEADER: usize = 40;
/// Shorter frames are padded.
const SHORTEST_FRAME: usize = 60;

/// Addresses that an emulator's port listens for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ListenAddresses {
    /// Address and port for UDP over IPv4, if enabled.
    pub udp: Option<(Ipv4Addr, u16)>,
    /// Address and port for UDP over IPv6, if enabled.
    pub udp6: Option<(Ipv6Addr, u16)>,
}

/// What carries a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carrier {
    /// An Ethernet frame.
    Ethernet,
    /// A UDP datagram.
    Udp,
    /// Not a message, but a request to resolve the UDP address.
    Resolution,
}

/// VLAN tags of a frame, outermost first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tags {
    bytes: [u8; 4 * MOST_TAGS],
    length: u8,
}

impl Tags {
    /// Parses the tags in `bytes`. None if they are incomplete, or more than two.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let (each, rest) = bytes.as_chunks::<4>();
        let is_tag = |tag: &[u8; 4]| TAG_TYPES.contains(&u16::from_be_bytes([tag[0], tag[1]]));
        let fits = rest.is_empty() && each.len() <= MOST_TAGS && each.iter().all(is_tag);
        let mut tags = Self { length: bytes.len() as u8, ..Self::default() };
        fits.then(|| {
            tags.bytes[..bytes.len()].copy_from_slice(bytes);
            tags
        })
    }

    /// Their bytes: 0, 4 or 8.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

/// Both ends of a message from the sender's view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageEnds {
    /// Hardware addresses: from, to.
    pub macs: ([u8; 6], [u8; 6]),
    /// The frame's VLAN tags.
    pub tags: Tags,
    /// Addresses and ports for UDP; none for an Ethernet frame.
    pub udp: Option<UdpEnds>,
}

/// Addresses and ports of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UdpEnds {
    /// Over IPv4.
    V4 {
        /// From.
        from: (Ipv4Addr, u16),
        /// To.
        to: (Ipv4Addr, u16),
    },
    /// Over IPv6.
    V6 {
        /// From.
        from: (Ipv6Addr, u16),
        /// To.
        to: (Ipv6Addr, u16),
    },
}

impl MessageEnds {
    /// The ends of an Ethernet frame without tags.
    pub fn ethernet(from: [u8; 6], to: [u8; 6]) -> Self {
        Self { macs: (from, to), tags: Tags::default(), udp: None }
    }
}

/// The EtherType after VLAN tags, and the offset of the payload.
#[inline]
pub(crate) fn payload(frame: &[u8]) -> Option<(u16, usize)> {
    let mut at = 12;
    for _ in 0..=MOST_TAGS {
        let ethertype = u16::from_be_bytes(*frame.get(at..)?.first_chunk()?);
        if !TAG_TYPES.contains(&ethertype) {
            return Some((ethertype, at + 2));
        }
        at += 4;
    }
    None
}

/// Whether a frame is for the emulator itself, and its carrier. Frames with the EtherType but without a
/// message's beginning belong to another experiment, as do those to other addresses.
#[inline]
pub fn carried(frame: &[u8], wanted: &ListenAddresses) -> Option<Carrier> {
    let (ethertype, at) = payload(frame)?;
    let packet = &frame[at..];
    match ethertype {
        ETHERTYPE => {
            let to_us = frame.starts_with(&GROUP_ADDRESS) || frame.starts_with(&OWN_ADDRESS);
            (to_us && packet.starts_with(&MAGIC)).then_some(Carrier::Ethernet)
        }
        IPV4 => {
            let wanted = wanted.udp?;
            let (ip, udp) = udp_of_v4(packet)?;
            let to = Ipv4Addr::from_octets(*ip[16..].first_chunk()?);
            ((to, port_at(udp, 2)) == wanted).then_some(Carrier::Udp)
        }
        IPV6 => {
            let wanted = wanted.udp6?;
            if resolution::solicits(packet, wanted.0) {
                return Some(Carrier::Resolution);
            }
            let (ip, udp) = udp_of_v6(packet)?;
            let to = Ipv6Addr::from_octets(*ip[24..].first_chunk()?);
            ((to, port_at(udp, 2)) == wanted).then_some(Carrier::Udp)
        }
        ARP => resolution::asks(packet, wanted.udp?.0).then_some(Carrier::Resolution),
        _ => None,
    }
}

/// The ends of the answer, and the message, of a frame that is [`carried`] in this way.
pub fn unwrap<'f>(frame: &'f [u8], wanted: &ListenAddresses) -> Option<(MessageEnds, &'f [u8])> {
    let carrier = carried(frame, wanted)?;
    let from_mac: [u8; 6] = *frame.get(6..)?.first_chunk()?;
    let (ethertype, at) = payload(frame)?;
    let (tags, packet) = (Tags::read(&frame[12..at - 2])?, &frame[at..]);
    if carrier == Carrier::Ethernet {
        return Some((MessageEnds { macs: (OWN_ADDRESS, from_mac), tags, udp: None }, packet));
    }
    if carrier == Carrier::Resolution {
        return None;
    }
    // The answer goes to the router that forwarded the message; a group address can't be a source.
    let own_mac = *frame.first_chunk::<6>()?;
    let own_mac = if own_mac[0] & 1 == 1 { OWN_ADDRESS } else { own_mac };
    let (udp, datagram) = if ethertype == IPV4 {
        let (ip, datagram) = udp_of_v4(packet)?;
        let peer = (Ipv4Addr::from_octets(*ip[12..].first_chunk()?), port_at(datagram, 0));
        (UdpEnds::V4 { from: wanted.udp?, to: peer }, datagram)
    } else {
        let (ip, datagram) = udp_of_v6(packet)?;
        let peer = (Ipv6Addr::from_octets(*ip[8..].first_chunk()?), port_at(datagram, 0));
        (UdpEnds::V6 { from: wanted.udp6?, to: peer }, datagram)
    };
    Some((MessageEnds { macs: (own_mac, from_mac), tags, udp: Some(udp) }, &datagram[8..]))
}

/// The port at an offset of a complete UDP header.
fn port_at(udp: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([udp[at], udp[at + 1]])
}

/// The IPv4 header and the datagram of an unfragmented UDP packet, with both lengths checked.
fn udp_of_v4(packet: &[u8]) -> Option<(&[u8], &[u8])> {
    let header = packet.first_chunk::<20>()?;
    let (length, whole) = (usize::from(header[0] & 15) * 4, u16::from_be_bytes([header[2], header[3]]));
    let fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff;
    if header[0] >> 4 != 4 || length < 20 || header[9] != UDP || fragment != 0 {
        return None;
    }
    let (ip, rest) = packet.get(..usize::from(whole))?.split_at_checked(length)?;
    Some((ip, datagram(rest)?))
}

/// The IPv6 header and the datagram of a UDP packet. One with an extension header is not for the emulator.
fn udp_of_v6(packet: &[u8]) -> Option<(&[u8], &[u8])> {
    let (ip, rest) = packet.split_first_chunk::<IPV6_HEADER>()?;
    if ip[0] >> 4 != 6 || ip[6] != UDP {
        return None;
    }
    let rest = rest.get(..usize::from(u16::from_be_bytes([ip[4], ip[5]])))?;
    Some((ip, datagram(rest)?))
}

/// A UDP datagram of the length in its header.
fn datagram(bytes: &[u8]) -> Option<&[u8]> {
    let length = u16::from_be_bytes([*bytes.get(4)?, *bytes.get(5)?]);
    bytes.get(..usize::from(length)).filter(|datagram| datagram.len() >= 8)
}

/// A frame with a message from one end to the other.
pub fn wrap(ends: &MessageEnds, message: &[u8]) -> Vec<u8> {
    let (from, to) = ends.macs;
    let mut frame = Vec::with_capacity(14 + 8 + IPV6_HEADER + 8 + message.len());
    frame.extend([&to[..], &from, ends.tags.as_slice()].concat());
    let length = (8 + message.len()) as u16;
    let (ethertype, ip, datagram) = match &ends.udp {
        None => (ETHERTYPE, Vec::new(), message.to_vec()),
        Some(UdpEnds::V4 { from, to }) => {
            let [high, low] = (20 + length).to_be_bytes();
            let mut ip = vec![0x45, 0, high, low, 0, 0, 0x40, 0, 64, UDP, 0, 0];
            ip.extend([from.0.octets(), to.0.octets()].concat());
            let sum = checksum(&ip, 0);
            ip[10..12].copy_from_slice(&sum.to_be_bytes());
            let datagram = write_datagram((from.1, to.1), message, &ip[12..]);
            (IPV4, ip, datagram)
        }
        Some(UdpEnds::V6 { from, to }) => {
            let [high, low] = length.to_be_bytes();
            let mut ip = vec![0x60, 0, 0, 0, high, low, UDP, 64];
            ip.extend([from.0.octets(), to.0.octets()].concat());
            let datagram = write_datagram((from.1, to.1), message, &ip[8..]);
            (IPV6, ip, datagram)
        }
    };
    frame.extend([&ethertype.to_be_bytes()[..], &ip, &datagram].concat());
    frame.resize(frame.len().max(SHORTEST_FRAME), 0);
    frame
}

/// Writes a UDP datagram between these ports, whose checksum includes both `addresses` (RFC 768, RFC 8200
/// section 8.1).
fn write_datagram((from, to): (u16, u16), message: &[u8], addresses: &[u8]) -> Vec<u8> {
    let length = (8 + message.len()) as u16;
    let mut udp = [from.to_be_bytes(), to.to_be_bytes(), length.to_be_bytes(), [0, 0]].concat();
    udp.extend_from_slice(message);
    let sum = checksum(&udp, pseudo_header(addresses, UDP, udp.len()));
    udp[6..8].copy_from_slice(&(if sum == 0 { 0xffff } else { sum }).to_be_bytes());
    udp
}

/// The pseudo-header's part of a checksum: both addresses, the protocol, the payload length.
pub(crate) fn pseudo_header(addresses: &[u8], protocol: u8, length: usize) -> u32 {
    let words = addresses.as_chunks::<2>().0.iter().map(|&word| u32::from(u16::from_be_bytes(word)));
    words.sum::<u32>() + u32::from(protocol) + length as u32
}

/// The Internet checksum (RFC 1071) of `bytes` added to `sum`.
pub(crate) fn checksum(bytes: &[u8], mut sum: u32) -> u16 {
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIX: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0xfe);
    const WANTED: ListenAddresses =
        ListenAddresses { udp: Some((Ipv4Addr::new(10, 0, 0, 254), PORT)), udp6: Some((SIX, PORT)) };
    const HOST: [u8; 6] = [2, 0, 0, 0, 0, 1];
    /// VLAN 5 within VLAN 7 of a provider.
    const TAGGED: [u8; 8] = [0x88, 0xa8, 0, 7, 0x81, 0, 0x20, 5];

    fn udp4() -> MessageEnds {
        let to = WANTED.udp.unwrap();
        let udp = UdpEnds::V4 { from: (Ipv4Addr::new(10, 0, 0, 1), 4000), to };
        MessageEnds { udp: Some(udp), ..MessageEnds::ethernet(HOST, OWN_ADDRESS) }
    }

    fn udp6() -> MessageEnds {
        let from = ("fd00::1".parse().unwrap(), 4000);
        let udp = UdpEnds::V6 { from, to: WANTED.udp6.unwrap() };
        MessageEnds { udp: Some(udp), ..MessageEnds::ethernet(HOST, OWN_ADDRESS) }
    }

    /// The ends of the answer.
    fn turned(ends: MessageEnds) -> MessageEnds {
        let udp = ends.udp.map(|udp| match udp {
            UdpEnds::V4 { from, to } => UdpEnds::V4 { from: to, to: from },
            UdpEnds::V6 { from, to } => UdpEnds::V6 { from: to, to: from },
        });
        MessageEnds { macs: (OWN_ADDRESS, HOST), udp, ..ends }
    }

    #[test]
    fn frames_lead_there_and_back() {
        for ends in [MessageEnds::ethernet(HOST, GROUP_ADDRESS), udp4(), udp6()] {
            for tags in [&[][..], &TAGGED[4..], &TAGGED] {
                let ends = MessageEnds { tags: Tags::read(tags).unwrap(), ..ends };
                let frame = wrap(&ends, b"NESP and more");
                let (back, message) = unwrap(&frame, &WANTED).unwrap();
                assert_eq!(back, turned(ends));
                assert!(message.starts_with(b"NESP and more") && frame.len() >= 60);
                assert_eq!(frame[12..12 + tags.len()], *tags);
            }
        }
    }

    #[test]
    fn checksums_are_right() {
        // The sum over a header with its checksum is zero (RFC 1071), and so is that over datagram and
        // pseudo-header.
        let frame = wrap(&udp4(), b"message");
        assert_eq!(checksum(&frame[14..34], 0), 0);
        let pseudo = [&frame[26..34], &[0, 17, 0, 15]].concat();
        assert_eq!(checksum(&[&frame[34..49], &[0][..], &pseudo].concat(), 0), 0);
        let frame = wrap(&udp6(), b"message");
        let pseudo = [&frame[22..54], &[0, 0, 0, 15, 0, 0, 0, 17]].concat();
        assert_eq!(checksum(&[&frame[54..69], &[0][..], &pseudo].concat(), 0), 0);
    }

    #[test]
    fn others_frames_are_left_alone() {
        let others = |ends: MessageEnds, carrier: Carrier, changes: &[(usize, u8)], whole: usize| {
            let ours = wrap(&ends, b"NESP");
            assert_eq!(carried(&ours, &WANTED), Some(carrier));
            for &(at, byte) in changes {
                let mut other = ours.clone();
                other[at] = byte;
                assert_eq!(carried(&other, &WANTED), None, "byte {at}");
            }
            for short in 0..whole {
                assert_eq!(carried(&ours[..short], &WANTED), None, "{short} bytes");
            }
            ours
        };
        let group = MessageEnds::ethernet(HOST, GROUP_ADDRESS);
        others(group, Carrier::Ethernet, &[(0, 5), (13, 0xb6), (14, b'n')], 18);
        // Three tags are too many, and half a tag is invalid.
        let tagged = MessageEnds { tags: Tags::read(&TAGGED).unwrap(), ..group };
        let tagged = others(tagged, Carrier::Ethernet, &[(12, 0x91), (20, 0x89), (22, b'n')], 26);
        let thrice = [&tagged[..12], &TAGGED[..4], &tagged[12..]].concat();
        assert_eq!(carried(&thrice, &WANTED), None);
        assert!(Tags::read(&thrice[12..24]).is_none() && Tags::read(&TAGGED[..3]).is_none());
        // Version, a fragment, the protocol, address, port, lengths.
        let changes = [
            (14, 0x65),
            (14, 0x44),
            (20, 0x20),
            (21, 1),
            (23, 6),
            (33, 253),
            (37, 1),
            (16, 9),
            (38, 9),
            (39, 7),
        ];
        let ours = others(udp4(), Carrier::Udp, &changes, 46);
        assert_eq!(carried(&ours, &ListenAddresses { udp: None, ..WANTED }), None);
        // Version, the protocol (an extension header among others), address, port, lengths.
        let changes =
            [(14, 0x45), (20, 6), (20, 0), (20, 44), (53, 253), (57, 1), (18, 9), (19, 9), (58, 9), (59, 7)];
        let ours = others(udp6(), Carrier::Udp, &changes, 66);
        assert_eq!(carried(&ours, &ListenAddresses { udp6: None, ..WANTED }), None);
    }
}
