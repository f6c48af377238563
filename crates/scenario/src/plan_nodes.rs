//! Hosts, ports and bridges of a checked plan.

use crate::address::{Mac, Network};
use crate::attachment::Attachment;
use longwire_drivers::HostDriver;
use longwire_units::Nanos;
use std::net::IpAddr;

/// A test host: a network namespace with one interface, wired to a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// Its name.
    pub name: Box<str>,
    /// Place of its port.
    pub port: u16,
    /// How Longwire holds its end of the wire.
    pub driver: HostDriver,
    /// Addresses of its interface, with the prefix of the network that is on the link.
    pub addresses: Vec<Network>,
    /// Hardware address of its interface.
    pub mac: Mac,
    /// Longest IP packet its interface sends, 68 to 65535 bytes.
    pub mtu: u32,
    /// Default gateways, at most one of each family.
    pub gateways: Vec<IpAddr>,
    /// Further routes.
    pub routes: Vec<HostRoute>,
}

/// A route in a host's table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRoute {
    /// The destination.
    pub to: Network,
    /// The neighbour that knows the way.
    pub via: IpAddr,
}

/// Where packets come in and go out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// Its name: the host's, if it belongs to one.
    pub name: Box<str>,
    /// The attachment on the other side.
    pub attachment: Attachment,
    /// Addresses behind it: the host's own, or what the file says lies there.
    pub addresses: Vec<Network>,
    /// Hardware address of what is behind it: the host's, or the one traffic sources use.
    pub mac: Mac,
    /// Index of its bridge, or [`Port::NO_BRIDGE`] if it is a router's.
    pub bridge: u32,
    /// Index of its segment.
    pub segment: u32,
    /// Index of its router, if it is one's.
    pub router: Option<u32>,
    /// How many workers receive and transmit by it in real time, from the first worker on, each by a queue of
    /// its own: 1 to 64.
    pub queues: u16,
}

impl Port {
    /// The index of no bridge.
    pub const NO_BRIDGE: u32 = u32::MAX;

    /// The place of a port that was removed, which it has again if it is added again.
    pub(crate) fn vacant(name: Box<str>) -> Self {
        Self { attachment: Attachment::Vacant, ..Self::inner(name, 0) }
    }

    /// Whether it was removed.
    pub fn is_vacant(&self) -> bool {
        self.attachment == Attachment::Vacant
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

    /// Attaches it to the port with the place `far`, which leads to another node.
    pub(crate) fn lead_to(&mut self, far: u16) {
        self.attachment = Attachment::Inner { far };
    }
}

/// A bridge of the scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bridge {
    /// Its name.
    pub name: Box<str>,
    /// How long an address is remembered that sends nothing.
    pub ageing: Nanos,
    /// How many addresses are remembered, at most.
    pub table: u32,
    /// Whether it is a wire between two ports.
    pub wire: bool,
    /// Places of its ports, ascending.
    pub ports: Vec<u16>,
    /// Index of its segment.
    pub segment: u32,
    /// Whether the file has it. Hosts and ports that name none share one that nobody has asked for.
    pub declared: bool,
}

/// Bridges joined by links: the engine's node, which learns and floods over all their ports at once. Or a
/// router.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Index of the router that it is, if it is one; it has no bridges then.
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
    /// A port (a host's, too), by place.
    Port(u16),
}
