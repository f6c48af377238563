//! Support for tests: frames, and a router with three ports.

use crate::ports::{InterfaceAddress, RouterPort};
use longwire_wire::checksum::Sum;
use longwire_wire::{Ipv4Header, Ipv6Header, ethernet_header, ethertype};

/// MAC address of the router's port number `port`.
pub const fn mac(port: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0xff, port]
}

/// MAC address of the host at the router's port number `port`.
pub const fn host_mac(port: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, port]
}

/// Three ports with the indices 10, 20 and 30: 10.0.N.1/24 and fd0N::1/64.
pub fn three_ports() -> Vec<RouterPort> {
    let port = |number: u8| RouterPort {
        place: 10 + 10 * u16::from(number),
        mac: mac(number),
        mtu: 1500,
        v4: vec![InterfaceAddress { address: 0x0a00_0001 | u32::from(number) << 8, len: 24 }],
        v6: vec![InterfaceAddress { address: (0xfd00 | u128::from(number)) << 112 | 1, len: 64 }],
    };
    (0..3).map(port).collect()
}

/// A frame from the host at port 0 to the router: protocol UDP in the IPv4 header, arbitrary payload.
pub fn frame_v4(source: [u8; 4], destination: [u8; 4], ttl: u8, payload: &[u8]) -> Vec<u8> {
    let header = Ipv4Header {
        source: u32::from_be_bytes(source),
        destination: u32::from_be_bytes(destination),
        protocol: 17,
        ttl,
        traffic_class: 0,
        id: 0x1234,
        payload_len: payload.len() as u16,
    };
    [&ethernet_header(mac(0), host_mac(0), ethertype::IPV4)[..], &header.bytes(), payload].concat()
}

/// An IPv6 frame with this payload.
pub fn frame_v6(source: u128, destination: u128, next_header: u8, hop_limit: u8, payload: &[u8]) -> Vec<u8> {
    let header =
        Ipv6Header { source, destination, next_header, hop_limit, payload_len: payload.len() as u16 };
    [&ethernet_header(mac(0), host_mac(0), ethertype::IPV6)[..], &header.bytes(), payload].concat()
}

/// Sets the IPv4 header's checksum, over its declared length.
pub fn fix(frame: &mut [u8]) {
    let end = 14 + usize::from(frame[14] & 15) * 4;
    let end = end.clamp(34, frame.len());
    frame[24..26].fill(0);
    let checksum = Sum::ZERO.bytes(&frame[14..end]).checksum();
    frame[24..26].copy_from_slice(&checksum.to_be_bytes());
}
