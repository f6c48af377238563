//! The loop on a simulated clock with one worker: it jumps from event to event.

use crate::worker::Worker;
use longwire_units::Nanos;

impl Worker {
    /// Runs until nothing is left to happen, `until` is reached, or the pool is full.
    pub(crate) fn run_simulated(&mut self, until: Nanos) {
        loop {
            let next = self.next_arrival().min(self.wheel.bound());
            if next == Nanos::NEVER || next > until || self.lost_anything() {
                return;
            }
            self.step(next, Nanos::ZERO);
        }
    }
}
