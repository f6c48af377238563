//! Restricts programs in the machine's network to the far end: sockets that would listen on every address
//! listen only at its addresses.
//!
//! A socket can be bound to one address or to all. One for both versions that would listen on every address
//! keeps that, and is bound to the link's interface instead, with a filter for the far end's two addresses.
//!
//! A seccomp filter (seccomp(2)) makes their calls of `bind` and `listen` wait for a thread of this process
//! (seccomp_unotify(2)), which binds a duplicate of the socket. That takes no control group, whose files many
//! containers can't write. It keeps programs that mean no harm from listening elsewhere; one that changes an
//! address while it waits has all rights that it needs to do worse. Sockets of other networks, such as of a
//! container that a program starts, are left alone.
#![allow(unsafe_code)]

use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::sockopt::{ipv6_v6only, socket_domain};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, socketpair};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use rustix::thread::{CapabilitySet, capabilities};

use crate::descriptor;
use crate::namespace::NamespaceId;
use crate::socket_option::bind_to_interface;
use crate::system_call::checked;

/// `AUDIT_ARCH_…` of linux/audit.h: how calls of this program's architecture are marked.
const ARCHITECTURE: u32 = if cfg!(target_arch = "x86_64") {
    0xc000_003e
} else if cfg!(target_arch = "aarch64") {
    0xc000_00b7
} else {
    0xc000_00f3
};
/// The bit of calls with the second numbering of x86-64, x32.
const X32: u32 = 0x4000_0000;
/// Offsets in `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;
/// CAP_NET_BIND_SERVICE, as a bit of `/proc/PID/status`.
const LOW_PORTS: u64 = 1 << 10;

/// Where programs may listen instead of everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BindGuard {
    /// By IPv4; without IPv6 sockets for both versions listen only there, too.
    pub v4: Ipv4Addr,
    /// By IPv6, for sockets that take nothing else. Without one, these can't be bound to every address.
    pub v6: Option<FarIpv6>,
}

/// The far end of IPv6.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FarIpv6 {
    /// Its address.
    pub address: Ipv6Addr,
    /// The index of the link's interface.
    pub interface: u32,
}

/// A command that starts a restricted program, until it has been started.
#[derive(Debug)]
pub struct GuardedCommand {
    guard: BindGuard,
    /// The network that is restricted: that of the thread that restricts the command.
    network: NamespaceId,
    line: OwnedFd,
}

impl BindGuard {
    /// Restricts a command, and whatever it starts, in this thread's network. [`GuardedCommand::started`]
    /// must follow.
    ///
    /// # Errors
    /// If this process may not look into others, or is out of file descriptors, or `/proc` isn't mounted.
    pub fn restrict(self, command: &mut Command) -> io::Result<GuardedCommand> {
        if !capabilities(None)?.effective.contains(CapabilitySet::SYS_PTRACE) {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "CAP_SYS_PTRACE is missing"));
        }
        let (line, its) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        let network = NamespaceId::at(Path::new("/proc/thread-self/ns/net"))?;
        let filter = filter();
        // SAFETY: between fork and exec the closure only makes system calls, on existing values.
        unsafe {
            command.pre_exec(move || {
                let filtered = install(&filter);
                hand_over(&its, filtered.as_ref())?;
                filtered.map(drop)
            });
        }
        Ok(GuardedCommand { guard: self, network, line })
    }
}

impl GuardedCommand {
    /// Answers the program's calls from now on, until it and all that it has started have ended.
    ///
    /// # Errors
    /// If the kernel has refused the filter, or no thread can be started.
    pub fn started(self) -> io::Result<()> {
        let calls = received(&self.line)?;
        let thread = std::thread::Builder::new().name("bind-guard".to_owned());
        thread.spawn(move || self.answer_all(&calls)).map(drop)
    }

    /// Why the kernel refused the filter, if it did: the command was not started then.
    pub fn refusal(&self) -> Option<io::Error> {
        received(&self.line).err().filter(|error| error.kind() != io::ErrorKind::WouldBlock)
    }
}

