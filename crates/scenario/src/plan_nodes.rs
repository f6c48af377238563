//! Hosts, ports and bridges of a checked plan, and the first hop between them.

use crate::address::{Mac, Network, number};
use crate::router_plan::{Router, RouterPort};
use crate::settings::BridgeSettings;
use longwire_block::{Setting, Values};
use longwire_drivers::{Driver, HostDriver, InterfaceName, Netns};
use longwire_units::Nanos;
use std::net::IpAddr;
use std::sync::Arc;

/// A test host: a network namespace with one interface, wired to a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// Its name.
    pub name: Box<str>,
    /// Place of its port.
    pub port: u16,
    /// How Longwire attaches to its end of the wire.
    pub driver: HostDriver,
    /// Addresses of its interface with prefix lengths.
    pub addresses: Vec<Network>,
    /// Hardware address of its interface.
    pub mac: Mac,
    /// Longest IP packet its interface sends, 68 to 65535 bytes.
    pub mtu: u32,
    /// Default gateways, at most one of each family: those that the scenario names, then those that the only
    /// router in its network gives.
    pub gateways: Vec<IpAddr>,
    /// How many the scenario names.
    pub own_gateways: usize,
    /// Routes besides default gateways.
    pub routes: Vec<HostRoute>,
}

/// A route in a host's table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRoute {
    /// The destination.
    pub to: Network,
    /// The gateway.
    pub via: IpAddr,
}

/// A port: where packets enter and leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// Its name: the host's, if it belongs to one.
    pub name: Box<str>,
    /// The attachment.
    pub attachment: Attachment,
    /// Addresses behind it: the host's, or those in the file.
    pub addresses: Vec<Network>,
    /// Hardware address behind it: the host's, or the one for traffic sources.
    pub mac: Mac,
    /// Index of its bridge, or [`Port::NO_BRIDGE`] if it is a router's.
    pub bridge: u32,
    /// Index of its segment.
    pub segment: u32,
    /// Index of its router, if it has one.
    pub router: Option<u32>,
    /// Number of queues, and of workers that serve it in real time, from the first worker: 1 to 64.
    pub queues: u16,
}

impl Port {
    /// No bridge.
    pub const NO_BRIDGE: u32 = u32::MAX;

    /// The place of a port that was removed, which it has again if it is added again.
    pub(crate) fn vacant(name: Box<str>, side: PortSide) -> Self {
        Self { attachment: Attachment::Vacant(side), ..Self::inner(name, 0) }
    }

    /// Which of the ports of its name it is.
    pub(crate) fn side(&self) -> PortSide {
        match self.attachment {
            Attachment::Vacant(side) => side,
            Attachment::Inner { .. } if self.router.is_none() => PortSide::Far,
            _ => PortSide::Near,
        }
    }

    /// The section of the file that declares it.
    pub(crate) fn section(&self) -> &'static str {
        if self.attachment.host().is_some() { "host" } else { "port" }
    }

    /// Whether it was removed.
    pub fn is_vacant(&self) -> bool {
        matches!(self.attachment, Attachment::Vacant(_))
    }

    /// A router's own port, whose far side is not known yet.
    pub(crate) fn inner(name: Box<str>, place: u16) -> Self {
        Self {
            name,
            attachment: Attachment::Inner { far: place },
            addresses: Vec::new(),
            mac: Mac::of_port(place),
            bridge: Self::NO_BRIDGE,
            segment: 0,
            router: None,
            queues: 1,
        }
    }

    /// Joins it to the port `far` of another node.
    pub(crate) fn lead_to(&mut self, far: u16) {
        self.attachment = Attachment::Inner { far };
    }
}

/// A bridge of the scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bridge {
    /// Its name.
    pub name: Box<str>,
    /// Lifetime of an address that sends nothing.
    pub ageing: Nanos,
    /// Size of the address table.
    pub table: u32,
    /// Whether it is a wire between two ports.
    pub wire: bool,
    /// Places of its ports, ascending.
    pub ports: Vec<u16>,
    /// Index of its segment.
    pub segment: u32,
    /// Whether the file declares it; otherwise it is the default bridge of hosts and ports that name none.
    pub declared: bool,
}

impl Bridge {
    /// A bridge without ports.
    pub(crate) fn new(name: Box<str>, settings: BridgeSettings, declared: bool) -> Self {
        let BridgeSettings { ageing, table, wire } = settings;
        Self { name, ageing, table, wire, ports: Vec::new(), segment: 0, declared }
    }
}

/// A node of the engine: bridges joined by links, which learn and flood as one, or a router.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Index of the router, if it is one; it then has no bridges.
    pub router: Option<u32>,
    /// Indices of its bridges, ascending.
    pub bridges: Vec<u32>,
    /// Places of their ports, ascending.
    pub ports: Vec<u16>,
    /// The shortest ageing time of its bridges.
    pub ageing: Nanos,
    /// The largest table of its bridges.
    pub table: u32,
    /// Whether its only bridge is a wire between its two ports.
    pub wire: bool,
}

/// An end of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum End {
    /// A bridge, by index.
    Bridge(u32),
    /// A port, including a host's, by place.
    Port(u16),
}

impl End {
    /// Its name.
    pub(crate) fn name<'n>(self, bridges: &'n [Bridge], ports: &'n [Port]) -> &'n str {
        match self {
            Self::Bridge(index) => &bridges[index as usize].name,
            Self::Port(place) => &ports[usize::from(place)].name,
        }
    }
}

