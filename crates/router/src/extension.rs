//! Extension headers of IPv6 packets for the router itself (RFC 8200, 4).

use longwire_wire::{Ipv6, Ipv6Options, MAX_EXTENSIONS, protocol};

/// Bytes of the fixed header, and the offset of its next-header field.
const FIXED: usize = 40;
const NEXT_HEADER: u32 = 6;
/// Router alert (RFC 2711): the only known option.
const ROUTER_ALERT: u8 = 5;

/// A packet for the router itself, after its extension headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OwnPacket {
    /// Protocol number.
    pub protocol: u8,
    /// Offset of the field with this number, from the first byte of the IPv6 header.
    pub named_at: u32,
    /// Offset of the protocol's header.
    pub offset: usize,
}

/// Reason why a packet for the router itself is not processed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotProcessed {
    /// An option says to drop it.
    Option(BadOptionV6),
    /// A routing header asks to forward the packet; its type is at `kind_at`, from the first byte of the IPv6
    /// header.
    Routed { kind_at: u32 },
    /// It is a fragment, is truncated within its headers, or has too many.
    Unreadable,
}

/// An unknown option that says to drop the packet, or a malformed one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BadOptionV6 {
    /// Its offset from the first byte of the IPv6 header.
    pub at: u32,
    pub telling: Telling,
}

/// Whether the sender of a packet with a bad option gets an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Telling {
    Never,
    Always,
    /// Unless the packet was multicast.
    IfUnicast,
}

impl NotProcessed {
    /// The option that caused this, if any.
    pub fn option(self) -> Option<BadOptionV6> {
        match self {
            Self::Option(bad) => Some(bad),
            Self::Routed { .. } | Self::Unreadable => None,
        }
    }
}

/// Parses a packet for the router itself up to the protocol after its extension headers. An atomic fragment
/// is treated as a whole packet (RFC 6946).
pub(crate) fn open(packet: &[u8]) -> Result<OwnPacket, NotProcessed> {
    const FRAGMENT: usize = 8;
    /// Mask of the fragment offset and the more-fragments flag.
    const PART: u16 = 0xfff9;
    let ip = Ipv6::check(packet).map_err(|_| NotProcessed::Unreadable)?;
    let packet = &packet[..FIXED + ip.payload().len()];
    let mut at = OwnPacket { protocol: ip.next_header(), named_at: NEXT_HEADER, offset: FIXED };
    for _ in 0..=MAX_EXTENSIONS {
        let rest = packet.get(at.offset..).ok_or(NotProcessed::Unreadable)?;
        let len = match (at.protocol, rest) {
            // Behind another header it is none (RFC 8200, 4).
            (protocol::HOP_BY_HOP, _) if at.offset > FIXED => return Ok(at),
            (protocol::HOP_BY_HOP | protocol::DESTINATION, _) => options_len(rest, at.offset)?,
            // With no segments left it is skipped, whatever its type.
            (protocol::ROUTING, [_, len, _, 0, ..]) => 8 + usize::from(*len) * 8,
            (protocol::ROUTING, [_, _, _, _, ..]) => {
                return Err(NotProcessed::Routed { kind_at: at.offset as u32 + 2 });
            }
            (protocol::MOBILITY, [_, len, ..]) => 8 + usize::from(*len) * 8,
            (protocol::AUTHENTICATION, [_, len, ..]) => 8 + usize::from(*len) * 4,
            (protocol::FRAGMENT, [_, _, high, low, ..]) if u16::from_be_bytes([*high, *low]) & PART == 0 => {
                FRAGMENT
            }
            (
                protocol::MOBILITY
                | protocol::AUTHENTICATION
                | protocol::FRAGMENT
                | protocol::ROUTING
                | protocol::NONE,
                _,
            ) => return Err(NotProcessed::Unreadable),
            _ => return Ok(at),
        };
        at = OwnPacket { protocol: rest[0], named_at: at.offset as u32, offset: at.offset + len };
    }
    Err(NotProcessed::Unreadable)
}

/// The hop-by-hop option that requires dropping the packet, if any.
pub(crate) fn bad_hop_by_hop(packet: &[u8]) -> Option<BadOptionV6> {
    let ip = Ipv6::check(packet).ok().filter(|ip| ip.next_header() == protocol::HOP_BY_HOP)?;
    match options_len(ip.payload(), FIXED) {
        Ok(_) => None,
        Err(NotProcessed::Option(bad)) => Some(bad),
        // The packet is truncated within them.
        Err(_) => Some(BadOptionV6 { at: FIXED as u32, telling: Telling::Never }),
    }
}

