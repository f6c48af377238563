//! Table 5.1: errors of a link's bandwidth.
//!
//! At the link layer: bits of all arrivals but the first over the time from first to last arrival, frames
//! with FCS. Once with datagrams that fill the link, once with TCP as in the thesis, whose own numbers are
//! iperf's.

use crate::book::{Book, paper_if};
use crate::experiment::{
    End, Experiment, ExperimentResult, Far, Hosts, LONGEST, LONGEST_BITS, blast, close, generator, paced,
};
use crate::meter::{Arrivals, Meter};
use crate::plot::{Plot, Style};
use crate::{Settings, experiment};
use longwire_bench::world::{BenchHosts, HOSTS, settle_beside};
use longwire_bench::{BenchError, joined, stop_after};
use longwire_clock::monotonic;
use longwire_lab::traffic::bulk::{Bulk, BulkResult, send};
use longwire_lab::traffic::{Receiver, StopAfter, until};
use longwire_packet::Pool;
use longwire_report::Row;
use longwire_units::{Nanos, Rate};
use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Configured rates in bit/s, and the thesis' observations.
const RATES: [(u64, Option<u64>); 9] = [
    (64_000, Some(63_460)),
    (128_000, Some(126_510)),
    (256_000, Some(254_060)),
    (512_000, Some(508_120)),
    (1_544_000, Some(1_531_620)),
    (2_000_000, Some(1_984_790)),
    (10_000_000, Some(9_920_840)),
    (100_000_000, None),
    (1_000_000_000, None),
];
/// Tolerance of bandwidth in percent.
const WITHIN: f64 = 0.5;
/// Duration of a full run, as in the thesis, after a warm-up, and the length of its windows in seconds.
pub(super) const FULL: Duration = Duration::from_secs(120);
pub(super) const FULL_SETTLING: Duration = Duration::from_secs(5);
const WINDOW: Nanos = Nanos(5_000_000_000);
/// From here on one flow at a time: test hosts on this machine lack the processors for two.
const FAST: u64 = 100_000_000;

pub(super) fn rows(book: &mut Book<'_>, hosts: &mut Hosts) {
    let mut plot = Plot::new("Table 5.1: bandwidth error", "configured, bit/s", "error, %").log_x();
    let observed = RATES.iter().filter_map(|(rate, paper)| Some((*rate, percent((*paper)? as f64, *rate))));
    let thesis = observed.map(|(rate, error)| (rate as f64, error)).collect();
    for (what, tcp) in [("link layer", false), ("TCP", true)] {
        let mut errors = Vec::new();
        for (rate, observed) in RATES {
            let row = Row::new(format!("table 5.1: {}, {what}", Rate(rate)), "bit/s").expected(rate);
            let row = paper_if(row, observed);
            let settings = book.settings;
            let row = book.row(row, |row| {
                if tcp { over_tcp(settings, hosts, rate, row) } else { filled(settings, hosts, rate, row) }
            });
            errors.extend(row.and_then(|row| Some((rate as f64, row.error_percent?))));
        }
        plot = plot.with(format!("Longwire, {what}"), Style::Line, errors);
    }
    book.plot(plot.with("LinkEM", Style::Line, thesis));
}

fn percent(measured: f64, configured: u64) -> f64 {
    (measured / configured as f64 - 1.0) * 100.0
}

/// Datagrams at 110 % of the link's rate; 105 % where test hosts can't send more.
fn filled(settings: &Settings<'_>, hosts: &mut Hosts, rate: u64, row: Row) -> Result<Row, BenchError> {
    let time = Nanos::from_secs(settings.choose(10, 2));
    let offered = if rate > FAST { rate / 20 * 21 } else { rate / 10 * 11 };
    let plan = paced(blast(0, 1, LONGEST), offered, time);
    let queue = (rate / 20 / LONGEST_BITS).clamp(100, 4000);
    let keys = format!("rate = \"{rate} bit/s\"\nqueue = \"{queue} packets\"");
    let meter = Meter::new(experiment::base(1), 1);
    let link = Experiment::one_way(generator(0, plan)?, meter, &keys, time)?;
    let (settling, drain) = (Nanos(time.0 / 5), Nanos::from_millis(100));
    let seen = Experiment { seed: settings.seed, settling, drain, ..link }.run(settings, hosts)?;
    let arrivals = seen.meters[1].links[0];
    let row = judged(row, rate, arrivals, settings.simulate);
    Ok(seen.checked(row))
}

