//! Bindings in the format of the program's map, and in messages.

use super::table::Endpoint;
use crate::protocol_name;
use crate::session::{Entry, double_at};
use serde_json::{Value, json};
use std::net::Ipv4Addr;

/// Both entries of a binding, inside and external, with the TCP note of its first packet, and its time.
pub(super) fn entries((inside, external): (Endpoint, Endpoint), noted: u16, time: u64) -> [Entry; 2] {
    [(0, inside, external, noted, 1u64), (1, external, inside, 0, 0)].map(
        |(side, from, to, noted, packets)| {
            let value =
                [&end(to)[..], &noted.to_le_bytes(), &packets.to_le_bytes(), &time.to_le_bytes()].concat();
            (key(from, side), value)
        },
    )
}

/// An endpoint in the format of the program's map.
fn end(endpoint: Endpoint) -> [u8; 6] {
    let ([a, b, c, d], [high, low]) = (endpoint.address.octets(), endpoint.port.to_be_bytes());
    [a, b, c, d, high, low]
}

/// The key of an entry: side 0 for the source, 1 for the destination.
pub(super) fn key(endpoint: Endpoint, side: u8) -> Vec<u8> {
    [&end(endpoint)[..], &[endpoint.protocol, side]].concat()
}

/// Parses one side of a binding from the program's map: 0 for the source, 1 for the destination; both
/// endpoints, and its usage. None if it is invalid.
pub(super) fn read((key, value): &Entry) -> Option<(u8, Endpoint, Endpoint, BindingUsage)> {
    let (&[.., protocol, side], end) = (key.first_chunk::<8>()?, |bytes: &[u8]| {
        let &[a, b, c, d, high, low] = bytes.first_chunk()?;
        Some((Ipv4Addr::new(a, b, c, d), u16::from_be_bytes([high, low])))
    });
    let endpoint = |(address, port)| Endpoint { address, port, protocol };
    Some((side, endpoint(end(key)?), endpoint(end(value)?), BindingUsage::read(value)?))
}

pub(super) fn told(event: &str, inside: Endpoint, external: Endpoint) -> Value {
    let text = |end: Endpoint| format!("{}:{}", end.address, end.port);
    json!({ "event": event, "protocol": protocol_name(inside.protocol), "inside": text(inside),
        "external": text(external) })
}

pub(super) fn between(inside: Endpoint, external: Endpoint) -> String {
    let protocol = protocol_name(inside.protocol);
    format!("{protocol} {}:{} as {}:{}", inside.address, inside.port, external.address, external.port)
}

/// What the program has recorded about one side of a binding.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct BindingUsage {
    pub flags: u8,
    pub packets: u64,
    pub last: u64,
}

impl BindingUsage {
    /// Parses a value of the program's map.
    pub fn read(value: &[u8]) -> Option<Self> {
        // The upper bits are a hash.
        let flags = *value.get(6)? & 0x1f;
        Some(Self { flags, packets: double_at(value, 8)?, last: double_at(value, 16)? })
    }
}

#[cfg(test)]
mod tests {
    use super::super::packet::UDP;
    use super::*;

    #[test]
    fn entries_are_as_the_program_has_them() {
        let end = |address: [u8; 4], port| Endpoint { address: Ipv4Addr::from(address), port, protocol: UDP };
        let [out, back] = entries((end([10, 0, 0, 1], 0x1388), end([192, 0, 2, 1], 0x9c41)), 0x1a02, 5);
        assert_eq!(out.0, [10, 0, 0, 1, 0x13, 0x88, 17, 0]);
        assert_eq!(back.0, [192, 0, 2, 1, 0x9c, 0x41, 17, 1]);
        let (inside, outside) = (end([10, 0, 0, 1], 0x1388), end([192, 0, 2, 1], 0x9c41));
        let noted = BindingUsage { flags: 2, packets: 1, last: 5 };
        assert_eq!(read(&out), Some((0, inside, outside, noted)));
        assert_eq!(read(&back), Some((1, outside, inside, BindingUsage { flags: 0, packets: 0, last: 5 })));
        assert_eq!(read(&(vec![0; 7], back.1.clone())), None);
        let number = |number: u64| number.to_le_bytes();
        assert_eq!(out.1, [&[192, 0, 2, 1, 0x9c, 0x41, 2, 0x1a][..], &number(1), &number(5)].concat());
        assert_eq!(back.1, [&[10, 0, 0, 1, 0x13, 0x88, 0, 0][..], &number(0), &number(5)].concat());
    }
}
