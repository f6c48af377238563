//! Frames for forwarders, with checksums computed independently.

use etherparse::{IpNumber, PacketBuilder, PacketBuilderStep, TcpHeader, ip_number};

/// Addresses of the Ethernet header of every frame: destination, source.
pub const MACS: [[u8; 6]; 2] = [[2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1]];
/// The client, a host with a private address.
pub const CLIENT: [u8; 4] = [10, 0, 0, 1];
/// The server.
pub const SERVER: [u8; 4] = [192, 0, 2, 80];
/// The client in IPv6.
pub const CLIENT6: [u8; 16] = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
/// The server in IPv6.
pub const SERVER6: [u8; 16] = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];

/// Offsets in a frame with an IPv4 header without options.
pub const TTL: usize = 22;
pub const CHECK: usize = 24;
pub const TRANSPORT: usize = 34;
/// Offsets in a frame with an IPv6 header.
pub const HOP_LIMIT: usize = 21;
pub const TRANSPORT6: usize = 54;

/// Builder of an IPv4 packet.
pub fn v4(source: [u8; 4], destination: [u8; 4]) -> PacketBuilderStep<etherparse::IpHeaders> {
    PacketBuilder::ethernet2(MACS[1], MACS[0]).ipv4(source, destination, 64)
}

/// Builder of an IPv6 packet from the client to the server.
pub fn v6() -> PacketBuilderStep<etherparse::IpHeaders> {
    PacketBuilder::ethernet2(MACS[1], MACS[0]).ipv6(CLIENT6, SERVER6, 64)
}

/// Builder of an IPv4 packet from the client to the server with four bytes of no-operation options.
pub fn v4_options() -> PacketBuilderStep<etherparse::IpHeaders> {
    let mut header = etherparse::Ipv4Header::new(0, 64, ip_number::TCP, CLIENT, SERVER).unwrap();
    header.options = [1, 1, 1, 0].into();
    PacketBuilder::ethernet2(MACS[1], MACS[0]).ip(etherparse::IpHeaders::Ipv4(header, Default::default()))
}

/// The frame of a TCP packet with these flags and 4 bytes of data: sequence number 1000, acknowledgement
/// number 2000.
pub fn tcp(
    ip: PacketBuilderStep<etherparse::IpHeaders>,
    ports: [u16; 2],
    set: impl FnOnce(&mut TcpHeader),
) -> Vec<u8> {
    tcp_with(ip, ports, b"data", set)
}

/// A TCP segment with this data.
pub fn tcp_with(
    ip: PacketBuilderStep<etherparse::IpHeaders>,
    ports: [u16; 2],
    data: &[u8],
    set: impl FnOnce(&mut TcpHeader),
) -> Vec<u8> {
    let mut header = TcpHeader::new(ports[0], ports[1], 1000, 512);
    header.acknowledgment_number = 2000;
    set(&mut header);
    let mut frame = Vec::new();
    ip.tcp_header(header).write(&mut frame, data).unwrap();
    frame
}

/// The frame of a UDP packet.
pub fn udp(ip: PacketBuilderStep<etherparse::IpHeaders>, ports: [u16; 2], data: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    ip.udp(ports[0], ports[1]).write(&mut frame, data).unwrap();
    frame
}

/// The frame of an echo request or reply, with this identifier and sequence number 1.
pub fn echo(ip: PacketBuilderStep<etherparse::IpHeaders>, request: bool, identifier: u16) -> Vec<u8> {
    let mut frame = Vec::new();
    let header = etherparse::IcmpEchoHeader { id: identifier, seq: 1 };
    let kind = if request {
        etherparse::Icmpv4Type::EchoRequest(header)
    } else {
        etherparse::Icmpv4Type::EchoReply(header)
    };
    ip.icmpv4(kind).write(&mut frame, b"ping").unwrap();
    frame
}

/// An IPv4 address in maps: ::ffff:a.b.c.d.
pub fn mapped(address: [u8; 4]) -> [u8; 16] {
    std::net::Ipv4Addr::from(address).to_ipv6_mapped().octets()
}

/// The flags of a TCP header, set by name.
pub fn syn(header: &mut TcpHeader) {
    header.syn = true;
}

/// Sets ACK.
pub fn ack(header: &mut TcpHeader) {
    header.ack = true;
}

/// Asserts that all checksums of an Ethernet frame are right.
pub fn assert_checksums(frame: &[u8]) {
    let header = usize::from(frame[14] & 15) * 4;
    let (protocol, pseudo, transport) = if frame[12..14] == [8, 0] {
        assert_eq!(sum(&frame[14..14 + header]), 0xffff, "of IPv4, {frame:02x?}");
        (frame[23], &frame[26..34], &frame[14 + header..])
    } else {
        (frame[20], &frame[22..54], &frame[TRANSPORT6..])
    };
    let head = [0, protocol, (transport.len() >> 8) as u8, transport.len() as u8];
    let covered = match IpNumber(protocol) {
        ip_number::UDP if transport[6..8] == [0, 0] => return,
        ip_number::TCP | ip_number::UDP => [pseudo, &head, transport].concat(),
        ip_number::ICMP => transport.to_vec(),
        other => panic!("no checksum of {other:?} is known"),
    };
    assert_eq!(sum(&covered), 0xffff, "of protocol {protocol}, {frame:02x?}");
}

/// The sum of 16-bit words in one's complement (RFC 1071): 0xffff if a checksum in them is right.
fn sum(bytes: &[u8]) -> u16 {
    let word = |pair: &[u8]| u64::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]));
    let mut sum: u64 = bytes.chunks(2).map(word).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// The frame with bytes at an offset replaced.
pub fn patched(frame: &[u8], place: usize, bytes: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    frame[place..place + bytes.len()].copy_from_slice(bytes);
    frame
}

/// An IPv6 frame with these extension headers: each begins with a next-header byte, which is set here.
pub fn extended(frame: &[u8], headers: &[(u8, &[u8])]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    for (number, header) in headers.iter().rev() {
        let mut header = header.to_vec();
        header[0] = std::mem::replace(&mut frame[20], *number);
        frame.splice(TRANSPORT6..TRANSPORT6, header);
    }
    let length = (frame.len() - TRANSPORT6) as u16;
    patched(&frame, 18, &length.to_be_bytes())
}

/// A header of options for the destination, of padding (RFC 8200, section 4.6), and its number.
pub const OPTIONS6: (u8, &[u8]) = (60, &[0, 0, 1, 4, 0, 0, 0, 0]);
/// A header of the first fragment (section 4.5), and its number.
pub const FIRST6: (u8, &[u8]) = (44, &[0, 0, 0, 1, 0, 0, 0, 9]);
/// A header of a fragment 8 bytes on.
pub const LATER6: (u8, &[u8]) = (44, &[0, 0, 0, 9, 0, 0, 0, 9]);
