//! The namespaces of this user's processes with their own user namespace: which are trusted, what is read in
//! them, and how they are entered.
//!
//! Any user can create a user and mount namespace with something that looks like a lab. So nothing of a
//! process is opened before the kernel has confirmed that the process and each of its namespaces belong to
//! this user: root does not enter namespaces of other users. See [ADR
//! 27](../../../docs/adr/0027-whom-longwire-trusts.md).
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use longwire_report::output::note;
use longwire_rundir::own_uid;
use rustix::ioctl::{Getter, Opcode, ioctl};
use rustix::process::{getegid, geteuid};
use rustix::thread::{
    LinkNameSpaceType, clear_ambient_capability_set, move_into_link_name_space, set_thread_groups,
    set_thread_res_gid, set_thread_res_uid,
};

use crate::directory::Directory;
use crate::namespace::NamespaceId;
use crate::processes;
use crate::state::{LabState, ROOT};
use crate::system_call::checked;

/// From `linux/nsfs.h`: `_IO(0xb7, 1)` and `_IO(0xb7, 4)`.
const NS_GET_USERNS: libc::c_ulong = 0xb701;
const NS_GET_OWNER_UID: Opcode = 0xb704;

/// The namespaces of a process of this user, held with the process so that none of them can be exchanged.
#[derive(Debug)]
pub struct ProcessNamespaces {
    pid: u32,
    process: OwnedFd,
    user: File,
    network: File,
    mount: File,
    root: Directory,
}

impl ProcessNamespaces {
    /// The namespaces of all of this user's processes with their own user namespace.
    pub fn all() -> impl Iterator<Item = Self> {
        let entries = std::fs::read_dir("/proc").into_iter().flatten();
        entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).filter_map(Self::of)
    }

    /// The namespaces of a process; none if they are not all this user's, or are this process's own.
    fn of(pid: u32) -> Option<Self> {
        let folder = PathBuf::from(format!("/proc/{pid}"));
        // The cheap check first: most processes belong to other users.
        if std::fs::metadata(&folder).ok()?.uid() != own_uid() {
            return None;
        }
        let process = processes::open(pid).ok()?;
        let ids = std::fs::read_to_string(folder.join("status")).ok()?;
        if !is_all_of(&ids, own_uid()) || !shares_process_ids(&folder) {
            return None;
        }
        let namespace = |name: &str| File::open(folder.join("ns").join(name)).ok();
        let (user, network, mount) = (namespace("user")?, namespace("net")?, namespace("mnt")?);
        let id = NamespaceId::of_file(&user).ok()?;
        let is_own = NamespaceId::at(Path::new("/proc/self/ns/user")).ok()? == id;
        if is_own || maker_of(&user).ok()? != own_uid() {
            return None;
        }
        for other in [&network, &mount] {
            if NamespaceId::of_file(&user_namespace_of(other).ok()?).ok()? != id {
                return None;
            }
        }
        let root = Directory::open(&folder.join("root")).ok()?;
        // While it lives its id is not reused: everything above was read from it.
        (!processes::has_ended(&process)).then_some(Self { pid, process, user, network, mount, root })
    }

    /// The labs that this process owns. Labs of another process in the same namespaces are found with that
    /// process.
    pub fn states(&self) -> Vec<LabState> {
        let mut root = Ok(&self.root).and_then(|root| root.inside("run"));
        for name in ROOT.split('/').skip(2) {
            root = root.and_then(|directory| directory.inside(name));
        }
        let states = root.and_then(|root| LabState::read_all_in(&root)).unwrap_or_default();
        let is_holder = |state: &LabState| state.owner.as_ref().is_some_and(|o| o.is_process(self.pid));
        states.into_iter().filter(is_holder).collect()
    }

    /// The process, which can be signalled and waited for.
    pub fn into_process(self) -> OwnedFd {
        self.process
    }

    /// Moves this process into them permanently, after giving up its outer privileges. It keeps its working
    /// directory, to which relative names of the user's refer.
    pub fn enter(&self) -> io::Result<()> {
        let folder = std::env::current_dir();
        give_up_privileges()?;
        for (namespace, kind) in [
            (&self.user, LinkNameSpaceType::User),
            (&self.network, LinkNameSpaceType::Network),
            (&self.mount, LinkNameSpaceType::Mount),
        ] {
            move_into_link_name_space(namespace.as_fd(), Some(kind))?;
        }
        // Whoever enters a mount namespace is at its root.
        if let Err(error) = folder.and_then(std::env::set_current_dir) {
            note(&format!("longwire: warning: in the lab the current folder is /: {error}"));
        }
        Ok(())
    }

    /// The process's id.
    pub const fn pid(&self) -> u32 {
        self.pid
    }
}

/// Whether the real, effective, saved and file system users in the text of `/proc/PID/status` are all this
/// one.
fn is_all_of(status: &str, uid: u32) -> bool {
    let Some(line) = status.lines().find_map(|line| line.strip_prefix("Uid:")) else { return false };
    let ids: Vec<_> = line.split_ascii_whitespace().map(str::parse).collect();
    ids.len() == 4 && ids.into_iter().all(|id| id == Ok(uid))
}

/// Whether a process is in this PID namespace. Processes in containers are not trusted even if they have the
/// same user.
fn shares_process_ids(folder: &Path) -> bool {
    let own = NamespaceId::at(Path::new("/proc/self/ns/pid"));
    matches!((own, NamespaceId::at(&folder.join("ns/pid"))), (Ok(own), Ok(other)) if own == other)
}

/// The user who made a user namespace.
fn maker_of(namespace: &File) -> io::Result<u32> {
    // SAFETY: the kernel writes one user id.
    Ok(unsafe { ioctl(namespace, Getter::<NS_GET_OWNER_UID, u32>::new()) }?)
}

