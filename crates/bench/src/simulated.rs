//! Virtual time: a graph of 100 nodes, by one worker and by two. Runs alternate.

use crate::engine::checked;
use crate::{BenchError, Sample, Settings, processors};
use longwire_engine::Report;
use longwire_report::Row;
use longwire_run::open_ports::open_virtual;
use longwire_run::port_files::PortFiles;
use longwire_units::{Nanos, Rate};
use std::fmt::Write;
use std::time::{Duration, Instant};

/// Bridges, each with a port.
const NODES: usize = 100;
/// From each node to the one so far behind it: with 200 links, the graph is 4-regular, and its paths have
/// about 6 links.
const CHORDS: [usize; 2] = [1, 17];
/// Frame length without FCS, and the mean rate of each node's flow.
const SIZE: u32 = 1000;
const RATE: Rate = Rate(40_000_000);
/// Required speedup of two workers.
const SPEEDUP: f64 = 1.7;

/// The rows of this bench.
pub(crate) fn rows(settings: &Settings<'_>) -> Result<Vec<Row>, BenchError> {
    let time = Nanos(settings.time(Duration::from_secs(2)).as_nanos() as u64);
    let (mut speeds, mut shares) = (Vec::new(), Vec::new());
    let mut reports = Vec::new();
    let two = processors() > 1;
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
    let single = Sample::from_iter(speeds).shown(&format!("{name}, single"), "pps");
    let mut rows = vec![checked(single, reports.iter())];
    if two {
        let name = format!("{name}, 2 workers of one's speed");
        rows.push(Sample::from_iter(shares).median_at_least(&name, "x", SPEEDUP));
    }
    Ok(rows)
}

/// Packets that arrived per second of the machine's time, and the report.
fn run(workers: u32, time: Nanos) -> Result<(f64, Report), BenchError> {
    let plan = longwire_scenario::parse("bench virtual", &scenario(workers))?;
    let ports = open_virtual(&plan, &PortFiles::new(&plan, &[], &[])?)?.ports;
    let setup = longwire_assemble::build(&plan, ports, |_| None)?.setup;
    let start = Instant::now();
    let report = setup.simulate(time);
    Ok((report.flow.sent as f64 / start.elapsed().as_secs_f64(), report))
}

fn scenario(workers: u32) -> String {
    let mut text =
        format!("routing = \"shortest-delay\"\n[engine]\nworkers = {workers}\npool = \"256 MiB\"\n");
    for node in 0..NODES {
        // Each sends to one far away.
        let (far, address) = ((node * 37 + 41) % NODES, node + 1);
        let _ = write!(
            text,
            "[[bridge]]\nname = \"b{node}\"\n[[port]]\nname = \"p{node}\"\ndriver = \"source\"\nbridge = \
             \"b{node}\"\naddresses = \"10.0.0.{address}\"\n[[source]]\nname = \"s{node}\"\nmodel = \
             \"poisson\"\nfrom = \"p{node}\"\nto = \"p{far}\"\nrate = \"{RATE}\"\nsize = \"{SIZE} B\"\n"
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
