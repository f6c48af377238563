//! Figures 5.2 to 5.5: packets a second by packet size, through links of unlimited bandwidth, no delay and no loss, with
//! nothing bypassed.

use crate::Settings;
use crate::book::{Book, paper};
use crate::experiment::{Hosts, links};
use crate::flooding::Flood;
use crate::memory::Load;
use crate::plot::{Plot, Style};
use longwire_bench::BenchError;
use longwire_bench::world::with_losses;
use longwire_report::Row;
use std::time::Duration;

/// Lengths of frames with FCS.
pub(crate) const SIZES: [usize; 6] = [64, 128, 256, 512, 1024, 1518];
/// What nothing of the way impairs, and yet every stage looks at.
const KEYS: &str = "loss = \"0 %\"";

/// Packets a second that the thesis names: size in bytes, how many, of whom.
type Known = (usize, f64, &'static str);
/// A curve: its name, its ports, whether they are real, and what the thesis names of it.
type Case = (&'static str, usize, bool, &'static [Known]);

/// The thesis' packets a second, where its text names them: size, LinkEM or else Dummynet.
const FOUR_PORTS: [Known; 2] =
    [(64, 496e3, "LinkEM; Dummynet 106 kpps"), (1518, 26.2e3, "Dummynet; LinkEM line rate")];
const TWO_PORTS: [Known; 2] = [(64, 124e3, "Dummynet"), (128, 104e3, "Dummynet")];

pub(super) fn rows(book: &mut Book<'_>, hosts: &mut Hosts) {
    let mut plot =
        Plot::new("Figures 5.2 to 5.5: throughput against packet size", "packet, bytes", "Mbit/s").log_y();
    let line_rate = |ports: u64| {
        SIZES
            .iter()
            .map(|size| (*size as f64, ports as f64 * 100.0 * *size as f64 / (*size as f64 + 20.0)))
            .collect()
    };
    plot = plot.with("line rate of the thesis' 4 ports", Style::Reference, line_rate(4));
    let cases: [Case; 3] = [
        ("fig 5.2: 4 real ports", 4, true, &FOUR_PORTS),
        ("fig 5.5: 2 real ports", 2, true, &TWO_PORTS),
        ("fig 5.2: 4 memory ports", 4, false, &FOUR_PORTS),
    ];
    let settings = book.settings;
    let mut curves = Vec::new();
    for (name, ports, real, known) in cases {
        let mut points = Vec::new();
        for size in SIZES {
            let row = Row::new(format!("{name}, {size} bytes"), "pps");
            let row = match known.iter().find(|entry| entry.0 == size) {
                Some((_, pps, who)) => paper(row, *pps).extra("paper_of", *who),
                None => row,
            };
            let row = book.row(row, |row| {
                let row = if real {
                    on_ports(settings, hosts, ports, size, row)?
                } else {
                    in_memory(settings, ports, size, row)?
                };
                Ok(described(row, size))
            });
            points.extend(
                row.and_then(|row| Some((size as f64, row.measured?.as_f64()? * size as f64 * 8e-6))),
            );
        }
        curves.push((name, points));
    }
    for (name, points) in curves {
        plot = plot.with(name, Style::Line, points);
    }
    let thesis = FOUR_PORTS.iter().map(|(size, pps, _)| (*size as f64, pps * *size as f64 * 8e-6)).collect();
    book.plot(plot.with("thesis", Style::Scatter, thesis));
}

/// With what the packets come to in bits, and who the paper's number is of.
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

/// Links for 8 flows over so many ports: 8 divided among the ports that send.
fn eight_links(ports: usize) -> (u32, String) {
    let each = 8 / ports as u32;
    (each, (0..ports).map(|place| links(place, each, KEYS)).collect())
}

fn in_memory(settings: &Settings<'_>, ports: usize, size: usize, row: Row) -> Result<Row, BenchError> {
    settings.require_real_time("a speed")?;
    let (links_a_port, links) = eight_links(ports);
    let load = Load { ports, links_a_port, frame_bytes: size - 4, links, rate: None };
    let time = Duration::from_millis(settings.choose(1000, 100));
    let carried = load.carry(settings, time)?;
    let ns = 1e9 / carried.packets_per_second;
    let row = row.measured(carried.packets_per_second).extra("ns_per_packet", ns);
    Ok(with_losses(row, &carried.report))
}

fn on_ports(
    settings: &Settings<'_>,
    hosts: &mut Hosts,
    ports: usize,
    size: usize,
    row: Row,
) -> Result<Row, BenchError> {
    let (links_a_port, links) = eight_links(ports);
    let world = hosts.world(settings, ports, false)?;
    let flood = Flood { ports, links_a_port, size, links: &links, rate: None };
    let (pps, missed) = flood.carry(settings, world)?;
    let row = row.measured(pps).extra("missed", missed);
    Ok(if missed == 0 {
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
        assert_eq!(eight_links(4).0, 2);
    }
}
