//! IPv4 headers (RFC 791).

use crate::malformed::{Malformed, be16, be32, options, split};

const HEADER: usize = 20;

/// A checked IPv4 header. Its total length is limited to the bytes present, so that frames truncated by a
/// capture can be read.
#[derive(Debug, Clone, Copy)]
pub struct Ipv4<'a> {
    header: &'a [u8; HEADER],
    options: &'a [u8],
    payload: &'a [u8],
}

impl<'a> Ipv4<'a> {
    /// Parses the bytes after an Ethernet header.
    ///
    /// # Errors
    /// The bytes end within the header, or version, header length or total length is invalid.
    #[inline]
    pub fn check(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let (header, rest) = split::<HEADER>(bytes, "IPv4")?;
        let wrong = |field, value, wanted| Err(Malformed::Field { header: "IPv4", field, value, wanted });
        if header[0] >> 4 != 4 {
            return wrong("version", u32::from(header[0] >> 4), "4");
        }
        let len = usize::from(header[0] & 15) * 4;
        if len < HEADER {
            return wrong("header length", len as u32, "20 to 60");
        }
        let total = usize::from(be16::<2, _>(header));
        if total < len {
            return wrong("total length", total as u32, "at least the header length");
        }
        let (options, rest) = options(rest, len - HEADER, HEADER, "IPv4")?;
        Ok(Self { header, options, payload: &rest[..rest.len().min(total - len)] })
    }

    /// Bytes of the header with its options: 20 to 60.
    pub fn header_len(&self) -> usize {
        HEADER + self.options.len()
    }

    /// Length of header and payload, as the sender wrote it.
    pub fn total_len(&self) -> u16 {
        be16::<2, _>(self.header)
    }

    /// Differentiated services code point and congestion bits.
    pub fn traffic_class(&self) -> u8 {
        self.header[1]
    }

    /// Whether it is a fragment of a larger packet, the first one included.
    pub fn is_fragment(&self) -> bool {
        be16::<6, _>(self.header) & 0x3fff != 0
    }

    /// Whether it is a fragment other than the first, so that no transport header follows.
    pub fn is_later_fragment(&self) -> bool {
        be16::<6, _>(self.header) & 0x1fff != 0
    }

    /// Time to live.
    pub fn ttl(&self) -> u8 {
        self.header[8]
    }

    /// Number of the transport protocol.
    pub fn protocol(&self) -> u8 {
        self.header[9]
    }

    /// The source address.
    pub fn source(&self) -> u32 {
        be32::<12, _>(self.header)
    }

    /// The destination address.
    pub fn destination(&self) -> u32 {
        be32::<16, _>(self.header)
    }

    /// The options, padding included.
    pub fn options(&self) -> &'a [u8] {
        self.options
    }

    /// The payload without Ethernet padding, as far as the bytes reach.
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet() -> Vec<u8> {
        let mut bytes =
            vec![0x46, 3, 0, 26, 0x12, 0x34, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 1, 1, 1, 0];
        bytes.extend([7, 7, 0, 0, 0]);
        bytes
    }

    #[test]
    fn reads_options_and_cuts_padding() {
        let bytes = packet();
        let ip = Ipv4::check(&bytes).unwrap();
        assert_eq!((ip.header_len(), ip.total_len(), ip.traffic_class()), (24, 26, 3));
        assert_eq!((ip.ttl(), ip.protocol()), (64, 17));
        assert_eq!((ip.source(), ip.destination()), (0x0a00_0001, 0x0a00_0002));
        assert_eq!((ip.options(), ip.payload()), (&[1, 1, 1, 0][..], &[7, 7][..]));
        assert!(!ip.is_fragment());
    }

    #[test]
    fn tells_fragments() {
        for (bits, fragment, later) in
            [(0x4000, false, false), (0x2000, true, false), (0x2001, true, true), (1, true, true)]
        {
            let mut bytes = packet();
            bytes[6..8].copy_from_slice(&u16::to_be_bytes(bits));
            let ip = Ipv4::check(&bytes).unwrap();
            assert_eq!((ip.is_fragment(), ip.is_later_fragment()), (fragment, later), "{bits:x}");
        }
    }

    #[test]
    fn refuses() {
        for (at, value, field) in [(0, 0x66, "version"), (0, 0x44, "header length"), (3, 23, "total length")]
        {
            let mut bytes = packet();
            bytes[at] = value;
            assert!(Ipv4::check(&bytes).unwrap_err().to_string().contains(field));
        }
        assert!(Ipv4::check(&packet()[..23]).is_err());
        // Truncated by a capture: the bytes present can be read.
        assert_eq!(Ipv4::check(&packet()[..25]).unwrap().payload(), &[7]);
    }
}
