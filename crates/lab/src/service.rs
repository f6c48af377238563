//! A program that runs beside a command: a server at the far end of `exec`.
#![allow(unsafe_code)]

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// How long it has to end by itself.
const GRACE: Duration = Duration::from_millis(500);
/// How often it is looked whether it has.
const LOOK: Duration = Duration::from_millis(5);

/// A program and whatever it starts, until dropped.
#[derive(Debug)]
pub struct Service {
    child: Child,
}

impl Service {
    /// Starts it in a process group of its own, which the terminal's Ctrl-C does not reach.
    ///
    /// # Errors
    /// When it can't be started.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        Ok(Self { child: command.process_group(0).spawn()? })
    }

    /// How it ended, if it has.
    ///
    /// # Errors
    /// When the system can't say.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    fn signal_all(&self, signal: libc::c_int) {
        // SAFETY: no pointers. The group is the child's: as long as a process is in it, its number stands for nothing
        // else, and the child itself is collected last.
        unsafe { libc::kill(-self.child.id().cast_signed(), signal) };
    }
}

impl Drop for Service {
    /// Asks the whole group to end, then makes it.
    fn drop(&mut self) {
        let gone = |child: &mut Child| !matches!(child.try_wait(), Ok(None));
        if gone(&mut self.child) {
            return;
        }
        self.signal_all(libc::SIGTERM);
        let deadline = Instant::now() + GRACE;
        while Instant::now() < deadline {
            if gone(&mut self.child) {
                return;
            }
            std::thread::sleep(LOOK);
        }
        self.signal_all(libc::SIGKILL);
        // It can't refuse; what it started is the system's to collect.
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::process::Stdio;

    #[test]
    fn ends_with_all_it_started() {
        // The pipe's end comes when neither the shell nor what it started holds it any more.
        let (mut output, input) = io::pipe().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 60 & echo up; wait"]).stdout(Stdio::from(input));
        let mut service = Service::start(&mut command).unwrap();
        drop(command);
        let mut word = [0; 3];
        output.read_exact(&mut word).unwrap();
        assert!(service.ended().unwrap().is_none());
        drop(service);
        let mut rest = String::new();
        output.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "");
    }

    #[test]
    fn one_that_has_ended_says_how() {
        let mut service = Service::start(Command::new("sh").args(["-c", "exit 3"])).unwrap();
        let status = loop {
            if let Some(status) = service.ended().unwrap() {
                break status;
            }
            std::thread::yield_now();
        };
        assert_eq!(status.code(), Some(3));
    }
}
