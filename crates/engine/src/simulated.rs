//! The loop on a simulated clock with one worker: it jumps from event to event.

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
            let next = frame.min(due).min(self.turns.next);
            if self.lost_anything() {
                return None;
            }
            let now = if next > until { self.hope().time() } else { self.before(next) };
            if now > until {
                return Some(self.end(until));
            }
            if frame <= now {
                self.seen = self.seen.max(frame);
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

    /// Notes what has happened on a link since its latest was `before`. What was lost on the wire is waited for: with several workers
    /// the link may have known before, and it must not matter.
    #[inline]
    pub(crate) fn note(&mut self, link: u32, before: Option<Nanos>) {
        if self.simulated
            && let Some(latest) = self.links.latest(link)
            && before != Some(latest)
        {
            self.seen = self.seen.max(latest + self.links.vain_wait(link));
        }
    }
}
