//! Routers in a checked plan, and routes as text.

use crate::address::{Mac, Network, RouteTarget, is_within_a_link};
use crate::finding::Finding;
use crate::level_plan::RouterLevels;
use longwire_router::{
    Admission, Limits, LinkChoice, MOST_WEIGHT, Member, NextHop, RouteHops, SharingConfig,
};
use longwire_sched::Weight;
use longwire_units::Nanos;
use std::net::IpAddr;

/// A router of the scenario.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Router {
    /// Its name.
    pub name: Box<str>,
    /// Its ports, in the file's order.
    pub ports: Vec<RouterPort>,
    /// Routes besides those to connected networks; each prefix occurs once.
    pub routes: Vec<RouterRoute>,
    /// Static neighbours.
    pub neighbours: Vec<RouterNeighbour>,
    /// Rate limits of operations that cost more than forwarding.
    pub police: Limits,
    /// The budget of a packet including programs, and prices.
    pub admission: Admission,
    /// How flows share its processors, if configured.
    pub sharing: Option<SharingConfig>,
    /// Why it can't run in real time, if so.
    pub not_in_real_time: Option<Finding>,
    /// Whether it has a control plane: a namespace named after it, with an interface per port.
    pub control: bool,
    /// Capacities of the levels above.
    pub levels: RouterLevels,
    /// The links that its programs may choose: those that begin at its ports.
    pub links: Vec<LinkChoice>,
    /// Index of its segment.
    pub segment: u32,
}

/// A port of a router.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouterPort {
    /// Its name: the host's or port's, or its own.
    pub name: Box<str>,
    /// Its place among the plan's ports.
    pub place: u16,
    /// Its hardware address.
    pub mac: Mac,
    /// Longest IP packet that it sends, in bytes.
    pub mtu: u32,
    /// Its addresses with prefix lengths.
    pub addresses: Vec<Network>,
    /// Place of the port to the control plane beside it, if any.
    pub control: Option<u16>,
}

/// A route of a router.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouterRoute {
    /// Destination, without host bits.
    pub to: Network,
    /// The next hops.
    pub way: RouteHops,
}

/// A change of a router's routes or flow weights at an exact time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouterEvent {
    /// When, from the start of the run.
    pub time: Nanos,
    /// Index of the router.
    pub router: u32,
    /// The changes, in order.
    pub changes: Vec<RouteChange>,
    /// A flow that shares the router's processors, and its new weight.
    pub weight: Option<(Box<str>, Weight)>,
}

impl RouterEvent {
    /// A description: `router west: 10.0.2.0/24 via 10.9.1.2 dev south; no route to 10.8.0.0/16`.
    pub fn describe(&self, routers: &[Router]) -> String {
        let router = &routers[self.router as usize];
        let each = self.changes.iter().map(|change| match change {
            RouteChange::Add(route) => router.written(route),
            RouteChange::Remove(to) => format!("no route to {to}"),
            RouteChange::RemoveDefault => "no default route".into(),
        });
        let weight =
            self.weight.iter().map(|(flow, weight)| format!("flow {flow} weighs {}", weight.number()));
        format!("router {}: {}", router.name, each.chain(weight).collect::<Vec<_>>().join("; "))
    }
}

/// A change of a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RouteChange {
    /// Adds a route, replacing one to the same network.
    Add(RouterRoute),
    /// Removes the route to exactly this network; a connected network gets its own route back.
    Remove(Network),
    /// Removes the default routes of IPv4 and IPv6.
    RemoveDefault,
}

/// A static neighbour of a router.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouterNeighbour {
    /// Place of its port.
    pub port: u16,
    /// Its address.
    pub address: IpAddr,
    /// Its hardware address.
    pub mac: Mac,
}

/// A route as text: `10.1.0.0/16 via 10.0.0.2`, `default via fe80::1 dev east`, `10.2.0.0/16 dev east`,
/// `blackhole 10.3.0.0/16`, or to several next hops, `10.4.0.0/16 nexthop via 10.0.0.2 weight 2 nexthop via
/// 10.0.1.2`; `nexthop` is optional before a gateway. Protocol, scope, source and metric are ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenRoute<'t> {
    /// The destination.
    pub to: Network,
    /// Next hops, one per flow.
    pub hops: Vec<WrittenHop<'t>>,
    /// Whether packets are dropped silently.
    pub discard: bool,
}

