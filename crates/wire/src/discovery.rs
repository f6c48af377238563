//! Neighbour solicitations and advertisements (RFC 4861, 4.3 and 4.4).

use crate::checksum::pseudo_v6;
use crate::icmp::icmpv6_kind;
use crate::{Ipv6, protocol};

/// Bytes of a message with one link address.
pub const DISCOVERY_LEN: usize = 32;
/// Bytes before the options.
const FIXED: usize = 24;
/// Hop limit of messages that no router has forwarded.
const UNFORWARDED: u8 = 255;
const SOURCE_LINK_ADDRESS: u8 = 1;
const TARGET_LINK_ADDRESS: u8 = 2;
/// Flags of a neighbour advertisement: from a router, solicited, override.
const SOLICITED: u8 = 0x40;
const OVERRIDE: u8 = 0x20;

/// A solicitation or advertisement that is valid by RFC 4861, 7.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Discovery {
    /// Whether it is a solicitation.
    pub is_solicitation: bool,
    /// The address that is resolved or announced.
    pub target: u128,
    /// The link address of the source (solicitation) or target (advertisement), if present.
    pub link_address: Option<[u8; 6]>,
    /// Whether an advertisement was solicited.
    pub is_solicited: bool,
    /// Whether an advertisement overrides a known link address.
    pub overrides: bool,
}

impl Discovery {
    /// Reads the ICMPv6 message at `offset` of `packet`, whose header is `ip`. None if it is neither message
    /// or is invalid.
    pub fn read(ip: &Ipv6<'_>, packet: &[u8], offset: usize) -> Option<Self> {
        let end = 40 + usize::from(ip.payload_len());
        let message = packet.get(offset..end)?;
        let fixed = message.first_chunk::<FIXED>()?;
        let pseudo = pseudo_v6(ip.source(), ip.destination(), protocol::ICMPV6, message.len() as u32);
        let target = u128::from_be_bytes(*fixed.last_chunk::<16>()?);
        let to_many = ip.destination() >> 120 == 0xff;
        let is_solicitation = fixed[0] == icmpv6_kind::SOLICITATION;
        let known = is_solicitation || fixed[0] == icmpv6_kind::ADVERTISEMENT;
        let intact = ip.hop_limit() == UNFORWARDED && pseudo.bytes(message).checksum() == 0;
        if !known || !intact || fixed[1] != 0 || target >> 120 == 0xff {
            return None;
        }
        let kind = if is_solicitation { SOURCE_LINK_ADDRESS } else { TARGET_LINK_ADDRESS };
        let link_address = link_address(&message[FIXED..], kind)?;
        let unspecified = ip.source() == 0;
        if is_solicitation
            && unspecified
            && (link_address.is_some() || ip.destination() >> 24 != SOLICITED_NODE)
        {
            return None;
        }
        let is_solicited = !is_solicitation && fixed[4] & SOLICITED != 0;
        if is_solicited && to_many {
            return None;
        }
        let overrides = !is_solicitation && fixed[4] & OVERRIDE != 0;
        Some(Self { is_solicitation, target, link_address, is_solicited, overrides })
    }

    /// A solicitation for the link address of `target`, sent from `source` with link address `from` to
    /// `destination`.
    pub fn solicit(source: u128, destination: u128, target: u128, from: [u8; 6]) -> [u8; DISCOVERY_LEN] {
        let head = (icmpv6_kind::SOLICITATION, 0, SOURCE_LINK_ADDRESS);
        message(head, source, destination, target, from)
    }

    /// An advertisement that `target`, a router's address, has the link address `at`. Sent from another
    /// address it is for an address that several routers share, and does not override (RFC 4861, 7.2.4).
    pub fn advertise(
        source: u128,
        destination: u128,
        target: u128,
        at: [u8; 6],
        is_solicited: bool,
    ) -> [u8; DISCOVERY_LEN] {
        const ROUTER: u8 = 0x80;
        let overrides = if source == target { OVERRIDE } else { 0 };
        let flags = ROUTER | overrides | if is_solicited { SOLICITED } else { 0 };
        let head = (icmpv6_kind::ADVERTISEMENT, flags, TARGET_LINK_ADDRESS);
        message(head, source, destination, target, at)
    }
}

/// ff02::1:ff00:0, the prefix of solicited-node addresses.
const SOLICITED_NODE: u128 = 0xff02_0000_0000_0000_0000_0001_ff00_0000 >> 24;

