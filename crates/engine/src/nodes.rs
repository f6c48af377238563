//! The bridges and routers of a worker: who decides in its turn, what they have decided, what changes at them, and what they give out.

use crate::node_changes::{NodeChanges, NodeEvent};
use crate::turns::Turns;
use crate::verdicts::Verdicts;
use longwire_block::{Node, Outbox};
use longwire_units::Nanos;

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
    /// Nodes, those with these places deciding in their turn, and what changes at them in a run that begins at `start`.
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

    /// A node may have another deadline now, for it was changed or has decided. If it decides in its turn, that comes no sooner than `earliest`: one that
    /// wants it at once is not told of a time that is long over on the machine's clock, from which it would go on step by step.
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
}
