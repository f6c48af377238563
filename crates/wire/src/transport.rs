//! TCP, UDP and ICMP headers (RFC 9293, 768, 792, 4443).

use crate::malformed::{Malformed, be16, be32, options, split};

/// Protocol numbers that Longwire looks at (IANA "Assigned Internet Protocol Numbers").
pub mod protocol {
    /// IPv6 hop-by-hop options.
    pub const HOP_BY_HOP: u8 = 0;
    /// ICMP.
    pub const ICMP: u8 = 1;
    /// TCP.
    pub const TCP: u8 = 6;
    /// UDP.
    pub const UDP: u8 = 17;
    /// IPv6 routing header.
    pub const ROUTING: u8 = 43;
    /// IPv6 fragment header.
    pub const FRAGMENT: u8 = 44;
    /// Encapsulating security payload.
    pub const ENCRYPTED: u8 = 50;
    /// Authentication header.
    pub const AUTHENTICATION: u8 = 51;
    /// ICMP for IPv6.
    pub const ICMPV6: u8 = 58;
    /// No header follows.
    pub const NONE: u8 = 59;
    /// IPv6 destination options.
    pub const DESTINATION: u8 = 60;
    /// IPv6 mobility header.
    pub const MOBILITY: u8 = 135;

    /// Those whose headers begin with two ports: TCP, UDP, DCCP, SCTP, UDP-Lite.
    pub const WITH_PORTS: [u8; 5] = [TCP, UDP, 33, 132, 136];
}

/// Bits of the flags of a TCP header.
pub mod tcp_flags {
    /// No more data from the sender.
    pub const FIN: u8 = 0x01;
    /// Push.
    pub const PSH: u8 = 0x08;
    /// Congestion window reduced.
    pub const CWR: u8 = 0x80;
}

/// Whether this ICMPv6 type belongs to neighbour discovery (RFC 4861).
#[inline]
pub const fn is_neighbour_discovery(icmpv6_kind: u8) -> bool {
    matches!(icmpv6_kind, 133..=137)
}

const TCP: usize = 20;
const UDP: usize = 8;
const ICMP: usize = 8;

/// A checked TCP header.
#[derive(Debug, Clone, Copy)]
pub struct Tcp<'a> {
    header: &'a [u8; TCP],
    header_len: usize,
    payload: &'a [u8],
}

impl<'a> Tcp<'a> {
    /// Parses the bytes after an IP header.
    ///
    /// # Errors
    /// The bytes end within the header, or its length is below 20.
    #[inline]
    pub fn check(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let (header, rest) = split::<TCP>(bytes, "TCP")?;
        let len = usize::from(header[12] >> 4) * 4;
        if len < TCP {
            let (value, wanted) = (len as u32, "20 to 60");
            return Err(Malformed::Field { header: "TCP", field: "header length", value, wanted });
        }
        let (_, payload) = options(rest, len - TCP, TCP, "TCP")?;
        Ok(Self { header, header_len: len, payload })
    }

    /// Bytes of the header with its options: 20 to 60.
    pub fn header_len(&self) -> usize {
        self.header_len
    }

    /// The sequence number.
    pub fn sequence(&self) -> u32 {
        be32::<4, _>(self.header)
    }

    /// What follows the header.
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }
}

/// A checked UDP header.
#[derive(Debug, Clone, Copy)]
pub struct Udp<'a>(&'a [u8; UDP]);

impl<'a> Udp<'a> {
    /// Parses the bytes after an IP header.
    ///
    /// # Errors
    /// Shorter than 8 bytes, or its length field below 8.
    #[inline]
    pub fn check(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let (header, _) = split::<UDP>(bytes, "UDP")?;
        let len = usize::from(be16::<4, _>(header));
        if len < UDP {
            let (value, wanted) = (len as u32, "at least 8");
            return Err(Malformed::Field { header: "UDP", field: "length", value, wanted });
        }
        Ok(Self(header))
    }

    /// Length of header and payload, as the sender wrote it.
    pub fn length(&self) -> u16 {
        be16::<4, _>(self.0)
    }
}

/// A checked ICMP or ICMPv6 header.
#[derive(Debug, Clone, Copy)]
pub struct Icmp<'a>(&'a [u8; ICMP]);

impl<'a> Icmp<'a> {
    /// Parses the bytes after an IP header.
    ///
    /// # Errors
    /// Shorter than 8 bytes.
    #[inline]
    pub fn check(bytes: &'a [u8]) -> Result<Self, Malformed> {
        split::<ICMP>(bytes, "ICMP").map(|(header, _)| Self(header))
    }

    /// The type of message.
    pub fn kind(&self) -> u8 {
        self.0[0]
    }

    /// The last four bytes of the header, which depend on the type: for an echo, identifier and sequence
    /// number.
    pub fn rest_of_header(&self) -> u32 {
        be32::<4, _>(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_tcp() {
        let mut bytes =
            vec![0, 80, 1, 187, 0, 0, 0, 5, 0, 0, 0, 6, 0x60, 0x18, 0, 9, 0xab, 0xcd, 0, 0, 1, 1, 1, 0];
        bytes.extend(b"hi");
        let tcp = Tcp::check(&bytes).unwrap();
        assert_eq!((tcp.sequence(), tcp.header_len(), tcp.payload()), (5, 24, &b"hi"[..]));
        assert!(Tcp::check(&bytes[..23]).unwrap_err().to_string().contains("needs 24 bytes"));
        bytes[12] = 0x40;
        assert!(Tcp::check(&bytes).unwrap_err().to_string().contains("header length is 16"));
    }

    #[test]
    fn reads_udp() {
        let bytes = [0, 53, 0, 54, 0, 10, 0, 1, 7, 8, 0, 0];
        assert_eq!(Udp::check(&bytes).unwrap().length(), 10);
        assert!(Udp::check(&bytes[..7]).is_err());
        assert!(Udp::check(&[0, 0, 0, 0, 0, 7, 0, 0]).unwrap_err().to_string().contains("length is 7"));
    }

    #[test]
    fn reads_icmp() {
        let icmp = Icmp::check(&[8, 1, 0, 2, 0, 3, 0, 4, 5]).unwrap();
        assert_eq!((icmp.kind(), icmp.rest_of_header()), (8, 0x0003_0004));
        assert!(Icmp::check(&[0; 7]).is_err());
    }
}
