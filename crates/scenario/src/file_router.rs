//! The section `[[router]]` of a scenario file as it is written.

use crate::address::{Mac, Network};
use crate::frequency::Frequency;
use crate::written::{Listed, Name, Text, Whole, Written};
use longwire_units::Rate;
use schemars::JsonSchema;
use serde::Deserialize;
use std::net::IpAddr;

/// A router: IPv4 and IPv6 between its ports.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Router {
    /// Its name.
    pub(crate) name: Written<Name>,
    /// Its ports: hosts and ports that it sits on, or ports of its own, to which links are joined.
    pub(crate) ports: Vec<RouterPort>,
    /// Routes besides those to the networks of its ports.
    #[serde(default)]
    pub(crate) routes: Vec<RouterRoute>,
    /// A file with more routes, each on a line as "ip route" prints it: 10.1.0.0/16 via 10.0.0.2, or 10.2.0.0/16 dev PORT.
    pub(crate) routes_file: Option<Written<Text>>,
    /// Neighbours whose hardware addresses it knows from the start, besides the scenario's hosts.
    #[serde(default)]
    pub(crate) neighbours: Vec<RouterNeighbour>,
    /// The most it does of what costs more than forwarding, for each port.
    pub(crate) police: Option<RouterPolice>,
    /// How much a packet may cost, programs included: "vrp", the virtual router processor of Spalink and others. Default: anything.
    pub(crate) profile: Option<Written<Text>>,
    /// The same by the time that this rate leaves between the shortest frames.
    pub(crate) line_rate: Option<Written<Rate>>,
    /// Makes so many of this entry, numbered by {n}.
    pub(crate) count: Option<Written<Whole>>,
    /// The first number. Default 1.
    pub(crate) first: Option<Written<Whole>>,
}

/// A port of a router.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct RouterPort {
    /// A host or port of the scenario, on which the router sits; or a new name, which links can begin and end at.
    pub(crate) port: Written<Name>,
    /// Its hardware address. Default: one made from its place in the file.
    pub(crate) mac: Option<Written<Mac>>,
    /// Longest IP packet that it sends, 1280 to 65535. Default 1500.
    pub(crate) mtu: Option<Written<Whole>>,
    /// Its addresses, with the prefix lengths of their networks.
    #[serde(default)]
    pub(crate) addresses: Listed<Network>,
    /// The bridge that a port of the router's own hangs on. Default: what its link leads to.
    pub(crate) bridge: Option<Written<Name>>,
}

/// A route of a router: via a gateway, to a port, or nowhere.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct RouterRoute {
    /// Where to.
    pub(crate) to: Written<Network>,
    /// The neighbour that knows the way.
    pub(crate) via: Option<Written<IpAddr>>,
    /// The port behind which the destinations are neighbours themselves; with via, the port behind which the gateway is.
    pub(crate) port: Option<Written<Name>>,
    /// Whether packets are dropped, and nobody is told.
    pub(crate) discard: Option<bool>,
}

/// A neighbour that a router knows.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct RouterNeighbour {
    /// Its address.
    pub(crate) address: Written<IpAddr>,
    /// Its hardware address.
    pub(crate) mac: Written<Mac>,
    /// The port that it is behind. Default: the one whose network it is in.
    pub(crate) port: Option<Written<Name>>,
}

/// How often a router does what costs more than forwarding, for each port: "1000/s", or "1000/s burst 64".
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct RouterPolice {
    /// Packets given to full IP. Default "20000/s burst 1024".
    pub(crate) exceptions: Option<Written<Frequency>>,
    /// ICMP errors made. Default "1000/s burst 64".
    pub(crate) errors: Option<Written<Frequency>>,
    /// Answers to pings of the router itself. Default "1000/s burst 64".
    pub(crate) echo: Option<Written<Frequency>>,
    /// Packets with IP options or hop-by-hop headers. Default "1000/s burst 64".
    pub(crate) options: Option<Written<Frequency>>,
    /// Packets to be fragmented. Default "10000/s burst 256".
    pub(crate) fragments: Option<Written<Frequency>>,
    /// ARP and neighbour discovery that was not asked for. Default "600/s burst 128".
    pub(crate) neighbours: Option<Written<Frequency>>,
    /// Requests for neighbours' hardware addresses. Default "200/s burst 64".
    pub(crate) requests: Option<Written<Frequency>>,
}
