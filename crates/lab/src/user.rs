//! Users with whose rights a command runs.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, OsString};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::namespace::on_a_thread;
use crate::system_call::checked;
use crate::{LabError, Result};

/// A user of this machine's user database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    name: OsString,
    home: OsString,
    shell: OsString,
    uid: u32,
    gid: u32,
    groups: Vec<libc::gid_t>,
}

impl User {
    /// Finds a user by name or number.
    ///
    /// # Errors
    /// If there is none.
    pub fn find(name: &str) -> Result<Self> {
        let unknown = || LabError::UnknownUser(name.to_owned());
        let text = CString::new(name).map_err(|_| unknown())?;
        let mut found = look_up(|entry, buffer, result| {
            // SAFETY: the name ends with a zero byte; entry, buffer and result are live.
            unsafe {
                libc::getpwnam_r(text.as_ptr(), entry, buffer.as_mut_ptr().cast(), buffer.len(), result)
            }
        });
        if let (None, Ok(uid)) = (&found, name.parse()) {
            found = look_up(|entry, buffer, result| {
                // SAFETY: as above.
                unsafe { libc::getpwuid_r(uid, entry, buffer.as_mut_ptr().cast(), buffer.len(), result) }
            });
        }
        found.ok_or_else(unknown)
    }

    /// Its shell, if the database names one.
    #[must_use]
    pub fn shell(&self) -> Option<&OsString> {
        Some(&self.shell).filter(|shell| !shell.is_empty())
    }

    /// Runs `f` with this user's rights to files, which are the user's if `f` makes them, on a new thread.
    ///
    /// # Errors
    /// Those of `f`, or if this process may not change its user.
    pub fn with_rights_to_files<R: Send>(&self, f: impl FnOnce() -> io::Result<R> + Send) -> io::Result<R> {
        /// What setfsuid(2) changes nothing with, and returns the current one.
        const NONE: u32 = u32::MAX;
        on_a_thread(|| {
            // SAFETY: the list of groups is live and of the length given. They are direct calls, which affect
            // this thread only; it ends with the closure. Other identities stay, so that the user can't send
            // it signals; the kernel takes root's capabilities to files away.
            let now = unsafe {
                checked(libc::syscall(libc::SYS_setgroups, self.groups.len(), self.groups.as_ptr()))?;
                libc::syscall(libc::SYS_setfsgid, self.gid);
                libc::syscall(libc::SYS_setfsuid, self.uid);
                [libc::syscall(libc::SYS_setfsgid, NONE), libc::syscall(libc::SYS_setfsuid, NONE)]
            };
            if now != [self.gid, self.uid].map(libc::c_long::from) {
                return Err(io::ErrorKind::PermissionDenied.into());
            }
            f()
        })
    }

    /// Makes a command run as this user, with all its groups and environment variables. What must be done as
    /// root comes before.
    pub fn take_over(&self, command: &mut Command) {
        for (variable, value) in
            [("USER", &self.name), ("LOGNAME", &self.name), ("HOME", &self.home), ("SHELL", &self.shell)]
        {
            command.env(variable, value);
        }
        let (uid, gid, groups) = (self.uid, self.gid, self.groups.clone());
        // SAFETY: between fork and exec the closure only makes system calls, on existing values. They are
        // direct calls: the C library's would affect other threads.
        unsafe {
            command.pre_exec(move || {
                checked(libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr()))?;
                checked(libc::syscall(libc::SYS_setresgid, gid, gid, gid))?;
                checked(libc::syscall(libc::SYS_setresuid, uid, uid, uid)).map(drop)
            });
        }
    }
}

/// Queries the database, with a buffer large enough for the answer.
fn look_up(
    ask: impl Fn(*mut libc::passwd, &mut [u8], *mut *mut libc::passwd) -> libc::c_int,
) -> Option<User> {
    const MOST: usize = 1 << 20;
    let mut buffer = vec![0; 1024];
    loop {
        // SAFETY: an all-zero entry is valid memory to be filled.
        let mut entry: libc::passwd = unsafe { std::mem::zeroed() };
        let mut result = std::ptr::null_mut();
        match ask(&raw mut entry, &mut buffer, &raw mut result) {
            libc::ERANGE if buffer.len() < MOST => buffer.resize(2 * buffer.len(), 0),
            0 if !result.is_null() => {
                let text = |text: *const libc::c_char| match text.is_null() {
                    true => OsString::new(),
                    // SAFETY: strings of a found entry are zero-terminated and in the live buffer.
                    false => OsString::from_vec(unsafe { CStr::from_ptr(text) }.to_bytes().to_vec()),
                };
                return Some(User {
                    groups: groups_of(entry.pw_name, entry.pw_gid),
                    name: text(entry.pw_name),
                    home: text(entry.pw_dir),
                    shell: text(entry.pw_shell),
                    uid: entry.pw_uid,
                    gid: entry.pw_gid,
                });
            }
            _ => return None,
        }
    }
}

/// All groups of a user.
fn groups_of(name: *const libc::c_char, gid: libc::gid_t) -> Vec<libc::gid_t> {
    // The kernel's limit, NGROUPS_MAX.
    const MOST: libc::c_int = 65_536;
    let mut groups = vec![gid; 64];
    loop {
        let mut count = groups.len() as libc::c_int;
        // SAFETY: the name ends with a zero byte, and there is room for `count` groups.
        let got = unsafe { libc::getgrouplist(name, gid, groups.as_mut_ptr(), &raw mut count) };
        let known = usize::try_from(count).unwrap_or(0);
        if got >= 0 || count >= MOST {
            groups.truncate(known);
            return groups;
        }
        groups.resize(known.max(2 * groups.len()), gid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_name_and_by_number() {
        let root = User::find("root").unwrap();
        assert_eq!((root.uid, root.gid, &*root.home), (0, 0, "/root".as_ref()));
        assert!(root.groups.contains(&0), "{root:?}");
        assert_eq!(User::find("0").unwrap(), root);
        for name in ["no-such-user-here", "", "4294967295", "a\0b"] {
            let error = User::find(name).unwrap_err().to_string();
            assert!(error.contains("there is no user"), "{error}");
        }
    }
}
