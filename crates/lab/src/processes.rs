//! Processes of a lab: ending programs inside it, ending its owner, and owning a lab in the background.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal, setsid};

use crate::namespace::{NamespaceId, path_of};

/// Time for programs to end by themselves.
const GRACE: Duration = Duration::from_millis(500);
/// How often those that are left are looked for and killed.
const ROUNDS: u32 = 5;

/// Detaches from the terminal and its signals, for a process that continues in the background.
///
/// # Errors
/// If the process leads a process group, as when a shell started it.
pub fn detach() -> io::Result<()> {
    setsid()?;
    Ok(())
}

/// Whether a pipe to which this process writes still has a reader.
pub fn has_reader(pipe: &impl AsFd) -> bool {
    let mut wait = [PollFd::new(pipe, PollFlags::empty())];
    // On failure a reader is assumed.
    let _ = poll(&mut wait, Some(&Timespec::default()));
    !wait[0].revents().contains(PollFlags::ERR)
}

/// Ends every other process inside the named namespaces: first with SIGTERM, then with SIGKILL. The
/// namespaces are the lab's own, so all processes in them were started through the lab.
pub fn end_all_in<'a>(namespaces: impl Iterator<Item = &'a str>) {
    let own = NamespaceId::at(&PathBuf::from("/proc/self/ns/net")).ok();
    let ids: Vec<_> = namespaces
        .filter_map(|name| NamespaceId::at(&path_of(name)).ok())
        .filter(|id| Some(*id) != own)
        .collect();
    let mut signal = Signal::TERM;
    // Programs may have started others instead of those that have ended, so that each round looks again.
    for _ in 0..=ROUNDS {
        let found = processes_in(&ids);
        if found.is_empty() {
            return;
        }
        for process in &found {
            send(process, signal);
        }
        // A process that can't be killed at once (in an uninterruptible call) must not block for ever.
        let deadline = Instant::now() + GRACE;
        for process in &found {
            ends_before(process, deadline);
        }
        signal = Signal::KILL;
    }
}

fn processes_in(ids: &[NamespaceId]) -> Vec<OwnedFd> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let inside = |pid: u32| {
        NamespaceId::at(&PathBuf::from(format!("/proc/{pid}/ns/net"))).is_ok_and(|id| ids.contains(&id))
    };
    entries
        .filter_map(|e| e.ok()?.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| *pid != std::process::id() && inside(*pid))
        // Checked again once it is held: the id may have been reused in between.
        .filter_map(|pid| open(pid).ok().filter(|_| inside(pid)))
        .collect()
}

/// Whether a process has ended.
pub fn has_ended(process: &OwnedFd) -> bool {
    ends_before(process, Instant::now())
}

/// Opens a process, so that signals never reach a later one with its id.
pub fn open(pid: u32) -> io::Result<OwnedFd> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(Errno::SRCH)?;
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

pub fn send(process: &OwnedFd, signal: Signal) {
    // A failure means that it has ended.
    let _ = pidfd_send_signal(process, signal);
}

pub fn ends_before(process: &OwnedFd, deadline: Instant) -> bool {
    let left = Timespec::try_from(deadline.saturating_duration_since(Instant::now())).ok();
    poll(&mut [PollFd::new(process, PollFlags::IN)], left.as_ref()) == Ok(1)
}
