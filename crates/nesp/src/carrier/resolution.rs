//! Address resolution for the UDP addresses: ARP for IPv4, neighbour discovery for IPv6.

use super::{
    ARP, Carrier, IPV6, IPV6_HEADER, ListenAddresses, OWN_ADDRESS, SHORTEST_FRAME, carried, checksum,
    payload, pseudo_header,
};
use std::net::{Ipv4Addr, Ipv6Addr};

/// The beginning of an ARP request for IPv4 over Ethernet (RFC 826), up to the operation.
const ARP_REQUEST: [u8; 8] = [0, 1, 8, 0, 6, 4, 0, 1];
const ICMPV6: u8 = 58;
/// Types of neighbour solicitations and advertisements (RFC 4861 sections 4.3 and 4.4).
const SOLICITATION: u8 = 135;
const ADVERTISEMENT: u8 = 136;
/// Bytes of a solicitation without options.
const SOLICITATION_LENGTH: usize = 24;
/// Flags: solicited, override.
const ANSWERED: u8 = 0x60;
/// Flags: override, for a sender without an address (RFC 4861 section 7.2.4).
const UNASKED: u8 = 0x20;
/// The option for the target's hardware address, and its length in units of eight bytes.
const TARGET_ADDRESS: [u8; 2] = [2, 1];
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
const ALL_NODES_MAC: [u8; 6] = [0x33, 0x33, 0, 0, 0, 1];

/// Whether an ARP packet asks for `address`.
pub(super) fn asks(packet: &[u8], address: Ipv4Addr) -> bool {
    packet.starts_with(&ARP_REQUEST) && packet.get(24..28).is_some_and(|target| target == address.octets())
}

/// Whether an IPv6 packet is a valid neighbour solicitation for `address`, by RFC 4861 section 7.1.1 except
/// for its options.
pub(super) fn solicits(packet: &[u8], address: Ipv6Addr) -> bool {
    let Some((ip, rest)) = packet.split_first_chunk::<IPV6_HEADER>() else { return false };
    let length = usize::from(u16::from_be_bytes([ip[4], ip[5]]));
    let Some(message) = rest.get(..length).filter(|message| message.len() >= SOLICITATION_LENGTH) else {
        return false;
    };
    ip[0] >> 4 == 6
        && ip[6] == ICMPV6
        && ip[7] == 255
        && message[..2] == [SOLICITATION, 0]
        && message[8..24] == address.octets()
        && checksum(message, pseudo_header(&ip[8..], ICMPV6, length)) == 0
}

/// The answer to a request to resolve one of the UDP addresses; none for other frames.
pub fn resolution_answer(frame: &[u8], wanted: &ListenAddresses) -> Option<Vec<u8>> {
    if carried(frame, wanted)? != Carrier::Resolution {
        return None;
    }
    let (ethertype, at) = payload(frame)?;
    let (asker, tags, packet) = (frame.get(6..12)?, &frame[12..at - 2], &frame[at..]);
    let mut answer = if ethertype == ARP {
        let (own, asker) = (wanted.udp?.0, packet.get(8..18)?);
        let mut answer = [&asker[..6], &OWN_ADDRESS, tags, &ARP.to_be_bytes()].concat();
        answer.extend([&ARP_REQUEST[..7], &[2], &OWN_ADDRESS, &own.octets(), asker].concat());
        answer
    } else {
        let (to_mac, packet) = advertisement(wanted.udp6?.0, asker, packet)?;
        [&to_mac[..], &OWN_ADDRESS, tags, &IPV6.to_be_bytes(), &packet].concat()
    };
    answer.resize(answer.len().max(SHORTEST_FRAME), 0);
    Some(answer)
}

