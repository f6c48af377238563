//! Repetitions and ramps of `[[at]]`.

use super::{Entry, Resolver};
use crate::file::At;
use crate::settings::AtSettings;
use longwire_block::change::{Ramp, Repeat};
use longwire_units::Nanos;

/// Most steps of an event's ramps, over all its links.
const MOST_STEPS: u64 = 1_000_000;
/// Least time between events for long: carrying one out takes some 10 µs.
const LEAST_EVERY: Nanos = Nanos::from_millis(1);
/// Most events that may follow each other more closely.
const MOST_CLOSE: u64 = 1000;

impl Resolver<'_, '_> {
    /// The repetition, if any. None after an error.
    pub(super) fn repeat(
        &mut self,
        entry: &Entry<'_>,
        written: &At,
        settings: &AtSettings,
    ) -> Option<Option<Repeat>> {
        let (Some(every), Some(span)) = (settings.every, written.span("every")) else {
            if let Some(span) = written.span("times") {
                let fix = "add one such as every = \"10 s\"";
                return self.refuse(span, entry, "times", "times has no meaning without every", fix);
            }
            return Some(None);
        };
        let times = settings.times;
        if every < LEAST_EVERY && times.is_none_or(|times| times > MOST_CLOSE) {
            let what = format!("changes {every} apart leave no time for packets");
            let fix = format!("write every = \"{LEAST_EVERY}\" or more; a trace can change faster");
            return self.refuse(span, entry, "every", what, fix);
        }
        Some(Some(Repeat { every, times }))
    }

    /// The ramp, if any. None after an error.
    pub(super) fn ramp(
        &mut self,
        entry: &Entry<'_>,
        (written, settings): (&At, &AtSettings),
        links: u64,
    ) -> Option<Option<Ramp>> {
        let (Some(over), Some(span)) = (settings.ramp, written.span("ramp")) else {
            if let Some(span) = written.span("step") {
                let fix = "add one such as ramp = \"5 s\"";
                return self.refuse(span, entry, "step", "step has no meaning without ramp", fix);
            }
            return Some(None);
        };
        let mut ramp = Ramp::new(over);
        ramp.step = settings.step.unwrap_or(ramp.step);
        if ramp.steps().saturating_mul(links) > MOST_STEPS {
            let most = (MOST_STEPS / links).max(1);
            let what = format!("{} steps, {links} times, are more than {MOST_STEPS}", ramp.steps());
            let least = Nanos(ramp.over.0.div_ceil(most));
            let (span, fix) = match (written.span("step"), links > MOST_STEPS) {
                (Some(step), false) => (step, format!("write step = \"{least}\" or more")),
                (None, false) => (span, format!("add step = \"{least}\" or more")),
                _ => (span, "name fewer links or sources".into()),
            };
            return self.refuse(span, entry, "ramp", what, fix);
        }
        Some(Some(ramp))
    }
}
