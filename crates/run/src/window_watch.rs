//! The thread that judges the sliding window of a run in real time.

use crate::threads::lock;
use longwire_assemble::tolerance;
use longwire_engine::{Remote, SlidingWindow, WindowVerdicts};
use longwire_scenario::Plan;
use longwire_units::Nanos;
use std::io;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The thread that judges windows; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct WindowWatch {
    verdicts: Arc<Mutex<Option<WindowVerdicts>>>,
    _line: Sender<()>,
}

impl WindowWatch {
    /// Starts the thread for a run that began at `started`.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn start(plan: &Plan, remote: Remote, started: Nanos) -> io::Result<Self> {
        let verdicts = Arc::new(Mutex::new(None));
        let (_line, ended) = channel::<()>();
        let shared = Arc::clone(&verdicts);
        let mut window = SlidingWindow::new(plan.fidelity.window, tolerance(plan), started);
        let watch = move || {
            let step = window.step();
            let mut next = started;
            loop {
                let now = longwire_clock::monotonic();
                // Samples missed while the machine slept are skipped.
                next = (next + step).max(now);
                let wait = Duration::from_nanos(next.since(now).0);
                if ended.recv_timeout(wait) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
                // A worker that does not answer now may answer next time.
                if window.look(&remote).is_ok() {
                    *lock(&shared) = window.verdicts().cloned();
                }
            }
        };
        std::thread::Builder::new().name("fidelity".into()).spawn(watch)?;
        Ok(Self { verdicts, _line })
    }

    /// The verdicts so far.
    pub fn verdicts(&self) -> Option<WindowVerdicts> {
        lock(&self.verdicts).clone()
    }
}
