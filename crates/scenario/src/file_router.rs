//! The sections `[[router]]` and `[[forwarder]]` as written.

use crate::address::{Mac, Network, RouteTarget};
use crate::row::{Repeated, Row, WithSettings};
use crate::settings::{
    ControlSettings, FlowSettings, ForwarderSettings, HopSettings, PoliceSettings, RingSettings,
    RouterPortSettings, RouterSettings, SlowPathSettings,
};
use crate::written::{Constant, Listed, Name, Text, Whole, Written};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::IpAddr;

pub(crate) type Router = Repeated<WithSettings<RouterKeys, RouterSettings>>;
pub(crate) type RouterHop = WithSettings<RouterHopKeys, HopSettings>;
pub(crate) type NamedFlow = WithSettings<NamedFlowKeys, FlowSettings>;
pub(crate) type RouterPort = WithSettings<RouterPortKeys, RouterPortSettings>;
pub(crate) type Forwarder = WithSettings<ForwarderKeys, ForwarderSettings>;

/// A router for IPv4 and IPv6.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct RouterKeys {
    /// Its name.
    pub(crate) name: Written<Name>,
    /// Its ports: hosts and ports of the scenario, or its own, for links.
    pub(crate) ports: Vec<RouterPort>,
    /// Routes besides those to its connected networks.
    #[serde(default)]
    pub(crate) routes: Vec<RouterRoute>,
    /// A file with more routes, one a line as "ip route" prints them: 10.1.0.0/16 via 10.0.0.2, or
    /// 10.2.0.0/16 dev PORT.
    pub(crate) routes_file: Option<Written<Text>>,
    /// Static neighbours, besides the scenario's hosts.
    #[serde(default)]
    pub(crate) neighbours: Vec<RouterNeighbour>,
    /// Limits for operations that cost more than forwarding, per port.
    pub(crate) police: Option<Row<PoliceSettings>>,
    /// "netns": routing protocols run in a network namespace named after the router, whose tables it follows.
    /// Default: none. Real time only.
    pub(crate) control_plane: Option<Written<Text>>,
    /// The fields that distinguish unnamed flows: any of source, source-port, destination, destination-port,
    /// protocol. Default: all of them.
    #[serde(default)]
    pub(crate) flow_key: Listed<Text>,
    /// Named flows and their settings.
    #[serde(default)]
    pub(crate) flows: Vec<NamedFlow>,
    /// Capacities of the rings between stages.
    pub(crate) rings: Option<Row<RingSettings>>,
    /// Its slow path.
    pub(crate) slow_path: Option<Row<SlowPathSettings>>,
    /// Its control level.
    pub(crate) control: Option<Row<ControlSettings>>,
}

/// A port of a router.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct RouterPortKeys {
    /// A host or port of the scenario, or a new name, at which links begin and end.
    pub(crate) port: Written<Name>,
    /// Its hardware address. Default: made from its place in the file.
    pub(crate) mac: Option<Written<Mac>>,
    /// Its addresses with prefix lengths.
    #[serde(default)]
    pub(crate) addresses: Listed<Network>,
    /// The bridge of the router's own port. Default: that of its link.
    pub(crate) bridge: Option<Written<Name>>,
}

/// A route of a router: via a gateway, out of a port, over several next hops, or discarding.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct RouterRoute {
    /// Destination; "default" is all of IPv4, or of IPv6 if the gateway is IPv6.
    pub(crate) to: Written<RouteTarget>,
    /// The gateway.
    pub(crate) via: Option<Written<IpAddr>>,
    /// The output port; without via, the destinations are on its link.
    pub(crate) port: Option<Written<Name>>,
    /// Several next hops, each with via, port or both: each flow takes one.
    #[serde(default)]
    pub(crate) next_hops: Vec<RouterHop>,
    /// Drops packets without an ICMP error.
    pub(crate) discard: Option<bool>,
}

/// One of the next hops of a route.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct RouterHopKeys {
    /// The gateway.
    pub(crate) via: Option<Written<IpAddr>>,
    /// The output port; without via, the destinations are on its link.
    pub(crate) port: Option<Written<Name>>,
}

/// A static neighbour of a router.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct RouterNeighbour {
    /// Its address.
    pub(crate) address: Written<IpAddr>,
    /// Its hardware address.
    pub(crate) mac: Written<Mac>,
    /// Its port. Default: the one whose network it is in.
    pub(crate) port: Option<Written<Name>>,
}

/// A named flow.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct NamedFlowKeys {
    /// Its name in reports.
    pub(crate) name: Written<Name>,
    /// Its packets; of several matching flows, the one with the fewest wildcards applies.
    pub(crate) key: ForwarderKey,
}

/// A program on a router's data path.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct ForwarderKeys {
    /// The router.
    pub(crate) router: Written<Name>,
    /// The name of one shipped with Longwire, such as "syn-monitor", or an object file made by clang -target
    /// bpf. Packets that it passes go up if where says so; without a program, all packets of the key do.
    pub(crate) program: Option<Written<Text>>,
    /// The function in the object. Default: the only program.
    pub(crate) function: Option<Written<Text>>,
    /// Values for constants (const volatile) of its object, by name; for an array, a text with commas.
    /// Default: those of the source.
    #[serde(default)]
    pub(crate) constants: BTreeMap<String, Written<Constant>>,
    /// Sizes of its object's maps, by name; for a program array, the names of its programs in order, as a
    /// text with commas; for a devmap or cpumap, the targets of its entries in order, as PORT:PROGRAM or
    /// PORT:. Default: as in the source.
    #[serde(default)]
    pub(crate) maps: BTreeMap<String, Written<Constant>>,
    /// The programs of its object, of SEC("xdp/devmap") and SEC("xdp/cpumap"), that entries of its devmaps
    /// and cpumaps may name by number, from 1 in this order. Default: none.
    #[serde(default)]
    pub(crate) exits: Vec<Written<Text>>,
    /// Its name. Default: the program's name.
    pub(crate) name: Option<Written<Text>>,
    /// The packets it receives. Default: all.
    pub(crate) key: Option<ForwarderKey>,
    /// Initial state, in hexadecimal digits. Default: zeros.
    pub(crate) data: Option<Written<Text>>,
    /// The router's output port for its packets. Default: by the routes.
    pub(crate) port: Option<Written<Name>>,
    /// The gateway for its packets. Default: by the routes, or the destination itself if a port is named.
    pub(crate) via: Option<Written<IpAddr>>,
    /// The links that the program may choose, by number from 0; they begin at the router's ports. Default:
    /// none.
    #[serde(default)]
    pub(crate) links: Vec<Written<Name>>,
    /// The service on the slow path: "echo", "witness".
    pub(crate) service: Option<Written<Text>>,
}

/// The packets of a flow; an omitted field matches all.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct ForwarderKey {
    /// Their source address, or a network: "10.0.0.0/8".
    pub(crate) source: Option<Written<Network>>,
    /// Their source port.
    pub(crate) source_port: Option<Written<Whole>>,
    /// Their destination address, or a network.
    pub(crate) destination: Option<Written<Network>>,
    /// Their destination port.
    pub(crate) destination_port: Option<Written<Whole>>,
    /// "tcp", "udp", "icmp", "icmpv6", or a number.
    pub(crate) protocol: Option<Written<Text>>,
}
