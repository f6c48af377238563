//! Execution of immediate consequences, step by step.

use super::Worker;
use crate::walk::{NextStep, Step};
use longwire_block::DropReason;
use longwire_packet::Handle;

impl Worker {
    /// Executes a step for a packet, with all consequences; during a walk the step is added to it.
    #[inline(never)]
    pub(crate) fn walk(&mut self, next: NextStep, handle: Handle) {
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

    fn go(&mut self, next: NextStep, handle: Handle) {
        match next {
            NextStep::Enter => self.enter(handle),
            NextStep::Leave => self.leave(handle),
            NextStep::Egress => self.egress(handle),
            NextStep::Diverted | NextStep::Decide if !self.walk.take_turn() => {
                self.drop(handle, DropReason::Loop);
            }
            NextStep::Diverted => self.divert(handle),
            NextStep::Decide => self.decide_in_turn(handle),
        }
    }
}
