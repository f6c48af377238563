//! What programs see of the router: random numbers, and routes (`fib_lookup`) from the router's own tables.
//! Lookups change nothing and send no requests: a packet with an unresolved neighbour is passed, and full IP
//! resolves it.

use crate::next_hop::{NextHop, NextNeighbour, neighbour_key};
use crate::state::Core;
use longwire_block::Dice;
use longwire_program::{Environment, Hop, RouteAnswer, RouteQuery};
use longwire_units::Nanos;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, Ordering};

/// A stream of random numbers, shared by all threads that run a program.
#[derive(Default)]
pub(super) struct Random(pub AtomicU64);

/// The random numbers and routes for programs.
pub(super) struct Surroundings<'a> {
    pub random: &'a Random,
    pub core: Option<&'a Core>,
}

impl Environment for Surroundings<'_> {
    fn random(&mut self) -> u32 {
        let before = self.random.0.fetch_add(1, Ordering::Relaxed);
        (Dice::seeded(before).draw() >> 32) as u32
    }

    fn route(&mut self, query: &RouteQuery<'_>) -> RouteAnswer {
        self.core.map_or(RouteAnswer::Disabled, |core| core.answer(query))
    }
}

impl Core {
    /// The answer to a lookup.
    pub(super) fn answer(&self, query: &RouteQuery<'_>) -> RouteAnswer {
        let is_port = u16::try_from(query.ingress).is_ok_and(|place| self.ports.at(place).is_some());
        if !is_port {
            return RouteAnswer::NoPort;
        }
        if is_confined(query.destination) || is_confined(query.source) {
            return RouteAnswer::NotForwarded;
        }
        let routed = match query.destination {
            IpAddr::V4(address) => self.fib.way_v4(address.into()),
            IpAddr::V6(address) => self.fib.way_v6(address.into()),
        };
        let hop = routed.map(|hop| self.chosen(hop, query.packet));
        if hop == Some(NextHop::Discard) {
            return RouteAnswer::Discarded;
        }
        let next = hop.and_then(|hop| hop.neighbour(neighbour_key(query.destination)));
        let Some(NextNeighbour { port: place, address, .. }) = next else { return RouteAnswer::NotForwarded };
        let Some(port) = self.ports.at(place) else { return RouteAnswer::NotForwarded };
        let neighbour = Ipv6Addr::from(address).to_canonical();
        let hop = Hop { port: place.into(), mtu: port.mtu, neighbour, mac: port.mac };
        if u32::from(query.length) > port.mtu {
            return RouteAnswer::TooLong(hop);
        }
        if query.skips_neighbour {
            return RouteAnswer::Forward(hop, None);
        }
        match self.neighbours.find(place, address, Nanos(query.now)).mac() {
            Some(mac) => RouteAnswer::Forward(hop, Some(mac)),
            None => RouteAnswer::NoNeighbour(hop),
        }
    }
}

/// Whether full IP forwards nothing to or from this address, whatever the routes: groups and broadcasts, and
/// addresses within a link or a host.
fn is_confined(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.octets()[0] >= 224 || address.is_link_local() || address.is_loopback(),
        IpAddr::V6(address) => {
            address.is_multicast() || address.is_unicast_link_local() || address.is_loopback()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::router::{Router, RouterConfig};
    use crate::support::{host_mac, mac, three_ports};

    /// A default route leads there for no packet that the router would not forward.
    #[test]
    fn what_stays_within_a_link_is_not_forwarded() {
        let config = RouterConfig { ports: three_ports(), ..RouterConfig::default() };
        let mut router = Router::new(config).unwrap();
        let gateways = ["10.0.1.9", "fd01::9"].map(|gateway| gateway.parse::<IpAddr>().unwrap());
        for gateway in gateways {
            assert!(router.set_neighbour(20, gateway, host_mac(1)));
        }
        router.add_route_v4("0.0.0.0/0".parse().unwrap(), NextHop::via(20, gateways[0])).unwrap();
        router.add_route_v6("::/0".parse().unwrap(), NextHop::via(20, gateways[1])).unwrap();
        let answer = |source: &str, destination: &str| {
            let [source, destination] =
                [source, destination].map(|address| address.parse::<IpAddr>().unwrap());
            let (length, skips_neighbour) = (0, false);
            let query =
                RouteQuery { source, destination, ingress: 10, length, skips_neighbour, now: 0, packet: &[] };
            router.core.answer(&query)
        };
        let globals = [("10.0.0.9", "20.0.0.1"), ("0.0.0.0", "20.0.0.1"), ("fd00::9", "2001:db8::1")];
        for ((source, destination), gateway) in globals.into_iter().zip([0, 0, 1]) {
            let hop = Hop { port: 20, mtu: 1500, neighbour: gateways[gateway], mac: mac(1) };
            let forward = RouteAnswer::Forward(hop, Some(host_mac(1)));
            assert_eq!(answer(source, destination), forward, "{source} {destination}");
        }
        for destination in ["169.254.0.1", "224.0.0.5", "240.0.0.1", "255.255.255.255", "127.0.0.1"] {
            assert_eq!(answer("10.0.0.9", destination), RouteAnswer::NotForwarded, "{destination}");
        }
        for destination in ["fe80::1", "ff02::1", "ff02::1:ff00:1", "ff0e::1", "::1"] {
            assert_eq!(answer("fd00::9", destination), RouteAnswer::NotForwarded, "{destination}");
        }
        for (source, destination) in [("fe80::9", "2001:db8::1"), ("169.254.0.9", "20.0.0.1")] {
            assert_eq!(answer(source, destination), RouteAnswer::NotForwarded, "{source}");
        }
    }
}
