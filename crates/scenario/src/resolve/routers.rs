//! Section `[[router]]`: ports, addresses, routes, neighbours, limits.

use super::nodes::{Nodes, OwnPort};
use super::{Entry, Resolver, hint};
use crate::address::{Mac, Network, number};
use crate::file::File;
use crate::file_router::{self, RouterNeighbour as WrittenNeighbour};
use crate::plan::{End, Places, Port};
use crate::router_plan::{Router, RouterNeighbour, RouterPort};
use crate::settings::{PoliceSettings, RouterPortSettings, RouterSettings};
use crate::written::{Name, Written};
use std::collections::{HashMap, HashSet};

/// Most routers.
const MOST_ROUTERS: usize = 1 << 16;

impl Resolver<'_, '_> {
    pub(super) fn routers(&mut self, file: &File, nodes: &mut Nodes) {
        for written in &file.router {
            let entry = Entry { section: "router", name: Some(&written.name.text), n: None };
            self.each_node(entry, written, |own, entry| own.router(entry, written, nodes));
        }
    }

    /// Adds a router. None after an error.
    fn router(&mut self, entry: &Entry<'_>, written: &file_router::Router, nodes: &mut Nodes) -> Option<()> {
        let Name(name) = self.term(entry, "name", &written.name)?;
        let number = nodes.routers.len();
        let taken = self.nodes.contains_key(&name);
        if taken || self.routers.insert(name.clone(), number as u32).is_some() {
            let what = format!("there are two nodes named \"{name}\"");
            let fix = "hosts, ports, bridges and routers share one space of names: rename one";
            return self.refuse(&written.name.span, entry, "name", what, fix);
        }
        if written.ports.is_empty() || number == MOST_ROUTERS {
            let (what, fix) = match number {
                MOST_ROUTERS => (format!("there are more than {MOST_ROUTERS} routers"), "make fewer"),
                _ => (
                    "a router needs a port".into(),
                    "add ports = [{ port = \"a\", addresses = \"10.0.0.1/24\" }]",
                ),
            };
            return self.refuse(&written.name.span, entry, "ports", what, fix);
        }
        let mut ports = Vec::with_capacity(written.ports.len());
        for port in &written.ports {
            ports.push(self.router_port(entry, port, number as u32, nodes)?);
        }
        self.apart(entry, written, &ports)?;
        let control = self.control_plane(entry, written, (number as u32, &mut ports), nodes)?;
        let settings = self.row::<_, RouterSettings>(entry, written)?;
        let police = self.subtable::<_, PoliceSettings>(entry, "police", written.police.as_ref())?.limits();
        let levels = self.levels(entry, written)?;
        let admission = self.admission(entry, (written, &settings), levels.set_aside())?;
        let sharing = self.processors(entry, (written, &settings), (&ports, &admission.prices))?;
        let not_in_real_time = self.beyond_threads(entry, written, sharing.as_ref());
        let mut router = Router {
            name,
            ports,
            police,
            admission,
            sharing,
            not_in_real_time,
            levels,
            control,
            ..Router::default()
        };
        for neighbour in &written.neighbours {
            router.neighbours.push(self.router_neighbour(entry, neighbour, &router)?);
        }
        let mut known = HashSet::new();
        for route in &written.routes {
            let route = self.router_route(entry, route, &router, &mut known)?;
            router.routes.push(route);
        }
        if let Some(table) = &written.routes_file {
            let routes = self.routes_file(entry, table, &router, &mut known)?;
            router.routes.extend(routes);
        }
        nodes.routers.push(router);
        Some(())
    }

