//! What the tests share: namespaces, veth pairs, and ports driven by hand.

use super::super::*;
use longwire_packet::Handle;
use std::ffi::CString;
use std::os::fd::FromRawFd;
use std::process::Command;
use std::time::{Duration, Instant};

/// An EtherType for experiments (IEEE 802), which distinguishes our frames from the kernel's own.
pub const OURS: [u8; 2] = [0x88, 0xb5];
pub const PATIENCE: Duration = Duration::from_secs(5);

/// Runs `test` in its own network namespace, which ends with its thread and the thread's objects.
pub fn in_namespace(test: fn()) {
    let thread = std::thread::spawn(move || {
        // SAFETY: unshare takes no pointers; it changes this thread only.
        if unsafe { libc::unshare(libc::CLONE_NEWNET) } == 0 {
            test();
        } else {
            println!("skipped: no network namespace of its own to be had: {}", io::Error::last_os_error());
        }
    });
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

pub fn ip(arguments: &str) {
    let status = Command::new("ip").args(arguments.split_whitespace()).status().unwrap();
    assert!(status.success(), "ip {arguments}");
}

/// A veth pair that is up, without addresses.
pub fn veth(near: &str, far: &str, queues: u32) {
    let queues = format!("numrxqueues {queues} numtxqueues {queues}");
    ip(&format!("link add {near} {queues} type veth peer name {far} {queues}"));
    for name in [near, far] {
        ip(&format!("link set {name} addrgenmode none"));
        ip(&format!("link set {name} up"));
    }
}

/// The kernel's end of a veth pair: a packet socket.
pub struct Far(OwnedFd);

impl Far {
    pub fn on(name: &str) -> Self {
        let name = CString::new(name).unwrap();
        let all = (libc::ETH_P_ALL as u16).to_be();
        // SAFETY: the name is a C string, the address is as long as said, the descriptor is owned by nobody
        // else.
        unsafe {
            let fd = libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, i32::from(all));
            assert!(fd >= 0);
            let mut address: libc::sockaddr_ll = std::mem::zeroed();
            address.sll_family = libc::AF_PACKET as u16;
            address.sll_protocol = all;
            address.sll_ifindex = libc::if_nametoindex(name.as_ptr()) as i32;
            let length = size_of_val(&address) as u32;
            assert_eq!(libc::bind(fd, (&raw const address).cast(), length), 0);
            let bytes = 16 << 20;
            libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, (&raw const bytes).cast(), 4);
            let one = 1;
            libc::setsockopt(fd, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, (&raw const one).cast(), 4);
            Self(OwnedFd::from_raw_fd(fd))
        }
    }

    /// False if the kernel dropped it.
    pub fn send(&self, frame: &[u8]) -> bool {
        // SAFETY: the frame is valid for its length.
        unsafe {
            libc::send(self.0.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0) == frame.len() as isize
        }
    }

    /// The next frame of ours or of IP, within [`PATIENCE`].
    pub fn receive(&self) -> Vec<u8> {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            let mut poll = libc::pollfd { fd: self.0.as_raw_fd(), events: libc::POLLIN, revents: 0 };
            let mut frame = vec![0; 70_000];
            // SAFETY: one pollfd; the frame is valid for its length.
            let length = unsafe {
                libc::poll(&raw mut poll, 1, 100);
                libc::recv(self.0.as_raw_fd(), frame.as_mut_ptr().cast(), frame.len(), libc::MSG_DONTWAIT)
            };
            if length >= 14 && matches!(frame[12..14], [0x88, 0xb5] | [0x08, 0x00]) {
                frame.truncate(length as usize);
                return frame;
            }
        }
        panic!("no frame came");
    }
}

/// A port with its pool, driven by hand.
pub struct DrivenPort {
    pub port: AfXdpPort,
    pub pool: Pool,
    now: Nanos,
}

impl DrivenPort {
    pub fn open(plan: AfXdpPlan) -> Self {
        Self::from(AfXdpPort::open(plan).unwrap())
    }

    pub fn from(port: AfXdpPort) -> Self {
        Self { port, pool: Pool::new(16 << 20).unwrap(), now: Nanos::ZERO }
    }

    pub fn poll(&mut self) -> Result<Vec<Vec<u8>>, PortError> {
        self.now += Nanos::from_millis(1);
        let mut batch = Batch::new();
        let result = self.port.receive(&mut self.pool, self.now, &mut batch);
        let mut frames = Vec::new();
        for &handle in batch.as_slice() {
            assert!(self.pool.meta(handle).arrival >= self.now.0, "stamped before it came");
            let frame = self.pool.data(handle).to_vec();
            self.pool.free(handle);
            if matches!(frame[12..14], [0x88, 0xb5] | [0x08, 0x00]) {
                frames.push(frame);
            }
        }
        result.map(|()| frames)
    }

    /// Receives `count` frames of ours, within [`PATIENCE`].
    pub fn receive(&mut self, count: usize) -> Vec<Vec<u8>> {
        let deadline = Instant::now() + PATIENCE;
        let mut frames = Vec::new();
        while frames.len() < count {
            assert!(
                Instant::now() < deadline,
                "{} of {count} frames came; {:?}",
                frames.len(),
                self.port.stats()
            );
            frames.extend(self.poll().unwrap());
        }
        frames
    }

    pub fn send(&mut self, frames: &[Vec<u8>]) -> Result<(), PortError> {
        let mut result = Ok(());
        for frames in frames.chunks(longwire_packet::BATCH) {
            let handles: Vec<_> = frames.iter().map(|frame| self.pool.insert(frame).unwrap()).collect();
            result = result.and(self.send_packets(&handles));
        }
        result
    }

    pub fn send_packets(&mut self, handles: &[Handle]) -> Result<(), PortError> {
        let mut batch = Batch::new();
        handles.iter().for_each(|&handle| batch.push(handle));
        let result = self.port.transmit(&mut self.pool, &batch);
        assert_eq!(self.pool.live(), 0);
        result
    }
}

/// The frame with this number, which its length and bytes encode.
pub fn frame(number: usize) -> Vec<u8> {
    let mut frame = vec![number as u8; 60 + number * 37 % 1455];
    frame[..12].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]);
    frame[12..14].copy_from_slice(&OURS);
    frame
}

pub fn frames(count: usize) -> Vec<Vec<u8>> {
    (0..count).map(frame).collect()
}
