//! Results: their commands, durations, and the code that they measure.

use super::FOLDER;
use crate::cargo::{run_cargo, target};
use anyhow::{Context, Result, bail, ensure};
use longwire_report::Report;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// A result: the file's name, and its command.
struct Step {
    name: &'static str,
    /// Arguments of `longwire`, without `--json`, separated by spaces.
    args: &'static str,
    /// Folders under `crates/` whose code it measures.
    crates: &'static [&'static str],
    /// Approximate duration in seconds on an idle machine with two cores.
    seconds: u32,
    /// Whether it is measured by default.
    usual: bool,
}

type Crates = &'static [&'static str];

const fn usual(name: &'static str, args: &'static str, crates: Crates, seconds: u32) -> Step {
    Step { name, args, crates, seconds, usual: true }
}

const fn if_named(name: &'static str, args: &'static str, crates: Crates, seconds: u32) -> Step {
    Step { name, args, crates, seconds, usual: false }
}

const PATH: Crates = &["engine", "link", "packet", "port", "bench"];
const PAPERS: Crates = &["engine", "link", "validate"];

const STEPS: &[Step] = &[
    usual("bench", "bench exact alloc engine memory lateness ports tcp --runs 3", PATH, 255),
    if_named("mapping", "bench mapping", PATH, 120),
    if_named("capacity", "bench capacity", PATH, 300),
    if_named("tunnel", "bench tunnel", &["tunnel", "bench"], 40),
    if_named("virtual", "bench virtual sweep", &["engine", "link", "sweep", "bench"], 90),
    usual("sched", "bench sched", &["sched", "bench"], 30),
    usual("linkem-virtual", "validate linkem --virtual", PAPERS, 40),
    usual("osaka-virtual", "validate osaka --virtual", PAPERS, 20),
    usual("cbcs", "validate cbcs", &["sched", "validate"], 60),
    if_named("princeton", "validate princeton", &["router", "program", "punt", "validate"], 240),
    if_named("osaka", "validate osaka", PAPERS, 330),
    if_named("linkem-all", "validate linkem", PAPERS, 1160),
    if_named("accuracy", "bench delay rate --runs 1", PATH, 300),
    if_named("router", "bench router punt blocks", &["router", "program", "punt", "link", "bench"], 120),
    if_named("aqm", "bench aqm", &["engine", "link", "bench"], 70),
    if_named("peers", "bench peers", PATH, 480),
];

/// The result that is made by another command, and that command.
const PROGRAMS: &str = "programs";
const PROGRAMS_COMMAND: &str = "cargo xtask programs FOLDER";
/// Folders under `crates/` whose code it measures.
pub const OF_PROGRAMS: Crates = &["program", "router"];

/// The command that makes a result.
pub(super) fn command(name: &str) -> String {
    if name == PROGRAMS {
        return PROGRAMS_COMMAND.to_owned();
    }
    format!("cargo xtask numbers --measure {name}")
}

/// Folders under `crates/` whose code a result measures; none if no command makes it.
pub(super) fn crates(name: &str) -> Option<Crates> {
    if name == PROGRAMS {
        return Some(OF_PROGRAMS);
    }
    STEPS.iter().find(|step| step.name == name).map(|step| step.crates)
}

/// Stores the report about programs, with the data for making it again.
///
/// # Errors
/// If it can't be written.
pub fn keep_programs(root: &Path, report: &Report, seconds: u64) -> Result<()> {
    let made = ResultOrigin::now(root)?;
    let result = kept(serde_json::to_value(report)?, (PROGRAMS_COMMAND, OF_PROGRAMS), &made, seconds);
    store(root, PROGRAMS, &result)
}

/// Lists all steps with their durations.
pub(super) fn list() -> String {
    let mut text = String::new();
    for step in STEPS {
        let when = if step.usual { "usual" } else { "if named" };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{:<15} {when:<9} {:>4} s  {}", step.name, step.seconds, line(step));
    }
    text
}

/// The command as a person types it.
fn line(step: &Step) -> String {
    format!("longwire {}", step.args)
}

/// The steps with these names, or the default ones.
fn chosen(names: &[&str]) -> Result<Vec<&'static Step>> {
    if names.is_empty() {
        return Ok(STEPS.iter().filter(|step| step.usual).collect());
    }
    let find = |name: &&str| {
        let step = STEPS.iter().find(|step| step.name == *name);
        step.with_context(|| format!("no result is called {name}; `cargo xtask numbers --list` names them"))
    };
    names.iter().map(find).collect()
}

