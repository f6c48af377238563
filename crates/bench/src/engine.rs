//! The engine alone, memory to memory on one core. Every packet is a separate buffer, written by the source
//! and read by the sink. Classification by address, queue, delay stage, dice, counters and lateness are on.

mod loading;
mod poisoning;

use crate::bare::{self, Bare};
use crate::machine_memory::resident_bytes;
use crate::measuring::per_second;
use crate::punctual::{Punctual, greeting};
use crate::{BenchError, Sample, Settings};
use longwire_block::path::{LinkRef, Paths};
use longwire_block::{DropReason, Node, Port};
use longwire_engine::{Map, PortLocation, PortSetup, Remote, Report, Setup, WorkerSetup};
use longwire_link::classify::Classifier;
use longwire_link::{LinkConfig, Links};
use longwire_packet::{Pool, PoolError};
use longwire_port::driver::memory::{Blast, BlastPlan};
use longwire_report::Row;
use longwire_router::Bridge;
use longwire_units::Nanos;
use std::net::Ipv4Addr;
use std::time::Duration;

const SOURCE: [u8; 6] = [2, 0, 0, 0, 0, 1];
const SINK: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// Limit of a link's memory in bytes.
const LINK_BYTES: f64 = 200.0;
/// The source's memory per address pair, in bytes.
const SOURCE_BYTES: f64 = 10.0;

/// What to measure.
#[derive(Debug, Clone)]
pub struct Case {
    /// Number of links.
    pub links: u32,
    /// Address pairs of each link, whose packets come to it in turn.
    pub flows: u32,
    /// Configuration of each link.
    pub config: LinkConfig,
    /// Whether packets meet the links in random order, instead of in turn.
    pub shuffled: bool,
    /// Size of the packet memory.
    pub pool_bytes: u64,
    /// Measuring time, after as long a warm-up.
    pub time: Duration,
    /// Time between packets; none for full speed.
    pub gap: Option<Nanos>,
    /// Length of the frames, without FCS.
    pub frame_bytes: usize,
    /// Number of packets.
    pub count: u64,
    /// Whether packets have addresses of no link, and so take none.
    pub beside: bool,
}

/// Memory per link, in bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkMemory {
    /// The link's record: state, blocks and counters.
    pub record: f64,
    /// Its share of the classifier.
    pub classifier: f64,
    /// Its share of the timing wheel.
    pub wheel: f64,
}

impl LinkMemory {
    /// The sum.
    pub fn total(&self) -> f64 {
        self.record + self.classifier + self.wheel
    }
}

/// The result of a run.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Packets per second sent by the sink's port.
    pub packets_per_second: f64,
    /// Memory of links, classifier and wheel.
    pub memory: LinkMemory,
    /// Growth of the process per link, without packet memory and the source's list of addresses.
    pub resident_per_link: f64,
    /// Everything else.
    pub report: Report,
}

impl Case {
    /// 8 links of `config`, at full speed, 60-byte frames (64 with FCS).
    pub fn new(config: &LinkConfig, time: Duration) -> Self {
        Self {
            links: 8,
            flows: 1,
            config: config.clone(),
            shuffled: false,
            pool_bytes: 256 << 20,
            time,
            gap: None,
            frame_bytes: 60,
            count: u64::MAX,
            beside: false,
        }
    }
}

/// Writes the addresses of a case's first link into an Ethernet and IPv4 header.
pub(crate) fn address(frame: &mut [u8]) {
    let (from, to) = pair(0);
    frame[..6].copy_from_slice(&SINK);
    frame[6..12].copy_from_slice(&SOURCE);
    frame[26..30].copy_from_slice(&from.octets());
    frame[30..34].copy_from_slice(&to.octets());
}

/// The n-th address pair of a case, of its link n modulo their number.
fn pair(n: u32) -> (Ipv4Addr, Ipv4Addr) {
    (Ipv4Addr::from(0x0a00_0001 + n), Ipv4Addr::from(0x0b00_0001 + n))
}

