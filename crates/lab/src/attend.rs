//! Runs a command in place of this process: it receives this process's signals, and this process outlives it
//! to clean up.
#![allow(unsafe_code)]

use std::io;
use std::process::{Command, ExitStatus};
use std::sync::Mutex;
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::io::retry_on_intr;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, getpid, kill_process, waitid};

use crate::system_call::checked;

/// Signals that end a process or have a meaning of the command's own.
const PASSED_ON: [libc::c_int; 6] =
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2];

/// No command yet: signals are kept.
const BEFORE: i32 = 0;
/// The command has ended: signals are ignored.
const AFTER: i32 = -1;

/// The command's process id, or one of the above.
static COMMAND: AtomicI32 = AtomicI32::new(BEFORE);
/// The first signal before the command was started; 0 if there was none.
static EARLY: AtomicI32 = AtomicI32::new(0);
/// Signal handlers belong to the process: only one attendant at a time.
static ONLY_ONE: Mutex<()> = Mutex::new(());

/// Handles signals for a command while it is prepared, runs, and is cleaned up. Signals that would end this
/// process are passed to the command; those of the terminal's keys (Ctrl-C), which the command receives
/// anyway, are not sent twice. SIGHUP always is: when a terminal is closed, the kernel sends it to the
/// session's leader only, which this process may be. Dropping it restores the signal handlers.
#[derive(Debug)]
pub struct Attendant {
    before: Vec<(libc::c_int, libc::sigaction)>,
    _only: std::sync::MutexGuard<'static, ()>,
}

impl Attendant {
    /// Begins to handle signals. Ignored signals (by `nohup`) stay ignored, also for the command.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn begin() -> io::Result<Self> {
        let only = ONLY_ONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        COMMAND.store(BEFORE, Ordering::SeqCst);
        EARLY.store(0, Ordering::SeqCst);
        // Created here, because the handler may only store to it.
        longwire_rundir::interrupt_flag();
        let mut attendant = Self { before: Vec::new(), _only: only };
        for signal in PASSED_ON {
            // rustix has no signal handlers. SAFETY: an all-zero sigaction is valid: no flags, an empty mask.
            let (mut ours, mut before): (libc::sigaction, libc::sigaction) = unsafe { std::mem::zeroed() };
            let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = pass_on;
            ours.sa_sigaction = handler as usize;
            ours.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
            // SAFETY: both structures are live; a null one only queries.
            unsafe {
                checked(libc::sigaction(signal, std::ptr::null(), &raw mut before))?;
                if before.sa_sigaction == libc::SIG_IGN {
                    continue;
                }
                checked(libc::sigaction(signal, &raw const ours, std::ptr::null_mut()))?;
            }
            attendant.before.push((signal, before));
        }
        Ok(attendant)
    }

    /// The signal received before the command was started, if any: the command should not be started then.
    #[must_use]
    pub fn early(&self) -> Option<i32> {
        Some(EARLY.load(Ordering::SeqCst)).filter(|signal| *signal != 0)
    }

    /// Ends the command as SIGTERM to this process does.
    pub fn end(&self) {
        let _ = kill_process(getpid(), Signal::TERM);
    }

    /// Starts the command and waits for its end. An earlier signal is sent to it at once.
    ///
    /// # Errors
    /// If it can't be started.
    pub fn run(&self, command: &mut Command) -> io::Result<ExitStatus> {
        let mut child = command.spawn()?;
        let pid = Pid::from_child(&child);
        COMMAND.store(pid.as_raw_pid(), Ordering::SeqCst);
        if let Some(signal) = self.early().and_then(Signal::from_named_raw) {
            // It has not been reaped, so the id is valid; if it has ended, it needs no signal.
            let _ = kill_process(pid, signal);
        }
        // Wait until it has ended, without reaping it.
        let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        let _ = retry_on_intr(|| waitid(WaitId::Pid(pid), ended));
        // From here on the id may be reused.
        COMMAND.store(AFTER, Ordering::SeqCst);
        child.wait()
    }
}

impl Drop for Attendant {
    fn drop(&mut self) {
        for (signal, before) in &self.before {
            // SAFETY: this is the previous action of the signal.
            unsafe { libc::sigaction(*signal, before, std::ptr::null_mut()) };
        }
    }
}

/// The shell's exit code of a command: its own, or 128 plus the number of the signal that ended it.
#[must_use]
pub fn exit_code(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    // Both are below 256.
    code as u8
}

/// The handler: uses only atomics and kill(2), which signal-safety(7) allows.
extern "C" fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // kill changes errno, which the interrupted code may be about to read. SAFETY: the kernel passes a valid
    // siginfo; errno belongs to this thread.
    let (from_terminal, errno) =
        unsafe { (!info.is_null() && (*info).si_code == libc::SI_KERNEL, *libc::__errno_location()) };
    match COMMAND.load(Ordering::SeqCst) {
        BEFORE => {
            let _ = EARLY.compare_exchange(0, signal, Ordering::SeqCst, Ordering::SeqCst);
            longwire_rundir::interrupt();
        }
        // The id is valid until the child is reaped, which is after AFTER is stored. A second hangup does no
        // harm.
        pid if pid > 0 && (!from_terminal || signal == libc::SIGHUP) => {
            let _ = Pid::from_raw(pid)
                .zip(Signal::from_named_raw(signal))
                .map(|(pid, signal)| kill_process(pid, signal));
        }
        _ => {}
    }
    // SAFETY: errno belongs to this thread.
    unsafe { *libc::__errno_location() = errno };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    /// rustix sends signals only to processes.
    fn raise(signal: libc::c_int) {
        // SAFETY: no pointers; the handler is installed, and runs on this thread before the call returns.
        unsafe { libc::raise(signal) };
    }

    #[test]
    fn exit_codes_are_those_of_a_shell() {
        let attendant = Attendant::begin().unwrap();
        for (script, code) in [("exit 0", 0), ("exit 7", 7), ("kill -TERM $$", 143), ("kill -KILL $$", 137)] {
            let status = attendant.run(&mut shell(script)).unwrap();
            assert_eq!(exit_code(status), code, "{script}");
        }
        assert!(attendant.run(&mut Command::new("/no/such/program")).is_err());
    }

    #[test]
    fn a_signal_sent_to_this_process_reaches_the_command() {
        let attendant = Attendant::begin().unwrap();
        // The command requests the signal when it is ready.
        let script =
            format!("trap 'exit 9' TERM; kill -TERM {}; while :; do sleep 0.01; done", std::process::id());
        assert_eq!(exit_code(attendant.run(&mut shell(&script)).unwrap()), 9);
    }

    #[test]
    fn a_signal_before_the_command_is_remembered() {
        let attendant = Attendant::begin().unwrap();
        assert_eq!(attendant.early(), None);
        raise(libc::SIGTERM);
        assert_eq!(attendant.early(), Some(libc::SIGTERM));
        assert_eq!(exit_code(attendant.run(&mut shell("sleep 10")).unwrap()), 143);
        // Too late for the command, and ignored by this process.
        raise(libc::SIGINT);
    }
}