/// Length of an options header at `offset`, whose first bytes are `bytes`, if all options let the packet
/// pass. The two highest bits of an unknown option say what to do (RFC 8200, 4.2).
fn options_len(bytes: &[u8], offset: usize) -> Result<usize, NotProcessed> {
    let options = Ipv6Options::check(bytes).map_err(|_| NotProcessed::Unreadable)?;
    let len = options.header_len();
    for option in options {
        let (at, telling) = match option {
            Err(_) => (offset, Telling::Never),
            Ok(option) if option.kind == ROUTER_ALERT => continue,
            Ok(option) => match option.kind >> 6 {
                0 => continue,
                1 => (offset + option.offset, Telling::Never),
                2 => (offset + option.offset, Telling::Always),
                _ => (offset + option.offset, Telling::IfUnicast),
            },
        };
        return Err(NotProcessed::Option(BadOptionV6 { at: at as u32, telling }));
    }
    Ok(len)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(next: u8, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0x60, 0, 0, 0, 0, payload.len() as u8, next, 64];
        bytes.resize(FIXED, 0);
        bytes.extend(payload);
        bytes
    }

    fn opened(next: u8, payload: &[u8]) -> Result<(u8, u32, usize), NotProcessed> {
        open(&packet(next, payload)).map(|opened| (opened.protocol, opened.named_at, opened.offset))
    }

    const UNREADABLE: Result<(u8, u32, usize), NotProcessed> = Err(NotProcessed::Unreadable);

    #[test]
    fn headers_are_walked_over() {
        let destination = [44, 0, 1, 4, 0, 0, 0, 0];
        let whole = [58, 0, 0, 0, 0, 0, 0, 9];
        assert_eq!(opened(58, &[128]), Ok((58, 6, 40)));
        assert_eq!(opened(60, &[&destination[..], &whole].concat()), Ok((58, 48, 56)));
        assert_eq!(opened(51, &[6, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), Ok((6, 40, 52)));
        // A fragment: the first, the second, and the last.
        for [high, low] in [[0, 1], [0, 9], [0, 8], [0x10, 0]] {
            assert_eq!(opened(44, &[58, 0, high, low, 0, 0, 0, 9]), UNREADABLE, "{high:x} {low:x}");
        }
        // Reserved bits do not matter.
        assert_eq!(opened(44, &[58, 0xff, 0, 6, 0, 0, 0, 9]), Ok((58, 40, 48)));
        assert_eq!(opened(59, &[0; 8]), UNREADABLE, "nothing follows");
        // Encrypted content is of an unknown protocol, and is reported like another.
        assert_eq!(opened(50, &[0; 8]), Ok((50, 6, 40)));
        // A routing header is skipped when no segments are left.
        let routing = |left: u8| [58, 2, 4, left, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2];
        assert_eq!(opened(43, &routing(0)), Ok((58, 40, 64)));
        for left in [1, 2, 255] {
            assert_eq!(opened(43, &routing(left)), Err(NotProcessed::Routed { kind_at: 42 }), "{left}");
            let behind = [&[43, 0, 1, 4, 0, 0, 0, 0], &routing(left)[..]].concat();
            assert_eq!(opened(60, &behind), Err(NotProcessed::Routed { kind_at: 50 }), "{left}");
        }
        // Hop-by-hop options come first, and are an unknown header elsewhere.
        assert_eq!(opened(0, &[&destination[..], &whole].concat()), Ok((58, 48, 56)));
        assert_eq!(opened(60, &[0, 0, 1, 4, 0, 0, 0, 0, 58, 0, 1, 4, 0, 0, 0, 0]), Ok((0, 40, 48)));
        assert_eq!(opened(43, &[58, 0, 4]), UNREADABLE, "it ends within it");
        assert_eq!(opened(60, &[58, 1, 1, 4, 0, 0, 0, 0]), UNREADABLE, "it ends within them");
        assert_eq!(opened(44, &[58, 0, 0]), UNREADABLE);
        assert_eq!(opened(60, &[60, 0, 1, 4, 0, 0, 0, 0].repeat(9)), UNREADABLE, "too many");
    }

    #[test]
    fn options_say_what_is_to_become_of_the_packet() {
        for (kind, telling) in [
            (0x1e, None),
            (0x05, None),
            (0x5e, Some(Telling::Never)),
            (0x9e, Some(Telling::Always)),
            (0xde, Some(Telling::IfUnicast)),
        ] {
            let bad = telling.map(|telling| BadOptionV6 { at: 42, telling });
            let header = [58, 0, kind, 4, 0, 0, 0, 0];
            assert_eq!(bad_hop_by_hop(&packet(0, &header)), bad, "{kind:x}");
            assert_eq!(bad_hop_by_hop(&packet(60, &header)), None, "they are for the destination");
            for next in [0, 60] {
                assert_eq!(opened(next, &header).err().and_then(NotProcessed::option), bad, "{kind:x}");
            }
            // After an atomic fragment header, and after padding.
            let behind = [&[60, 0, 0, 0, 0, 0, 0, 9][..], &[58, 0, 0, 1, 0, kind, 1, 0]].concat();
            let bad = bad.map(|bad| BadOptionV6 { at: 53, ..bad });
            assert_eq!(opened(44, &behind).err().and_then(NotProcessed::option), bad, "{kind:x}");
        }
        let malformed = BadOptionV6 { at: 40, telling: Telling::Never };
        assert_eq!(bad_hop_by_hop(&packet(0, &[58, 0, 5, 9, 0, 0, 0, 0])), Some(malformed));
        assert_eq!(bad_hop_by_hop(&packet(0, &[58, 0])), Some(malformed));
    }
}
