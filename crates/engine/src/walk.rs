//! What follows at once when a packet leaves a link: it enters the next, is steered to another, or is decided about by another node.
//!
//! The steps wait in a list, not on the stack: a plan may chain any number of links that hold no packet. They are taken depth first: all that follows
//! from one packet precedes the next one.

use crate::worker::Worker;
use longwire_block::DropReason;
use longwire_packet::Handle;

/// Most times that a packet is steered, or that nodes decide in turn about it and what comes of it, at one moment. A plan has no circle of
/// steering, and routers count hops, but programs need not.
pub(crate) const MOST_TURNS: u16 = 1024;
/// The same for all packets that come of one: programs that send back what a bridge floods multiply it.
const MOST_TURNS_TOGETHER: u32 = 1 << 18;
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
struct Step {
    next: Next,
    handle: Handle,
    turns: u16,
}

/// The steps that are left of what one packet has set off.
#[derive(Debug)]
pub(crate) struct Walk {
    steps: Vec<Step>,
    under_way: bool,
    /// Turns that the packet whose step is being taken has had, and all packets of the walk.
    turns: u16,
    turns_together: u32,
}

impl Walk {
    pub fn new() -> Self {
        Self { steps: Vec::with_capacity(USUAL), under_way: false, turns: 0, turns_together: 0 }
    }

    #[inline]
    pub fn is_under_way(&self) -> bool {
        self.under_way
    }

    fn push(&mut self, next: Next, handle: Handle) {
        self.steps.push(Step { next, handle, turns: self.turns });
    }

    /// Counts a turn of the packet whose step is being taken. Whether it may have it.
    fn take_turn(&mut self) -> bool {
        self.turns += 1;
        self.turns_together += 1;
        self.turns <= MOST_TURNS && self.turns_together <= MOST_TURNS_TOGETHER
    }
}

impl Worker {
    /// Does this with a packet, and all that follows; while a walk is under way, as one of its steps.
    #[inline(never)]
    pub(crate) fn walk(&mut self, next: Next, handle: Handle) {
        if self.walk.under_way {
            return self.walk.push(next, handle);
        }
        (self.walk.under_way, self.walk.turns, self.walk.turns_together) = (true, 0, 0);
        self.walk.push(next, handle);
        while let Some(Step { next, handle, turns }) = self.walk.steps.pop() {
            self.walk.turns = turns;
            let first = self.walk.steps.len();
            self.take_step(next, handle);
            self.walk.steps[first..].reverse();
        }
        self.walk.under_way = false;
    }

    fn take_step(&mut self, next: Next, handle: Handle) {
        match next {
            Next::Enter => self.enter(handle),
            Next::Leave => self.leave(handle),
            Next::Egress => self.egress(handle),
            Next::Aside | Next::Decide if !self.walk.take_turn() => self.drop(handle, DropReason::Loop),
            Next::Aside => self.leave_aside(handle),
            Next::Decide => self.decide_in_turn(handle),
        }
    }
}
