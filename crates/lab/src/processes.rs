//! Processes around a lab: ending the programs that still run inside when it is taken down, ending the
//! process that holds it, and being one that holds a lab in the background.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal, setsid};

use crate::namespace::{NamespaceId, path_of};

/// How long programs have to end by themselves.
const GRACE: Duration = Duration::from_millis(500);

/// Leaves the terminal and its signals: for a process that goes on in the background.
///
/// # Errors
/// When the process leads a group of processes, as one that a shell started does.
pub fn detach() -> io::Result<()> {
    setsid()?;
    Ok(())
}

/// Whether somebody still has the other end of a pipe that this process writes to.
pub fn has_reader(pipe: &impl AsFd) -> bool {
    let mut wait = [PollFd::new(pipe, PollFlags::empty())];
    // What can't be asked has one, for all that is known.
    let _ = poll(&mut wait, Some(&Timespec::default()));
    !wait[0].revents().contains(PollFlags::ERR)
}

/// Ends every process inside the named namespaces, other than this one: first asking, then not. The
/// namespaces are the lab's own, so whatever runs in them was started through the lab.
pub fn end_all_in<'a>(namespaces: impl Iterator<Item = &'a str>) {
    let own = NamespaceId::at(&PathBuf::from("/proc/self/ns/net")).ok();
    let ids: Vec<_> = namespaces
        .filter_map(|name| NamespaceId::at(&path_of(name)).ok())
        .filter(|id| Some(*id) != own)
        .collect();
    let found = processes_in(&ids);
    for process in &found {
        send(process, Signal::TERM);
    }
    let deadline = Instant::now() + GRACE;
    let stubborn: Vec<_> = found.iter().filter(|p| !ends_before(p, deadline)).collect();
    for process in &stubborn {
        send(process, Signal::KILL);
    }
    // A process that can't be killed at once (in an uninterruptible call) must not hold the lab up for ever.
    let deadline = Instant::now() + GRACE;
    for process in stubborn {
        ends_before(process, deadline);
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
        // Looked at again once it is held: the id may have passed to another process in between.
        .filter_map(|pid| open(pid).ok().filter(|_| inside(pid)))
        .collect()
}

/// Whether a process runs no more.
pub fn has_ended(process: &OwnedFd) -> bool {
    ends_before(process, Instant::now())
}

/// Holds a process, so that signals go to it and never to a later one with its id.
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
