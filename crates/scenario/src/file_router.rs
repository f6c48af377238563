//! The section `[[router]]` of a scenario file as it is written.

use crate::address::{Mac, Network, RoutedTo};
use crate::file_forwarder::ForwarderKey;
use crate::row::{Repeated, Row, With};
use crate::settings::{
    ControlSettings, FlowSettings, HopSettings, PoliceSettings, RingSettings, RouterPortSettings,
    RouterSettings, SlowPathSettings,
};
use crate::written::{Listed, Name, Text, Written};
use schemars::JsonSchema;
use serde::Deserialize;
use std::net::IpAddr;

pub(crate) type Router = Repeated<With<RouterKeys, RouterSettings>>;
pub(crate) type RouterHop = With<RouterHopKeys, HopSettings>;
pub(crate) type NamedFlow = With<NamedFlowKeys, FlowSettings>;
pub(crate) type RouterPort = With<RouterPortKeys, RouterPortSettings>;

/// A router: IPv4 and IPv6 between its ports.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct RouterKeys {
    /// Its name.
    pub(crate) name: Written<Name>,
    /// Its ports: hosts and ports of the scenario that it is on, or ports of its own, for links.
    pub(crate) ports: Vec<RouterPort>,
    /// Routes besides those to the networks of its ports.
    #[serde(default)]
    pub(crate) routes: Vec<RouterRoute>,
    /// A file with more routes, each on a line as "ip route" prints it: 10.1.0.0/16 via 10.0.0.2, or
    /// 10.2.0.0/16 dev PORT.
    pub(crate) routes_file: Option<Written<Text>>,
    /// Neighbours whose hardware addresses it knows from the start, besides the scenario's hosts.
    #[serde(default)]
    pub(crate) neighbours: Vec<RouterNeighbour>,
    /// Limits for operations that cost more than forwarding, for each port.
    pub(crate) police: Option<Row<PoliceSettings>>,
    /// "netns": routing protocols run in a network namespace named after the router, whose tables it follows.
    /// Default: none. Real time only.
    pub(crate) control_plane: Option<Written<Text>>,
    /// The fields that distinguish flows without names: one or several of source, source-port, destination,
    /// destination-port, protocol. Default: all of them.
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
    /// A host or port of the scenario that the router is on; or a new name, at which links begin and end.
    pub(crate) port: Written<Name>,
    /// Its hardware address. Default: one made from its place in the file.
    pub(crate) mac: Option<Written<Mac>>,
    /// Its addresses, with the prefix lengths of their networks.
    #[serde(default)]
    pub(crate) addresses: Listed<Network>,
    /// The bridge of a port of the router's own. Default: the one that its link leads to.
    pub(crate) bridge: Option<Written<Name>>,
}

/// A route of a router: via a gateway, to a port, by one of several next hops, or to nowhere.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct RouterRoute {
    /// Where to; "default" is all of IPv4, or of IPv6 if the gateway is.
    pub(crate) to: Written<RoutedTo>,
    /// The gateway.
    pub(crate) via: Option<Written<IpAddr>>,
    /// The port behind which the destinations are neighbours themselves; with via, the port behind which the
    /// gateway is.
    pub(crate) port: Option<Written<Name>>,
    /// Several of these, each with via or port or both: each flow takes one.
    #[serde(default)]
    pub(crate) next_hops: Vec<RouterHop>,
    /// Whether packets are dropped without an ICMP error.
    pub(crate) discard: Option<bool>,
}

/// One of the next hops of a route.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct RouterHopKeys {
    /// The gateway.
    pub(crate) via: Option<Written<IpAddr>>,
    /// The port behind which the destinations are neighbours themselves; with via, the port behind which the
    /// gateway is.
    pub(crate) port: Option<Written<Name>>,
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

/// A flow with a name.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct NamedFlowKeys {
    /// Its name in reports.
    pub(crate) name: Written<Name>,
    /// Its packets; of several flows that match, the one with fewest wild fields counts.
    pub(crate) key: ForwarderKey,
}
