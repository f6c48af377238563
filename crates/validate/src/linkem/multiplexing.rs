//! Figures 5.6 and 5.8: the number of links that a pair of ports carries, each at its own bandwidth.
//!
//! The thesis runs unidirectional TCP and counts a flow as two links; `multiplexed_tcp` does that. Here every
//! link, one in each direction, is filled with datagrams of 1518 bytes, at 110 % of its rate.

use crate::Settings;
use crate::book::{Book, paper, paper_if};
use crate::experiment::{
    End, Experiment, ExperimentResult, Hosts, LONGEST, base, blast, generator, links, paced, silent,
};
use crate::meter::Meter;
use crate::plot::{Plot, Style};
use longwire_bench::BenchError;
use longwire_report::Row;
use longwire_units::{Nanos, Rate};

/// TCP goodput on a 100 Mbit/s port (the thesis, footnote in section 5.3.2).
const OF_A_PORT: u64 = 94_000_000;
/// Tolerance of a link's rate in percent: the thesis' bound.
pub(super) const WITHIN: f64 = 2.0;

/// Results of LinkEM and Dummynet by bandwidth, with 4 and with 2 ports.
pub(super) type ThroughputPair = Option<(u64, u64)>;
pub(super) const RATES: [(u64, ThroughputPair, ThroughputPair); 6] = [
    (10_000_000, Some((36, 36)), None),
    (2_000_000, Some((172, 180)), None),
    (1_000_000, None, None),
    (512_000, None, None),
    (256_000, None, Some((680, 500))),
    (128_000, Some((840, 480)), Some((1320, 500))),
];

/// Links in one direction between a pair of ports, far more than the thesis' ports carry.
struct Beyond {
    count: u32,
    rate: u64,
    /// Tolerance of each, in percent.
    within: f64,
    /// The most links that LinkEM carried between a pair of ports.
    linkem: Option<u64>,
}

const BEYOND: [Beyond; 5] = [
    Beyond { count: 4000, rate: 128_000, within: 0.5, linkem: None },
    Beyond { count: 400, rate: 2_000_000, within: 0.5, linkem: None },
    Beyond { count: 8000, rate: 128_000, within: WITHIN, linkem: Some(1320) },
    Beyond { count: 12_000, rate: 128_000, within: WITHIN, linkem: Some(1320) },
    Beyond { count: 20_000, rate: 128_000, within: WITHIN, linkem: Some(1320) },
];

pub(super) fn rows(book: &mut Book<'_>, hosts: &mut Hosts) {
    figure(book, hosts, "5.6", 4, |row| row.1);
    figure(book, hosts, "5.8", 2, |row| row.2);
    for Beyond { count, rate, within, linkem } in BEYOND {
        let name = format!("beyond fig 5.8: {count} links of {} over one port pair", Rate(rate));
        let settings = book.settings;
        book.row(paper_if(Row::new(name, "links").expected(count), linkem), |row| {
            let seen = fill(settings, hosts, 2, count, false, rate)?;
            let rates = seen.meters[1].rates();
            Ok(seen.checked(judged(row, (&rates, 1), rate, within)))
        });
    }
}

/// Number of links that fit the ports' rate, two for each flow.
pub(super) fn ideal(ports: usize, rate: u64) -> u64 {
    ports as u64 * (OF_A_PORT / rate)
}

fn figure(
    book: &mut Book<'_>,
    hosts: &mut Hosts,
    figure: &str,
    ports: usize,
    reached: impl Fn(&(u64, ThroughputPair, ThroughputPair)) -> ThroughputPair,
) {
    let (mut ours, mut linkem, mut dummynet) = (Vec::new(), Vec::new(), Vec::new());
    let settings = book.settings;
    for entry in &RATES {
        let (rate, ideal) = (entry.0, ideal(ports, entry.0));
        let name = format!("fig {figure}: links of {}, {ports} ports", Rate(rate));
        let mut row = Row::new(name, "links").expected(ideal);
        if let Some((first, second)) = reached(entry) {
            row = paper(row, first).extra("paper_dummynet", second);
            linkem.push((rate as f64, first as f64));
            dummynet.push((rate as f64, second as f64));
        }
        let right = book.number(row, |row| {
            let seen = fill(settings, hosts, ports, (ideal / ports as u64) as u32, true, rate)?;
            let rates = seen.meters.iter().flat_map(Meter::rates).collect::<Vec<_>>();
            Ok(seen.checked(judged(row, (&rates, 1), rate, WITHIN)))
        });
        ours.extend(right.map(|right| (rate as f64, right)));
    }
    let curve = RATES.iter().map(|entry| (entry.0 as f64, ideal(ports, entry.0) as f64)).collect();
    book.plot(
        Plot::new(
            format!("Figure {figure}: links multiplexed, {ports} ports"),
            "bandwidth of a link, bit/s",
            "links",
        )
        .log_x()
        .log_y()
        .with("ideal", Style::Reference, curve)
        .with("Longwire, all right at the ideal count", Style::Line, ours)
        .with("LinkEM", Style::Line, linkem)
        .with("Dummynet", Style::Line, dummynet),
    );
}

