//! Packets back and forth between two ports of one driver, in a namespace without hosts, for counting the
//! instructions of this process per packet. An instruction counter does not see the kernel's.

use crate::rig::FrameSpec;
use crate::world::{Driver, require_hosts};
use crate::{BenchError, flood::PATIENCE};
use longwire_block::Port;
use longwire_clock::monotonic;
use longwire_lab::Lab;
use longwire_packet::{BATCH, Batch, Pool};
use longwire_port::Interface;
use longwire_port::driver::af_packet::{AfPacket, AfPacketOptions};
use longwire_port::driver::af_xdp::{AfXdpPlan, AfXdpPort, FarEnd};
use longwire_port::driver::tap::{Tap, TapOptions};
use longwire_units::Nanos;
use std::process::Command;
use std::time::Duration;

/// The interfaces: both ends of a veth pair, or two TAP interfaces on a kernel bridge.
const NAMES: [&str; 2] = ["left", "right"];
/// Offset of the time passed to ports, so that kernel stamps are in the past, as when a port is polled.
const AHEAD: Nanos = Nanos(3_600_000_000_000);
/// Advance of that time per packet, so that periodic work of ports happens every fixed number of packets.
const STEP: Nanos = Nanos(1000);
/// Pause between two polls while the kernel has no packets.
const PAUSE: Duration = Duration::from_micros(50);

/// Sends at least `packets` packets from one port to the other.
///
/// # Errors
/// If namespaces or the driver are not available ([`BenchError::NotHere`]), or packets are lost.
pub fn run(driver: Driver, packets: u64) -> Result<(), BenchError> {
    require_hosts("a port")?;
    let lab = Lab::create(&format!("carry-{}", std::process::id()), &[])?;
    let done = lab.in_core(|| open(driver)).map_err(BenchError::from).flatten().and_then(|mut ports| {
        let mut pool = Pool::new(8 << 20)?;
        to_and_fro(&mut ports, &mut pool, packets)
    });
    lab.down()?;
    done
}

/// Sends a batch from port to port until the number is reached.
fn to_and_fro(ports: &mut [Box<dyn Port>; 2], pool: &mut Pool, packets: u64) -> Result<(), BenchError> {
    let frame = FrameSpec::UDP.frame();
    let mut batch = Batch::new();
    (0..BATCH).filter_map(|_| pool.insert(&frame)).for_each(|handle| batch.push(handle));
    let [mut from, mut to] = [0, 1];
    let mut now = monotonic() + AHEAD;
    let mut left = packets;
    while left > 0 {
        left = left.saturating_sub(batch.len() as u64);
        ports[from].transmit(pool, &batch)?;
        batch.clear();
        let mut waited = Duration::ZERO;
        loop {
            now += Nanos(STEP.0 * BATCH as u64);
            ports[to].receive(pool, now, &mut batch)?;
            if batch.is_full() {
                break;
            }
            if waited >= PATIENCE {
                return Err(BenchError::Silent(PATIENCE));
            }
            std::thread::sleep(PAUSE);
            waited += PAUSE;
        }
        (from, to) = (to, from);
    }
    Ok(())
}

/// Creates the interfaces in the calling thread's namespace, and opens both.
fn open(driver: Driver) -> Result<[Box<dyn Port>; 2], BenchError> {
    match driver {
        Driver::Tap => {
            ip("link add switch type bridge forward_delay 0 stp_state 0 mcast_snooping 0")?;
            ip("link set switch addrgenmode none up")?;
            let [a, b] = NAMES.map(open_tap);
            Ok([a?, b?])
        }
        Driver::AfPacket => {
            veth()?;
            let [a, b] = NAMES.map(|name| AfPacket::open(name, name, &AfPacketOptions::default()));
            Ok([Box::new(a?), Box::new(b?)])
        }
        Driver::AfXdp => {
            veth()?;
            let mut plans = Vec::new();
            for (name, far) in NAMES.into_iter().zip(NAMES.into_iter().rev()) {
                plans
                    .push(AfXdpPlan { far_end: FarEnd::Given(Interface::open(far)?), ..AfXdpPlan::on(name) });
            }
            let mut ports = AfXdpPort::open_all(plans)?.into_iter();
            match [ports.next(), ports.next()] {
                [Some(a), Some(b)] => Ok([Box::new(a), Box::new(b)]),
                _ => Err(BenchError::NotHere("two ports were asked for".into())),
            }
        }
    }
}

fn open_tap(name: &str) -> Result<Box<dyn Port>, BenchError> {
    let tap = Tap::create(name, name, &TapOptions::default())?;
    ip(&format!("link set {name} addrgenmode none master switch up"))?;
    let is_usual = tap.describe().ends_with("writes by io_uring");
    is_usual.then(|| Box::new(tap) as Box<dyn Port>).ok_or_else(|| {
        BenchError::NotHere(format!("writes by io_uring are what is to be counted: {name} has none"))
    })
}

fn veth() -> Result<(), BenchError> {
    let [a, b] = NAMES;
    ip(&format!("link add {a} type veth peer name {b}"))?;
    NAMES.into_iter().try_for_each(|name| ip(&format!("link set {name} addrgenmode none up")))
}

/// Runs `ip` with space-separated arguments.
fn ip(line: &str) -> Result<(), BenchError> {
    let output = Command::new("ip").args(line.split(' ')).output();
    match output {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stderr);
            Err(BenchError::NotHere(format!("ip {line}: {}", text.trim_end())))
        }
        Err(error) => Err(BenchError::NotHere(format!("ip {line}: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_go_there_and_back_by_every_driver() {
        for driver in Driver::ALL {
            match run(driver, 10 * BATCH as u64) {
                Ok(()) => {}
                Err(BenchError::NotHere(why)) => println!("skipped: {why}"),
                Err(error) => panic!("{}: {error}", driver.name()),
            }
        }
    }
}
