//! IPv6 headers and the walk over their extension headers (RFC 8200).

use crate::malformed::{Malformed, be16, part, split};
use crate::transport::protocol;

const HEADER: usize = 40;
/// Most extension headers that are walked over; real packets have one or two.
pub const MAX_EXTENSIONS: usize = 8;

/// A checked IPv6 header. Its payload length is limited to the bytes present, so that frames truncated by a
/// capture can be read.
#[derive(Debug, Clone, Copy)]
pub struct Ipv6<'a> {
    header: &'a [u8; HEADER],
    payload: &'a [u8],
}

/// The transport header of an IPv6 packet and what precedes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transport {
    /// Number of the protocol.
    pub protocol: u8,
    /// Its offset from the first byte of the IPv6 header.
    pub offset: usize,
    /// Whether the packet is a fragment (the first one: later ones have no transport header).
    pub is_fragment: bool,
    /// Whether it has a routing header, so that its destination may not be the last one.
    pub is_routed: bool,
}

/// Result of walking over an IPv6 packet's headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ipv6Payload {
    /// A transport header.
    Transport(Transport),
    /// The bytes of a later fragment.
    Later {
        /// Next header from the fragment header: the fragmented part may begin with more extension headers.
        protocol: u8,
    },
    /// No readable header: encrypted, or no next header.
    Closed {
        /// 50 for ESP, 59 for no next header.
        protocol: u8,
        /// Whether the packet is a fragment.
        is_fragment: bool,
    },
    /// More extension headers than [`MAX_EXTENSIONS`], or the packet ends within them.
    Beyond {
        /// Next header of the last header walked over.
        protocol: u8,
        /// Whether one of them is a fragment header.
        is_fragment: bool,
    },
}

impl<'a> Ipv6<'a> {
    /// Parses the bytes after an Ethernet header.
    ///
    /// # Errors
    /// Shorter than 40 bytes, or another version.
    #[inline]
    pub fn check(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let (header, rest) = split::<HEADER>(bytes, "IPv6")?;
        let version = header[0] >> 4;
        if version != 6 {
            let value = u32::from(version);
            return Err(Malformed::Field { header: "IPv6", field: "version", value, wanted: "6" });
        }
        let len = usize::from(be16::<4, _>(header));
        Ok(Self { header, payload: &rest[..rest.len().min(len)] })
    }

    /// Length of what follows the fixed header, as the sender wrote it.
    pub fn payload_len(&self) -> u16 {
        be16::<4, _>(self.header)
    }

    /// Next header of the fixed header.
    pub fn next_header(&self) -> u8 {
        self.header[6]
    }

    /// Hop limit.
    pub fn hop_limit(&self) -> u8 {
        self.header[7]
    }

    /// The source address.
    pub fn source(&self) -> u128 {
        u128::from_be_bytes(part::<8, 16, _>(self.header))
    }

    /// The destination address; not the final one if there is a routing header.
    pub fn destination(&self) -> u128 {
        u128::from_be_bytes(part::<24, 16, _>(self.header))
    }

    /// The payload after the fixed header, extension headers included, without Ethernet padding, as far as
    /// the bytes reach.
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// Walks over at most [`MAX_EXTENSIONS`] headers to the transport header. None for later fragments,
    /// encrypted packets, packets without a transport header or with more extension headers, and truncated
    /// ones.
    #[inline]
    pub fn transport(&self) -> Option<Transport> {
        match self.walk() {
            Ipv6Payload::Transport(found) => Some(found),
            Ipv6Payload::Later { .. } | Ipv6Payload::Closed { .. } | Ipv6Payload::Beyond { .. } => None,
        }
    }

    /// Walks over at most [`MAX_EXTENSIONS`] headers.
    #[inline]
    pub fn walk(&self) -> Ipv6Payload {
        let mut found = self.begin();
        let reached = self.walk_on(&mut found);
        let Transport { protocol, is_fragment, .. } = found;
        reached.unwrap_or(Ipv6Payload::Beyond { protocol, is_fragment })
    }

    /// Bytes of the fixed header and of the extension headers walked over, that of a fragment included, as
    /// far as the bytes reach.
    pub fn headers_len(&self) -> usize {
        let mut found = self.begin();
        let is_later = matches!(self.walk_on(&mut found), Some(Ipv6Payload::Later { .. }));
        let extensions = found.offset + if is_later { 8 } else { 0 };
        HEADER + extensions.min(self.payload.len())
    }

    /// The walk before its first step.
    #[inline]
    fn begin(&self) -> Transport {
        Transport { protocol: self.next_header(), offset: 0, is_fragment: false, is_routed: false }
    }

