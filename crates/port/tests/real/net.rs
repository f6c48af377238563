//! Network namespaces for a test, which vanish with it.
#![allow(unsafe_code)]

use longwire_block::{Port, PortError};
use longwire_packet::{Batch, Pool};
use longwire_units::Nanos;
use std::any::Any;
use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time after which a test stops waiting.
const PATIENCE: Duration = Duration::from_secs(20);

type Job = Box<dyn FnOnce() -> Box<dyn Any + Send> + Send>;

/// A network namespace: a thread in it that runs jobs.
pub struct Net {
    jobs: Option<Sender<Job>>,
    results: Receiver<Box<dyn Any + Send>>,
    thread: Option<JoinHandle<()>>,
    tid: i32,
}

impl Net {
    /// A new namespace with IPv6 off, or none when not root.
    pub fn new() -> Option<Self> {
        // SAFETY: geteuid takes nothing and can't fail.
        if unsafe { libc::geteuid() } != 0 {
            println!("skipped: network namespaces need root");
            return None;
        }
        let (jobs, todo) = channel::<Job>();
        let (done, results) = channel();
        let thread = std::thread::spawn(move || {
            // SAFETY: unshare takes no pointers, and changes this thread only.
            assert_eq!(unsafe { libc::unshare(libc::CLONE_NEWNET) }, 0, "unshare");
            for job in todo {
                if done.send(job()).is_err() {
                    return;
                }
            }
        });
        let mut net = Self { jobs: Some(jobs), results, thread: Some(thread), tid: 0 };
        // SAFETY: gettid takes nothing and can't fail.
        net.tid = net.run(|| unsafe { libc::gettid() });
        net.run(|| std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1").unwrap());
        Some(net)
    }

    /// Runs `job` in the namespace.
    pub fn run<R: Any + Send>(&self, job: impl FnOnce() -> R + Send + 'static) -> R {
        let jobs = self.jobs.as_ref().expect("lives until dropped");
        jobs.send(Box::new(move || Box::new(job()))).expect("the namespace's thread runs");
        let result = self.results.recv().expect("the job does not panic");
        *result.downcast().expect("the result of this job")
    }

    /// Runs `ip` with arguments separated by blanks.
    pub fn ip(&self, arguments: &str) {
        let arguments: Vec<String> = arguments.split(' ').map(Into::into).collect();
        self.run(move || {
            let output = Command::new("ip").args(&arguments).output().expect("iproute2 is installed");
            assert!(output.status.success(), "ip {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        });
    }

    /// The thread in the namespace, by which `ip` finds it.
    pub fn tid(&self) -> i32 {
        self.tid
    }

    /// A veth pair, both ends here and up.
    pub fn veth(&self, a: &str, b: &str) {
        self.ip(&format!("link add {a} type veth peer name {b}"));
        self.ip(&format!("link set {a} up"));
        self.ip(&format!("link set {b} up"));
    }

    /// A host: a namespace whose interface `eth0`, with this IPv4 address, is the far end of `port`.
    pub fn host(&self, port: &str, address: &str) -> Self {
        let host = Self::new().expect("root, as for the first");
        self.ip(&format!("link add {port} type veth peer name eth0 netns {}", host.tid));
        self.ip(&format!("link set {port} up"));
        host.ip("link set lo up");
        host.ip(&format!("addr add {address}/24 dev eth0"));
        host.ip("link set eth0 up");
        host
    }

    /// TCP segments and UDP datagrams with bad checksums that the kernel saw here.
    pub fn checksum_errors(&self) -> u64 {
        let text = self.run(|| std::fs::read_to_string("/proc/thread-self/net/snmp").unwrap());
        let mut errors = 0;
        for lines in text.lines().collect::<Vec<_>>().chunks(2) {
            let names = lines[0].split(' ');
            errors += names
                .zip(lines[1].split(' '))
                .filter(|(name, _)| *name == "InCsumErrors")
                .map(|(_, count)| count.parse::<u64>().unwrap())
                .sum::<u64>();
        }
        errors
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The engine's clock.
pub fn now() -> Nanos {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for the answer.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Calls `step` until it returns something.
pub fn until<R>(what: &str, mut step: impl FnMut() -> Option<R>) -> R {
    let start = Instant::now();
    loop {
        if let Some(result) = step() {
            return result;
        }
        assert!(start.elapsed() < PATIENCE, "waited in vain: {what}");
        std::thread::yield_now();
    }
}

/// A frame of `len` bytes with an EtherType for experiments (IEEE 802, 88b5); its bytes are derived from
/// `seed`.
pub fn frame(len: usize, seed: u8) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..len).map(|i| (i as u8).wrapping_mul(7).wrapping_add(seed)).collect();
    bytes[..12].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2]);
    bytes[12..14].copy_from_slice(&[0x88, 0xb5]);
    bytes
}

/// Sends frames through a port, a batch at a time.
pub fn send(port: &mut dyn Port, pool: &mut Pool, frames: &[Vec<u8>]) -> Result<(), PortError> {
    for group in frames.chunks(64) {
        let mut batch = Batch::new();
        group.iter().for_each(|frame| batch.push(pool.insert(frame).unwrap()));
        port.transmit(pool, &batch)?;
    }
    Ok(())
}

/// Receives `count` frames, with arrival times.
pub fn receive(port: &mut dyn Port, pool: &mut Pool, count: usize) -> Vec<(Vec<u8>, u64)> {
    let mut frames = Vec::new();
    until("frames to arrive", || {
        let mut batch = Batch::new();
        port.receive(pool, now(), &mut batch).unwrap();
        for &handle in batch.as_slice() {
            frames.push((pool.data(handle).to_vec(), pool.meta(handle).arrival));
            pool.free(handle);
        }
        (frames.len() >= count).then_some(())
    });
    frames
}
