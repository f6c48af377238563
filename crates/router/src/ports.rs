//! A router's ports: indices, MAC and IP addresses, MTUs.

use crate::prefix::{Address, Prefix};
use longwire_wire::solicited_node;
use std::net::IpAddr;
use thiserror::Error;

/// Minimum MTU of a port, as required by IPv6 (RFC 8200, 5).
pub const LEAST_MTU: u32 = 1280;

/// 169.254.0.0/16, which no router forwards (RFC 3927, 7).
#[inline]
pub(crate) const fn is_link_local_v4(address: u32) -> bool {
    address >> 16 == 0xa9fe
}

/// fe80::/10 (RFC 4291, 2.5.6).
#[inline]
pub(crate) const fn is_link_local(address: u128) -> bool {
    address >> 118 == 0x3fa
}

/// An address of a router with the length of its network's prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InterfaceAddress<A> {
    /// The address.
    pub address: A,
    /// Prefix length of its network.
    pub len: u8,
}

impl<A: Address> InterfaceAddress<A> {
    /// Whether `other` is in its network.
    pub fn is_neighbour(&self, other: A) -> bool {
        other.masked(self.len) == self.address.masked(self.len)
    }
}

/// The addresses of a port, of both families.
pub type PortAddresses = (Vec<InterfaceAddress<u32>>, Vec<InterfaceAddress<u128>>);

/// One port of a router.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouterPort {
    /// Its index in the plan.
    pub place: u16,
    /// Its MAC address.
    pub mac: [u8; 6],
    /// Longest IP packet that it sends, in bytes: [`LEAST_MTU`] to 65535.
    pub mtu: u32,
    /// Its IPv4 addresses; errors come from the first.
    pub v4: Vec<InterfaceAddress<u32>>,
    /// Its IPv6 addresses; errors come from the first. A link-local one is added.
    pub v6: Vec<InterfaceAddress<u128>>,
}

impl RouterPort {
    /// Its link-local IPv6 address (RFC 4291, appendix A).
    pub fn link_local(&self) -> u128 {
        let [a, b, c, d, e, f] = self.mac.map(u128::from);
        0xfe80 << 112 | (a ^ 2) << 56 | b << 48 | c << 40 | 0xff_fe << 24 | d << 16 | e << 8 | f
    }

    /// Whether it has the IPv4 address.
    pub fn has_v4(&self, address: u32) -> bool {
        self.v4.iter().any(|own| own.address == address)
    }

    /// Whether it has the IPv6 address.
    pub fn has_v6(&self, address: u128) -> bool {
        self.v6.iter().any(|own| own.address == address)
    }

    /// Its address in the network whose subnet-router anycast address is `address` (RFC 4291, 2.6.1); none if
    /// it is not one, or is the port's own.
    pub(crate) fn behind_anycast(&self, address: u128) -> Option<u128> {
        let means_any = |own: &&InterfaceAddress<u128>| {
            // A network of two addresses has no subnet-router anycast address (RFC 6164, 5.1).
            own.len < 127 && !is_link_local(own.address) && own.address.masked(own.len) == address
        };
        let own = self.v6.iter().find(means_any)?;
        (!self.has_v6(address)).then_some(own.address)
    }

    /// Whether it listens to the multicast group: all nodes, all routers, or the solicited-node group of one
    /// of its addresses (RFC 4291, 2.7.1).
    pub(crate) fn hears(&self, group: u128) -> bool {
        const ALL_NODES: [u128; 2] = [0xff01 << 112 | 1, 0xff02 << 112 | 1];
        const ALL_ROUTERS: [u128; 3] = [0xff01 << 112 | 2, 0xff02 << 112 | 2, 0xff05 << 112 | 2];
        let is_solicited = |own: &InterfaceAddress<u128>| {
            let any = own.address.masked(own.len);
            solicited_node(own.address) == group || (solicited_node(any) == group && !is_link_local(any))
        };
        ALL_NODES.contains(&group) || ALL_ROUTERS.contains(&group) || self.v6.iter().any(is_solicited)
    }
}

