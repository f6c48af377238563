//! Changes at bridges and routers at exact times: routes, neighbours, programs. A node is changed right
//! before its first decision or tick after the change's time, which is indistinguishable from a change at
//! that time.

use longwire_block::Node;
use longwire_units::Nanos;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

/// An action on a node, which the caller can downcast (it is [`Any`](std::any::Any)). The error says why it
/// failed.
pub type NodeAction = dyn Fn(&mut dyn Node, Nanos) -> Result<(), String> + Send + Sync;

/// A change of a node at an exact time: after departures at that time, before arrivals by ports.
#[derive(Clone)]
pub struct NodeEvent {
    /// Time from the start of the run.
    pub time: Nanos,
    /// Index of the node at the worker.
    pub node: usize,
    /// Description in the error message.
    pub name: Box<str>,
    /// The action.
    pub act: Arc<NodeAction>,
}

impl fmt::Debug for NodeEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeEvent")
            .field("time", &self.time)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// Pending changes, by the node's index.
#[derive(Debug, Default)]
pub(crate) struct NodeChanges {
    pub left: usize,
    pub start: Nanos,
    pub by_node: Vec<VecDeque<NodeEvent>>,
    /// Changes that failed.
    pub refused: Vec<String>,
}

impl NodeChanges {
    /// `nodes` is the number of nodes. Simultaneous changes are made in order.
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
