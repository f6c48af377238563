//! Types and codes of ICMP messages (RFC 792, 1122, 1191, 1812; RFC 4443), and which are errors.

use crate::{Icmp, Ipv4, Ipv6, protocol};

/// Types of ICMPv4 messages.
pub mod icmp_kind {
    /// Echo reply.
    pub const ECHO_REPLY: u8 = 0;
    /// Destination unreachable.
    pub const UNREACHABLE: u8 = 3;
    /// Asks for an echo.
    pub const ECHO: u8 = 8;
    /// Hop limit exceeded, or reassembly timed out.
    pub const TIME_EXCEEDED: u8 = 11;
    /// Parameter problem in the header.
    pub const PARAMETER: u8 = 12;
}

/// Codes of [`icmp_kind::UNREACHABLE`] (RFC 792; RFC 1812, 5.2.7.1).
pub mod unreachable {
    /// No route.
    pub const NETWORK: u8 = 0;
    /// Host unreachable.
    pub const HOST: u8 = 1;
    /// Protocol unreachable.
    pub const PROTOCOL: u8 = 2;
    /// Port unreachable.
    pub const PORT: u8 = 3;
    /// Fragmentation needed but DF set.
    pub const TOO_BIG: u8 = 4;
    /// Source route failed.
    pub const SOURCE_ROUTE: u8 = 5;
}

/// Types of ICMPv6 messages.
pub mod icmpv6_kind {
    /// Destination unreachable.
    pub const UNREACHABLE: u8 = 1;
    /// Packet too big.
    pub const TOO_BIG: u8 = 2;
    /// Too many hops.
    pub const TIME_EXCEEDED: u8 = 3;
    /// Parameter problem in a header.
    pub const PARAMETER: u8 = 4;
    /// Asks for an echo.
    pub const ECHO: u8 = 128;
    /// Echo reply.
    pub const ECHO_REPLY: u8 = 129;
    /// Neighbour solicitation.
    pub const SOLICITATION: u8 = 135;
    /// Tells a link address.
    pub const ADVERTISEMENT: u8 = 136;
    /// Redirect to a better next hop.
    pub const REDIRECT: u8 = 137;
}

/// Codes of [`icmpv6_kind::UNREACHABLE`] (RFC 4443, 3.1).
pub mod unreachable_v6 {
    /// No route.
    pub const NO_ROUTE: u8 = 0;
    /// Address unreachable.
    pub const ADDRESS: u8 = 3;
    /// Port unreachable.
    pub const PORT: u8 = 4;
}

/// Whether a packet is an ICMP error, which must not be answered: everything except echo, timestamp and
/// information messages. Unreadable messages are treated as errors.
pub fn is_icmp_error(ip: &Ipv4<'_>) -> bool {
    const QUESTIONS_AND_ANSWERS: [u8; 8] = [0, 8, 13, 14, 15, 16, 17, 18];
    ip.protocol() == protocol::ICMP
        && Icmp::check(ip.payload()).map_or(true, |icmp| !QUESTIONS_AND_ANSWERS.contains(&icmp.kind()))
}

/// Whether an IPv6 packet (`packet` is all of it) is an ICMPv6 error or a redirect, which must not be
/// answered.
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
