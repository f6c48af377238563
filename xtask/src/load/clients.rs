//! Two hundred clients that look each second, as dashboards do, a thousand changes a second, and clients that
//! read nothing: in periods that alternate, in one run, with periods without any, and with such in which
//! something else computes.

use super::own_processor::OwnProcessor;
use super::{Load, conservation_row, free_port, quartiles};
use crate::api::{Connection, request};
use crate::watched_run::WatchedRun;
use anyhow::{Context, Result, ensure};
use longwire_report::Row;
use serde_json::Value;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

const NAME: &str = "lwload";
/// Periods of each kind. Short ones, because a shared machine is slow for seconds, and so many that the
/// median of their ratios is known better than a single one: the lateness of two equal periods differs by a
/// sixth.
const ROUNDS: usize = 24;
const PERIOD: Duration = Duration::from_secs(5);
/// From a period to the next.
const BETWEEN: Duration = Duration::from_secs(2);
/// The longest run: it is ended when all is measured.
const LASTS: Duration = Duration::from_secs(720);
/// Clients that ask each second for what a dashboard shows.
const CLIENTS: u32 = 200;
const EACH_LOOK: Duration = Duration::from_secs(1);
const LOOKS: [&str; 2] = ["/v1/summary", "/v1/links?sort=load&count=25"];
/// Connections that change a link, and changes a second on each.
const CHANGERS: u32 = 10;
const CHANGES: u32 = 100;
/// Clients that ask for long answers and do not read them.
const DEAF: usize = 10;
/// Requests of each of these: their answers are longer than what the sockets hold.
const UNREAD: usize = 2000;
/// When clients that do not read have been cut off: 10 s after they stopped, and a little later.
const CUT_OFF_AFTER: Duration = Duration::from_secs(12);
/// Of each millisecond, what a thread computes in the periods of other work: about as much as the clients and
/// the threads that answer them together.
const OTHER_WORK: Duration = Duration::from_micros(400);
/// How much later the latest hundredth of the packets may be, in per cent.
const LATER: f64 = 10.0;
/// How much more memory the last period may have than the first.
const MOST_GROWTH: u64 = 4 << 20;

/// Two ports without interfaces, 20 Mbit/s both ways. A window is shorter than a period by more than its
/// step, so that the last one lies within it.
const SCENARIO: &str = "[fidelity]\nwindow = \"3 s\"\n\
    [[port]]\nname = \"a\"\ndriver = \"source\"\naddresses = \"10.0.1.1\"\n\
    [[port]]\nname = \"b\"\ndriver = \"source\"\naddresses = \"10.0.1.2\"\n\
    [[link]]\nname = \"l\"\nbetween = [\"a\", \"b\"]\ndelay = \"5 ms\"\n\
    [[link]]\nname = \"idle{n}\"\ncount = 100\nbetween = [\"a\", \"b\"]\n\
    match = [{ source = \"{10.1.0.0 + n}\", destination = \"10.2.0.1\" }]\n\
    [[source]]\nname = \"there\"\nfrom = \"a\"\nto = \"b\"\nmodel = \"poisson\"\nsize = \"500 B\"\n\
    rate = \"20 Mbit/s\"\n\
    [[source]]\nname = \"back\"\nfrom = \"b\"\nto = \"a\"\nmodel = \"poisson\"\nsize = \"500 B\"\n\
    rate = \"20 Mbit/s\"\n";