/// The rows of this bench.
pub(crate) fn rows(settings: &Settings<'_>) -> Result<Vec<Row>, BenchError> {
    let plain = LinkConfig::default().with_text("loss", "0 %")?;
    let busy = plain.clone().with_text("rate", "100 Gbit/s")?.with_text("delay", "10 ms")?;
    let case = |config| Case::new(config, settings.time(Duration::from_secs(1)));
    let million = Case { links: 1_000_000, shuffled: true, ..case(&busy) };
    let cases = [
        ("8 links, unlimited, no delay, dice on", case(&plain), 15e6),
        ("8 links, 100 Gbit/s and 10 ms each", case(&busy), 10e6),
        ("1 000 000 links, 100 Gbit/s and 10 ms each, random order", million, 3e6),
    ];
    let mut rows = Vec::new();
    let mut bare = Bare::new();
    for (name, case, target) in &cases {
        // The loop runs after each run of the engine, under the same conditions.
        let mut loops = Vec::new();
        let outcomes: Vec<_> = settings.repeat(5, &format!("engine: {name}"), || {
            let outcome = run(case)?;
            loops.push(bare.run(case.time / 2));
            Ok(outcome)
        })?;
        let speeds: Sample = outcomes.iter().map(|outcome| outcome.packets_per_second).collect();
        let ns = 1e9 / speeds.most();
        let row = speeds.at_least(&format!("engine: {name}"), "pps", *target);
        rows.push(checked(
            row.extra("ns_per_packet", ns).note(format!("{ns:.1} ns a packet")),
            outcomes.iter().map(|outcome| &outcome.report),
        ));
        let pairs: Vec<_> = outcomes.iter().map(|outcome| outcome.packets_per_second).zip(loops).collect();
        rows.push(bare::row(name, &pairs));
        if case.links > 1000 {
            // In later runs the allocator may still hold the list from which the classifier was built.
            rows.extend(outcomes.first().map(memory_rows).into_iter().flatten());
        }
    }
    rows.extend(poisoning::rows(settings, &plain)?);
    rows.extend(loading::rows(settings)?);
    Ok(rows)
}

fn memory_rows(outcome: &Outcome) -> [Row; 2] {
    let memory = &outcome.memory;
    [
        Row::new("engine: memory of one of them, resident while all are used", "bytes")
            .expected(LINK_BYTES)
            .measured(outcome.resident_per_link)
            .at_most()
            .note(
                "growth of the process without packet memory; not counted: drop counters, made at a link's \
                first drop",
            )
            .note("and histograms, made for links that ask"),
        Row::new("engine: memory of one of them, reserved in addresses", "bytes")
            .measured(memory.total())
            .extra("record_bytes", memory.record)
            .extra("classifier_bytes", memory.classifier)
            .extra("wheel_bytes", memory.wheel)
            .note(format!(
                "record {:.1}, classifier {:.1}, timing wheel {:.1}: it has room, untouched, for all links \
                 being due at once",
                memory.record, memory.classifier, memory.wheel
            )),
    ]
}

/// Fails the row if packets were unaccounted for in a run; notes drops.
pub(crate) fn checked<'a>(row: Row, reports: impl Iterator<Item = &'a Report> + Clone) -> Row {
    if !reports.clone().all(Report::is_conserved) {
        return row.judged(false).note("packets are missing from the engine's books");
    }
    match reports.map(dropped).max() {
        Some(0) | None => row,
        Some(packets) => row.note(format!("{packets} packets were dropped in one run")),
    }
}

/// Packets dropped during the run, without those still held at its end.
pub fn dropped(report: &Report) -> u64 {
    let in_links = report.links.iter().flat_map(|link| &link.stats.drops);
    let all = in_links.chain(&report.flow.drops);
    all.filter(|(reason, _)| *reason != DropReason::Stopped.name()).map(|(_, packets)| packets).sum()
}

