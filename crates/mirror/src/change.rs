//! Changes for a router, and their execution.

use longwire_router::prefix::Prefix;
use longwire_router::{Confirmation, InterfaceAddress, RouteHops, Router};
use longwire_units::Nanos;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A destination network: an address whose bits after the prefix are zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Destination {
    address: IpAddr,
    prefix: u8,
}

impl Destination {
    /// The network of `prefix` bits that contains `address`; none if `prefix` is too long.
    pub fn new(address: IpAddr, prefix: u8) -> Option<Self> {
        let address = match address {
            IpAddr::V4(v4) => {
                let host = 32_u32.checked_sub(prefix.into())?;
                IpAddr::V4(Ipv4Addr::from_bits(cleared(v4.to_bits().into(), host) as u32))
            }
            IpAddr::V6(v6) => {
                let host = 128_u32.checked_sub(prefix.into())?;
                IpAddr::V6(Ipv6Addr::from_bits(cleared(v6.to_bits(), host)))
            }
        };
        Some(Self { address, prefix })
    }

    /// Its lowest address.
    pub const fn address(&self) -> IpAddr {
        self.address
    }

    /// Length of its prefix in bits.
    pub const fn prefix(&self) -> u8 {
        self.prefix
    }
}

/// Clears the lowest bits of a number.
fn cleared(bits: u128, lowest: u32) -> u128 {
    bits.checked_shr(lowest).and_then(|bits| bits.checked_shl(lowest)).unwrap_or(0)
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

/// A change of a router's state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A port is up, or down.
    Up {
        /// The port's number in the plan.
        port: u16,
        /// Whether it is up.
        up: bool,
    },
    /// A port has exactly these addresses.
    Addresses {
        /// The port's number in the plan.
        port: u16,
        /// Its IPv4 addresses.
        v4: Vec<InterfaceAddress<u32>>,
        /// Its IPv6 addresses.
        v6: Vec<InterfaceAddress<u128>>,
    },
    /// The next hops of a network; none removes the route.
    Route {
        /// The network.
        to: Destination,
        /// The destination of packets.
        way: Option<RouteHops>,
    },
    /// The link address of a neighbour; none if it is no longer known.
    Neighbour {
        /// Number in the plan of the neighbour's port.
        port: u16,
        /// Its address.
        address: IpAddr,
        /// Its link address with its state.
        mac: Option<([u8; 6], Confirmation)>,
    },
}

impl Change {
    /// Applies the change to a router. Returns false if it refuses: a table is full, or there is no such
    /// port.
    pub fn carry_out(self, router: &mut Router, now: Nanos) -> bool {
        match self {
            Self::Up { port, up } => router.set_up(port, up),
            Self::Addresses { port, v4, v6 } => router.set_addresses(port, (v4, v6)).is_ok(),
            Self::Route { to, way } => route(router, to, way),
            Self::Neighbour { port, address, mac: Some((mac, known)) } => {
                router.note_neighbour(port, address, mac, known, now)
            }
            Self::Neighbour { port, address, mac: None } => {
                router.forget_neighbour(port, address);
                true
            }
        }
    }
}

fn route(router: &mut Router, to: Destination, way: Option<RouteHops>) -> bool {
    match to.address {
        IpAddr::V4(address) => Prefix::<u32>::new(address.to_bits(), to.prefix).is_ok_and(|to| match way {
            Some(way) => router.add_route_v4(to, way).is_ok(),
            None => {
                router.remove_route_v4(to);
                true
            }
        }),
        IpAddr::V6(address) => Prefix::<u128>::new(address.to_bits(), to.prefix).is_ok_and(|to| match way {
            Some(way) => router.add_route_v6(to, way).is_ok(),
            None => {
                router.remove_route_v6(to);
                true
            }
        }),
    }
}

/// All routes of a router.
pub fn routes_of(router: &Router) -> Vec<(Destination, RouteHops)> {
    let v4 = router.routes_v4().map(|(to, way)| (IpAddr::V4(to.address().into()), to.bits(), way));
    let v6 = router.routes_v6().map(|(to, way)| (IpAddr::V6(to.address().into()), to.bits(), way));
    let both = v4.chain(v6);
    both.filter_map(|(address, bits, way)| Some((Destination::new(address, bits)?, way))).collect()
}

/// The recipient of changes, which applies them between two batches of packets.
pub trait Target: Send {
    /// The routes of the router; none if it has ended.
    fn routes(&mut self) -> Option<Vec<(Destination, RouteHops)>>;

    /// Applies changes in order, and returns which succeeded; none if the router has ended.
    fn apply(&mut self, changes: Vec<Change>) -> Option<Vec<bool>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_have_no_bits_behind_their_prefix() {
        for (address, prefix, network) in [
            ("10.1.2.3", 24, Some("10.1.2.0/24")),
            ("10.1.2.3", 0, Some("0.0.0.0/0")),
            ("10.1.2.3", 32, Some("10.1.2.3/32")),
            ("10.1.2.3", 33, None),
            ("fd00::1", 64, Some("fd00::/64")),
            ("fd00::1", 0, Some("::/0")),
            ("fd00::1", 129, None),
        ] {
            let made = Destination::new(address.parse().unwrap(), prefix).map(|to| to.to_string());
            assert_eq!(made.as_deref(), network, "{address}/{prefix}");
        }
    }
}
