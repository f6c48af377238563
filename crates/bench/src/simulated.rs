//! Virtual time: a graph of 100 nodes, by one worker and by two. Runs alternate.

use crate::engine::checked;
use crate::{BenchError, Sample, Settings};
use longwire_block::Port;
use longwire_engine::Report;
use longwire_port::driver::source::{Flow, Interval, Model, SourcePort};
use longwire_report::Row;
use longwire_scenario::Plan;
use longwire_units::{Nanos, Rate};
use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

/// Bridges, each with a port.
const NODES: usize = 100;
/// From each node to the one so far behind it: with 200 links, the graph is 4-regular, and its paths have
/// about 4 links.
const CHORDS: [usize; 2] = [1, 17];
/// Flows, each from a node of its own.
const FLOWS: usize = NODES;
/// Frame length without FCS, and the mean rate of each flow.
const SIZE: u32 = 1000;
const RATE: Rate = Rate(40_000_000);
/// Required speedup of two workers.
const SPEEDUP: f64 = 1.7;

/// The rows of this bench.
pub(crate) fn rows(settings: &Settings<'_>) -> Result<Vec<Row>, BenchError> {
    let time = Nanos(settings.time(Duration::from_secs(2)).as_nanos() as u64);
    let (mut speeds, mut shares) = (Vec::new(), Vec::new());
    let mut reports = Vec::new();
    let two = std::thread::available_parallelism().is_ok_and(|cores| cores.get() > 1);
    for _ in 0..settings.runs(5) {
        settings.next("virtual time")?;
        let (alone, report) = run(1, time)?;
        speeds.push(alone);
        reports.push(report);
        if two {
            settings.go_on()?;
            let (shared, report) = run(2, time)?;
            shares.push(shared / alone);
            reports.push(report);
        }
    }
    let name = format!("virtual time: {NODES} nodes, {} links", NODES * CHORDS.len());
    let speeds: Sample = speeds.into_iter().collect();
    let mut rows = vec![checked(speeds.shown(&format!("{name}, single"), "pps"), reports.iter())];
    if two {
        let shares: Sample = shares.into_iter().collect();
        rows.push(shares.median_at_least(&format!("{name}, 2 workers of one's speed"), "x", SPEEDUP));
    }
    Ok(rows)
}

/// Packets that arrived per second of the machine's time, and the report.
fn run(workers: u32, time: Nanos) -> Result<(f64, Report), BenchError> {
    let plan = longwire_scenario::parse("bench virtual", &scenario(workers))?;
    let ports =
        plan.ports.iter().enumerate().map(|(node, _)| source(&plan, node)).collect::<Result<_, _>>()?;
    let setup = longwire_assemble::build(&plan, ports, |_| None)?.setup;
    let start = Instant::now();
    let report = setup.simulate(time);
    Ok((report.flow.sent as f64 / start.elapsed().as_secs_f64(), report))
}

fn scenario(workers: u32) -> String {
    let mut text =
        format!("routing = \"shortest-delay\"\n[engine]\nworkers = {workers}\npool = \"256 MiB\"\n");
    for node in 0..NODES {
        let _ = write!(
            text,
            "[[bridge]]\nname = \"b{node}\"\n[[port]]\nname = \"p{node}\"\ndriver = \"memory\"\nbridge = \
             \"b{node}\"\n"
        );
        for (number, chord) in CHORDS.into_iter().enumerate() {
            // 1 to 20 ms, different on the paths between two nodes.
            let delay = (node * 7 + number * 5) % 20 + 1;
            let _ = write!(
                text,
                "[[link]]\nname = \"l{node}-{number}\"\nbetween = [\"b{node}\", \"b{}\"]\nrate = \"1 \
                 Gbit/s\"\ndelay = \"{delay} ms\"\n",
                (node + chord) % NODES
            );
        }
    }
    text
}

/// The port of a node, which sends to a node far away.
fn source(plan: &Plan, node: usize) -> Result<Box<dyn Port>, BenchError> {
    let far = (node * 37 + 41) % NODES;
    let address = |node: usize| SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, node as u8 + 1)), 9);
    let every = Interval::at_rate(RATE, SIZE.into()).expect("a rate and a size that are not zero");
    let flow = Flow {
        name: format!("flow {node}"),
        id: node as u16,
        destination_mac: plan.ports[far].mac.0,
        source_mac: plan.ports[node].mac.0,
        source: address(node),
        destination: address(far),
        model: Model::Poisson { every, size: SIZE },
        start: Nanos::ZERO,
        until: Nanos::NEVER,
        count: u64::MAX,
        up: true,
    };
    Ok(Box::new(SourcePort::new(&plan.ports[node].name, &[flow], FLOWS as u16, plan.seed)?))
}