/// The row of the arrivals. In virtual time the bits must match the rate over that time, to one packet.
fn judged(row: Row, rate: u64, arrivals: Arrivals, exact: bool) -> Row {
    let Some(measured) = arrivals.rate() else {
        return row.measured("too few").judged(false).note("fewer than two packets arrived");
    };
    let row = row.measured(measured).within_percent(WITHIN).extra("packets", arrivals.packets);
    if !exact {
        return row;
    }
    let span = arrivals.last.since(arrivals.first);
    let due = u128::from(rate) * u128::from(span.0) / 1_000_000_000;
    let off = due.abs_diff(u128::from(arrivals.bits()));
    let ok = row.pass == Some(true) && off <= u128::from(LONGEST_BITS);
    row.judged(ok).extra("bits_off", off as u64).note(format!(
        "{off} bits more or less than the rate gives in the time of {} packets",
        arrivals.packets
    ))
}

/// TCP from the first host of each pair to the second, as in the thesis: two flows in parallel, four links.
fn over_tcp(settings: &Settings<'_>, hosts: &mut Hosts, rate: u64, row: Row) -> Result<Row, BenchError> {
    settings.require_real("TCP")?;
    let time = if settings.full { FULL + FULL_SETTLING } else { Duration::from_secs(settings.choose(10, 3)) };
    let pairs = if rate < FAST { 2 } else { 1 };
    let world = hosts.world(settings, 2 * pairs, true)?;
    let run = world.start_scenario(&tcp_scenario(pairs, rate))?;
    let flows = flows(settings, world, pairs, time);
    let ((meters, missed, transfers), report) = stop_after(run, flows)?;
    let arrivals = meters.iter().filter_map(|meter| meter.links.first().copied());
    let worst = arrivals.max_by(|a, b| {
        let off = |arrivals: &Arrivals| percent(arrivals.rate().unwrap_or(0.0), rate).abs();
        off(a).total_cmp(&off(b))
    });
    let row = judged(row, rate, worst.unwrap_or_default(), false);
    let row = with_windows(row, rate, meters.iter().flat_map(Meter::window_rates).collect());
    let goodput = transfers.iter().filter_map(|bulk| bulk.reception.goodput_bits_per_second);
    let goodput = goodput.fold(f64::INFINITY, f64::min);
    let row = row
        .extra("goodput_bits_per_second", goodput)
        .extra("flows", pairs)
        .note(format!("the worst flow of {pairs}; payload alone at the receiver: {goodput:.0} bit/s"));
    Ok(ExperimentResult { meters, report, missed }.checked(row))
}

/// The row with the windows of a full run.
fn with_windows(row: Row, rate: u64, windows: Vec<f64>) -> Row {
    if windows.is_empty() {
        return row;
    }
    let least = windows.iter().copied().fold(f64::INFINITY, f64::min);
    let most = windows.iter().copied().fold(0.0, f64::max);
    row.extra("window_bits_per_second", windows.clone()).note(format!(
        "{} windows of 5 s: {:+.2} to {:+.2} %",
        windows.len(),
        percent(least, rate),
        percent(most, rate)
    ))
}