pub(super) fn rows(load: &Load<'_>) -> Result<Vec<Row>> {
    let own = OwnProcessor::choose()?;
    let engine = own.as_ref().map(OwnProcessor::key).unwrap_or_default();
    let scenario = load.scenario("clients", &format!("seed = 1\n[engine]\n{engine}{SCENARIO}"))?;
    let port = free_port()?;
    let mut run = WatchedRun::new(load.binary, &scenario, (NAME, LASTS), &[&format!("--web={port}")])?;
    let kept_off = own.as_ref().map(OwnProcessor::keep_off).transpose()?;
    let processors = match kept_off {
        Some(_) => format!("the worker has a processor for itself ({})", engine.trim()),
        None => "worker and clients share the only processor".into(),
    };
    let at = Target { socket: run.socket().to_owned(), port };
    let seen = Seen::default();
    let periods = Periods::watch(&mut run, &at, &seen)?;
    // Those of the last period, too, have been cut off then.
    thread::sleep(CUT_OFF_AFTER);
    let deaf = std::mem::take(&mut *seen.deaf.lock().unwrap_or_else(PoisonError::into_inner));
    let cut_off = deaf.into_iter().map(|mut stream| u64::from(is_closed(&mut stream))).sum::<u64>();
    let report = run.stop()?;
    let Periods { quiet, other, busy } = &periods;
    let pauses = [quiet, other, busy].map(|all| quartiles(all.iter().map(|its| its.pauses).collect())[1]);
    let resident = |all: &[Period]| quartiles(all.iter().map(|period| period.resident >> 20).collect());
    let seconds = PERIOD.as_secs() * ROUNDS as u64;
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let least = |per_second: u32| u64::from(per_second) * seconds * 9 / 10;
    Ok(vec![
        periods
            .p99("lateness apart from the machine's pauses", |period| period.late_apart)
            .note(processors)
            .expected(100.0 + LATER)
            .at_most(),
        // Not judged: a virtual machine is stopped for others, however many clients its programs have.
        periods.p99("lateness with the machine's pauses", |period| period.late).note(format!(
            "pauses in a window, median: {} without clients, {} beside other work, {} with clients",
            pauses[0], pauses[1], pauses[2]
        )),
        Row::new("clients: looks of 200", "")
            .expected(least(CLIENTS))
            .measured(count(&seen.looks))
            .at_least(),
        Row::new("clients: changes", "")
            .expected(least(CHANGERS * CHANGES))
            .measured(count(&seen.changes))
            .at_least(),
        Row::new("clients: refused", "").expected(0u64).measured(count(&seen.refused)).at_most(),
        Row::new("clients: slow readers cut off", "")
            .expected((DEAF * ROUNDS) as u64)
            .measured(cut_off)
            .at_least(),
        Row::new("clients: resident memory after the last period", "bytes")
            .expected(busy[0].resident + MOST_GROWTH)
            .measured(busy[ROUNDS - 1].resident)
            .at_most()
            .note(format!("quartiles with clients {:?} MiB, without {:?}", resident(busy), resident(quiet))),
        conservation_row("clients: packets accounted for", &report),
    ])
}

/// Where the instance is asked.
struct Target {
    socket: PathBuf,
    /// Of its web server.
    port: u16,
}

/// A period of the run.
struct Period {
    /// The 99th percentile of the lateness, in ns.
    late: u64,
    /// That of the packets that should not have left while the worker had no processor.
    late_apart: u64,
    /// Times for which the worker had no processor.
    pauses: u64,
    /// Resident memory at its end, in bytes.
    resident: u64,
}

impl Period {
    /// A period in which `what` happens.
    fn watch(run: &mut WatchedRun, at: &Target, what: impl FnOnce()) -> Result<Self> {
        thread::sleep(BETWEEN);
        let ask = || -> Result<Value> {
            let answer = Connection::unix(&at.socket)?.ask("GET", "/v1/summary", "")?;
            serde_json::from_str(&answer.body).context("the summary")
        };
        let begin = ask()?["elapsed_ns"].as_u64().context("the run's time")?;
        what();
        let window = &ask()?["window"]["last"];
        let from = window["from_ns"].as_u64().context("a window's begin")?;
        ensure!(from >= begin, "the last window of a period begins before it");
        let p99 = |of: &str| window["fidelity"][of]["p99"].as_u64().context("a window's lateness");
        let (late, late_apart) = (p99("lateness_ns")?, p99("lateness_without_pauses_ns")?);
        let pauses = window["fidelity"]["pauses"].as_u64().context("a window's pauses")?;
        Ok(Self { late, late_apart, pauses, resident: run.sample()?.resident })
    }
}

/// The periods of each kind.
struct Periods {
    quiet: Vec<Period>,
    /// In which something else computes.
    other: Vec<Period>,
    /// With clients.
    busy: Vec<Period>,
}

impl Periods {
    fn watch(run: &mut WatchedRun, at: &Target, seen: &Seen) -> Result<Self> {
        let [mut quiet, mut other, mut busy] = [const { Vec::new() }; 3];
        for round in 0..ROUNDS {
            if round % 4 == 0 {
                println!("load: clients; round {round} of {ROUNDS}");
            }
            // Every second one the other way round: what becomes slower by and by is the same for all.
            for kind in if round % 2 == 0 { [0, 1, 2] } else { [2, 1, 0] } {
                match kind {
                    0 => quiet.push(Period::watch(run, at, || thread::sleep(PERIOD))?),
                    1 => other.push(Period::watch(run, at, other_work)?),
                    _ => busy.push(Period::watch(run, at, || burden(at, seen))?),
                }
            }
        }
        Ok(Self { quiet, other, busy })
    }

