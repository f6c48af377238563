//! The loop on a simulated clock with one worker, which jumps from event to event; and how simulated runs end.

use crate::TO_THE_END;
use crate::events::Hope;
use crate::worker::Worker;
use longwire_units::Nanos;

impl Worker {
    /// Runs until nothing is left to happen, or `until` is reached, and answers when the run ended; nothing if the pool was full.
    /// Changes to come are waited for only while there are packets that wait for them.
    pub(crate) fn run_simulated(&mut self, until: Nanos) -> Option<Nanos> {
        loop {
            let frame = self.next_frame(until);
            let due = self.wheel.peek(frame.min(until)).map_or(Nanos::NEVER, |entry| entry.time);
            let next = frame.min(due);
            if self.lost_anything() {
                return None;
            }
            let now = if next > until { self.hope().time() } else { self.before(next) };
            if now > until {
                return Some(self.end(until));
            }
            if frame <= now {
                self.note(frame);
            }
            self.step(now, Nanos::ZERO);
        }
    }

    /// What comes first, the next event or a change of what is held: that may put the event off, or bring it forward.
    fn before(&mut self, next: Nanos) -> Nanos {
        self.schedule.stir();
        if self.pool.live() > 0 { next.min(self.schedule.next()) } else { next }
    }

    /// What can be hoped for if nothing but changes of links is left to happen.
    pub(crate) fn hope(&mut self) -> Hope {
        let holds = self.real_packets() > 0;
        self.schedule.hope(self.seen, holds)
    }

    /// The packets that it holds, background traffic aside.
    pub(crate) fn real_packets(&self) -> u64 {
        let phantoms = |&link: &u32| u64::from(self.links.phantoms(link));
        self.pool.live() - self.noisy.iter().map(phantoms).sum::<u64>()
    }

    /// Notes that something has happened: a frame came in, or a packet arrived at a link, was lost or left.
    pub(crate) fn note(&mut self, time: Nanos) {
        self.seen = self.seen.max(time);
        self.done = self.done.max((time.0, 0));
    }

    /// When a run ends that was to end at `until`, as far as is known here: then, or else at the last event.
    pub(crate) fn end(&self, until: Nanos) -> Nanos {
        if until < TO_THE_END { until } else { Nanos(self.done.0) }
    }

    /// Brings everything to the end of the run, at which all workers have agreed: changes, and background traffic that nobody has
    /// waited for. What is counted then does not depend on how many workers there are.
    pub(crate) fn conclude(&mut self, end: Nanos) {
        self.carry_out(end);
        self.links.catch_up(&mut self.pool, end);
    }
}
