//! The engine by itself, memory to memory on one core: every packet is a buffer of its own, written by the source and
//! read by the sink; classification by address, queue, delay stage, dice, counters and lateness are on.

use longwire_block::path::{LinkRef, Paths};
use longwire_block::{Node, Port};
use longwire_engine::{Home, Map, Report, Seat, Setup, Tolerance, Wait, WorkerSetup};
use longwire_link::classify::Classifier;
use longwire_link::{LinkConfig, Links};
use longwire_packet::{Pool, PoolError};
use longwire_port::driver::memory::{Blast, BlastPlan};
use longwire_router::Bridge;
use longwire_units::Nanos;
use std::net::Ipv4Addr;
use std::time::Duration;

const SOURCE: [u8; 6] = [2, 0, 0, 0, 0, 1];
const SINK: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// What is measured.
#[derive(Debug, Clone)]
pub struct Case {
    /// How many links, each with its own pair of addresses.
    pub links: u32,
    /// What each of them is.
    pub config: LinkConfig,
    /// Whether packets meet the links in random order; else in turn.
    pub shuffled: bool,
    /// Packet memory.
    pub pool_bytes: u64,
    /// How long to measure, after as long again to warm up.
    pub time: Duration,
    /// Time between packets; none for as fast as they go.
    pub gap: Option<Nanos>,
}

/// What came of it.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Packets sent by the sink's port, each second.
    pub packets_per_second: f64,
    /// Memory of links, classifier and wheel, each link.
    pub bytes_per_link: f64,
    /// Everything else.
    pub report: Report,
}

/// Runs a case once.
///
/// # Errors
/// If there is not the memory.
pub fn run(case: &Case) -> Result<Outcome, PoolError> {
    let before = resident_bytes();
    let pairs: Vec<_> =
        (0..case.links).map(|n| (Ipv4Addr::from(0x0a00_0001 + n), Ipv4Addr::from(0x0b00_0001 + n))).collect();
    let mut links = Links::with_capacity(case.links as usize, 1, Nanos::from_micros(10));
    let mut paths = Paths::default();
    let rules: Vec<_> = pairs
        .iter()
        .enumerate()
        .map(|(n, (from, to))| {
            let local = links.add(n as u32, &n.to_string(), &case.config);
            ((from.to_bits(), to.to_bits()), paths.add(&[LinkRef::new(0, local)]))
        })
        .collect();
    let classifier = Classifier::new(&rules, &[], &[]);
    drop(rules);
    let own = resident_bytes() - before - size_of_val(&*pairs) as f64;
    let port = |name: &str, plan: BlastPlan| -> Box<dyn Port> {
        Box::new(Blast::new(name, plan).expect("60-byte frames are in range"))
    };
    let source = BlastPlan {
        frame_bytes: 60,
        pairs,
        shuffle: case.shuffled.then_some(1),
        count: u64::MAX,
        gap: case.gap,
        macs: (SINK, SOURCE),
    };
    // The sink sends one packet, so that the bridge knows where it is.
    let nobody = (Ipv4Addr::UNSPECIFIED, Ipv4Addr::UNSPECIFIED);
    let greeting = BlastPlan { count: 1, pairs: vec![nobody], macs: (SOURCE, SINK), ..BlastPlan::sink() };
    let bridge = Bridge::new(vec![0, 1], Nanos::from_secs(300), 4096);
    let worker = WorkerSetup {
        cpu: Some(0),
        pool: Pool::new(case.pool_bytes)?,
        ports: vec![
            Seat { place: 0, node: 0, port: port("sink", greeting) },
            Seat { place: 1, node: 0, port: port("source", source) },
        ],
        nodes: vec![Box::new(bridge) as Box<dyn Node>],
        links,
        flat: true,
        crossing: Vec::new(),
        observer: None,
    };
    let homes = vec![Home { worker: 0, slot: 0 }, Home { worker: 0, slot: 1 }];
    let setup = Setup {
        workers: vec![worker],
        map: Map { classifier, paths, homes },
        tolerance: Tolerance::default(),
        wait: Wait::Spin,
        lead: Nanos::NEVER,
    };
    let run = setup.start();
    let remote = run.remote();
    std::thread::sleep(case.time);
    let counted = |(flow, at): (longwire_engine::FlowStats, Nanos)| (flow.sent as f64, at.as_secs_f64());
    let (first, from) = remote.flow().map(counted).unwrap_or_default();
    std::thread::sleep(case.time);
    let (second, to) = remote.flow().map(counted).unwrap_or_default();
    let report = run.stop();
    Ok(Outcome {
        packets_per_second: (second - first) / (to - from),
        bytes_per_link: own / f64::from(case.links),
        report,
    })
}

/// Memory of this process that is resident, in bytes.
fn resident_bytes() -> f64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: f64 = pages.split(' ').nth(1).and_then(|n| n.parse().ok()).unwrap_or(0.0);
    pages * 4096.0
}