/// A next hop of a written route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrittenHop<'t> {
    /// The gateway.
    pub via: Option<IpAddr>,
    /// The name of the port.
    pub port: Option<&'t str>,
    /// Its share of the flows.
    pub weight: u16,
}

/// Words of `ip route` with a value, and without.
const WITH_VALUE: [&str; 9] =
    ["proto", "scope", "src", "metric", "pref", "advmss", "nhid", "expires", "error"];
const ALONE: [&str; 5] = ["onlink", "linkdown", "dead", "pervasive", "unicast"];
/// How `ip route` marks discard routes.
const NOWHERE: [&str; 3] = ["blackhole", "unreachable", "prohibit"];
/// How it marks routes that can't be added here.
const OF_THE_KERNEL: [&str; 6] = ["local", "broadcast", "multicast", "anycast", "throw", "nat"];

impl<'t> WrittenRoute<'t> {
    /// Reads a route.
    ///
    /// # Errors
    /// Its fault and the fix.
    pub fn read(text: &'t str) -> Result<Self, String> {
        let mut words = text.split_ascii_whitespace().filter(|word| !ALONE.contains(word));
        let mut first = words.next();
        // All kinds of discard routes of `ip route` are the same here.
        let discard = first.is_some_and(|word| NOWHERE.contains(&word));
        if discard {
            first = words.next();
        }
        let prefix = first.ok_or("a route begins with a prefix, as in \"10.1.0.0/16 via 10.0.0.2\"")?;
        if OF_THE_KERNEL.contains(&prefix) {
            return Err(format!(
                "there are no routes of the kind \"{prefix}\" here: leave it out, those to a port's \
                 addresses come by themselves"
            ));
        }
        let mut hops: Vec<HopWords<'t>> = Vec::new();
        while let Some(word) = words.next() {
            if word == "nexthop" {
                hops.push(HopWords::default());
                continue;
            }
            let value = words.next().ok_or_else(|| format!("nothing follows \"{word}\""))?;
            // How it prints IPv6 discard routes.
            let is_nowhere = discard && (word, value) == ("dev", "lo");
            match (word, value) {
                ("table", "main" | "254") => {}
                ("table", _) => {
                    return Err(format!(
                        "a router has one table of routes, main, and no table {value}: leave it out"
                    ));
                }
                ("mtu", _) => {
                    return Err(
                        "a route has no MTU of its own here: give the port one (mtu), or the link".into()
                    );
                }
                _ if is_nowhere || WITH_VALUE.contains(&word) => {}
                _ => HopWords::note(&mut hops, word, value)?,
            }
        }
        let to = prefix.parse::<RouteTarget>()?.by(hops.iter().filter_map(|hop| hop.via));
        let route = Self { to, hops: hops.into_iter().map(HopWords::hop).collect(), discard };
        route.check()?;
        Ok(route)
    }

    /// Checks that the parts don't conflict.
    ///
    /// # Errors
    /// The conflict and its fix.
    pub(crate) fn check(&self) -> Result<(), String> {
        let to = self.to;
        let network = to.masked();
        if network != to {
            return Err(format!("{to} has bits set behind its prefix: write {network}"));
        }
        match (&self.hops[..], self.discard) {
            ([], true) => Ok(()),
            (_, true) => Err("a discard route has no gateway and no port: leave them out".into()),
            ([], false) => Err("it has no next hop: name a gateway, a port, or discard it".into()),
            (hops, false) => hops.iter().try_for_each(|hop| hop.check(to)),
        }
    }
}

impl WrittenHop<'_> {
    /// Checks it as a next hop to `to`.
    fn check(&self, to: Network) -> Result<(), String> {
        match (self.via, self.port) {
            (None, None) => Err("a next hop is a gateway or a port: name one".into()),
            (Some(via), _) if via.is_ipv4() != to.address.is_ipv4() => {
                Err(format!("{to} and {via} are of different families: name a gateway of the same"))
            }
            (Some(via), _) if via.is_unspecified() || via.is_multicast() => {
                Err(format!("{via} is not a neighbour's address: name the gateway's own"))
            }
            _ => Ok(()),
        }
    }
}

