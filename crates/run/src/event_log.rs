//! The log of a run's last events.

use longwire_control::LoggedEvent;
use longwire_units::Nanos;
use std::collections::VecDeque;

/// Most entries kept.
const MOST: usize = 1000;

/// The last events of a run, numbered from 1 on.
#[derive(Debug, Default)]
pub(crate) struct EventLog {
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
        if self.entries.len() == MOST {
            self.entries.pop_front();
        }
        let entry = LoggedEvent { number: self.last, at_ns: at.0, kind: kind.into(), what: what.into() };
        self.entries.push_back(entry);
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
        for number in 0..MOST + 5 {
            log.note(Nanos(number as u64), "change", number.to_string());
        }
        let (all, last) = log.after(0);
        assert_eq!((all.len(), all[0].number, last), (MOST, 6, MOST as u64 + 5));
        assert_eq!(words(&log, last - 1), [(MOST + 4).to_string()]);
        assert!(words(&log, last).is_empty());
        assert_eq!(log.after(last + 1).0.len(), MOST, "another run's number");
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
