//! Warnings that a file of a run can't be written any more, as soon as that is known.

use crate::outcome;
use longwire_run::rotation::RecordFaults;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Interval between checks.
const LOOK: Duration = Duration::from_millis(50);

/// Prints new faults.
pub fn warn_of_new(faults: &RecordFaults) {
    faults.take_new().iter().for_each(|fault| outcome::note(&format!("warning: {fault}")));
}

/// Does `work`, and meanwhile calls `look` again and again, on another thread.
pub fn watched<T>(mut look: impl FnMut() + Send, work: impl FnOnce() -> T) -> T {
    let (end, ended) = channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while ended.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                look();
            }
        });
        let done = work();
        drop(end);
        done
    })
}
