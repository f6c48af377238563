//! What follows at once when a packet leaves a link: it enters the next, is steered to another, or is decided
//! about by another node.
//!
//! The steps wait in a list, not on the stack: a plan may chain any number of links that hold no packet. They
//! are taken depth first: all that follows from one packet precedes the next one.

use longwire_block::DropReason;
use longwire_packet::Handle;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Most times that a packet is steered, or that nodes decide in turn about it and what comes of it, at one
/// moment. A plan has no circle of steering, and routers count hops, but programs need not.
pub(crate) const MOST_TURNS: u16 = 1024;
/// Most steps of a walk, of a packet and all that comes of it: links that duplicate, one behind the other,
/// multiply it, and so do programs that send back what a bridge floods. A packet that is flooded to every
/// port that a plan can have, over as many links, takes a fifth of them.
const MOST_STEPS: u64 = 1 << 20;
/// So often a walk looks whether the run is to end.
const STEPS_TO_A_LOOK: u64 = 1 << 12;
/// Room for steps: more is allocated where it is first needed.
const USUAL: usize = 256;

/// What is to be done with a packet.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Next {
    /// It enters the link that its path begins with.
    Enter,
    /// It has left a link.
    Leave,
    /// It goes out by its port.
    Egress,
    /// It has left a link otherwise than at its end.
    Aside,
    /// Its node decides.
    Decide,
}

#[derive(Debug)]
pub(crate) struct Step {
    pub next: Next,
    pub handle: Handle,
    pub turns: u16,
}

/// The steps that are left of what one packet has set off.
#[derive(Debug)]
pub(crate) struct Walk {
    pub steps: Vec<Step>,
    pub under_way: bool,
    /// Turns that the packet whose step is being taken has had.
    pub turns: u16,
    pub taken: u64,
    /// What says that the run is to end, if anything does but its clock.
    stop: Option<Arc<AtomicBool>>,
}

impl Walk {
    pub fn new() -> Self {
        Self { steps: Vec::with_capacity(USUAL), under_way: false, turns: 0, taken: 0, stop: None }
    }

    /// Walks end when `stop` is set.
    pub fn heed(&mut self, stop: &Arc<AtomicBool>) {
        self.stop = Some(Arc::clone(stop));
    }

    #[inline]
    pub fn is_under_way(&self) -> bool {
        self.under_way
    }

    pub fn push(&mut self, next: Next, handle: Handle) {
        self.steps.push(Step { next, handle, turns: self.turns });
    }

    /// Counts a turn of the packet whose step is being taken. Whether it may have it.
    pub fn take_turn(&mut self) -> bool {
        self.turns += 1;
        self.turns <= MOST_TURNS
    }

    /// Counts a step. Why it is not taken, if the walk is to end.
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
