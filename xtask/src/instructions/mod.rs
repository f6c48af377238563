//! Instructions per packet, counted by valgrind's callgrind, which gives the same on a busy machine as on an
//! idle one.
//!
//! Each row is the difference between two runs of the same kind of packet, a short and a long one.
//! `benches/instructions.toml` has the expected counts; a count that grows by more than [`MOST_GROWTH`] fails
//! until the file is updated. A release takes minutes to build, so the checks of a change use the existing
//! build of the tests: its counts are several times as high, and grow with those of the release.

mod callgrind;

use crate::cargo::{run_cargo, target};
use anyhow::{Context, Result, bail};
use longwire_report::{Report, Row};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const KEPT: &str = "benches/instructions.toml";
/// Exit status of longwire-carry if it can't carry the requested packets.
const NOT_HERE: i32 = 3;
/// Row of trains, each of which takes as much as fifty packets in the build of the tests.
const TRAINS: &str = "train of 44 segments";
/// Rows counted in the build of the tests: those with little setup, whose counts do not depend on the
/// machine's speed. That excludes packets that are sorted and in flight for a time of the clock, which
/// determines their number.
const IN_TESTS: &[&str] = &[
    "plain",
    "busy",
    "bridge",
    TRAINS,
    "minimal IP, cached",
    "loss correlated (probability 1 %, correlation 25 %)",
    "filter rules (rules drop if tcp port 80)",
    "rate token-bucket (rate 100 Gbit/s, burst 1 MB)",
    "queue red",
    "queue fq-codel",
    "queue fq-codel, 2 flows",
];
/// Most growth of a count, as a fraction.
const MOST_GROWTH: f64 = 0.03;

/// The stage of a source file, by a part of its path; the first match wins.
const STAGES: &[(&str, &str)] = &[
    ("crates/bench/", "source and sink"),
    ("crates/port/", "source and sink"),
    ("crates/packet/", "packet memory"),
    ("crates/link/src/classify", "classification"),
    ("crates/link/", "link"),
    ("crates/engine/src/wheel", "timing wheel"),
    ("crates/engine/src/fidelity", "lateness"),
    ("crates/engine/", "engine"),
    ("crates/router/src/bridge", "bridge"),
    ("crates/router/", "router"),
    ("crates/program/", "programs"),
    ("crates/wire/", "headers"),
    ("crates/", "other crates"),
    // A build without debug information, as in CI.
    ("???", "unknown"),
    ("", "libraries"),
];

/// The request.
#[derive(Debug, Default, PartialEq, Eq)]
struct CountRequest<'a> {
    json: bool,
    /// Store the counts instead of comparing them.
    keep: bool,
    /// Count the build of the tests instead of a release.
    tests: bool,
    /// Rows, or all.
    names: Vec<&'a str>,
}

/// `cargo xtask instructions`. Returns whether no count has grown.
///
/// # Errors
/// There is no valgrind, or something can't be built, run, read or written.
pub fn run(root: &Path, words: &[&str]) -> Result<bool> {
    let asked = asked(words)?;
    let program = build(root, asked.tests)?;
    let mut all = names(&program)?;
    if asked.tests {
        all.retain(|name| IN_TESTS.contains(&name.as_str()));
    }
    if let Some(wrong) = asked.names.iter().find(|name| !all.iter().any(|other| other == *name)) {
        bail!("nothing to count is called {wrong:?}; there are: {}", all.join(", "));
    }
    let tables = read(&root.join(KEPT))?;
    let kept = tables.get(asked.table()).cloned().unwrap_or_default();
    let mut report = Report::new("instructions");
    let mut counts = BTreeMap::new();
    for name in all.iter().filter(|name| asked.names.is_empty() || asked.names.contains(&name.as_str())) {
        let stages = match count(&program, name, asked.packets(name))? {
            Ok(stages) => stages,
            Err(why) => {
                eprintln!("left out: {name}: {why}");
                continue;
            }
        };
        let sum: f64 = stages.values().sum();
        counts.insert(name.clone(), sum.round() as u64);
        let row = row(name, &stages, kept.get(name).map(|count| *count as f64), asked.keep);
        if !asked.json {
            println!("{}", line(&row, &stages));
        }
        report.push(row);
    }
    if asked.json {
        println!("{}", report.to_json());
    }
    if asked.keep {
        let mut kept = kept;
        kept.extend(counts);
        kept.retain(|name, _| all.contains(name));
        let mut tables = tables;
        tables.insert(asked.table().to_owned(), kept);
        std::fs::write(root.join(KEPT), text(&tables)?).context(KEPT)?;
        return Ok(true);
    }
    if asked.names.is_empty() {
        let gone: Vec<&String> = kept.keys().filter(|name| !all.contains(name)).collect();
        if !gone.is_empty() {
            println!("{KEPT} has rows that are not counted: {gone:?}; count them with --keep");
            return Ok(false);
        }
    }
    Ok(report.pass)
}

