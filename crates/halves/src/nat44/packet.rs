//! Packets that the program leaves to its control half: parsing, and rewriting of addresses, ports and
//! checksums.

use super::table::Endpoint;
use longwire_wire::checksum::update;
use std::net::Ipv4Addr;

/// The protocols that are translated.
pub(super) const ICMP: u8 = 1;
pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;

/// Offset of the IPv4 header in a frame, and of its fields (RFC 791, section 3.1).
const IP: usize = 14;
const IDENTIFICATION: usize = 4;
const FRAGMENT: usize = 6;
const PROTOCOL: usize = 9;
const CHECK: usize = 10;
/// Fragments: more follow; the offset.
const MORE: u16 = 0x2000;
const OFFSET: u16 = 0x1fff;
/// Length of the ICMP header before the packet that an error is about.
const ICMP_HEADER: usize = 8;
/// TCP flags recorded by the program: FIN, SYN, RST, ACK.
const NOTED: u8 = 0x17;

/// Common fields of a packet's fragments (RFC 791, section 3.2): source, destination, protocol,
/// identification.
pub(super) type FragmentKey = (Ipv4Addr, Ipv4Addr, u8, u16);

/// The packet of which a frame is a fragment, and whether it is not the first fragment.
pub(super) fn fragment_key(frame: &[u8]) -> Option<(FragmentKey, bool)> {
    after_ip(frame, IP).ok()?;
    let fragment = word(frame, IP + FRAGMENT).ok()?;
    let [source, destination] = [12, 16].map(|field| address(frame, IP + field).ok());
    let (protocol, identification) =
        (byte(frame, IP + PROTOCOL).ok()?, word(frame, IP + IDENTIFICATION).ok()?);
    (fragment & (MORE | OFFSET) != 0)
        .then_some(((source?, destination?, protocol, identification), fragment & OFFSET != 0))
}

/// Which endpoint of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Source,
    Destination,
}

/// Kinds of packets for a translator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// TCP or UDP with its ports, whole or a first fragment; the flags of TCP.
    Ports { source: u16, destination: u16, flags: u8 },
    /// A ping, with its identifier.
    Query(u16),
    /// The answer to one.
    Answer(u16),
    /// An ICMP error about a packet with this protocol, source and destination.
    Error { protocol: u8, source: (Ipv4Addr, u16), destination: (Ipv4Addr, u16) },
    /// A fragment other than the first.
    Later,
    /// Something else.
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Packet {
    pub source: Ipv4Addr,
    pub destination: Ipv4Addr,
    pub protocol: u8,
    pub identification: u16,
    /// Whether later fragments follow the first.
    pub has_more: bool,
    pub kind: Kind,
    /// Offset of the header after IP's.
    transport: usize,
}

/// Reason why a packet can't be parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ParseError {
    /// This many bytes are needed.
    Needs(usize),
    /// Not a packet that the program should send up.
    Wrong,
}

impl Packet {
    /// Parses the first bytes of an IPv4 frame.
    ///
    /// # Errors
    /// If more bytes are needed, or it is invalid.
    pub fn read(frame: &[u8]) -> Result<Self, ParseError> {
        if word(frame, 12)? != 0x0800 {
            return Err(ParseError::Wrong);
        }
        let transport = after_ip(frame, IP)?;
        let fragment = word(frame, IP + FRAGMENT)?;
        let protocol = byte(frame, IP + PROTOCOL)?;
        let [source, destination] = [12, 16].map(|field| address(frame, IP + field));
        let kind = if fragment & OFFSET != 0 { Kind::Later } else { kind(frame, protocol, transport)? };
        Ok(Self {
            source: source?,
            destination: destination?,
            protocol,
            identification: word(frame, IP + IDENTIFICATION)?,
            has_more: fragment & MORE != 0,
            kind,
            transport,
        })
    }

    /// Writes another endpoint into it; into a later fragment or an error, only the address.
    pub fn rewrite(&self, frame: &mut [u8], side: Side, to: Endpoint) {
        let at = IP + if side == Side::Source { 12 } else { 16 };
        let mut covered = Vec::with_capacity(3);
        write_address(frame, at, to.address, &mut covered);
        adjust(frame, IP + CHECK, &covered, false);
        let port = match self.kind {
            Kind::Ports { .. } => self.transport + if side == Side::Source { 0 } else { 2 },
            Kind::Query(_) | Kind::Answer(_) => self.transport + 4,
            Kind::Error { .. } | Kind::Later | Kind::Other => return,
        };
        // ICMP's checksum does not cover addresses (RFC 792).
        if self.protocol == ICMP {
            covered.clear();
        }
        write_word(frame, port, to.port, &mut covered);
        adjust(frame, self.transport + check_of(self.protocol), &covered, self.protocol == UDP);
    }

