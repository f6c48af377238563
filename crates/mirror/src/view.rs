//! The current state of the kernel according to its messages, and the router's state derived from it.

use crate::change::{Change, Destination};
use crate::message::{KernelHop, KernelMember, KernelMessage, KernelRoute};
use longwire_router::{Confirmation, InterfaceAddress, MOST_MEMBERS, Member, NextHop, RouteHops};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};

/// Most addresses of an interface that its port receives: neighbour requests are compared with each.
const MOST_ADDRESSES: usize = 64;

/// The kernel's state. Changed parts are *touched* until they are taken.
#[derive(Debug, Default)]
pub struct View {
    /// Numbers of the router's ports, by the index of their interface.
    ports: BTreeMap<u32, u16>,
    /// Whether each interface is up, and whether it has a carrier.
    links: BTreeMap<u32, (bool, bool)>,
    addresses: BTreeMap<u32, BTreeSet<(IpAddr, u8)>>,
    routes: BTreeMap<Destination, Vec<KernelRoute>>,
    neighbours: BTreeMap<(u32, IpAddr), ([u8; 6], Confirmation)>,
    touched: ChangedEntries,
}

#[derive(Debug, Default)]
struct ChangedEntries {
    links: BTreeSet<u32>,
    addresses: BTreeSet<u32>,
    routes: BTreeSet<Destination>,
    neighbours: BTreeSet<(u32, IpAddr)>,
}

impl View {
    /// An empty view for a router with these ports: (interface index, port number).
    pub fn new(ports: impl IntoIterator<Item = (u32, u16)>) -> Self {
        Self { ports: ports.into_iter().collect(), ..Self::default() }
    }

    /// Clears and touches everything, so that a dump fills it again.
    pub fn forget(&mut self) {
        let touched = &mut self.touched;
        touched.links.extend(self.ports.keys());
        touched.addresses.extend(self.ports.keys());
        touched.routes.extend(self.routes.keys());
        touched.neighbours.extend(self.neighbours.keys());
        let ports = std::mem::take(&mut self.ports);
        let touched = std::mem::take(&mut self.touched);
        *self = Self { ports, touched, ..Self::default() };
    }

    /// Touches networks, so that their state is sent.
    pub fn touch(&mut self, networks: impl IntoIterator<Item = Destination>) {
        self.touched.routes.extend(networks);
    }

    /// Applies a message of the kernel. Returns false if the view may be incomplete from now on, and a dump
    /// is needed.
    #[must_use]
    pub fn note(&mut self, told: KernelMessage) -> bool {
        match told {
            KernelMessage::Link { index, up, carrier } => {
                let before = self.links.insert(index, (up, carrier));
                self.touched.links.insert(index);
                // The kernel removes the IPv4 routes of an interface, and takes its next hops out of routes
                // and back in, without individual messages.
                before.is_none_or(|before| before == (up, carrier))
            }
            KernelMessage::LinkGone { index } => {
                self.links.remove(&index);
                self.touched.links.insert(index);
                false
            }
            KernelMessage::Address { index, address, prefix, there } => {
                let own = self.addresses.entry(index).or_default();
                let changed =
                    if there { own.insert((address, prefix)) } else { own.remove(&(address, prefix)) };
                if changed {
                    self.touched.addresses.insert(index);
                }
                there || !changed
            }
            KernelMessage::Route { route, there, replaces } => self.note_route(route, there, replaces),
            KernelMessage::RoutesUncertain => false,
            KernelMessage::Neighbour { index, address, mac, failed } => {
                self.note_neighbour((index, address), mac, failed);
                true
            }
        }
    }

    fn note_route(&mut self, route: KernelRoute, there: bool, replaces: bool) -> bool {
        let to = route.to;
        let list = self.routes.entry(to).or_default();
        self.touched.routes.insert(to);
        // Of several IPv4 routes of one metric the first is used, and the only one to be replaced. A message
        // does not say which is the first; a dump does.
        let alike = list.iter().filter(|other| is_alike(other, &route)).count();
        let is_known = !replaces && list.contains(&route);
        let order_matters = there && to.address().is_ipv4() && alike > usize::from(replaces);
        let mut sound = !order_matters || is_known;
        if replaces {
            list.retain(|other| !is_alike(other, &route));
        }
        for route in parts(route) {
            let at = list.iter().position(|other| is_same(other, &route));
            match (at, there) {
                (Some(at), true) => list[at] = route,
                (None, true) => list.push(route),
                (Some(at), false) => drop(list.remove(at)),
                // A route with a known metric but another next hop: it was changed in the meantime.
                (None, false) => sound &= !list.iter().any(|other| is_alike(other, &route)),
            }
        }
        if list.is_empty() {
            self.routes.remove(&to);
        }
        sound
    }

    fn note_neighbour(&mut self, key: (u32, IpAddr), mac: Option<([u8; 6], Confirmation)>, failed: bool) {
        if !self.ports.contains_key(&key.0) {
            return;
        }
        let before = self.neighbours.get(&key).copied();
        if before == mac {
            return;
        }
        // The kernel forgets neighbours to which it has not sent for a while; the router may be sending all
        // the time.
        let is_idle =
            mac.is_none() && !failed && before.is_some_and(|(_, known)| known != Confirmation::Permanent);
        if !is_idle {
            self.touched.neighbours.insert(key);
        }
        match mac {
            Some(known) => self.neighbours.insert(key, known),
            None => self.neighbours.remove(&key),
        };
    }