/// Reason why ports are invalid.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PortsError {
    /// Two with one index.
    #[error("port {place} is named twice")]
    Twice {
        /// The index.
        place: u16,
    },
    /// An MTU out of range.
    #[error("port {place}: mtu is {mtu}, it must be 1280 to 65535")]
    Mtu {
        /// The index.
        place: u16,
        /// The MTU.
        mtu: u32,
    },
    /// An invalid MAC address.
    #[error("port {place}: its MAC address is zero or a group's, give it a station's, as 02:00:00:00:00:01")]
    Mac {
        /// The index.
        place: u16,
    },
    /// An invalid interface address.
    #[error("port {place}: {address}/{len} is no address of a host in a network")]
    Address {
        /// The index.
        place: u16,
        /// The address.
        address: IpAddr,
        /// The length of its prefix.
        len: u8,
    },
    /// No port.
    #[error("a router has at least one port")]
    None,
}

/// A router's ports, found by index.
#[derive(Debug)]
pub(crate) struct Ports {
    /// In the order of their indices.
    pub list: Vec<RouterPort>,
    pub places: Vec<u16>,
    first: u16,
    /// By index from `first` on: the number in `list`, also of a port that is down, or [`NOBODY`].
    numbers: Vec<u16>,
    /// Number of possible state changes so far.
    changes: u64,
}

const NOBODY: u16 = u16::MAX;

impl Ports {
    pub fn new(mut list: Vec<RouterPort>) -> Result<Self, PortsError> {
        list.sort_by_key(|port| port.place);
        let (Some(first), Some(last)) = (list.first(), list.last()) else { return Err(PortsError::None) };
        let (first, last) = (first.place, last.place);
        if let Some(pair) = list.windows(2).find(|pair| pair[0].place == pair[1].place) {
            return Err(PortsError::Twice { place: pair[0].place });
        }
        let mut numbers = vec![NOBODY; usize::from(last - first) + 1];
        for (number, port) in list.iter_mut().enumerate() {
            check(port)?;
            let address = port.link_local();
            port.v6.push(InterfaceAddress { address, len: 64 });
            numbers[usize::from(port.place - first)] = number as u16;
        }
        let places = list.iter().map(|port| port.place).collect();
        Ok(Self { list, places, first, numbers, changes: 0 })
    }

    /// The number of the port with this index.
    #[inline]
    pub fn number(&self, place: u16) -> Option<usize> {
        let number = *self.numbers.get(usize::from(place.wrapping_sub(self.first)))?;
        (number != NOBODY).then_some(usize::from(number))
    }

    /// The port with this index.
    #[inline]
    pub fn at(&self, place: u16) -> Option<&RouterPort> {
        self.list.get(self.number(place)?)
    }

    /// Whether there is a port with this index, up or down.
    pub fn is_port(&self, place: u16) -> bool {
        self.places.binary_search(&place).is_ok()
    }

    /// Sets the port with this index up or down: it is not found while it is down. False if there is none.
    pub fn set_up(&mut self, place: u16, up: bool) -> bool {
        let Ok(number) = self.places.binary_search(&place) else { return false };
        self.numbers[usize::from(place - self.first)] = if up { number as u16 } else { NOBODY };
        self.changes += 1;
        true
    }

    /// A number that grows whenever the result of [`Ports::at`] may change in index, MAC address or MTU.
    #[inline]
    pub fn revision(&self) -> u64 {
        self.changes
    }

    /// Replaces the addresses of the port with this index, except its link-local one, and returns the
    /// previous ones.
    pub fn set_addresses(&mut self, place: u16, new: PortAddresses) -> Result<PortAddresses, PortsError> {
        let number = self.places.binary_search(&place).map_err(|_| PortsError::None)?;
        let RouterPort { mac, mtu, .. } = self.list[number];
        let mut port = RouterPort { place, mac, mtu, v4: new.0, v6: new.1 };
        check(&port)?;
        let address = port.link_local();
        if !port.has_v6(address) {
            port.v6.push(InterfaceAddress { address, len: 64 });
        }
        let RouterPort { v4, v6, .. } = std::mem::replace(&mut self.list[number], port);
        Ok((v4, v6))
    }