/// The multicast address to which solicitations for `target` go (RFC 4291, 2.7.1).
pub const fn solicited_node(target: u128) -> u128 {
    SOLICITED_NODE << 24 | target & 0xff_ffff
}

/// The Ethernet address of an IPv6 multicast address (RFC 2464, 7).
pub const fn multicast_mac(group: u128) -> [u8; 6] {
    let [.., a, b, c, d] = group.to_be_bytes();
    [0x33, 0x33, a, b, c, d]
}

fn message(
    (kind, flags, option): (u8, u8, u8),
    source: u128,
    destination: u128,
    target: u128,
    link_address: [u8; 6],
) -> [u8; DISCOVERY_LEN] {
    let mut message = [0; DISCOVERY_LEN];
    (message[0], message[4]) = (kind, flags);
    message[8..24].copy_from_slice(&target.to_be_bytes());
    (message[24], message[25]) = (option, 1);
    message[26..].copy_from_slice(&link_address);
    let pseudo = pseudo_v6(source, destination, protocol::ICMPV6, DISCOVERY_LEN as u32);
    let checksum = pseudo.bytes(&message).checksum();
    message[2..4].copy_from_slice(&checksum.to_be_bytes());
    message
}

/// The Ethernet address in the option of type `kind`, if there is one; the outer option is none if an option
/// is malformed.
fn link_address(mut options: &[u8], kind: u8) -> Option<Option<[u8; 6]>> {
    let mut found = None;
    while let [option, eights, ..] = *options {
        let len = usize::from(eights) * 8;
        let (this, rest) = options.split_at_checked(len).filter(|_| len > 0)?;
        if option == kind && len == 8 {
            found = this.last_chunk::<6>().copied();
        }
        options = rest;
    }
    options.is_empty().then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ipv6Header;

    const A: u128 = 0xfd00 << 112 | 1;
    const B: u128 = 0xfd00 << 112 | 0x12_3456;
    const MAC: [u8; 6] = [2, 0, 0, 0, 0, 7];

    fn read(source: u128, destination: u128, hop_limit: u8, message: &[u8]) -> Option<Discovery> {
        let payload_len = message.len() as u16;
        let header = Ipv6Header { source, destination, next_header: 58, hop_limit, payload_len };
        let packet = [&header.bytes()[..], message].concat();
        Discovery::read(&Ipv6::check(&packet).unwrap(), &packet, 40)
    }

    #[test]
    fn what_is_written_can_be_read() {
        let group = solicited_node(B);
        assert_eq!(group, 0xff02_0000_0000_0000_0000_0001_ff12_3456);
        assert_eq!(multicast_mac(group), [0x33, 0x33, 0xff, 0x12, 0x34, 0x56]);
        let question = read(A, group, 255, &Discovery::solicit(A, group, B, MAC)).unwrap();
        assert!(question.is_solicitation && !question.is_solicited && !question.overrides);
        assert_eq!((question.target, question.link_address), (B, Some(MAC)));
        let answer = read(B, A, 255, &Discovery::advertise(B, A, B, MAC, true)).unwrap();
        assert!(!answer.is_solicitation && answer.is_solicited && answer.overrides);
        assert_eq!((answer.target, answer.link_address), (B, Some(MAC)));
    }

    #[test]
    fn what_is_not_valid_is_not_read() {
        let group = solicited_node(B);
        let good = Discovery::solicit(A, group, B, MAC);
        assert!(read(A, group, 254, &good).is_none(), "was forwarded");
        assert!(read(A + 1, group, 255, &good).is_none(), "checksum");
        assert!(read(A, group, 255, &good[..31]).is_none(), "option cut short");
        assert!(
            read(0, group, 255, &Discovery::solicit(0, group, B, MAC)).is_none(),
            "a link address of nobody"
        );
        let all = 0xff02 << 112 | 1;
        let to_all = Discovery::advertise(B, all, B, MAC, true);
        assert!(read(B, all, 255, &to_all).is_none(), "asked for, and told to all");
        assert!(read(B, all, 255, &Discovery::advertise(B, all, B, MAC, false)).is_some());
        let of_group = Discovery::solicit(A, group, group, MAC);
        assert!(read(A, group, 255, &of_group).is_none(), "a group has no link address");
        for len in 0..32 {
            assert!(read(A, group, 255, &good[..len]).is_none());
        }
    }
}
