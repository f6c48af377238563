//! Hosts with links are added to a running net by command, and a link beside them loses nothing.

use super::{Load, conservation_row, times_row};
use crate::watched_run::{WatchedRun, in_host};
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
/// Echo requests, 2 ms apart: until after the last addition, however late they are sent.
const ECHOES: u32 = 6000;
/// The longest run: it is ended when all is measured.
const LASTS: Duration = Duration::from_secs(300);

const SCENARIO: &str = "seed = 1\n\
    [[host]]\nname = \"a\"\naddress = \"10.0.0.1/24\"\n\
    [[host]]\nname = \"b\"\naddress = \"10.0.0.2/24\"\n\
    [[link]]\nname = \"l\"\nbetween = [\"a\", \"b\"]\ndelay = \"2 ms\"\n";

pub(super) fn rows(load: &Load<'_>) -> Result<Vec<Row>> {
    let scenario = load.scenario("add", SCENARIO)?;
    let run = WatchedRun::new(load.binary, &scenario, (NAME, LASTS), &[])?;
    let count = ECHOES.to_string();
    let mut ping = in_host(NAME, "a")
        .args(["ping", "-q", "-i", "0.002", "-W", "2", "-c", &count, "10.0.0.2"])
        .stdout(Stdio::piped())
        .spawn()
        .context("starting ping in a host")?;
    let mut times = Vec::new();
    for number in 0..HOSTS {
        std::thread::sleep(EACH);
        let (name, address) = (format!("h{number}"), format!("address=10.0.0.{}/24", 10 + number));
        let begin = Instant::now();
        let added = Command::new(load.binary)
            .args(["ctl", "add", "--instance", NAME, "host", &name, &address, "--link", "a"])
            .arg("link.delay=1ms")
            .output()
            .context("starting ctl add")?;
        times.push(begin.elapsed());
        ensure!(added.status.success(), "ctl add: {}", String::from_utf8_lossy(&added.stderr));
    }
    ensure!(ping.try_wait()?.is_none(), "ping ended before the last addition");
    let pinged = ping.wait_with_output().context("waiting for ping")?;
    let text = String::from_utf8_lossy(&pinged.stdout).into_owned();
    let (sent, back) = sent_and_received(&text).with_context(|| format!("ping's output: {text}"))?;
    let report = run.stop()?;
    Ok(vec![
        times_row("add: ctl add of a host with a link", &times, 100, AT_MOST),
        Row::new("add: echoes lost on another link", "")
            .expected(0u64)
            .measured(sent.saturating_sub(back))
            .at_most()
            .note(format!("of {sent}")),
        conservation_row("add: packets accounted for", &report),
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
