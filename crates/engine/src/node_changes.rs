//! What changes at bridges and routers, and when: routes, neighbours, programs. A node is changed right
//! before it first decides, or is told the time, after the change's time, which nobody can tell from the time
//! itself.

use longwire_block::Node;
use longwire_units::Nanos;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

/// What is done to a node: whoever knows its type can turn it into that (it is [`Any`](std::any::Any)). It
/// answers why it could not be done.
pub type NodeAct = dyn Fn(&mut dyn Node, Nanos) -> Result<(), String> + Send + Sync;

/// A change of a node at an exact time: after departures at that time, before arrivals by ports.
#[derive(Clone)]
pub struct NodeEvent {
    /// When, from the start of the run.
    pub time: Nanos,
    /// The node, by its place among the worker's.
    pub node: usize,
    /// What it is called, should it refuse.
    pub name: Box<str>,
    /// What is done to it.
    pub act: Arc<NodeAct>,
}

impl fmt::Debug for NodeEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeEvent")
            .field("time", &self.time)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// The changes to come, by the node's place.
#[derive(Debug, Default)]
pub(crate) struct NodeChanges {
    pub left: usize,
    pub start: Nanos,
    pub by_node: Vec<VecDeque<NodeEvent>>,
    /// What could not be done.
    pub refused: Vec<String>,
}

impl NodeChanges {
    /// The changes of `nodes` nodes in a run that begins at `start`. Of those at one time the first comes
    /// first.
    pub fn new(mut events: Vec<NodeEvent>, nodes: usize, start: Nanos) -> Self {
        events.sort_by_key(|event| event.time);
        let mut by_node: Vec<VecDeque<NodeEvent>> = vec![VecDeque::new(); nodes];
        let left = events.len();
        for event in events {
            by_node[event.node].push_back(NodeEvent { time: start + event.time, ..event });
        }
        Self { left, start, by_node, refused: Vec::new() }
    }
}
