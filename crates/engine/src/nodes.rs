//! The bridges and routers of a worker: decisions in turn, cached verdicts, changes, and outputs.

use crate::calendar::Calendar;
use crate::order::EVENT_PLACE;
use crate::retired::RetiredNode;
use crate::turns::InTurn;
use crate::verdicts::Verdicts;
use longwire_block::{Node, Outbox};
use longwire_link::classify::Classifier;
use longwire_packet::{Batch, Pool};
use longwire_units::Nanos;
use std::collections::VecDeque;
use std::sync::Arc;

/// An action on a node, which the caller can downcast (it is [`Any`](std::any::Any)). The error says why it
/// failed.
pub type NodeAction = dyn Fn(&mut dyn Node, Nanos) -> Result<(), String> + Send + Sync;

/// A change of a bridge or router at an exact time, such as of its routes, neighbours or programs: after
/// departures at that time, before arrivals by ports. The node is changed right before its first decision or
/// tick after that time, which is indistinguishable from a change at that time.
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

/// Pending changes, by the node's index.
pub(crate) struct NodeChanges {
    left: usize,
    start: Nanos,
    by_node: Vec<VecDeque<NodeEvent>>,
    /// Changes that failed.
    pub refused: Vec<String>,
}

impl NodeChanges {
    /// `nodes` is the number of nodes. Simultaneous changes are made in order.
    fn new(mut events: Vec<NodeEvent>, nodes: usize, start: Nanos) -> Self {
        events.sort_by_key(|event| event.time);
        let mut by_node: Vec<VecDeque<NodeEvent>> = vec![VecDeque::new(); nodes];
        let left = events.len();
        for event in events {
            by_node[event.node].push_back(NodeEvent { time: start + event.time, ..event });
        }
        Self { left, start, by_node, refused: Vec::new() }
    }
}

/// Most refusals listed.
const MOST_REFUSED: usize = 20;

pub(crate) struct Nodes {
    pub all: Vec<Box<dyn Node>>,
    pub turns: InTurn,
    pub changes: NodeChanges,
    pub verdicts: Verdicts,
    /// Output of the nodes, emptied after each call.
    pub outbox: Outbox,
    /// In simulated time, where only calls of a node move its deadline: the deadlines of nodes that do not
    /// decide in turn.
    deadlines: Option<Box<Calendar>>,
}

impl Nodes {
    /// `in_turn` holds the indices of the nodes that decide in turn; `start` is the start of the run.
    pub fn new(
        all: Vec<Box<dyn Node>>,
        in_turn: impl Iterator<Item = usize>,
        events: Vec<NodeEvent>,
        (start, simulated): (Nanos, bool),
    ) -> Self {
        let mut nodes = Self {
            turns: InTurn::new(all.len(), in_turn),
            changes: NodeChanges::new(events, all.len(), start),
            verdicts: Verdicts::new(),
            outbox: Outbox::default(),
            deadlines: simulated.then(Box::default),
            all,
        };
        nodes.note_deadlines();
        nodes
    }

    /// Notes a node's deadline, in simulated time: after each call that may move it.
    pub fn note_deadline(&mut self, node: usize) {
        if let Some(deadlines) = &mut self.deadlines {
            let in_turn = self.turns.has(node);
            let time = if in_turn { Nanos::NEVER } else { self.all[node].deadline() };
            deadlines.set(node as u32, time);
        }
    }

    /// Notes the deadlines of all nodes.
    pub fn note_deadlines(&mut self) {
        (0..self.all.len()).for_each(|node| self.note_deadline(node));
    }

    /// The nodes that do not decide in turn and whose deadline has come, in simulated time; none on the
    /// machine's clock, where their threads may have moved any. The list is [given back](Self::give_back).
    pub fn take_due(&mut self, now: Nanos) -> Option<Vec<u32>> {
        self.deadlines.as_mut().map(|deadlines| deadlines.take_due(now))
    }

    /// Takes back the list of due nodes.
    pub fn give_back(&mut self, due: Vec<u32>) {
        if let Some(deadlines) = &mut self.deadlines {
            deadlines.give_back(due);
        }
    }

    /// Takes a node in, behind all others or in place of one, which is then in `node`. It does not decide in
    /// turn yet.
    pub fn exchange(&mut self, place: usize, node: &mut Option<Box<dyn Node>>) {
        if let (Some(old), Some(new)) = (self.all.get_mut(place), node.as_mut()) {
            std::mem::swap(old, new);
        } else if let Some(new) = node.take() {
            self.all.push(new);
            self.turns.add();
            self.changes.by_node.push(VecDeque::new());
        }
    }

