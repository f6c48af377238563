//! The command that makes each result, and the code that it measures.

use super::FOLDER;
use super::measure::{STEPS, commit, said};
use anyhow::{Context, Result, bail};
use longwire_report::Report;
use serde_json::{Value, json};
use std::path::Path;

/// A result made by a command other than `cargo xtask numbers --measure`.
struct Other {
    name: &'static str,
    command: &'static str,
    crates: &'static [&'static str],
}

const OTHERS: &[Other] =
    &[Other { name: "programs", command: "cargo xtask programs FOLDER", crates: &["program", "router"] }];

fn other(name: &str) -> Option<&'static Other> {
    OTHERS.iter().find(|other| other.name == name)
}

/// The command that makes a result.
pub(super) fn command(name: &str) -> String {
    other(name)
        .map_or_else(|| format!("cargo xtask numbers --measure {name}"), |other| other.command.to_owned())
}

/// Folders under `crates/` whose code a result measures; none if no command makes it.
pub fn crates(name: &str) -> Option<&'static [&'static str]> {
    let step = STEPS.iter().find(|step| step.name == name).map(|step| step.crates);
    step.or_else(|| Some(other(name)?.crates))
}

/// Stores a report made by another command, with the data for making it again.
///
/// # Errors
/// If no command makes a result of this name, or it can't be written.
pub fn keep(root: &Path, name: &str, report: &Report, seconds: u64) -> Result<()> {
    let Some(other) = other(name) else { bail!("no command makes {FOLDER}{name}.json") };
    let mut result: Value = serde_json::to_value(report)?;
    result["result"] = json!({
        "command": other.command,
        "commit": commit(root)?,
        "date": said(root, "date", &["-u", "+%F"])?,
        "seconds": seconds,
        "crates": other.crates,
    });
    let file = root.join(FOLDER).join(format!("{name}.json"));
    std::fs::write(file, serde_json::to_string_pretty(&result)? + "\n").context("can't keep the result")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_result_has_a_command() {
        assert_eq!(command("cbcs"), "cargo xtask numbers --measure cbcs");
        assert_eq!(command("programs"), "cargo xtask programs FOLDER");
        assert_eq!(crates("cbcs"), Some(&["sched", "validate"][..]));
        assert_eq!(crates("programs"), Some(&["program", "router"][..]));
        assert_eq!(crates("nonsense"), None);
        assert!(OTHERS.iter().all(|other| STEPS.iter().all(|step| step.name != other.name)));
    }
}
