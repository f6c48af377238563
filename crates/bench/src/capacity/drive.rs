//! Drives a scenario from memory to memory at the worker's full speed, and measures its processor time per
//! packet, beside a loop that tells how fast the processor is at these moments.

use crate::bare::Bare;
use crate::punctual::{Punctual, greeting};
use crate::{BenchError, Settings, alongside, receiving_by};
use longwire_block::Port;
use longwire_port::driver::memory::{Blast, BlastPlan, Pair};
use longwire_scenario::Plan;
use longwire_units::Nanos;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// 64 bytes with FCS.
pub(crate) const FRAME: usize = 60;

/// Hardware address of the station behind a port.
const fn mac(place: usize) -> [u8; 6] {
    [2, 0, 0, 0, 1, place as u8]
}

/// Nanoseconds of processor time for a packet: of a scenario's worker, and of the bare loop on the same
/// processor at the same time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cost {
    pub packet: f64,
    pub bare: f64,
}

/// The bare loop runs this long, then pauses: about a tenth of the time.
const TURN: Duration = Duration::from_millis(1);
const PAUSE: Duration = Duration::from_millis(9);

/// A scenario in which the first port sends to the second.
#[derive(Debug, Clone)]
pub(crate) struct Course {
    pub name: String,
    pub plan: Plan,
    /// Address pairs of the packets, used in order or at random.
    pub pairs: Vec<Pair>,
    pub shuffled: bool,
    pub frame_bytes: usize,
    /// Destination of the frames, if not the station behind the second port: a router.
    pub to: Option<[u8; 6]>,
    /// Delay of the packets: measurement starts once the first have left.
    pub delay: Duration,
}

impl Course {
    /// With eight address pairs, as in [`links`].
    ///
    /// # Errors
    /// If the scenario is invalid.
    pub(crate) fn new(name: impl Into<String>, scenario: &str) -> Result<Self, BenchError> {
        Ok(Self {
            name: name.into(),
            plan: longwire_scenario::parse("bench capacity", scenario)?,
            pairs: pairs(8),
            shuffled: false,
            frame_bytes: FRAME,
            to: None,
            delay: Duration::ZERO,
        })
    }

    /// With this many address pairs, in random order.
    pub(crate) fn shuffled(self, count: u32) -> Self {
        Self { pairs: pairs(count), shuffled: true, ..self }
    }

    /// With the pairs of [`links_of_two`], in random order.
    pub(crate) fn of_two(self, count: u32) -> Self {
        let other = pairs(count).into_iter().map(|(from, to)| (from, Ipv4Addr::from(to.to_bits() + OTHER)));
        Self { pairs: pairs(count).into_iter().chain(other).collect(), shuffled: true, ..self }
    }

    fn blast(&self, place: usize, gap: Option<Nanos>) -> BlastPlan {
        if place > 0 {
            return greeting((mac(0), mac(place)));
        }
        BlastPlan {
            frame_bytes: self.frame_bytes,
            pairs: self.pairs.clone(),
            shuffle: self.shuffled.then_some(1),
            count: u64::MAX,
            gap,
            macs: (self.to.unwrap_or(mac(1)), mac(0)),
        }
    }

    /// Its ports: the first sends a packet each `gap`, or as fast as it is polled.
    pub(crate) fn ports(&self, gap: Option<Nanos>) -> Vec<Box<dyn Port>> {
        let port = |place| {
            let blast = Blast::new("memory", self.blast(place, gap))
                .expect("frames of 60 to 1514 bytes are in range");
            Box::new(Punctual::new(blast)) as Box<dyn Port>
        };
        (0..self.plan.ports.len()).map(port).collect()
    }