/// Measures in the packaged build and stores the results. A row that fails is a result, too.
///
/// # Errors
/// If a command can't be started, or prints no report.
pub(super) fn run(root: &Path, names: &[&str]) -> Result<bool> {
    let steps = chosen(names)?;
    let build = ["build", "--profile", "measure", "--package", "longwire"];
    if !run_cargo(root, &build)? {
        bail!("longwire can't be built");
    }
    let seconds: u32 = steps.iter().map(|step| step.seconds).sum();
    println!(
        "measuring {} results, about {} min; let the machine do nothing else",
        steps.len(),
        seconds.div_ceil(60)
    );
    let made = ResultOrigin::now(root)?;
    std::fs::create_dir_all(root.join(FOLDER)).context("can't make docs/results")?;
    let program = target(root).join("measure/longwire");
    for step in steps {
        println!("== {} (about {} s)", line(step), step.seconds);
        let begun = Instant::now();
        let output = Command::new(&program)
            .args(step.args.split(' '))
            .arg("--json")
            .current_dir(root)
            .stderr(Stdio::inherit())
            .output()
            .with_context(|| format!("can't start {}", program.display()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let report: Value =
            serde_json::from_str(&text).with_context(|| format!("{} printed no report", line(step)))?;
        let result = kept(report, (&line(step), step.crates), &made, begun.elapsed().as_secs());
        store(root, step.name, &result)?;
    }
    Ok(true)
}

/// Origin of a result.
struct ResultOrigin {
    commit: String,
    date: String,
}

impl ResultOrigin {
    fn now(root: &Path) -> Result<Self> {
        Ok(Self { commit: commit(root)?, date: said(root, "date", &["-u", "+%F"])? })
    }
}

/// The report with the data for making it again: the command, and the crates that it measures.
fn kept(mut report: Value, (command, crates): (&str, &[&str]), made: &ResultOrigin, seconds: u64) -> Value {
    report["result"] = json!({
        "command": command,
        "commit": made.commit,
        "date": made.date,
        "seconds": seconds,
        "crates": crates,
    });
    report
}

fn store(root: &Path, name: &str, result: &Value) -> Result<()> {
    let file = root.join(FOLDER).join(format!("{name}.json"));
    std::fs::write(file, serde_json::to_string_pretty(result)? + "\n").context("can't keep the result")
}

/// The measured commit, with a `+` if files were changed since.
fn commit(root: &Path) -> Result<String> {
    let git = |args: &[&str]| said(root, "git", &[&["-c", "safe.directory=*"][..], args].concat());
    let commit = git(&["rev-parse", "--short", "HEAD"])?;
    let status = ["status", "--porcelain", "--untracked-files=no", "--"];
    // What decides how the program is built: profiles are in the manifest.
    let sources = ["crates", "Cargo.lock", "Cargo.toml", ".cargo"];
    let changed = git(&[status, sources].concat())?;
    Ok(if changed.is_empty() { commit } else { format!("{commit}+") })
}

/// What a program prints.
///
/// # Errors
/// If it can't be started, or fails.
fn said(root: &Path, program: &str, args: &[&str]) -> Result<String> {
    let output = Command::new(program).args(args).current_dir(root).output();
    let output = output.with_context(|| format!("can't start {program}"))?;
    let why = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{program} {} failed: {}", args.join(" "), why.trim());
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_steps_take_less_than_twelve_minutes() {
        let usual = chosen(&[]).unwrap();
        assert!(usual.iter().map(|step| step.seconds).sum::<u32>() <= 12 * 60);
        assert_eq!(chosen(&["cbcs", "osaka"]).unwrap()[1].name, "osaka");
        assert!(chosen(&["nonsense"]).is_err());
    }

    #[test]
    fn a_result_says_how_it_is_made_again() {
        let made = ResultOrigin { commit: "abc1234".into(), date: "2026-11-23".into() };
        let step = STEPS.iter().find(|step| step.name == "accuracy").unwrap();
        let report = json!({ "version": "0.1.0", "rows": [] });
        let result = kept(report, (&line(step), step.crates), &made, 7);
        assert_eq!(result["version"], "0.1.0");
        assert_eq!(result["result"]["command"], "longwire bench delay rate --runs 1");
        assert_eq!(result["result"]["crates"][0], "engine");
    }

    #[test]
    fn every_result_has_a_command() {
        assert_eq!(command("cbcs"), "cargo xtask numbers --measure cbcs");
        assert_eq!(command("programs"), "cargo xtask programs FOLDER");
        assert_eq!(crates("cbcs"), Some(&["sched", "validate"][..]));
        assert_eq!(crates("programs"), Some(&["program", "router"][..]));
        assert_eq!(crates("nonsense"), None);
        assert!(STEPS.iter().all(|step| step.name != PROGRAMS));
    }

    #[test]
    fn a_program_that_fails_says_nothing() {
        assert!(said(Path::new("."), "false", &[]).is_err());
        assert_eq!(said(Path::new("."), "echo", &["two words"]).unwrap(), "two words");
    }
}