    fn router_port(
        &mut self,
        entry: &Entry<'_>,
        written: &file_router::RouterPort,
        router: u32,
        nodes: &mut Nodes,
    ) -> Option<RouterPort> {
        let Name(name) = self.term(entry, "ports.port", &written.port)?;
        let wanted_bridge = self.wanted_bridge(entry, written.bridge.as_ref())?;
        let place = match self.nodes.get(&name) {
            Some(End::Bridge(_)) => {
                let what = format!("\"{name}\" is a bridge");
                let fix = format!("give the port a name of its own, and write bridge = \"{name}\"");
                return self.refuse(&written.port.span, entry, "ports.port", what, fix);
            }
            Some(End::Port(place)) => self.sit_on(entry, written, *place, nodes)?,
            None => {
                let place = self.place(entry, &written.port, nodes)?;
                self.nodes.insert(name.clone(), End::Port(place));
                nodes.put(place, Port::inner(name.clone(), place), written.port.span.clone(), None);
                nodes.own_ports.push(OwnPort { place, wanted_bridge });
                place
            }
        };
        nodes.ports[usize::from(place)].router = Some(router);
        let mac = self.optional(entry, "ports.mac", written.mac.as_ref())?;
        let mut mac = mac.unwrap_or(Mac::of_router(place));
        if let Some(other) = nodes.macs.insert(mac, place) {
            let other = &nodes.ports[usize::from(other)].name;
            let what = format!("{mac} is also the address of, or at, \"{other}\"");
            let span = written.mac.as_ref().map_or(&written.port.span, |mac| &mac.span);
            let fix = "give each a hardware address of its own, or none of them";
            self.error(span, entry, "ports.mac", what, fix);
            mac = Mac::of_router(place);
        }
        let RouterPortSettings { mtu } = self.subtable(entry, "ports", Some(written))?;
        let fault = |net: &Network| {
            let Network { address, prefix } = *net;
            // No station has the first address of a network, or the last.
            let (first, last) = net.range();
            let at_edge = address.is_ipv4() && prefix < 31 && [first, last].contains(&number(address));
            let is_special = address.is_unspecified() || address.is_multicast() || address.is_loopback();
            (is_special || at_edge).then(|| format!("{net} can't be the address of a router's port"))
        };
        let addresses = self.interface_addresses((entry, "ports.addresses"), &written.addresses, fault)?;
        Some(RouterPort { name, place, mac, mtu, addresses, control: None })
    }

    /// Checks that a host or port can be a router's port.
    fn sit_on(
        &mut self,
        entry: &Entry<'_>,
        written: &file_router::RouterPort,
        place: u16,
        nodes: &Nodes,
    ) -> Option<u16> {
        // A port whose own entry has errors only has a name.
        let port = nodes.ports.get(usize::from(place)).filter(|port| !port.is_vacant())?;
        let (what, fix) = if let Some(router) = port.router {
            let other = nodes.routers.get(router as usize).map_or("this one", |router| &router.name);
            (
                format!("\"{}\" is a port of router \"{other}\" already", port.name),
                "join routers by a link between ports of their own, or by a bridge".to_owned(),
            )
        } else if nodes.wanted_bridges.get(usize::from(place)).is_some_and(Option::is_some) {
            (
                format!("\"{}\" is attached to a bridge", port.name),
                "remove its bridge, or give the router a port of its own on that bridge".to_owned(),
            )
        } else if let Some(bridge) = &written.bridge {
            (
                format!("\"{}\" is a host or port", port.name),
                format!("remove bridge, or give the port a name of its own on \"{}\"", bridge.text),
            )
        } else {
            return Some(place);
        };
        self.refuse(&written.port.span, entry, "ports.port", what, fix)
    }

