//! One link among a million is changed while the path runs at full rate: a source fills it, and two hosts
//! send beside it, whose packets are lost where the worker holds up its ports.

use super::{Load, conservation_row, median, times_row};
use crate::api::Connection;
use crate::watched_run::WatchedRun;
use anyhow::{Context, Result, ensure};
use longwire_report::{Report, Row};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const NAME: &str = "lwchange";
const LINKS: u32 = 1_000_000;
/// How long a change may take.
const AT_MOST: Duration = Duration::from_millis(5);
/// Changes of a period, and the time between two.
const CHANGES: u32 = 40;
const EACH: Duration = Duration::from_millis(100);
/// Pairs of periods, of which one has changes.
const ROUNDS: u32 = 5;
/// What the hosts send in a period: less than they can, or losses would not be the worker's.
const PER_SECOND: &str = "20000";
const LONG: &str = "5s";
/// The longest run: it is ended when all is measured.
const LASTS: Duration = Duration::from_secs(300);

fn text() -> String {
    let source_time = LASTS.saturating_sub(Duration::from_secs(5)).as_secs();
    format!(
        "seed = 1\n[engine]\npool = \"1 GiB\"\n\
         [[host]]\nname = \"a\"\naddress = \"10.0.0.7/8\"\n\
         [[host]]\nname = \"b\"\naddress = \"10.255.0.1/8\"\n\
         [[port]]\nname = \"c\"\ndriver = \"source\"\naddresses = \"192.0.2.1\"\n\
         [[port]]\nname = \"d\"\ndriver = \"source\"\naddresses = \"198.51.100.1\"\n\
         [[link]]\nname = \"l{{n}}\"\ncount = {LINKS}\nfrom = \"a\"\nto = \"b\"\ndelay = \"1 ms\"\n\
         match = [{{ source = \"{{10.0.0.0 + n}}\", destination = \"10.255.0.1\" }}]\n\
         [[link]]\nname = \"rest\"\nbetween = [\"a\", \"b\"]\n\
         [[link]]\nname = \"filled\"\nfrom = \"c\"\nto = \"d\"\ndelay = \"1 ms\"\n\
         [[source]]\nname = \"full\"\nfrom = \"c\"\nto = \"d\"\nsize = \"64 B\"\n\
         interval = \"4 us\"\nfor = \"{source_time} s\"\n"
    )
}

pub(super) fn rows(load: &Load<'_>) -> Result<Vec<Row>> {
    let scenario = load.scenario("change", &text())?;
    let run = WatchedRun::new(load.binary, &scenario, (NAME, LASTS), &[])?;
    let mut receiver = in_host(load, "b", &["receive"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .context("starting the receiver in a host")?;
    // It says when it listens.
    let mut said = BufReader::new(receiver.stderr.take().context("what the receiver says")?);
    said.read_line(&mut String::new())?;
    let measured = measured(load, &run);
    // Started above; it does not end by itself.
    let _ = receiver.kill();
    receiver.wait()?;
    let Measured { times, quiet, changed } = measured?;
    let report = run.stop()?;
    let note = format!("lost without changes: {quiet:?}, with: {changed:?}");
    Ok(vec![
        times_row("change: one link of a million", &times, 99, AT_MOST),
        Row::new("change: packets lost, median of periods", "")
            .expected(median(quiet))
            .measured(median(changed))
            .at_most()
            .note(note),
        conservation_row("change: packets accounted for", &report),
    ])
}

/// `longwire traffic` in a host, with what others leave of the processors (sched(7), SCHED_IDLE): a sender
/// that spins between its packets, which would be another machine's, must not hold up what is asked of this
/// one. At the lowest of the usual priorities it keeps a processor for a slice of some milliseconds.
fn in_host(load: &Load<'_>, host: &str, words: &[&str]) -> Command {
    let mut command = Command::new("chrt");
    command.args(["--idle", "0", "ip", "netns", "exec", &format!("lw-{NAME}-{host}")]);
    command.arg(load.binary).arg("traffic").args(words);
    command
}

/// Times of changes, and packets lost in periods without and with them.
struct Measured {
    times: Vec<Duration>,
    quiet: Vec<u64>,
    changed: Vec<u64>,
}

fn measured(load: &Load<'_>, run: &WatchedRun) -> Result<Measured> {
    let mut measured = Measured { times: Vec::new(), quiet: Vec::new(), changed: Vec::new() };
    for round in 0..ROUNDS {
        measured.quiet.push(lost(sent(load)?)?);
        // A connection on which nothing is asked for five seconds is closed.
        let mut connection = Connection::unix(run.socket())?;
        let sending = sent(load)?;
        for turn in 0..CHANGES {
            // The link that carries the hosts' packets, and others in turn.
            let number = round * CHANGES + turn;
            let link = if turn % 2 == 0 { 7 } else { number * 4999 + 1 };
            let body = format!("{{\"delay\": \"{} us\"}}", 1000 + number);
            let begin = Instant::now();
            let answer = connection.ask("PATCH", &format!("/v1/links/l{link}"), &body)?;
            measured.times.push(begin.elapsed());
            ensure!(answer.is_success(), "l{link}: {}", answer.body);
            std::thread::sleep(EACH);
        }
        measured.changed.push(lost(sending)?);
    }
    Ok(measured)
}

/// A period's packets, from one host to the other.
fn sent(load: &Load<'_>) -> Result<Child> {
    in_host(load, "a", &["send", "udp", "10.255.0.1", "--size", "64B", "--json"])
        .args(["--packets-per-second", PER_SECOND, "--for", LONG])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("sending between hosts")
}

/// How many of a period's packets were lost before the receiving socket.
fn lost(sending: Child) -> Result<u64> {
    let output = sending.wait_with_output().context("sending between hosts")?;
    ensure!(output.status.success(), "sending between hosts failed");
    let report: Report = serde_json::from_slice(&output.stdout).context("the sender's report")?;
    let row = report.row("loss").context("the sender's losses")?;
    let number = |name: &str| row.extra.get(name).and_then(serde_json::Value::as_u64);
    let (lost, at_socket) = number("lost").zip(number("receiver_drops")).context("the sender's losses")?;
    Ok(lost.saturating_sub(at_socket))
}
