//! Measurements: their commands and durations.

use super::FOLDER;
use crate::cargo::{run_cargo, target};
use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// A result: the file's name, and its command.
pub(super) struct Step {
    pub name: &'static str,
    /// Arguments of `longwire`, without `--json`.
    args: &'static [&'static str],
    /// Folders under `crates/` whose code it measures.
    pub crates: &'static [&'static str],
    /// Approximate duration in seconds on an idle machine with two cores.
    seconds: u32,
    /// Whether it is measured by default.
    usual: bool,
}

const PATH: &[&str] = &["engine", "link", "packet", "port", "bench"];
const PAPERS: &[&str] = &["engine", "link", "validate"];

pub(super) const STEPS: &[Step] = &[
    Step {
        name: "bench",
        args: &["bench", "exact", "alloc", "engine", "memory", "lateness", "ports", "tcp", "--runs", "3"],
        crates: PATH,
        seconds: 255,
        usual: true,
    },
    Step { name: "mapping", args: &["bench", "mapping"], crates: PATH, seconds: 120, usual: false },
    Step { name: "capacity", args: &["bench", "capacity"], crates: PATH, seconds: 300, usual: false },
    Step {
        name: "tunnel",
        args: &["bench", "tunnel"],
        crates: &["tunnel", "bench"],
        seconds: 40,
        usual: false,
    },
    Step {
        name: "virtual",
        args: &["bench", "virtual", "sweep"],
        crates: &["engine", "link", "sweep", "bench"],
        seconds: 90,
        usual: false,
    },
    Step { name: "sched", args: &["bench", "sched"], crates: &["sched", "bench"], seconds: 30, usual: true },
    Step {
        name: "linkem-virtual",
        args: &["validate", "linkem", "--virtual"],
        crates: PAPERS,
        seconds: 40,
        usual: true,
    },
    Step {
        name: "osaka-virtual",
        args: &["validate", "osaka", "--virtual"],
        crates: PAPERS,
        seconds: 20,
        usual: true,
    },
    Step {
        name: "cbcs",
        args: &["validate", "cbcs"],
        crates: &["sched", "validate"],
        seconds: 60,
        usual: true,
    },
    Step {
        name: "princeton",
        args: &["validate", "princeton"],
        crates: &["router", "program", "punt", "validate"],
        seconds: 240,
        usual: false,
    },
    Step { name: "osaka", args: &["validate", "osaka"], crates: PAPERS, seconds: 330, usual: false },
    Step { name: "linkem-all", args: &["validate", "linkem"], crates: PAPERS, seconds: 1160, usual: false },
    Step {
        name: "accuracy",
        args: &["bench", "delay", "rate", "--runs", "1"],
        crates: PATH,
        seconds: 300,
        usual: false,
    },
    Step {
        name: "router",
        args: &["bench", "router", "punt", "blocks"],
        crates: &["router", "program", "punt", "link", "bench"],
        seconds: 120,
        usual: false,
    },
    Step {
        name: "aqm",
        args: &["bench", "aqm"],
        crates: &["engine", "link", "bench"],
        seconds: 70,
        usual: false,
    },
    Step { name: "peers", args: &["bench", "peers"], crates: PATH, seconds: 480, usual: false },
];

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
    format!("longwire {}", step.args.join(" "))
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
    let made = ResultOrigin { commit: commit(root)?, date: said(root, "date", &["-u", "+%F"])? };
    std::fs::create_dir_all(root.join(FOLDER)).context("can't make docs/results")?;
    let program = target(root).join("measure/longwire");
    for step in steps {
        println!("== {} (about {} s)", line(step), step.seconds);
        let begun = Instant::now();
        let output = Command::new(&program)
            .args(step.args)
            .arg("--json")
            .current_dir(root)
            .stderr(Stdio::inherit())
            .output()
            .with_context(|| format!("can't start {}", program.display()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let report: Value =
            serde_json::from_str(&text).with_context(|| format!("{} printed no report", line(step)))?;
        let result = kept(step, report, &made, begun.elapsed().as_secs());
        let file = root.join(FOLDER).join(format!("{}.json", step.name));
        std::fs::write(&file, serde_json::to_string_pretty(&result)? + "\n")
            .context("can't keep the result")?;
    }
    Ok(true)
}

/// Origin of a result.
struct ResultOrigin {
    commit: String,
    date: String,
}

/// The report with the data for making it again.
fn kept(step: &Step, mut report: Value, made: &ResultOrigin, seconds: u64) -> Value {
    report["result"] = json!({
        "command": line(step),
        "commit": made.commit,
        "date": made.date,
        "seconds": seconds,
        "crates": step.crates,
    });
    report
}

/// The measured commit, with a `+` if files were changed since.
pub(super) fn commit(root: &Path) -> Result<String> {
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
pub(super) fn said(root: &Path, program: &str, args: &[&str]) -> Result<String> {
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
        let result = kept(step, json!({ "version": "0.1.0", "rows": [] }), &made, 7);
        assert_eq!(result["version"], "0.1.0");
        assert_eq!(result["result"]["command"], "longwire bench delay rate --runs 1");
        assert_eq!(result["result"]["crates"][0], "engine");
    }

    #[test]
    fn a_program_that_fails_says_nothing() {
        assert!(said(Path::new("."), "false", &[]).is_err());
        assert_eq!(said(Path::new("."), "echo", &["two words"]).unwrap(), "two words");
    }
}
