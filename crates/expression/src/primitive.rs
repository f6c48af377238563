//! Tests of each primitive.
//!
//! Offsets are relative to `link_type`, the position of the EtherType: 12, plus 4 after each `vlan`.

use crate::builder::{Block, Builder};
use crate::question::{Load, Relation, Width};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    Ether,
    Ip,
    Ip6,
    Arp,
    Rarp,
    Icmp,
    Icmp6,
    Igmp,
    Tcp,
    Udp,
    Sctp,
    Esp,
    Ah,
    Pim,
    Vrrp,
}

/// Network protocols in which a protocol number is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    V4,
    V6,
    Both,
}

/// Which of two addresses or ports must match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Source,
    Destination,
    Either,
    Both,
}

/// Four bytes of an address, or its first two: mask and value.
type Part = (Width, u32, u32);

const IPV4: u32 = 0x0800;
const ARP: u32 = 0x0806;
const RARP: u32 = 0x8035;
const IPV6: u32 = 0x86dd;
const FRAGMENT: u32 = 44;
/// Offset of the EtherType of an untagged frame.
pub(crate) const LINK_TYPE: u32 = 12;
/// EtherTypes of 802.1Q, 802.1ad and older stacked tags.
const TAGS: [u32; 3] = [0x8100, 0x88a8, 0x9100];

impl Protocol {
    /// Number and family of a protocol that an IP header names by number.
    pub fn number(self) -> Option<(u32, Family)> {
        match self {
            Self::Ether | Self::Ip | Self::Ip6 | Self::Arp | Self::Rarp => None,
            Self::Icmp => Some((1, Family::V4)),
            Self::Icmp6 => Some((58, Family::V6)),
            Self::Igmp => Some((2, Family::V4)),
            Self::Tcp => Some((6, Family::Both)),
            Self::Udp => Some((17, Family::Both)),
            Self::Sctp => Some((132, Family::Both)),
            Self::Esp => Some((50, Family::Both)),
            Self::Ah => Some((51, Family::Both)),
            Self::Pim => Some((103, Family::Both)),
            Self::Vrrp => Some((112, Family::V4)),
        }
    }

    fn ethertype(self) -> Option<u32> {
        match self {
            Self::Ip => Some(IPV4),
            Self::Ip6 => Some(IPV6),
            Self::Arp => Some(ARP),
            Self::Rarp => Some(RARP),
            _ => None,
        }
    }
}

/// Builder of primitives, which tracks how far tags have moved the headers.
#[derive(Debug)]
pub(crate) struct Primitives {
    pub builder: Builder,
    link_type: u32,
}

impl Primitives {
    pub fn new() -> Self {
        Self { builder: Builder::default(), link_type: LINK_TYPE }
    }

    /// The offset of what follows the EtherType.
    pub fn network(&self) -> u32 {
        self.link_type + 2
    }

    pub fn ethertype(&mut self, wanted: u32) -> Block {
        self.equal(self.link_type, Width::Half, u32::MAX, wanted)
    }

    /// A test of packets with this EtherType; false for others.
    fn of_type(&mut self, ethertype: u32, test: impl FnOnce(&mut Self) -> Block) -> Block {
        let announced = self.ethertype(ethertype);
        let found = test(self);
        self.builder.and(announced, found)
    }

    /// A block that is always true.
    pub fn always(&mut self) -> Block {
        self.builder.compare(Load::Length, 0, Relation::Equal, 0)
    }

    /// `ip`, `tcp`, `icmp6`: a single protocol.
    pub fn protocol(&mut self, protocol: Protocol) -> Block {
        match (protocol.ethertype(), protocol.number()) {
            (Some(ethertype), _) => self.ethertype(ethertype),
            (None, Some((number, family))) => self.numbered(number, family),
            (None, None) => self.always(),
        }
    }

    /// `proto N`: the number in the IPv4 header; for IPv6 in the fixed header, or in a fragment header after
    /// it.
    pub fn numbered(&mut self, number: u32, family: Family) -> Block {
        let byte = |this: &mut Self, at| this.equal(this.network() + at, Width::Byte, u32::MAX, number);
        let v4 = |this: &mut Self| this.of_type(IPV4, |this| byte(this, 9));
        let v6 = |this: &mut Self| {
            this.of_type(IPV6, |this| {
                let found = byte(this, 6);
                let fragment = this.equal(this.network() + 6, Width::Byte, u32::MAX, FRAGMENT);
                let within = byte(this, 40);
                let within = this.builder.and(fragment, within);
                this.builder.or(found, within)
            })
        };
        match family {
            Family::V4 => v4(self),
            Family::V6 => v6(self),
            Family::Both => {
                let (v4, v6) = (v4(self), v6(self));
                self.builder.or(v4, v6)
            }
        }
    }