impl CountRequest<'_> {
    /// Packets of the two runs of a row: so many that it does not matter that more of them are inside at the
    /// end of one.
    fn packets(&self, name: &str) -> [u64; 2] {
        match (self.tests, name) {
            (false, _) => [10_000, 60_000],
            (true, TRAINS) => [2000, 10_000],
            (true, _) => [5000, 45_000],
        }
    }

    /// The table that stores the counts.
    const fn table(&self) -> &'static str {
        if self.tests { "tests" } else { "release" }
    }
}

fn asked<'a>(words: &[&'a str]) -> Result<CountRequest<'a>> {
    let mut asked = CountRequest::default();
    for word in words {
        match *word {
            "--json" => asked.json = true,
            "--keep" => asked.keep = true,
            "--tests" => asked.tests = true,
            word if word.starts_with('-') => {
                bail!("cargo xtask instructions [--json] [--keep] [--tests] [NAME]...")
            }
            name => asked.names.push(name),
        }
    }
    Ok(asked)
}

/// Builds the program that carries packets, as a release or like the tests, and returns its path.
fn build(root: &Path, tests: bool) -> Result<PathBuf> {
    if Command::new("valgrind").arg("--version").stdout(Stdio::null()).status().is_err() {
        bail!("there is no valgrind, which counts instructions: install the package valgrind");
    }
    let line: &[&str] = match tests {
        // The programs of a test's package are built with it, for all packages with the features that their
        // tests need: so after the tests nothing is left to build.
        true => &["test", "--no-run", "--quiet", "--workspace", "--test", "aqm_lab"],
        false => {
            &["build", "--quiet", "--profile=measure", "--package=longwire-bench", "--bin=longwire-carry"]
        }
    };
    if !run_cargo(root, line)? {
        bail!("cargo {} failed", line.join(" "));
    }
    Ok(target(root).join(if tests { "debug" } else { "measure" }).join("longwire-carry"))
}

fn names(program: &Path) -> Result<Vec<String>> {
    let output = Command::new(program).arg("--names").output().context("can't start longwire-carry")?;
    Ok(String::from_utf8(output.stdout)?.lines().map(str::to_owned).collect())
}

/// What was counted, or what this machine lacks that the row needs.
type OrLacking<T> = std::result::Result<T, String>;

/// Instructions per packet by stage.
fn count(program: &Path, name: &str, packets: [u64; 2]) -> Result<OrLacking<BTreeMap<&'static str, f64>>> {
    // Counts do not depend on what else runs: so both run at once.
    let profiles = std::thread::scope(|scope| {
        let few = scope.spawn(|| profile(program, name, packets[0]));
        let many = profile(program, name, packets[1]);
        (few.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), many)
    });
    let (few, many) = match (profiles.0?, profiles.1?) {
        (Ok(few), Ok(many)) => (few, many),
        (Err(why), _) | (_, Err(why)) => return Ok(Err(why)),
    };
    let packets = (packets[1] - packets[0]) as f64;
    let mut stages = BTreeMap::new();
    for (file, instructions) in &many {
        let before = few.get(file).copied().unwrap_or(0);
        let more = instructions.saturating_sub(before) as f64 / packets;
        *stages.entry(stage(file)).or_default() += more;
    }
    stages.retain(|_, instructions| *instructions >= 0.05);
    Ok(Ok(stages))
}

fn stage(file: &str) -> &'static str {
    STAGES.iter().find(|(part, _)| file.contains(part)).map_or("libraries", |(_, stage)| stage)
}

/// Runs `packets` packets under callgrind and returns instructions by source file.
fn profile(program: &Path, name: &str, packets: u64) -> Result<OrLacking<HashMap<String, u64>>> {
    let file = std::env::temp_dir().join(format!("longwire-instructions-{}-{packets}", std::process::id()));
    let output = Command::new("valgrind")
        .arg("--tool=callgrind")
        .arg(format!("--callgrind-out-file={}", file.display()))
        .arg(program)
        .args([name, &packets.to_string()])
        .stdin(Stdio::null())
        .output()
        .context("can't start valgrind")?;
    let text = std::fs::read_to_string(&file).unwrap_or_default();
    // It may not have been written.
    let _ = std::fs::remove_file(&file);
    let errors = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(NOT_HERE) {
        let said: Vec<&str> = errors.lines().filter(|line| !line.starts_with("==")).collect();
        return Ok(Err(said.join("; ")));
    }
    let sums = callgrind::by_file(&text);
    if !output.status.success() || sums.is_empty() {
        bail!("{name}: {}", errors.trim_end());
    }
    Ok(Ok(sums))
}

