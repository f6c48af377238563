//! Figures 5.2 to 5.5: packets per second by packet size, through links of unlimited bandwidth without delay
//! and loss, with no stage bypassed. Figure 5.2 is LinkEM with four ports, 5.3 the same counted before the
//! output ports, 5.4 compares LinkEM with Dummynet on four ports of 100 Mbit/s, and 5.5 on two.

use crate::Settings;
use crate::book::{Book, paper};
use crate::experiment::{Hosts, links};
use crate::memory::Load;
use crate::plot::{Plot, Style};
use crate::trust::whole;
use longwire_bench::BenchError;
use longwire_report::Row;
use std::time::Duration;

/// Lengths of frames with FCS.
pub(crate) const SIZES: [usize; 6] = [64, 128, 256, 512, 1024, 1518];
/// Has no effect, but keeps every stage active.
const KEYS: &str = "loss = \"0 %\"";

/// The thesis' values for a size: size in bytes, packets per second, and the emulator.
struct ThesisValue {
    size: usize,
    /// None where the text has no number but "line rate".
    pps: Option<f64>,
    who: &'static str,
}

const fn pps(size: usize, pps: f64, who: &'static str) -> ThesisValue {
    ThesisValue { size, pps: Some(pps), who }
}

const fn line_rate(size: usize, who: &'static str) -> ThesisValue {
    ThesisValue { size, pps: None, who }
}

/// A curve.
struct Case {
    name: &'static str,
    ports: usize,
    /// Whether ports are real.
    real: bool,
    /// Whether 100 Mbit/s are sent into each port, as in the thesis, instead of full speed.
    paced: bool,
    known: &'static [ThesisValue],
}

const CASES: [Case; 4] = [
    Case {
        name: "fig 5.2: 4 real ports, as fast as they go",
        ports: 4,
        real: true,
        paced: false,
        known: &[pps(64, 496e3, "LinkEM")],
    },
    Case {
        name: "fig 5.3: 4 memory ports: nothing behind the engine",
        ports: 4,
        real: false,
        paced: false,
        known: &[
            line_rate(128, "LinkEM"),
            line_rate(256, "LinkEM"),
            line_rate(512, "LinkEM"),
            line_rate(1024, "LinkEM"),
            line_rate(1518, "LinkEM"),
        ],
    },
    Case {
        name: "fig 5.4: 4 real ports of 100 Mbit/s",
        ports: 4,
        real: true,
        paced: true,
        known: &[pps(64, 106e3, "Dummynet"), pps(1518, 26.2e3, "Dummynet")],
    },
    Case {
        name: "fig 5.5: 2 real ports of 100 Mbit/s",
        ports: 2,
        real: true,
        paced: true,
        known: &[
            pps(64, 124e3, "Dummynet"),
            pps(128, 104e3, "Dummynet"),
            line_rate(256, "LinkEM and Dummynet"),
            line_rate(512, "LinkEM and Dummynet"),
            line_rate(1024, "LinkEM and Dummynet"),
            line_rate(1518, "LinkEM and Dummynet"),
        ],
    },
];

/// Rate of a port of 100 Mbit/s: preamble and gap are 20 bytes.
const PORT: f64 = 100e6;

/// Packets per second of this many ports of the thesis at line rate.
fn at_line_rate(ports: usize, size: usize) -> f64 {
    ports as f64 * PORT / ((size as f64 + 20.0) * 8.0)
}

