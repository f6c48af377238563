//! Age of results: a result that is more than a release older than the last change of the code it measured is
//! outdated.

use super::{FOLDER, measure};
use crate::files::File;
use crate::finding::Finding;
use anyhow::{Context, Result};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Checks every stored result.
pub(super) fn check(root: &Path, files: &[File], findings: &mut Vec<Finding>) -> Result<()> {
    let changes = files.iter().find(|file| file.path == "CHANGELOG.md").map_or("", |file| file.text.as_str());
    let releases = releases(changes);
    for file in files.iter().filter(|file| file.path.starts_with(FOLDER) && file.path.ends_with(".json")) {
        let result: Value = serde_json::from_str(&file.text).unwrap_or_default();
        let name = file.path.trim_start_matches(FOLDER).trim_end_matches(".json");
        let (Some(version), Some(crates)) =
            (result["version"].as_str().and_then(parsed), measure::crates(name))
        else {
            let fix = "keep only what cargo xtask numbers --measure or cargo xtask programs makes";
            findings.push(Finding::new(&file.path, 1, "results are reports that can be made again", fix));
            continue;
        };
        for krate in crates {
            let Some(changed) = last_change(root, krate)? else { continue };
            if too_old(version, changed, &releases) {
                let fix = format!("crates/{krate} has changed since: {}", measure::command(name));
                findings.push(Finding::new(&file.path, 1, "results are at most a release old", fix));
                break;
            }
        }
    }
    Ok(())
}

type Version = (u64, u64, u64);

fn parsed(text: &str) -> Option<Version> {
    let mut parts = text.split('.').map(str::parse);
    match (parts.next()?, parts.next()?, parts.next()?, parts.next()) {
        (Ok(major), Ok(minor), Ok(patch), None) => Some((major, minor, patch)),
        _ => None,
    }
}

/// The releases in the change log: headings like `## 0.2.0` or `## [0.2.0] - 2026-12-01`.
fn releases(changes: &str) -> Vec<Version> {
    let headings = changes.lines().filter_map(|line| line.strip_prefix("## "));
    headings.filter_map(|text| parsed(text.trim_start_matches('[').split([']', ' ']).next()?)).collect()
}

/// Whether more than one release lies between the result's version and that of the change, which is included.
fn too_old(result: Version, change: Version, releases: &[Version]) -> bool {
    let between = releases.iter().filter(|release| result < **release && **release < change).count();
    between + usize::from(result < change) > 1
}

/// The version at the last commit that changed a crate; none without a history.
fn last_change(root: &Path, krate: &str) -> Result<Option<Version>> {
    let folder = format!("crates/{krate}/src");
    let commit = git(root, &["log", "-1", "--format=%H", "--", &folder])?;
    if commit.is_empty() {
        return Ok(None);
    }
    let manifest: toml::Table = git(root, &["show", &format!("{commit}:Cargo.toml")])?.parse()?;
    let version = manifest.get("workspace").and_then(|table| table.get("package")?.get("version")?.as_str());
    Ok(version.and_then(parsed))
}

/// Output of git; none without a repository.
fn git(root: &Path, args: &[&str]) -> Result<String> {
    let output = Command::new("git").args(["-c", "safe.directory=*"]).args(args).current_dir(root).output();
    Ok(String::from_utf8_lossy(&output.context("can't start git")?.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHANGES: &str =
        "# Changes\n## Unreleased\n## [0.3.0] - 2027-01-01\n## 0.2.0\n### Added\n## [0.1.0]\n";

    #[test]
    fn releases_are_the_headings_with_versions() {
        assert_eq!(releases(CHANGES), [(0, 3, 0), (0, 2, 0), (0, 1, 0)]);
    }

    #[test]
    fn a_result_may_be_one_release_old() {
        let known = releases(CHANGES);
        let old = |result, change| too_old(parsed(result).unwrap(), parsed(change).unwrap(), &known);
        assert!(!old("0.1.0", "0.1.0") && !old("0.1.0", "0.2.0") && !old("0.2.0", "0.3.0"));
        assert!(old("0.1.0", "0.3.0"), "0.2.0 and 0.3.0 came since");
        assert!(!old("0.3.0", "0.1.0"), "what has not changed since stays true");
        assert!(parsed("0.1").is_none() && parsed("x.1.0").is_none());
    }

    #[test]
    fn what_is_no_report_or_has_no_command_is_found() {
        let file = |path: &str, text: &str| File { path: path.into(), text: text.into() };
        let files = [
            file("docs/results/bench.json", "{}"),
            file("docs/results/other.json", "{\"version\": \"0.1.0\"}"),
        ];
        let mut findings = Vec::new();
        check(Path::new("."), &files, &mut findings).unwrap();
        assert_eq!(findings.len(), 2, "{findings:?}");
    }
}
