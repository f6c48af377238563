//! The section `[[router]]` of a scenario file as it is written.

use crate::address::{Mac, Network, RoutedTo};
use crate::file_processors::{NamedFlow, Rings};
use crate::frequency::Frequency;
use crate::processor_terms::{Clock, Cycles, PortRate, Predictor};
use crate::words::LevelWait;
use crate::written::{Listed, Name, Text, Whole, Written};
use longwire_units::{Nanos, Probability, Rate};
use schemars::JsonSchema;
use serde::Deserialize;
use std::net::IpAddr;

/// A router: IPv4 and IPv6 between its ports.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Router {
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
    pub(crate) police: Option<RouterPolice>,
    /// "netns": routing protocols run in a network namespace named after the router, whose tables it follows.
    /// Default: none. Real time only.
    pub(crate) control_plane: Option<Written<Text>>,
    /// Budget of a packet, programs included: "vrp", the virtual router processor of Spalink and
    /// others. Default: anything.
    pub(crate) profile: Option<Written<Text>>,
    /// Budget of a packet by the time of the shortest frame at this rate.
    pub(crate) line_rate: Option<Written<Rate>>,
    /// Prices: "calibrated" for those that "longwire calibrate" has measured on this machine, or a file
    /// that it wrote. Default "assumed".
    pub(crate) prices: Option<Written<Text>>,
    /// Scheduler of its processors, such as "gmr3". Default: packets are forwarded when they arrive,
    /// and processors are not modelled.
    pub(crate) scheduler: Option<Written<Text>>,
    /// Number of its processors, 1 to 256. In real time one is the router's worker, and several are
    /// threads. Default 1.
    pub(crate) processors: Option<Written<Whole>>,
    /// The clock of each in virtual time. Default "1 GHz".
    pub(crate) clock: Option<Written<Clock>>,
    /// Cost of a packet in virtual time: 3000, "1000 + 2/byte", "2400..3600". Default: the prices of its
    /// programs and of forwarding.
    pub(crate) cycles: Option<Written<Cycles>>,
    /// The rate at which each port sends. Default: ports take no time.
    pub(crate) port_rate: Option<Written<PortRate>>,
    /// The charge of cbcs for a byte, a whole number of nanoseconds. Default: the port's time.
    pub(crate) byte_charge: Option<Written<Nanos>>,
    /// Most cycles of a program, after which it is stopped; estimates are no higher. Default: 100 µs of the
    /// clock.
    pub(crate) budget: Option<Written<Whole>>,
    /// Processor time of a flow of weight 1 in a round. Default: the largest known cost of a packet, and
    /// at least "20 us" if neither cycles nor budget is given.
    pub(crate) quantum: Option<Written<Nanos>>,
    /// Bytes that a flow of weight 1 may send in a round of the second half of separate-drr. Default 1518, or
    /// the longest frame if that is more.
    pub(crate) quantum_bytes: Option<Written<Whole>>,
    /// Largest difference between a flow's two resources with drfq-dovetail. Default: no limit.
    pub(crate) dovetail: Option<Written<Nanos>>,
    /// How the cost of a flow's next packet is predicted: "ses 0.5", "ses-shift", "last", "mean", "exact".
    /// Default "ses".
    pub(crate) estimator: Option<Written<Predictor>>,
    /// The predicted cost of a flow without measurements, in cycles. Default: the recent cost of packets of
    /// all flows.
    pub(crate) first_estimate: Option<Written<Whole>>,
    /// The fields that distinguish flows without names: one or several of source, source-port, destination,
    /// destination-port, protocol. Default: all of them.
    #[serde(default)]
    pub(crate) flow_key: Listed<Text>,
    /// Named flows and their settings.
    #[serde(default)]
    pub(crate) flows: Vec<NamedFlow>,
    /// Most packets of a flow that wait for a processor. Default 256; with fifo the value of packets.
    pub(crate) flow_limit: Option<Written<Whole>>,
    /// Flows known at once. Default 1024.
    pub(crate) flow_table: Option<Written<Whole>>,
    /// Packets of all flows inside at once. Default 4096, or four for each flow of flow-table, up to 65536,
    /// if that is more.
    pub(crate) packets: Option<Written<Whole>>,
    /// Capacities of the rings between stages.
    pub(crate) rings: Option<Rings>,
    /// Its slow path.
    pub(crate) slow_path: Option<RouterSlowPath>,
    /// Its control level.
    pub(crate) control: Option<RouterControl>,
    /// Makes so many of this entry, numbered by {n}.
    pub(crate) count: Option<Written<Whole>>,
    /// The first number. Default 1.
    pub(crate) first: Option<Written<Whole>>,
}

/// A port of a router.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct RouterPort {
    /// A host or port of the scenario that the router is on; or a new name, at which links begin and end.
    pub(crate) port: Written<Name>,
    /// Its hardware address. Default: one made from its place in the file.
    pub(crate) mac: Option<Written<Mac>>,
    /// Longest IP packet that it sends, 1280 to 65535. Default 1500.
    pub(crate) mtu: Option<Written<Whole>>,
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
pub(crate) struct RouterHop {
    /// The gateway.
    pub(crate) via: Option<Written<IpAddr>>,
    /// The port behind which the destinations are neighbours themselves; with via, the port behind which the
    /// gateway is.
    pub(crate) port: Option<Written<Name>>,
    /// Its share of the flows, 1 to 256. Default 1.
    pub(crate) weight: Option<Written<Whole>>,
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

/// Rates of operations that cost more than forwarding, for each port: "1000/s", or "1000/s burst 64".
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
    /// Routing protocols' packets given to the control plane. Default "20000/s burst 1024".
    pub(crate) control_routing: Option<Written<Frequency>>,
    /// ICMP given to the control plane. Default "1000/s burst 64".
    pub(crate) control_ping: Option<Written<Frequency>>,
    /// Packets with options given to the control plane. Default "100/s burst 64".
    pub(crate) control_options: Option<Written<Frequency>>,
    /// All else given to the control plane. Default "5000/s burst 256".
    pub(crate) control_other: Option<Written<Frequency>>,
}

/// The slow path of a router: a thread with services.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct RouterSlowPath {
    /// Packets a second that can be guaranteed to all services together. Default 1000000.
    pub(crate) packets: Option<Written<Whole>>,
    /// Cycles a second. Default 1000000000.
    pub(crate) cycles: Option<Written<Whole>>,
    /// Scheduler of the services on their thread: "sfq", or another scheduler. Default "sfq".
    pub(crate) scheduler: Option<Written<Text>>,
    /// How the thread waits: "woken" or "polling". Default "woken".
    pub(crate) wait: Option<Written<LevelWait>>,
    /// Share of the router's worker reserved for moving packets there and back, such as "10 %": it is not in
    /// the budget of programs, and moving packets uses no more. Default: no reserve and no limit.
    pub(crate) worker: Option<Written<Probability>>,
}

/// The control level of a router: other processes.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct RouterControl {
    /// Packets a second that can be guaranteed to all processes together. Default 1000000.
    pub(crate) packets: Option<Written<Whole>>,
    /// Cycles a second. Default 1000000000.
    pub(crate) cycles: Option<Written<Whole>>,
    /// Share of the router's worker reserved for moving packets there and back: as for the slow path.
    pub(crate) worker: Option<Written<Probability>>,
}