fn row(name: &str, stages: &BTreeMap<&str, f64>, kept: Option<f64>, keep: bool) -> Row {
    let sum: f64 = stages.values().sum();
    let mut row = Row::new(name, "instructions").measured(sum.round());
    for (stage, instructions) in stages {
        row = row.extra(stage.replace(' ', "_"), (instructions * 10.0).round() / 10.0);
    }
    match kept {
        _ if keep => row,
        Some(kept) => {
            let grown = sum > kept * (1.0 + MOST_GROWTH);
            let row = row.expected(kept).judged(!grown);
            if grown {
                return row.note(format!(
                    "has grown by more than {} %: say why in the commit that changes \
                    {KEPT} (cargo xtask instructions --keep)",
                    MOST_GROWTH * 100.0
                ));
            }
            row
        }
        None => row.judged(false).note(format!("is not in {KEPT}: cargo xtask instructions --keep")),
    }
}

fn line(row: &Row, stages: &BTreeMap<&str, f64>) -> String {
    let sum: f64 = stages.values().sum();
    let verdict = if row.pass == Some(false) { "FAILED " } else { "" };
    let parts: Vec<String> =
        stages.iter().map(|(stage, instructions)| format!("{stage} {instructions:.0}")).collect();
    let notes: String = row.notes.iter().map(|note| format!("\n    {note}")).collect();
    format!("{verdict}{}: {sum:.0} ({}){notes}", row.name, parts.join(", "))
}

/// Counts by name, by table.
type Tables = BTreeMap<String, BTreeMap<String, u64>>;

fn read(path: &Path) -> Result<Tables> {
    let Ok(text) = std::fs::read_to_string(path) else { return Ok(Tables::new()) };
    toml::from_str(&text).with_context(|| path.display().to_string())
}

fn text(tables: &Tables) -> Result<String> {
    Ok(format!(
        "# Instructions of a packet, by `cargo xtask instructions --keep`, and of the build of the tests by \
         `--tests --keep`; without --keep the\n\
         # command fails if one has grown by more than {} %. A change of this file gives its reason in the \
         commit.\n\n{}",
        MOST_GROWTH * 100.0,
        toml::to_string(tables)?
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_kept_as_they_are_read() {
        let counts = |plain| BTreeMap::from([("plain".to_owned(), plain), ("loss (1 %)".to_owned(), 60)]);
        let tables = Tables::from([("release".into(), counts(1349)), ("tests".into(), counts(5000))]);
        let folder = std::env::temp_dir().join(format!("longwire-kept-{}", std::process::id()));
        std::fs::write(&folder, text(&tables).unwrap()).unwrap();
        assert_eq!(read(&folder).unwrap(), tables);
        std::fs::remove_file(&folder).unwrap();
        assert!(read(&folder).unwrap().is_empty());
    }

    #[test]
    fn a_count_may_grow_a_little() {
        let stages = |sum: f64| BTreeMap::from([("link", sum)]);
        let pass = |sum, kept| row("plain", &stages(sum), kept, false).pass;
        assert_eq!(pass(103.0, Some(100.0)), Some(true));
        assert_eq!(pass(103.5, Some(100.0)), Some(false));
        assert_eq!(pass(50.0, Some(100.0)), Some(true));
        assert_eq!(pass(50.0, None), Some(false));
        assert_eq!(row("plain", &stages(500.0), Some(1.0), true).pass, None);
    }

    #[test]
    fn files_belong_to_stages() {
        for (file, name) in [
            ("/x/crates/link/src/classify/table.rs", "classification"),
            ("/x/crates/link/src/link.rs", "link"),
            ("/x/crates/engine/src/wheel.rs", "timing wheel"),
            ("/rust/library/core/src/iter.rs", "libraries"),
            ("???", "unknown"),
        ] {
            assert_eq!(stage(file), name, "{file}");
        }
    }

    #[test]
    fn options_are_read() {
        let all = asked(&["--json", "plain", "--keep", "--tests"]).unwrap();
        assert_eq!(all, CountRequest { json: true, keep: true, tests: true, names: vec!["plain"] });
        assert_eq!([all.table(), CountRequest::default().table()], ["tests", "release"]);
        assert!(asked(&["--nothing"]).is_err());
    }
}
