//! Processes around a lab: ending the programs that still run inside when it is taken down, ending the
//! process that holds it, and being one that holds a lab in the background.
#![allow(unsafe_code)]

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::LabInfo;
use crate::namespace::{NamespaceId, check, path_of};

/// How long programs have to end by themselves.
const GRACE: Duration = Duration::from_millis(500);

/// Leaves the terminal and its signals: for a process that goes on in the background.
///
/// # Errors
/// When the process leads a group of processes, as one that a shell started does.
pub fn detach() -> io::Result<()> {
    // SAFETY: no arguments.
    check(unsafe { libc::setsid() })
}

/// Whether somebody still has the other end of a pipe that this process writes to.
pub fn has_reader(pipe: &impl AsRawFd) -> bool {
    let mut poll = libc::pollfd { fd: pipe.as_raw_fd(), events: 0, revents: 0 };
    // SAFETY: one live pollfd.
    unsafe { libc::poll(&raw mut poll, 1, 0) };
    poll.revents & libc::POLLERR == 0
}

impl LabInfo {
    /// Asks the process that holds this lab to end, as SIGTERM does; answers whether there was one to ask.
    pub fn ask_to_end(&self) -> bool {
        self.process.iter().for_each(|process| send(process, libc::SIGTERM));
        self.process.is_some()
    }

    /// Waits until the process that holds this lab has ended; answers whether it has. One that can't be seen
    /// from here has not, nor has a lab that no process holds.
    pub fn wait_for_end(&self, patience: Duration) -> bool {
        match &self.process {
            Some(process) => ends_before(process, Instant::now() + patience),
            None => self.dead,
        }
    }
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
        send(process, libc::SIGTERM);
    }
    let deadline = Instant::now() + GRACE;
    let stubborn: Vec<_> = found.iter().filter(|p| !ends_before(p, deadline)).collect();
    for process in &stubborn {
        send(process, libc::SIGKILL);
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
    // SAFETY: no pointers; the result is checked before it becomes an owned descriptor.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    match i32::try_from(fd) {
        // SAFETY: a new descriptor that nothing else owns.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(io::Error::last_os_error()),
    }
}

fn send(process: &OwnedFd, signal: libc::c_int) {
    // SAFETY: a null pointer stands for no further information. A failure means that it has ended.
    unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            process.as_raw_fd(),
            signal,
            std::ptr::null::<libc::siginfo_t>(),
            0,
        );
    }
}

fn ends_before(process: &OwnedFd, deadline: Instant) -> bool {
    let left = deadline.saturating_duration_since(Instant::now()).as_millis();
    let mut poll = libc::pollfd { fd: process.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one live pollfd; the grace is far below the range of a c_int.
    unsafe { libc::poll(&raw mut poll, 1, left as libc::c_int) == 1 }
}
