//! Execution of immediate consequences, step by step.

use super::Worker;
use crate::walk::{Next, Step};
use longwire_block::DropReason;
use longwire_packet::Handle;

impl Worker {
    /// Executes a step for a packet, with all consequences; during a walk the step is added to it.
    #[inline(never)]
    pub(crate) fn walk(&mut self, next: Next, handle: Handle) {
        if self.walk.under_way {
            return self.walk.push(next, handle);
        }
        (self.walk.under_way, self.walk.turns, self.walk.taken) = (true, 0, 0);
        self.walk.push(next, handle);
        while let Some(Step { next, handle, turns }) = self.walk.steps.pop() {
            self.walk.turns = turns;
            if let Some(reason) = self.walk.take_step() {
                self.drop(handle, reason);
                continue;
            }
            let first = self.walk.steps.len();
            self.go(next, handle);
            self.walk.steps[first..].reverse();
        }
        self.walk.under_way = false;
    }

    fn go(&mut self, next: Next, handle: Handle) {
        match next {
            Next::Enter => self.enter(handle),
            Next::Leave => self.leave(handle),
            Next::Egress => self.egress(handle),
            Next::Diverted | Next::Decide if !self.walk.take_turn() => self.drop(handle, DropReason::Loop),
            Next::Diverted => self.divert(handle),
            Next::Decide => self.decide_in_turn(handle),
        }
    }
}
