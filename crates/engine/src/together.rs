//! Atomic changes of several objects at one instant.

use crate::events::LocalChange;
use crate::remote::{Command, Remote, RemoteError, Step, Target};
use longwire_block::change::{Blocks, Edit, Ramp};
use longwire_units::Nanos;
use std::sync::Arc;
use std::sync::mpsc::channel;

/// Lead time of simultaneous changes at several workers: all of them must have received the command by then.
const AHEAD: Nanos = Nanos::from_millis(20);

/// A change of one object: a link, a source or a medium.
#[derive(Debug, Clone)]
pub struct Change {
    /// What is changed.
    pub target: Target,
    /// Its blocks at the start, defaults included.
    pub base: Arc<Blocks>,
    /// The edits; unnamed parameters are kept.
    pub edits: Vec<Edit>,
    /// If the change is gradual: the values move step by step from its instant on.
    pub ramp: Option<Ramp>,
}

impl Remote {
    /// Makes all `changes` at one instant: at the time `at` of the engine's clock, or at once. They are
    /// checked against the current state. If the scenario's own events have made them impossible by their
    /// time, none of a worker's changes is made, and the report says so. Returns the instant.
    ///
    /// # Errors
    /// If one of them can't be made, too many are pending, the time is past, or a worker has ended; nothing
    /// has changed then.
    pub fn change(&self, changes: Vec<Change>, at: Option<Nanos>) -> Result<Nanos, RemoteError> {
        let mut by_worker: Vec<(u32, Vec<LocalChange>)> = Vec::new();
        for Change { target, base, edits, ramp } in changes {
            let (worker, what) = target.place();
            let placed = LocalChange { what, base, edits, ramp };
            match by_worker.iter_mut().find(|(known, _)| *known == worker) {
                Some((_, all)) => all.push(placed),
                None => by_worker.push((worker, vec![placed])),
            }
        }
        let now = longwire_clock::monotonic();
        if by_worker.len() == 1 && at.is_none() {
            return self.group(by_worker, Step::Now);
        }
        if at.is_some_and(|at| at <= now) {
            return Err(RemoteError::Refused("its time is past".into()));
        }
        self.group(by_worker.clone(), Step::Check)?;
        self.group(by_worker, Step::At(at.unwrap_or(now + AHEAD)))
    }

    /// Sends each worker its part, and returns the latest time.
    fn group(&self, by_worker: Vec<(u32, Vec<LocalChange>)>, step: Step) -> Result<Nanos, RemoteError> {
        let mut answers = Vec::new();
        for (worker, changes) in by_worker {
            let (reply, answer) = channel();
            self.tell(worker, Command::Change { changes, step, reply })?;
            answers.push(answer);
        }
        let mut latest = Nanos::ZERO;
        for answer in answers {
            let answer = answer.recv_timeout(crate::remote::PATIENCE).map_err(|_| RemoteError::Gone)?;
            latest = latest.max(answer.map_err(RemoteError::Refused)?);
        }
        Ok(latest)
    }
}
