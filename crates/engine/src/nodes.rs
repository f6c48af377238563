//! The bridges and routers of a worker: who decides in its turn, what they have decided, what changes at
//! them, and what they give out.

use crate::node_changes::{NodeChanges, NodeEvent};
use crate::order::EVENT_PLACE;
use crate::turns::Turns;
use crate::verdicts::Verdicts;
use longwire_block::{Node, Outbox};
use longwire_link::classify::Classifier;
use longwire_packet::{Batch, Pool};
use longwire_units::Nanos;
use std::collections::VecDeque;

/// How many refusals are told.
const MOST_REFUSED: usize = 20;

/// See the module.
pub(crate) struct Nodes {
    pub all: Vec<Box<dyn Node>>,
    pub turns: Turns,
    pub changes: NodeChanges,
    pub verdicts: Verdicts,
    /// What they give out, emptied after each call.
    pub outbox: Outbox,
}

impl Nodes {
    /// Nodes, those with these places deciding in their turn, and what changes at them in a run that begins
    /// at `start`.
    pub fn new(
        all: Vec<Box<dyn Node>>,
        in_turn: impl Iterator<Item = usize>,
        events: Vec<NodeEvent>,
        start: Nanos,
    ) -> Self {
        Self {
            turns: Turns::new(all.len(), in_turn),
            changes: NodeChanges::new(events, all.len(), start),
            verdicts: Verdicts::new(),
            outbox: Outbox::default(),
            all,
        }
    }

    /// When one wants to be told the time.
    pub fn next(&self) -> Nanos {
        self.all.iter().map(|node| node.deadline()).min().unwrap_or(Nanos::NEVER)
    }

    /// When one wants to be told the time that does not wait for its turn.
    pub fn next_out_of_turn(&self) -> Nanos {
        let others = self.all.iter().enumerate().filter(|(place, _)| !self.turns.has(*place));
        others.map(|(_, node)| node.deadline()).min().unwrap_or(Nanos::NEVER)
    }

    /// A node may have another deadline now, for it was changed or has decided. If it decides in its turn,
    /// that comes no sooner than `earliest`: one that wants it at once is not told of a time that is long
    /// over on the machine's clock, from which it would go on step by step.
    pub fn ask_again(&mut self, node: usize, earliest: Nanos) {
        if self.turns.has(node) {
            let deadline = self.all[node].deadline().max(earliest);
            self.turns.next = self.turns.next.min(deadline);
        }
    }

    /// The same for all that decide in their turn: threads of their own may be done with something.
    pub fn ask_all_in_turn(&mut self, earliest: Nanos) {
        for at in 0..self.turns.places.len() {
            self.ask_again(self.turns.places[at], earliest);
        }
    }

    /// Carries out what changes at a node before `before`: a time, and a place in the order of what happens
    /// then.
    #[inline]
    pub fn change(&mut self, node: usize, before: (u64, u32)) {
        if self.changes.left > 0 {
            self.change_before(node, before);
        }
    }

    /// Carries out what changes at any node up to `time`.
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

    /// Forgets what was still to change: the run has ended before.
    pub fn change_no_more(&mut self) {
        self.changes.left = 0;
        self.changes.by_node.iter_mut().for_each(VecDeque::clear);
    }

    /// Remembers what its node has decided about the first of some packets: one of many that are alike is
    /// enough.
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
