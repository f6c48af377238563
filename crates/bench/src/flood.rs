//! A generator for real ports: as many frames as a packet socket can send, with a system call per batch.

use crate::BenchError;
use crate::world::{BenchHosts, Driver, settle_beside};
use longwire_block::Port;
use longwire_lab::Host;
use longwire_packet::{Batch, Pool};
use longwire_port::driver::af_packet::{AfPacket, AfPacketOptions, Header};
use longwire_port::driver::memory::{Blast, BlastPlan};
use longwire_units::Nanos;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// 64 bytes with FCS.
const FRAME: usize = 60;
/// Timeout for the first frame.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Sends frames from one host to the other until stopped.
pub struct Flood {
    port: AfPacket,
    back: AfPacket,
    macs: ([u8; 6], [u8; 6]),
    frame_bytes: usize,
}

impl Flood {
    /// Opens packet sockets on the hosts' own ends of the wires. The engine's ends must be open.
    ///
    /// # Errors
    /// If one can't be opened.
    pub fn open(world: &BenchHosts) -> Result<Self, BenchError> {
        let open = |name: &str| -> Result<(AfPacket, [u8; 6]), BenchError> {
            let host = world.host(name)?;
            Ok((far_end(host, 64)?, host.spec().mac.map(|mac| mac.0).unwrap_or_default()))
        };
        let ((port, from), (back, to)) = (open("a")?, open("b")?);
        Ok(Self { port, back, macs: (to, from), frame_bytes: FRAME })
    }

    /// Sets the frame length in bytes without FCS, 42 to 1514.
    pub fn with_frames_of(self, bytes: usize) -> Self {
        Self { frame_bytes: bytes, ..self }
    }

    /// Sends one frame in the reverse direction, so that a bridge learns the destination's address.
    ///
    /// # Errors
    /// As for the port.
    pub fn greet(&mut self) -> Result<(), BenchError> {
        let (to, from) = self.macs;
        let mut frames = source((from, to), self.frame_bytes, 1)?;
        send(&mut frames, &mut self.back, &mut Pool::new(1 << 20)?, Nanos::ZERO)
    }

    /// Sends one frame in the direction of the flood.
    ///
    /// # Errors
    /// As for the port.
    pub fn probe(&mut self) -> Result<(), BenchError> {
        let mut frames = source(self.macs, self.frame_bytes, 1)?;
        send(&mut frames, &mut self.port, &mut Pool::new(1 << 20)?, Nanos::ZERO)
    }

    /// Sends on the processor that the engine leaves free, until `stop` is set.
    ///
    /// # Errors
    /// As for the port.
    pub fn run(&mut self, stop: &AtomicBool) -> Result<(), BenchError> {
        settle_beside();
        let mut pool = Pool::new(1 << 20)?;
        let mut frames = source(self.macs, self.frame_bytes, u64::MAX)?;
        while !stop.load(Ordering::Relaxed) {
            send(&mut frames, &mut self.port, &mut pool, Nanos::ZERO)?;
        }
        Ok(())
    }
}

fn source(macs: ([u8; 6], [u8; 6]), frame_bytes: usize, count: u64) -> Result<Blast, BenchError> {
    let pairs = vec![(Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2))];
    let plan = BlastPlan { frame_bytes, pairs, count, macs, ..BlastPlan::sink() };
    Ok(Blast::new("flood", plan).expect("frames of 42 to 1514 bytes are in range"))
}

/// A packet socket on a host's own interface; `slots` received frames may wait.
///
/// # Errors
/// If it can't be opened.
pub fn far_end(host: &Host, slots: u32) -> Result<AfPacket, BenchError> {
    let options = AfPacketOptions { allow_addresses: true, header: Header::Off, slots: Some(slots) };
    Ok(host.run(|| AfPacket::open("far", host.interface(), &options))??)
}

/// Sends what a source has at `now`, at most a batch.
///
/// # Errors
/// As for the port.
pub fn send(
    source: &mut dyn Port,
    port: &mut AfPacket,
    pool: &mut Pool,
    now: Nanos,
) -> Result<(), BenchError> {
    let mut batch = Batch::new();
    source.receive(pool, now, &mut batch)?;
    if !batch.is_empty() {
        port.transmit(pool, &batch)?;
    }
    Ok(())
}

/// Frames received by host `b`, and the time of the count.
///
/// # Errors
/// If the kernel does not report it.
pub fn received(world: &BenchHosts) -> Result<(u64, Nanos), BenchError> {
    received_by(world.host("b")?)
}

/// Frames received by a host, and the time of the count.
fn received_by(host: &Host) -> Result<(u64, Nanos), BenchError> {
    let read = || {
        let text = std::fs::read_to_string("/proc/thread-self/net/dev");
        (text, longwire_clock::monotonic())
    };
    let (text, at) = host.run(read)?;
    let text = text.map_err(BenchError::system("reading a host's counters"))?;
    Ok((frames_of(&text, host.interface()), at))
}

/// Frames per second received by all hosts together over a time, after a warm-up; `wait` waits.
///
/// # Errors
/// If the kernel does not report them, or what `wait` returns.
pub fn received_rate(
    world: &BenchHosts,
    [warm_up, time]: [Duration; 2],
    wait: impl Fn(Duration) -> Result<(), BenchError>,
) -> Result<f64, BenchError> {
    wait(warm_up)?;
    let before = counted(world)?;
    wait(time)?;
    Ok(rate_between(&before, &counted(world)?))
}

/// Frames received by each host, and the time of each count.
fn counted(world: &BenchHosts) -> Result<Vec<(u64, Nanos)>, BenchError> {
    world.hosts().iter().map(received_by).collect()
}

/// Frames per second received by all hosts together between two counts. Each host has its own interval,
/// because they are counted one by one, possibly with interruptions.
fn rate_between(before: &[(u64, Nanos)], after: &[(u64, Nanos)]) -> f64 {
    let of_one = |((before, from), (after, to)): (&(u64, Nanos), &(u64, Nanos))| {
        (after - before) as f64 / to.since(*from).as_secs_f64()
    };
    before.iter().zip(after).map(of_one).sum()
}

/// The second number of an interface's line: frames received.
fn frames_of(text: &str, interface: &str) -> u64 {
    let numbers = text.lines().find_map(|line| line.trim().strip_prefix(interface)?.strip_prefix(':'));
    numbers.and_then(|numbers| numbers.split_ascii_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
}

/// Description of the generator on ports of `driver`, for notes.
pub fn description(driver: Driver) -> &'static str {
    match driver {
        Driver::Tap => "generator: packet socket on the far TAP interface, on the last processor",
        _ => "generator: packet socket on the far end of the veth pair, on the last processor",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_an_interface_in_the_kernels_table() {
        let text = "Inter-|   Receive\n face |bytes packets\n    lo: 10 1 0\n  eth0:1234 77 0 0\n";
        assert_eq!((frames_of(text, "eth0"), frames_of(text, "lo"), frames_of(text, "eth1")), (77, 1, 0));
    }

    #[test]
    fn a_pause_between_two_hosts_counts_makes_no_rate_higher() {
        let second = |number| Nanos::from_secs(number);
        // The second host is counted a second later the second time, and has received frames meanwhile.
        let rate = rate_between(&[(10, second(1)), (20, second(1))], &[(110, second(2)), (220, second(3))]);
        assert_eq!(rate, 200.0);
    }
}
