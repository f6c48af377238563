//! Hosts, ports and bridges of a checked plan.

use crate::address::{Mac, Network};
use crate::attachment::{Attachment, PortSide};
use crate::settings::BridgeSettings;
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
