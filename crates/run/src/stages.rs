//! Executes additions and removals of `[[at]]` in real time, on a thread, like requests.

use crate::instance::RunningInstance;
use longwire_scenario::Stage;
use longwire_units::Nanos;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

/// The thread, and the channel that ends it.
pub(crate) struct Stages {
    end: Sender<()>,
    thread: JoinHandle<Vec<String>>,
}

impl Stages {
    /// Starts the thread for a run that began at `started`, if its plan adds or removes anything.
    pub(crate) fn start(instance: &Arc<RunningInstance>, started: Nanos) -> io::Result<Option<Self>> {
        let plan = Arc::clone(&instance.state().plan);
        if plan.stages.is_empty() {
            return Ok(None);
        }
        let (end, ended) = channel();
        let instance = Arc::downgrade(instance);
        let act = move || {
            plan.stages.iter().map_while(|stage| take(stage, started, &instance, &ended)).flatten().collect()
        };
        let thread = std::thread::Builder::new().name("stages".into()).spawn(act)?;
        Ok(Some(Self { end, thread }))
    }

    /// Ends the thread; returns the failures.
    pub(crate) fn end(self) -> Vec<String> {
        drop(self.end);
        self.thread.join().unwrap_or_else(|_| vec!["the thread of [[at]] panicked".into()])
    }
}

/// Waits for a stage and executes it; returns the error if it failed. None if the run has ended.
fn take(
    stage: &Stage,
    started: Nanos,
    instance: &Weak<RunningInstance>,
    ended: &Receiver<()>,
) -> Option<Option<String>> {
    let wait = (started + stage.time).since(longwire_clock::monotonic());
    if ended.recv_timeout(Duration::from_nanos(wait.0)) != Err(RecvTimeoutError::Timeout) {
        return None;
    }
    let failed = instance.upgrade()?.advance(stage.time).err();
    Some(failed.map(|error| format!("[[at]] {}: {error}", stage.time)))
}
