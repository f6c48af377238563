//! Loss that follows a trace.

use super::foreseen::MOST;
use super::{ECN_PARAM, Place, WHERE_PARAM};
use crate::foresight::Foresight;
use crate::judge::Judge;
use crate::transmit::trace::END_PARAM;
use longwire_block::{Block, Dice, Grammar, Offer, Verdict};
use longwire_settings::Settings;
use longwire_trace::{Cursor, End, Series};
use longwire_units::{Nanos, Probability};
use std::sync::Arc;

/// Loses each packet with the trace's current probability, counted from the start of the run.
#[derive(Debug)]
pub struct LossTrace {
    losses: Arc<Series<Probability>>,
    cursor: Cursor,
    /// Beginning of the run on the engine's clock.
    begin: Nanos,
    dice: Dice,
    on_wire: bool,
    mark: bool,
}

const LOSSES: Grammar = Grammar {
    wanted: "the file of a trace (TheaterQ, times and probabilities), or a trace such as \
                     \"0 s 0 %; 5 s 2 %\"",
    read: |text, base| Ok(longwire_trace::losses(text, base).map_err(|error| error.to_string())?),
    examples: &["0 s 0 %; 5 ms 20 %; 12 ms end", "0,1", "1000,0,0,4294967295,0;9000,0,0,0,0"],
    form: None,
};

/// Loses packets with a probability that follows a trace.
#[derive(Debug, Settings)]
#[settings(key = "loss", kind = "trace", source = "TheaterQ's trace files", live)]
pub struct LossTraceSettings {
    /// a file with a TheaterQ trace or a list of times and probabilities; or the list itself
    #[setting(grammar = LOSSES)]
    file: Arc<Series<Probability>>,
    #[setting(like = END_PARAM)]
    end: End,
    #[setting(like = WHERE_PARAM)]
    place: Place,
    #[setting(like = ECN_PARAM)]
    ecn: bool,
}

impl Block for LossTrace {
    type Settings = LossTraceSettings;

    fn build(settings: LossTraceSettings, dice: Dice) -> Self {
        let (losses, cursor) = (Arc::clone(&settings.file), Cursor::default());
        Self { losses, cursor, begin: Nanos::ZERO, dice, on_wire: false, mark: false }.with(settings)
    }

    fn change(&mut self, settings: LossTraceSettings) {
        (self.losses, self.cursor) = (settings.file, Cursor::new(settings.end));
        self.on_wire = settings.place == Place::Wire;
        self.mark = settings.ecn;
    }

    fn start(&mut self, begin: Nanos) {
        self.begin = begin;
    }
}

impl LossTrace {
    #[inline(always)]
    fn probability_at(&mut self, now: Nanos) -> Probability {
        self.cursor.value_at(&self.losses, now.since(self.begin)).unwrap_or_default()
    }
}

impl Judge for LossTrace {
    /// Draws once for each packet whatever the probability, so that another trace does not shift later draws.
    #[inline(always)]
    fn judge(&mut self, offer: &mut Offer<'_>) -> Verdict {
        let is_lost = self.probability_at(offer.now).happens(self.dice.draw());
        if is_lost { super::lose(offer, self.mark) } else { Verdict::Pass }
    }

    /// Until the probability changes.
    #[inline(always)]
    fn foresee(&mut self, now: Nanos) -> Option<Foresight> {
        let probability = self.probability_at(now);
        let mut passed = 0;
        while passed < MOST {
            let mut dice = self.dice.clone();
            if probability.happens(dice.draw()) {
                break;
            }
            (self.dice, passed) = (dice, passed + 1);
        }
        Some(Foresight::of_packets(passed)?.before(self.begin + self.cursor.next_change()))
    }

    fn recall(&mut self, unused: u32) {
        self.dice.take_back(unused);
    }

    fn on_wire(&self) -> bool {
        self.on_wire
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn losses(file: &str, end: &str, begin: Nanos) -> impl FnMut(u64) -> bool {
        let values = LossTraceSettings::read(&[("file", file), ("end", end)]).unwrap();
        let mut loss = LossTrace::build(values, Dice::named(1, "test/loss"));
        loss.start(begin);
        move |micros| {
            let mut offer = Offer::new(begin + Nanos::from_micros(micros), 1500, &[]);
            loss.judge(&mut offer) != Verdict::Pass
        }
    }

    /// All are lost from 2 ms to 3 ms, none before.
    #[test]
    fn follows_the_trace_from_the_start_of_the_run() {
        let file = "0 s 0 %; 2 ms 100 %; 3 ms end";
        for (end, table) in [
            (
                "loop",
                [(0, false), (1_999, false), (2_000, true), (2_999, true), (3_000, false), (3_005_500, true)],
            ),
            (
                "hold",
                [(0, false), (1_999, false), (2_000, true), (2_999, true), (3_000, true), (3_005_500, true)],
            ),
            (
                "clear",
                [
                    (0, false),
                    (1_999, false),
                    (2_000, true),
                    (2_999, true),
                    (3_000, false),
                    (3_005_500, false),
                ],
            ),
        ] {
            let mut is_lost = losses(file, end, Nanos::from_secs(4));
            for (micros, wanted) in table {
                assert_eq!(is_lost(micros), wanted, "{end} at {micros} us");
            }
        }
    }

    /// TheaterQ's LOSS is a fraction of 2³² − 1: 2147483648 is one half. 40 000 packets, in the 99 % binomial
    /// interval.
    #[test]
    fn loses_the_share_that_the_trace_says() {
        let mut is_lost = losses("1000,0,0,429496730,0\n1000,0,0,2147483648,0\n", "loop", Nanos::ZERO);
        for (phase, p) in [(0, 0.1), (1, 0.5)] {
            let n = 40_000.0;
            let lost = (0..40_000).filter(|round| is_lost(round * 2000 + phase * 1000)).count() as f64;
            assert!((lost - n * p).abs() < 2.576 * f64::sqrt(n * p * (1.0 - p)), "{p}: {lost}");
        }
    }
}