    /// Writes another endpoint into the packet that an ICMP error is about (RFC 5508, REQ-4 and REQ-5). The
    /// inner transport checksum is not changed.
    pub fn rewrite_inner(&self, frame: &mut [u8], side: Side, to: Endpoint) {
        let Kind::Error { protocol, .. } = self.kind else { return };
        let ip = self.transport + ICMP_HEADER;
        let Ok(inner) = after_ip(frame, ip) else { return };
        let (at, port) = match side {
            Side::Source => (ip + 12, inner),
            Side::Destination => (ip + 16, inner + 2),
        };
        let port = if protocol == ICMP { inner + 4 } else { port };
        let mut covered = Vec::with_capacity(4);
        write_address(frame, at, to.address, &mut covered);
        let before = word(frame, ip + CHECK);
        adjust(frame, ip + CHECK, &covered, false);
        if let (Ok(before), Ok(after)) = (before, word(frame, ip + CHECK)) {
            covered.push((before, after));
        }
        write_word(frame, port, to.port, &mut covered);
        adjust(frame, self.transport + check_of(ICMP), &covered, false);
    }
}

fn kind(frame: &[u8], protocol: u8, at: usize) -> Result<Kind, ParseError> {
    const ECHO_REPLY: u8 = 0;
    const ECHO_REQUEST: u8 = 8;
    /// Destination unreachable, source quench, time exceeded, parameter problem (RFC 792).
    const ERRORS: [u8; 4] = [3, 4, 11, 12];
    match protocol {
        TCP => {
            // With the checksum, which changes.
            byte(frame, at + check_of(TCP) + 1)?;
            let flags = byte(frame, at + 13)? & NOTED;
            Ok(Kind::Ports { source: word(frame, at)?, destination: word(frame, at + 2)?, flags })
        }
        UDP => {
            byte(frame, at + check_of(UDP) + 1)?;
            Ok(Kind::Ports { source: word(frame, at)?, destination: word(frame, at + 2)?, flags: 0 })
        }
        ICMP => match byte(frame, at)? {
            ECHO_REQUEST => Ok(Kind::Query(word(frame, at + 4)?)),
            ECHO_REPLY => Ok(Kind::Answer(word(frame, at + 4)?)),
            kind if ERRORS.contains(&kind) => about(frame, at + ICMP_HEADER),
            _ => Ok(Kind::Other),
        },
        _ => Ok(Kind::Other),
    }
}

/// The packet that an ICMP error is about.
fn about(frame: &[u8], ip: usize) -> Result<Kind, ParseError> {
    let inner = after_ip(frame, ip)?;
    let protocol = byte(frame, ip + PROTOCOL)?;
    let is_first = word(frame, ip + FRAGMENT)? & OFFSET == 0;
    let (source, destination) = match protocol {
        TCP | UDP if is_first => (word(frame, inner)?, word(frame, inner + 2)?),
        // The identifier of a query belongs to its sender, that of an answer to its receiver.
        ICMP if is_first => (word(frame, inner + 4)?, word(frame, inner + 4)?),
        _ => return Ok(Kind::Other),
    };
    let [from, to] = [12, 16].map(|field| address(frame, ip + field));
    Ok(Kind::Error { protocol, source: (from?, source), destination: (to?, destination) })
}

/// Offset of the header after an IPv4 header.
fn after_ip(frame: &[u8], ip: usize) -> Result<usize, ParseError> {
    const VERSION: u8 = 4;
    const LEAST: usize = 20;
    let first = byte(frame, ip)?;
    let length = usize::from(first & 15) * 4;
    if first >> 4 != VERSION || length < LEAST {
        return Err(ParseError::Wrong);
    }
    Ok(ip + length)
}

/// Offset of the checksum in a protocol's header (RFC 9293, RFC 768, RFC 792).
const fn check_of(protocol: u8) -> usize {
    match protocol {
        TCP => 16,
        UDP => 6,
        _ => 2,
    }
}

/// Replaced 16-bit words: old and new.
type Changes = Vec<(u16, u16)>;

fn write_address(frame: &mut [u8], at: usize, address: Ipv4Addr, changes: &mut Changes) {
    let [a, b, c, d] = address.octets();
    write_word(frame, at, u16::from_be_bytes([a, b]), changes);
    write_word(frame, at + 2, u16::from_be_bytes([c, d]), changes);
}

