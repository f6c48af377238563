//! What programs see of the router: random numbers, and routes (`fib_lookup`) from the router's own tables.
//! Lookups change nothing and send no requests: a packet with an unresolved neighbour is passed, and full IP
//! resolves it.

use crate::neighbour::Resolution;
use crate::next_hop::{NextHop, key_v4, neighbour_key};
use crate::state::Core;
use longwire_block::Dice;
use longwire_program::{Environment, Hop, RouteAnswer, RouteQuery};
use longwire_units::Nanos;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
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
        let routed = match query.destination {
            IpAddr::V4(address) => self.fib.way_v4(address.into()),
            IpAddr::V6(address) => self.fib.way_v6(address.into()),
        };
        let destination = neighbour_key(query.destination);
        let (place, neighbour) = match routed.map(|hop| self.chosen(hop, query.packet)) {
            Some(NextHop::Gateway { port, gateway }) => (port, gateway),
            Some(NextHop::Direct { port }) => (port, destination),
            Some(NextHop::Discard) => return RouteAnswer::Discarded,
            Some(NextHop::Local | NextHop::Broadcast | NextHop::Group(_)) | None => {
                return RouteAnswer::NotForwarded;
            }
        };
        let Some(port) = self.ports.at(place) else { return RouteAnswer::NotForwarded };
        let address = match key_v4(neighbour) {
            Some(address) => Ipv4Addr::from(address).into(),
            None => Ipv6Addr::from(neighbour).into(),
        };
        let hop = Hop { port: place.into(), mtu: port.mtu, neighbour: address, mac: port.mac };
        if u32::from(query.length) > port.mtu {
            return RouteAnswer::TooLong(hop);
        }
        if query.skips_neighbour {
            return RouteAnswer::Forward(hop, None);
        }
        match self.neighbours.find(place, neighbour, Nanos(query.now)) {
            Resolution::Known(mac) | Resolution::Doubtful(mac) => RouteAnswer::Forward(hop, Some(mac)),
            Resolution::Unknown => RouteAnswer::NoNeighbour(hop),
        }
    }
}
