//! Hosts, ports and bridges.

use super::{Entry, Resolver};
use crate::address::{Mac, Network};
use crate::file::{self, File};
use crate::plan::{
    Attachment, Bridge, BridgeSettings, DriverSettings, End, Host, HostRoute, Plan, Port, PortSide,
};
use crate::router_plan::Router;
use crate::row::{Params, Repeated};
use crate::settings::HostSettings;
use crate::template;
use crate::written::{Listed, Name, Text, Written};
use longwire_block::{MAX_PORTS, Settings};
use longwire_drivers::{Backend, Netns};
use std::collections::HashMap;
use std::net::IpAddr;
use std::ops::Range;

const MOST_BRIDGES: usize = 1 << 16;

/// A router's own port: its place, and the bridge it names.
pub(super) struct OwnPort {
    pub(super) place: u16,
    pub(super) wanted_bridge: Option<(u32, Range<usize>)>,
}

/// Hosts, ports, bridges and routers. Ports' bridges are known once the links are.
#[derive(Default)]
pub(super) struct Nodes {
    pub(super) hosts: Vec<Host>,
    pub(super) ports: Vec<Port>,
    pub(super) bridges: Vec<Bridge>,
    /// Places of each port in the file, and the bridges they name.
    pub(super) spans: Vec<Range<usize>>,
    pub(super) wanted_bridges: Vec<WantedBridge>,
    pub(super) routers: Vec<Router>,
    /// Routers' own ports.
    pub(super) own_ports: Vec<OwnPort>,
    pub(super) macs: HashMap<Mac, u16>,
    /// By port: the place of its key `queues`.
    pub(super) queue_spans: HashMap<u16, Range<usize>>,
    interfaces: HashMap<(Netns, String), u16>,
    pub(super) kept: KeptPlaces,
}

impl Nodes {
    /// Nodes whose ports have the `kept` places.
    fn with(kept: KeptPlaces) -> Self {
        let count = kept.names.len();
        let ports = kept.names.iter().cloned().map(|(name, side)| Port::vacant(name, side)).collect();
        let (spans, wanted_bridges) = (vec![0..0; count], vec![None; count]);
        Self { ports, spans, wanted_bridges, kept, ..Self::default() }
    }

    /// The place of the port called `name`: the one that it had, or a new one. None if there are too many.
    pub(super) fn place_of(&self, name: &str, side: PortSide) -> Option<u16> {
        let kept = self.kept.ports.get(&(name.into(), side)).copied();
        kept.or((self.ports.len() < MAX_PORTS).then_some(self.ports.len() as u16))
    }

    /// Puts a port at its place, with where it stands in the file and the bridge it asks for.
    pub(super) fn put(&mut self, place: u16, port: Port, span: Range<usize>, bridge: WantedBridge) {
        let at = usize::from(place);
        if at == self.ports.len() {
            self.ports.push(port);
            self.spans.push(span);
            self.wanted_bridges.push(bridge);
        } else {
            (self.ports[at], self.spans[at], self.wanted_bridges[at]) = (port, span, bridge);
        }
    }
}

/// Numbers in a plan that runs, which the plan that follows keeps: places of ports, by their names, numbers
/// of links for programs, and those of traffic sources.
#[derive(Debug, Default)]
pub(crate) struct KeptPlaces {
    /// The place of each port.
    ports: HashMap<(Box<str>, PortSide), u16>,
    /// By place, those of removed ports included.
    pub(super) names: Vec<(Box<str>, PortSide)>,
    /// By the name of a link: its number for programs.
    links: HashMap<Box<str>, u16>,
    /// The first number that no link has.
    next_link: u16,
    /// By the name of a traffic source: its number.
    sources: HashMap<Box<str>, u16>,
    /// How many numbers sources have had.
    pub(super) source_numbers: u16,
}

