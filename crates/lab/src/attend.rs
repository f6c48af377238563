//! Running a command in the place of this process: signals meant for it reach it, and this process outlives
//! it to clean up.
#![allow(unsafe_code)]

use std::io;
use std::process::{Command, ExitStatus};
use std::sync::Mutex;
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::io::retry_on_intr;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

/// Signals that end a process, or mean whatever the command makes of them.
const PASSED_ON: [libc::c_int; 6] =
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2];

/// No command yet: signals are remembered.
const BEFORE: i32 = 0;
/// The command has ended: signals come too late.
const AFTER: i32 = -1;

/// The command's process id, or one of the above.
static COMMAND: AtomicI32 = AtomicI32::new(BEFORE);
/// The first signal that came before the command was started; 0 if none did.
static EARLY: AtomicI32 = AtomicI32::new(0);
/// Signal handlers are the process's: one attendant at a time.
static ONLY_ONE: Mutex<()> = Mutex::new(());

/// Stands in for a command while it is prepared, runs, and is cleaned up after. Signals that would end this
/// process are kept for the command instead; those of the terminal (Ctrl-C), which reach the command by
/// themselves, are not sent to it twice. Dropping it puts the signals' handling back.
#[derive(Debug)]
pub struct Attendant {
    before: Vec<(libc::c_int, libc::sigaction)>,
    _only: std::sync::MutexGuard<'static, ()>,
}

impl Attendant {
    /// Begins to keep signals. Those that are ignored (by `nohup`) stay so, for the command, too.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn begin() -> io::Result<Self> {
        let only = ONLY_ONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        COMMAND.store(BEFORE, Ordering::SeqCst);
        EARLY.store(0, Ordering::SeqCst);
        // Made here, so that the handler finds it: what it may do there is only to store.
        longwire_rundir::interrupt_flag();
        let mut attendant = Self { before: Vec::new(), _only: only };
        for signal in PASSED_ON {
            // By libc: rustix leaves handlers to the C library.
            // SAFETY: an all-zero sigaction is valid: no flags, an empty mask.
            let (mut ours, mut before): (libc::sigaction, libc::sigaction) = unsafe { std::mem::zeroed() };
            let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = pass_on;
            ours.sa_sigaction = handler as usize;
            ours.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
            // SAFETY: both structures are live; a null one asks without changing.
            unsafe {
                check(libc::sigaction(signal, std::ptr::null(), &raw mut before))?;
                if before.sa_sigaction == libc::SIG_IGN {
                    continue;
                }
                check(libc::sigaction(signal, &raw const ours, std::ptr::null_mut()))?;
            }
            attendant.before.push((signal, before));
        }
        Ok(attendant)
    }

    /// The signal that came before the command was started, if one did: it should not be started then.
    #[must_use]
    pub fn early(&self) -> Option<i32> {
        Some(EARLY.load(Ordering::SeqCst)).filter(|signal| *signal != 0)
    }

    /// Starts the command and waits for its end. A signal that came before is sent to it at once.
    ///
    /// # Errors
    /// When it can't be started.
    pub fn run(&self, command: &mut Command) -> io::Result<ExitStatus> {
        let mut child = command.spawn()?;
        let pid = Pid::from_child(&child);
        COMMAND.store(pid.as_raw_pid(), Ordering::SeqCst);
        if let Some(signal) = self.early().and_then(Signal::from_named_raw) {
            // It has not been collected, so that the id is its; if it has ended, it needs no signal.
            let _ = kill_process(pid, signal);
        }
        // Until it has ended, and is left to be collected.
        let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        retry_on_intr(|| waitid(WaitId::Pid(pid), ended))?;
        // Only now may the id pass to another process.
        COMMAND.store(AFTER, Ordering::SeqCst);
        child.wait()
    }
}

impl Drop for Attendant {
    fn drop(&mut self) {
        for (signal, before) in &self.before {
            // SAFETY: what the system gave for this signal.
            unsafe { libc::sigaction(*signal, before, std::ptr::null_mut()) };
        }
    }
}

/// What a shell calls the end of a command: its exit code, or 128 and the number of the signal that ended it.
#[must_use]
pub fn exit_code(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    // Both are below 256.
    code as u8
}

/// The handler: uses only atomics and kill(2), which signal-safety(7) allows.
extern "C" fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // By libc: kill changes errno, which the interrupted code may be about to read.
    // SAFETY: the kernel passes a valid siginfo; errno belongs to this thread.
    let (from_terminal, errno) =
        unsafe { (!info.is_null() && (*info).si_code == libc::SI_KERNEL, *libc::__errno_location()) };
    match COMMAND.load(Ordering::SeqCst) {
        BEFORE => {
            let _ = EARLY.compare_exchange(0, signal, Ordering::SeqCst, Ordering::SeqCst);
            longwire_rundir::interrupt();
        }
        // The id is the child's until it is collected, which is after AFTER is stored.
        pid if pid > 0 && !from_terminal => {
            let _ = Pid::from_raw(pid)
                .zip(Signal::from_named_raw(signal))
                .map(|(pid, signal)| kill_process(pid, signal));
        }
        _ => {}
    }
    // SAFETY: errno belongs to this thread.
    unsafe { *libc::__errno_location() = errno };
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    /// By libc: rustix sends signals to processes only.
    fn raise(signal: libc::c_int) {
        // SAFETY: no pointers; the handler stands, and runs on this thread before the call returns.
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
        // The command asks for the signal when it is ready for it.
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
        // Too late for the command, and none of this process's business.
        raise(libc::SIGINT);
    }
}
