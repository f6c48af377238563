//! Classification of packets: the only code that knows the formats that a router forwards. It can be replaced
//! by another classifier.

use crate::ports::{RouterPort, is_link_local, is_link_local_v4};
use crate::prefix::HopId;
use longwire_block::DropReason;
use longwire_packet::Meta;
use longwire_settings::Choice;
use longwire_wire::checksum::Sum;
use longwire_wire::{ethertype, protocol};

/// Classifies packets. It depends on nothing that packets change, and is called once per packet.
pub trait Classify: Send + 'static {
    /// The class of a frame from `port`. It may rewrite its own headers between Ethernet and IP (labels).
    fn classify(&mut self, port: &RouterPort, meta: &Meta, frame: &mut [u8]) -> Class;
}

/// The class of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// An IPv4 packet that needs nothing special, after an untagged Ethernet header.
    V4 {
        /// Its destination.
        destination: u32,
    },
    /// An IPv6 packet that needs nothing special, after an untagged Ethernet header.
    V6 {
        /// Its destination.
        destination: u128,
    },
    /// A packet with a known next hop: only its Ethernet addresses are replaced.
    Switched {
        /// The next hop.
        hop: HopId,
    },
    /// Something for full IP.
    Exceptional(FullIpReason),
    /// Nothing a router forwards.
    Dropped(DropReason),
}

/// Reason why a packet needs full IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Choice)]
#[repr(u8)]
pub enum FullIpReason {
    /// An IPv4 header with options.
    Options,
    /// An IPv6 hop-by-hop header.
    HopByHop,
    /// Its TTL or hop limit is used up.
    HopLimit,
    /// Multicast or broadcast, by its IP or MAC address.
    Group,
    /// To or from a link-local address.
    LinkLocal,
    /// ARP.
    Arp,
    /// Addressed to the router itself.
    Local,
    /// No route.
    NoRoute,
    /// Longer than the MTU of the next link.
    TooBig,
    /// The next hop's MAC address is unknown.
    Unresolved,
}

impl FullIpReason {
    /// Its name in statistics.
    pub const fn name(self) -> &'static str {
        Self::WORDS[self as usize]
    }
}

/// Bytes of an Ethernet header.
pub(crate) const ETHERNET: usize = 14;

/// IPv4 and IPv6 on Ethernet without tags.
#[derive(Debug, Clone, Copy, Default)]
pub struct IpClassifier;

impl Classify for IpClassifier {
    #[inline(always)]
    fn classify(&mut self, port: &RouterPort, meta: &Meta, frame: &mut [u8]) -> Class {
        match plain_v4(port, meta, frame) {
            Some(destination) => Class::V4 { destination },
            None => Self::look_closer(port, meta, frame),
        }
    }
}

impl IpClassifier {
    /// Classifies a frame that is not plain.
    #[inline(never)]
    fn look_closer(port: &RouterPort, meta: &Meta, frame: &[u8]) -> Class {
        let Some((ethernet, packet)) = frame.split_first_chunk::<ETHERNET>() else {
            return Class::Dropped(DropReason::BadFrame);
        };
        let to_group = ethernet[0] & 1 == 1;
        if ethernet[..6] != port.mac && !to_group {
            return Class::Dropped(DropReason::OtherStation);
        }
        if ethernet[6] & 1 == 1 {
            return Class::Dropped(DropReason::BadFrame);
        }
        let on_wire = (meta.wire_len as usize).saturating_sub(ETHERNET);
        let class = match u16::from_be_bytes([ethernet[12], ethernet[13]]) {
            ethertype::IPV4 => v4(packet, on_wire),
            ethertype::IPV6 => v6(packet, on_wire),
            ethertype::ARP => return Class::Exceptional(FullIpReason::Arp),
            _ => Class::Dropped(DropReason::Unserved),
        };
        if to_group && !matches!(class, Class::Dropped(_)) {
            Class::Exceptional(FullIpReason::Group)
        } else {
            class
        }
    }
}

