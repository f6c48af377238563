//! Restricts programs in the machine's network to one address: sockets that would listen on every address
//! listen only there.
//!
//! They are in a control group (cgroups(7), version 2) with two attached BPF programs, which the kernel runs
//! at each `bind(2)` and detaches when their descriptors are closed.
#![allow(unsafe_code)]

use std::fs::{self, File, OpenOptions};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::bpf::{Instruction, Kind, instruction, link, load};

/// Prefix of the groups' names.
const PREFIX: &str = "longwire-";
const INET4_BIND: u32 = 8;
const INET6_BIND: u32 = 9;
/// Offsets of addresses in `struct bpf_sock_addr`.
const USER_IP4: i16 = 4;
const USER_IP6: i16 = 8;

/// A control group whose members listen on one address instead of all.
#[derive(Debug)]
pub struct BindGuard {
    group: PathBuf,
    members: File,
    _links: [OwnedFd; 2],
}

impl BindGuard {
    /// Creates the group `name`, whose members listen on `address`.
    ///
    /// # Errors
    /// If there are no control groups of version 2, or the kernel refuses.
    pub fn new(name: &str, address: Ipv4Addr) -> io::Result<Self> {
        let parent = own_group()?;
        let group = parent.join(format!("{PREFIX}{name}"));
        fs::create_dir(&group)?;
        Self::attach(&group, address).inspect_err(|_| drop(fs::remove_dir(&group)))
    }

    fn attach(group: &Path, address: Ipv4Addr) -> io::Result<Self> {
        let folder = File::open(group)?;
        let address = u32::from_ne_bytes(address.octets());
        let target = folder.as_raw_fd().cast_unsigned();
        let attach =
            |place, code: &[Instruction]| link(&load(Kind::SocketAddress, place, code)?, target, place);
        let links = [attach(INET4_BIND, &bind4(address))?, attach(INET6_BIND, &bind6(address))?];
        let members = OpenOptions::new().write(true).open(group.join("cgroup.procs"))?;
        Ok(Self { group: group.into(), members, _links: links })
    }

    /// Makes a command join the group before it runs.
    ///
    /// # Errors
    /// If this process is out of file descriptors.
    pub fn admit(&self, command: &mut Command) -> io::Result<()> {
        let members = self.members.as_fd().try_clone_to_owned()?;
        // SAFETY: between fork and exec the closure makes one system call, on existing values.
        unsafe {
            command.pre_exec(move || {
                // "0" is the process that writes.
                rustix::io::write(&members, b"0")?;
                Ok(())
            });
        }
        Ok(())
    }
}

impl Drop for BindGuard {
    /// Removes the group if it is empty, as it is when its services have ended; a leftover one has no effect.
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.group);
    }
}

