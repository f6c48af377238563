//! `cargo xtask soak`: a long run with mixed traffic, a change of a link every 100 ms, and ports that go down
//! and come back. Nothing may be lost, and neither memory nor descriptors may grow.

use crate::api::Connection;
use crate::watched_run::{self, Sample, WatchedRun};
use anyhow::{Context, Result, bail, ensure};
use longwire_report::{Report, Row};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// How long it runs if nothing is said.
const USUAL: Duration = Duration::from_secs(3600);
/// The shortest: four quarters with at least eight samples each.
const SHORTEST: Duration = Duration::from_secs(40);
/// The name of its instance, and of its hosts' namespaces.
const NAME: &str = "lwsoak";
/// Time between two changes of a link.
const EACH_CHANGE: Duration = Duration::from_millis(100);
/// Time between two samples.
const EACH_SAMPLE: Duration = Duration::from_secs(1);
/// Changes between two flaps of a host's interface.
const EACH_FLAP: u64 = 150;
/// How much more memory the last quarter may have than the second: pages touched for the first time.
const MOST_GROWTH: u64 = 4 << 20;
/// How many threads may answer requests at a time. Two that overlapped once take turns from then on, so that
/// neither ends while requests come often.
const MOST_ANSWERING: u64 = 2;

/// What a link gets, one after the other.
const CHANGES: [(&str, &str); 15] = [
    ("ab.forward", r#"{"rate": "3 Mbit/s"}"#),
    ("ab", r#"{"delay": "3 ms"}"#),
    ("ac.backward", r#"{"loss": "5 %"}"#),
    ("ac.forward", r#"{"queue": "20 packets"}"#),
    ("bc", r#"{"delay": "40 ms", "delay.jitter": "5 ms"}"#),
    ("ab.forward", r#"{"rate": "30 Mbit/s"}"#),
    ("ac.backward", r#"{"loss": "none"}"#),
    ("bc.forward", r#"{"queue.kind": "codel"}"#),
    ("ab", r#"{"delay": "20 ms"}"#),
    ("bc.forward", r#"{"queue": "200 packets"}"#),
    ("bc", r#"{"delay": "1 ms"}"#),
    ("ac.forward", r#"{"queue": "unlimited"}"#),
    ("fa", r#"{"rate": "4 Mbit/s", "queue": "30 packets"}"#),
    ("fb", r#"{"delay": "25 ms", "reorder": "2 %"}"#),
    ("fa", r#"{"rate": "20 Mbit/s"}"#),
];

/// Runs it, and returns whether nothing was lost and nothing has grown.
///
/// # Errors
/// Options that are not known; a build or a run that can't be started.
pub fn run(root: &Path, words: &[&str]) -> Result<bool> {
    let (time, binary) = options(root, words)?;
    let scenario = root.join("xtask/src/soak/scenario.toml");
    println!("soak: {} s of mixed traffic, a change of a link every 100 ms, flaps", time.as_secs());
    let mut run = WatchedRun::new(&binary, &scenario, (NAME, time), &[])?;
    let pings = pings(time)?;
    let soaked = soak(&mut run, time);
    for mut ping in pings {
        // Started above; it may have ended by itself.
        let _ = ping.kill();
        ping.wait()?;
    }
    let soaked = soaked?;
    let report = run.end()?;
    let outcome = judge(&soaked, &report);
    outcome.print_table(&mut std::io::stdout().lock())?;
    Ok(outcome.pass)
}

/// How long, and with which binary: a release build if none is named.
fn options(root: &Path, words: &[&str]) -> Result<(Duration, PathBuf)> {
    let (mut time, mut binary) = (USUAL, None);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().with_context(|| format!("{word} needs a value"));
        match *word {
            "--seconds" => time = Duration::from_secs(value()?.parse().context("whole seconds")?),
            "--binary" => binary = Some(root.join(value()?)),
            _ => bail!("no such option: {word}; there are --seconds N and --binary FILE"),
        }
    }
    ensure!(time >= SHORTEST, "a soak takes at least {} s", SHORTEST.as_secs());
    Ok((time, watched_run::built(root, "release", binary)?))
}

/// Echo requests between the hosts, which have stacks of their own.
fn pings(time: Duration) -> Result<Vec<Child>> {
    let start = |(host, to): (&str, &str)| {
        let seconds = time.as_secs().to_string();
        watched_run::in_host(NAME, host)
            .args(["ping", "-q", "-i", "0.05", "-w", &seconds, to])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("starting ping in a host")
    };
    [("a", "10.0.0.2"), ("b", "10.0.0.3"), ("c", "10.0.0.1")].into_iter().map(start).collect()
}

/// What was seen.
struct SoakResult {
    samples: Vec<Sample>,
    changes: u64,
    flaps: u64,
    /// Answers to changes that were no success, the first few of them.
    refused: Vec<String>,
}

/// Changes and flaps until shortly before the end, with a sample each second.
fn soak(run: &mut WatchedRun, time: Duration) -> Result<SoakResult> {
    let mut soaked = SoakResult { samples: Vec::new(), changes: 0, flaps: 0, refused: Vec::new() };
    let start = Instant::now();
    let end = time.saturating_sub(Duration::from_secs(5));
    let (mut next_sample, mut down) = (Duration::ZERO, None);
    while start.elapsed() < end {
        let (link, settings) = CHANGES[soaked.changes as usize % CHANGES.len()];
        // A connection for each, so that one that is not closed counts.
        let mut connection = Connection::unix(run.socket())?;
        let answer = connection.ask("PATCH", &format!("/v1/links/{link}"), settings)?;
        if !answer.is_success() && soaked.refused.len() < 5 {
            soaked.refused.push(format!("{link} {settings}: {}", answer.body));
        }
        soaked.changes += 1;
        if let Some(host) = down.take() {
            watched_run::set_interface(NAME, host, "up")?;
        } else if soaked.changes.is_multiple_of(EACH_FLAP) {
            let host = ["a", "b", "c"][(soaked.flaps % 3) as usize];
            watched_run::set_interface(NAME, host, "down")?;
            (down, soaked.flaps) = (Some(host), soaked.flaps + 1);
        }
        if start.elapsed() >= next_sample {
            soaked.samples.push(run.sample()?);
            next_sample += EACH_SAMPLE;
            if soaked.samples.len().is_multiple_of(60) {
                let Sample { resident, descriptors, .. } = soaked.samples[soaked.samples.len() - 1];
                println!(
                    "{:>6} s  {:>6} KiB  {descriptors} descriptors",
                    start.elapsed().as_secs(),
                    resident >> 10
                );
            }
        }
        let due = EACH_CHANGE * u32::try_from(soaked.changes).context("too long")?;
        std::thread::sleep(due.saturating_sub(start.elapsed()));
    }
    if let Some(host) = down {
        watched_run::set_interface(NAME, host, "up")?;
    }
    Ok(soaked)
}

/// The judgement: the last quarter against the second, because the first touches memory for the first time.
fn judge(soaked: &SoakResult, run: &Report) -> Report {
    let quarter = soaked.samples.len() / 4;
    let of = |number: usize| &soaked.samples[number * quarter..(number + 1) * quarter];
    // The least of a quarter: a sample may hold a connection that the server has not closed yet, and its
    // thread. What leaks stays, and raises the least too.
    let least = |number: usize, value: fn(&Sample) -> u64| of(number).iter().map(value).min().unwrap_or(0);
    let mut report = Report::new("xtask soak");
    let grown = |name: &str, unit: &str, allowed: u64, value: fn(&Sample) -> u64| {
        let row = Row::new(name, unit).expected(least(1, value) + allowed).measured(least(3, value));
        row.at_most().note("expected: at most the least of the second quarter, and what it may grow by")
    };
    report.push(grown("resident memory", "bytes", MOST_GROWTH, |sample| sample.resident));
    report.push(grown("descriptors", "", 0, |sample| sample.descriptors));
    report.push(grown("threads", "", 0, |sample| sample.threads));
    let answering = soaked.samples.iter().map(|sample| sample.answering).max().unwrap_or(0);
    report.push(Row::new("answering", "threads").expected(MOST_ANSWERING).measured(answering).at_most());
    let conserved = run.row("packets accounted for").and_then(|row| row.pass) == Some(true);
    report.push(Row::new("packets accounted for", "").judged(conserved));
    let all_taken = soaked.refused.is_empty() && soaked.changes > 0;
    report.push(Row::new("changes, all taken", "").measured(soaked.changes).judged(all_taken));
    report.push(Row::new("interfaces down and up", "").measured(soaked.flaps).judged(soaked.flaps > 0));
    for refused in &soaked.refused {
        report.fail(refused.clone());
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(descriptors: impl Fn(u64) -> u64) -> bool {
        judged_with(descriptors, |_| 7, |_| 1)
    }

    fn judged_with(
        descriptors: impl Fn(u64) -> u64,
        threads: impl Fn(u64) -> u64,
        answering: impl Fn(u64) -> u64,
    ) -> bool {
        let sample = |at| Sample {
            resident: 50 << 20,
            descriptors: descriptors(at),
            threads: threads(at),
            answering: answering(at),
        };
        let samples = (0..40).map(sample).collect();
        let mut run = Report::new("run");
        run.push(Row::new("packets accounted for", "").judged(true));
        judge(&SoakResult { samples, changes: 400, flaps: 2, refused: Vec::new() }, &run).pass
    }

    #[test]
    fn a_connection_that_is_being_closed_is_no_leak() {
        assert!(judged(|at| 27 + u64::from(at % 7 == 3)));
        assert!(judged(|at| 27 + u64::from(at > 30 && at % 2 == 0)));
    }

    #[test]
    fn a_descriptor_kept_now_and_then_is_a_leak() {
        assert!(!judged(|at| 27 + at / 15));
    }

    #[test]
    fn a_second_thread_that_answers_is_no_leak_and_a_third_is() {
        assert!(judged_with(|_| 27, |_| 7, |at| 1 + u64::from(at > 25)));
        assert!(!judged_with(|_| 27, |_| 7, |at| 1 + u64::from(at > 25) + u64::from(at == 30)));
    }

    #[test]
    fn a_thread_that_stays_is_a_leak() {
        assert!(!judged_with(|_| 27, |at| 7 + u64::from(at > 25), |_| 1));
    }
}
