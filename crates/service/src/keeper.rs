//! Logs the changes of a scenario, and saves its state: those that come while one is saved are saved
//! together.

use crate::event_log::{EventLog, Field};
use crate::state::{SavedState, Survives};
use longwire_clock::monotonic;
use longwire_control::Saved;
use longwire_report::output::chain;
use longwire_run::instance::RunningInstance;
use longwire_run::objects::{ChangeNotice, NoticedChange};
use longwire_run::programs::change::{ProgramChange, ProgramEvent};
use longwire_units::Nanos;
use serde_json::{Map, Value};
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Time until a change survives a power cut. Waiting for the disk at each would make changes slow.
const TO_DISK: Nanos = Nanos::from_secs(1);

/// Logs the changes of an instance, and saves its state.
pub(crate) struct Keeper {
    pub(crate) instance: Weak<RunningInstance>,
    pub(crate) name: String,
    /// Where it is saved, if it is, until it has been saved for the last time.
    pub(crate) state: Option<Weak<SavedState>>,
    pub(crate) log: Arc<EventLog>,
}

impl Keeper {
    /// Starts its thread, which ends when the instance is gone.
    pub(crate) fn start(self, noticed: Receiver<ChangeNotice>) -> io::Result<()> {
        let thread = std::thread::Builder::new().name("longwire-keeper".into());
        thread.spawn(move || self.keep(&noticed)).map(drop)
    }

    fn keep(&self, noticed: &Receiver<ChangeNotice>) {
        // When the state has to be on the disk, and when the last ramp ends.
        let (mut due, mut reached) = (None, Nanos::ZERO);
        loop {
            match next(noticed, due) {
                Ok(first) => {
                    let mut savers = Vec::new();
                    for ChangeNotice { what, saver } in std::iter::once(first).chain(noticed.try_iter()) {
                        match self.log_change(what) {
                            Some(by) => {
                                reached = reached.max(by);
                                savers.push(saver);
                            }
                            None => saver.end(Ok(())),
                        }
                    }
                    if !savers.is_empty() {
                        let saved = self.save(Survives::Kill);
                        savers.into_iter().for_each(|saver| saver.end(saved.clone()));
                        let soon = monotonic() + TO_DISK;
                        due = due.filter(|due| *due < soon).or(Some(soon)).filter(|_| self.state.is_some());
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            let now = monotonic();
            if due.is_some_and(|due| due <= now) {
                // A failure is in the log: nobody waits for this one.
                let _ = self.save(Survives::PowerCut);
                due = Some(reached).filter(|reached| *reached > now);
            }
        }
    }

    /// Saves the state, if that is wanted, and logs a failure.
    fn save(&self, survives: Survives) -> Saved {
        let Some(state) = &self.state else { return Ok(()) };
        let (Some(state), Some(instance)) = (state.upgrade(), self.instance.upgrade()) else {
            return Err("the instance is ending".into());
        };
        let written = state.write(&instance, survives);
        let reason = written.as_ref().err().map(|error| chain(error.as_ref()));
        log_unsaved(written, self.field(), &self.log);
        reason.map_or(Ok(()), Err)
    }

    /// Logs a change, and returns when its values are reached; none if it is not saved.
    fn log_change(&self, what: NoticedChange) -> Option<Nanos> {
        match what {
            NoticedChange::Set { changes, reached } => {
                for change in changes {
                    let settings: Map<String, Value> =
                        change.pairs.into_iter().map(|(key, text)| (key, text.into())).collect();
                    self.log.info(
                        "changed",
                        &[
                            self.field(),
                            ("kind", change.kind.word().into()),
                            ("name", change.name.into()),
                            ("settings", settings.into()),
                        ],
                    );
                }
                Some(reached)
            }
            NoticedChange::Applied { changed, scenario } => {
                if let (Some(text), Some(state)) = (scenario, self.state.as_ref().and_then(Weak::upgrade)) {
                    state.applied(text);
                }
                self.log.info("applied", &[self.field(), ("changed", changed.into())]);
                Some(Nanos::ZERO)
            }
            NoticedChange::Program(change) => {
                self.log_program(change);
                None
            }
            NoticedChange::Failed { error } => {
                self.log.error("failed", &[self.field(), ("error", error.into())]);
                Some(Nanos::ZERO)
            }
        }
    }

    /// Logs a change of a router's programs.
    fn log_program(&self, ProgramChange { router, fid, event }: ProgramChange) {
        let (word, more): (&str, [Option<Field<'_>>; 2]) = match event {
            ProgramEvent::Installed { program, lease } => {
                let lease = lease.map(|lease| ("lease", lease.to_string().into()));
                ("installed", [Some(("program", program.into())), lease])
            }
            ProgramEvent::Replaced { program } => ("replaced", [Some(("program", program.into())), None]),
            ProgramEvent::Removed => ("removed", [None, None]),
            ProgramEvent::LeaseEnded => ("lease-ended", [None, None]),
        };
        let own = [self.field(), ("router", router.into()), ("fid", fid.into())];
        let fields: Vec<Field<'_>> = own.into_iter().chain(more.into_iter().flatten()).collect();
        self.log.info(word, &fields);
    }

    fn field(&self) -> Field<'static> {
        ("scenario", self.name.clone().into())
    }
}

/// The next change; waits until the time that is due, if any.
fn next(noticed: &Receiver<ChangeNotice>, due: Option<Nanos>) -> Result<ChangeNotice, RecvTimeoutError> {
    match due {
        Some(due) => noticed.recv_timeout(Duration::from_nanos(due.since(monotonic()).0)),
        None => noticed.recv().map_err(|_| RecvTimeoutError::Disconnected),
    }
}

/// Logs that a state could not be written.
pub(crate) fn log_unsaved(written: anyhow::Result<()>, field: Field<'_>, log: &EventLog) {
    if let Err(error) = written {
        log.error("not-saved", &[field, ("error", chain(error.as_ref()).into())]);
    }
}
