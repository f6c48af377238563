//! Abilities of this process on this system. Each is tried, in a separate namespace or process that ends at
//! once, rather than guessed.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;

use longwire_netlink::{LinkSettings, Socket, link};
use rustix::io::Errno;
use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::process::{Pid, WaitOptions, geteuid, waitpid};
use rustix::thread::{CapabilitySet, UnshareFlags, capabilities};
use serde::Serialize;

use crate::firewall;
use crate::namespace::{on_a_thread, unshare};
use crate::user_namespace::refused;

/// Whether something is possible, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Ability {
    /// Whether it is possible.
    pub available: bool,
    /// Why, or why not and how to fix it.
    pub reason: String,
}

impl Ability {
    fn of(result: Result<&str, String>) -> Self {
        match result {
            Ok(reason) => Self { available: true, reason: reason.to_owned() },
            Err(reason) => Self { available: false, reason },
        }
    }
}

/// Abilities of this process on this system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Abilities {
    /// Being root, here or in a user namespace.
    pub root: Ability,
    /// Creating network namespaces connected by veth pairs, with the present privileges.
    pub namespaces: Ability,
    /// Creating them inside a user namespace; see [`crate::enter_user_namespace`].
    pub user_namespaces: Ability,
    /// Creating TAP devices in a network namespace, with the present privileges; see [`taps`].
    pub tap: Ability,
    /// Translating addresses with the kernel's nf_tables, for `exec` to this machine's network.
    pub nft: Ability,
}

/// Whether this process has the capabilities to create hosts: a cheap check. [`abilities`] tries it, and
/// reports what prevents it.
#[must_use]
pub fn may_make_hosts() -> bool {
    let needed = CapabilitySet::SYS_ADMIN | CapabilitySet::NET_ADMIN;
    capabilities(None).is_ok_and(|held| held.effective.contains(needed))
}

/// Whether this process has the capabilities to run a command as another user.
#[must_use]
pub fn may_change_user() -> bool {
    let needed = CapabilitySet::SETUID | CapabilitySet::SETGID;
    capabilities(None).is_ok_and(|held| held.effective.contains(needed))
}

/// Whether hosts can be wired by TAP devices, that is, whether this process can open /dev/net/tun.
#[must_use]
pub fn taps() -> Ability {
    Ability::of(try_tap())
}

/// Tries what this process may do. Takes a few milliseconds and leaves nothing behind.
#[must_use]
pub fn abilities() -> Abilities {
    let root = geteuid().is_root().then_some("the effective user is root");
    Abilities {
        root: Ability::of(root.ok_or_else(|| "not root; try sudo".to_owned())),
        namespaces: Ability::of(try_namespaces()),
        user_namespaces: Ability::of(try_user_namespace()),
        tap: taps(),
        nft: Ability::of(try_nft()),
    }
}

/// Runs `f` in a network namespace that ends with it.
pub(crate) fn in_a_new_namespace<R: Send>(f: impl FnOnce() -> io::Result<R> + Send) -> io::Result<R> {
    on_a_thread(|| {
        // Changes this thread only, which ends with the closure.
        unshare(UnshareFlags::NEWNET)?;
        f()
    })
}

fn try_namespaces() -> Result<&'static str, String> {
    let end = |name| LinkSettings { name: Some(name), ..LinkSettings::default() };
    in_a_new_namespace(|| Ok(Socket::route()?.request(link::new_veth(&end("a"), &end("b")))))
        .map_err(|e| format!("a network namespace can't be made: {e}; run as root"))?
        .map_err(|e| format!("a veth pair can't be made: {e}; the kernel's module `veth` may be missing"))?;
    Ok("a namespace and a veth pair were made")
}

fn try_user_namespace() -> Result<&'static str, String> {
    // A process with several threads can't enter one, but its child, with one thread, can. rustix has no
    // fork. SAFETY: the child only makes system calls, and ends without running code of the parent.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let all = UnshareFlags::NEWUSER | UnshareFlags::NEWNET | UnshareFlags::NEWNS;
        let private = MountPropagationFlags::REC | MountPropagationFlags::DOWNSTREAM;
        // Some systems allow the namespace but nothing inside it.
        let tried = unshare(all).and_then(|()| mount_change(c"/", private));
        // SAFETY: ends the child at once, which has nothing to clean up.
        unsafe { libc::_exit(tried.map_or_else(Errno::raw_os_error, |()| 0)) };
    }
    let child = Some(child).filter(|child| *child > 0).and_then(Pid::from_raw);
    let ended = child.and_then(|child| waitpid(Some(child), WaitOptions::empty()).ok()?);
    let code = ended.and_then(|(_, status)| status.exit_status()).unwrap_or(libc::EAGAIN);
    if code == 0 {
        return Ok("one was made");
    }
    Err(refused(io::Error::from_raw_os_error(code)).to_string())
}

/// Opens the device that creates TAP devices. None is created: removing it takes the kernel tens of
/// milliseconds, and whoever may create hosts may create one in their namespaces.
fn try_tap() -> Result<&'static str, String> {
    const DEVICE: &str = "/dev/net/tun";
    if !may_make_hosts() {
        return Err("this process may not make network interfaces; run as root".to_owned());
    }
    File::options().read(true).write(true).open(DEVICE).map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => format!("{DEVICE} is not there; `modprobe tun`"),
        _ => format!("{DEVICE} can't be opened: {e}; run as root, or let this user read and write it"),
    })?;
    Ok("/dev/net/tun can be opened")
}

fn try_nft() -> Result<&'static str, String> {
    in_a_new_namespace(|| Ok(firewall::probe()))
        .map_err(|e| format!("not tried, as a network namespace can't be made: {e}"))?
        .map_err(|e| {
            format!("the kernel refuses a table: {e}; its module `nf_tables` or `nft_masq` may be missing")
        })?;
    Ok("a table was made")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ability_has_its_reason() {
        let a = abilities();
        for ability in [&a.root, &a.namespaces, &a.user_namespaces, &a.tap, &a.nft] {
            assert!(!ability.reason.is_empty());
        }
        // A second try has the same results: nothing was used up or left behind.
        assert_eq!(a, abilities());
        println!("{a:#?}");
    }
}