/// Destination of an IPv4 packet that needs nothing special, as nearly all: its frame is addressed to this
/// port, and it passes all checks of [`v4`] at once.
#[inline]
fn plain_v4(port: &RouterPort, meta: &Meta, frame: &[u8]) -> Option<u32> {
    let head = frame.first_chunk::<{ ETHERNET + 20 }>()?;
    let word = |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let half = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let is_ours = word(0) == u32::from_be_bytes([port.mac[0], port.mac[1], port.mac[2], port.mac[3]])
        && half(4) == u16::from_be_bytes([port.mac[4], port.mac[5]]);
    let total_len = u32::from(half(16));
    let (source, destination) = (word(26), word(30));
    let is_plain = is_ours
        && head[6] & 1 == 0
        // IPv4, and a header of five words.
        && word(12) >> 8 == 0x08_0045
        && total_len >= 20
        && total_len + ETHERNET as u32 <= meta.wire_len
        && head[22] > 1
        && !(is_special_v4(source) | is_special_v4(destination))
        && Sum::ZERO.bytes(&head[ETHERNET..]).is_right();
    is_plain.then_some(destination)
}

/// Validates an IPv4 header (RFC 1812, 5.2.2 and 5.3.7) of a packet with `on_wire` bytes.
fn v4(packet: &[u8], on_wire: usize) -> Class {
    let Some(header) = packet.first_chunk::<20>() else { return Class::Dropped(DropReason::BadHeader) };
    let header_len = usize::from(header[0] & 15) * 4;
    let total_len = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let possible = header[0] >> 4 == 4 && header_len >= 20 && total_len >= header_len && total_len <= on_wire;
    if !possible {
        return Class::Dropped(DropReason::BadHeader);
    }
    if !packet.get(..header_len).is_some_and(|header| Sum::ZERO.bytes(header).is_right()) {
        return Class::Dropped(DropReason::BadHeader);
    }
    let source = u32::from_be_bytes([header[12], header[13], header[14], header[15]]);
    let destination = u32::from_be_bytes([header[16], header[17], header[18], header[19]]);
    if is_special_v4(source) || is_special_v4(destination) {
        if is_martian_v4(source) || source >= 0xe000_0000 || is_martian_v4(destination) {
            return Class::Dropped(DropReason::Martian);
        }
        if destination >= 0xe000_0000 {
            return Class::Exceptional(FullIpReason::Group);
        }
        if is_link_local_v4(source) || is_link_local_v4(destination) {
            return Class::Exceptional(FullIpReason::LinkLocal);
        }
    }
    if header_len > 20 {
        return Class::Exceptional(FullIpReason::Options);
    }
    if header[8] <= 1 {
        return Class::Exceptional(FullIpReason::HopLimit);
    }
    Class::V4 { destination }
}

/// For each first byte of addresses, whether they need a closer look: this network, loopback, link-local,
/// multicast, and reserved addresses.
static SPECIAL: [bool; 256] = {
    let mut special = [false; 256];
    (special[0], special[127], special[169]) = (true, true, true);
    let mut first = 224;
    while first < special.len() {
        special[first] = true;
        first += 1;
    }
    special
};

#[inline]
fn is_special_v4(address: u32) -> bool {
    SPECIAL[(address >> 24) as usize]
}

/// This network, and loopback.
#[inline]
const fn is_martian_v4(address: u32) -> bool {
    matches!(address >> 24, 0 | 127)
}

/// Validates an IPv6 header (RFC 8200, 3; RFC 4291, 2.5 to 2.7).
fn v6(packet: &[u8], on_wire: usize) -> Class {
    let Some(header) = packet.first_chunk::<40>() else { return Class::Dropped(DropReason::BadHeader) };
    let len = 40 + usize::from(u16::from_be_bytes([header[4], header[5]]));
    if header[0] >> 4 != 6 || len > on_wire {
        return Class::Dropped(DropReason::BadHeader);
    }
    let (Some(source), Some(destination)) = (header[8..].first_chunk(), header[24..].first_chunk()) else {
        return Class::Dropped(DropReason::BadHeader);
    };
    let (source, destination) = (u128::from_be_bytes(*source), u128::from_be_bytes(*destination));
    // Unspecified, loopback and IPv4-embedded addresses, and multicast sources. Stations without an address
    // use the unspecified one for duplicate address detection.
    if is_martian_v6(destination) || source >> 120 == 0xff || (is_martian_v6(source) && source != 0) {
        return Class::Dropped(DropReason::Martian);
    }
    if destination >> 120 == 0xff {
        return Class::Exceptional(FullIpReason::Group);
    }
    if is_link_local(source) || is_link_local(destination) {
        return Class::Exceptional(FullIpReason::LinkLocal);
    }
    if source == 0 {
        return Class::Dropped(DropReason::Martian);
    }
    if header[6] == protocol::HOP_BY_HOP {
        return Class::Exceptional(FullIpReason::HopByHop);
    }
    if header[7] <= 1 {
        return Class::Exceptional(FullIpReason::HopLimit);
    }
    Class::V6 { destination }
}

