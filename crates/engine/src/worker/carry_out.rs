//! Execution of a worker's changes: of links, in order among departures and arrivals; of traffic sources,
//! before the first frame that they affect.

use super::Worker;
use crate::events::{Event, ScheduledAction, TargetKind};
use crate::order::EVENT_PLACE;
use longwire_block::change::Edit;
use longwire_units::Nanos;

impl Worker {
    /// Makes every change of links up to `until`.
    pub(crate) fn carry_out(&mut self, until: Nanos) {
        while let Some((time, turn)) = self.schedules.links.pop(until) {
            self.sample_before(time);
            if self.emulation.wheel.bound() != Nanos::NEVER {
                // Packets were in flight, so the change had an effect.
                self.emulation.seen = self.emulation.seen.max(time);
            }
            self.schedules.changed = time;
            self.counters.did((time.0, EVENT_PLACE));
            self.take_turn(TargetKind::Links, turn, time);
        }
    }

    /// Makes every change of sources up to `until`. Earlier frames must have been received.
    pub(crate) fn change_sources(&mut self, until: Nanos) {
        while let Some((time, turn)) = self.schedules.sources.pop(until) {
            self.take_turn(TargetKind::Sources, turn, time);
        }
    }

    /// Makes due changes of sources, as far as all earlier frames have been received.
    #[inline]
    pub(crate) fn change_sources_due(&mut self, now: Nanos) {
        while self.schedules.sources.next() <= now && self.schedules.sources.next() <= self.next_arrival() {
            self.change_sources(self.schedules.sources.next());
        }
    }

    /// Arrival time of the next frame in simulated time. Changes of sources before it, up to `until`, are
    /// made first, because they may move it or create it.
    pub(crate) fn next_frame(&mut self, until: Nanos) -> Nanos {
        loop {
            let next = self.next_arrival();
            let change = if next == Nanos::NEVER {
                let first = self.schedules.sources.next();
                self.schedules.sources.pending(first, true).time()
            } else {
                self.schedules.sources.interrupt();
                self.schedules.sources.next()
            };
            if change > next.min(until) || change == Nanos::NEVER {
                return next;
            }
            self.change_sources(change);
        }
    }

    fn take_turn(&mut self, of: TargetKind, turn: ScheduledAction, time: Nanos) {
        match turn {
            ScheduledAction::Begin { event, times } => self.begin_event(of, event, times, time),
            ScheduledAction::Step { place, number } => {
                let edits = self.schedules.of(of).step(place, number, time).unwrap_or_default();
                if !edits.is_empty() {
                    self.apply_or_refuse(of, place, &edits, time);
                }
            }
            ScheduledAction::Group { number } => self.take_group(of, number, time),
        }
    }

    fn begin_event(&mut self, of: TargetKind, event: usize, times: u64, time: Nanos) {
        let Event { ramp, places, edits, .. } = self.schedules.of(of).begin(event, times, time);
        let endless = self.schedules.of(of).is_endless(event);
        for &place in &*places {
            // Requests may have made interpolation impossible; the new values are then set at once.
            let ramped =
                ramp.is_some_and(|ramp| self.schedules.ramp(of, place, &edits, ramp, time, endless).is_ok());
            if !ramped {
                self.schedules.of(of).cancel(place, &edits);
                self.apply_or_refuse(of, place, &edits, time);
            }
        }
    }

    /// Applies `edits` to a link or source, or records why that is impossible.
    fn apply_or_refuse(&mut self, of: TargetKind, place: u32, edits: &[Edit], time: Nanos) {
        if let Err(why) = self.apply(of, place, edits, time) {
            let what = match of {
                TargetKind::Links if self.emulation.is_medium(place) => "a medium".into(),
                TargetKind::Links => format!("link {}", self.emulation.links.place(place)),
                TargetKind::Sources => {
                    format!("source {}", self.schedules.source_setups[place as usize].name)
                }
            };
            self.schedules.of(of).refuse(time, &what, &why);
        }
    }
}
