//! `cargo xtask load`: what requests to a running instance cost its packets, and how long they and `exec`
//! take. The machine should be idle otherwise: its load is printed.

mod add;
mod change;
mod clients;
mod dashboard;
mod exec;
mod own_processor;

use crate::watched_run::built;
use anyhow::{Context, Result, bail};
use longwire_report::{Report, Row};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A measurement.
struct Load<'r> {
    binary: &'r Path,
    /// The folder for its scenario.
    folder: &'r Path,
}

impl Load<'_> {
    /// Writes a scenario into the folder.
    fn scenario(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.folder.join(format!("{name}.toml"));
        std::fs::write(&path, text).with_context(|| path.display().to_string())?;
        Ok(path)
    }
}

type Measure = fn(&Load<'_>) -> Result<Vec<Row>>;

/// The measurements by name.
const LOADS: [(&str, Measure); 5] = [
    ("exec", exec::rows),
    ("clients", clients::rows),
    ("change", change::rows),
    ("add", add::rows),
    ("dashboard", dashboard::rows),
];

/// Runs the named ones, or all, prints a table, and returns whether all is as it should be.
///
/// # Errors
/// Options that are not known; a build or a run that can't be started.
pub fn run(root: &Path, words: &[&str]) -> Result<bool> {
    let (mut binary, mut names) = (None, Vec::new());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "--binary" => binary = Some(root.join(words.next().context("--binary needs a file")?)),
            name if LOADS.iter().any(|(known, _)| *known == name) => names.push(name),
            _ => bail!(
                "no such option: {word}; there are --binary FILE, exec, clients, change, add, dashboard"
            ),
        }
    }
    let folder = root.join("target/load");
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let binary = built(root, "measure", binary)?;
    let load = Load { binary: &binary, folder: &folder };
    let mut report = Report::new("xtask load");
    for (name, measure) in LOADS.iter().filter(|(name, _)| names.is_empty() || names.contains(name)) {
        println!("load: {name}; the machine's load is {}", load_of_machine()?);
        report.extend(measure(&load).with_context(|| format!("load {name}"))?);
    }
    report.print_table(&mut std::io::stdout().lock())?;
    Ok(report.pass)
}

/// How many processes have run or waited for a processor: means of 1, 5 and 15 minutes.
fn load_of_machine() -> Result<String> {
    let text = std::fs::read_to_string("/proc/loadavg").context("reading /proc/loadavg")?;
    Ok(text.split(' ').take(3).collect::<Vec<_>>().join(" "))
}

/// A port of this machine that nobody listens on.
fn free_port() -> Result<u16> {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
    Ok(free.context("a free port")?.port())
}

/// The value in the middle.
fn median(values: Vec<u64>) -> u64 {
    quartiles(values)[1]
}

/// The values that a quarter, half and three quarters of all do not reach.
fn quartiles(mut values: Vec<u64>) -> [u64; 3] {
    values.sort_unstable();
    [1, 2, 3].map(|quarters| values.get(values.len() * quarters / 4).copied().unwrap_or_default())
}

/// A row for the times of requests: the one that a share of them, in per cent, does not exceed, against what
/// it may be.
fn times_row(name: &str, times: &[Duration], percent: usize, at_most: Duration) -> Row {
    let mut nanos: Vec<u64> = times.iter().map(|time| time.as_nanos() as u64).collect();
    nanos.sort_unstable();
    let row = Row::new(name, "ns").expected(at_most.as_nanos() as u64);
    let (Some(longest), Some(judged)) =
        (nanos.last(), nanos.get((nanos.len() * percent).div_ceil(100).saturating_sub(1)))
    else {
        return row.judged(false).note("nothing was measured");
    };
    let [median, longest] = [median(nanos.clone()), *longest].map(|ns| ns as f64 / 1e6);
    row.measured(*judged)
        .at_most()
        .note(format!("{percent} % of {}; median {median:.2} ms, longest {longest:.2} ms", nanos.len()))
}

/// Whether a run has accounted for all packets.
fn conservation_row(name: &str, run: &Report) -> Row {
    Row::new(name, "").judged(run.row("packets accounted for").and_then(|row| row.pass) == Some(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_judged_by_their_share() {
        let times: Vec<_> = (1..=100).map(Duration::from_millis).collect();
        let judged = |percent, ms| times_row("", &times, percent, Duration::from_millis(ms)).pass;
        assert_eq!((judged(99, 99), judged(99, 98)), (Some(true), Some(false)));
        assert_eq!((judged(100, 100), judged(100, 99)), (Some(true), Some(false)));
        assert_eq!(times_row("", &[], 99, Duration::from_secs(1)).pass, Some(false));
    }
}
