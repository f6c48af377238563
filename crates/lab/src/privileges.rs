//! What a command keeps of root's capabilities (capabilities(7)).
//!
//! Capabilities are a thread's own, and pass to the threads that it starts. So they are given up before the
//! second thread, which is before anything is attached: what attaching takes is needed again whenever an
//! interface returns or a host is added.

use std::io;

use rustix::process::geteuid;
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_no_new_privs};

/// Links, addresses, filters, packet sockets and TAP devices; network and mount namespaces; low ports, for
/// relays and the API.
const NETWORK: CapabilitySet = CapabilitySet::NET_ADMIN
    .union(CapabilitySet::NET_RAW)
    .union(CapabilitySet::NET_BIND_SERVICE)
    .union(CapabilitySet::SYS_ADMIN);
/// Programs in hosts, which may be other users': finding and ending them.
const PROCESSES: CapabilitySet = CapabilitySet::KILL.union(CapabilitySet::SYS_PTRACE);
/// Scenarios, traces and outputs in folders of whoever called sudo, also those opened later.
const FILES: CapabilitySet = CapabilitySet::DAC_OVERRIDE;
/// The memory of AF_XDP, which some kernels limit as locked memory, and more descriptors than usual.
const RESOURCES: CapabilitySet = CapabilitySet::IPC_LOCK.union(CapabilitySet::SYS_RESOURCE);
/// Programs of another user, and later files of a log that belongs to whoever called sudo.
const USERS: CapabilitySet = CapabilitySet::SETUID.union(CapabilitySet::SETGID).union(CapabilitySet::CHOWN);

/// What a command does until it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandRole {
    /// It carries packets, and starts no program.
    Carries,
    /// It carries packets, starts no program, and gives its socket to a group.
    ServesGroup,
    /// It carries packets for a program that it starts, which keeps all rights of the caller.
    StartsProgram,
}

impl CommandRole {
    const fn needed(self) -> CapabilitySet {
        let all = NETWORK.union(PROCESSES).union(FILES).union(RESOURCES);
        match self {
            Self::Carries => all,
            Self::ServesGroup => all.union(CapabilitySet::CHOWN),
            Self::StartsProgram => all.union(USERS),
        }
    }
}

/// Gives up what root may do beyond a duty, in the calling thread and all that it starts. With no program
/// to start, it is for good: none that it might be made to run gets more. Else a program that root starts
/// has all of root's rights again. Ordinary users have nothing to give up.
///
/// # Errors
/// When the kernel refuses.
pub fn keep_for(duty: CommandRole) -> io::Result<()> {
    if !geteuid().is_root() {
        return Ok(());
    }
    let held = capabilities(None)?;
    let needed = duty.needed();
    let kept = CapabilitySets {
        effective: held.effective & needed,
        permitted: held.permitted & needed,
        inheritable: held.inheritable & needed,
    };
    set_capabilities(None, kept)?;
    if duty != CommandRole::StartsProgram {
        set_no_new_privs(true)?;
    }
    Ok(())
}
