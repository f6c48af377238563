//! Shared code of tests with real namespaces.
#![allow(unsafe_code, dead_code)]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use longwire_lab::{Namespace, abilities};

/// Whether tests that create namespaces can run; prints why not.
pub fn may_run(test: &str) -> bool {
    // SAFETY: no arguments, no failure.
    let root = unsafe { libc::geteuid() } == 0;
    if !root {
        println!("skipped {test}: it makes network namespaces, which needs root");
    }
    root
}

/// Whether a test that also needs address translation can run.
pub fn may_translate(test: &str) -> bool {
    let nft = abilities().nft;
    let program = Command::new("nft").arg("--version").output();
    match &program {
        _ if !nft.available => println!("skipped {test}: {}", nft.reason),
        Err(e) => println!("skipped {test}: it looks at the firewall with `nft` (apt install nftables): {e}"),
        Ok(_) => return may_run(test),
    }
    false
}

/// A name that no other test run uses.
pub fn unique(name: &str) -> String {
    format!("t{}-{name}", std::process::id())
}

/// The output of a command that must succeed.
pub fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{command:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// Copies frames between two interfaces of a namespace, instead of an engine, until dropped.
pub struct Wire {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Wire {
    pub fn between(namespace: &Namespace, a: &str, b: &str) -> Self {
        let ends = namespace.run(|| [packet_socket(a).unwrap(), packet_socket(b).unwrap()]).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                copy_waiting(&ends);
            }
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

fn packet_socket(interface: &str) -> io::Result<OwnedFd> {
    let protocol = (libc::ETH_P_ALL as u16).to_be();
    // SAFETY: no pointers; checked before it becomes an owned descriptor.
    let fd =
        unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, i32::from(protocol)) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a new descriptor that nothing else owns.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    let name = std::ffi::CString::new(interface)?;
    // SAFETY: an all-zero address is valid; the name has its closing zero.
    let (mut address, index): (libc::sockaddr_ll, _) =
        unsafe { (std::mem::zeroed(), libc::if_nametoindex(name.as_ptr())) };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = protocol;
    address.sll_ifindex = index.cast_signed();
    let length = size_of_val(&address) as u32;
    let one = 1i32;
    // SAFETY: the address and the option's value are live and of the lengths given.
    let (bound, set) = unsafe {
        (
            libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length),
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_IGNORE_OUTGOING,
                (&raw const one).cast(),
                4,
            ),
        )
    };
    if bound < 0 || set < 0 { Err(io::Error::last_os_error()) } else { Ok(socket) }
}

/// Waits for frames, at most a tenth of a second, and copies them.
fn copy_waiting(ends: &[OwnedFd; 2]) {
    let mut polls =
        [0, 1].map(|i| libc::pollfd { fd: ends[i].as_raw_fd(), events: libc::POLLIN, revents: 0 });
    // SAFETY: two live pollfds.
    unsafe { libc::poll(polls.as_mut_ptr(), 2, 100) };
    let mut frame = vec![0u8; 70_000];
    for (i, poll) in polls.iter().enumerate() {
        if poll.revents & libc::POLLIN == 0 {
            continue;
        }
        // SAFETY: pointer and length describe a live buffer.
        let n = unsafe { libc::recv(poll.fd, frame.as_mut_ptr().cast(), frame.len(), libc::MSG_DONTWAIT) };
        if let Ok(n) = usize::try_from(n) {
            // SAFETY: `n` bytes of the live buffer.
            unsafe { libc::send(ends[1 - i].as_raw_fd(), frame.as_ptr().cast(), n, 0) };
        }
    }
}

/// Names of all namespaces, links of this namespace and firewall tables, which must be the same before and
/// after.
pub fn machine_state() -> Vec<String> {
    let list = |path: &str| -> Vec<String> {
        let entries = std::fs::read_dir(path).into_iter().flatten();
        entries.map(|e| e.unwrap().path().display().to_string()).collect()
    };
    let mut all = list("/run/netns");
    all.extend(list("/run/longwire"));
    all.extend(list("/sys/class/net"));
    if let Ok(tables) = Command::new("nft").args(["list", "tables"]).output() {
        all.extend(String::from_utf8_lossy(&tables.stdout).lines().map(str::to_owned));
    }
    // Tests of other processes run meanwhile.
    let mine = format!("t{}-", std::process::id());
    all.retain(|line| line.contains(&mine) || line.starts_with("/sys/class/net"));
    all.sort_unstable();
    all
}
