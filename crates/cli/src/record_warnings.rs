//! Warnings that a file of a run can't be written any more, as soon as that is known.

use crate::outcome;
use longwire_run::record_faults::RecordFaults;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Interval between checks.
const LOOK: Duration = Duration::from_millis(50);

/// Prints a fault.
pub fn warn(fault: &str) {
    outcome::note(&format!("warning: {fault}"));
}

/// Prints new faults.
pub fn warn_of_new(faults: &RecordFaults) {
    faults.take_new().iter().for_each(|fault| warn(fault));
}

/// Does `work`, and meanwhile passes new faults to `say`, on another thread.
pub fn watched<T>(faults: &RecordFaults, say: impl Fn(&str) + Sync, work: impl FnOnce() -> T) -> T {
    let (end, ended) = channel::<()>();
    std::thread::scope(|scope| {
        let say = &say;
        scope.spawn(move || {
            while ended.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                faults.take_new().iter().for_each(|fault| say(fault));
            }
        });
        let done = work();
        drop(end);
        done
    })
}
