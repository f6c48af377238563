//! How an event of section `[[at]]` goes on: again and again, or in steps.

use super::{Entry, Resolver};
use crate::file::At;
use crate::written::Written;
use longwire_block::change::{Ramp, Repeat};
use longwire_units::Nanos;

/// Most steps of an event's ramps, over all its links.
const MOST_STEPS: u64 = 1_000_000;
/// How close events may follow each other for long: carrying one out takes some 10 µs.
const LEAST_EVERY: Nanos = Nanos::from_millis(1);
/// How many may follow each other more closely than that.
const MOST_CLOSE: u64 = 1000;

impl Resolver<'_, '_> {
    /// Whether it comes again. None after an error.
    pub(super) fn repeat(&mut self, entry: &Entry<'_>, written: &At) -> Option<Option<Repeat>> {
        let Some(every) = &written.every else {
            if let Some(times) = &written.times {
                let fix = "add every = \"10 s\", say";
                self.error(&times.span, entry, "times", "times has no meaning without every", fix);
                return None;
            }
            return Some(None);
        };
        let time = self.more_than_zero(entry, "every", every)?;
        let times = match &written.times {
            Some(times) => Some(self.whole_or(entry, "times", Some(times), 1, 1..=u64::MAX)?),
            None => None,
        };
        if time < LEAST_EVERY && times.is_none_or(|times| times > MOST_CLOSE) {
            let what = format!("changes {time} apart leave no time for packets");
            let fix = format!("write every = \"{LEAST_EVERY}\" or more; a trace can change faster");
            self.error(&every.span, entry, "every", what, fix);
            return None;
        }
        Some(Some(Repeat { every: time, times }))
    }

    /// Whether it takes its time. None after an error.
    pub(super) fn ramp(&mut self, entry: &Entry<'_>, written: &At, links: u64) -> Option<Option<Ramp>> {
        let Some(over) = &written.ramp else {
            if let Some(step) = &written.step {
                let fix = "add ramp = \"5 s\", say";
                self.error(&step.span, entry, "step", "step has no meaning without ramp", fix);
                return None;
            }
            return Some(None);
        };
        let mut ramp = Ramp::new(self.more_than_zero(entry, "ramp", over)?);
        if let Some(step) = &written.step {
            ramp.step = self.more_than_zero(entry, "step", step)?;
        }
        if ramp.steps().saturating_mul(links) > MOST_STEPS {
            let most = (MOST_STEPS / links).max(1);
            let what = format!("{} steps, {links} times, are more than {MOST_STEPS}", ramp.steps());
            let least = Nanos(ramp.over.0.div_ceil(most));
            let (span, fix) = match (&written.step, links > MOST_STEPS) {
                (Some(step), false) => (&step.span, format!("write step = \"{least}\" or more")),
                (None, false) => (&over.span, format!("add step = \"{least}\" or more")),
                _ => (&over.span, "name fewer links or sources".into()),
            };
            self.error(span, entry, "ramp", what, fix);
            return None;
        }
        Some(Some(ramp))
    }

    fn more_than_zero(&mut self, entry: &Entry<'_>, key: &str, written: &Written<Nanos>) -> Option<Nanos> {
        let time = self.term(entry, key, written)?;
        if time == Nanos::ZERO {
            self.error(&written.span, entry, key, "it has to be longer than 0", "write \"10 s\", say");
            return None;
        }
        Some(time)
    }
}
