//! A program that runs beside a command, such as a server at the far end of `exec`.
//!
//! It gets its own PID namespace, so that nothing that it starts outlives it, including daemons in their own
//! sessions. Two processes are between it and this one: the *guard*, which is this process's child, and the
//! namespace's *init*, with whose end the kernel ends all others (pid_namespaces(7)).
#![allow(unsafe_code)]

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};

use crate::User;
use crate::open_files::restore_open_files;
use crate::system_call::checked;

/// Time for it to end by itself.
const GRACE: Duration = Duration::from_millis(500);
/// Interval between checks whether it has.
const LOOK: Duration = Duration::from_millis(5);

/// Asks everything in the namespace to end. The guard passes it to the init.
const ASK: Signal = Signal::USR1;
/// Ends the namespace. Only the guard receives it.
const END: Signal = Signal::USR2;

/// A program and whatever it starts, until dropped.
#[derive(Debug)]
pub struct Service {
    guard: Child,
}

impl Service {
    /// Starts it in its own process group, which the terminal's Ctrl-C does not reach, as `user` if one is
    /// given.
    ///
    /// # Errors
    /// If it can't be started, or this process may not create a PID namespace.
    pub fn start(command: &mut Command, user: Option<&User>) -> io::Result<Self> {
        // SAFETY: between fork and exec the function only makes system calls: it neither allocates nor locks.
        unsafe { command.pre_exec(become_grandchild) };
        // What is above takes root.
        if let Some(user) = user {
            user.take_over(command);
        }
        restore_open_files(command);
        Ok(Self { guard: command.process_group(0).spawn()? })
    }

    /// Its exit status, if it and everything that it started have ended.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.guard.try_wait()
    }

    fn signal_guard(&self, signal: Signal) {
        // It has not been reaped, so the id is valid; if it has ended, it needs no signal.
        let _ = kill_process(Pid::from_child(&self.guard), signal);
    }
}

impl Drop for Service {
    /// Asks everything to end, then kills it.
    fn drop(&mut self) {
        let gone = |guard: &mut Child| !matches!(guard.try_wait(), Ok(None));
        if gone(&mut self.guard) {
            return;
        }
        self.signal_guard(ASK);
        let deadline = Instant::now() + GRACE;
        while Instant::now() < deadline {
            if gone(&mut self.guard) {
                return;
            }
            std::thread::sleep(LOOK);
        }
        self.signal_guard(END);
        // The guard ends when the namespace is empty, which nothing in it can prevent.
        let _ = self.guard.wait();
    }
}

/// Forks twice: returns in the process that becomes the program, and never in the two above it.
///
/// This and the two functions below use libc: rustix has no fork, no signal sets, and can't signal all
/// processes of a namespace.
fn become_grandchild() -> io::Result<()> {
    // SAFETY: system calls on values of this function; each process has one thread.
    unsafe {
        outlive_nobody()?;
        checked(libc::unshare(libc::CLONE_NEWPID))?;
        // Blocked before there is a child, so that no signal is missed.
        let awaited = awaited();
        checked(libc::sigprocmask(libc::SIG_SETMASK, &raw const awaited, std::ptr::null_mut()))?;
        let init = checked(libc::fork())?;
        if init != 0 {
            guard(init, &awaited);
        }
        outlive_nobody()?;
        let program = checked(libc::fork())?;
        if program != 0 {
            reap(program, &awaited);
        }
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        checked(libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut())).map(drop)
    }
}

/// Makes the kernel kill this process when its parent dies, however that happens.
fn outlive_nobody() -> io::Result<()> {
    Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
}

/// The signals for which guard and init wait, and those of a terminal, which they block.
fn awaited() -> libc::sigset_t {
    // SAFETY: an all-zero set is valid memory to be emptied.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in [ASK, END, Signal::CHILD, Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT] {
            libc::sigaddset(&raw mut set, signal.as_raw());
        }
        set
    }
}