    /// Tests that bytes of `protocol` are present: `tcp[0]` requires IPv4 and no later fragment.
    pub fn readable(&mut self, protocol: Protocol) -> Option<Block> {
        if let Some(ethertype) = protocol.ethertype() {
            return Some(self.ethertype(ethertype));
        }
        let (number, family) = protocol.number()?;
        if family == Family::V6 {
            let at = self.network() + 6;
            return Some(self.of_type(IPV6, |this| this.equal(at, Width::Byte, u32::MAX, number)));
        }
        let found = self.numbered(number, Family::V4);
        let first = self.first_fragment();
        Some(self.builder.and(found, first))
    }

    /// The position of byte `at` of `protocol`.
    pub fn load(&self, protocol: Protocol, at: u32, width: Width) -> Load {
        match protocol {
            Protocol::Ether => Load::Frame { at, width },
            Protocol::Icmp6 => Load::Frame { at: at.wrapping_add(self.network() + 40), width },
            _ if protocol.ethertype().is_some() => Load::Frame { at: at.wrapping_add(self.network()), width },
            _ => Load::Behind { header: self.network(), at: at.wrapping_add(self.network()), width },
        }
    }

    /// An Ethernet address; tags don't move it.
    pub fn ether(&mut self, side: Side, address: u64) -> Block {
        let parts =
            [(Width::Half, u32::MAX, (address >> 32) as u32), (Width::Word, u32::MAX, address as u32)];
        self.addresses(side, 6, 0, &parts)
    }

    /// `ether multicast`: the group bit of the destination, which broadcast has too.
    pub fn ether_group(&mut self) -> Block {
        self.builder.compare(Load::Frame { at: 0, width: Width::Byte }, 1, Relation::Unequal, 0)
    }

    /// `ip multicast`, 224.0.0.0 and above, as in pcap-filter.
    pub fn ip_multicast(&mut self) -> Block {
        let first = Load::Frame { at: self.network() + 16, width: Width::Byte };
        self.of_type(IPV4, |this| this.builder.compare(first, u32::MAX, Relation::GreaterOrEqual, 224))
    }

    /// `ip6 multicast`: ff00::/8.
    pub fn ip6_multicast(&mut self) -> Block {
        let first = self.network() + 24;
        self.of_type(IPV6, |this| this.equal(first, Width::Byte, u32::MAX, 0xff))
    }

    /// An IPv4 address or prefix, in the packets of `protocol`; by default in IP, ARP and RARP.
    pub fn v4(&mut self, protocol: Option<Protocol>, side: Side, address: u32, mask: u32) -> Block {
        let (network, parts) = (self.network(), [(Width::Word, mask, address)]);
        let in_ip = |this: &mut Self| {
            this.of_type(IPV4, |this| this.addresses(side, network + 12, network + 16, &parts))
        };
        let in_arp = |this: &mut Self, announced: Block| {
            let found = this.addresses(side, network + 14, network + 24, &parts);
            this.builder.and(announced, found)
        };
        match protocol.and_then(Protocol::ethertype) {
            Some(IPV4) => in_ip(self),
            Some(ethertype) => {
                let announced = self.ethertype(ethertype);
                in_arp(self, announced)
            }
            None => {
                let ip = in_ip(self);
                let (arp, rarp) = (self.ethertype(ARP), self.ethertype(RARP));
                let announced = self.builder.or(arp, rarp);
                let arp = in_arp(self, announced);
                self.builder.or(ip, arp)
            }
        }
    }

    /// An IPv6 address or prefix.
    pub fn v6(&mut self, side: Side, address: u128, mask: u128) -> Block {
        let word = |shift: u32| (Width::Word, (mask >> shift) as u32, (address >> shift) as u32);
        let (network, parts) = (self.network(), [word(96), word(64), word(32), word(0)]);
        self.of_type(IPV6, |this| this.addresses(side, network + 8, network + 24, &parts))
    }