    /// Continues the walk at a header. None if there are too many, or the packet ends within them; `found`
    /// keeps what was read so far.
    #[inline]
    fn walk_on(&self, found: &mut Transport) -> Option<Ipv6Payload> {
        for _ in 0..=MAX_EXTENSIONS {
            let rest = self.payload.get(found.offset..)?;
            let len = match found.protocol {
                protocol::HOP_BY_HOP | protocol::ROUTING | protocol::DESTINATION | protocol::MOBILITY => {
                    8 + usize::from(*rest.get(1)?) * 8
                }
                protocol::AUTHENTICATION => 8 + usize::from(*rest.get(1)?) * 4,
                protocol::FRAGMENT => {
                    let [_, _, high, low, ..] = *rest else { return None };
                    if u16::from_be_bytes([high, low]) & 0xfff8 != 0 {
                        return Some(Ipv6Payload::Later { protocol: rest[0] });
                    }
                    found.is_fragment = true;
                    8
                }
                protocol::ENCRYPTED | protocol::NONE => {
                    let Transport { protocol, is_fragment, .. } = *found;
                    return Some(Ipv6Payload::Closed { protocol, is_fragment });
                }
                _ => {
                    let offset = HEADER + found.offset;
                    return Some(Ipv6Payload::Transport(Transport { offset, ..*found }));
                }
            };
            found.is_routed |= found.protocol == protocol::ROUTING;
            found.protocol = rest[0];
            found.offset += len;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(next: u8, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0x6a, 0xb0, 0, 0, 0, payload.len() as u8, next, 64];
        bytes.extend(1u128.to_be_bytes());
        bytes.extend(2u128.to_be_bytes());
        bytes.extend(payload);
        bytes
    }

    fn transport(next: u8, payload: &[u8]) -> Option<(u8, usize, bool, bool)> {
        let bytes = packet(next, payload);
        let found = Ipv6::check(&bytes).unwrap().transport()?;
        Some((found.protocol, found.offset, found.is_fragment, found.is_routed))
    }

    #[test]
    fn reads_the_fixed_header() {
        let mut bytes = packet(17, &[1, 2, 3]);
        bytes.push(0);
        let ip = Ipv6::check(&bytes).unwrap();
        assert_eq!((ip.source(), ip.destination(), ip.hop_limit()), (1, 2, 64));
        assert_eq!((ip.payload_len(), ip.payload()), (3, &[1, 2, 3][..]));
        assert!(Ipv6::check(&bytes[..39]).is_err());
        bytes[0] = 0x45;
        assert!(Ipv6::check(&bytes).unwrap_err().to_string().contains("version is 4"));
    }

    #[test]
    fn walks_extension_headers() {
        let hop = [43, 0, 0, 0, 0, 0, 0, 0];
        let routing = [6, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let both = [&hop[..], &routing[..]].concat();
        assert_eq!(transport(6, &[]), Some((6, 40, false, false)));
        assert_eq!(transport(0, &both), Some((6, 64, false, true)));
        assert_eq!(transport(0, &both[..23]), None, "ends within the second");
        assert_eq!(transport(44, &[17, 0, 0, 1, 0, 0, 0, 9]), Some((17, 48, true, false)));
        assert_eq!(transport(44, &[17, 0, 0, 8, 0, 0, 0, 9]), None, "later fragment");
        assert_eq!(transport(51, &[58, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), Some((58, 52, false, false)));
        assert_eq!(transport(59, &[]), None);
        assert_eq!(transport(50, &[0; 64]), None);
    }

    #[test]
    fn what_can_not_be_read_is_told() {
        let reached = |next, payload: &[u8]| {
            let bytes = packet(next, payload);
            Ipv6::check(&bytes).unwrap().walk()
        };
        // Fragments of UDP, of options before UDP, and of ESP.
        assert_eq!(reached(44, &[17, 0, 0, 8, 0, 0, 0, 9]), Ipv6Payload::Later { protocol: 17 });
        assert_eq!(reached(44, &[60, 0, 0, 8, 0, 0, 0, 9]), Ipv6Payload::Later { protocol: 60 });
        let closed = |protocol, is_fragment| Ipv6Payload::Closed { protocol, is_fragment };
        assert_eq!(reached(44, &[50, 0, 0, 1, 0, 0, 0, 9]), closed(50, true));
        assert_eq!(reached(59, &[]), closed(59, false));
        // The walk ends before the result is known: within the first header, or before the second.
        let beyond = |protocol, is_fragment| Ipv6Payload::Beyond { protocol, is_fragment };
        assert_eq!(reached(44, &[17, 0, 0]), beyond(44, false));
        assert_eq!(reached(60, &[]), beyond(60, false));
        assert_eq!(reached(44, &[60, 0, 0, 1, 0, 0, 0, 9, 17]), beyond(60, true));
        assert_eq!(reached(60, &[6, 1, 0, 0, 0, 0, 0, 0]), beyond(6, false));
        assert_eq!(reached(60, &[60, 0, 0, 0, 0, 0, 0, 0].repeat(9)), beyond(60, false));
    }

    #[test]
    fn gives_up_after_eight() {
        let chain = |count: usize| {
            let mut bytes = [60, 0, 0, 0, 0, 0, 0, 0].repeat(count);
            bytes[(count - 1) * 8] = 6;
            transport(60, &bytes)
        };
        assert_eq!(chain(8), Some((6, 104, false, false)));
        assert_eq!(chain(9), None);
    }
}