/// Removes empty groups left by killed runs beside this process's own.
pub fn sweep() {
    let Ok(parent) = own_group() else { return };
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process =
            name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.rsplit_once('-')?.1.parse::<u32>().ok());
        if process.is_some_and(|id| !Path::new(&format!("/proc/{id}")).exists()) {
            // The kernel keeps a group that has members.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// The control group of this process in the hierarchy of version 2.
fn own_group() -> io::Result<PathBuf> {
    let missing = || io::Error::new(io::ErrorKind::NotFound, "control groups of version 2 are not mounted");
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    let groups = fs::read_to_string("/proc/self/cgroup")?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/")).ok_or_else(missing)?;
    Ok(Path::new(mount_point(&mounts).ok_or_else(missing)?).join(own))
}

/// The mount point of the whole hierarchy of version 2 (proc_pid_mountinfo(5)).
fn mount_point(mounts: &str) -> Option<&str> {
    mounts.lines().find_map(|line| {
        let (mount, system) = line.split_once(" - ")?;
        let mut fields = mount.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        (system.starts_with("cgroup2 ") && root == "/").then_some(point)
    })
}

/// r2 = the word of the context at `offset`.
const fn read_word(offset: i16) -> Instruction {
    instruction(0x61, 0x12, offset, 0)
}

/// Skips `distance` instructions if r2 is not 0.
const fn skip_unless_zero(distance: i16) -> Instruction {
    instruction(0x55, 0x02, distance, 0)
}

/// Sets the word of the context at `offset` to `word`.
const fn write_word(offset: i16, word: u32) -> [Instruction; 2] {
    // r2 = word, 32 bits; then the store.
    [instruction(0xb4, 0x02, 0, word), instruction(0x63, 0x21, offset, 0)]
}

/// r0 = 1, exit: `bind` continues.
const ALLOW: [Instruction; 2] = [instruction(0xb7, 0x00, 0, 1), instruction(0x95, 0x00, 0, 0)];

/// 0.0.0.0 becomes the address.
fn bind4(address: u32) -> Vec<Instruction> {
    let write = write_word(USER_IP4, address);
    [&[read_word(USER_IP4), skip_unless_zero(2)][..], &write, &ALLOW].concat()
}

/// `::` becomes the address in its IPv6 form, ::ffff:a.b.c.d (RFC 4291 section 2.5.5.2).
fn bind6(address: u32) -> Vec<Instruction> {
    let words = [0, 4, 8, 12].map(|at| USER_IP6 + at);
    let mut code = Vec::new();
    for (at, offset) in words.into_iter().enumerate() {
        // Skips the other comparisons and the four instructions that write.
        let rest = 2 * (words.len() - 1 - at) + 4;
        code.extend([read_word(offset), skip_unless_zero(rest as i16)]);
    }
    code.extend(write_word(words[2], 0xffff_u32.to_be()));
    code.extend(write_word(words[3], address));
    code.extend(ALLOW);
    code
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn the_hierarchy_is_found_by_its_kind() {
        let mounts = "26 24 0:22 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n\
            27 24 0:23 /part /mnt rw - cgroup2 cgroup2 rw\n\
            28 24 0:23 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
        assert_eq!(mount_point(mounts), Some("/sys/fs/cgroup/unified"));
        assert_eq!(mount_point("26 24 0:22 / / rw - ext4 /dev/vda rw\n"), None);
    }

    #[test]
    fn every_jump_leads_to_the_end_of_the_writes() {
        for code in [bind4(1), bind6(1)] {
            let jumps = code.iter().enumerate().filter(|(_, i)| i.opcode == 0x55);
            for (at, jump) in jumps {
                assert_eq!(at + 1 + jump.offset as usize, code.len() - 2);
            }
        }
    }

    /// Makes a copy of this test program print where it listens.
    const LISTEN: &str = "LONGWIRE_TEST_LISTEN";

    /// Not a test: runs inside the group.
    #[test]
    fn says_where_it_listens() {
        if std::env::var_os(LISTEN).is_none() {
            return;
        }
        for asked in ["0.0.0.0:0", "[::]:0", "127.0.0.1:0"] {
            println!("asked {asked} has {}", TcpListener::bind(asked).unwrap().local_addr().unwrap().ip());
        }
    }

    #[test]
    fn members_listen_on_one_address() {
        let can = crate::abilities();
        let own = own_group();
        let Some(_) = own.as_ref().ok().filter(|_| can.root.available) else {
            println!("skipped members_listen_on_one_address: {} {own:?}", can.root.reason);
            return;
        };
        let guard =
            BindGuard::new(&format!("test-{}", std::process::id()), Ipv4Addr::new(127, 0, 0, 9)).unwrap();
        let bound = |guard: Option<&BindGuard>| {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command
                .args(["--exact", "bind_guard::tests::says_where_it_listens", "--nocapture"])
                .env(LISTEN, "1");
            guard.inspect(|guard| guard.admit(&mut command).unwrap());
            let text = String::from_utf8(command.output().unwrap().stdout).unwrap();
            let addresses = text.lines().filter_map(|line| Some(line.split_once(" has ")?.1.to_owned()));
            addresses.collect::<Vec<_>>()
        };
        assert_eq!(bound(Some(&guard)), ["127.0.0.9", "::ffff:127.0.0.9", "127.0.0.1"]);
        assert_eq!(bound(None), ["0.0.0.0", "::", "127.0.0.1"]);
        let group = guard.group.clone();
        drop(guard);
        assert!(!group.exists());
    }
}
