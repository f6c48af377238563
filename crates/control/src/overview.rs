//! Data on an instance as a whole: totals, graph and events.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::{IntoParams, ToSchema};

/// Totals of a run, of constant size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Summary {
    /// The scenario's file.
    #[schema(example = "scenarios/two-hosts.toml")]
    pub scenario: String,
    /// Time since its start.
    pub elapsed_ns: u64,
    /// The verdict so far, as in the report; null before the first.
    #[schema(value_type = Option<Object>)]
    pub fidelity: serde_json::Value,
    /// The verdicts on windows of the run, as in the report; null before the first.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub window: serde_json::Value,
    /// Packets received by ports to the outside.
    pub in_packets: u64,
    /// Packets sent by them.
    pub out_packets: u64,
    /// Bytes of their frames.
    pub out_bytes: u64,
    /// Packets inside: in queues, in transit, in routers.
    pub held: u64,
    /// Dropped packets by reason, on links and elsewhere.
    #[schema(example = json!({"loss": 17}))]
    pub dropped: BTreeMap<String, u64>,
    /// What is wrong with ports, and with the files that the run writes.
    pub faults: Vec<String>,
    /// The memory of packets.
    pub pool: PoolUse,
    /// Number of objects, by collection.
    #[schema(example = json!({"links": 2, "ports": 2}))]
    pub objects: BTreeMap<String, usize>,
}

/// Use of packet memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PoolUse {
    /// In use now.
    pub used_bytes: u64,
    /// Capacity.
    pub bytes: u64,
}

/// The graph of a scenario.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct Topology {
    /// Hosts, ports, bridges and routers.
    pub nodes: Vec<TopologyNode>,
    /// The links, in the order of the scenario.
    pub links: Vec<TopologyLink>,
    /// Pairs of nodes connected without a link: a port and its bridge, two routers.
    #[schema(value_type = Vec<Vec<String>>, example = json!([["a", "bridge"]]))]
    pub wires: Vec<(String, String)>,
    /// Whether there are more links than listed: without a selection, the first 10000.
    pub more: bool,
}

/// A node of the graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TopologyNode {
    /// Its name.
    pub name: String,
    /// `host`, `port`, `bridge` or `router`.
    #[schema(example = "host")]
    pub kind: String,
    /// Its addresses.
    #[schema(example = json!(["10.0.0.1/24"]))]
    pub addresses: Vec<String>,
}

/// A link of the graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TopologyLink {
    /// Its name.
    #[schema(example = "up.forward")]
    pub name: String,
    /// The node at which it begins.
    pub from: String,
    /// The node at which it ends.
    pub to: String,
}

/// Selects events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct EventQuery {
    /// Number of the last known log entry: later ones are shown, or all if there is no such number yet.
    #[serde(default)]
    #[param(default = 0, value_type = usize)]
    pub after: u64,
    /// Whether to list scheduled changes as well.
    #[serde(default = "yes")]
    #[param(default = true)]
    pub planned: bool,
}

const fn yes() -> bool {
    true
}

/// Scheduled changes and past events.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct EventPage {
    /// The scenario's `[[at]]` sections, at most 1000: those to come, the next one first, then the past ones,
    /// the latest first. None if they were not requested.
    pub planned: Vec<PlannedEvent>,
    /// Past events by time, the earliest first: at most the last 1000.
    pub log: Vec<LoggedEvent>,
    /// The number of the last entry, for the next request's `after`.
    pub last: u64,
}

/// A scheduled change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlannedEvent {
    /// When, from the start of the run.
    pub at_ns: u64,
    /// The interval of a repeated change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every_ns: Option<u64>,
    /// The number of repetitions, if limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u64>,
    /// The duration of a gradual change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_ns: Option<u64>,
    /// The change as text.
    #[schema(example = "up.forward: delay 80 ms")]
    pub what: String,
}

/// A past event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LoggedEvent {
    /// Its number, from 1 on, in the order in which they were logged.
    pub number: u64,
    /// When, from the start of the run.
    pub at_ns: u64,
    /// `change` (by the API, or because a program's lease has ended), `scheduled` (by the
    /// scenario), `fault` (of a port, or an addition or removal of the scenario that failed),
    /// `faithful` or `unfaithful`.
    #[schema(example = "change")]
    pub kind: String,
    /// The event as text.
    #[schema(example = "up.forward: delay 80 ms")]
    pub what: String,
}