/// Runs the guard: passes signals on, and ends with the init's status.
fn guard(init: libc::pid_t, awaited: &libc::sigset_t) -> ! {
    leave_descriptors();
    loop {
        match next(awaited) {
            // SAFETY: no pointers; the init has not been reaped, so its id is valid.
            ask if ask == ASK.as_raw() => drop(unsafe { libc::kill(init, ask) }),
            // SAFETY: as above.
            end if end == END.as_raw() => drop(unsafe { libc::kill(init, libc::SIGKILL) }),
            libc::SIGCHLD => {
                let mut status = 0;
                // SAFETY: the status outlives the call.
                if unsafe { libc::waitpid(init, &raw mut status, libc::WNOHANG) } == init {
                    end_as(status);
                }
            }
            _ => {}
        }
    }
}

/// Runs the init: reaps processes, and ends with the program's status when none is left.
fn reap(program: libc::pid_t, awaited: &libc::sigset_t) -> ! {
    leave_descriptors();
    let mut outcome = 0;
    loop {
        match next(awaited) {
            // SAFETY: no pointers; signals all processes in the namespace but this one.
            ask if ask == ASK.as_raw() => drop(unsafe { libc::kill(-1, libc::SIGTERM) }),
            libc::SIGCHLD => loop {
                let mut status = 0;
                // SAFETY: the status outlives the call.
                match unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) } {
                    0 => break,
                    ended if ended < 0 => end_as(outcome),
                    ended if ended == program => outcome = status,
                    _ => {}
                }
            },
            _ => {}
        }
    }
}

/// Waits for the next of these signals.
fn next(awaited: &libc::sigset_t) -> libc::c_int {
    // SAFETY: the set outlives the call; no data on the sender are requested.
    unsafe { libc::sigwaitinfo(std::ptr::from_ref(awaited), std::ptr::null_mut()) }
}

/// Closes inherited descriptors beyond standard error, so that readers of a pipe don't wait for guard or
/// init.
fn leave_descriptors() {
    // SAFETY: nothing in this process uses them any more.
    unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) };
}

/// Ends this process with the exit code of another, or 128 and the signal that ended it.
fn end_as(status: libc::c_int) -> ! {
    let code = if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { 128 + libc::WTERMSIG(status) };
    // SAFETY: ends the process at once, which has nothing to clean up.
    unsafe { libc::_exit(code) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::process::Stdio;

    /// A service that prints "up", and the pipe held by it and everything that it starts.
    fn started(script: &str) -> (Service, io::PipeReader) {
        let (mut output, input) = io::pipe().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdout(Stdio::from(input));
        let mut service = Service::start(&mut command, None).unwrap();
        drop(command);
        let mut word = [0; 3];
        output.read_exact(&mut word).unwrap();
        assert_eq!((&word, service.ended().unwrap()), (b"up\n", None));
        (service, output)
    }

    fn may_run(test: &str) -> bool {
        let can = crate::abilities().namespaces;
        if !can.available {
            println!("skipped {test}: {}", can.reason);
        }
        can.available
    }

    #[test]
    fn ends_with_all_it_started() {
        if !may_run("ends_with_all_it_started") {
            return;
        }
        // A child, a daemon in its own session, and one that ignores SIGTERM.
        for script in [
            "sleep 60 & echo up; wait",
            "(setsid sleep 60 & echo up) &",
            "trap '' TERM; (trap '' TERM; setsid sleep 60 & echo up); sleep 60",
        ] {
            let (service, mut output) = started(script);
            drop(service);
            // The pipe ends when nobody holds it any more.
            let mut rest = String::new();
            output.read_to_string(&mut rest).unwrap();
            assert_eq!(rest, "", "{script}");
        }
    }

    #[test]
    fn one_that_has_ended_says_how() {
        if !may_run("one_that_has_ended_says_how") {
            return;
        }
        for (script, code) in [("exit 3", 3), ("kill -9 $$", 137)] {
            let mut service = Service::start(Command::new("sh").args(["-c", script]), None).unwrap();
            let status = loop {
                if let Some(status) = service.ended().unwrap() {
                    break status;
                }
                std::thread::yield_now();
            };
            assert_eq!(status.code(), Some(code));
        }
        let missing = Service::start(&mut Command::new("longwire-no-such-program"), None).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }
}