    /// Checks that no two ports have overlapping networks.
    fn apart(
        &mut self,
        entry: &Entry<'_>,
        written: &file_router::Router,
        ports: &[RouterPort],
    ) -> Option<()> {
        let mut nets: Vec<(bool, u128, u128, usize)> = Vec::new();
        for (number, port) in ports.iter().enumerate() {
            for net in &port.addresses {
                let (first, last) = net.range();
                nets.push((net.address.is_ipv6(), first, last, number));
            }
        }
        nets.sort_unstable();
        let mut widest: Option<(bool, u128, u128, usize)> = None;
        for net in nets {
            if let Some((v6, _, last, number)) = widest
                && (v6, number != net.3) == (net.0, true)
                && net.1 <= last
            {
                let (early, late) = (number.min(net.3), number.max(net.3));
                let what =
                    format!("the networks of \"{}\" and \"{}\" overlap", ports[early].name, ports[late].name);
                let fix = "give each port a network of its own: addresses in one can be distinguished by \
                    ports only";
                return self.refuse(&written.ports[late].port.span, entry, "ports.addresses", what, fix);
            }
            if widest.is_none_or(|(v6, _, last, _)| v6 != net.0 || net.2 > last) {
                widest = Some(net);
            }
        }
        Some(())
    }

    fn router_neighbour(
        &mut self,
        entry: &Entry<'_>,
        written: &WrittenNeighbour,
        router: &Router,
    ) -> Option<RouterNeighbour> {
        let address = self.term(entry, "neighbours.address", &written.address)?;
        let mac = self.term(entry, "neighbours.mac", &written.mac)?;
        if let Err(what) = router.check_neighbour(address) {
            self.findings.note(written.address.span.clone(), &entry.field("neighbours.address"), what, "");
        }
        let port = match &written.port {
            Some(name) => self.own_port(entry, "neighbours.port", name, router)?,
            None => {
                let near = router.port_towards(address).ok_or_else(|| router.no_network(address));
                self.accept(&written.address.span, entry, "neighbours.address", near)?
            }
        };
        Some(RouterNeighbour { port: port.place, address, mac })
    }

    pub(super) fn own_port<'r>(
        &mut self,
        entry: &Entry<'_>,
        key: &str,
        written: &Written<Name>,
        router: &'r Router,
    ) -> Option<&'r RouterPort> {
        let Name(name) = self.term(entry, key, written)?;
        if let Some(port) = router.port(&name) {
            return Some(port);
        }
        let known: Vec<&str> = router.ports.iter().map(|port| &*port.name).collect();
        let what = format!("the router has no port \"{name}\"");
        self.refuse(&written.span, entry, key, what, hint(&name, &known, ""))
    }
}

/// Sets the default gateway of hosts without one, where a single router has an address in their network.
pub(super) fn give_gateways(nodes: &mut Nodes) {
    // By segment: the addresses of routers.
    let mut near: HashMap<u32, Vec<Network>> = HashMap::new();
    for port in nodes.routers.iter().flat_map(|router| &router.ports) {
        let place = &nodes.ports[usize::from(port.place)];
        let Some(far) = place.attachment.far() else { continue };
        let segment = nodes.ports[usize::from(far)].segment;
        near.entry(segment).or_default().extend(&port.addresses);
    }
    for host in &mut nodes.hosts {
        let place = &nodes.ports[usize::from(host.port)];
        let own;
        let known: &[Network] = match place.router {
            Some(router) => {
                let router = &nodes.routers[router as usize];
                own = router.ports.iter().find(|port| port.place == host.port);
                own.map_or(&[], |port| &port.addresses)
            }
            None => near.get(&place.segment).map_or(&[], |list| list),
        };
        for v4 in [true, false] {
            if host.gateways.iter().any(|gateway| gateway.is_ipv4() == v4) {
                continue;
            }
            let serves = |net: &&Network| {
                net.address.is_ipv4() == v4 && host.addresses.iter().any(|own| own.contains(net.address))
            };
            let mut found = known.iter().filter(serves);
            if let (Some(net), None) = (found.next(), found.next()) {
                host.gateways.push(net.address);
            }
        }
    }
}

impl Nodes {
    /// The nodes that sources can address.
    pub(super) fn places(&self) -> Places<'_> {
        Places { ports: &self.ports, hosts: &self.hosts, routers: &self.routers }
    }

    /// Whether this port is a router's own.
    pub(super) fn is_inner_of_router(&self, place: u16) -> bool {
        let port = &self.ports[usize::from(place)];
        port.router.is_some() && port.attachment.far().is_some()
    }
}