fn write_word(frame: &mut [u8], at: usize, value: u16, changes: &mut Changes) {
    if let Some(place) = frame.get_mut(at..at + 2) {
        changes.push((u16::from_be_bytes([place[0], place[1]]), value));
        place.copy_from_slice(&value.to_be_bytes());
    }
}

/// Updates a checksum for changes; `is_udp` marks a checksum that is not written as 0 (RFC 768).
fn adjust(frame: &mut [u8], at: usize, changes: &[(u16, u16)], is_udp: bool) {
    let Ok(check) = word(frame, at) else { return };
    if is_udp && check == 0 {
        return;
    }
    let check = changes.iter().fold(check, |check, &(old, new)| update(check, old, new));
    let check = if is_udp && check == 0 { 0xffff } else { check };
    frame[at..at + 2].copy_from_slice(&check.to_be_bytes());
}

fn byte(frame: &[u8], at: usize) -> Result<u8, ParseError> {
    frame.get(at).copied().ok_or(ParseError::Needs(at + 1))
}

fn word(frame: &[u8], at: usize) -> Result<u16, ParseError> {
    let bytes = frame.get(at..at + 2).ok_or(ParseError::Needs(at + 2))?;
    Ok(u16::from_be_bytes([bytes[0], bytes[1]]))
}

