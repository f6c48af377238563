//! One link among a million is changed while the path runs at full rate.

use super::{Load, longest};
use crate::api::Connection;
use crate::watched_run::WatchedRun;
use anyhow::{Context, Result, ensure};
use longwire_report::Row;
use std::time::{Duration, Instant};

const NAME: &str = "lwchange";
const LINKS: u32 = 1_000_000;
/// How long a change may take.
const AT_MOST: Duration = Duration::from_millis(5);
/// Changes, and the time between two.
const CHANGES: u32 = 100;
const EACH: Duration = Duration::from_millis(100);
/// Time until packets flow, and from the last packet to the end.
const MARGIN: Duration = Duration::from_secs(2);

pub(super) fn rows(load: &Load<'_>) -> Result<Vec<Row>> {
    let sending = load.time.saturating_sub(MARGIN);
    let text = format!(
        "seed = 1\n[engine]\npool = \"1 GiB\"\n\
         [[port]]\nname = \"a\"\ndriver = \"source\"\naddresses = \"10.0.0.1/8\"\n\
         [[port]]\nname = \"b\"\ndriver = \"source\"\naddresses = \"198.51.100.1\"\n\
         [[link]]\nname = \"l{{n}}\"\ncount = {LINKS}\nfrom = \"a\"\nto = \"b\"\ndelay = \"1 ms\"\n\
         match = [{{ source = \"{{10.0.0.0 + n}}\", destination = \"198.51.100.1\" }}]\n\
         [[source]]\nname = \"full\"\nfrom = \"a\"\nto = \"b\"\nsource = \"10.0.0.7\"\nsize = \"64 B\"\n\
         interval = \"2 us\"\nfor = \"{} s\"\n",
        sending.as_secs()
    );
    let scenario = load.scenario("change", &text)?;
    let run = WatchedRun::new(load.binary, &scenario, (NAME, load.time), &[])?;
    let mut connection = Connection::unix(run.socket())?;
    std::thread::sleep(MARGIN);
    let mut times = Vec::new();
    for turn in 0..CHANGES {
        // The link that carries the packets, and others in turn.
        let link = if turn % 2 == 0 { 7 } else { turn * 9973 + 1 };
        let body = format!("{{\"delay\": \"{} us\"}}", 1000 + turn);
        let begin = Instant::now();
        let answer = connection.ask("PATCH", &format!("/v1/links/l{link}"), &body)?;
        times.push(begin.elapsed());
        ensure!(answer.is_success(), "l{link}: {}", answer.body);
        std::thread::sleep(EACH);
    }
    let report = run.end()?;
    let source = report.row("full").context("the report has no row of its source")?;
    let lost = source.extra.get("lost").and_then(serde_json::Value::as_u64).context("its losses")?;
    Ok(vec![
        longest("change: one link of a million, at 500 kpps", times, AT_MOST),
        Row::new("change: packets lost", "").expected(0u64).measured(lost).at_most(),
        Row::new("change: packets accounted for", "")
            .judged(report.row("packets accounted for").and_then(|row| row.pass) == Some(true)),
    ])
}