    /// Index of the port with this network, by one of its addresses.
    pub fn near_v4(&self, net: Prefix<u32>) -> Option<u16> {
        near(&self.list, net, |port| &port.v4)
    }

    /// Index of the port with this IPv6 network. Link-local networks are on every port, and are not found.
    pub fn near_v6(&self, net: Prefix<u128>) -> Option<u16> {
        near(&self.list, net, |port| &port.v6).filter(|_| !is_link_local(net.address()))
    }

    /// Source address for packets of the router to `neighbour` through the port `place`: the port's own in
    /// their common network, else its first, else any of the router's (RFC 1812, 4.3.2.4).
    pub fn source_v4_to(&self, place: u16, neighbour: u32) -> Option<u32> {
        let port = self.at(place)?;
        let near = port.v4.iter().find(|own| own.is_neighbour(neighbour));
        near.map(|own| own.address).or_else(|| self.source_v4(place))
    }

    /// Source address for packets of the router to `destination` by way of `neighbour`, through the port
    /// `place` (RFC 6724, 5): link-local for a link-local destination.
    pub fn source_v6_to(&self, place: u16, neighbour: u128, destination: u128) -> Option<u128> {
        let port = self.at(place)?;
        if is_link_local(destination) {
            return Some(port.link_local());
        }
        let is_near = |own: &&InterfaceAddress<u128>| {
            !is_link_local(own.address) && (own.is_neighbour(neighbour) || own.is_neighbour(destination))
        };
        let near = port.v6.iter().find(is_near);
        near.map(|own| own.address).or_else(|| self.source_v6(place))
    }

    /// An IPv4 address of the port `place`, else any.
    pub fn source_v4(&self, place: u16) -> Option<u32> {
        let own = self.at(place).into_iter().chain(&self.list);
        own.flat_map(|port| &port.v4).map(|own| own.address).next()
    }

    /// An IPv6 address of the port `place`, else any. The link-local address is last.
    pub fn source_v6(&self, place: u16) -> Option<u128> {
        let own = self.at(place).into_iter().chain(&self.list);
        let global = own.clone().flat_map(|port| &port.v6).find(|own| own.address >> 118 != 0x3fa);
        global.or_else(|| self.at(place)?.v6.first()).map(|own| own.address)
    }

    /// The source address of an answer to a packet to `address`, one of the router's: not an anycast address
    /// (RFC 4443, 2.2).
    pub fn answers_for(&self, address: u128) -> u128 {
        self.list.iter().find_map(|port| port.behind_anycast(address)).unwrap_or(address)
    }
}

fn near<A: Address>(
    ports: &[RouterPort],
    net: Prefix<A>,
    addresses: impl Fn(&RouterPort) -> &[InterfaceAddress<A>],
) -> Option<u16> {
    let has =
        |own: &InterfaceAddress<A>| own.len < A::BITS && own.len == net.bits() && net.holds(own.address);
    ports.iter().find(|port| addresses(port).iter().any(has)).map(|port| port.place)
}