/// The parts of a next hop read so far.
#[derive(Debug, Default)]
struct HopWords<'t> {
    via: Option<IpAddr>,
    port: Option<&'t str>,
    weight: Option<u16>,
}

impl<'t> HopWords<'t> {
    /// Adds a word and its value to the last of `hops`, or to a new one.
    fn note(hops: &mut Vec<Self>, word: &str, value: &'t str) -> Result<(), String> {
        let is_via = word == "via";
        if hops.last().is_none_or(|last| is_via && last.via.is_some()) {
            hops.push(Self::default());
        }
        let Some(last) = hops.last_mut() else { return Ok(()) };
        let known = match word {
            "via" if value == "inet6" || value == "inet" => {
                return Err("a gateway of the other family is not supported; name one of the same".into());
            }
            "via" => {
                let via = value.parse().map_err(|_| format!("\"{value}\" is not an address"))?;
                last.via.replace(via).is_some()
            }
            "dev" => last.port.replace(value).is_some(),
            "weight" => {
                let wrong =
                    |is: String| format!("a next hop's weight is {is}, it must be 1 to {MOST_WEIGHT}");
                let number: i128 = value.parse().map_err(|_| wrong(format!("\"{value}\"")))?;
                let weight = u16::try_from(number).ok().filter(|weight| (1..=MOST_WEIGHT).contains(weight));
                last.weight.replace(weight.ok_or_else(|| wrong(number.to_string()))?).is_some()
            }
            _ => {
                let known = "via ADDRESS, dev PORT, weight NUMBER, nexthop";
                return Err(format!("there is no \"{word}\" in a route; there are {known}"));
            }
        };
        if known {
            return Err(format!("{word} {value}: its next hop has a {word} already, keep one of the two"));
        }
        Ok(())
    }

    fn hop(self) -> WrittenHop<'t> {
        let Self { via, port, weight } = self;
        WrittenHop { via, port, weight: weight.unwrap_or(1) }
    }
}

impl Router {
    /// Its port called `name`.
    pub fn port(&self, name: &str) -> Option<&RouterPort> {
        self.ports.iter().find(|port| &*port.name == name)
    }

    /// The link of that name for its programs: of a duplex link, the direction that begins here.
    pub fn link(&self, name: &str) -> Option<&LinkChoice> {
        let half = |link: &LinkChoice| {
            let way = link.name.strip_prefix(name);
            matches!(way, Some(".forward" | ".backward"))
        };
        let whole = self.links.iter().find(|link| &*link.name == name);
        whole.or_else(|| self.links.iter().find(|link| half(link)))
    }

    /// Resolves a written route.
    ///
    /// # Errors
    /// The fault and fix: the port is not the router's, the gateway is in none of its networks or is the
    /// router itself, or the destination is its own address.
    pub fn route(&self, written: &WrittenRoute<'_>) -> Result<RouterRoute, String> {
        let to = written.to;
        self.check_changeable(to)?;
        if written.discard {
            return Ok(RouterRoute { to, way: NextHop::Discard.into() });
        }
        let member = |hop: &WrittenHop<'_>| Ok(Member { hop: self.next_hop(hop)?, weight: hop.weight });
        let members = written.hops.iter().map(member).collect::<Result<Vec<_>, String>>()?;
        let way = RouteHops::among(members).map_err(|error| error.to_string())?;
        Ok(RouterRoute { to, way })
    }

    /// The change that removes a route.
    ///
    /// # Errors
    /// If the destination is an address of the router itself.
    pub fn removal(&self, to: RouteTarget) -> Result<RouteChange, String> {
        match to {
            RouteTarget::Default => Ok(RouteChange::RemoveDefault),
            RouteTarget::Network(to) => {
                let to = to.masked();
                self.check_changeable(to)?;
                Ok(RouteChange::Remove(to))
            }
        }
    }

    /// Resolves a written next hop.
    fn next_hop(&self, written: &WrittenHop<'_>) -> Result<NextHop, String> {
        let WrittenHop { via, port, .. } = *written;
        let named = port.map(|name| self.port(name).ok_or_else(|| self.no_port(name))).transpose()?;
        let Some(via) = via else {
            let place = named.map_or(0, |port| port.place);
            return Ok(NextHop::Direct { port: place });
        };
        let port = self.port_of_gateway(via, named)?;
        Ok(NextHop::via(port.place, via))
    }

