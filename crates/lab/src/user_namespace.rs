//! A private world for a process without privileges: inside a user namespace it is root over network
//! namespaces of its own, and nothing outside sees or feels it.
//!
//! The calls here change the whole process, so they come first in a program, before it has a second thread.
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
use crate::state::ROOT;
use crate::world::World;
use crate::{LabError, LabInfo};

const RUN: &str = "/run";

/// The user and group that this process is on the machine, while it is root in a user namespace of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnUser {
    uid: u32,
    gid: u32,
}

impl OwnUser {
    /// Has a command run as the user and group of outside, in a user namespace inside this one that says so.
    /// What has to be done as root comes before.
    pub fn give_back(self, command: &mut Command) {
        let maps = [(c"/proc/self/uid_map", self.uid), (c"/proc/self/gid_map", self.gid)];
        let maps = maps.map(|(file, id)| (file, format!("{id} 0 1")));
        // SAFETY: between fork and exec the closure makes system calls only, on values made before.
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

/// Moves this process into a user namespace of its own, in which it is root, with a network and a `/run` of
/// its own: namespaces and states of labs have their usual names there, unseen from outside. What else is in
/// `/run` stays in its place. Answers who it was.
///
/// # Errors
/// When the process has several threads already, or the system doesn't allow user namespaces. After the
/// latter the process may be half inside and should end.
pub fn enter_user_namespace() -> Result<OwnUser, LabError> {
    check_single_thread()?;
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNET | UnshareFlags::NEWNS)
        .map_err(|e| refused(e.into()))?;
    let map = |file: &str, text: String| {
        fs::write(format!("/proc/self/{file}"), text)
            .map_err(|e| refused(io::Error::new(e.kind(), format!("writing /proc/self/{file}: {e}"))))
    };
    // Without privileges outside, groups can be mapped only by one who can't change them any more.
    map("setgroups", "deny".to_owned())?;
    map("uid_map", format!("0 {user} 1"))?;
    map("gid_map", format!("0 {group} 1"))?;
    mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::DOWNSTREAM)
        .map_err(|e| refused(e.into()))?;
    private_run().map_err(LabError::system("making a /run of this process's own"))?;
    loopback_up()?;
    Ok(OwnUser { uid: user, gid: group })
}

/// Moves this process into the world of the process of this user that holds a lab made without privileges, so
/// that [`crate::Lab::open`] finds it. Answers whether there is one; when not, nothing has changed.
///
/// # Errors
/// When the process has several threads already, or isn't allowed in.
pub fn join_user_namespace(instance: &str) -> Result<bool, LabError> {
    check_instance(instance)?;
    let holds = |world: &World| world.states().iter().any(|state| state.instance == instance);
    let Some(world) = World::all().find(holds) else { return Ok(false) };
    check_single_thread()?;
    let pid = world.pid();
    let doing = format!("joining the namespaces of process {pid}, which holds lab {instance}");
    world.enter().map_err(LabError::system(doing))?;
    Ok(true)
}

/// The labs made by this user's processes in user namespaces of their own, which [`crate::Lab::list`] can't
/// see. Those of other users are not looked for, by root neither.
#[must_use]
pub fn private_labs() -> Vec<LabInfo> {
    let mut found = Vec::new();
    for world in World::all() {
        let states = world.states();
        let process = Arc::new(world.into_process());
        found.extend(states.into_iter().map(|state| LabInfo::held(state, Some(Arc::clone(&process)))));
    }
    found
}

fn check_single_thread() -> Result<(), LabError> {
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

/// The settings by which distributions keep users from making namespaces, with the fix.
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

/// An empty `/run` in which everything that was there is shown again, other than names of namespaces and
/// labs.
fn private_run() -> io::Result<()> {
    let before = File::open(RUN)?;
    let fd = before.as_raw_fd();
    let entries: Vec<_> = fs::read_dir(RUN)?.filter_map(Result::ok).collect();
    mount("tmpfs", RUN, "tmpfs", MountFlags::empty(), c"mode=755,size=16m")?;
    for entry in entries {
        let (name, Ok(kind)) = (entry.file_name(), entry.file_type()) else { continue };
        // What was there before lies under the new /run; the open folder still leads to it.
        let (old, new) = (PathBuf::from(format!("/proc/self/fd/{fd}")).join(&name), entry.path());
        if [NAMES, ROOT].iter().any(|own| new == Path::new(own)) {
            continue;
        }
        // What can't be shown again (not ours to see) is missed by nobody who could have used it.
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