pub(super) fn rows(book: &mut Book<'_>, hosts: &mut Hosts) {
    let mut plot =
        Plot::new("Figures 5.2 to 5.5: throughput against packet size", "packet, bytes", "Mbit/s").log_y();
    let line = SIZES.iter().map(|&size| (size as f64, at_line_rate(4, size) * size as f64 * 8e-6)).collect();
    plot = plot.with("line rate of the thesis' 4 ports", Style::Reference, line);
    let settings = book.settings;
    for case in &CASES {
        let mut points = Vec::new();
        for size in SIZES {
            let row = Row::new(format!("{}, {size} bytes", case.name), "pps");
            let row = if case.paced { row.expected(at_line_rate(case.ports, size).round()) } else { row };
            let row = match case.known.iter().find(|known| known.size == size) {
                Some(ThesisValue { pps: Some(pps), who, .. }) => paper(row, *pps).extra("paper_of", *who),
                Some(ThesisValue { who, .. }) => paper(row, "line rate").extra("paper_of", *who),
                None => row,
            };
            let pps = book.number(row, |row| {
                let row = if case.real {
                    on_ports(settings, hosts, case, size, row)?
                } else {
                    in_memory(settings, case.ports, size, row)?
                };
                Ok(described(row, size))
            });
            points.extend(pps.map(|pps| (size as f64, pps * size as f64 * 8e-6)));
        }
        plot = plot.with(case.name, Style::Line, points);
    }
    for who in ["LinkEM", "Dummynet"] {
        let known = CASES.iter().filter(|case| case.ports == 4).flat_map(|case| case.known);
        let known = known.filter(|known| known.who == who);
        let points =
            known.filter_map(|&ThesisValue { size, pps, .. }| Some((size as f64, pps? * size as f64 * 8e-6)));
        plot = plot.with(format!("{who}, 4 ports"), Style::Scatter, points.collect());
    }
    book.plot(plot);
}

/// Adds the rate in bits, and the emulator of the paper's number.
fn described(row: Row, size: usize) -> Row {
    let pps = row.measured.as_ref().and_then(longwire_report::Scalar::as_f64).unwrap_or(0.0);
    let bits = pps * size as f64 * 8.0;
    let of = row.extra.get("paper_of").and_then(|who| who.as_str()).map(|who| format!("; paper: {who}"));
    row.extra("bits_per_second", bits).note(format!(
        "{:.1} Mbit/s of frames{}",
        bits / 1e6,
        of.unwrap_or_default()
    ))
}

/// Frames of this length over links for 8 flows: 8 divided by the number of ports that send.
fn load(ports: usize, size: usize, rate: Option<u64>) -> Load {
    let links_a_port = 8 / ports as u32;
    let links = (0..ports).map(|place| links(place, links_a_port, KEYS)).collect();
    Load { ports, links_a_port, frame_bytes: size - 4, links, rate }
}

fn in_memory(settings: &Settings<'_>, ports: usize, size: usize, row: Row) -> Result<Row, BenchError> {
    settings.require_real_time("a speed")?;
    let time = Duration::from_millis(settings.choose(1000, 100));
    let carried = load(ports, size, None).carry(settings, time)?;
    let ns = 1e9 / carried.packets_per_second;
    let row = row.measured(carried.packets_per_second).extra("ns_per_packet", ns);
    Ok(whole(row, &carried.report))
}

fn on_ports(
    settings: &Settings<'_>,
    hosts: &mut Hosts,
    case: &Case,
    size: usize,
    row: Row,
) -> Result<Row, BenchError> {
    let world = hosts.world(settings, case.ports, false)?;
    let rate = (PORT * size as f64 / (size as f64 + 20.0)) as u64;
    let load = load(case.ports, size, case.paced.then_some(rate));
    let (pps, missed, row) = load.flood(settings, world, row)?;
    let row = row.measured(pps);
    Ok(if missed == 0 && case.paced {
        row.note("no frame was refused: what there is less than line rate, the generator did not send")
    } else if missed == 0 {
        row.note("no frame was refused: the generator was no faster than this")
    } else {
        row.note(format!("{missed} frames found a port's queue full: the generator was faster"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_number_is_named() {
        let row = paper(Row::new("x", "pps"), 496e3).extra("paper_of", "LinkEM").measured(1e6);
        assert_eq!(described(row, 64).notes, ["512.0 Mbit/s of frames; paper: LinkEM"]);
        assert_eq!(load(4, 64, None).links_a_port, 2);
        // 595 kpps of 64 bytes and 32 kpps of 1518 are offered to four ports, as the thesis has it.
        assert_eq!([64, 1518].map(|size| (at_line_rate(4, size) / 1e3).round()), [595.0, 33.0]);
    }
}
