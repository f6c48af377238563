//! How a worker carries its changes out: on links in their place among departures and arrivals, on traffic sources before
//! the first frame that may be another one.

use crate::events::{Blocks, Edit, Event, Ramp, Schedule, Turn, Way, set_block};
use crate::intake::PORT_PLACES;
use crate::worker::{Order, Worker};
use longwire_units::Nanos;
use std::sync::Arc;

/// Where events come in the order of what happens at one time: after links, before ports.
pub(crate) const EVENT_PLACE: u32 = PORT_PLACES - 1;

/// What a place means: one of the worker's links, or of the media behind them, or one of the sources at its ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
    Links,
    Sources,
}

/// Why something can't be changed so.
pub(crate) const TOO_LITTLE: &str =
    "its block for the key is of another kind, and parameters without a default are not given";
const NO_WAY: &str =
    "there is no way in between: the block is of another kind, or a value is a word or unlimited";
const NO_SOURCE: &str = "nothing is sent by its port";

impl Worker {
    /// Carries out every change of links up to `until`.
    pub(crate) fn carry_out(&mut self, until: Nanos) {
        while let Some((time, turn)) = self.schedule.pop(until) {
            if self.wheel.bound() != Nanos::NEVER {
                // Packets were on their way: it does not come in vain.
                self.seen = self.seen.max(time);
            }
            self.changed = time;
            self.done = self.done.max((time.0, EVENT_PLACE));
            self.take_turn(Of::Links, turn, time);
        }
    }

    /// Carries out every change of sources up to `until`. Their frames due before must have come in.
    pub(crate) fn change_sources(&mut self, until: Nanos) {
        while let Some((time, turn)) = self.source_schedule.pop(until) {
            self.take_turn(Of::Sources, turn, time);
        }
    }

    /// Carries out what is due of the changes of sources, as far as all frames due before have come in.
    #[inline]
    pub(crate) fn change_sources_due(&mut self, now: Nanos) {
        while self.source_schedule.next() <= now && self.source_schedule.next() <= self.next_arrival() {
            self.change_sources(self.source_schedule.next());
        }
    }

    /// When the next frame comes in by a port here, in simulated time: changes of sources that come before it, and up to
    /// `until`, are carried out, for they may bring it forward, put it off, or bring the first.
    pub(crate) fn next_frame(&mut self, until: Nanos) -> Nanos {
        loop {
            let next = self.next_arrival();
            let change = if next == Nanos::NEVER {
                let first = self.source_schedule.next();
                self.source_schedule.hope(first, true).time()
            } else {
                self.source_schedule.stir();
                self.source_schedule.next()
            };
            if change > next.min(until) || change == Nanos::NEVER {
                return next;
            }
            self.change_sources(change);
        }
    }

    /// The changes of links, or those of sources.
    pub(crate) fn schedule_of(&mut self, of: Of) -> &mut Schedule {
        match of {
            Of::Links => &mut self.schedule,
            Of::Sources => &mut self.source_schedule,
        }
    }

    fn take_turn(&mut self, of: Of, turn: Turn, time: Nanos) {
        match turn {
            Turn::Begin { event, times } => self.begin_event(of, event, times, time),
            Turn::Step { place, number } => {
                let Some(edits) = self.schedule_of(of).step(place, number, time) else { return };
                let done = self.apply(of, place, &edits, time);
                self.tell_refusal(of, place, time, done);
            }
            Turn::Group { number } => self.take_group(of, number, time),
        }
    }

    fn begin_event(&mut self, of: Of, event: usize, times: u64, time: Nanos) {
        let Event { ramp, places, edits, .. } = self.schedule_of(of).begin(event, times, time);
        let endless = self.schedule_of(of).is_endless(event);
        for &place in &*places {
            // What people have changed since may leave no way in between: the new values count all the same.
            let ramped = ramp.is_some_and(|ramp| self.ramp(of, place, &edits, ramp, time, endless).is_ok());
            if !ramped {
                self.schedule_of(of).cancel(place, &edits);
                let done = self.apply(of, place, &edits, time);
                self.tell_refusal(of, place, time, done);
            }
        }
    }

    fn tell_refusal(&mut self, of: Of, place: u32, time: Nanos, done: Result<(), String>) {
        if let Err(why) = done {
            let what = match of {
                Of::Links if self.is_medium(place) => "a medium".into(),
                Of::Links => format!("link {}", self.links.place(place)),
                Of::Sources => format!("source {}", self.seats[place as usize].name),
            };
            self.schedule_of(of).refuse(time, &what, &why);
        }
    }

