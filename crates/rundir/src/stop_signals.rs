//! SIGINT, SIGTERM, SIGHUP and SIGQUIT: the first signal ends the run, a second one ends this process.

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Catches the signals until dropped.
#[derive(Debug)]
pub struct StopSignals {
    caught: Receiver<i32>,
    handle: Handle,
    thread: Option<JoinHandle<()>>,
}

impl StopSignals {
    /// Starts catching signals.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn catch() -> io::Result<Self> {
        Self::catch_these(&asking())
    }

    /// Starts catching these signals, of which one asks for the end.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn catch_these(ending: &[i32]) -> io::Result<Self> {
        let mut signals = Signals::new(ending)?;
        let handle = signals.handle();
        let (sender, caught): (Sender<i32>, _) = channel();
        let thread = std::thread::Builder::new().name("longwire-signals".into()).spawn(move || {
            let mut before = false;
            for signal in signals.forever() {
                if before {
                    // A second signal ends the process at once; the next run cleans up.
                    let _ = signal_hook::low_level::emulate_default_handler(signal);
                }
                before = true;
                crate::interrupt();
                // After the end of the run nothing receives signals.
                let _ = sender.send(signal);
            }
        })?;
        Ok(Self { caught, handle, thread: Some(thread) })
    }

    /// The number of the signal received so far, if any.
    pub fn came(&self) -> Option<i32> {
        self.caught.try_recv().ok()
    }

    /// Waits for a signal at most this time, and returns whether one came.
    pub fn within(&self, time: Duration) -> bool {
        self.caught.recv_timeout(time).is_ok()
    }
}

/// The signals by which a user ends a process. Under `nohup` SIGHUP is not one, nor is SIGQUIT behind `&` in
/// a script.
pub fn asking() -> Vec<i32> {
    asking_by(&std::fs::read_to_string("/proc/self/status").unwrap_or_default())
}

/// The signals by which a user ends a process with this `/proc/PID/status`.
fn asking_by(status: &str) -> Vec<i32> {
    let heeded = [SIGHUP, SIGQUIT].into_iter().filter(|signal| !is_ignored(*signal, status));
    [SIGINT, SIGTERM].into_iter().chain(heeded).collect()
}

/// Whether a process ignores a signal, from the text of its `/proc/PID/status`.
fn is_ignored(signal: i32, status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

impl Drop for StopSignals {
    fn drop(&mut self) {
        self.handle.close();
        if let Some(thread) = self.thread.take() {
            // The thread returns nothing.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nohup_is_seen_in_the_mask_of_ignored_signals() {
        let status = "SigBlk:\t0000000000000001\nSigIgn:\t0000000000001001\n";
        assert!(is_ignored(SIGHUP, status) && !is_ignored(SIGINT, status));
        assert!(!is_ignored(SIGHUP, "SigIgn:\t0000000000001000\n") && !is_ignored(SIGHUP, ""));
    }

    #[test]
    fn all_signals_of_a_terminal_ask_for_the_end_unless_they_are_ignored() {
        assert_eq!(asking_by(""), [SIGINT, SIGTERM, SIGHUP, SIGQUIT]);
        assert_eq!(asking_by("SigIgn:\t0000000000000001\n"), [SIGINT, SIGTERM, SIGQUIT]);
        assert_eq!(asking_by("SigIgn:\t0000000000000006\n"), [SIGINT, SIGTERM, SIGHUP]);
    }
}