    /// Lets a node leave: what it keeps is dropped when it comes out. If it keeps nothing, it is then in
    /// `stand_in`. Changes that were due, and waited for the node's next decision, are made before: they must
    /// not meet the node that gets its place.
    pub fn retire(&mut self, place: usize, stand_in: &mut Option<Box<RetiredNode>>) {
        if place < self.all.len() {
            self.change(place, (u64::MAX, u32::MAX));
            RetiredNode::replace(&mut self.all[place], stand_in);
        }
    }

    /// The next deadline of any node.
    pub fn next(&self) -> Nanos {
        self.all.iter().map(|node| node.deadline()).min().unwrap_or(Nanos::NEVER)
    }

    /// The next deadline of a node that does not decide in turn.
    pub fn next_out_of_turn(&mut self) -> Nanos {
        if let Some(deadlines) = &mut self.deadlines {
            return deadlines.next();
        }
        let others = self.all.iter().enumerate().filter(|(place, _)| !self.turns.has(*place));
        others.map(|(_, node)| node.deadline()).min().unwrap_or(Nanos::NEVER)
    }

    /// Reads a node's deadline again after a change or decision. For a node that decides in turn it is at
    /// least `earliest`: with an immediate deadline the node would otherwise see a time long past on the
    /// machine's clock, and advance from there step by step.
    pub fn ask_again(&mut self, node: usize, earliest: Nanos) {
        if self.turns.has(node) {
            let deadline = self.all[node].deadline().max(earliest);
            self.turns.next = self.turns.next.min(deadline);
        }
    }

    /// Reads the deadlines of all nodes that decide in turn, whose own threads may have finished work.
    pub fn ask_all_in_turn(&mut self, earliest: Nanos) {
        for at in 0..self.turns.places.len() {
            self.ask_again(self.turns.places[at], earliest);
        }
    }

    /// Makes the changes of a node that come before `before` (time, and place in the order of that time).
    #[inline]
    pub fn change(&mut self, node: usize, before: (u64, u32)) {
        if self.changes.left > 0 {
            self.change_before(node, before);
        }
    }

    /// Makes all changes up to `time`.
    pub fn change_all(&mut self, time: Nanos) {
        for node in 0..self.all.len() {
            self.change(node, (time.0, u32::MAX));
        }
    }

    #[cold]
    fn change_before(&mut self, node: usize, before: (u64, u32)) {
        let is_due = |event: &mut NodeEvent| (event.time.0, EVENT_PLACE) < before;
        while let Some(event) = self.changes.by_node[node].pop_front_if(is_due) {
            self.changes.left -= 1;
            let done = (event.act)(&mut *self.all[node], event.time);
            let changes = &mut self.changes;
            if let Err(why) = done
                && changes.refused.len() < MOST_REFUSED
            {
                let at = event.time.since(changes.start);
                let what = format!("the change of {} at {at} was not carried out: {why}", event.name);
                changes.refused.push(what);
            }
        }
    }

    /// Discards pending changes, because the run has ended.
    pub fn change_no_more(&mut self) {
        self.changes.left = 0;
    }

    /// Caches the node's verdict on the first of some packets; one of many similar packets is enough.
    #[inline]
    pub fn note_verdict(&mut self, pool: &mut Pool, classifier: &Classifier, node: usize, batch: &Batch) {
        if let Some(stations) = self.all[node].stations()
            && let Some(&handle) = batch.as_slice().first()
        {
            let (meta, line) = pool.head_mut(handle);
            let by_ports = classifier.path_by_ports(meta.in_port, meta.out_port);
            self.verdicts.note(stations, meta, line, by_ports);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::any::Any;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// A node that counts its changes.
    struct Changed(Arc<AtomicU32>);

    impl Node for Changed {
        fn forward(&mut self, _: &mut Pool, _: &Batch, _: &mut Outbox) {}

        fn ports(&self) -> &[u16] {
            &[]
        }
    }

    #[test]
    fn a_change_that_waited_for_a_node_that_leaves_is_made_before() {
        let count = Arc::<AtomicU32>::default();
        let act = |node: &mut dyn Node, _: Nanos| -> Result<(), String> {
            let node: &mut dyn Any = node;
            let node = node.downcast_mut::<Changed>().ok_or("it is another node")?;
            node.0.fetch_add(1, Ordering::Relaxed);
            Ok(())
        };
        let event = NodeEvent { time: Nanos(5), node: 0, name: "it".into(), act: Arc::new(act) };
        let all: Vec<Box<dyn Node>> = vec![Box::new(Changed(Arc::clone(&count)))];
        let mut nodes = Nodes::new(all, std::iter::empty(), vec![event], (Nanos::ZERO, true));
        let (stand_in, _) = RetiredNode::new();
        nodes.retire(0, &mut Some(stand_in));
        nodes.change_all(Nanos(9));
        assert_eq!(nodes.changes.refused, Vec::<String>::new());
        assert_eq!(count.load(Ordering::Relaxed), 1);
    }
}