/// The destination MAC address of an advertisement, and its packet.
fn advertisement(own: Ipv6Addr, asker: &[u8], solicitation: &[u8]) -> Option<([u8; 6], Vec<u8>)> {
    let from = Ipv6Addr::from_octets(*solicitation.get(8..)?.first_chunk()?);
    let (to, to_mac, flags) = match from.is_unspecified() {
        true => (ALL_NODES, ALL_NODES_MAC, UNASKED),
        false => (from, *asker.first_chunk()?, ANSWERED),
    };
    let mut message = vec![ADVERTISEMENT, 0, 0, 0, flags, 0, 0, 0];
    message.extend([&own.octets()[..], &TARGET_ADDRESS, &OWN_ADDRESS].concat());
    let mut ip = vec![0x60, 0, 0, 0, 0, message.len() as u8, ICMPV6, 255];
    ip.extend([own.octets(), to.octets()].concat());
    let sum = checksum(&message, pseudo_header(&ip[8..], ICMPV6, message.len()));
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    Some((to_mac, [ip, message].concat()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::carrier::PORT;

    const HOST: [u8; 6] = [2, 0, 0, 0, 0, 1];
    const SIX: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0xfe);
    const WANTED: ListenAddresses =
        ListenAddresses { udp: Some((Ipv4Addr::new(10, 0, 0, 254), PORT)), udp6: Some((SIX, PORT)) };
    const VLAN: [u8; 4] = [0x81, 0, 0, 5];

    #[test]
    fn its_address_is_answered_for() {
        for tags in [&[][..], &VLAN] {
            let end = 42 + tags.len();
            let mut asked = [&[0xff; 6][..], &HOST, tags, &ARP.to_be_bytes(), &ARP_REQUEST].concat();
            asked.extend([&HOST[..], &[10, 0, 0, 1], &[0; 6], &[10, 0, 0, 254]].concat());
            assert_eq!(carried(&asked, &WANTED), Some(Carrier::Resolution));
            let answer = resolution_answer(&asked, &WANTED).unwrap();
            assert_eq!((&answer[..6], &answer[6..12], answer.len()), (&HOST[..], &OWN_ADDRESS[..], 60));
            assert_eq!(answer[12..12 + tags.len()], *tags);
            assert_eq!(
                answer[end - 22..end],
                [&[0, 2][..], &OWN_ADDRESS, &[10, 0, 0, 254], &HOST, &[10, 0, 0, 1]].concat()
            );
            *asked.last_mut().unwrap() = 253;
            assert_eq!((carried(&asked, &WANTED), resolution_answer(&asked, &WANTED)), (None, None));
        }
    }

    /// A solicitation for `target`, from an address to the target's solicited-node group.
    fn solicitation(from: &str, target: Ipv6Addr, hops: u8, tags: &[u8]) -> Vec<u8> {
        let group: Ipv6Addr = "ff02::1:ff00:fe".parse().unwrap();
        let mut message = vec![SOLICITATION, 0, 0, 0, 0, 0, 0, 0];
        message.extend([&target.octets()[..], &[1, 1], &HOST].concat());
        let mut ip = vec![0x60, 0, 0, 0, 0, 32, ICMPV6, hops];
        ip.extend([from.parse::<Ipv6Addr>().unwrap().octets(), group.octets()].concat());
        let sum = checksum(&message, pseudo_header(&ip[8..], ICMPV6, 32));
        message[2..4].copy_from_slice(&sum.to_be_bytes());
        [&[0x33, 0x33, 0xff, 0, 0, 0xfe][..], &HOST, tags, &IPV6.to_be_bytes(), &ip, &message].concat()
    }

    #[test]
    fn neighbours_hear_who_has_the_address_of_ipv6() {
        for tags in [&[][..], &VLAN] {
            // A sender with an address gets a unicast answer; duplicate address detection gets multicast.
            for (from, to, to_mac, flags) in [
                ("fd00::1", "fd00::1".parse().unwrap(), HOST, ANSWERED),
                ("::", ALL_NODES, ALL_NODES_MAC, UNASKED),
            ] {
                let asked = solicitation(from, SIX, 255, tags);
                assert_eq!(carried(&asked, &WANTED), Some(Carrier::Resolution));
                let answer = resolution_answer(&asked, &WANTED).unwrap();
                assert_eq!((&answer[..6], &answer[6..12]), (&to_mac[..], &OWN_ADDRESS[..]));
                let (ethertype, at) = payload(&answer).unwrap();
                assert_eq!((ethertype, &answer[12..at - 2]), (IPV6, tags));
                let (ip, message) = answer[at..].split_at(IPV6_HEADER);
                assert_eq!((ip[7], &ip[8..24], &ip[24..]), (255, &SIX.octets()[..], &to.octets()[..]));
                assert_eq!(
                    (message[0], message[1], message[4], message.len()),
                    (ADVERTISEMENT, 0, flags, 32)
                );
                assert_eq!(message[8..], [&SIX.octets()[..], &[2, 1], &OWN_ADDRESS].concat());
                assert_eq!(checksum(message, pseudo_header(&ip[8..], ICMPV6, 32)), 0);
            }
        }
        // Another address, a forwarded packet, a wrong checksum, and a truncated packet.
        let other = solicitation("fd00::1", "fd00::fd".parse().unwrap(), 255, &[]);
        let forwarded = solicitation("fd00::1", SIX, 64, &[]);
        let ours = solicitation("fd00::1", SIX, 255, &[]);
        let mut changed = ours.clone();
        changed[56] ^= 1;
        for frame in [&other[..], &forwarded, &changed, &ours[..ours.len() - 1]] {
            assert_eq!((carried(frame, &WANTED), resolution_answer(frame, &WANTED)), (None, None));
        }
        assert_eq!(carried(&ours, &ListenAddresses { udp6: None, ..WANTED }), None);
    }
}
