//! The loop on a simulated clock with one worker: it jumps from event to event.

use super::Worker;
use crate::events::Hope;
use longwire_units::Nanos;

impl Worker {
    /// Runs until nothing is left to happen, or `until` is reached, and answers when the run ended; nothing
    /// if the pool was full. Changes to come are waited for only while there are packets that wait for them.
    pub(crate) fn run_simulated(&mut self, until: Nanos) -> Option<Nanos> {
        loop {
            let frame = self.next_frame(until);
            let due = self.emulation.wheel.peek(frame.min(until)).map_or(Nanos::NEVER, |entry| entry.time);
            let next = frame.min(due).min(self.nodes.turns.next);
            if self.lost_anything() {
                return None;
            }
            let now = if next > until { self.hope().time() } else { self.before(next) };
            if now > until {
                return Some(self.end(until));
            }
            if frame <= now {
                self.emulation.seen = self.emulation.seen.max(frame);
            }
            self.step(now, Nanos::ZERO);
        }
    }

    /// What comes first, the next event or a change of what is held: that may put the event off, or bring it
    /// forward.
    fn before(&mut self, next: Nanos) -> Nanos {
        self.schedules.links.stir();
        if self.pool.live() > 0 { next.min(self.schedules.links.next()) } else { next }
    }

    /// What can be hoped for if nothing but changes of links is left to happen.
    pub(crate) fn hope(&mut self) -> Hope {
        let holds = self.real_packets() > 0;
        self.schedules.links.hope(self.emulation.seen, holds)
    }

    /// The packets that it holds, background traffic aside.
    pub(crate) fn real_packets(&self) -> u64 {
        self.pool.live() - self.emulation.phantoms()
    }
}