/// The user namespace to which a namespace belongs.
fn user_namespace_of(namespace: &File) -> io::Result<File> {
    // By libc: the answer is a descriptor, for which rustix has no pattern.
    // SAFETY: no pointers; the result is checked before it becomes an owned descriptor.
    let fd = checked(unsafe { libc::ioctl(namespace.as_raw_fd(), NS_GET_USERNS) })?;
    // SAFETY: a new descriptor that nothing else owns.
    Ok(unsafe { File::from_raw_fd(fd) })
}

/// Keeps only the effective user and its main group: no saved user, no further groups, no inheritable
/// capabilities.
fn give_up_privileges() -> io::Result<()> {
    // The calling thread is the only one.
    let (user, group) = (geteuid(), getegid());
    match set_thread_groups(&[]) {
        // An ordinary user can't give up groups, which are its own.
        Err(error) if user.is_root() => return Err(error.into()),
        _ => {}
    }
    set_thread_res_gid(group, group, group)?;
    set_thread_res_uid(user, user, user)?;
    Ok(clear_ambient_capability_set()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_trusted_with_all_four_of_its_users() {
        let status = |ids: &str| format!("Name:\tUid: 7\nUid:\t{ids}\nGid:\t0\t0\t0\t0\n");
        assert!(is_all_of(&status("7\t7\t7\t7"), 7));
        for ids in ["7\t7\t7\t8", "8\t7\t7\t7", "7\t7\t7", "7\t7\t7\t7\t7", "7\t7\t7\tx", ""] {
            assert!(!is_all_of(&status(ids), 7), "{ids}");
        }
        assert!(!is_all_of("", 7));
    }

    /// The failures found by a child of this process, a bit each; the child changes its own credentials. By
    /// libc, because it runs after a fork.
    fn child(find: fn() -> i32) -> i32 {
        // SAFETY: the child makes system calls only, and ends without running anything of its parent's.
        unsafe {
            match libc::fork() {
                0 => libc::_exit(find()),
                child => {
                    let mut status = 0;
                    assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
                    assert!(libc::WIFEXITED(status), "{status}");
                    libc::WEXITSTATUS(status)
                }
            }
        }
    }

    const NOBODY: u32 = 65_534;
    const NET_RAW: libc::c_int = 13;

    /// As a program started by another user with root's rights: it has nothing to return to.
    fn given_up_as_root() -> i32 {
        // Version 3; effective, permitted and inheritable, of the first 32 capabilities and the others
        // (capset(2)).
        let header = [0x2008_0522u32, 0];
        let mut held = [0u32; 6];
        // SAFETY: all pointers are to live places of the size that the calls expect.
        unsafe {
            let groups = [7, 8];
            let ready = libc::setgroups(2, groups.as_ptr()) == 0
                && libc::setresgid(NOBODY, 0, NOBODY) == 0
                && libc::setresuid(NOBODY, 0, NOBODY) == 0
                && libc::syscall(libc::SYS_capget, header.as_ptr(), held.as_mut_ptr()) == 0;
            held[2] = 1 << NET_RAW;
            let ready = ready
                && libc::syscall(libc::SYS_capset, header.as_ptr(), held.as_ptr()) == 0
                && libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_RAISE, NET_RAW, 0, 0) == 0;
            if !ready || give_up_privileges().is_err() {
                return 1;
            }
            let (mut users, mut own) = ([1; 3], [1; 3]);
            let [real, effective, saved] = &mut users;
            libc::getresuid(real, effective, saved);
            let [real, effective, saved] = &mut own;
            libc::getresgid(real, effective, saved);
            let ambient = libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_IS_SET, NET_RAW, 0, 0);
            i32::from(libc::getgroups(0, std::ptr::null_mut()) != 0) << 1
                | i32::from(users != [0; 3]) << 2
                | i32::from(own != [0; 3]) << 3
                | i32::from(ambient != 0) << 4
        }
    }

    /// Root of a user namespace in which groups can't be given up: nothing is entered with them.
    fn kept_where_groups_stay() -> i32 {
        let put = |file: &std::ffi::CStr, text: &[u8]| {
            // SAFETY: a name that ends with a zero byte, and a live text; the descriptor is closed at once.
            unsafe {
                let fd = libc::open(file.as_ptr(), libc::O_WRONLY);
                let put = libc::write(fd, text.as_ptr().cast(), text.len()) == text.len() as isize;
                libc::close(fd);
                put
            }
        };
        // SAFETY: no pointers.
        unsafe {
            if libc::unshare(libc::CLONE_NEWUSER) != 0 {
                return 2;
            }
            let mapped = put(c"/proc/self/setgroups", b"deny") && put(c"/proc/self/uid_map", b"0 0 1");
            if !mapped || libc::geteuid() != 0 {
                return 3;
            }
        }
        i32::from(give_up_privileges().is_ok())
    }

    #[test]
    fn root_keeps_nothing_that_is_not_its_own() {
        if !geteuid().is_root() {
            return println!("skipped root_keeps_nothing_that_is_not_its_own: it takes root");
        }
        assert_eq!(child(given_up_as_root), 0, "1 set-up, 2 groups, 4 users, 8 own group, 16 ambient");
        match child(kept_where_groups_stay) {
            2 => println!("skipped the second half: no user namespaces"),
            wrong => assert_eq!(wrong, 0, "1 it goes on with its groups, 3 set-up"),
        }
    }

    #[test]
    fn the_world_that_this_process_is_in_is_no_other() {
        assert!(ProcessNamespaces::of(std::process::id()).is_none());
    }
}