    /// Cost of a packet received at the first port, which always has another one.
    ///
    /// # Errors
    /// If the bench is stopped, or memory is lacking.
    pub(crate) fn cost(&self, settings: &Settings<'_>) -> Result<Cost, BenchError> {
        settings.next(&format!("capacity: {}", self.name))?;
        let time = settings.time(Duration::from_millis(200));
        let (thread, mut ports) = (Arc::new(OnceLock::new()), self.ports(None));
        let revealed = Arc::clone(&thread);
        let first = receiving_by(ports.remove(0), move |port, pool, now, batch| {
            // The thread of the port's worker.
            revealed.get_or_init(|| {
                let own = std::fs::read_link("/proc/thread-self").unwrap_or_default();
                PathBuf::from("/proc").join(own)
            });
            port.receive(pool, now, batch)
        });
        ports.insert(0, first);
        let run = longwire_assemble::build(&self.plan, ports, |_| None)?.setup.start();
        let remote = run.remote();
        let counted = || -> Result<(u64, f64), BenchError> {
            let (flow, at) = remote.flow()?;
            let spent = thread.get().map(PathBuf::as_path).and_then(spent);
            Ok((flow.taken, spent.unwrap_or(at.0) as f64))
        };
        let measured = settings.pause(time / 2 + self.delay * 2).and_then(|()| {
            let (first, from) = counted()?;
            let bare = beside(|| settings.pause(time))?;
            let (second, to) = counted()?;
            Ok(Cost { packet: (to - from) / second.saturating_sub(first).max(1) as f64, bare })
        });
        drop(run.stop());
        measured
    }
}

/// Addresses of this many flows.
pub(crate) fn pairs(count: u32) -> Vec<Pair> {
    (1..=count).map(|n| (Ipv4Addr::from(0x0a00_0000 + n), Ipv4Addr::from(0x0b00_0000 + n))).collect()
}

/// Engine settings (a worker that spins on the first processor), and two memory ports.
pub(crate) fn ports(engine: &str) -> String {
    let port = |name: &str| format!("[[port]]\nname = \"{name}\"\ndriver = \"memory\"\n");
    format!("[engine]\nwait = \"spin\"\npool = \"256 MiB\"\n{engine}\n{}{}", port("a"), port("b"))
}

/// Links from the first port to the second, one for each address pair.
pub(crate) fn links(count: u32, keys: &str) -> String {
    links_to(count, keys, &["11.0.0.0"])
}

/// Links from the first port to the second, each with two flows: some queues cost less with one.
pub(crate) fn links_of_two(count: u32, keys: &str) -> String {
    links_to(count, keys, &["11.0.0.0", "12.0.0.0"])
}

/// Distance of a link's second destination from its first.
const OTHER: u32 = 1 << 24;

fn links_to(count: u32, keys: &str, destinations: &[&str]) -> String {
    let pairs: Vec<_> = destinations
        .iter()
        .map(|to| format!("{{ source = \"{{10.0.0.0 + n}}\", destination = \"{{{to} + n}}\" }}"))
        .collect();
    format!(
        "[[link]]\nname = \"l{{n}}\"\ncount = {count}\nfrom = \"a\"\nto = \"b\"\n{keys}\nmatch = [{}]\n",
        pairs.join(", ")
    )
}

/// Nanoseconds of processor time for a packet of the bare loop, on the first processor during `wait`.
fn beside(wait: impl FnOnce() -> Result<(), BenchError>) -> Result<f64, BenchError> {
    let bare = |stop: &AtomicBool| {
        longwire_engine::clock::settle_thread(Some(0));
        let (mut bare, own) = (Bare::new(), Path::new("/proc/thread-self"));
        let (from, mut sent) = (spent(own), 0);
        while sent == 0 || !stop.load(Ordering::Relaxed) {
            sent += bare.carry(TURN);
            std::thread::sleep(PAUSE);
        }
        let spent = spent(own).zip(from).map(|(to, from)| to - from);
        Ok(spent.map_or(1.0, |spent| spent as f64 / sent as f64))
    };
    let (bare, ()) = alongside(bare, wait)?;
    Ok(bare)
}

/// Processor time of a thread in nanoseconds.
fn spent(thread: &Path) -> Option<u64> {
    std::fs::read_to_string(thread.join("schedstat")).ok()?.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_takes_time() {
        let settings = Settings { runs: None, quick: true, say: &|_| (), stop: &AtomicBool::new(false) };
        let text =
            ports("pool = \"16 MiB\"").replace("pool = \"256 MiB\"\n", "") + &links(8, "delay = \"10 us\"");
        let course = Course::new("a test", &text).unwrap();
        let cost = course.cost(&settings).unwrap();
        assert!(cost.packet > 0.0 && cost.bare > 0.0, "{cost:?}");
        assert_eq!(course.plan.address_rules.len(), 8);
    }
}