/// The filter: `bind` and `listen` wait. `io_uring` could bind too, and does not exist here. Calls of another
/// architecture have other numbers, so that programs that make some are ended.
fn filter() -> Vec<libc::sock_filter> {
    let load = |offset| step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset);
    let number = |call: libc::c_long| call as u32;
    vec![
        load(ARCH),
        equal(ARCHITECTURE, 1, 0),
        end(libc::SECCOMP_RET_KILL_PROCESS),
        load(NUMBER),
        step(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, !X32),
        equal(number(libc::SYS_bind), 3, 0),
        equal(number(libc::SYS_listen), 2, 0),
        equal(number(libc::SYS_io_uring_setup), 2, 0),
        end(libc::SECCOMP_RET_ALLOW),
        end(libc::SECCOMP_RET_USER_NOTIF),
        end(libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32),
    ]
}

/// An instruction of a filter.
fn step(code: u32, k: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: 0, jf: 0, k }
}

/// Skips `jt` instructions if the loaded value is this one, `jf` if not.
fn equal(value: u32, jt: u8, jf: u8) -> libc::sock_filter {
    libc::sock_filter { jt, jf, ..step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, value) }
}

fn end(verdict: u32) -> libc::sock_filter {
    step(libc::BPF_RET | libc::BPF_K, verdict)
}

/// A filter as the kernel takes it, while its instructions live.
fn program(filter: &[libc::sock_filter]) -> libc::sock_fprog {
    libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() }
}

/// Installs the filter in the calling thread, for whatever it executes and starts; the result is the
/// descriptor at which the calls are received. Safe between fork and exec.
fn install(filter: &[libc::sock_filter]) -> io::Result<OwnedFd> {
    let program = program(filter);
    // A signal must not restart a call that is being answered.
    let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    // SAFETY: the program outlives the call, which only reads it; the result is a new descriptor.
    unsafe {
        let installed =
            libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program);
        checked(installed).map(|fd| OwnedFd::from_raw_fd(fd as libc::c_int))
    }
}

/// Sends the descriptor, or the number of the error. Safe between fork and exec.
fn hand_over(line: &OwnedFd, filtered: Result<&OwnedFd, &io::Error>) -> io::Result<()> {
    let number = filtered.err().and_then(io::Error::raw_os_error).unwrap_or_default().to_ne_bytes();
    descriptor::send(line, &number, filtered.ok().map(AsFd::as_fd))
}

/// Receives the descriptor. Nothing is there before the command was started, and does not wait.
fn received(line: &OwnedFd) -> io::Result<OwnedFd> {
    let mut number = [0; 4];
    let fd = descriptor::receive(line, &mut number, RecvFlags::DONTWAIT)?;
    fd.ok_or_else(|| io::Error::from_raw_os_error(i32::from_ne_bytes(number)))
}

/// What a waiting call is to return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// What the kernel says.
    OfKernel,
    /// 0: it was done here.
    Done,
}

impl GuardedCommand {
    /// Answers calls until nobody is left who could make one.
    fn answer_all(&self, calls: &OwnedFd) {
        loop {
            let mut polls = [PollFd::new(calls, PollFlags::IN)];
            // A signal wakes it with nothing to read.
            let _ = poll(&mut polls, None);
            let ready = polls[0].revents();
            if ready.intersects(PollFlags::HUP | PollFlags::ERR) {
                return;
            }
            if !ready.contains(PollFlags::IN) {
                continue;
            }
            // SAFETY: all-zero memory, which the kernel requires and fills; it outlives the call.
            let mut call: libc::seccomp_notif = unsafe { std::mem::zeroed() };
            // SAFETY: as above.
            if unsafe { libc::ioctl(calls.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut call) } < 0 {
                // The caller has been killed meanwhile.
                continue;
            }
            let answer = self.answer(calls, &call);
            let response = libc::seccomp_notif_resp {
                id: call.id,
                val: 0,
                error: answer.as_ref().err().map_or(0, |errno| -errno.raw_os_error()),
                flags: match answer {
                    Ok(Answer::OfKernel) => libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32,
                    _ => 0,
                },
            };
            // SAFETY: the response outlives the call. One whose caller has been killed is not needed.
            unsafe { libc::ioctl(calls.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw const response) };
        }
    }

