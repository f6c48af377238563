//! Checks that a change must pass, step by step.

use crate::cargo::cargo;
use crate::{TEST_COMMAND, instructions, tidy};
use anyhow::{Context, Result};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Selection of steps.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Every step.
    All,
    /// Steps without running tests.
    WithoutTests,
}

/// Steps, and the command of each.
const CHECKS: &[(&str, &str)] = &[
    ("format", "cargo fmt --all --check"),
    ("clippy", "cargo clippy --workspace --all-targets -- -D warnings"),
    ("docs", "cargo doc --no-deps --workspace"),
];

struct Outcome {
    step: &'static str,
    passed: bool,
    took: Duration,
}

/// Runs every step, even after a failure or one that can't be run, and prints which passed.
pub fn run(root: &Path, extent: Extent) -> bool {
    let mut outcomes = Vec::new();
    for (step, line) in CHECKS {
        outcomes.push(timed(step, line, || succeeds(root, line)));
    }
    outcomes.push(timed("tidy", "cargo xtask tidy", || tidy::run(root)));
    outcomes
        .push(timed("counts", "cargo xtask instructions --tests", || instructions::run(root, &["--tests"])));
    if extent == Extent::All {
        // Lab tests, corpora and the examples of README and book are ordinary tests.
        outcomes.push(timed("tests", TEST_COMMAND, || succeeds(root, TEST_COMMAND)));
    }
    println!("\n{}", summary(&outcomes));
    outcomes.iter().all(|o| o.passed)
}

/// Runs a step. One that ends with an error has failed.
fn timed(step: &'static str, line: &str, work: impl FnOnce() -> Result<bool>) -> Outcome {
    println!("\n== {step}: {line}");
    let start = Instant::now();
    let passed = work().unwrap_or_else(|error| {
        println!("{error:#}");
        false
    });
    let took = start.elapsed();
    println!("== {step}: {} after {:.1} s", verdict(passed), took.as_secs_f64());
    Outcome { step, passed, took }
}

/// Whether a command of cargo succeeds.
fn succeeds(root: &Path, line: &str) -> Result<bool> {
    let words = line.split(' ').skip_while(|word| *word == "cargo");
    let status = cargo(root).args(words).env("RUSTDOCFLAGS", "-D warnings").stdin(Stdio::null()).status();
    Ok(status.with_context(|| format!("can't start `{line}`"))?.success())
}

fn summary(outcomes: &[Outcome]) -> String {
    let mut text = String::new();
    for o in outcomes {
        text += &format!("{:<8}{:<8}{:>7.1} s\n", o.step, verdict(o.passed), o.took.as_secs_f64());
    }
    let failed: Vec<_> = outcomes.iter().filter(|o| !o.passed).map(|o| o.step).collect();
    if failed.is_empty() { text + "all passed" } else { text + "failed: " + &failed.join(", ") }
}

fn verdict(passed: bool) -> &'static str {
    if passed { "passed" } else { "FAILED" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_cannot_be_run_has_failed_and_the_others_follow() {
        let steps = [
            timed("counts", "x", || anyhow::bail!("there is no valgrind")),
            timed("tests", "x", || Ok(true)),
        ];
        assert_eq!(steps.each_ref().map(|step| step.passed), [false, true]);
        assert!(summary(&steps).ends_with("failed: counts"));
    }

    #[test]
    fn the_summary_names_what_failed() {
        let outcome = |step, passed| Outcome { step, passed, took: Duration::from_millis(1500) };
        let good = summary(&[outcome("format", true)]);
        assert_eq!(good, "format  passed      1.5 s\nall passed");
        let bad = summary(&[outcome("format", true), outcome("docs", false), outcome("tests", false)]);
        assert!(bad.ends_with("failed: docs, tests"), "{bad}");
    }
}
