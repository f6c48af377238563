//! The log of a run's last events.

use longwire_control::LoggedEvent;
use longwire_units::Nanos;
use std::collections::VecDeque;

/// Most entries kept.
pub(crate) const MOST_LOGGED: usize = 1000;

/// The last events of a run, numbered from 1 on in the order in which they were noted. Scheduled changes are
/// noted when somebody looks.
#[derive(Debug, Default)]
pub(crate) struct EventLog {
    /// By time.
    entries: VecDeque<LoggedEvent>,
    last: u64,
    /// Time up to which scheduled changes are logged.
    pub(crate) noted_until: Nanos,
    /// The last logged verdict.
    faithful: Option<bool>,
    /// Logged faults of ports.
    faults: Vec<String>,
}

impl EventLog {
    pub(crate) fn note(&mut self, at: Nanos, kind: &str, what: impl Into<String>) {
        self.last += 1;
        let entry = LoggedEvent { number: self.last, at_ns: at.0, kind: kind.into(), what: what.into() };
        let place = self.entries.partition_point(|known| known.at_ns <= at.0);
        self.entries.insert(place, entry);
        if self.entries.len() > MOST_LOGGED {
            self.entries.pop_front();
        }
    }

    /// Logs a verdict if it differs from the last one. A good one is logged only after a bad one.
    pub(crate) fn note_verdict(&mut self, at: Nanos, faithful: bool, cause: Option<&String>) {
        let before = self.faithful.replace(faithful);
        match (before, faithful) {
            (Some(true) | None, false) => {
                let cause = cause.map_or("", String::as_str);
                self.note(at, "unfaithful", format!("not faithful: {cause}"));
            }
            (Some(false), true) => self.note(at, "faithful", "faithful again"),
            _ => {}
        }
    }

    /// Logs new faults of ports.
    pub(crate) fn note_faults<'a>(&mut self, at: Nanos, faults: impl Iterator<Item = &'a str>) {
        let now: Vec<String> = faults.map(str::to_owned).collect();
        for fault in &now {
            if !self.faults.contains(fault) {
                self.note(at, "fault", fault.as_str());
            }
        }
        self.faults = now;
    }

    /// The entries after this number, and the number of the last. A number not yet assigned comes from
    /// another run, and gets all entries.
    pub(crate) fn after(&self, number: u64) -> (Vec<LoggedEvent>, u64) {
        let number = if number > self.last { 0 } else { number };
        let new = self.entries.iter().filter(|entry| entry.number > number);
        (new.cloned().collect(), self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(log: &EventLog, after: u64) -> Vec<String> {
        log.after(after).0.into_iter().map(|entry| entry.what).collect()
    }

    #[test]
    fn the_last_entries_are_kept_and_sent_once() {
        let mut log = EventLog::default();
        for number in 0..MOST_LOGGED + 5 {
            log.note(Nanos(number as u64), "change", number.to_string());
        }
        let (all, last) = log.after(0);
        assert_eq!((all.len(), all[0].number, last), (MOST_LOGGED, 6, MOST_LOGGED as u64 + 5));
        assert_eq!(words(&log, last - 1), [(MOST_LOGGED + 4).to_string()]);
        assert!(words(&log, last).is_empty());
        assert_eq!(log.after(last + 1).0.len(), MOST_LOGGED, "another run's number");
    }

    #[test]
    fn entries_are_by_time_however_late_they_are_noted() {
        let mut log = EventLog::default();
        for (time, what) in [(3, "third"), (1, "first"), (2, "second"), (3, "last")] {
            log.note(Nanos(time), "change", what);
        }
        assert_eq!(words(&log, 0), ["first", "second", "third", "last"]);
        assert_eq!(words(&log, 2), ["second", "last"]);
        for _ in 0..MOST_LOGGED - 3 {
            log.note(Nanos(2), "scheduled", "often");
        }
        let kept = words(&log, 0);
        assert_eq!((kept.len(), &*kept[0], &*kept[MOST_LOGGED - 1]), (MOST_LOGGED, "second", "last"));
        log.note(Nanos(1), "scheduled", "too old");
        assert_eq!(words(&log, 0), kept);
    }

    #[test]
    fn verdicts_and_faults_are_noted_when_they_turn() {
        let mut log = EventLog::default();
        let cause = "CPU busy".to_string();
        for faithful in [true, true, false, false, true] {
            log.note_verdict(Nanos(1), faithful, Some(&cause).filter(|_| !faithful));
        }
        assert_eq!(words(&log, 0), ["not faithful: CPU busy", "faithful again"]);
        for faults in [&["port a: down"][..], &["port a: down"], &[], &["port a: down"]] {
            log.note_faults(Nanos(2), faults.iter().copied());
        }
        assert_eq!(words(&log, 2), ["port a: down", "port a: down"]);
    }
}
