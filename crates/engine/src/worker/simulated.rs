//! The loop on a simulated clock with one worker: it jumps from event to event.

use super::Worker;
use crate::events::PendingChanges;
use longwire_units::Nanos;

impl Worker {
    /// Runs until no event is left, or `until` is reached, and returns the end time; none if the pool was
    /// full. Pending changes are waited for only while packets depend on them.
    pub(crate) fn run_simulated(&mut self, until: Nanos) -> Option<Nanos> {
        loop {
            let frame = self.next_frame(until);
            let due = self.emulation.wheel.peek(frame.min(until)).map_or(Nanos::NEVER, |entry| entry.time);
            let next = frame.min(due).min(self.nodes.turns.next);
            if self.lost_anything() {
                return None;
            }
            if self.rewires_before(next, until) {
                self.rewire_planned();
                continue;
            }
            let now = if next > until { self.pending().time() } else { self.before(next) };
            if now > until {
                return Some(self.end(until));
            }
            if frame <= now {
                self.emulation.seen = self.emulation.seen.max(frame);
            }
            self.step(now, Nanos::ZERO);
        }
    }

    /// Whether a planned rewiring comes before the `next` event and before changes. Like a change, it is
    /// waited for only while packets depend on it, or come from a source that one of them adds.
    fn rewires_before(&mut self, next: Nanos, until: Nanos) -> bool {
        let Some(&(time, _)) = self.rewirings.front() else { return false };
        let held = self.real_packets() > 0;
        let change = if held { self.schedules.links.next() } else { Nanos::NEVER };
        let adds_sources = || self.rewirings.iter().any(|(_, step)| step.adds_sources());
        time <= until.min(next).min(change) && (next <= until || held || adds_sources())
    }

    /// The earlier of the next event and the next change of held packets, which may move the event.
    fn before(&mut self, next: Nanos) -> Nanos {
        self.schedules.links.interrupt();
        if self.pool.live() > 0 { next.min(self.schedules.links.next()) } else { next }
    }

    /// The pending changes, if nothing but changes of links is left.
    pub(crate) fn pending(&mut self) -> PendingChanges {
        let holds = self.real_packets() > 0;
        self.schedules.links.pending(self.emulation.seen, holds)
    }

    /// Packets held, except background traffic.
    pub(crate) fn real_packets(&self) -> u64 {
        self.pool.live() - self.emulation.phantoms()
    }
}
