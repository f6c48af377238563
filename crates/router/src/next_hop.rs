//! Next hops of routes.

use std::net::IpAddr;

/// The next hop of packets that a route matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NextHop {
    /// To a neighbour at a port.
    Gateway {
        /// Index of the port in the plan.
        port: u16,
        /// The neighbour's address, as written by [`neighbour_key`].
        gateway: u128,
    },
    /// To the destination itself, which is a neighbour at a port.
    Direct {
        /// Index of the port in the plan.
        port: u16,
    },
    /// To the router itself.
    Local,
    /// To all hosts of a network at one of the router's ports.
    Broadcast,
    /// Dropped silently.
    Discard,
    /// To one of several: the internal form of a route to a [`Group`](crate::Group).
    Group(GroupId),
}

/// A neighbour to which a packet goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NextNeighbour {
    /// Index of its port in the plan.
    pub port: u16,
    /// Its address, as written by [`neighbour_key`].
    pub address: u128,
    /// Whether it is a gateway of routes.
    pub is_gateway: bool,
}

/// Number of a group of next hops, assigned by its router.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct GroupId(pub(crate) u16);

impl NextHop {
    /// The neighbour `gateway` at `port`.
    pub fn via(port: u16, gateway: IpAddr) -> Self {
        Self::Gateway { port, gateway: neighbour_key(gateway) }
    }

    /// The port of the neighbour, if it is one.
    pub const fn port(self) -> Option<u16> {
        match self {
            Self::Gateway { port, .. } | Self::Direct { port } => Some(port),
            Self::Local | Self::Broadcast | Self::Discard | Self::Group(_) => None,
        }
    }

    /// The neighbour to which a packet to `destination` goes, if it goes to one.
    pub(crate) const fn neighbour(self, destination: u128) -> Option<NextNeighbour> {
        match self {
            Self::Gateway { port, gateway } => {
                Some(NextNeighbour { port, address: gateway, is_gateway: true })
            }
            Self::Direct { port } => Some(NextNeighbour { port, address: destination, is_gateway: false }),
            Self::Local | Self::Broadcast | Self::Discard | Self::Group(_) => None,
        }
    }
}

/// An address of either family as a number: IPv4 addresses in their IPv6 form ::ffff:0:0/96 (RFC 4291,
/// 2.5.5.2).
pub fn neighbour_key(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => v4_key(address.into()),
        IpAddr::V6(address) => address.into(),
    }
}

/// An IPv4 address as a 128-bit number.
#[inline]
pub(crate) const fn v4_key(address: u32) -> u128 {
    0xffff << 32 | address as u128
}

/// The IPv4 address in a 128-bit number, if it is one.
#[inline]
pub(crate) const fn key_v4(key: u128) -> Option<u32> {
    if key >> 32 == 0xffff { Some(key as u32) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_addresses_of_both_kinds() {
        let key = neighbour_key(IpAddr::from([10, 0, 0, 1]));
        assert_eq!((key, key_v4(key)), (v4_key(0x0a00_0001), Some(0x0a00_0001)));
        assert_eq!(key_v4(neighbour_key(IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, 1]))), None);
    }
}
