//! A user namespace for a process without privileges, in which it is root over its own network namespaces,
//! isolated from the machine.
//!
//! The functions here change the whole process, so they must be called before it has a second thread.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::mount::{
    MountFlags, MountPropagationFlags, mount, mount_bind, mount_bind_recursive, mount_change,
};
use rustix::process::{getegid, geteuid};
use rustix::thread::UnshareFlags;

use crate::lab::loopback_up;
use crate::names::check_instance;
use crate::namespace::{NAMES, unshare};
use crate::process_namespaces::ProcessNamespaces;
use crate::state::ROOT;
use crate::{LabError, LabInfo, Result};

const RUN: &str = "/run";

/// This process's user and group on the machine, while it is root in its own user namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnUser {
    uid: u32,
    gid: u32,
}

impl OwnUser {
    /// Makes a command run as the outer user and group, in a nested user namespace that maps them. What must
    /// be done as root comes before.
    pub fn give_back(self, command: &mut Command) {
        let maps = [(c"/proc/self/uid_map", self.uid), (c"/proc/self/gid_map", self.gid)];
        let maps = maps.map(|(file, id)| (file, format!("{id} 0 1")));
        // SAFETY: between fork and exec the closure only makes system calls, on existing values.
        unsafe {
            command.pre_exec(move || {
                unshare(UnshareFlags::NEWUSER)?;
                put(c"/proc/self/setgroups", b"deny")?;
                maps.iter().try_for_each(|(file, map)| put(file, map.as_bytes()))
            });
        }
    }
}

/// Writes a file at once, without allocating.
fn put(file: &CStr, text: &[u8]) -> io::Result<()> {
    let file = rustix::fs::open(file, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(&file, text)?;
    Ok(())
}

/// Moves this process into its own user namespace, in which it is root, with its own network and `/run`:
/// namespaces and states of labs have their usual names there, invisible from outside. The rest of `/run`
/// stays. Returns the previous user.
///
/// # Errors
/// If the process has several threads, or the system doesn't allow user namespaces. In the latter case the
/// process may be half inside and should end.
pub fn enter_user_namespace() -> Result<OwnUser> {
    check_single_thread()?;
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNET | UnshareFlags::NEWNS)
        .map_err(|e| refused(e.into()))?;
    let map = |file: &str, text: String| {
        fs::write(format!("/proc/self/{file}"), text)
            .map_err(|e| refused(io::Error::new(e.kind(), format!("writing /proc/self/{file}: {e}"))))
    };
    // Without privileges outside, mapping groups requires giving up setgroups.
    map("setgroups", "deny".to_owned())?;
    map("uid_map", format!("0 {user} 1"))?;
    map("gid_map", format!("0 {group} 1"))?;
    mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::DOWNSTREAM)
        .map_err(|e| refused(e.into()))?;
    private_run().map_err(LabError::system("making a /run of this process's own"))?;
    loopback_up()?;
    Ok(OwnUser { uid: user, gid: group })
}

/// Moves this process into the namespaces of this user's process that owns an unprivileged lab, so that
/// [`crate::Lab::open`] finds it. Returns whether there is one; if not, nothing has changed.
///
/// # Errors
/// If the process has several threads, or isn't allowed in.
pub fn join_user_namespace(instance: &str) -> Result<bool> {
    check_instance(instance)?;
    let holds =
        |namespaces: &ProcessNamespaces| namespaces.states().iter().any(|state| state.instance == instance);
    let Some(namespaces) = ProcessNamespaces::all().find(holds) else { return Ok(false) };
    check_single_thread()?;
    let pid = namespaces.pid();
    let doing = format!("joining the namespaces of process {pid}, which holds lab {instance}");
    namespaces.enter().map_err(LabError::system(doing))?;
    Ok(true)
}

/// The labs of this user's processes in their own user namespaces, which [`crate::Lab::list`] can't see.
/// Other users' labs are not listed, not even for root.
#[must_use]
pub fn private_labs() -> Vec<LabInfo> {
    let mut found = Vec::new();
    for namespaces in ProcessNamespaces::all() {
        let states = namespaces.states();
        let process = Arc::new(namespaces.into_process());
        found.extend(states.into_iter().map(|state| LabInfo::held(state, Some(Arc::clone(&process)))));
    }
    found
}

fn check_single_thread() -> Result<()> {
    // A thread that has been joined may not yet have left the process.
    const LEAVING: Duration = Duration::from_millis(1);
    const LOOKS: u32 = 100;
    let threads = || fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
    for _ in 0..LOOKS {
        if threads() == 1 {
            return Ok(());
        }
        std::thread::sleep(LEAVING);
    }
    let reason = format!("the process has {} threads already; do this before starting any", threads());
    Err(LabError::UserNamespace { reason })
}

pub(crate) fn refused(error: io::Error) -> LabError {
    LabError::UserNamespace { reason: format!("{error}{}", who_refuses()) }
}

/// The distributions' settings that prevent users from creating namespaces, with the fix.
fn who_refuses() -> String {
    let settings = [
        ("kernel/unprivileged_userns_clone", "0", "1"),
        ("kernel/apparmor_restrict_unprivileged_userns", "1", "0"),
        ("user/max_user_namespaces", "0", "10000"),
    ];
    settings
        .iter()
        .find(|(file, bad, _)| {
            fs::read_to_string(Path::new("/proc/sys").join(file)).is_ok_and(|value| value.trim() == *bad)
        })
        .map_or_else(
            || " (a container's rules, perhaps: run as root, or allow unshare)".to_owned(),
            |(file, _, good)| {
                format!(" (allow it with `sysctl -w {}={good}`, or run as root)", file.replace('/', "."))
            },
        )
}

/// Mounts an empty `/run` with everything that was there except for names of namespaces and labs.
fn private_run() -> io::Result<()> {
    let before = File::open(RUN)?;
    let fd = before.as_raw_fd();
    let entries: Vec<_> = fs::read_dir(RUN)?.filter_map(Result::ok).collect();
    mount("tmpfs", RUN, "tmpfs", MountFlags::empty(), c"mode=755,size=16m")?;
    for entry in entries {
        let (name, Ok(kind)) = (entry.file_name(), entry.file_type()) else { continue };
        // The old contents are under the new /run; the open folder still leads to them.
        let (old, new) = (PathBuf::from(format!("/proc/self/fd/{fd}")).join(&name), entry.path());
        if [NAMES, ROOT].iter().any(|own| new == Path::new(own)) {
            continue;
        }
        // What can't be mounted again is not accessible to this user anyway.
        let _ = if kind.is_symlink() {
            fs::read_link(&old).and_then(|to| symlink(to, &new))
        } else if kind.is_dir() {
            fs::create_dir(&new).and_then(|()| Ok(mount_bind_recursive(&old, &new)?))
        } else {
            File::create(&new).and_then(|_| Ok(mount_bind(&old, &new)?))
        };
    }
    Ok(())
}
