//! Hosts with links are added to a running net, and others lose nothing.

use super::{Load, longest};
use crate::api::Connection;
use crate::watched_run::WatchedRun;
use anyhow::{Context, Result, ensure};
use longwire_report::Row;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const NAME: &str = "lwadd";
/// How long an addition may take.
const AT_MOST: Duration = Duration::from_millis(100);
/// Hosts that are added, and the time between two.
const HOSTS: u32 = 20;
const EACH: Duration = Duration::from_millis(300);

const SCENARIO: &str = "seed = 1\n\
    [[host]]\nname = \"a\"\naddress = \"10.0.0.1/24\"\n\
    [[host]]\nname = \"b\"\naddress = \"10.0.0.2/24\"\n\
    [[link]]\nname = \"l\"\nbetween = [\"a\", \"b\"]\ndelay = \"2 ms\"\n";

pub(super) fn rows(load: &Load<'_>) -> Result<Vec<Row>> {
    let scenario = load.scenario("add", SCENARIO)?;
    let run = WatchedRun::new(load.binary, &scenario, (NAME, load.time), &[])?;
    let mut connection = Connection::unix(run.socket())?;
    let seconds = (EACH * (HOSTS + 2)).as_secs().to_string();
    let ping = Command::new("ip")
        .args(["netns", "exec", &format!("lw-{NAME}-a"), "ping", "-q", "-i", "0.002"])
        .args(["-w", &seconds, "10.0.0.2"])
        .stdout(Stdio::piped())
        .spawn()
        .context("starting ping in a host")?;
    let mut times = Vec::new();
    for number in 0..HOSTS {
        std::thread::sleep(EACH);
        let sections = format!(
            "[[host]]\nname = \"h{number}\"\naddress = \"10.0.0.{}/24\"\n\
             [[link]]\nname = \"m{number}\"\nbetween = [\"h{number}\", \"a\"]\ndelay = \"1 ms\"\n",
            10 + number
        );
        let body = serde_json::json!({ "add": sections }).to_string();
        let begin = Instant::now();
        let answer = connection.ask("PATCH", "/v1/scenario", &body)?;
        times.push(begin.elapsed());
        ensure!(answer.is_success(), "h{number}: {}", answer.body);
    }
    let pinged = ping.wait_with_output().context("waiting for ping")?;
    let text = String::from_utf8_lossy(&pinged.stdout).into_owned();
    let (sent, back) = sent_and_received(&text).with_context(|| format!("ping's output: {text}"))?;
    drop(connection);
    let report = run.end()?;
    Ok(vec![
        longest("add: a host with a link", times, AT_MOST),
        // The last request may still be under way when ping ends.
        Row::new("add: echo requests lost elsewhere", "")
            .expected(1u64)
            .measured(sent.saturating_sub(back))
            .at_most(),
        Row::new("add: packets accounted for", "")
            .judged(report.row("packets accounted for").and_then(|row| row.pass) == Some(true)),
    ])
}

/// The numbers of ping's summary: `2000 packets transmitted, 2000 received, …`.
fn sent_and_received(text: &str) -> Option<(u64, u64)> {
    let line = text.lines().find(|line| line.contains("packets transmitted"))?;
    let mut numbers = line.split(',').map(|part| part.split_whitespace().next()?.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pings_summary_is_read() {
        let text = "\n--- 10.0.0.2 ping statistics ---\n\
            2000 packets transmitted, 1999 received, 0.05% packet loss, time 4001ms\n";
        assert_eq!(sent_and_received(text), Some((2000, 1999)));
        assert_eq!(sent_and_received("ping: connect: Network is unreachable"), None);
    }
}