    /// Makes a call of `bind` or `listen` in the place of the one who waits in it, if it concerns an address
    /// of the Internet.
    fn answer(&self, calls: &OwnedFd, call: &libc::seccomp_notif) -> Result<Answer, Errno> {
        let [fd, address, length, ..] = call.data.args;
        let caller = Caller::of(call.pid).ok_or(Errno::SRCH)?;
        let socket = caller.descriptor(fd as libc::c_int)?;
        let domain = match socket_domain(&socket) {
            Ok(domain @ (AddressFamily::INET | AddressFamily::INET6)) => domain,
            // The kernel has the right error for what is no socket.
            _ => return Ok(Answer::OfKernel),
        };
        if NamespaceId::of_socket(&socket).is_ok_and(|its| its != self.network) {
            return Ok(Answer::OfKernel);
        }
        let listens = libc::c_long::from(call.data.nr) & !libc::c_long::from(X32) == libc::SYS_listen;
        let mut asked = SocketAddress::default();
        if listens {
            if is_bound(&socket) {
                return Ok(Answer::OfKernel);
            }
            asked = SocketAddress::everywhere(domain);
        } else if !caller.read(address, asked.room(length)) {
            return Err(Errno::FAULT);
        }
        if caller.may_not_have(asked.port()) {
            return Err(Errno::ACCESS);
        }
        // Whoever has got the number of one that has ended must not be taken for it.
        // SAFETY: the number outlives the call.
        unsafe {
            let valid =
                libc::ioctl(calls.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &raw const call.id);
            if valid < 0 {
                return Err(Errno::SRCH);
            }
        }
        if asked.is_everywhere(domain) {
            self.bind_at_far_end(&socket, domain, asked)?;
        } else {
            asked.bind(&socket)?;
        }
        Ok(if listens { Answer::OfKernel } else { Answer::Done })
    }

    /// Binds a socket that is to listen on every address.
    fn bind_at_far_end(
        &self,
        socket: &OwnedFd,
        domain: AddressFamily,
        mut asked: SocketAddress,
    ) -> Result<(), Errno> {
        let only_v6 = domain == AddressFamily::INET6 && ipv6_v6only(socket)?;
        let to = match self.guard.v6 {
            Some(v6) if only_v6 => v6.address,
            None if only_v6 => return Err(Errno::ADDRNOTAVAIL),
            Some(v6) if asked.is_of_both_versions(domain) => {
                let restricted = bind_to_interface(socket, v6.interface)
                    .and_then(|()| take_only_packets_to(socket, self.guard.v4, v6.address));
                if restricted.is_ok() && asked.bind(socket).is_ok() {
                    return Ok(());
                }
                // Another program of the machine has the port, at an address of its own.
                let _ = bind_to_interface(socket, 0);
                self.guard.v4.to_ipv6_mapped()
            }
            _ => self.guard.v4.to_ipv6_mapped(),
        };
        asked.move_to(domain, to);
        asked.bind(socket)
    }
}

/// Has a socket take only packets to one of these addresses, by a filter of its own.
fn take_only_packets_to(socket: &OwnedFd, v4: Ipv4Addr, v6: Ipv6Addr) -> io::Result<()> {
    /// `SKF_NET_OFF` of linux/filter.h: offsets from the network header.
    const NETWORK_HEADER: u32 = -0x10_0000_i32 as u32;
    let load = |size, offset| step(libc::BPF_LD | size | libc::BPF_ABS, NETWORK_HEADER + offset);
    let word = |at: usize| u32::from_be_bytes(std::array::from_fn(|byte| v6.octets()[4 * at + byte]));
    let code = [
        load(libc::BPF_B, 0),
        step(libc::BPF_ALU | libc::BPF_RSH | libc::BPF_K, 4),
        equal(4, 0, 2),
        load(libc::BPF_W, 16),
        equal(u32::from(v4), 8, 9),
        load(libc::BPF_W, 24),
        equal(word(0), 0, 7),
        load(libc::BPF_W, 28),
        equal(word(1), 0, 5),
        load(libc::BPF_W, 32),
        equal(word(2), 0, 3),
        load(libc::BPF_W, 36),
        equal(word(3), 0, 1),
        end(u32::MAX),
        end(0),
    ];
    let program = program(&code);
    let (value, length) = ((&raw const program).cast(), size_of_val(&program) as libc::socklen_t);
    let (socket, option) = (socket.as_raw_fd(), libc::SO_ATTACH_FILTER);
    // SAFETY: the program outlives the call, which copies it.
    let attached = unsafe { libc::setsockopt(socket, libc::SOL_SOCKET, option, value, length) };
    checked(attached).map(drop)
}

