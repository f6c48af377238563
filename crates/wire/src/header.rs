//! Builders for Ethernet, IPv4 and IPv6 headers.

use crate::checksum::Sum;

/// An Ethernet header without tags.
pub fn ethernet_header(destination: [u8; 6], source: [u8; 6], ethertype: u16) -> [u8; 14] {
    let mut header = [0; 14];
    header[..6].copy_from_slice(&destination);
    header[6..12].copy_from_slice(&source);
    header[12..].copy_from_slice(&ethertype.to_be_bytes());
    header
}

/// Fields of an IPv4 header without options (RFC 791, 3.1): not a fragment, and without DF.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ipv4Header {
    /// The source address.
    pub source: u32,
    /// The destination address.
    pub destination: u32,
    /// Number of the transport protocol.
    pub protocol: u8,
    /// Time to live.
    pub ttl: u8,
    /// Code point and congestion bits.
    pub traffic_class: u8,
    /// The identification.
    pub id: u16,
    /// Bytes after the header: at most 65515.
    pub payload_len: u16,
}

impl Ipv4Header {
    /// Its bytes, checksum included.
    pub fn bytes(&self) -> [u8; 20] {
        let mut header = [0; 20];
        header[0] = 0x45;
        header[1] = self.traffic_class;
        header[2..4].copy_from_slice(&self.payload_len.saturating_add(20).to_be_bytes());
        header[4..6].copy_from_slice(&self.id.to_be_bytes());
        header[8] = self.ttl;
        header[9] = self.protocol;
        header[12..16].copy_from_slice(&self.source.to_be_bytes());
        header[16..].copy_from_slice(&self.destination.to_be_bytes());
        let checksum = Sum::ZERO.bytes(&header).checksum();
        header[10..12].copy_from_slice(&checksum.to_be_bytes());
        header
    }
}

/// Fields of an IPv6 header (RFC 8200, 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ipv6Header {
    /// The source address.
    pub source: u128,
    /// The destination address.
    pub destination: u128,
    /// Number of the next header.
    pub next_header: u8,
    /// Hop limit.
    pub hop_limit: u8,
    /// Bytes behind the header.
    pub payload_len: u16,
}

impl Ipv6Header {
    /// Its bytes.
    pub fn bytes(&self) -> [u8; 40] {
        let mut header = [0; 40];
        header[0] = 0x60;
        header[4..6].copy_from_slice(&self.payload_len.to_be_bytes());
        header[6] = self.next_header;
        header[7] = self.hop_limit;
        header[8..24].copy_from_slice(&self.source.to_be_bytes());
        header[24..].copy_from_slice(&self.destination.to_be_bytes());
        header
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ethernet, Ipv4, Ipv6, ethertype, protocol};

    #[test]
    fn what_is_written_can_be_read() {
        let bytes = ethernet_header([1; 6], [2; 6], ethertype::IPV6);
        let ethernet = Ethernet::check(&bytes).unwrap();
        assert_eq!((ethernet.destination(), ethernet.source()), ([1; 6], [2; 6]));
        assert_eq!(ethernet.ethertype(), ethertype::IPV6);
        let (source, destination, ttl, id) = (0x0a00_0001, 0x0a00_0002, 64, 7);
        let protocol = protocol::ICMP;
        let header = Ipv4Header { source, destination, protocol, ttl, traffic_class: 3, id, payload_len: 8 };
        let bytes = header.bytes();
        let ip = Ipv4::check(&bytes).unwrap();
        assert_eq!((ip.source(), ip.destination(), ip.ttl()), (source, destination, 64));
        assert_eq!(bytes[4..6], [0, 7], "the identification");
        assert_eq!((ip.protocol(), ip.traffic_class(), ip.total_len(), ip.is_fragment()), (1, 3, 28, false));
        assert_eq!(Sum::ZERO.bytes(&bytes).checksum(), 0);
        let header =
            Ipv6Header { source: 1, destination: 2, next_header: 58, hop_limit: 255, payload_len: 9 };
        let bytes = header.bytes();
        let ip = Ipv6::check(&bytes).unwrap();
        assert_eq!((ip.source(), ip.destination(), ip.next_header(), ip.hop_limit()), (1, 2, 58, 255));
        assert_eq!(ip.payload_len(), 9);
    }
}