    /// Ports `low` to `high` of TCP, UDP and SCTP, or of `protocol` only. For IPv6 directly after the fixed
    /// header.
    pub fn ports(&mut self, protocol: Option<Protocol>, side: Side, low: u32, high: u32) -> Block {
        let all = [6, 17, 132];
        let one = protocol.and_then(Protocol::number).map(|(number, _)| [number]);
        let numbers = one.as_ref().map_or(&all[..], |one| &one[..]);
        let network = self.network();
        let v4 = self.of_type(IPV4, |this| {
            let carried = this.one_of(network + 9, Width::Byte, numbers);
            let first = this.first_fragment();
            let carried = this.builder.and(carried, first);
            let behind = |at| Load::Behind { header: network, at: network + at, width: Width::Half };
            let found = this.side(side, |this, at| this.within(behind(at), low, high), 0, 2);
            this.builder.and(carried, found)
        });
        let v6 = self.of_type(IPV6, |this| {
            let carried = this.one_of(network + 6, Width::Byte, numbers);
            let behind = |at| Load::Frame { at: network + 40 + at, width: Width::Half };
            let found = this.side(side, |this, at| this.within(behind(at), low, high), 0, 2);
            this.builder.and(carried, found)
        });
        self.builder.or(v4, v6)
    }

    /// `vlan [ID]`; everything built afterwards reads after the tag.
    pub fn vlan(&mut self, id: Option<u32>) -> Block {
        let tagged = self.one_of(self.link_type, Width::Half, &TAGS);
        let block = match id {
            Some(id) => {
                let found = self.equal(self.network(), Width::Half, 0x0fff, id);
                self.builder.and(tagged, found)
            }
            None => tagged,
        };
        self.link_type += 4;
        block
    }

    /// Bits of the type of service (IPv4) or traffic class (IPv6).
    pub fn traffic_class(&mut self, mask: u32, value: u32) -> Block {
        let network = self.network();
        let v4 = self.of_type(IPV4, |this| this.equal(network + 1, Width::Byte, mask, value));
        // After four bits of version, before twenty of flow label.
        let v6 = self.of_type(IPV6, |this| this.equal(network, Width::Half, mask << 4, value << 4));
        self.builder.or(v4, v6)
    }

    fn first_fragment(&mut self) -> Block {
        self.equal(self.network() + 6, Width::Half, 0x1fff, 0)
    }

    fn equal(&mut self, at: u32, width: Width, mask: u32, value: u32) -> Block {
        self.builder.compare(Load::Frame { at, width }, mask, Relation::Equal, value)
    }

    fn one_of(&mut self, at: u32, width: Width, values: &[u32]) -> Block {
        let mut found = self.equal(at, width, u32::MAX, values[0]);
        for &value in &values[1..] {
            let next = self.equal(at, width, u32::MAX, value);
            found = self.builder.or(found, next);
        }
        found
    }

    fn within(&mut self, load: Load, low: u32, high: u32) -> Block {
        if low == high {
            return self.builder.compare(load, u32::MAX, Relation::Equal, low);
        }
        let above = self.builder.compare(load, u32::MAX, Relation::GreaterOrEqual, low);
        let below = self.builder.compare(load, u32::MAX, Relation::LessOrEqual, high);
        self.builder.and(above, below)
    }

    fn addresses(&mut self, side: Side, source: u32, destination: u32, parts: &[Part]) -> Block {
        self.side(side, |this, at| this.address(at, parts), source, destination)
    }

    fn address(&mut self, mut at: u32, parts: &[Part]) -> Block {
        let mut whole: Option<Block> = None;
        for &(width, mask, value) in parts {
            if mask != 0 {
                let part = self.equal(at, width, mask, value);
                whole = Some(self.builder.and_after(whole, part));
            }
            at += if width == Width::Half { 2 } else { 4 };
        }
        whole.unwrap_or_else(|| self.always())
    }

    fn side(
        &mut self,
        side: Side,
        mut test: impl FnMut(&mut Self, u32) -> Block,
        source: u32,
        destination: u32,
    ) -> Block {
        match side {
            Side::Source => test(self, source),
            Side::Destination => test(self, destination),
            Side::Either => {
                let (source, destination) = (test(self, source), test(self, destination));
                self.builder.or(source, destination)
            }
            Side::Both => {
                let (source, destination) = (test(self, source), test(self, destination));
                self.builder.and(source, destination)
            }
        }
    }
}