    /// The port of a gateway: `named` if given, else the one whose network it is in.
    ///
    /// # Errors
    /// If it can't be a neighbour's address, is in another port's network, or in none without a named port.
    pub(crate) fn port_of_gateway<'r>(
        &'r self,
        via: IpAddr,
        named: Option<&'r RouterPort>,
    ) -> Result<&'r RouterPort, String> {
        self.check_neighbour(via)?;
        let near = self.port_towards(via);
        let Some(named) = named else { return near.ok_or_else(|| self.no_network(via)) };
        match near {
            Some(near) if near.place != named.place && !is_within_a_link(via) => Err(format!(
                "{via} is in the network of \"{}\", not behind \"{}\": name that port, or a gateway behind \
                 this one",
                near.name, named.name
            )),
            _ => Ok(named),
        }
    }

    /// Checks that an address can be a neighbour's.
    ///
    /// # Errors
    /// If it is the router's own, or a broadcast or any-router address of its networks.
    pub(crate) fn check_neighbour(&self, address: IpAddr) -> Result<(), String> {
        for port in &self.ports {
            let name = &port.name;
            if port.addresses.iter().any(|net| net.address == address) {
                return Err(format!("{address} is the router's own address at \"{name}\": name a neighbour"));
            }
            if port.addresses.iter().any(|net| net.means_all(address)) {
                return Err(format!(
                    "{address} is not a host's, but means all, or any router, in the network of \"{name}\": \
                     name a neighbour"
                ));
            }
        }
        Ok(())
    }

    /// Checks that the route to a network may be changed or removed.
    ///
    /// # Errors
    /// If it is an address of the router itself, or a broadcast or any-router address of its networks.
    fn check_changeable(&self, to: Network) -> Result<(), String> {
        let is_own = |net: &Network| to.address == net.address || net.means_all(to.address);
        let own = self.ports.iter().find(|port| to.is_single() && port.addresses.iter().any(is_own));
        own.map_or(Ok(()), |port| {
            Err(format!(
                "{to} is the router's own at \"{}\", which no route changes: name another destination",
                port.name
            ))
        })
    }

    /// The port with `address` in one of its networks.
    pub(crate) fn port_towards(&self, address: IpAddr) -> Option<&RouterPort> {
        let near = |port: &&RouterPort| port.addresses.iter().any(|net| net.contains(address));
        self.ports.iter().find(near)
    }

    fn no_port(&self, name: &str) -> String {
        let names: Vec<&str> = self.ports.iter().map(|port| &*port.name).take(16).collect();
        format!("\"{name}\" is not a port of router \"{}\": there are {}", self.name, names.join(", "))
    }

    /// The error that `address` is in no connected network.
    pub(crate) fn no_network(&self, address: IpAddr) -> String {
        let nets = self.ports.iter().flat_map(|port| &port.addresses).map(ToString::to_string);
        let nets: Vec<String> = nets.take(16).collect();
        let nets = nets.join(", ");
        format!("{address} is in none of the router's networks ({nets}): name a neighbour, or its port, too")
    }

    /// A route as text.
    pub fn written(&self, route: &RouterRoute) -> String {
        let to = route.to;
        match &route.way {
            RouteHops::One(NextHop::Local) => format!("local {to}"),
            RouteHops::One(NextHop::Broadcast) => format!("broadcast {to}"),
            RouteHops::One(NextHop::Discard) => format!("blackhole {to}"),
            RouteHops::One(hop) => format!("{to}{}", self.written_hop(*hop)),
            RouteHops::Several(group) => {
                let each = group.members().iter();
                let each =
                    each.map(|one| format!(" nexthop{} weight {}", self.written_hop(one.hop), one.weight));
                format!("{to}{}", each.collect::<String>())
            }
        }
    }

    /// A next hop as text, after a space.
    fn written_hop(&self, hop: NextHop) -> String {
        let (port, gateway) = self.way_of(hop);
        let port = port.unwrap_or("?");
        match gateway {
            Some(gateway) => format!(" via {gateway} dev {port}"),
            None => format!(" dev {port}"),
        }
    }

    /// The output port's name and the gateway of a next hop, as far as it has them.
    pub fn way_of(&self, hop: NextHop) -> (Option<&str>, Option<IpAddr>) {
        let place = hop.port();
        let port = self.ports.iter().find(|port| place == Some(port.place));
        (port.map(|port| &*port.name), gateway_of(hop))
    }
}

