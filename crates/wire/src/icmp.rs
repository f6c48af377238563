//! Types and codes of ICMP messages (RFC 792, 1122, 1191, 1812; RFC 4443), and which of them are errors.

use crate::{Icmp, Ipv4, Ipv6, protocol};

/// Types of ICMPv4 messages.
pub mod icmp_kind {
    /// An answer to an echo.
    pub const ECHO_REPLY: u8 = 0;
    /// The destination can't be reached.
    pub const UNREACHABLE: u8 = 3;
    /// Asks for an echo.
    pub const ECHO: u8 = 8;
    /// Too many hops, or fragments that never came.
    pub const TIME_EXCEEDED: u8 = 11;
    /// Something is wrong in the header.
    pub const PARAMETER: u8 = 12;
}

/// Codes of [`icmp_kind::UNREACHABLE`] (RFC 792; RFC 1812, 5.2.7.1).
pub mod unreachable {
    /// No route.
    pub const NETWORK: u8 = 0;
    /// The host does not answer.
    pub const HOST: u8 = 1;
    /// The host does not serve the protocol.
    pub const PROTOCOL: u8 = 2;
    /// Nobody listens on the port.
    pub const PORT: u8 = 3;
    /// Fragmentation was needed, and forbidden.
    pub const TOO_BIG: u8 = 4;
    /// The source route can't be followed.
    pub const SOURCE_ROUTE: u8 = 5;
    /// Forbidden here.
    pub const PROHIBITED: u8 = 13;
}

/// Types of ICMPv6 messages.
pub mod icmpv6_kind {
    /// The destination can't be reached.
    pub const UNREACHABLE: u8 = 1;
    /// Too big for the next link.
    pub const TOO_BIG: u8 = 2;
    /// Too many hops.
    pub const TIME_EXCEEDED: u8 = 3;
    /// Something is wrong in a header.
    pub const PARAMETER: u8 = 4;
    /// Asks for an echo.
    pub const ECHO: u8 = 128;
    /// An answer to an echo.
    pub const ECHO_REPLY: u8 = 129;
    /// Asks for a neighbour's link address.
    pub const SOLICITATION: u8 = 135;
    /// Tells a link address.
    pub const ADVERTISEMENT: u8 = 136;
    /// Says that another router is nearer.
    pub const REDIRECT: u8 = 137;
}

/// Codes of [`icmpv6_kind::UNREACHABLE`] (RFC 4443, 3.1).
pub mod unreachable_v6 {
    /// No route.
    pub const NO_ROUTE: u8 = 0;
    /// Forbidden here.
    pub const PROHIBITED: u8 = 1;
    /// The host does not answer.
    pub const ADDRESS: u8 = 3;
    /// Nobody listens on the port.
    pub const PORT: u8 = 4;
}

/// Whether a packet is an ICMP error, to which there is no answer: all but echo, time stamp and information
/// messages. What can't be read is taken for one.
pub fn is_icmp_error(ip: &Ipv4<'_>) -> bool {
    const QUESTIONS_AND_ANSWERS: [u8; 8] = [0, 8, 13, 14, 15, 16, 17, 18];
    ip.protocol() == protocol::ICMP
        && Icmp::check(ip.payload()).map_or(true, |icmp| !QUESTIONS_AND_ANSWERS.contains(&icmp.kind()))
}

/// Whether an IPv6 packet (`packet` is all of it) is an ICMPv6 error or a redirect, to which there is no
/// answer.
pub fn is_icmpv6_error(ip: &Ipv6<'_>, packet: &[u8]) -> bool {
    let transport = ip.transport().filter(|transport| transport.protocol == protocol::ICMPV6);
    let kind = transport.and_then(|transport| packet.get(transport.offset));
    kind.is_some_and(|&kind| kind < icmpv6_kind::ECHO || kind == icmpv6_kind::REDIRECT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_told_from_questions() {
        for (kind, error) in
            [(0, false), (3, true), (8, false), (11, true), (12, true), (13, false), (99, true)]
        {
            let mut packet = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 64, 1, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, kind];
            packet.resize(28, 0);
            assert_eq!(is_icmp_error(&Ipv4::check(&packet).unwrap()), error, "{kind}");
            packet[9] = protocol::UDP;
            assert!(!is_icmp_error(&Ipv4::check(&packet).unwrap()));
            packet[9] = protocol::ICMP;
            assert!(is_icmp_error(&Ipv4::check(&packet[..27]).unwrap()), "cut short");
        }
        for (kind, error) in [(1, true), (4, true), (127, true), (128, false), (135, false), (137, true)] {
            let mut packet = vec![0x60, 0, 0, 0, 0, 16, 60, 64];
            packet.resize(40, 0);
            packet.extend([58, 0, 0, 0, 0, 0, 0, 0, kind, 0, 0, 0, 0, 0, 0, 0]);
            assert_eq!(is_icmpv6_error(&Ipv6::check(&packet).unwrap(), &packet), error, "{kind}");
        }
    }
}
