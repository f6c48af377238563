//! Primitives of qualifiers and a value, such as `tcp src port 80`, and values that repeat previous
//! qualifiers.

use super::arithmetic::joins_numbers;
use super::value::{mac, number, port_range, v4, v4_prefix, v6};
use super::{Parser, Result};
use crate::builder::{Block, Builder};
use crate::error::Fault;
use crate::names::{ETHERTYPES, PORTS, PROTOCOL_NUMBERS, named, nearest};
use crate::primitive::{Family, Protocol, Side};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Qualifiers before a value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Qualifiers {
    protocol: Option<Protocol>,
    side: Side,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Host,
    Net,
    Port,
    PortRange,
    Proto,
}

impl Parser<'_> {
    /// Parses the rest of the qualifiers, and the value or the values in parentheses.
    pub(super) fn qualified(&mut self, protocol: Option<Protocol>) -> Result<Block> {
        let side = self.side();
        let kind = match self.peek() {
            Some("host") => Some(Kind::Host),
            Some("net") => Some(Kind::Net),
            Some("port") => Some(Kind::Port),
            Some("portrange") => Some(Kind::PortRange),
            Some("proto") => Some(Kind::Proto),
            _ => None,
        };
        let qualifiers =
            Qualifiers { protocol, side: side.unwrap_or(Side::Either), kind: kind.unwrap_or(Kind::Host) };
        self.check(qualifiers, side.is_some())?;
        self.next += usize::from(kind.is_some());
        self.repeated = Some(qualifiers);
        let is_negated = self.negations();
        let block = if self.peek() == Some("(") { self.group()? } else { self.value(qualifiers)? };
        Ok(if is_negated { Builder::not(block) } else { block })
    }

    /// Parses a bare value after `and`, `or` or a parenthesis.
    pub(super) fn repeated_value(&mut self) -> Result<Block> {
        match self.repeated {
            Some(qualifiers) => self.value(qualifiers),
            None => Err(self.unexpected("write host, net or port before a value, as in \"host 10.0.0.1\"")),
        }
    }

    /// Whether the next word can be a value for the qualifiers to be repeated.
    pub(super) fn repeats_value(&self) -> bool {
        self.repeated.is_some_and(|qualifiers| match self.peek_at(1) {
            Some("/") => qualifiers.kind == Kind::Net,
            next => !next.is_some_and(joins_numbers),
        })
    }

    fn side(&mut self) -> Option<Side> {
        let (side, tokens) = match (self.peek(), self.peek_at(1), self.peek_at(2)) {
            (Some("src"), Some("or" | "||"), Some("dst")) => (Side::Either, 3),
            (Some("dst"), Some("or" | "||"), Some("src")) => (Side::Either, 3),
            (Some("src"), Some("and" | "&&"), Some("dst")) => (Side::Both, 3),
            (Some("dst"), Some("and" | "&&"), Some("src")) => (Side::Both, 3),
            (Some("src"), ..) => (Side::Source, 1),
            (Some("dst"), ..) => (Side::Destination, 1),
            _ => return None,
        };
        self.next += tokens;
        Some(side)
    }

    /// Checks the combination of protocol, direction and kind; the next token is the kind.
    fn check(&self, qualifiers: Qualifiers, has_side: bool) -> Result<()> {
        use Protocol::{Arp, Ether, Ip, Ip6, Rarp, Sctp, Tcp, Udp};
        let (goes, fix) = match qualifiers.kind {
            Kind::Host => (
                matches!(qualifiers.protocol, None | Some(Ether | Ip | Ip6 | Arp | Rarp)),
                "write ether, ip, ip6, arp or rarp before \"host\", and the other protocol as \"tcp and host \
                 …\"",
            ),
            Kind::Net => (
                matches!(qualifiers.protocol, None | Some(Ip | Ip6 | Arp | Rarp)),
                "write ip, ip6, arp or rarp before \"net\", and the other protocol as \"tcp and net …\"",
            ),
            Kind::Port | Kind::PortRange => (
                matches!(qualifiers.protocol, None | Some(Tcp | Udp | Sctp)),
                "write tcp, udp or sctp before it, and the other protocol as \"ip and port …\"",
            ),
            Kind::Proto => (
                matches!(qualifiers.protocol, None | Some(Ether | Ip | Ip6)) && !has_side,
                "write ether, ip, ip6 or nothing before \"proto\"",
            ),
        };
        if goes { Ok(()) } else { Err(self.error(Fault::Unexpected, fix)) }
    }

    fn value(&mut self, qualifiers: Qualifiers) -> Result<Block> {
        let Qualifiers { protocol, side, kind } = qualifiers;
        if !self.token().is_some_and(|token| token.is_word) {
            return Err(self.unexpected("write a value"));
        }
        let block = match kind {
            Kind::Host if protocol == Some(Protocol::Ether) => {
                let Some(address) = self.peek().and_then(mac) else {
                    return Err(self.unwanted("an Ethernet address such as 02:00:00:00:00:01"));
                };
                self.next += 1;
                self.made.ether(side, address)
            }
            Kind::Host => self.host(protocol, side)?,
            Kind::Net => self.net(protocol, side)?,
            Kind::Port | Kind::PortRange => self.port(protocol, side, kind == Kind::PortRange)?,
            Kind::Proto => self.proto(protocol)?,
        };
        self.repeated = Some(qualifiers);
        Ok(block)
    }

    fn host(&mut self, protocol: Option<Protocol>, side: Side) -> Result<Block> {
        let text = self.peek().unwrap_or_default();
        let block = match (v4(text), v6(text)) {
            (Some(address), _) if protocol != Some(Protocol::Ip6) => {
                self.made.v4(protocol, side, address, u32::MAX)
            }
            (_, Some(address)) if matches!(protocol, None | Some(Protocol::Ip6)) => {
                self.made.v6(side, address, u128::MAX)
            }
            _ if mac(text).is_some() => {
                return Err(self
                    .error(Fault::Value, "write \"ether\" before host, src or dst for an Ethernet address"));
            }
            _ => return Err(self.unwanted(wanted_address(protocol))),
        };
        self.next += 1;
        if self.peek() == Some("/") {
            return Err(self.error(Fault::Unexpected, "write \"net\" for a prefix, \"host\" for an address"));
        }
        Ok(block)
    }

    fn net(&mut self, protocol: Option<Protocol>, side: Side) -> Result<Block> {
        let text = self.peek().unwrap_or_default();
        let start = self.next;
        match (v4_prefix(text), v6(text)) {
            (Some((address, len)), _) if protocol != Some(Protocol::Ip6) => {
                self.next += 1;
                let mask = self.v4_mask(len)?;
                if address & !mask != 0 {
                    return Err(self.beyond_mask(start, Ipv4Addr::from(address & mask).into()));
                }
                Ok(self.made.v4(protocol, side, address, mask))
            }
            (_, Some(address)) if matches!(protocol, None | Some(Protocol::Ip6)) => {
                self.next += 1;
                let len = if self.peek() == Some("/") { self.prefix_len(128)? } else { 128 };
                let mask = u128::MAX.checked_shl(128 - len).unwrap_or(0);
                if address & !mask != 0 {
                    return Err(self.beyond_mask(start, Ipv6Addr::from(address & mask).into()));
                }
                Ok(self.made.v6(side, address, mask))
            }
            _ => Err(self.unwanted(wanted_address(protocol))),
        }
    }

    /// The mask after an IPv4 network: `/len`, `mask M`, or by default the number of bytes written.
    fn v4_mask(&mut self, written: u32) -> Result<u32> {
        match self.peek() {
            Some("/") => Ok(u32::MAX.checked_shl(32 - self.prefix_len(32)?).unwrap_or(0)),
            Some("mask") => {
                self.next += 1;
                let Some(mask) = self.peek().and_then(v4) else {
                    return Err(self.unwanted("a mask such as 255.255.0.0"));
                };
                self.next += 1;
                Ok(mask)
            }
            _ => Ok(u32::MAX.checked_shl(32 - written).unwrap_or(0)),
        }
    }

    fn prefix_len(&mut self, max: u32) -> Result<u32> {
        self.next += 1;
        self.number(&format!("a prefix length from 0 to {max}"), max)
    }

    fn beyond_mask(&self, token: usize, network: IpAddr) -> crate::ExpressionError {
        self.error_at(token, Fault::Value, format!("bits are set outside the mask; the network is {network}"))
    }

    fn port(&mut self, protocol: Option<Protocol>, side: Side, is_range: bool) -> Result<Block> {
        let text = self.peek().unwrap_or_default();
        let port = |text: &str| number(text).filter(|&port| port <= 0xffff).or_else(|| named(PORTS, text));
        let range = match port(text) {
            Some(port) => Some((port, port)),
            None if is_range => port_range(text, port),
            None => None,
        };
        let Some((low, high)) = range else {
            let near = nearest(text, PORTS.iter().map(|(name, _)| *name));
            return Err(match near {
                Some(near) => self.error(Fault::Value, format!("did you mean \"{near}\"?")),
                None if is_range => self.error(Fault::Value, "write two ports from 0 to 65535, as 8000-8999"),
                None => self.error(Fault::Value, "write a port from 0 to 65535"),
            });
        };
        self.next += 1;
        Ok(self.made.ports(protocol, side, low.min(high), low.max(high)))
    }

    fn proto(&mut self, protocol: Option<Protocol>) -> Result<Block> {
        let text = self.peek().unwrap_or_default();
        let name = text.strip_prefix('\\').unwrap_or(text);
        if protocol == Some(Protocol::Ether) {
            // Up to 1500 the field is a length, and another header follows (IEEE 802.3, clause 3.2.6).
            let ethertype = number(text).filter(|number| (1501..=0xffff).contains(number));
            let Some(ethertype) = ethertype.or_else(|| named(ETHERTYPES, name)) else {
                return Err(self.unwanted("an EtherType from 1501 to 0xffff, or ip, ip6, arp or rarp"));
            };
            self.next += 1;
            return Ok(self.made.ethertype(ethertype));
        }
        let number = number(text).filter(|&number| number <= 255);
        let Some(number) = number.or_else(|| named(PROTOCOL_NUMBERS, name)) else {
            return Err(self.unwanted("a protocol number from 0 to 255, or a name such as tcp"));
        };
        self.next += 1;
        let family = match protocol {
            Some(Protocol::Ip) => Family::V4,
            Some(Protocol::Ip6) => Family::V6,
            _ => Family::Both,
        };
        Ok(self.made.numbered(number, family))
    }

    fn unwanted(&self, wanted: &str) -> crate::ExpressionError {
        self.error(Fault::Value, format!("write {wanted}"))
    }
}

fn wanted_address(protocol: Option<Protocol>) -> &'static str {
    match protocol {
        None => "an IPv4 or IPv6 address (names are not looked up)",
        Some(Protocol::Ip6) => "an IPv6 address (names are not looked up)",
        Some(_) => "an IPv4 address (names are not looked up)",
    }
}
