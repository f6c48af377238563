//! What carries messages: Ethernet frames of an experimental type, or UDP over IPv4.

use crate::message::MAGIC;
use std::net::Ipv4Addr;

/// The first of the two EtherTypes for local experiments (IEEE 802, clause 9.2.3).
pub const ETHERTYPE: u16 = 0x88b5;
/// Where clients send Ethernet frames to: a locally administered group address.
pub const GROUP_ADDRESS: [u8; 6] = [0x03, 0x4e, 0x45, 0x53, 0x50, 0x01];
/// Where the emulator's frames come from: the individual address of the same bits.
const OWN_ADDRESS: [u8; 6] = [0x02, 0x4e, 0x45, 0x53, 0x50, 0x01];
/// The UDP port unless another is chosen.
pub const PORT: u16 = 8805;

const IPV4: u16 = 0x0800;
const ARP: u16 = 0x0806;
const UDP: u8 = 17;
/// Shorter frames are padded.
const SHORTEST_FRAME: usize = 60;

/// What an emulator's port looks out for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// The address and port of the UDP form, if it is on.
    pub udp: Option<(Ipv4Addr, u16)>,
}

/// What carries a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carrier {
    /// An Ethernet frame.
    Ethernet,
    /// A UDP datagram.
    Udp,
    /// Nothing: somebody asks for the hardware address of the UDP form's address.
    Arp,
}

/// Both ends of a message, as whoever is to send one sees them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    /// Hardware addresses: from, to.
    Ethernet([u8; 6], [u8; 6]),
    /// The same, and addresses and ports.
    Udp {
        /// Hardware addresses: from, to.
        macs: ([u8; 6], [u8; 6]),
        /// From.
        from: (Ipv4Addr, u16),
        /// To.
        to: (Ipv4Addr, u16),
    },
}

/// Whether a frame is for the emulator itself, and how it is carried. Frames with the EtherType that do not begin as messages do are
/// somebody else's experiment, and so are those to other addresses.
#[inline]
pub fn carried(frame: &[u8], wanted: &Wanted) -> Option<Carrier> {
    let ethertype = u16::from_be_bytes(*frame.get(12..)?.first_chunk()?);
    match ethertype {
        ETHERTYPE => {
            let to_us = frame.starts_with(&GROUP_ADDRESS) || frame.starts_with(&OWN_ADDRESS);
            (to_us && frame[14..].starts_with(&MAGIC)).then_some(Carrier::Ethernet)
        }
        IPV4 => {
            let wanted = wanted.udp?;
            let (ip, udp) = udp_of(frame)?;
            let to = Ipv4Addr::from_octets(*ip[16..].first_chunk()?);
            ((to, u16::from_be_bytes([udp[2], udp[3]])) == wanted).then_some(Carrier::Udp)
        }
        ARP => asks_for(frame, wanted.udp?.0).then_some(Carrier::Arp),
        _ => None,
    }
}

/// The ends of the answer to a message, and the message, of a frame that is [`carried`] so.
pub fn unwrap<'f>(frame: &'f [u8], wanted: &Wanted) -> Option<(Ends, &'f [u8])> {
    let from_mac: [u8; 6] = *frame.get(6..)?.first_chunk()?;
    match carried(frame, wanted)? {
        Carrier::Ethernet => Some((Ends::Ethernet(OWN_ADDRESS, from_mac), frame.get(14..)?)),
        Carrier::Udp => {
            let (ip, udp) = udp_of(frame)?;
            let peer =
                (Ipv4Addr::from_octets(*ip[12..].first_chunk()?), u16::from_be_bytes([udp[0], udp[1]]));
            // Whoever routed it here gets the answer; a group address is nobody's.
            let own_mac = *frame.first_chunk::<6>()?;
            let own_mac = if own_mac[0] & 1 == 1 { OWN_ADDRESS } else { own_mac };
            let ends = Ends::Udp { macs: (own_mac, from_mac), from: wanted.udp?, to: peer };
            Some((ends, &udp[8..]))
        }
        Carrier::Arp => None,
    }
}

/// The IPv4 header and the datagram of an unfragmented UDP packet, the lengths of both checked.
fn udp_of(frame: &[u8]) -> Option<(&[u8], &[u8])> {
    let packet = frame.get(14..)?;
    let header = packet.first_chunk::<20>()?;
    let (length, whole) = (usize::from(header[0] & 15) * 4, u16::from_be_bytes([header[2], header[3]]));
    let fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff;
    if header[0] >> 4 != 4 || length < 20 || header[9] != UDP || fragment != 0 {
        return None;
    }
    let (ip, rest) = packet.get(..usize::from(whole))?.split_at_checked(length)?;
    let udp = rest.get(..usize::from(u16::from_be_bytes([*rest.get(4)?, *rest.get(5)?])))?;
    (udp.len() >= 8).then_some((ip, udp))
}

/// What an ARP request for IPv4 over Ethernet begins with (RFC 826), up to the operation.
const ARP_REQUEST: [u8; 8] = [0, 1, 8, 0, 6, 4, 0, 1];

fn asks_for(frame: &[u8], address: Ipv4Addr) -> bool {
    frame.get(14..22).is_some_and(|head| head == ARP_REQUEST)
        && frame.get(38..42).is_some_and(|target| target == address.octets())
}

/// The answer to an ARP request for the UDP form's address; none if the frame is something else.
pub fn arp_answer(frame: &[u8], wanted: &Wanted) -> Option<Vec<u8>> {
    if carried(frame, wanted)? != Carrier::Arp {
        return None;
    }
    let (own, asker) = (wanted.udp?.0, frame.get(22..32)?);
    let mut answer = [&asker[..6], &OWN_ADDRESS, &ARP.to_be_bytes(), &ARP_REQUEST[..7], &[2]].concat();
    answer.extend([&OWN_ADDRESS[..], &own.octets(), asker].concat());
    answer.resize(SHORTEST_FRAME, 0);
    Some(answer)
}

