//! Figure 2: cost of tail drop and RED over plain forwarding, by packet size, at 8 ports.

use super::discipline::{Discipline, Place, Traffic, carried, throughput};
use crate::Settings;
use crate::book::{Book, once, paper, paper_if};
use crate::experiment::Hosts;
use crate::plot::{Plot, Style};
use crate::trust::{like, reasons};
use longwire_bench::BenchError;
use longwire_report::Row;

/// Lengths of frames with FCS.
const SIZES: [usize; 6] = [64, 128, 256, 512, 1024, 1518];
const PORTS: usize = 8;
/// Rate into each port, as in the paper.
const RATE: u64 = 100_000_000;
/// Level of the paper's throughput, for all disciplines.
const LEVEL: u64 = 430_000_000;
/// Rounds in which disciplines alternate, so that a slow machine slows all of them.
const ROUNDS: usize = 3;

/// Nanoseconds per packet of each discipline, in the order of [`Discipline::ALL`]; none if it is not
/// available.
type Costs = [Option<f64>; 3];

/// What the disciplines cost with packets of one size.
#[derive(Default)]
struct Rounds {
    costs: Costs,
    /// For each discipline, why its rounds were void, if so.
    void: [Vec<String>; 3],
}

pub(super) fn rows(book: &mut Book<'_>, hosts: &mut Hosts) {
    in_memory(book, hosts);
    on_ports(book, hosts);
}

fn in_memory(book: &mut Book<'_>, hosts: &mut Hosts) {
    let mut curves = vec![Vec::new(); 3];
    let settings = book.settings;
    for size in SIZES {
        let mut rounds = None;
        for (at, discipline) in Discipline::ALL.into_iter().enumerate() {
            let what = match discipline {
                Discipline::Plain => "plain forwarding".to_owned(),
                other => format!("{} over plain forwarding", other.name()),
            };
            let row = Row::new(format!("fig 2: {what}, {size} bytes, 8 memory ports"), "ns");
            let row = if discipline == Discipline::Plain { row } else { paper(row, "none to be seen") };
            book.row(row, |row| {
                let Rounds { costs, void } = once(&mut rounds, || measure(settings, hosts, size))?;
                let Some(cost) = costs[at] else {
                    crate::kinds::require("queue", "red")?;
                    return Err(BenchError::NotHere("it was not measured".into()));
                };
                curves[at].push((size as f64, cost));
                // A row compares its discipline with those before it.
                Ok(like(judge(row, discipline, cost, *costs), &void[..=at].concat()))
            });
        }
    }
    let mut plot = Plot::new("Figure 2: cost of a packet, memory to memory", "packet, bytes", "ns a packet");
    for (discipline, points) in Discipline::ALL.into_iter().zip(curves) {
        plot = plot.with(discipline.name(), Style::Bars, points);
    }
    book.plot(plot);
}

/// Cost of a packet, or additional cost over plain forwarding, and the factor.
fn judge(row: Row, discipline: Discipline, cost: f64, costs: Costs) -> Row {
    let row = row.extra("ns_per_packet", cost);
    let (Some(plain), false) = (costs[0], discipline == Discipline::Plain) else {
        return row.measured(cost);
    };
    let row = row.measured(cost - plain).extra("times_plain", cost / plain);
    let note = format!("{cost:.1} ns a packet, {:.2} times plain forwarding", cost / plain);
    match costs[1] {
        Some(tail_drop) if discipline == Discipline::Red => row
            .extra("over_tail_drop_ns", cost - tail_drop)
            .note(format!("{note}; {:+.1} ns over tail drop", cost - tail_drop)),
        _ => row.note(note),
    }
}

/// The best of several rounds in which the disciplines alternate.
fn measure(settings: &Settings<'_>, hosts: &mut Hosts, size: usize) -> Result<Rounds, BenchError> {
    let mut rounds = Rounds::default();
    let traffic = Traffic { ports: PORTS, size, rate: None };
    for _ in 0..settings.choose(ROUNDS, 1) {
        let each = rounds.costs.iter_mut().zip(&mut rounds.void);
        for (discipline, (best, void)) in Discipline::ALL.into_iter().zip(each) {
            match carried(settings, hosts, Place::Memory, discipline, traffic, Row::new("", "")) {
                Ok((pps, row)) => {
                    let cost = 1e9 / pps;
                    *best = Some(best.map_or(cost, |best| best.min(cost)));
                    void.extend(reasons(&row));
                }
                Err(BenchError::NotHere(_)) if discipline == Discipline::Red => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(rounds)
}

fn on_ports(book: &mut Book<'_>, hosts: &mut Hosts) {
    let mut plot = Plot::new("Figure 2: packet size and throughput, 8 real ports", "packet, bytes", "Mbit/s");
    for discipline in Discipline::ALL {
        let mut points = Vec::new();
        for size in SIZES {
            let name = format!("fig 2: {}, {size} bytes, 8 real ports of 100 Mbit/s", discipline.name());
            let row = paper_if(Row::new(name, "bit/s"), (size == 1518).then_some(LEVEL));
            let traffic = Traffic { ports: PORTS, size, rate: Some(RATE) };
            let bits = throughput(book, hosts, row, (Place::Real, discipline), traffic);
            points.extend(bits.map(|bits| (size as f64, bits / 1e6)));
        }
        plot = plot.with(discipline.name(), Style::Line, points);
    }
    let level = vec![(64.0, LEVEL as f64 / 1e6), (1518.0, LEVEL as f64 / 1e6)];
    book.plot(plot.with("the paper's level", Style::Reference, level));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_told_over_plain_forwarding() {
        let costs = [Some(40.0), Some(60.0), Some(70.0)];
        let row = |discipline, cost| judge(Row::new("x", "ns"), discipline, cost, costs);
        let red = row(Discipline::Red, 70.0);
        assert_eq!((red.measured, red.extra["over_tail_drop_ns"].as_f64()), (Some(30.0.into()), Some(10.0)));
        assert_eq!(red.extra["times_plain"].as_f64(), Some(1.75));
        assert_eq!(row(Discipline::Plain, 40.0).measured, Some(40.0.into()));
    }
}