/// Links of this rate both ways between the hosts of each pair.
fn tcp_scenario(pairs: usize, rate: u64) -> String {
    // A queue of 50 ms, with at least the packets that TCP needs, and at most those that it can fill in time.
    let queue = (rate / 20 / LONGEST_BITS).clamp(30, 400);
    let mut text =
        "[engine]\nwait = \"spin\"\ncpus = [0]\npool = \"64 MiB\"\ntrain-spread = \"0 us\"\n".to_owned();
    text += &experiment::hosts(2 * pairs);
    for pair in 0..pairs {
        let [a, b] = [HOSTS[2 * pair], HOSTS[2 * pair + 1]];
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "[[link]]\nbetween = [\"{a}\", \"{b}\"]\nrate = \"{rate} bit/s\"\nqueue = \"{queue} packets\"\n"
        );
    }
    text
}

/// Arrivals of each flow at the link layer once it filled its link, the number of frames that were not
/// counted, and TCP's own statistics.
fn flows(
    settings: &Settings<'_>,
    world: &BenchHosts,
    pairs: usize,
    time: Duration,
) -> Result<(Vec<Meter>, u64, Vec<BulkResult>), BenchError> {
    let begin = monotonic();
    let time_ns = time.as_nanos() as u64;
    let settling = if settings.full { FULL_SETTLING.as_nanos() as u64 } else { time_ns / 5 };
    let mut far = Vec::new();
    for pair in 0..pairs {
        let to = 2 * pair + 1;
        let address = Ipv4Addr::new(10, 0, 0, to as u8 + 1);
        let meter = Meter::new(address, 1).after(begin + Nanos(settling));
        let meter = if settings.full { meter.in_windows(WINDOW) } else { meter };
        let source = generator(to, longwire_port::driver::memory::BlastPlan::sink())?;
        far.push(Far::open(world, to, End { source, meter }, 4096)?);
    }
    let end = begin + Nanos(time_ns);
    let ended = AtomicBool::new(false);
    // The flows outlast the count, so that the links are full to its end.
    let bulk = Bulk::new(StopAfter::duration(time + Duration::from_millis(200)));
    std::thread::scope(|scope| {
        let counting = scope.spawn(|| -> Result<(Vec<Meter>, u64), BenchError> {
            settle_beside();
            let mut pool = Pool::new(4 << 20)?;
            while monotonic() < end && !ended.load(Ordering::Relaxed) {
                far.iter_mut().try_for_each(|far| far.count(&mut pool))?;
                std::thread::sleep(Duration::from_micros(500));
            }
            Ok(close(far))
        });
        let sending: Vec<_> = (0..pairs)
            .map(|pair| {
                let bulk = &bulk;
                scope.spawn(move || {
                    let send = |receiver: &Receiver| send(receiver, bulk, &mut until(settings.stop));
                    world.between(2 * pair, 2 * pair + 1, send)
                })
            })
            .collect();
        let sent: Result<Vec<_>, BenchError> = sending.into_iter().map(joined).collect();
        ended.store(true, Ordering::Relaxed);
        let counted = joined(counting);
        settings.go_on()?;
        let (meters, missed) = counted?;
        Ok((meters, missed, sent?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn virtual_rows_are_exact_to_a_packet() {
        let mut meter = Meter::new(Ipv4Addr::new(10, 2, 0, 0), 1);
        let mut frame = [0; 60];
        frame[30..34].copy_from_slice(&[10, 2, 0, 0]);
        for n in 0..100u64 {
            meter.take(Nanos(n * 12_144_000), &frame, 1514);
        }
        let row = || Row::new("x", "bit/s").expected(1_000_000);
        assert_eq!(judged(row(), 1_000_000, meter.links[0], true).pass, Some(true));
        // 1 % more bits in the same time is within the tolerance, but off by more than a packet.
        assert_eq!(judged(row(), 1_004_000, meter.links[0], true).extra["bits_off"], 4809);
        assert_eq!(judged(row(), 1_020_000, meter.links[0], true).pass, Some(false));
        assert_eq!(judged(row(), 1_000_000, Arrivals::default(), false).pass, Some(false));
    }
}