impl KeptPlaces {
    /// The places in `plan`.
    pub(crate) fn of(plan: &Plan) -> Self {
        let names: Vec<_> = plan.ports.iter().map(|port| (port.name.clone(), port.side())).collect();
        let ports = names.iter().cloned().zip(0..).collect();
        let choices = plan.routers.iter().flat_map(|router| &router.links);
        let links: HashMap<_, _> = choices.map(|link| (link.name.clone(), link.number)).collect();
        let next_link = links.values().max().map_or(0, |last| last.saturating_add(1));
        let sources = plan.sources.iter().map(|source| (source.name.clone(), source.number)).collect();
        Self { ports, names, links, next_link, sources, source_numbers: plan.source_numbers }
    }

    /// The number of a link for programs: the one that it had, or a new one. None if there are too many.
    pub(super) fn link_number(&mut self, name: &str) -> Option<u16> {
        if let Some(&number) = self.links.get(name) {
            return Some(number);
        }
        let number = self.next_link;
        self.next_link = number.checked_add(1)?;
        Some(number)
    }

    /// The number of a traffic source: the one that it had, or a new one. A run that has had more than can be
    /// distinguished is refused when the source is to begin.
    pub(super) fn source_number(&mut self, name: &str) -> u16 {
        if let Some(&number) = self.sources.get(name) {
            return number;
        }
        let number = self.source_numbers;
        self.source_numbers = number.saturating_add(1);
        number
    }
}

/// The bridge that a port names, and where.
type WantedBridge = Option<(u32, Range<usize>)>;

impl Resolver<'_, '_> {
    pub(super) fn nodes(&mut self, file: &File, kept: KeptPlaces) -> Nodes {
        let mut nodes = Nodes::with(kept);
        self.bridges(file, &mut nodes);
        for written in &file.host {
            let entry = Entry { section: "host", name: Some(&written.name.text), n: None };
            self.each_node(entry, written, |own, entry| own.host(entry, written, &mut nodes));
        }
        for written in &file.port {
            let entry = Entry { section: "port", name: Some(&written.name.text), n: None };
            self.each_node(entry, written, |own, entry| own.declared_port(entry, written, &mut nodes));
        }
        self.routers(file, &mut nodes);
        if nodes.ports.iter().all(Port::is_vacant) && !self.findings.failed() {
            let fix = "add [[host]] or [[port]] entries; docs/book/scenario.md has examples";
            self.error(&(0..0), &Entry::root(), "", "there is no host and no port: nothing can send", fix);
        }
        nodes
    }

