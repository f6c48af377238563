//! Changes during a run.

use longwire_block::change::{Edit, Ramp, Repeat};
use longwire_units::Nanos;
use std::sync::Arc;

/// The kind of object that an event changes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ObjectKind {
    Links,
    Sources,
    Media,
}

impl ObjectKind {
    /// The word for one object.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Links => "link",
            Self::Sources => "source",
            Self::Media => "medium",
        }
    }
}

/// A change of links, traffic sources or media at a time of the run.
#[derive(Debug, Clone)]
pub struct Event {
    /// When, from the start of the run.
    pub time: Nanos,
    /// Its repetition, if any.
    pub repeat: Option<Repeat>,
    /// Its ramp; without one, everything changes at once.
    pub ramp: Option<Ramp>,
    /// Places of the links, ascending.
    pub links: Arc<[u32]>,
    /// Places of the sources, ascending; none if others change.
    pub sources: Arc<[u32]>,
    /// Places of the media, ascending; none if others change.
    pub media: Arc<[u32]>,
    /// The changes.
    pub edits: Arc<[Edit]>,
}

impl Event {
    /// When it is over for good; never if it is repeated without end.
    pub fn over(&self) -> Nanos {
        over(self.time, self.repeat, self.ramp.map(|ramp| ramp.over))
    }

    /// Its next time after `now`; none after the last.
    pub fn next_after(&self, now: Nanos) -> Option<Nanos> {
        if self.time > now {
            return Some(self.time);
        }
        let Repeat { every, times } = self.repeat?;
        let past = now.since(self.time).0 / every.0 + 1;
        let left = times.is_none_or(|times| past < times);
        left.then(|| Nanos(self.time.0.saturating_add(every.0.saturating_mul(past))))
    }
}

/// When a change is over for good that begins at `time`.
pub(crate) fn over(time: Nanos, repeat: Option<Repeat>, ramp: Option<Nanos>) -> Nanos {
    let last = match repeat {
        None => time,
        Some(Repeat { every, times: Some(times) }) => {
            time + Nanos(every.0.saturating_mul(times.saturating_sub(1)))
        }
        Some(Repeat { times: None, .. }) => Nanos::NEVER,
    };
    last + ramp.unwrap_or_default()
}