    /// A percentile of the lateness with clients, as a share of that without them.
    fn p99(&self, name: &str, of: fn(&Period) -> u64) -> Row {
        let of_quiet = |those: &[Period]| {
            let ratios = those.iter().zip(&self.quiet).map(|(its, quiet)| of(its) * 1000 / of(quiet).max(1));
            quartiles(ratios.collect()).map(|thousandths| thousandths as f64 / 10.0)
        };
        let ([from, ratio, to], [_, beside, _]) = (of_quiet(&self.busy), of_quiet(&self.other));
        let [without, with] = [&self.quiet, &self.busy].map(|all| quartiles(all.iter().map(of).collect()));
        Row::new(format!("clients: {name}, p99, of that without them, median of pairs"), "%")
            .measured(ratio)
            .note(format!(
                "half of the pairs {from} to {to} %; quartiles without clients {without:?} ns, with them \
                 {with:?} ns; a thread that computes as much instead, and asks nothing: {beside} %"
            ))
    }
}

/// What happened to clients.
#[derive(Default)]
struct Seen {
    looks: AtomicU64,
    changes: AtomicU64,
    /// Requests without success.
    refused: AtomicU64,
    /// The connections of clients that have asked, and not read, for a period.
    deaf: Mutex<Vec<TcpStream>>,
}

/// What another program may do on the processors that the worker does not use, for a period.
fn other_work() {
    let end = Instant::now() + PERIOD;
    while Instant::now() < end {
        let begin = Instant::now();
        while begin.elapsed() < OTHER_WORK {
            std::hint::spin_loop();
        }
        thread::sleep(Duration::from_millis(1).saturating_sub(begin.elapsed()));
    }
}

/// Clients and changes for a period.
fn burden(at: &Target, seen: &Seen) {
    let end = AtomicBool::new(false);
    let end = &end;
    thread::scope(|scope| {
        for number in 0..CLIENTS {
            scope.spawn(move || look(at.port, number, seen, end));
        }
        for number in 0..CHANGERS {
            scope.spawn(move || change(&at.socket, number, seen, end));
        }
        for _ in 0..DEAF {
            scope.spawn(move || {
                let deaf = ask_and_not_read(at.port, end);
                seen.deaf.lock().unwrap_or_else(PoisonError::into_inner).extend(deaf);
            });
        }
        thread::sleep(PERIOD);
        end.store(true, Ordering::Relaxed);
    });
}

/// A client that asks each second, on one connection.
fn look(port: u16, number: u32, seen: &Seen, end: &AtomicBool) {
    let begin = Instant::now() + EACH_LOOK * number / CLIENTS;
    let Ok(mut connection) = Connection::tcp(port) else {
        seen.refused.fetch_add(1, Ordering::Relaxed);
        return;
    };
    for turn in 0u32.. {
        thread::sleep((begin + EACH_LOOK * turn).saturating_duration_since(Instant::now()));
        if end.load(Ordering::Relaxed) {
            return;
        }
        for path in LOOKS {
            let answered = connection.ask("GET", path, "").is_ok_and(|answer| answer.is_success());
            if !answered {
                seen.refused.fetch_add(1, Ordering::Relaxed);
                return;
            }
        }
        seen.looks.fetch_add(1, Ordering::Relaxed);
    }
}

/// A client that changes a link without effect on the traffic's time, on one connection.
fn change(socket: &Path, number: u32, seen: &Seen, end: &AtomicBool) {
    let Ok(mut connection) = Connection::unix(socket) else {
        seen.refused.fetch_add(1, Ordering::Relaxed);
        return;
    };
    let (begin, path) = (Instant::now(), format!("/v1/links/idle{}.forward", number + 1));
    for turn in 0u32.. {
        let due = begin + Duration::from_secs(1) * turn / CHANGES;
        thread::sleep(due.saturating_duration_since(Instant::now()));
        if end.load(Ordering::Relaxed) {
            return;
        }
        let body = format!("{{\"delay\": \"{} us\"}}", 100 + turn % 1000);
        let done = connection.ask("PATCH", &path, &body).is_ok_and(|answer| answer.is_success());
        let counter = if done { &seen.changes } else { &seen.refused };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// A client that asks and does not read: its connection at the end, if there was one.
fn ask_and_not_read(port: u16, end: &AtomicBool) -> Option<TcpStream> {
    let mut stream = Connection::tcp(port).ok()?.into_inner();
    // What the instance does not read has to wait here.
    stream.set_nonblocking(true).ok()?;
    let one = request("GET", "/v1/openapi.json", "");
    let (all, mut sent) = (one.repeat(UNREAD), 0);
    while !end.load(Ordering::Relaxed) {
        match stream.write(&all.as_bytes()[sent..]) {
            Ok(some) => sent += some,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            // It is closed already, which is seen later, too.
            Err(_) => break,
        }
        thread::sleep(Duration::from_millis(100));
    }
    Some(stream)
}

/// Whether the connection ends, once all that has come is read.
fn is_closed(stream: &mut TcpStream) -> bool {
    let mut bytes = vec![0; 1 << 20];
    loop {
        match stream.read(&mut bytes) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return error.kind() != ErrorKind::WouldBlock,
        }
    }
}
