//! The loop on a simulated clock with one worker: it jumps from event to event.

use crate::worker::Worker;
use longwire_units::Nanos;

impl Worker {
    /// Runs until nothing is left to happen, `until` is reached, or the pool is full. Changes to come are waited for
    /// only while there are packets that wait for them.
    pub(crate) fn run_simulated(&mut self, until: Nanos) {
        loop {
            let next = self.next_frame(until).min(self.wheel.bound());
            let next = self.or_release(next);
            if next == Nanos::NEVER || next > until || self.lost_anything() {
                return;
            }
            self.step(next, Nanos::ZERO);
        }
    }

    /// When something happens next: `next`, or a change before it that may set packets going that are held here.
    pub(crate) fn or_release(&mut self, next: Nanos) -> Nanos {
        if next != Nanos::NEVER {
            self.schedule.stir();
        }
        if self.pool.live() > 0 { next.min(self.schedule.next_hope()) } else { next }
    }
}