/// A thread that waits in a call.
struct Caller {
    memory: File,
    /// Its process.
    process: Pid,
    /// Whether it may use ports of the system's services, by rights outside user namespaces of its own.
    has_low_ports: bool,
}

impl Caller {
    fn of(thread: u32) -> Option<Self> {
        let status = fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.map(str::trim)
        };
        let users = |of: &str| NamespaceId::at(Path::new(&format!("/proc/{of}/ns/user"))).ok();
        let is_in_own = users(&thread.to_string()) != users("self");
        Some(Self {
            memory: File::open(format!("/proc/{thread}/mem")).ok()?,
            process: Pid::from_raw(field("Tgid:")?.parse().ok()?)?,
            has_low_ports: !is_in_own && u64::from_str_radix(field("CapEff:")?, 16).ok()? & LOW_PORTS != 0,
        })
    }

    /// A duplicate of a descriptor.
    fn descriptor(&self, number: libc::c_int) -> Result<OwnedFd, Errno> {
        pidfd_getfd(pidfd_open(self.process, PidfdFlags::empty())?, number, PidfdGetfdFlags::empty())
    }

    /// Reads its memory; false if there is none.
    fn read(&self, address: u64, to: &mut [u8]) -> bool {
        self.memory.read_exact_at(to, address).is_ok()
    }

    /// Whether it is refused a port that this process might have.
    fn may_not_have(&self, port: u16) -> bool {
        let first = fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start");
        let first = first.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(1024);
        port != 0 && port < first && !self.has_low_ports
    }
}

/// An address as `bind` takes it: `struct sockaddr_in` or `sockaddr_in6`, as far as it was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct SocketAddress {
    bytes: [u8; size_of::<libc::sockaddr_in6>()],
    length: usize,
}

/// Offsets in both structures, and the lengths of addresses.
const PORT: usize = 2;
const ADDRESS_V4: std::ops::Range<usize> = 4..8;
const ADDRESS_V6: std::ops::Range<usize> = 8..24;

impl SocketAddress {
    /// Every address, and any port.
    fn everywhere(domain: AddressFamily) -> Self {
        let mut own = Self::default();
        own.room(size_of::<libc::sockaddr_in6>() as u64);
        own.bytes[..PORT].copy_from_slice(&domain.as_raw().to_ne_bytes());
        own
    }

    /// Room for an address of this length, of which more than is needed is left out.
    fn room(&mut self, length: u64) -> &mut [u8] {
        self.length = usize::try_from(length).unwrap_or(usize::MAX).min(self.bytes.len());
        &mut self.bytes[..self.length]
    }

    fn place(domain: AddressFamily) -> std::ops::Range<usize> {
        if domain == AddressFamily::INET { ADDRESS_V4 } else { ADDRESS_V6 }
    }

    /// Whether it means every address, for a socket of this domain. Those of IPv4 may leave the family out
    /// (ip(7)), and those of IPv6 mean every address of IPv4 by its form of IPv6, too.
    fn is_everywhere(&self, domain: AddressFamily) -> bool {
        let place = Self::place(domain);
        let family = u16::from_ne_bytes([self.bytes[0], self.bytes[1]]);
        let is_v4 = domain == AddressFamily::INET;
        let fits = family == domain.as_raw() || (is_v4 && family == AddressFamily::UNSPEC.as_raw());
        let own = &self.bytes[place.clone()];
        let mapped = Ipv4Addr::UNSPECIFIED.to_ipv6_mapped().octets();
        fits && self.length >= place.end && (own.iter().all(|byte| *byte == 0) || own == mapped)
    }

