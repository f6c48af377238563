//! A link whose state follows a trace.

use crate::foresight::Foresight;
use crate::judge::Judge;
use crate::transmit::trace::END_PARAM;
use longwire_block::{Block, Dice, DropReason, Grammar, Offer, Verdict};
use longwire_settings::Settings;
use longwire_trace::{Cursor, End, LinkState, Series};
use longwire_units::Nanos;
use std::sync::Arc;

/// A link that goes down and comes up at the times of a trace, counted from the start of the run.
#[derive(Debug)]
pub struct StateTrace {
    states: Arc<Series<LinkState>>,
    cursor: Cursor,
    /// Beginning of the run on the engine's clock.
    begin: Nanos,
}

const STATES: Grammar = Grammar {
    wanted: "the file of a list of times and states, or a list such as \"0 s up; 5 s down\"",
    form: None,
    read: |text, base| Ok(longwire_trace::states(text, base).map_err(|error| error.to_string())?),
    examples: &["0 s up", "0 s up; 5 ms down; 7 ms up; 20 ms end", "0,down;0.003,up"],
};

/// Goes down and comes up at the times of a trace.
#[derive(Debug, Settings)]
#[settings(key = "state", kind = "trace", source = "RFC 2863, section 3.1.13 (ifOperStatus)", live)]
pub struct StateTraceSettings {
    /// a list of times and states such as "0 s up; 5 s down; 5.2 s up", in a file or here
    #[setting(grammar = STATES)]
    file: Arc<Series<LinkState>>,
    #[setting(like = END_PARAM)]
    end: End,
}

impl Block for StateTrace {
    type Settings = StateTraceSettings;

    fn build(settings: StateTraceSettings, _: Dice) -> Self {
        Self { states: settings.file, cursor: Cursor::new(settings.end), begin: Nanos::ZERO }
    }

    /// Applies a new trace, as if it had been in effect from the beginning.
    fn change(&mut self, settings: StateTraceSettings) {
        (self.states, self.cursor) = (settings.file, Cursor::new(settings.end));
    }

    fn start(&mut self, begin: Nanos) {
        self.begin = begin;
    }
}

impl StateTrace {
    fn is_up_at(&self, cursor: &mut Cursor, now: Nanos) -> bool {
        cursor.value_at(&self.states, now.since(self.begin)) != Some(LinkState::Down)
    }
}

impl Judge for StateTrace {
    #[inline(always)]
    fn judge(&mut self, offer: &mut Offer<'_>) -> Verdict {
        let mut cursor = self.cursor;
        let is_up = self.is_up_at(&mut cursor, offer.now);
        self.cursor = cursor;
        if is_up { Verdict::Pass } else { Verdict::Drop(DropReason::LinkDown) }
    }

    #[inline(always)]
    fn foresee(&mut self, now: Nanos) -> Option<Foresight> {
        let mut cursor = self.cursor;
        let is_up = self.is_up_at(&mut cursor, now);
        is_up.then_some(Foresight::ALL.before(self.begin + cursor.next_change()))
    }

    /// Does not advance the cursor: an earlier packet may still come.
    fn is_up(&self, now: Nanos) -> bool {
        let mut cursor = self.cursor;
        self.is_up_at(&mut cursor, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn states(end: &str) -> impl FnMut(u64) -> bool {
        let given = [("file", "0 s up; 10 ms down; 15 ms up; 20 ms down; 30 ms end"), ("end", end)];
        let mut block =
            StateTrace::build(StateTraceSettings::read(&given).unwrap(), Dice::named(0, "test/state"));
        let begin = Nanos::from_secs(7);
        block.start(begin);
        move |millis| {
            let now = begin + Nanos::from_millis(millis);
            let is_up = block.is_up(now);
            let passes = block.judge(&mut Offer::new(now, 60, &[])) == Verdict::Pass;
            assert_eq!(block.is_up(now), passes);
            assert_eq!(is_up, passes);
            passes
        }
    }

    #[test]
    fn follows_the_trace_from_the_start_of_the_run() {
        for (end, afterwards) in [("loop", [true, false]), ("hold", [false, false]), ("clear", [true, true])]
        {
            let mut is_up = states(end);
            let table = [(0, true), (9, true), (10, false), (14, false), (15, true), (19, true), (20, false)];
            for (millis, up) in table {
                assert_eq!(is_up(millis), up, "{end}: {millis} ms");
            }
            assert_eq!([30, 40].map(&mut is_up), afterwards, "{end}");
        }
    }
}