    /// Changes a link or source that is made of `base` unless it has changed before, at `now`, and answers what it is made
    /// of then.
    pub(crate) fn change(
        &mut self,
        (of, place): (Of, u32),
        base: Arc<Blocks>,
        edits: &[Edit],
        ramp: Option<Ramp>,
        now: Nanos,
    ) -> Result<Arc<Blocks>, String> {
        let base = self.schedule_of(of).made_of_or(place, base);
        match ramp {
            Some(ramp) => {
                if of == Of::Links {
                    // Steps have their exact place from now on.
                    self.order = Order::Exact;
                }
                self.ramp(of, place, edits, ramp, now, false)?;
            }
            None => {
                self.schedule_of(of).cancel(place, edits);
                self.apply(of, place, edits, now)?;
            }
        }
        Ok(self.schedule_of(of).made_of(place).map_or(base, Arc::clone))
    }

    /// Begins a ramp to `edits`.
    fn ramp(
        &mut self,
        of: Of,
        place: u32,
        edits: &[Edit],
        ramp: Ramp,
        now: Nanos,
        endless: bool,
    ) -> Result<(), String> {
        let schedule = self.schedule_of(of);
        let Some(blocks) = schedule.made_of(place) else { return Err(NO_WAY.into()) };
        let mut ways = Vec::new();
        for edit in edits {
            let begins = edit.begins(blocks).ok_or(NO_WAY)?;
            let each = edit.given.iter().zip(begins);
            ways.extend(each.map(|((at, to), from)| Way {
                spec: edit.spec,
                fresh: edit.fresh.clone(),
                at: *at,
                from,
                to: to.clone(),
            }));
        }
        schedule.cancel(place, edits);
        schedule.begin_ramp(place, ways, ramp, now, endless);
        Ok(())
    }

    /// Makes a link or source of what `edits` make of it: all of them or none.
    pub(crate) fn apply(&mut self, of: Of, place: u32, edits: &[Edit], now: Nanos) -> Result<(), String> {
        let Some(mut blocks) = self.schedule_of(of).made_of(place).map(|blocks| Blocks::clone(blocks)) else {
            return Err(TOO_LITTLE.into());
        };
        let mut changes: Blocks = Vec::new();
        for edit in edits {
            let (spec, values) = edit.apply(&blocks).ok_or(TOO_LITTLE)?;
            set_block(&mut blocks, spec, values.clone());
            changes.retain(|(other, _)| other.key != spec.key);
            changes.push((spec, values));
        }
        match of {
            Of::Links if self.is_medium(place) => self.set_medium(place, &changes, now)?,
            Of::Links => self.set_link(place, &changes, now)?,
            Of::Sources => self.set_source(place, &changes, now)?,
        }
        self.schedule_of(of).note(place, blocks);
        Ok(())
    }

    /// Whether a place among the links is that of a medium: these come behind them.
    fn is_medium(&self, place: u32) -> bool {
        place as usize >= self.links.len()
    }

    fn set_medium(&mut self, medium: u32, changes: &Blocks, now: Nanos) -> Result<(), String> {
        for (spec, values) in changes {
            self.links.change_medium(&mut self.pool, medium, now, (spec, values))?;
        }
        self.arm_stirred();
        Ok(())
    }

    fn set_link(&mut self, link: u32, changes: &Blocks, now: Nanos) -> Result<(), String> {
        let was_noisy = self.links.has_background(link);
        if self.simulated && !was_noisy {
            // The delay so far decides how long is waited for what was lost so far. Background packets don't count: a change may have
            // brought them that comes in vain.
            let before = self.links.latest(link);
            self.links.catch_up(&mut self.pool, link, now);
            self.note(link, before);
        }
        let done = self.links.change(&mut self.pool, link, now, changes);
        if !was_noisy && self.links.has_background(link) {
            self.noisy.push(link);
        }
        self.arm(link);
        self.arm_stirred();
        done.map_err(|error| error.to_string())
    }

    fn set_source(&mut self, source: u32, changes: &Blocks, now: Nanos) -> Result<(), String> {
        // A change by hand may find frames that are due and have not come in: they come before it.
        let seat = &self.seats[source as usize];
        let port = &mut self.ports[seat.port as usize].port;
        let now = port.next_arrival().map_or(now, |next| now.min(next));
        let known = changes.iter().all(|(spec, values)| port.change_source(now, &seat.name, spec, values));
        if known { Ok(()) } else { Err(NO_SOURCE.into()) }
    }
}
