//! Tables 5.2 to 5.5: round-trip times minus those without a delay, by packet size.

use crate::Settings;
use crate::book::{Book, paper};
use crate::ends::{Echo, RoundTrips, Shared};
use crate::experiment::{self, Hosts, base, links, numbered, scenario};
use crate::plot::{Plot, Style, cumulative};
use crate::trust::{like, reasons, trusted, void, whole};
use longwire_bench::world::settle_beside;
use longwire_bench::{BenchError, Sample};
use longwire_block::Port;
use longwire_lab::traffic::ping::{Ping, ping_each};
use longwire_lab::traffic::until;
use longwire_port::driver::source::Interval;
use longwire_port::intercepted::InterceptedPort;
use longwire_report::Row;
use longwire_units::Nanos;
use std::collections::HashMap;
use std::net::Ipv4Addr;

/// Lengths of frames with FCS.
const SIZES: [usize; 6] = [64, 128, 256, 512, 1024, 1518];
/// Ethernet header and FCS, IPv4 header, echo header.
const HEADERS: usize = 18 + 20 + 8;
/// Table 5.2, in µs: means and standard deviations.
const BASE: [(u64, u64); 6] = [(330, 4), (424, 36), (452, 3), (696, 4), (1058, 20), (1427, 3)];
/// A table's name, its one-way delay in ms, and by size mean and standard deviation in µs.
type Table = (&'static str, u64, [(u64, u64); 6]);
/// Tables 5.3 to 5.5: one-way delay in ms; round-trip times minus base, and standard deviations, in µs.
const DELAYS: [Table; 3] = [
    ("5.3", 5, [(9987, 28), (9983, 44), (10_007, 7), (10_007, 7), (9979, 53), (10_007, 12)]),
    ("5.4", 30, [(60_006, 14), (60_063, 17), (60_039, 9), (60_038, 8), (60_035, 26), (60_038, 7)]),
    ("5.5", 101, [(202_077, 15), (202_041, 59), (202_081, 13), (202_079, 8), (202_049, 53), (202_079, 10)]),
];
/// Minimum tolerance, in ns.
const ALLOWED: f64 = 15e3;
/// Interval of requests: they overlap.
const EVERY: Nanos = Nanos(1_000_000);

/// The standard deviation of round-trip times.
fn deviation(times: &Sample) -> f64 {
    let mean = times.mean();
    let squares: f64 = times.values().iter().map(|time| (time - mean).powi(2)).sum();
    (squares / times.values().len().max(1) as f64).sqrt()
}

/// Adds mean, deviation and quantiles of the times minus `offset`.
fn describe(times: &Sample, row: Row, offset: f64, paper_deviation: u64) -> Row {
    let [p50, p99, p999, max] = [0.5, 0.99, 0.999, 1.0].map(|share| times.quantile(share) - offset);
    let deviation = deviation(times);
    let us = |ns: f64| ns / 1e3;
    row.extra("deviation_ns", deviation)
        .extra("paper_deviation_ns", paper_deviation * 1000)
        .extra("p50_ns", p50)
        .extra("p99_ns", p99)
        .extra("p999_ns", p999)
        .extra("max_ns", max)
        .extra("packets", times.values().len())
        .note(format!(
            "s.d. {:.1} µs (paper {paper_deviation}); p50 {:.1}, p99 {:.1}, p99.9 {:.1}, max {:.1} µs of \
             {} echoes",
            us(deviation),
            us(p50),
            us(p99),
            us(p999),
            us(max),
            times.values().len()
        ))
}

pub(super) fn rows(book: &mut Book<'_>, hosts: &mut Hosts) {
    let mut bases = HashMap::new();
    let settings = book.settings;
    for (size, (mean, deviation)) in SIZES.into_iter().zip(BASE) {
        let row = paper(Row::new(format!("table 5.2: base RTT, {size} bytes"), "ns"), mean * 1000);
        book.row(row, |row| {
            let (times, row) = echoes(settings, hosts, EchoPath::of(0), size, row)?;
            let row = describe(&times, row.measured(times.mean()), 0.0, deviation);
            bases.insert(size, Base::of(&times, &row));
            Ok(row)
        });
    }
    for (table, delay, observed) in DELAYS {
        let mut plot = Plot::new(
            format!("Table {table}: error of the round trip, {delay} ms each way"),
            "round-trip time less base, less twice the delay, µs",
            "share of echoes",
        );
        for (size, (mean, deviation)) in SIZES.into_iter().zip(observed) {
            let nominal = 2_000_000 * delay;
            let name = format!("table {table}: RTT less base, {delay} ms each way, {size} bytes");
            let row = paper(Row::new(name, "ns").expected(nominal), mean * 1000);
            let mut errors = Vec::new();
            book.row(row, |row| {
                let base = base_of(settings, hosts, &mut bases, size)?;
                let (times, row) = echoes(settings, hosts, EchoPath::of(delay), size, like(row, &base.void))?;
                let error = |time: &f64| (time - base.mean - nominal as f64) / 1e3;
                errors = times.values().iter().map(error).collect();
                let row = judged(row.measured(times.mean() - base.mean), mean * 1000, nominal);
                Ok(describe(&times, row, base.mean + nominal as f64, deviation))
            });
            plot = plot.with(format!("{size} bytes"), Style::Steps, cumulative(&errors, 400));
        }
        book.plot(plot);
    }
    tick_study(book, hosts);
}

/// The path of echoes, both ways: a delay in ms, and whether packets leave only at the thesis' ticks.
#[derive(Debug, Clone, Copy)]
struct EchoPath {
    delay: u64,
    ticks: bool,
}

impl EchoPath {
    const fn of(delay: u64) -> Self {
        Self { delay, ticks: false }
    }
}

/// Effect of the thesis' tick: the same round trips with departures at 8192 Hz only, 64 bytes.
fn tick_study(book: &mut Book<'_>, hosts: &mut Hosts) {
    let settings = book.settings;
    let size = SIZES[0];
    for (_, delay, observed) in DELAYS {
        let (mean, deviation) = observed[0];
        let name = format!("tick study: RTT less base, {delay} ms each way, {size} bytes, ticks of 8192 Hz");
        let row = paper(Row::new(name, "ns").expected(2_000_000 * delay), mean * 1000);
        book.row(row, |row| {
            settings.require_real("a tick")?;
            let path = |delay| EchoPath { delay, ticks: true };
            let (base, row) = echoes(settings, hosts, path(0), size, row)?;
            let (times, row) = echoes(settings, hosts, path(delay), size, row)?;
            let row = row.measured(times.mean() - base.mean());
            Ok(describe(&times, row, base.mean() + (2_000_000 * delay) as f64, deviation))
        });
    }
}

/// Tolerance of the mean in ns: the paper's error, or 15 µs if more.
fn allowed(paper: u64, nominal: u64) -> f64 {
    ALLOWED.max(paper.abs_diff(nominal) as f64)
}

/// The row with its verdict, and the tolerance with its reason.
fn judged(row: Row, paper: u64, nominal: u64) -> Row {
    let (allowed, own) = (allowed(paper, nominal), paper.abs_diff(nominal) as f64 / 1e3);
    let why = if allowed > ALLOWED {
        format!("{own:.0} µs, by which the paper's own mean is off")
    } else {
        format!(
            "15 µs (the paper's mean is {own:.0} µs off): the base is another run's, and the way through two \
             hosts differs so much from run to run"
        )
    };
    row.within(allowed).extra("allowed_ns", allowed).note(format!("the mean may be off by {why}"))
}

/// Round-trip times without a delay, and the reasons why they can't be trusted, if any.
#[derive(Clone)]
struct Base {
    mean: f64,
    void: Vec<String>,
}

impl Base {
    /// Of the run of this row.
    fn of(times: &Sample, row: &Row) -> Self {
        let void = reasons(row).iter().map(|why| format!("in the run without a delay: {why}")).collect();
        Self { mean: times.mean(), void }
    }
}

/// The mean without a delay, measured on first use.
fn base_of(
    settings: &Settings<'_>,
    hosts: &mut Hosts,
    bases: &mut HashMap<usize, Base>,
    size: usize,
) -> Result<Base, BenchError> {
    if let Some(base) = bases.get(&size) {
        return Ok(base.clone());
    }
    let (times, row) = echoes(settings, hosts, EchoPath::of(0), size, Row::new("base", "ns"))?;
    let base = Base::of(&times, &row);
    bases.insert(size, base.clone());
    Ok(base)
}

/// Echo requests through links, with the same delay both ways.
fn echoes(
    settings: &Settings<'_>,
    hosts: &mut Hosts,
    path: EchoPath,
    size: usize,
    row: Row,
) -> Result<(Sample, Row), BenchError> {
    let count = settings.choose(10_000, 500);
    if settings.simulate {
        return Ok((sample(simulated(path.delay, size, u64::from(count))?), row));
    }
    let world = hosts.world(settings, 2, true)?;
    let run = world.start_scenario(&real_scenario(path))?;
    let ping = Ping {
        interval_ns: EVERY.0,
        payload: size - HEADERS,
        ..Ping::new(Ipv4Addr::new(10, 0, 0, 2).into(), count)
    };
    let mut times = Vec::with_capacity(count as usize);
    let result = world.host("a")?.run(|| {
        settle_beside();
        ping_each(&ping, &mut until(settings.stop), &mut |time| times.push(time))
    });
    let report = run.stop();
    settings.go_on()?;
    let result = result??;
    let row = if result.lost > 0 { void(row, format!("{} echoes were lost", result.lost)) } else { row };
    if times.is_empty() {
        return Err(BenchError::failed("pinging through the link", "no echo came back"));
    }
    // With a tick every packet is late by design, so the verdict on lateness says nothing about this machine.
    let row = if path.ticks { whole(row, &report) } else { trusted(row, &report) };
    Ok((sample(times), row))
}

/// Round-trip times in ns.
fn sample(times: Vec<i64>) -> Sample {
    times.into_iter().map(|time| time as f64).collect()
}

fn real_scenario(EchoPath { delay, ticks }: EchoPath) -> String {
    let mut text = "[engine]\nwait = \"spin\"\ncpus = [0]\npool = \"64 MiB\"\n".to_owned();
    if ticks {
        text += "tick = \"122.07 us\"\n";
    }
    text += &experiment::hosts(2);
    text + &format!("[[link]]\nbetween = [\"a\", \"b\"]\ndelay = \"{delay} ms\"\nloss = \"0 %\"\n")
}

/// Round-trip times in virtual time, with an end that answers at once.
fn simulated(delay: u64, size: usize, count: u64) -> Result<Vec<i64>, BenchError> {
    let keys = format!("delay = \"{delay} ms\"\nloss = \"0 %\"");
    let text = scenario(2, &(links(0, 1, &keys) + &links(1, 1, &keys)));
    let plan = longwire_scenario::parse("validate", &text)?;
    let every = Interval::of(EVERY).ok_or_else(|| BenchError::not_here("no time between echoes"))?;
    let times = Shared::new(Vec::new());
    let source = numbered(every, size - 4, count)?;
    let round_trips = RoundTrips { every: EVERY, times: times.clone(), answered: 0 };
    let asker = InterceptedPort::new(source, round_trips);
    let ports: Vec<Box<dyn Port>> = vec![Box::new(asker), Box::new(Echo::default())];
    longwire_assemble::build(&plan, ports, |_| None)?.setup.simulate(longwire_assemble::TO_THE_END);
    let times = std::mem::take(&mut *times.lock());
    if times.len() as u64 == count {
        return Ok(times);
    }
    let why = format!("{} of {count} came back to {}", times.len(), base(0));
    Err(BenchError::failed("simulating echoes", why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tick_study_has_the_thesis_tick() {
        let plan = longwire_scenario::plan_of(&real_scenario(EchoPath { delay: 5, ticks: true }));
        assert_eq!(plan.engine.tick, Nanos(122_070));
        assert_eq!(longwire_scenario::plan_of(&real_scenario(EchoPath::of(5))).engine.tick, Nanos::ZERO);
    }

    #[test]
    fn quantiles_by_hand() {
        let times = sample(vec![4, 1, 3, 2]);
        assert_eq!(
            (times.mean(), times.quantile(0.5), times.quantile(0.99), times.quantile(1.0)),
            (2.5, 2.0, 4.0, 4.0)
        );
        assert!((deviation(&times) - 1.25f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn the_paper_may_be_as_far_off_as_it_is() {
        assert_eq!(allowed(9_979_000, 10_000_000), 21_000.0);
        assert_eq!(allowed(10_007_000, 10_000_000), 15_000.0);
        let row = |ns| judged(Row::new("x", "ns").expected(10_000_000).measured(ns), 9_979_000, 10_000_000);
        assert_eq!((row(10_020_000).pass, row(10_022_000).pass), (Some(true), Some(false)));
        assert_eq!(
            row(10_000_000).notes,
            ["the mean may be off by 21 µs, by which the paper's own mean is off"]
        );
    }

    #[test]
    fn what_voids_the_base_is_not_said_of_the_run_with_a_delay() {
        let base = Base::of(&sample(vec![4, 2]), &void(Row::new("table 5.2", "ns"), "late"));
        assert_eq!((base.mean, &base.void[..]), (3.0, &["in the run without a delay: late".to_owned()][..]));
    }

    #[test]
    fn virtual_echoes_take_exactly_twice_the_delay() {
        assert_eq!(simulated(0, 64, 20).unwrap(), [0; 20]);
        assert_eq!(simulated(101, 1518, 300).unwrap(), [202_000_000; 300]);
    }
}