/// Fills `count` links from each end, or from the first alone, at 110 % of their rate.
fn fill(
    settings: &Settings<'_>,
    hosts: &mut Hosts,
    ports: usize,
    count: u32,
    both_ways: bool,
    rate: u64,
) -> Result<ExperimentResult, BenchError> {
    // Long enough for a hundred packets of the slowest link, between a first and a last arrival.
    let time = Nanos::from_secs(settings.choose(if count >= 4000 { 40 } else { 10 }, 2));
    let senders: Vec<_> = (0..ports).filter(|place| both_ways || place % 2 == 0).collect();
    // Tenths of a second for slow links, at least a few packets, so that a pause of the generator does not
    // affect the link.
    let queue = (rate / 5 / 12_144).clamp(4, 200);
    let keys = format!("rate = \"{rate} bit/s\"\nqueue = \"{queue} packets\"");
    let text: String = senders.iter().map(|&place| links(place, count, &keys)).collect();
    let mut ends = Vec::new();
    for place in 0..ports {
        let offered = rate * u64::from(count) / 10 * 11;
        let sends = senders.contains(&place);
        let plan = if sends { paced(blast(place, count, LONGEST), offered, time) } else { silent(place) };
        let counts = senders.contains(&(place ^ 1));
        let meter = if counts { Meter::new(base(place), count) } else { Meter::default() };
        ends.push(End { source: generator(place, plan)?, meter });
    }
    let (settling, drain) = (Nanos(time.0 / 5), Nanos::from_millis(300));
    Experiment { seed: settings.seed, links: text, ends, time, settling, drain }.run(settings, hosts)
}

/// The row of the measured bandwidths, each of `each` links; it passes if all are right.
pub(super) fn judged(row: Row, (rates, each): (&[f64], usize), rate: u64, within: f64) -> Row {
    let errors: Vec<_> = rates.iter().map(|measured| (measured / rate as f64 - 1.0) * 100.0).collect();
    let right = errors.iter().filter(|error| error.abs() <= within).count();
    let worst = errors
        .iter()
        .copied()
        .fold(0.0, |worst: f64, error| if error.abs() > worst.abs() { error } else { worst });
    let mean = errors.iter().sum::<f64>() / errors.len().max(1) as f64;
    row.measured(right * each)
        .judged(right == rates.len() && right > 0)
        .extra("links", rates.len())
        .extra("worst_error_percent", worst)
        .extra("mean_error_percent", mean)
        .extra("bits_per_second", rates.iter().sum::<f64>())
        .note(format!(
            "{right} of {} links within {within} %; the worst is {worst:+.4} % off, the mean {mean:+.4} %; \
             together {:.1} Mbit/s",
            rates.len(),
            rates.iter().sum::<f64>() / 1e6
        ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ideal_counts_are_the_thesis_own() {
        // "36 10-Mbps links (18 TCP flows, 9 flows across each pair of ports)"; 680 and 1320 of 2 ports are
        // 95 and 90 %.
        assert_eq!((ideal(4, 10_000_000), ideal(4, 2_000_000)), (36, 188));
        assert_eq!((ideal(2, 256_000), ideal(2, 128_000)), (734, 1468));
    }

    #[test]
    fn every_link_counts() {
        let row = || Row::new("x", "links").expected(3);
        let good = judged(row(), (&[100.0, 101.9, 98.1], 1), 100, 2.0);
        assert_eq!((good.pass, good.measured), (Some(true), Some(3.into())));
        let bad = judged(row(), (&[100.0, 102.5, 0.0], 1), 100, 2.0);
        assert_eq!((bad.pass, bad.extra["worst_error_percent"].as_f64()), (Some(false), Some(-100.0)));
        assert_eq!(judged(row(), (&[], 1), 100, 2.0).pass, Some(false));
        // One of two flows, which is two links.
        let half = judged(row(), (&[100.0, 50.0], 2), 100, 2.0);
        assert_eq!((half.pass, half.measured), (Some(false), Some(2.into())));
    }
}
