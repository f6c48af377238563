//! The dashboard of ten thousand links in Chromium: what it takes of a processor, and when it first shows
//! something.

#[path = "../../../crates/cli/tests/browser/mod.rs"]
mod browser;

use super::{Load, free_port};
use crate::watched_run::{WatchedRun, in_host};
use anyhow::{Context, Result};
use browser::Browser;
use longwire_report::Row;
use std::fs;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

const NAME: &str = "lwdashboard";
/// Most of a processor, in per cent.
const AT_MOST: f64 = 5.0;
/// When something has to be shown, in ms.
const FIRST: f64 = 1000.0;
/// How long processor time is counted: without the dashboard, and with it.
const COUNTED: Duration = Duration::from_secs(20);
/// From the first page to the time that is counted.
const SETTLES: Duration = Duration::from_secs(5);
const LASTS: Duration = Duration::from_secs(300);

/// Five thousand duplex links between two hosts: their ports wake the worker, which takes no time otherwise.
const SCENARIO: &str = "seed = 1\n\
    [[host]]\nname = \"home\"\naddress = \"10.0.0.7/8\"\n\
    [[host]]\nname = \"server\"\naddress = \"10.200.0.1/8\"\n\
    [[link]]\nname = \"dsl{n}\"\ncount = 5000\nbetween = [\"home\", \"server\"]\ndelay = \"12 ms\"\n\
    rate = \"10 Mbit/s\"\n\
    match = [{ source = \"{10.0.0.0 + n}\", destination = \"10.200.0.1\" }]\n\
    [[link]]\nname = \"rest\"\nbetween = [\"home\", \"server\"]\n";

pub(super) fn rows(load: &Load<'_>) -> Result<Vec<Row>> {
    let profile = load.folder.join("chromium");
    let Some(mut browser) = Browser::start("load dashboard", &profile) else {
        return Ok(vec![Row::new("dashboard", "").judged(false).note("there is no chromium")]);
    };
    let scenario = load.scenario("dashboard", SCENARIO)?;
    let port = free_port()?;
    let run = WatchedRun::new(load.binary, &scenario, (NAME, LASTS), &[&format!("--web={port}")])?;
    let mut ping = in_host(NAME, "home")
        .args(["ping", "-q", "-i", "0.02", "10.200.0.1"])
        .stdout(Stdio::null())
        .spawn()
        .context("starting ping in a host")?;
    let measured = measured(&mut browser, (run.id(), port));
    drop(browser);
    // Started above; it does not end by itself.
    let _ = ping.kill();
    ping.wait()?;
    run.stop()?;
    measured
}

/// The rows of a page with the run of this process, on this port.
fn measured(browser: &mut Browser, (pid, port): (u32, u16)) -> Result<Vec<Row>> {
    let group = browser.group();
    let shares = || -> Result<[f64; 2]> {
        thread::sleep(SETTLES);
        let (begin, before) = (Instant::now(), [ticks(|_, of| of == group)?, ticks(|id, _| id == pid)?]);
        thread::sleep(COUNTED);
        let after = [ticks(|_, of| of == group)?, ticks(|id, _| id == pid)?];
        // A tick is a hundredth of a second: per second, they are per cent.
        let share = |which: usize| after[which].saturating_sub(before[which]) as f64;
        Ok([share(0), share(1)].map(|ticks| ticks / begin.elapsed().as_secs_f64()))
    };
    let [_, alone] = shares()?;
    browser.open(&format!("http://127.0.0.1:{port}/"), (1440, 900), "dark");
    browser.wait("/of 10002$/.test(document.getElementById('count').textContent)");
    let mut ms = |what: &str| browser.value(what).as_f64().with_context(|| format!("no number: {what}"));
    let filled = ms("performance.now()")?;
    let painted = ms("performance.getEntriesByName('first-contentful-paint')[0].startTime")?;
    let [page, watched] = shares()?;
    let share = |what: &str, of: f64| {
        Row::new(format!("dashboard: {what}, of a processor"), "%").expected(AT_MOST).measured(of).at_most()
    };
    Ok(vec![
        share("Chromium", page),
        share("Longwire", watched - alone)
            .note(format!("{alone:.1} % without the dashboard, {watched:.1} % with it")),
        Row::new("dashboard: first paint", "ms")
            .expected(FIRST)
            .measured(painted)
            .at_most()
            .note(format!("the links were there within {filled:.0} ms")),
    ])
}

/// Processor time so far of the processes that are meant, by their number and group, in ticks.
fn ticks(is_meant: impl Fn(u32, u32) -> bool) -> Result<u64> {
    // Fields 5 (process group), 14 and 15 (time in user and in system mode) of proc_pid_stat(5); the second
    // is a name in parentheses.
    let time = |entry: fs::DirEntry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        let number = |at: usize| fields.get(at - 3)?.parse::<u64>().ok();
        let group = u32::try_from(number(5)?).ok()?;
        is_meant(pid, group).then_some(number(14)? + number(15)?)
    };
    Ok(fs::read_dir("/proc")?.flatten().filter_map(time).sum())
}