fn check(port: &RouterPort) -> Result<(), PortsError> {
    let place = port.place;
    if !(LEAST_MTU..=65535).contains(&port.mtu) {
        return Err(PortsError::Mtu { place, mtu: port.mtu });
    }
    if port.mac == [0; 6] || port.mac[0] & 1 == 1 {
        return Err(PortsError::Mac { place });
    }
    for &InterfaceAddress { address, len } in &port.v4 {
        let first = address >> 24;
        if len == 0 || len > 32 || first == 0 || first == 127 || first >= 224 {
            return Err(PortsError::Address { place, address: IpAddr::V4(address.into()), len });
        }
    }
    for &InterfaceAddress { address, len } in &port.v6 {
        if len == 0 || len > 128 || address <= 1 || address >> 120 == 0xff {
            return Err(PortsError::Address { place, address: IpAddr::V6(address.into()), len });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(place: u16, mtu: u32, v4: u32) -> RouterPort {
        let v4 = vec![InterfaceAddress { address: v4, len: 24 }];
        RouterPort { place, mac: [2, 0, 0, 0, 0, place as u8], mtu, v4, v6: vec![] }
    }

    #[test]
    fn ports_are_found_by_place() {
        let ports = Ports::new(vec![port(9, 1500, 0x0a00_0101), port(4, 1500, 0x0a00_0001)]).unwrap();
        assert_eq!(ports.places, [4, 9]);
        for (place, number) in
            [(0, None), (4, Some(0)), (5, None), (9, Some(1)), (10, None), (u16::MAX, None)]
        {
            assert_eq!(ports.number(place), number, "{place}");
        }
        assert_eq!((ports.source_v4(9), ports.source_v4(7)), (Some(0x0a00_0101), Some(0x0a00_0001)));
        // RFC 4291, appendix A: the universal bit is inverted, fffe is inserted.
        let link_local = 0xfe80_0000_0000_0000_0000_00ff_fe00_0009;
        assert_eq!((ports.source_v6(9), ports.list[1].has_v6(link_local)), (Some(link_local), true));
    }

    #[test]
    fn some_ipv6_addresses_are_of_several_routers() {
        let net = |prefix: u128, host: u128, len| InterfaceAddress { address: prefix << 112 | host, len };
        let v6 = vec![net(0xfd00, 1, 64), net(0xfd01, 1, 127), net(0xfd02, 0, 64)];
        let port = RouterPort { v6, ..port(4, 1500, 0x0a00_0001) };
        for (address, own) in [
            (0xfd00 << 112, Some(0xfd00 << 112 | 1)),
            (0xfd00 << 112 | 1, None),
            (0xfd01 << 112, None),
            // Its own address, though it is the first of its network.
            (0xfd02 << 112, None),
            (0xfd03 << 112, None),
        ] {
            assert_eq!(port.behind_anycast(address), own, "{address:x}");
        }
        let group = |last: u128| 0xff02 << 112 | last;
        for (group, hears) in [
            (group(1), true),
            (group(2), true),
            (group(5), false),
            (0xff05 << 112 | 2, true),
            (0xff05 << 112 | 1, false),
            (solicited_node(1), true),
            (solicited_node(0), true),
            (solicited_node(2), false),
        ] {
            assert_eq!(port.hears(group), hears, "{group:x}");
        }
        let ports = Ports::new(vec![port]).unwrap();
        assert_eq!(ports.answers_for(0xfd00 << 112), 0xfd00 << 112 | 1);
        assert_eq!(ports.answers_for(0xfd07 << 112 | 7), 0xfd07 << 112 | 7);
    }

    #[test]
    fn what_no_router_has_is_refused() {
        assert_eq!(Ports::new(vec![]).unwrap_err(), PortsError::None);
        let twice = vec![port(4, 1500, 0x0a00_0001), port(4, 1500, 0x0a00_0101)];
        assert_eq!(Ports::new(twice).unwrap_err(), PortsError::Twice { place: 4 });
        assert!(matches!(Ports::new(vec![port(4, 1279, 0x0a00_0001)]), Err(PortsError::Mtu { .. })));
        for address in [0, 0x7f00_0001, 0xe000_0001, u32::MAX] {
            let refused = Ports::new(vec![port(4, 1500, address)]);
            assert!(matches!(refused, Err(PortsError::Address { .. })), "{address:x}");
        }
        let group = RouterPort { mac: [1; 6], ..port(4, 1500, 0x0a00_0001) };
        assert!(matches!(Ports::new(vec![group]), Err(PortsError::Mac { .. })));
    }
}
