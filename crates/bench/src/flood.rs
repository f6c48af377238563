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
        let options = AfPacketOptions { allow_addresses: true, header: Header::Off, slots: Some(64) };
        let open = |name: &str| -> Result<(AfPacket, [u8; 6]), BenchError> {
            let host = world.host(name)?;
            let mac = host.spec().mac.map(|mac| mac.0).unwrap_or_default();
            Ok((host.run(|| AfPacket::open("flood", host.interface(), &options))??, mac))
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
        send(&mut self.back, &mut Pool::new(1 << 20)?, &mut source((from, to), self.frame_bytes, 1)?)
    }

    /// Sends one frame in the direction of the flood.
    ///
    /// # Errors
    /// As for the port.
    pub fn probe(&mut self) -> Result<(), BenchError> {
        send(&mut self.port, &mut Pool::new(1 << 20)?, &mut source(self.macs, self.frame_bytes, 1)?)
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
            send(&mut self.port, &mut pool, &mut frames)?;
        }
        Ok(())
    }
}

fn source(macs: ([u8; 6], [u8; 6]), frame_bytes: usize, count: u64) -> Result<Blast, BenchError> {
    let pairs = vec![(Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2))];
    let plan = BlastPlan { frame_bytes, pairs, count, macs, ..BlastPlan::sink() };
    Ok(Blast::new("flood", plan).expect("frames of 42 to 1514 bytes are in range"))
}

/// Sends one batch.
fn send(port: &mut AfPacket, pool: &mut Pool, frames: &mut Blast) -> Result<(), BenchError> {
    let mut batch = Batch::new();
    frames.receive(pool, Nanos::ZERO, &mut batch)?;
    Ok(port.transmit(pool, &batch)?)
}

/// Frames received by host `b`, and the time of the count.
///
/// # Errors
/// If the kernel does not report it.
pub fn received(world: &BenchHosts) -> Result<(u64, Nanos), BenchError> {
    received_by(world.host("b")?)
}

/// Frames received by a host, and the time of the count.
///
/// # Errors
/// If the kernel does not report it.
pub fn received_by(host: &Host) -> Result<(u64, Nanos), BenchError> {
    let read = || {
        let text = std::fs::read_to_string("/proc/thread-self/net/dev");
        (text, longwire_clock::monotonic())
    };
    let (text, at) = host.run(read)?;
    let text = text.map_err(|source| BenchError::System { doing: "reading a host's counters", source })?;
    Ok((frames_of(&text, host.interface()), at))
}

/// Frames received by each host, and the time of each count.
///
/// # Errors
/// If the kernel does not report it.
pub fn counted(world: &BenchHosts) -> Result<Vec<(u64, Nanos)>, BenchError> {
    world.hosts().iter().map(received_by).collect()
}

/// Frames per second received by all hosts together between two counts. Each host has its own interval,
/// because they are counted one by one, possibly with interruptions.
pub fn rate_between(before: &[(u64, Nanos)], after: &[(u64, Nanos)]) -> f64 {
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