/// The gateway's address, if the next hop has one.
pub fn gateway_of(hop: NextHop) -> Option<IpAddr> {
    let NextHop::Gateway { gateway, .. } = hop else { return None };
    Some(IpAddr::V6(gateway.into()).to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn router() -> Router {
        let port = |name: &str, place, addresses: &[&str]| RouterPort {
            name: name.into(),
            place,
            mac: Mac::of_port(place),
            mtu: 1500,
            addresses: addresses.iter().map(|text| text.parse().unwrap()).collect(),
            control: None,
        };
        let ports = vec![
            port("west", 3, &["10.0.0.1/24", "fd00::1/64", "fe80::1/64"]),
            port("east", 5, &["10.0.1.1/24"]),
        ];
        Router { name: "r".into(), ports, ..Router::default() }
    }

    fn read(text: &str) -> Result<String, String> {
        let router = router();
        let route = router.route(&WrittenRoute::read(text)?)?;
        Ok(router.written(&route))
    }

    #[test]
    fn routes_are_read_as_ip_route_prints_them() {
        for (text, route) in [
            ("10.1.0.0/16 via 10.0.0.2", "10.1.0.0/16 via 10.0.0.2 dev west"),
            ("default via 10.0.1.2 dev east proto static metric 100", "0.0.0.0/0 via 10.0.1.2 dev east"),
            ("default via fd00::2", "::/0 via fd00::2 dev west"),
            ("default via fe80::2 dev east pref medium", "::/0 via fe80::2 dev east"),
            ("10.2.0.0/24 dev east proto kernel scope link src 10.2.0.1", "10.2.0.0/24 dev east"),
            ("10.1.0.0/16 via 192.0.2.7 dev east onlink", "10.1.0.0/16 via 192.0.2.7 dev east"),
            ("10.9.9.9 dev west onlink", "10.9.9.9/32 dev west"),
            ("10.0.1.0/24 dev east proto kernel scope link src 10.0.1.1", "10.0.1.0/24 dev east"),
            ("blackhole 10.3.0.0/16", "blackhole 10.3.0.0/16"),
            ("unreachable 10.3.0.0/16 proto static metric 20", "blackhole 10.3.0.0/16"),
            ("10.3.0.0/16 dev east table main", "10.3.0.0/16 dev east"),
            ("prohibit fd03::/16 dev lo metric 1024 error -13 pref medium", "blackhole fd03::/16"),
            ("10.5.0.0/16 nhid 7 via 10.0.1.2 dev east proto ospf", "10.5.0.0/16 via 10.0.1.2 dev east"),
            (
                "10.4.0.0/16 proto static nexthop via 10.0.1.2 dev east weight 2 nexthop via 10.0.0.2 dev \
                 west weight 1",
                "10.4.0.0/16 nexthop via 10.0.0.2 dev west weight 1 nexthop via 10.0.1.2 dev east weight 2",
            ),
            (
                "10.4.0.0/16 via 10.0.0.2 via 10.0.1.2 weight 3",
                "10.4.0.0/16 nexthop via 10.0.0.2 dev west weight 1 nexthop via 10.0.1.2 dev east weight 3",
            ),
            (
                "default nexthop dev west nexthop via 10.0.1.2",
                "0.0.0.0/0 nexthop via 10.0.1.2 dev east weight 1 nexthop dev west weight 1",
            ),
            ("10.4.0.0/16 via 10.0.0.2 via 10.0.0.2", "10.4.0.0/16 via 10.0.0.2 dev west"),
        ] {
            assert_eq!(read(text).as_deref(), Ok(route), "{text}");
        }
    }

    #[test]
    fn routes_to_the_router_itself_can_not_change() {
        // Its addresses, and those that mean everybody, or any router, of a network.
        for own in ["10.0.0.1", "10.0.0.0/32", "10.0.0.255", "10.0.1.1/32", "fd00::1", "fd00::/128"] {
            let why = router().check_changeable(own.parse().unwrap()).unwrap_err();
            assert!(why.contains("is the router's own at"), "{own}: {why}");
            let dev = read(&format!("{own} dev east")).unwrap_err();
            assert!(dev.contains("is the router's own at"), "{own}: {dev}");
        }
        for other in
            ["10.0.0.2", "10.0.0.0/24", "10.0.0.0/31", "0.0.0.0/0", "fd00::ffff", "fd00::/64", "::/0"]
        {
            assert_eq!(router().check_changeable(other.parse().unwrap()), Ok(()), "{other}");
        }
    }

    #[test]
    fn invalid_routes_say_why() {
        for (text, why) in [
            ("", "begins with a prefix"),
            ("10.1.0.0/16", "has no next hop"),
            ("10.1.0.0/16 via", "nothing follows"),
            ("10.1.0.1/16 via 10.0.0.2", "write 10.1.0.0/16"),
            ("10.1.0.0/16 via fd00::2", "different families"),
            ("10.1.0.0/16 via 10.0.2.2", "in none of the router's networks (10.0.0.1/24, "),
            ("10.1.0.0/16 via 10.0.1.1", "the router's own address at \"east\""),
            (
                "10.1.0.0/16 via 10.0.1.255",
                "10.0.1.255 is not a host's, but means all, or any router, in the network of \"east\"",
            ),
            ("10.1.0.0/16 via 10.0.0.0", "means all, or any router, in the network of \"west\""),
            (
                "10.1.0.0/16 via 10.0.1.2 dev west",
                "10.0.1.2 is in the network of \"east\", not behind \"west\": name that port",
            ),
            ("10.1.0.0/16 via 10.0.0.2 via 10.0.1.2 dev west", "not behind \"west\""),
            ("default via fd00::2 dev east onlink", "is in the network of \"west\", not behind \"east\""),
            ("fd01::/16 via fd00::", "means all, or any router, in the network of \"west\""),
            ("10.1.0.0/16 dev north", "there are west, east"),
            ("10.1.0.0/16 via 10.0.0.2 weight 2 weight 3", "keep one"),
            ("10.1.0.0/16 weight 2 via 10.0.0.2 weight 2", "its next hop has a weight already, keep one"),
            ("10.1.0.0/16 via 10.0.0.2 dev west dev east", "dev east: its next hop has a dev already"),
            ("10.1.0.0/16 via 10.0.0.2 weight 0", "a next hop's weight is 0, it must be 1 to 256"),
            ("10.1.0.0/16 via 10.0.0.2 weight 70000", "a next hop's weight is 70000, it must be 1 to 256"),
            ("10.1.0.0/16 via 10.0.0.2 weight some", "a next hop's weight is \"some\", it must be 1 to 256"),
            ("local 10.0.1.1 dev east", "no routes of the kind \"local\" here"),
            ("throw 10.3.0.0/16", "no routes of the kind \"throw\""),
            ("10.1.0.0/16 via 10.0.0.2 table 100", "no table 100"),
            ("10.1.0.0/16 via 10.0.0.2 mtu 1300", "no MTU of its own"),
            ("unreachable 10.3.0.0/16 dev east", "leave them out"),
            ("unreachable 10.1.0.0/16 via 10.0.0.2", "leave them out"),
            ("10.1.0.0/16 nexthop 10.0.0.2", "nothing follows \"10.0.0.2\""),
            ("10.1.0.0/16 gateway 10.0.0.2", "no \"gateway\""),
            ("10.1.0.0/16 nexthop nexthop via 10.0.0.2", "a gateway or a port"),
            ("10.1.0.0/16 via 10.0.0.2 via 10.0.1.1", "the router's own address at \"east\""),
            ("10.1.0.0/16 via 10.0.0.2 via fd00::2", "different families"),
            ("10.1.0.0/16 via 10.0.0.2 weight 0", "1 to 256"),
            ("10.1.0.0/16 via 10.0.0.2 weight 257", "1 to 256"),
            ("10.1.0.0/16 via 10.0.0.2 weight 70000", "1 to 256"),
            ("blackhole 10.1.0.0/16 via 10.0.0.2", "leave them out"),
            ("blackhole 10.1.0.0/16 dev east", "leave them out"),
            ("10.1.0.0/33 dev east", "prefix length"),
            ("10.1.0.0/16 via 0.0.0.0 dev east", "not a neighbour's address"),
        ] {
            assert!(read(text).unwrap_err().contains(why), "{text}: {:?}", read(text));
        }
    }
}