/// Runs a case once.
///
/// # Errors
/// If memory is lacking.
pub fn run(case: &Case) -> Result<Outcome, PoolError> {
    let before = resident_bytes();
    let (setup, memory) = setup(case, |port| port)?;
    let run = setup.start();
    let asleep = |time| {
        std::thread::sleep(time);
        Ok(())
    };
    let packets_per_second = speed(&run.remote(), [case.time; 2], asleep).unwrap_or_default();
    let resident = resident_bytes() - before;
    let report = run.stop();
    let links = f64::from(case.links);
    let besides = report.pool_capacity as f64 + SOURCE_BYTES * links;
    Ok(Outcome { packets_per_second, memory, resident_per_link: (resident - besides) / links, report })
}

/// Packets per second of a run over a time, after a warm-up; `wait` waits.
///
/// # Errors
/// If the engine does not answer, or what `wait` returns.
pub fn speed(
    remote: &Remote,
    times: [Duration; 2],
    wait: impl Fn(Duration) -> Result<(), BenchError>,
) -> Result<f64, BenchError> {
    let sent = || -> Result<(u64, Nanos), BenchError> {
        let (flow, at) = remote.flow()?;
        Ok((flow.sent, at))
    };
    per_second(sent, times, wait)
}

/// The engine of a case; `wrap` may wrap the source's port.
///
/// # Errors
/// If memory is lacking.
pub(crate) fn setup(
    case: &Case,
    wrap: impl FnOnce(Box<dyn Port>) -> Box<dyn Port>,
) -> Result<(Setup, LinkMemory), PoolError> {
    let plan = source(case);
    let beside = if case.beside { case.links } else { 0 };
    let mut links = Links::with_capacity(case.links as usize, 1, Nanos::from_micros(10));
    let mut paths = Paths::default();
    let each: Vec<_> = (0..case.links)
        .map(|n| paths.add(&[LinkRef::new(0, links.add(n, &n.to_string(), &case.config))]))
        .collect();
    let addresses = plan.pairs.iter().map(|(from, to)| (from.to_bits() + beside, to.to_bits() + beside));
    let rules: Vec<_> = addresses.zip(each.into_iter().cycle()).collect();
    let classifier = Classifier::new(&rules, &[], &[]);
    let blast =
        |name: &str, plan: BlastPlan| Blast::new(name, plan).expect("60- to 64-byte frames are in range");
    let source = wrap(Box::new(Punctual::new(blast("source", plan))));
    let sink = Box::new(blast("sink", greeting((SOURCE, SINK))));
    let bridge = Bridge::new(vec![0, 1], Nanos::from_secs(300), 4096);
    let worker = WorkerSetup::new(Pool::new(case.pool_bytes)?, links);
    let mut worker = WorkerSetup { cpu: Some(0), ..worker };
    let each = |bytes: usize| bytes as f64 / f64::from(case.links);
    let memory = LinkMemory {
        record: each(worker.links.memory_bytes()),
        classifier: each(classifier.memory_bytes()),
        wheel: each(worker.wheel_bytes()),
    };
    let port_locations = vec![PortLocation::single(0, 0), PortLocation::single(0, 1)];
    worker.ports =
        vec![PortSetup { place: 0, node: 0, port: sink }, PortSetup { place: 1, node: 0, port: source }];
    worker.nodes = vec![Box::new(bridge) as Box<dyn Node>];
    let setup = Setup::new(vec![worker], Map::new(classifier, paths, port_locations));
    Ok((setup, memory))
}

/// The traffic of a case's source.
pub(crate) fn source(case: &Case) -> BlastPlan {
    BlastPlan {
        frame_bytes: case.frame_bytes,
        pairs: (0..case.links * case.flows).map(pair).collect(),
        shuffle: case.shuffled.then_some(1),
        count: case.count,
        gap: case.gap,
        macs: (SINK, SOURCE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_run_carries_packets_and_loses_none() {
        let config = LinkConfig::default().with_text("delay", "1 ms").unwrap();
        let mut case = Case::new(&config, Duration::from_millis(5));
        case.pool_bytes = 16 << 20;
        case.gap = Some(Nanos::from_micros(10));
        let outcome = run(&case).unwrap();
        assert!(outcome.report.is_conserved() && outcome.report.flow.sent > 0, "{:?}", outcome.report);
        assert!(outcome.memory.record > 0.0 && outcome.memory.wheel > 0.0);
    }
}
