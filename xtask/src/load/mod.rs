//! `cargo xtask load`: what requests to a running instance cost its packets, and how long they take. The
//! machine should be idle otherwise.

mod add;
mod change;
mod clients;

use crate::watched_run::built;
use anyhow::{Context, Result, bail, ensure};
use longwire_report::{Report, Row};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long each run takes if nothing is said.
const USUAL: Duration = Duration::from_secs(60);
/// The shortest: slow readers are cut off after ten seconds.
const SHORTEST: Duration = Duration::from_secs(30);

/// A measurement.
struct Load<'r> {
    binary: &'r Path,
    /// The folder for its scenario.
    folder: &'r Path,
    /// How long a run takes.
    time: Duration,
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
const LOADS: [(&str, Measure); 3] =
    [("clients", clients::rows), ("change", change::rows), ("add", add::rows)];

/// Runs the named ones, or all, prints a table, and returns whether all is as it should be.
///
/// # Errors
/// Options that are not known; a build or a run that can't be started.
pub fn run(root: &Path, words: &[&str]) -> Result<bool> {
    let (mut time, mut binary, mut names) = (USUAL, None, Vec::new());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().with_context(|| format!("{word} needs a value"));
        match *word {
            "--seconds" => time = Duration::from_secs(value()?.parse().context("whole seconds")?),
            "--binary" => binary = Some(root.join(value()?)),
            name if LOADS.iter().any(|(known, _)| *known == name) => names.push(name),
            _ => bail!("no such option: {word}; there are --seconds N, --binary FILE, clients, change, add"),
        }
    }
    ensure!(time >= SHORTEST, "a run takes at least {} s", SHORTEST.as_secs());
    let folder = root.join("target/load");
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let binary = built(root, binary)?;
    let load = Load { binary: &binary, folder: &folder, time };
    let mut report = Report::new("xtask load");
    for (name, measure) in LOADS.iter().filter(|(name, _)| names.is_empty() || names.contains(name)) {
        println!("load: {name}");
        report.extend(measure(&load).with_context(|| format!("load {name}"))?);
    }
    report.print_table(&mut std::io::stdout().lock())?;
    Ok(report.pass)
}

/// A row for the times of requests: their median as a note, and the longest against what it may take.
fn longest(name: &str, mut times: Vec<Duration>, at_most: Duration) -> Row {
    times.sort_unstable();
    let nanos = |time: Option<&Duration>| time.map_or(0, |time| time.as_nanos() as u64);
    let median = nanos(times.get(times.len() / 2));
    Row::new(name, "ns")
        .expected(at_most.as_nanos() as u64)
        .measured(nanos(times.last()))
        .at_most()
        .note(format!("the longest of {}; median {} µs", times.len(), median / 1000))
}