    /// Makes the nodes of an entry, up to one with an error.
    pub(super) fn each_node<T>(
        &mut self,
        entry: Entry<'_>,
        written: &Repeated<T>,
        mut make: impl FnMut(&mut Self, &Entry<'_>) -> Option<()>,
    ) {
        let mut numbers = self.numbers(&entry, written).peekable();
        self.some_unmade |= numbers.peek().is_none();
        for n in numbers {
            if make(self, &Entry { n, ..entry }).is_none() {
                // A single host, port or bridge has its name all the same; a router's ports may not.
                self.some_unmade |= n.is_some() || entry.section == "router";
                return;
            }
        }
    }

    /// The place of a port, and its name, none after an error. It has both whatever else is wrong with it.
    fn place_and_name(
        &mut self,
        entry: &Entry<'_>,
        written: &Written<Name>,
        nodes: &mut Nodes,
    ) -> Option<(u16, Option<Box<str>>)> {
        let place = self.place(entry, written, nodes)?;
        let name = self.name(entry, written, End::Port(place));
        if let Some(name) = &name {
            nodes.put(place, Port::vacant(name.clone(), PortSide::Near), written.span.clone(), None);
        }
        Some((place, name))
    }

    /// Names a node. None after an error.
    fn name(&mut self, entry: &Entry<'_>, written: &Written<Name>, end: End) -> Option<Box<str>> {
        let Name(name) = self.term(entry, "name", written)?;
        if self.nodes.contains_key(&name) {
            let what = format!("there are two nodes named \"{name}\"");
            let fix = if entry.n.is_some() {
                "put {n} into the name, so that each has its own"
            } else {
                "hosts, ports and bridges share one space of names: rename one"
            };
            return self.refuse(&written.span, entry, "name", what, fix);
        }
        self.nodes.insert(name.clone(), end);
        Some(name)
    }

    fn bridges(&mut self, file: &File, nodes: &mut Nodes) {
        for written in &file.bridge {
            let entry = Entry { section: "bridge", name: Some(&written.name.text), n: None };
            self.each_node(entry, written, |own, entry| own.bridge(entry, written, nodes));
        }
        if file.bridge.is_empty() {
            nodes.bridges.push(Bridge::new("bridge".into(), BridgeSettings::defaults(), false));
        }
    }

    fn bridge(&mut self, entry: &Entry<'_>, written: &file::Bridge, nodes: &mut Nodes) -> Option<()> {
        if nodes.bridges.len() == MOST_BRIDGES {
            let what = format!("there are more than {MOST_BRIDGES} bridges");
            return self.refuse(&written.name.span, entry, "", what, "make fewer");
        }
        let settings: Option<BridgeSettings> = self.row(entry, written);
        let name = self.name(entry, &written.name, End::Bridge(nodes.bridges.len() as u32))?;
        // It has its number even if its settings have errors.
        nodes.bridges.push(Bridge::new(name, settings.unwrap_or_else(BridgeSettings::defaults), true));
        settings.is_some().then_some(())
    }

    fn host(&mut self, entry: &Entry<'_>, written: &file::Host, nodes: &mut Nodes) -> Option<()> {
        let (place, name) = self.place_and_name(entry, &written.name, nodes)?;
        let addresses = self.host_addresses(entry, written);
        let settings = self.row(entry, written);
        let wanted_bridge = self.wanted_bridge(entry, written.bridge.as_ref());
        // A second node of a name may have the place, and so the hardware address, of the first.
        let name = name?;
        let mac = self.mac(entry, written.mac.as_ref(), (&written.name, place), nodes);
        let (addresses, mac) = (addresses?, mac?);
        let (gateways, routes) = self.host_routes(entry, written, &addresses)?;
        let host = nodes.hosts.len() as u32;
        let port = Port {
            attachment: Attachment::Host(host),
            addresses: addresses.iter().map(|net| Network::single(net.address)).collect(),
            mac,
            ..Port::inner(name.clone(), place)
        };
        nodes.put(place, port, written.name.span.clone(), wanted_bridge?);
        let HostSettings { driver, mtu } = settings?;
        let (port, own_gateways) = (place, gateways.len());
        nodes.hosts.push(Host { name, port, driver, addresses, mac, mtu, gateways, own_gateways, routes });
        Some(())
    }

    fn host_addresses(&mut self, entry: &Entry<'_>, written: &file::Host) -> Option<Vec<Network>> {
        let fault = |&Network { address, .. }: &Network| {
            let is_wrong = address.is_unspecified() || address.is_multicast();
            is_wrong.then(|| format!("{address} can't be a host's address"))
        };
        let addresses = self.interface_addresses((entry, "address"), &written.address, fault)?;
        if addresses.is_empty() {
            let fix = "write address = \"10.0.0.1/24\"";
            self.error(&written.name.span, entry, "address", "a host needs an address", fix);
        }
        Some(addresses)
    }

    /// The addresses of an interface; `fault` says what is wrong with one. None if one can't be read.
    pub(super) fn interface_addresses(
        &mut self,
        (entry, key): (&Entry<'_>, &str),
        written: &Listed<Network>,
        fault: impl Fn(&Network) -> Option<String>,
    ) -> Option<Vec<Network>> {
        let mut addresses = Vec::with_capacity(written.0.len());
        for text in &written.0 {
            let net: Network = self.term(entry, key, text)?;
            if let Some(what) = fault(&net) {
                self.error(&text.span, entry, key, what, "write one such as \"10.0.0.1/24\"");
            } else if !text.text.contains('/') {
                let prefix = if net.address.is_ipv4() { 24 } else { 64 };
                let fix = format!("write \"{}/{prefix}\"", net.address);
                self.error(&text.span, entry, key, "the prefix length is missing", fix);
            }
            addresses.push(net);
        }
        Some(addresses)
    }

    fn host_routes(
        &mut self,
        entry: &Entry<'_>,
        written: &file::Host,
        addresses: &[Network],
    ) -> Option<(Vec<IpAddr>, Vec<HostRoute>)> {
        let mut gateways: Vec<IpAddr> = Vec::new();
        for text in &written.gateway.0 {
            let gateway = self.neighbour(entry, "gateway", text, addresses)?;
            self.add_gateway((entry, "gateway", &text.span), gateway, &mut gateways);
        }
        let mut routes = Vec::new();
        for route in &written.routes {
            let to = self.term(entry, "routes.to", &route.to)?;
            let via = self.neighbour(entry, "routes.via", &route.via, addresses)?;
            let to = to.by(std::iter::once(via));
            if to.address.is_ipv4() != via.is_ipv4() {
                let what = format!("{to} and {via} are of different families");
                self.error(&route.via.span, entry, "routes.via", what, "name a neighbour of the same family");
            }
            match to.prefix {
                0 => self.add_gateway((entry, "routes.to", &route.to.span), via, &mut gateways),
                _ => routes.push(HostRoute { to, via }),
            }
        }
        Some((gateways, routes))
    }

    fn add_gateway(
        &mut self,
        (entry, key, span): (&Entry<'_>, &str, &Range<usize>),
        gateway: IpAddr,
        gateways: &mut Vec<IpAddr>,
    ) {
        if gateways.iter().any(|other| other.is_ipv4() == gateway.is_ipv4()) {
            let what = format!("{gateway} is a second default gateway of its family");
            self.error(span, entry, key, what, "keep one for IPv4 and one for IPv6");
        }
        gateways.push(gateway);
    }

    /// An address in one of the host's networks.
    fn neighbour(
        &mut self,
        entry: &Entry<'_>,
        key: &str,
        text: &Written<IpAddr>,
        addresses: &[Network],
    ) -> Option<IpAddr> {
        let via: IpAddr = self.term(entry, key, text)?;
        if !addresses.iter().any(|net| net.contains(via)) {
            let nets = addresses.iter().map(Network::to_string).collect::<Vec<_>>().join(", ");
            let what = format!("{via} is in none of the host's networks ({nets})");
            let fix = "name a neighbour, or give the host an address in its network";
            self.error(&text.span, entry, key, what, fix);
        }
        Some(via)
    }

    fn declared_port(&mut self, entry: &Entry<'_>, written: &file::Port, nodes: &mut Nodes) -> Option<()> {
        let (place, name) = self.place_and_name(entry, &written.name, nodes)?;
        let driven = self.driven(entry, written);
        let queues_span = written.params.iter().find(|(name, ..)| *name == "queues").map(|(.., span)| span);
        let addresses: Option<Vec<Network>> =
            written.addresses.0.iter().map(|text| self.term(entry, "addresses", text)).collect();
        let wanted_bridge = self.wanted_bridge(entry, written.bridge.as_ref());
        let name = name?;
        let mac = self.mac(entry, written.mac.as_ref(), (&written.name, place), nodes);
        let driven = driven?;
        if let Some(interface) = driven.interface()
            && let Some(other) = nodes.interfaces.insert((driven.netns(), interface.clone()), place)
        {
            let other = nodes.ports.get(usize::from(other)).map_or("another", |port| &port.name);
            let given = written.params.iter().find(|(name, ..)| *name == "interface");
            let span = given.map_or(&written.name.span, |(.., span)| span);
            let what = format!("\"{interface}\" belongs to the port \"{other}\" already");
            self.error(span, entry, "interface", what, "give each port an interface of its own");
        }
        let (addresses, mac) = (addresses?, mac?);
        if let Some(span) = queues_span {
            nodes.queue_spans.insert(place, span.clone());
        }
        let queues = driven.setting("queues").unwrap_or(1);
        let attachment = Attachment::Driven(driven);
        let port = Port { attachment, addresses, mac, queues, ..Port::inner(name, place) };
        nodes.put(place, port, written.name.span.clone(), wanted_bridge?);
        Some(())
    }

    /// The driver that a port names, with its settings. None after an error.
    fn driven(&mut self, entry: &Entry<'_>, written: &file::Port) -> Option<DriverSettings> {
        let driver = self.term(entry, "driver", &written.driver)?;
        let mut params = Params::new();
        for (key, text, span) in &written.params {
            if !driver.spec.params.iter().any(|param| param.name == *key) {
                let what = format!("a port with the driver {} has no {key}", driver.word());
                self.error(span, entry, key, what, "remove it, or choose another driver");
                continue;
            }
            // A value that is given must not be empty.
            self.term(entry, key, &Written::<Text>::new(span.clone(), text.clone()))?;
            params.push((key, text.clone(), span.clone()));
        }
        let names_interface = params.iter().any(|(key, ..)| *key == "interface");
        if driver.backend == Backend::Interface && !names_interface {
            params.push(("interface", written.name.text.clone(), written.name.span.clone()));
        }
        let mut required = driver.spec.params.iter().filter(|param| param.default.is_required());
        let missing = required.find(|param| params.iter().all(|(key, ..)| *key != param.name));
        if let Some(param) = missing {
            let what = format!("a port with the driver {} needs it", driver.word());
            self.error(&written.driver.span, entry, param.name, what, param.help);
            return None;
        }
        let values = self.values(entry, "", &driver.spec, &params)?;
        Some(DriverSettings { driver, values })
    }

    pub(super) fn place(&mut self, entry: &Entry<'_>, name: &Written<Name>, nodes: &Nodes) -> Option<u16> {
        let expanded = template::expand(&name.text, entry.n).unwrap_or_default();
        let place = nodes.place_of(&expanded, PortSide::Near);
        if place.is_none() {
            let what = format!("there are more than {MAX_PORTS} hosts and ports");
            self.error(&name.span, entry, "", what, "let several addresses share a port (see link, match)");
        }
        place
    }

    fn mac(
        &mut self,
        entry: &Entry<'_>,
        written: Option<&Written<Mac>>,
        (name, place): (&Written<Name>, u16),
        nodes: &mut Nodes,
    ) -> Option<Mac> {
        let mac = self.optional(entry, "mac", written)?.unwrap_or(Mac::of_port(place));
        if let Some(other) = nodes.macs.insert(mac, place) {
            let other = nodes.ports.get(usize::from(other)).map_or("another", |port| &port.name);
            let what = format!("{mac} is also the address of \"{other}\"");
            let span = written.map_or(&name.span, |written| &written.span);
            self.error(span, entry, "mac", what, "give each a hardware address of its own, or none of them");
        }
        Some(mac)
    }

    /// The bridge that an entry names. None after an error.
    pub(super) fn wanted_bridge(
        &mut self,
        entry: &Entry<'_>,
        written: Option<&Written<Name>>,
    ) -> Option<Option<(u32, Range<usize>)>> {
        let Some(written) = written else { return Some(None) };
        let Name(name) = self.term(entry, "bridge", written)?;
        if let Some(End::Bridge(index)) = self.nodes.get(&name) {
            return Some(Some((*index, written.span.clone())));
        }
        if self.some_unmade {
            return None;
        }
        let bridges = self.nodes.iter().filter(|(_, end)| matches!(end, End::Bridge(_)));
        let mut known: Vec<Box<str>> = bridges.map(|(name, _)| name.clone()).collect();
        known.sort_unstable();
        self.no_such(entry, (&written.span, "bridge"), &name, &known)
    }
}