fn address(frame: &[u8], at: usize) -> Result<Ipv4Addr, ParseError> {
    let bytes = frame.get(at..at + 4).ok_or(ParseError::Needs(at + 4))?;
    Ok(Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_wire::checksum::{Sum, pseudo_v4};

    const INSIDE: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 9);
    const OUTSIDE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
    const FAR: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);

    /// An IPv4 packet with this payload and these options.
    fn ip(source: Ipv4Addr, destination: Ipv4Addr, protocol: u8, options: &[u8], rest: &[u8]) -> Vec<u8> {
        let first = 0x45 + options.len() as u8 / 4;
        let length = (20 + options.len() + rest.len()) as u16;
        let head = [&[first, 0][..], &length.to_be_bytes(), &[0, 7, 0, 0, 64, protocol, 0, 0]].concat();
        let mut header = [&head[..], &source.octets(), &destination.octets(), options].concat();
        let check = Sum::ZERO.bytes(&header).checksum();
        header[10..12].copy_from_slice(&check.to_be_bytes());
        [&header, rest].concat()
    }

    fn frame(packet: Vec<u8>) -> Vec<u8> {
        [vec![2; 12], vec![8, 0], packet].concat()
    }

    /// A header of TCP or UDP with its checksum.
    fn transport(protocol: u8, ends: [Ipv4Addr; 2], ports: [u16; 2]) -> Vec<u8> {
        let mut bytes = ports.map(u16::to_be_bytes).as_flattened().to_vec();
        let rest: &[u8] = match protocol {
            TCP => &[0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x12, 1, 0, 0, 0, 0, 0],
            _ => &[0, 12, 0, 0, 1, 2, 3, 4],
        };
        bytes.extend(rest);
        let sum = pseudo_v4(ends[0].into(), ends[1].into(), protocol, bytes.len() as u16);
        let check = sum.bytes(&bytes).checksum();
        let at = check_of(protocol);
        bytes[at..at + 2].copy_from_slice(&check.to_be_bytes());
        bytes
    }

    /// An ICMP header followed by `rest`.
    fn icmp(kind: u8, identifier: u16, rest: &[u8]) -> Vec<u8> {
        let mut bytes = [&[kind, 0, 0, 0][..], &identifier.to_be_bytes(), &[0, 1], rest].concat();
        let check = Sum::ZERO.bytes(&bytes).checksum();
        bytes[2..4].copy_from_slice(&check.to_be_bytes());
        bytes
    }

    fn endpoint(address: Ipv4Addr, port: u16, protocol: u8) -> Endpoint {
        Endpoint { address, port, protocol }
    }

    #[test]
    fn packets_are_rewritten_as_if_they_had_been_made_so() {
        for (protocol, options) in [(TCP, &[][..]), (UDP, &[]), (TCP, &[1, 1, 1, 0])] {
            let made = |source, destination, ports| {
                let rest = transport(protocol, [source, destination], ports);
                frame(ip(source, destination, protocol, options, &rest))
            };
            let mut out = made(INSIDE, FAR, [5000, 80]);
            let read = Packet::read(&out).unwrap();
            let flags = if protocol == TCP { 0x12 } else { 0 };
            assert_eq!(read.kind, Kind::Ports { source: 5000, destination: 80, flags });
            assert_eq!((read.source, read.destination), (INSIDE, FAR));
            read.rewrite(&mut out, Side::Source, endpoint(OUTSIDE, 40_001, protocol));
            assert_eq!(out, made(OUTSIDE, FAR, [40_001, 80]));
            let mut back = made(FAR, OUTSIDE, [80, 40_001]);
            Packet::read(&back).unwrap().rewrite(
                &mut back,
                Side::Destination,
                endpoint(INSIDE, 5000, protocol),
            );
            assert_eq!(back, made(FAR, INSIDE, [80, 5000]));
        }
        let ping = |source, identifier| frame(ip(source, FAR, ICMP, &[], &icmp(8, identifier, b"ping")));
        let mut out = ping(INSIDE, 7);
        let read = Packet::read(&out).unwrap();
        assert_eq!(read.kind, Kind::Query(7));
        read.rewrite(&mut out, Side::Source, endpoint(OUTSIDE, 8, ICMP));
        assert_eq!(out, ping(OUTSIDE, 8));
    }

    #[test]
    fn no_checksum_of_udp_stays_none() {
        let mut out = frame(ip(INSIDE, FAR, UDP, &[], &[0x13, 0x88, 0, 53, 0, 12, 0, 0, 1, 2, 3, 4]));
        let read = Packet::read(&out).unwrap();
        read.rewrite(&mut out, Side::Source, endpoint(OUTSIDE, 9, UDP));
        assert_eq!(out[34..42], [0, 9, 0, 53, 0, 12, 0, 0]);
    }

    #[test]
    fn errors_are_rewritten_with_what_they_are_about() {
        for protocol in [TCP, UDP, ICMP] {
            // A router on the path reports that our packet was too long, or unreachable.
            let made = |own: Ipv4Addr, port: u16| {
                // Its own checksum is that of the packet sent outside.
                let rest = match protocol {
                    ICMP => icmp(8, port, b"ping"),
                    _ => transport(protocol, [INSIDE, FAR], [port, 80]),
                };
                let rest = if protocol == ICMP {
                    [&[8, 0, 1, 1][..], &rest[4..]].concat()
                } else {
                    rest[..8].to_vec()
                };
                let mut about = ip(own, FAR, protocol, &[], &rest);
                // Where the sums of TCP and UDP would differ.
                if protocol == UDP {
                    (about[26], about[27]) = (9, 9);
                }
                frame(ip(FAR, own, ICMP, &[], &icmp(3, 0, &about)))
            };
            let mut error = made(OUTSIDE, 40_001);
            let read = Packet::read(&error).unwrap();
            let destination = if protocol == ICMP { 40_001 } else { 80 };
            let about = Kind::Error { protocol, source: (OUTSIDE, 40_001), destination: (FAR, destination) };
            assert_eq!(read.kind, about);
            let inside = endpoint(INSIDE, 5000, protocol);
            read.rewrite_inner(&mut error, Side::Source, inside);
            read.rewrite(&mut error, Side::Destination, inside);
            assert_eq!(error, made(INSIDE, 5000), "{protocol}");
        }
    }

    #[test]
    fn what_is_missing_is_said() {
        let whole = frame(ip(INSIDE, FAR, TCP, &[1; 40], &transport(TCP, [INSIDE, FAR], [1, 2])));
        assert_eq!(Packet::read(&whole[..64]), Err(ParseError::Needs(14 + 60 + 18)));
        for length in 0..whole.len() {
            match Packet::read(&whole[..length]) {
                Ok(_) => assert!(length >= 14 + 60 + 18),
                Err(ParseError::Needs(more)) => assert!(more > length),
                Err(ParseError::Wrong) => panic!("{length}"),
            }
        }
        let mut other = whole.clone();
        other[12] = 0x86;
        assert_eq!(Packet::read(&other), Err(ParseError::Wrong));
    }

    #[test]
    fn later_parts_have_addresses_only() {
        let mut part = frame(ip(INSIDE, FAR, UDP, &[], &[1, 2, 3, 4, 5, 6, 7, 8]));
        (part[20], part[21]) = (0, 3);
        let read = Packet::read(&part).unwrap();
        assert_eq!((read.kind, read.identification, read.has_more), (Kind::Later, 7, false));
        read.rewrite(&mut part, Side::Source, endpoint(OUTSIDE, 9, UDP));
        assert_eq!((&part[26..30], &part[34..]), (&OUTSIDE.octets()[..], &[1, 2, 3, 4, 5, 6, 7, 8][..]));
    }
}
