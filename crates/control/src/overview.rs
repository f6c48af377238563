//! What the API says of an instance as a whole: its totals, its graph, and what happens.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::{IntoParams, ToSchema};

/// Totals of a run, the same size however many objects there are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Summary {
    /// The scenario's file.
    #[schema(example = "scenarios/two-hosts.toml")]
    pub scenario: String,
    /// How long it has run.
    pub elapsed_ns: u64,
    /// The verdict so far, as in the report; null before the first.
    #[schema(value_type = Option<Object>)]
    pub fidelity: serde_json::Value,
    /// The verdicts on windows of the run, as in the report; null before the first.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub window: serde_json::Value,
    /// Packets that came in by ports to the outside.
    pub in_packets: u64,
    /// Packets that went out by them.
    pub out_packets: u64,
    /// Bytes of their frames.
    pub out_bytes: u64,
    /// Packets inside: in queues, on their way, in routers.
    pub held: u64,
    /// Dropped packets by reason, on links and elsewhere.
    #[schema(example = json!({"loss": 17}))]
    pub dropped: BTreeMap<String, u64>,
    /// The memory of packets.
    pub pool: PoolUse,
    /// How many objects there are, by collection.
    #[schema(example = json!({"links": 2, "ports": 2}))]
    pub objects: BTreeMap<String, usize>,
}

/// How much of the packets' memory is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PoolUse {
    /// In use now.
    pub used_bytes: u64,
    /// All there is.
    pub bytes: u64,
}

/// The graph of a scenario.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct Topology {
    /// Hosts, ports, bridges and routers.
    pub nodes: Vec<TopologyNode>,
    /// The links, in the order of the scenario.
    pub links: Vec<TopologyLink>,
    /// Pairs of nodes that are joined without a link: a port and its bridge, two routers.
    #[schema(value_type = Vec<Vec<String>>, example = json!([["a", "bridge"]]))]
    pub wires: Vec<(String, String)>,
    /// Whether there are more links than are listed: without a choice, the first 10000 are.
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
    /// The addresses there.
    #[schema(example = json!(["10.0.0.1/24"]))]
    pub addresses: Vec<String>,
}

/// A link of the graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TopologyLink {
    /// Its name.
    #[schema(example = "up.forward")]
    pub name: String,
    /// The node where it begins.
    pub from: String,
    /// The node where it ends.
    pub to: String,
}

/// Which events to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct EventQuery {
    /// Number of the last entry of the log that is known: later ones are shown.
    #[serde(default)]
    #[param(default = 0)]
    pub after: u64,
    /// Whether to list the scheduled changes, too.
    #[serde(default = "yes")]
    #[param(default = true)]
    pub planned: bool,
}

const fn yes() -> bool {
    true
}

/// What is scheduled, and what has happened.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct EventPage {
    /// The scenario's `[[at]]` sections, in its order; none if they were not asked for.
    pub planned: Vec<PlannedEvent>,
    /// What has happened, the earliest first: of much, the last 1000.
    pub log: Vec<LoggedEvent>,
    /// The number of the last entry there is: what to ask for `after` next.
    pub last: u64,
}

/// A scheduled change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlannedEvent {
    /// When, from the start of the run.
    pub at_ns: u64,
    /// The time between two of them, if it comes again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every_ns: Option<u64>,
    /// How often it comes, if not endlessly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u64>,
    /// How long it takes, if it does not happen at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_ns: Option<u64>,
    /// The change in words.
    #[schema(example = "up.forward: delay 80 ms")]
    pub what: String,
}

/// What has happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LoggedEvent {
    /// Its number, from 1 on.
    pub number: u64,
    /// When, from the start of the run.
    pub at_ns: u64,
    /// `change` (by the API), `scheduled` (by the scenario), `fault` (of a port), `faithful` or `unfaithful`.
    #[schema(example = "change")]
    pub kind: String,
    /// What it was.
    #[schema(example = "up.forward: delay 80 ms")]
    pub what: String,
}