/// A frame with a message from one end to the other.
pub fn wrap(ends: &Ends, message: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(14 + 28 + message.len());
    match ends {
        Ends::Ethernet(from, to) => {
            frame.extend([&to[..], from, &ETHERTYPE.to_be_bytes(), message].concat());
        }
        Ends::Udp { macs, from, to } => {
            frame.extend([&macs.1[..], &macs.0, &IPV4.to_be_bytes()].concat());
            let length = (28 + message.len()) as u16;
            let [high, low] = length.to_be_bytes();
            let mut ip = vec![0x45, 0, high, low, 0, 0, 0x40, 0, 64, UDP, 0, 0];
            ip.extend([from.0.octets(), to.0.octets()].concat());
            let sum = checksum(&ip, 0);
            ip[10..12].copy_from_slice(&sum.to_be_bytes());
            let mut udp = [from.1.to_be_bytes(), to.1.to_be_bytes()].concat();
            udp.extend((length - 20).to_be_bytes());
            udp.extend([0, 0]);
            udp.extend_from_slice(message);
            let pseudo =
                ip[12..].chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum::<u32>();
            let sum = checksum(&udp, pseudo + u32::from(UDP) + u32::from(length - 20));
            udp[6..8].copy_from_slice(&(if sum == 0 { 0xffff } else { sum }).to_be_bytes());
            frame.extend(ip);
            frame.extend(udp);
        }
    }
    frame.resize(frame.len().max(SHORTEST_FRAME), 0);
    frame
}

/// The Internet checksum (RFC 1071) of `bytes` and of what `sum` has already.
fn checksum(bytes: &[u8], mut sum: u32) -> u16 {
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

    const WANTED: Wanted = Wanted { udp: Some((Ipv4Addr::new(10, 0, 0, 254), PORT)) };
    const HOST: [u8; 6] = [2, 0, 0, 0, 0, 1];

    #[test]
    fn frames_lead_there_and_back() {
        let frame = wrap(&Ends::Ethernet(HOST, GROUP_ADDRESS), b"NESP and more");
        let (ends, message) = unwrap(&frame, &Wanted { udp: None }).unwrap();
        assert_eq!(ends, Ends::Ethernet(OWN_ADDRESS, HOST));
        assert!(message.starts_with(b"NESP and more") && frame.len() == 60);

        let (macs, from) = ((HOST, OWN_ADDRESS), (Ipv4Addr::new(10, 0, 0, 1), 4000));
        let frame = wrap(&Ends::Udp { macs, from, to: WANTED.udp.unwrap() }, b"message");
        let (ends, message) = unwrap(&frame, &WANTED).unwrap();
        assert_eq!(message, b"message");
        assert_eq!(ends, Ends::Udp { macs: (OWN_ADDRESS, HOST), from: WANTED.udp.unwrap(), to: from });
        // The sum over a header with its checksum is zero (RFC 1071), and so is that over datagram and pseudo header.
        assert_eq!(checksum(&frame[14..34], 0), 0);
        let pseudo = [&frame[26..34], &[0, 17, 0, 15]].concat();
        assert_eq!(checksum(&[&frame[34..49], &[0][..], &pseudo].concat(), 0), 0);
    }

    #[test]
    fn others_frames_are_left_alone() {
        let ours = wrap(&Ends::Ethernet(HOST, GROUP_ADDRESS), b"NESP");
        assert_eq!(carried(&ours, &WANTED), Some(Carrier::Ethernet));
        for (at, byte) in [(0, 5), (13, 0xb6), (14, b'n')] {
            let mut other = ours.clone();
            other[at] = byte;
            assert_eq!(carried(&other, &WANTED), None, "byte {at}");
        }
        let ends = Ends::Udp {
            macs: (HOST, OWN_ADDRESS),
            from: (Ipv4Addr::new(10, 0, 0, 1), 4000),
            to: WANTED.udp.unwrap(),
        };
        let ours = wrap(&ends, b"NESP");
        assert_eq!(carried(&ours, &WANTED), Some(Carrier::Udp));
        assert_eq!(carried(&ours, &Wanted { udp: None }), None);
        // Version, a fragment, the protocol, address, port, lengths.
        for (at, byte) in [
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
        ] {
            let mut other = ours.clone();
            other[at] = byte;
            assert_eq!(carried(&other, &WANTED), None, "byte {at}");
        }
        for short in 0..ours.len().min(46) {
            assert_eq!(carried(&ours[..short], &WANTED), None, "{short} bytes");
        }
    }

    #[test]
    fn its_address_is_answered_for() {
        let mut asked =
            [&[0xff; 6][..], &HOST, &ARP.to_be_bytes(), &ARP_REQUEST, &HOST, &[10, 0, 0, 1]].concat();
        asked.extend([0, 0, 0, 0, 0, 0, 10, 0, 0, 254]);
        assert_eq!(carried(&asked, &WANTED), Some(Carrier::Arp));
        let answer = arp_answer(&asked, &WANTED).unwrap();
        assert_eq!((&answer[..6], &answer[6..12], answer.len()), (&HOST[..], &OWN_ADDRESS[..], 60));
        assert_eq!(
            answer[20..42],
            [&[0, 2][..], &OWN_ADDRESS, &[10, 0, 0, 254], &HOST, &[10, 0, 0, 1]].concat()
        );
        *asked.last_mut().unwrap() = 253;
        assert_eq!((carried(&asked, &WANTED), arp_answer(&asked, &WANTED)), (None, None));
    }
}