/// The attachment of a port; no other module matches on the variants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attachment {
    /// A host, by index.
    Host(u32),
    /// A port driver.
    Driven(DriverSettings),
    /// The control plane of a router: an interface in its namespace.
    Control(ControlEnd),
    /// Another node: packets sent here arrive at the port with the place `far`.
    Inner {
        /// Place of the far port.
        far: u16,
    },
    /// Nothing: the port was removed while the scenario ran, and others keep their places.
    Vacant(PortSide),
}

/// Which of two ports that share a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PortSide {
    /// The one that the scenario names.
    Near,
    /// The far side of a router's own port, on a bridge.
    Far,
}

/// A driver with its settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriverSettings {
    /// The driver.
    pub driver: &'static Driver,
    /// Its settings.
    pub values: Values,
}

/// A port to a router's control plane, beside one of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ControlEnd {
    /// Index of the router.
    pub router: u32,
    /// Index of that port among the router's ports.
    pub port: u32,
}

impl Attachment {
    /// Index of the host, if it is one.
    pub const fn host(&self) -> Option<u32> {
        if let Self::Host(host) = self { Some(*host) } else { None }
    }

    /// Place of the far port at another node.
    pub const fn far(&self) -> Option<u16> {
        if let Self::Inner { far } = self { Some(*far) } else { None }
    }

    /// The control plane, if it leads to one.
    pub const fn control(&self) -> Option<ControlEnd> {
        if let Self::Control(end) = self { Some(*end) } else { None }
    }

    /// The driver, if the scenario names one; hosts have theirs.
    pub const fn driven(&self) -> Option<&DriverSettings> {
        if let Self::Driven(driven) = self { Some(driven) } else { None }
    }

    /// Whether packets enter and leave the emulation here, unlike between nodes or to a control plane.
    pub const fn is_outer(&self) -> bool {
        matches!(self, Self::Host(_) | Self::Driven(_))
    }
}

impl DriverSettings {
    /// The setting of this name, if the driver has it.
    pub fn setting<T: Setting>(&self, name: &str) -> Option<T> {
        self.driver.setting(&self.values, name)
    }

    /// The name of its interface, if it has one.
    pub fn interface(&self) -> Option<String> {
        self.setting::<Arc<InterfaceName>>("interface").map(|name| name.0.clone())
    }

    /// The namespace of its interface.
    pub fn netns(&self) -> Netns {
        self.setting::<Arc<Netns>>("netns").map(|netns| (*netns).clone()).unwrap_or_default()
    }
}

/// The plan's ports, hosts and routers.
#[derive(Debug, Clone, Copy)]
pub struct Places<'p> {
    /// The ports.
    pub ports: &'p [Port],
    /// The hosts.
    pub hosts: &'p [Host],
    /// The routers.
    pub routers: &'p [Router],
}

impl Places<'_> {
    /// The hardware address of the first hop from one port to another: the destination if only bridges are
    /// between, else a router. None if that is ambiguous.
    pub(crate) fn first_hop(&self, (from, to): (u16, u16), destination: IpAddr) -> Option<Mac> {
        let [here, there] = [from, to].map(|place| &self.ports[usize::from(place)]);
        let own = |router: u32| self.routers[router as usize].ports.iter().find(|port| port.place == from);
        match here.router {
            Some(router) => return own(router).map(|port| port.mac),
            None if here.segment == there.segment => return Some(there.mac),
            None => {}
        }
        let near = |port: &&RouterPort| {
            let far = self.ports[usize::from(port.place)].attachment.far();
            far.is_some_and(|far| self.ports[usize::from(far)].segment == here.segment)
        };
        let near: Vec<_> = self.routers.iter().flat_map(|router| &router.ports).filter(near).collect();
        let gateway = here.attachment.host().and_then(|host| {
            let gateways = &self.hosts[host as usize].gateways;
            gateways.iter().find(|gateway| gateway.is_ipv4() == destination.is_ipv4())
        });
        let has = |port: &&&RouterPort| port.addresses.iter().any(|net| Some(&net.address) == gateway);
        match (gateway, &near[..]) {
            (Some(_), _) => near.iter().find(has).map(|port| port.mac),
            (None, [only]) => Some(only.mac),
            _ => None,
        }
    }
}

/// Address ranges and the ports they are behind: ascending, and in a checked plan without overlap.
#[derive(Debug, Clone)]
pub struct Owners {
    /// Of each: whether it is IPv6, the first and the last address, and the port.
    pub(crate) ranges: Vec<(bool, u128, u128, u16)>,
}

impl Owners {
    /// The ranges behind the ports of a plan.
    pub fn of(ports: &[Port]) -> Self {
        let networks = ports.iter().enumerate().flat_map(|(place, port)| {
            let range = move |net: &Network| {
                let (first, last) = net.range();
                (net.address.is_ipv6(), first, last, place as u16)
            };
            port.addresses.iter().map(range)
        });
        let mut ranges: Vec<_> = networks.collect();
        ranges.sort_unstable();
        Self { ranges }
    }

    /// The port of `address`, if the scenario says.
    pub fn port(&self, address: IpAddr) -> Option<u16> {
        let key = (address.is_ipv6(), number(address));
        let after = self.ranges.partition_point(|(v6, first, ..)| (*v6, *first) <= key);
        let (v6, _, last, port) = self.ranges[after.checked_sub(1)?];
        (v6 == key.0 && key.1 <= last).then_some(port)
    }
}
