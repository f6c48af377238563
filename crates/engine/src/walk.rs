//! What follows when a packet leaves a link: it enters the next one, is steered to another, or another node
//! decides about it.
//!
//! The steps wait in a list, not on the stack: a plan may chain any number of links that hold no packet. They
//! are executed depth first: all consequences of one packet precede the next packet.

use longwire_block::DropReason;
use longwire_packet::Handle;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Limit on how often a packet is steered, or nodes decide in turn about it and its results, at one instant.
/// A plan has no loop of steering, and routers decrement the hop limit, but programs need not.
pub(crate) const MOST_TURNS: u16 = 1024;
/// Limit on the steps of a walk, which covers a packet and all its results: a chain of links that duplicate
/// multiplies it, as do programs that send back what a bridge floods. A packet flooded to every port that a
/// plan can have, over as many links, needs a fifth of this.
const MOST_STEPS: u64 = 1 << 20;
/// Steps between checks whether the run should end.
const STEPS_TO_A_LOOK: u64 = 1 << 12;
/// Initial capacity for steps; more is allocated when needed.
const USUAL: usize = 256;

/// The next step for a packet.
#[derive(Debug, Clone, Copy)]
pub(crate) enum NextStep {
    /// Enter the first link of its path.
    Enter,
    /// It has left a link.
    Leave,
    /// Leave by its port.
    Egress,
    /// It has left a link before its end.
    Diverted,
    /// Its node decides.
    Decide,
}

#[derive(Debug)]
pub(crate) struct Step {
    pub next: NextStep,
    pub handle: Handle,
    pub turns: u16,
}

/// Remaining steps of the consequences of one packet.
#[derive(Debug)]
pub(crate) struct Walk {
    pub steps: Vec<Step>,
    pub under_way: bool,
    /// Turns so far of the packet whose step is executed.
    pub turns: u16,
    pub taken: u64,
    /// Walks end when it is set.
    pub stop: Option<Arc<AtomicBool>>,
}

impl Walk {
    pub fn new() -> Self {
        Self { steps: Vec::with_capacity(USUAL), under_way: false, turns: 0, taken: 0, stop: None }
    }

    pub fn push(&mut self, next: NextStep, handle: Handle) {
        self.steps.push(Step { next, handle, turns: self.turns });
    }

    /// Counts a turn of the current packet; false beyond the limit.
    pub fn take_turn(&mut self) -> bool {
        self.turns += 1;
        self.turns <= MOST_TURNS
    }

    /// Counts a step; returns the drop reason if the walk must end.
    pub fn take_step(&mut self) -> Option<DropReason> {
        self.taken += 1;
        if self.taken > MOST_STEPS {
            return Some(DropReason::Loop);
        }
        let looks = self.taken.is_multiple_of(STEPS_TO_A_LOOK);
        if looks && self.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            self.taken = MOST_STEPS;
            return Some(DropReason::Stopped);
        }
        None
    }
}