    /// The next hops of a network.
    pub fn way(&self, to: &Destination) -> Option<RouteHops> {
        let list = self.routes.get(to)?;
        let best = list.iter().min_by_key(|route| (!route.is_local_table, route.metric))?;
        let members = match &best.hop {
            KernelHop::Local => return Some(NextHop::Local.into()),
            KernelHop::Broadcast => return Some(NextHop::Broadcast.into()),
            KernelHop::Discard => return Some(NextHop::Discard.into()),
            KernelHop::Via(members) => members.iter(),
        };
        // With IPv6 each next hop is a route of its own; those of one metric with gateways are combined. With
        // IPv4 the first route wins, with all its next hops.
        let others = list.iter().filter(|other| is_sibling(best, other)).flat_map(|other| match &other.hop {
            KernelHop::Via(members) => members.iter(),
            _ => [].iter(),
        });
        let reached = members.chain(others).filter_map(|member| self.reached(member)).take(MOST_MEMBERS);
        // Interfaces without a port of the router lead nowhere.
        Some(RouteHops::among(reached).unwrap_or(NextHop::Discard.into()))
    }

    /// A next hop behind a port of the router.
    fn reached(&self, member: &KernelMember) -> Option<Member> {
        let &KernelMember { index, gateway, weight } = member;
        let &port = self.ports.get(&index)?;
        let hop = gateway.map_or(NextHop::Direct { port }, |gateway| NextHop::via(port, gateway));
        Some(Member { hop, weight })
    }

    /// Number of known neighbours.
    pub fn neighbours(&self) -> usize {
        self.neighbours.len()
    }

    /// Changes for the router, in the order of application; afterwards nothing is touched.
    pub fn take_changes(&mut self) -> Vec<Change> {
        let touched = std::mem::take(&mut self.touched);
        let place = |index: &u32| self.ports.get(index).copied();
        let ups = touched.links.iter().filter_map(|index| {
            Some(Change::Up { port: place(index)?, up: self.links.get(index).is_some_and(|(up, _)| *up) })
        });
        let addresses = touched.addresses.iter().filter_map(|index| {
            let (v4, v6) = self.addresses_of(*index);
            Some(Change::Addresses { port: place(index)?, v4, v6 })
        });
        let routes = touched.routes.iter().map(|to| Change::Route { to: *to, way: self.way(to) });
        let neighbours = touched.neighbours.iter().filter_map(|key| {
            let mac = self.neighbours.get(key).copied();
            Some(Change::Neighbour { port: place(&key.0)?, address: key.1, mac })
        });
        ups.chain(addresses).chain(routes).chain(neighbours).collect()
    }

    fn addresses_of(&self, index: u32) -> (Vec<InterfaceAddress<u32>>, Vec<InterfaceAddress<u128>>) {
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for &(address, len) in self.addresses.get(&index).into_iter().flatten() {
            // Addresses that the router's ports can't have are left out.
            match address {
                _ if len == 0
                    || address.is_loopback()
                    || address.is_unspecified()
                    || address.is_multicast() => {}
                IpAddr::V4(address) if v4.len() < MOST_ADDRESSES && address.octets()[0] != 0 => {
                    v4.push(InterfaceAddress { address: address.into(), len });
                }
                IpAddr::V6(address) if v6.len() < MOST_ADDRESSES => {
                    v6.push(InterfaceAddress { address: address.into(), len });
                }
                _ => {}
            }
        }
        // Link-local addresses come last: errors are sent from the first address.
        v6.sort_by_key(|own| Ipv6Addr::from_bits(own.address).is_unicast_link_local());
        (v4, v6)
    }
}

/// The parts of a route in the view: with IPv6 each next hop is a separate route, announced and removed
/// separately.
fn parts(route: KernelRoute) -> Vec<KernelRoute> {
    match &route.hop {
        KernelHop::Via(members) if route.to.address().is_ipv6() && members.len() > 1 => {
            let part =
                |member: &KernelMember| KernelRoute { hop: KernelHop::Via(vec![*member]), ..route.clone() };
            members.iter().map(part).collect()
        }
        _ => vec![route],
    }
}

/// Whether two routes to one network have the same metric.
fn is_alike(one: &KernelRoute, other: &KernelRoute) -> bool {
    (one.is_local_table, one.metric) == (other.is_local_table, other.metric)
}

/// Whether two routes are the same: removals of a single next hop have no weight.
fn is_same(one: &KernelRoute, other: &KernelRoute) -> bool {
    let hops = |route: &KernelRoute| match &route.hop {
        KernelHop::Via(members) => members.iter().map(|member| (member.index, member.gateway)).collect(),
        _ => Vec::new(),
    };
    let same = std::mem::discriminant(&one.hop) == std::mem::discriminant(&other.hop);
    is_alike(one, other) && same && hops(one) == hops(other)
}

/// Whether another IPv6 route shares the flows of `best` (linux/net/ipv6/ip6_fib.c: those with gateways do).
fn is_sibling(best: &KernelRoute, other: &KernelRoute) -> bool {
    let has_gateway = |route: &KernelRoute| {
        matches!(&route.hop,
        KernelHop::Via(members) if members.iter().all(|member| member.gateway.is_some()))
    };
    let both = has_gateway(best) && has_gateway(other);
    best.to.address().is_ipv6() && both && is_alike(best, other) && !is_same(best, other)
}
