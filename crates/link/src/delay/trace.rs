//! Delays that follow a trace.

use super::{Before, Travel};
use longwire_block::{Block, Dice, Grammar};
use longwire_settings::Settings;
use longwire_trace::{Cursor, End, Series};
use longwire_units::Nanos;
use std::sync::Arc;

/// Delays each packet by the trace's value at the end of its transmission, counted from the start of the run.
///
/// Where the delay falls faster than time passes, packets catch up with their predecessors and leave
/// together: their order is kept.
#[derive(Debug)]
pub struct Trace {
    series: Arc<Series<Nanos>>,
    cursor: Cursor,
    begin: Nanos,
    least: Nanos,
}

const DELAYS: Grammar = Grammar {
    wanted: "a trace of delays: a list of times and delays, a file of one, or a TheaterQ trace",
    form: None,
    read: |text, base| Ok(longwire_trace::delays(text, base).map_err(|error| error.to_string())?),
    examples: &["0 s 5 ms", "0 s 30 ms; 0.1 s 5 ms; 0.15 s 20 ms; 0.3 s 20 ms"],
};

/// Delays packets by times that follow a trace.
#[derive(Debug, Settings)]
#[settings(key = "delay", kind = "trace", source = "TheaterQ's traces; lists of times and delays", live)]
pub struct TraceSettings {
    /// a TheaterQ trace, or a list of times and delays such as "0 s 30 ms; 5 s 60 ms", in a file or here
    #[setting(grammar = DELAYS)]
    pub file: Arc<Series<Nanos>>,
    /// after the last entry: loop from the first, hold the last delay, or clear (no delay)
    #[setting(default = "loop")]
    end: End,
    #[setting(like = super::BEFORE)]
    _before: Before,
}

impl Block for Trace {
    type Settings = TraceSettings;

    fn build(settings: TraceSettings, _: Dice) -> Self {
        let (series, zero) = (Arc::clone(&settings.file), Nanos::ZERO);
        Self { series, cursor: Cursor::default(), begin: zero, least: zero }.with(settings)
    }

    /// Changes the trace, or its end, for packets whose transmission ends from now on.
    fn change(&mut self, settings: TraceSettings) {
        (self.series, self.cursor) = (settings.file, Cursor::new(settings.end));
        let delays = self.series.steps().iter().map(|step| step.1);
        self.least =
            if self.cursor.end() == End::Clear { Nanos::ZERO } else { delays.min().unwrap_or_default() };
    }

    fn start(&mut self, begin: Nanos) {
        self.begin = begin;
    }
}

impl Travel for Trace {
    #[inline]
    fn travel(&mut self, finish: Nanos) -> Nanos {
        self.cursor.value_at(&self.series, finish.since(self.begin)).unwrap_or_default()
    }

    #[inline]
    fn least(&self) -> Nanos {
        self.least
    }
}
