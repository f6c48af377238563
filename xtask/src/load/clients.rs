//! Two hundred clients that look each second, as dashboards do, a thousand changes a second, and clients that
//! read nothing.

use super::Load;
use crate::api::{Connection, request};
use crate::watched_run::{Sample, WatchedRun};
use anyhow::{Context, Result, ensure};
use longwire_report::{Report, Row};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const NAME: &str = "lwload";
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
/// How much later the latest hundredth of the packets may be, in per cent, and how much that is at least.
const LATER: u64 = 10;
const LEAST_LATER: u64 = 1000;
/// How much more memory the last quarter may have than the second.
const MOST_GROWTH: u64 = 4 << 20;

/// Two ports without interfaces, 20 Mbit/s both ways.
const SCENARIO: &str = "seed = 1\n\
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
    let scenario = load.scenario("clients", SCENARIO)?;
    let alone = WatchedRun::new(load.binary, &scenario, (NAME, load.time), &[])?.end()?;
    let free = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
    let port = free.context("a free port")?.port();
    let web = format!("--web={port}");
    let mut run = WatchedRun::new(load.binary, &scenario, (NAME, load.time), &[&web])?;
    let socket = run.socket().to_owned();
    let seen = watch(&mut run, (&socket, port), load.time.saturating_sub(Duration::from_secs(3)))?;
    let loaded = run.end()?;
    let [before, then] = [late(&alone)?, late(&loaded)?];
    let asked = seen.looks.load(Ordering::Relaxed);
    let wanted = u64::from(CLIENTS) * seen.time.as_secs().saturating_sub(1) * 9 / 10;
    let changed = seen.changes.load(Ordering::Relaxed);
    let wanted_changes = u64::from(CHANGERS * CHANGES) * seen.time.as_secs() * 9 / 10;
    let quarter = seen.samples.len() / 4;
    let least = |number: usize| {
        let own = &seen.samples[number * quarter..(number + 1) * quarter];
        own.iter().map(|sample| sample.resident).min().unwrap_or(0)
    };
    Ok(vec![
        Row::new("clients: lateness, p99", "ns")
            .expected(before + (before * LATER / 100).max(LEAST_LATER))
            .measured(then)
            .at_most()
            .note(format!("{before} ns without clients and changes; {LATER} % or 1 µs more is allowed")),
        Row::new("clients: answers", "").expected(wanted).measured(asked).at_least(),
        Row::new("clients: changes", "").expected(wanted_changes).measured(changed).at_least(),
        Row::new("clients: refused", "")
            .expected(0u64)
            .measured(seen.refused.load(Ordering::Relaxed))
            .at_most(),
        Row::new("clients: slow readers cut off", "").expected(DEAF as u64).measured(seen.cut).at_least(),
        Row::new("clients: resident memory", "bytes")
            .expected(least(1) + MOST_GROWTH)
            .measured(least(3))
            .at_most(),
        Row::new("clients: packets accounted for", "")
            .judged(loaded.row("packets accounted for").and_then(|row| row.pass) == Some(true)),
    ])
}

/// The 99th percentile of the lateness of a run, in ns.
fn late(run: &Report) -> Result<u64> {
    let p99 = run.extra.get("fidelity").and_then(|fidelity| fidelity["lateness_ns"]["p99"].as_u64());
    p99.context("the run has no lateness")
}

/// What happened under load.
#[derive(Default)]
struct Seen {
    time: Duration,
    looks: AtomicU64,
    changes: AtomicU64,
    /// Requests without success.
    refused: AtomicU64,
    /// Clients that were cut off.
    cut: u64,
    samples: Vec<Sample>,
}

fn watch(run: &mut WatchedRun, (socket, port): (&Path, u16), time: Duration) -> Result<Seen> {
    let (end, mut seen) = (AtomicBool::new(false), Seen::default());
    let mut samples = Vec::new();
    let start = Instant::now();
    let (shared, over) = (&seen, &end);
    let cut: Result<u64> = thread::scope(|scope| {
        for number in 0..CLIENTS {
            scope.spawn(move || look(port, number, shared, over));
        }
        for number in 0..CHANGERS {
            scope.spawn(move || change(socket, number, shared, over));
        }
        let deaf: Vec<_> = (0..DEAF).map(|_| scope.spawn(move || is_cut_off(port, over))).collect();
        while start.elapsed() < time {
            let sampled = run.sample().map(|sample| samples.push(sample));
            if sampled.is_err() {
                end.store(true, Ordering::Relaxed);
                sampled?;
            }
            thread::sleep(Duration::from_millis(500));
        }
        end.store(true, Ordering::Relaxed);
        Ok(deaf.into_iter().map(|client| u64::from(client.join().unwrap_or(false))).sum())
    });
    (seen.cut, seen.time, seen.samples) = (cut?, start.elapsed(), samples);
    ensure!(seen.samples.len() >= 4, "the run was too short");
    Ok(seen)
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
    let (begin, path) = (Instant::now(), format!("/v1/links/idle{number}.forward"));
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

/// Whether a client that asks and does not read is cut off: by the end, less has come than it has asked for.
fn is_cut_off(port: u16, end: &AtomicBool) -> bool {
    let asked = Connection::tcp(port).and_then(|connection| {
        let stream = connection.into_inner();
        // What the instance does not read has to wait here.
        stream.set_nonblocking(true)?;
        Ok(stream)
    });
    let Ok(mut stream) = asked else { return false };
    let one = request("GET", "/v1/openapi.json", "");
    let (all, mut sent) = (one.repeat(UNREAD), 0);
    while !end.load(Ordering::Relaxed) {
        match stream.write(&all.as_bytes()[sent..]) {
            Ok(some) => sent += some,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            // It is closed already.
            Err(_) => return true,
        }
        thread::sleep(Duration::from_millis(100));
    }
    is_closed(&mut stream)
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