/// ::, ::1, and IPv4-embedded addresses.
#[inline]
const fn is_martian_v6(address: u128) -> bool {
    address <= 1 || address >> 32 == 0xffff
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::{fix, frame_v4, frame_v6, three_ports};

    fn class(frame: &[u8]) -> Class {
        let mut pool = longwire_packet::Pool::new(1 << 20).unwrap();
        let handle = pool.insert(frame).unwrap();
        let (meta, frame) = pool.parts_mut(handle);
        let meta = *meta;
        IpClassifier.classify(&three_ports()[0], &meta, frame)
    }

    /// An IPv4 frame with some bytes of its IP header changed, and a correct checksum.
    fn changed(bytes: &[(usize, u8)]) -> Class {
        let mut frame = frame_v4([10, 0, 0, 9], [10, 0, 1, 9], 64, &[0; 26]);
        bytes.iter().for_each(|&(at, byte)| frame[14 + at] = byte);
        fix(&mut frame);
        class(&frame)
    }

    #[test]
    fn ipv4_headers_are_validated() {
        let drop = Class::Dropped;
        let table = [
            ("regular", changed(&[]), Class::V4 { destination: 0x0a00_0109 }),
            ("version 5", changed(&[(0, 0x55)]), drop(DropReason::BadHeader)),
            ("header of 16", changed(&[(0, 0x44)]), drop(DropReason::BadHeader)),
            ("total below header", changed(&[(3, 19)]), drop(DropReason::BadHeader)),
            ("shorter than the frame", changed(&[(3, 30)]), Class::V4 { destination: 0x0a00_0109 }),
            ("longer than the frame", changed(&[(3, 47)]), drop(DropReason::BadHeader)),
            ("options", changed(&[(0, 0x46)]), Class::Exceptional(FullIpReason::Options)),
            ("one hop", changed(&[(8, 1)]), Class::Exceptional(FullIpReason::HopLimit)),
            ("no hop", changed(&[(8, 0)]), Class::Exceptional(FullIpReason::HopLimit)),
            ("from 0.x", changed(&[(12, 0)]), drop(DropReason::Martian)),
            ("from 127.x", changed(&[(12, 127)]), drop(DropReason::Martian)),
            ("from a group", changed(&[(12, 224)]), drop(DropReason::Martian)),
            ("from 240.x", changed(&[(12, 240)]), drop(DropReason::Martian)),
            ("to 0.x", changed(&[(16, 0)]), drop(DropReason::Martian)),
            ("to 127.x", changed(&[(16, 127)]), drop(DropReason::Martian)),
            ("within a link", changed(&[(12, 169), (13, 254)]), Class::Exceptional(FullIpReason::LinkLocal)),
            (
                "to within a link",
                changed(&[(16, 169), (17, 254)]),
                Class::Exceptional(FullIpReason::LinkLocal),
            ),
            ("beside that", changed(&[(12, 169), (13, 253)]), Class::V4 { destination: 0x0a00_0109 }),
            (
                "within a link to a group",
                changed(&[(12, 169), (13, 254), (16, 224)]),
                Class::Exceptional(FullIpReason::Group),
            ),
            ("to a group", changed(&[(16, 224)]), Class::Exceptional(FullIpReason::Group)),
            ("to all", changed(&[(16, 255)]), Class::Exceptional(FullIpReason::Group)),
        ];
        for (what, class, expected) in table {
            assert_eq!(class, expected, "{what}");
        }
        let mut frame = frame_v4([10, 0, 0, 9], [10, 0, 1, 9], 64, &[0; 26]);
        frame[24] ^= 1;
        assert_eq!(class(&frame), drop(DropReason::BadHeader), "checksum");
    }

    #[test]
    fn a_closer_look_says_of_a_plain_packet_what_it_is() {
        let (mut plain, port) = (0, &three_ports()[0]);
        let mut pool = longwire_packet::Pool::new(1 << 20).unwrap();
        for seed in 0..100_000u32 {
            let mut frame = frame_v4([10, 0, 0, 9], [10, 0, 1, 9], 2, &[0; 26]);
            let (at, byte) = ((seed / 256) as usize % 36, seed as u8);
            frame[at] = byte;
            if seed & 1 << 14 == 0 {
                fix(&mut frame);
            }
            frame.truncate(if seed & 1 << 15 == 0 { 60 } else { seed as usize % 61 });
            let handle = pool.insert(&frame).unwrap();
            let destination = plain_v4(port, pool.meta(handle), &frame);
            let class = IpClassifier::look_closer(port, pool.meta(handle), &frame);
            pool.free(handle);
            // In 169.0.0.0/8, addresses that are not link-local are plain only after a closer look.
            let is_plain = matches!(class, Class::V4 { .. }) && ![26, 30].iter().any(|&at| frame[at] == 169);
            let expected = is_plain.then_some(class);
            assert_eq!(destination.map(|destination| Class::V4 { destination }), expected, "{frame:x?}");
            plain += usize::from(destination.is_some());
        }
        assert!((20_000..80_000).contains(&plain), "{plain}");
    }

    #[test]
    fn every_first_byte_that_needs_a_closer_look_has_a_bit() {
        for first in 0..=u8::MAX {
            let special = matches!(first, 0 | 127 | 169 | 224..);
            assert_eq!(is_special_v4(u32::from_be_bytes([first, 1, 2, 3])), special, "{first}");
        }
    }

    #[test]
    fn ipv6_headers_are_validated() {
        let changed = |bytes: &[(usize, u8)]| {
            let mut frame = frame_v6(0xfd00 << 112 | 9, 0xfd01 << 112 | 9, 17, 64, &[0; 8]);
            bytes.iter().for_each(|&(at, byte)| frame[14 + at] = byte);
            class(&frame)
        };
        let table = [
            ("regular", changed(&[]), Class::V6 { destination: 0xfd01 << 112 | 9 }),
            ("version", changed(&[(0, 0x40)]), Class::Dropped(DropReason::BadHeader)),
            ("too long", changed(&[(5, 9)]), Class::Dropped(DropReason::BadHeader)),
            ("one hop", changed(&[(7, 1)]), Class::Exceptional(FullIpReason::HopLimit)),
            ("hop-by-hop", changed(&[(6, 0)]), Class::Exceptional(FullIpReason::HopByHop)),
            ("from a group", changed(&[(8, 0xff)]), Class::Dropped(DropReason::Martian)),
            ("to a group", changed(&[(24, 0xff)]), Class::Exceptional(FullIpReason::Group)),
            ("link-local", changed(&[(8, 0xfe), (9, 0x80)]), Class::Exceptional(FullIpReason::LinkLocal)),
            ("from nobody", changed(&[(8, 0), (9, 0), (23, 0)]), Class::Dropped(DropReason::Martian)),
            ("to loopback", changed(&[(24, 0), (25, 0), (39, 1)]), Class::Dropped(DropReason::Martian)),
        ];
        for (what, class, expected) in table {
            assert_eq!(class, expected, "{what}");
        }
    }

    #[test]
    fn frames_for_others_are_told_from_frames_for_all() {
        let mut frame = frame_v4([10, 0, 0, 9], [10, 0, 1, 9], 64, &[0; 26]);
        frame[5] ^= 1;
        assert_eq!(class(&frame), Class::Dropped(DropReason::OtherStation));
        frame[..6].fill(0xff);
        assert_eq!(class(&frame), Class::Exceptional(FullIpReason::Group));
        frame[12..14].copy_from_slice(&[8, 6]);
        assert_eq!(class(&frame), Class::Exceptional(FullIpReason::Arp));
        frame[12] = 0x81;
        assert_eq!(class(&frame), Class::Dropped(DropReason::Unserved));
        frame[6] = 1;
        assert_eq!(class(&frame), Class::Dropped(DropReason::BadFrame));
        assert_eq!(class(&frame[..13]), Class::Dropped(DropReason::BadFrame));
        assert!(FullIpReason::ALL.iter().enumerate().all(|(at, why)| *why as usize == at));
    }
}
