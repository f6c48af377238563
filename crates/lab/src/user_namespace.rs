//! A private world for a process without privileges: inside a user namespace it is root over network namespaces of
//! its own, and nothing outside sees or feels it.
//!
//! The calls here change the whole process, so they come first in a program, before it has a second thread.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::lab::{check_instance, loopback_up};
use crate::namespace::{NAMES, check, mount};
use crate::state::{ROOT, State};
use crate::{LabError, LabInfo};

const PRIVATE: libc::c_int = libc::CLONE_NEWUSER | libc::CLONE_NEWNET | libc::CLONE_NEWNS;
const RUN: &str = "/run";

/// Moves this process into a user namespace of its own, in which it is root, with a network and a `/run` of its
/// own: namespaces and states of labs have their usual names there, unseen from outside. What else is in
/// `/run` stays in its place.
///
/// # Errors
/// When the process has several threads already, or the system doesn't allow user namespaces. After the latter
/// the process may be half inside and should end.
pub fn enter_user_namespace() -> Result<(), LabError> {
    check_single_thread()?;
    // SAFETY: no arguments, no failure.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    // SAFETY: no pointers; this is the process's only thread.
    check(unsafe { libc::unshare(PRIVATE) }).map_err(refused)?;
    let map = |file: &str, text: String| {
        fs::write(format!("/proc/self/{file}"), text)
            .map_err(|e| refused(io::Error::new(e.kind(), format!("writing /proc/self/{file}: {e}"))))
    };
    // Without privileges outside, groups can be mapped only by one who can't change them any more.
    map("setgroups", "deny".to_owned())?;
    map("uid_map", format!("0 {user} 1"))?;
    map("gid_map", format!("0 {group} 1"))?;
    mount(None, Path::new("/"), libc::MS_REC | libc::MS_SLAVE).map_err(refused)?;
    private_run().map_err(LabError::system("making a /run of this process's own"))?;
    loopback_up()
}

/// Moves this process into the user namespace of the process that holds a lab made without privileges, so that
/// [`crate::Lab::open`] finds it. Answers whether there is one; when not, nothing has changed.
///
/// # Errors
/// When the process has several threads already, or isn't allowed in.
pub fn join_user_namespace(instance: &str) -> Result<bool, LabError> {
    check_instance(instance)?;
    let Some((pid, _)) = private_states().into_iter().find(|(_, state)| state.instance == instance) else {
        return Ok(false);
    };
    check_single_thread()?;
    let doing =
        || LabError::system(format!("joining the namespaces of process {pid}, which holds lab {instance}"));
    // SAFETY: no pointers; the result is checked before it becomes an owned descriptor.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    let fd =
        i32::try_from(fd).ok().filter(|fd| *fd >= 0).ok_or_else(|| doing()(io::Error::last_os_error()))?;
    // SAFETY: a new descriptor that nothing else owns.
    let process = unsafe { OwnedFd::from_raw_fd(fd) };
    // SAFETY: no pointers; this is the process's only thread.
    check(unsafe { libc::setns(process.as_raw_fd(), PRIVATE) }).map_err(doing())?;
    Ok(true)
}

/// The labs made by this user's processes in user namespaces of their own, which [`crate::Lab::list`] can't see.
#[must_use]
pub fn private_labs() -> Vec<LabInfo> {
    private_states().into_iter().map(|(_, state)| LabInfo::of(state)).collect()
}

/// Each with the process that holds it, looked for in the `/run` of every process that has one of its own.
fn private_states() -> Vec<(u32, State)> {
    let identity = |path: PathBuf| fs::metadata(path).ok().map(|m| (m.dev(), m.ino()));
    let mut seen = vec![identity(PathBuf::from(ROOT))];
    let mut found = Vec::new();
    let pids = fs::read_dir("/proc").into_iter().flatten();
    for pid in pids.filter_map(|e| e.ok()?.file_name().to_str()?.parse::<u32>().ok()) {
        let root = PathBuf::from(format!("/proc/{pid}/root{ROOT}"));
        let id = identity(root.clone());
        if id.is_none() || seen.contains(&id) {
            continue;
        }
        seen.push(id);
        // Ids in a state are those of the namespace its owner is in, which is ours: only users differ.
        let states = State::read_all_in(&root).unwrap_or_default();
        found.extend(states.into_iter().map(|s| (s.owner.as_ref().map_or(pid, |o| o.pid), s)));
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

/// The settings by which distributions keep users from making namespaces, with the mend.
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

/// An empty `/run` in which everything that was there is shown again, other than names of namespaces and labs.
fn private_run() -> io::Result<()> {
    let before = File::open(RUN)?;
    let fd = before.as_raw_fd();
    let entries: Vec<_> = fs::read_dir(RUN)?.filter_map(Result::ok).collect();
    let (kind, target) = (c"tmpfs", CString::new(RUN)?);
    // SAFETY: constant strings and one that lives until the call returns.
    check(unsafe {
        let options = c"mode=755,size=16m";
        libc::mount(kind.as_ptr(), target.as_ptr(), kind.as_ptr(), 0, options.as_ptr().cast())
    })?;
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
            fs::create_dir(&new).and_then(|()| mount(Some(&old), &new, libc::MS_BIND | libc::MS_REC))
        } else {
            File::create(&new).and_then(|_| mount(Some(&old), &new, libc::MS_BIND))
        };
    }
    Ok(())
}