    /// Whether it means every address of IPv4 and of IPv6, for a socket of this domain that takes both.
    fn is_of_both_versions(&self, domain: AddressFamily) -> bool {
        domain == AddressFamily::INET6 && self.bytes[ADDRESS_V6].iter().all(|byte| *byte == 0)
    }

    fn move_to(&mut self, domain: AddressFamily, address: Ipv6Addr) {
        let octets = address.octets();
        let place = Self::place(domain);
        self.bytes[..PORT].copy_from_slice(&domain.as_raw().to_ne_bytes());
        // The address of IPv4 is at the end of its form of IPv6.
        self.bytes[place.clone()].copy_from_slice(&octets[octets.len() - place.len()..]);
    }

    fn port(&self) -> u16 {
        u16::from_be_bytes([self.bytes[PORT], self.bytes[PORT + 1]])
    }

    fn bind(&self, socket: &OwnedFd) -> Result<(), Errno> {
        // SAFETY: pointer and length are those of the bytes, which the kernel only reads and checks.
        let done = unsafe {
            libc::bind(socket.as_raw_fd(), self.bytes.as_ptr().cast(), self.length as libc::socklen_t)
        };
        checked(done).map(drop).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::INVAL))
    }
}

/// Whether a socket has a port.
fn is_bound(socket: &OwnedFd) -> bool {
    rustix::net::getsockname(socket)
        .is_ok_and(|own| std::net::SocketAddr::try_from(own).is_ok_and(|own| own.port() != 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};

    /// Makes a copy of this test program print where it listens.
    const LISTEN: &str = "LONGWIRE_TEST_LISTEN";
    const NOBODY: u32 = 65_534;

    /// A socket for IPv6 alone.
    fn only_v6() -> io::Result<OwnedFd> {
        let socket = rustix::net::socket(AddressFamily::INET6, SocketType::STREAM, None)?;
        rustix::net::sockopt::set_ipv6_v6only(&socket, true)?;
        Ok(socket)
    }

    fn ip_of(socket: &OwnedFd) -> io::Result<IpAddr> {
        Ok(SocketAddr::try_from(rustix::net::getsockname(socket)?)?.ip())
    }

    /// Where a socket listens that asks for this.
    fn listening(asked: &str) -> io::Result<IpAddr> {
        match asked {
            "udp" => UdpSocket::bind("0.0.0.0:0")?.local_addr().map(|own| own.ip()),
            "v6 alone" => {
                let socket = only_v6()?;
                rustix::net::bind(&socket, &SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)))?;
                ip_of(&socket)
            }
            "unbound" => {
                let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None)?;
                rustix::net::listen(&socket, 1)?;
                ip_of(&socket)
            }
            "elsewhere" => crate::abilities::in_a_new_namespace(|| {
                TcpListener::bind("0.0.0.0:0")?.local_addr().map(|own| own.ip())
            }),
            "unix" => std::os::unix::net::UnixListener::bind("").map(|_| Ipv4Addr::UNSPECIFIED.into()),
            asked => TcpListener::bind(asked)?.local_addr().map(|own| own.ip()),
        }
    }

    /// Not a test: runs with the restriction, and in a thread that is not the process's first.
    #[test]
    fn says_where_it_listens() {
        let Some(asked) = std::env::var_os(LISTEN) else { return };
        for asked in asked.to_str().unwrap().split(',') {
            match listening(asked) {
                Ok(has) => println!("asked {asked} has {has}"),
                Err(error) => println!("asked {asked} has {:?}", error.kind()),
            }
        }
    }

    /// What a program that asks for these has, without root's rights if it is not root.
    fn has(guard: Option<BindGuard>, asked: &[&str], user: Option<u32>) -> Vec<String> {
        has_by(Command::new(std::env::current_exe().unwrap()), guard, asked, user)
    }

    /// What it has if it is started by this command.
    fn has_by(
        mut command: Command,
        guard: Option<BindGuard>,
        asked: &[&str],
        user: Option<u32>,
    ) -> Vec<String> {
        command
            .args(["--exact", "bind_guard::tests::says_where_it_listens", "--nocapture"])
            .env(LISTEN, asked.join(","))
            .stdout(std::process::Stdio::piped());
        let guarded = guard.map(|guard| guard.restrict(&mut command).unwrap());
        if let Some(user) = user {
            // SAFETY: between fork and exec the closure makes system calls only.
            unsafe {
                command
                    .pre_exec(move || checked(libc::syscall(libc::SYS_setresuid, user, user, user)).map(drop))
            };
        }
        let child = command.spawn().unwrap();
        guarded.into_iter().for_each(|guarded| guarded.started().unwrap());
        let text = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
        text.lines().filter_map(|line| Some(line.split_once(" has ")?.1.to_owned())).collect()
    }

    #[test]
    fn restricted_programs_listen_at_the_far_end_only() {
        let can = crate::abilities();
        if !can.root.available {
            println!("skipped restricted_programs_listen_at_the_far_end_only: {}", can.root.reason);
            return;
        }
        let asked = [
            "0.0.0.0:0",
            "[::]:0",
            "[::ffff:0.0.0.0]:0",
            "v6 alone",
            "unbound",
            "udp",
            "127.0.0.1:0",
            "[::1]:0",
            "127.0.0.1:81",
        ];
        // The index of the loopback.
        let v6 = Some(FarIpv6 { address: Ipv6Addr::LOCALHOST, interface: 1 });
        let guard = BindGuard { v4: Ipv4Addr::new(127, 0, 0, 9), v6 };
        let [far, own, far_mapped] = ["127.0.0.9", "127.0.0.1", "::ffff:127.0.0.9"];
        let expected = [far, "::", far_mapped, "::1", far, far, own, "::1", own];
        assert_eq!(has(Some(guard), &asked, None), expected);
        let all = "0.0.0.0";
        let usual = [all, "::", "::ffff:0.0.0.0", "::", all, all, own, "::1", own];
        assert_eq!(has(None, &asked, None), usual, "without it");
        let only_v4 = BindGuard { v6: None, ..guard };
        let asked_of_v4 = ["v6 alone", "unix", "[::]:0"];
        assert_eq!(has(Some(only_v4), &asked_of_v4, None), ["AddrNotAvailable", "0.0.0.0", far_mapped]);
        // Where a program of the machine has the port, IPv4 is left.
        let other = TcpListener::bind("127.0.0.1:0").unwrap();
        let taken = format!("[::]:{}", other.local_addr().unwrap().port());
        assert_eq!(has(Some(guard), &[&taken], None), [far_mapped]);
        assert_eq!(has(Some(guard), &["elsewhere"], None), [all], "in a network of the program's own");
        // The socket is bound here, with rights that the program may not have.
        let asked = ["0.0.0.0:0", "0.0.0.0:81"];
        assert_eq!(has(Some(guard), &asked, Some(NOBODY)), [far, "PermissionDenied"]);
        if can.user_namespaces.available {
            let mut as_root_of_its_own = Command::new("unshare");
            as_root_of_its_own.arg("-Ur").arg(std::env::current_exe().unwrap());
            let has = has_by(as_root_of_its_own, Some(guard), &asked, Some(NOBODY));
            assert_eq!(has, [far, "PermissionDenied"], "in a user namespace");
        }
    }

    #[test]
    fn a_refused_filter_is_named() {
        let (line, its) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
        let guard = BindGuard { v4: Ipv4Addr::LOCALHOST, v6: None };
        let network = NamespaceId::at(Path::new("/proc/thread-self/ns/net")).unwrap();
        let guarded = GuardedCommand { guard, network, line };
        assert!(guarded.refusal().is_none(), "nothing was started");
        hand_over(&its, Err(&io::Error::from_raw_os_error(libc::EBUSY))).unwrap();
        assert_eq!(guarded.refusal().unwrap().raw_os_error(), Some(libc::EBUSY));
    }
}
