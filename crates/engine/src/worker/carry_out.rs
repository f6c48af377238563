//! How a worker carries its changes out: on links in their place among departures and arrivals, on traffic sources before
//! the first frame that may be another one.

use super::Worker;
use crate::events::{Event, Of, Turn};
use crate::order::EVENT_PLACE;
use longwire_units::Nanos;

impl Worker {
    /// Carries out every change of links up to `until`.
    pub(crate) fn carry_out(&mut self, until: Nanos) {
        while let Some((time, turn)) = self.schedules.links.pop(until) {
            if self.emulation.wheel.bound() != Nanos::NEVER {
                // Packets were on their way: it does not come in vain.
                self.emulation.seen = self.emulation.seen.max(time);
            }
            self.schedules.changed = time;
            self.books.did((time.0, EVENT_PLACE));
            self.take_turn(Of::Links, turn, time);
        }
    }

    /// Carries out every change of sources up to `until`. Their frames due before must have come in.
    pub(crate) fn change_sources(&mut self, until: Nanos) {
        while let Some((time, turn)) = self.schedules.sources.pop(until) {
            self.take_turn(Of::Sources, turn, time);
        }
    }

    /// Carries out what is due of the changes of sources, as far as all frames due before have come in.
    #[inline]
    pub(crate) fn change_sources_due(&mut self, now: Nanos) {
        while self.schedules.sources.next() <= now && self.schedules.sources.next() <= self.next_arrival() {
            self.change_sources(self.schedules.sources.next());
        }
    }

    /// When the next frame comes in by a port here, in simulated time: changes of sources that come before it, and up to
    /// `until`, are carried out, for they may bring it forward, put it off, or bring the first.
    pub(crate) fn next_frame(&mut self, until: Nanos) -> Nanos {
        loop {
            let next = self.next_arrival();
            let change = if next == Nanos::NEVER {
                let first = self.schedules.sources.next();
                self.schedules.sources.hope(first, true).time()
            } else {
                self.schedules.sources.stir();
                self.schedules.sources.next()
            };
            if change > next.min(until) || change == Nanos::NEVER {
                return next;
            }
            self.change_sources(change);
        }
    }

    fn take_turn(&mut self, of: Of, turn: Turn, time: Nanos) {
        match turn {
            Turn::Begin { event, times } => self.begin_event(of, event, times, time),
            Turn::Step { place, number } => {
                let Some(edits) = self.schedules.of(of).step(place, number, time) else { return };
                let done = self.apply(of, place, &edits, time);
                self.tell_refusal(of, place, time, done);
            }
            Turn::Group { number } => self.take_group(of, number, time),
        }
    }

    fn begin_event(&mut self, of: Of, event: usize, times: u64, time: Nanos) {
        let Event { ramp, places, edits, .. } = self.schedules.of(of).begin(event, times, time);
        let endless = self.schedules.of(of).is_endless(event);
        for &place in &*places {
            // What people have changed since may leave no way in between: the new values count all the same.
            let ramped =
                ramp.is_some_and(|ramp| self.schedules.ramp(of, place, &edits, ramp, time, endless).is_ok());
            if !ramped {
                self.schedules.of(of).cancel(place, &edits);
                let done = self.apply(of, place, &edits, time);
                self.tell_refusal(of, place, time, done);
            }
        }
    }

    fn tell_refusal(&mut self, of: Of, place: u32, time: Nanos, done: Result<(), String>) {
        if let Err(why) = done {
            let what = match of {
                Of::Links if self.emulation.is_medium(place) => "a medium".into(),
                Of::Links => format!("link {}", self.emulation.links.place(place)),
                Of::Sources => format!("source {}", self.schedules.seats[place as usize].name),
            };
            self.schedules.of(of).refuse(time, &what, &why);
        }
    }
}
