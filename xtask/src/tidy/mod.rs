//! The project's rules that no compiler checks. Each finding names the place, the rule and the fix.

mod code;
mod crates;
mod dependencies;
mod docs;
mod source;

use crate::numbers;
use anyhow::{Context, Result, bail};
use std::fmt;
use std::path::Path;
use std::process::Command;

/// A violation of a rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The file, from the workspace's folder.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The rule, in a few words.
    pub rule: &'static str,
    /// What to do.
    pub fix: String,
}

impl Finding {
    pub fn new(file: &str, line: usize, rule: &'static str, fix: impl Into<String>) -> Self {
        Self { file: file.into(), line, rule, fix: fix.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}; {}", self.file, self.line, self.rule, self.fix)
    }
}

/// A text file of the project.
pub struct File {
    /// Its path from the workspace's folder, with slashes.
    pub path: String,
    /// Its text.
    pub text: String,
}

/// Checks all files, prints the findings, and returns whether there were none.
///
/// # Errors
/// If git can't list the files, or one can't be read.
pub fn run(root: &Path) -> Result<bool> {
    let files = files(root)?;
    let mut findings = findings(&files);
    numbers::check_age(root, &files, &mut findings)?;
    findings.sort();
    for finding in &findings {
        println!("{finding}");
    }
    println!("tidy: {} files, {} findings", files.len(), findings.len());
    Ok(findings.is_empty())
}

fn findings(files: &[File]) -> Vec<Finding> {
    let mut all = Vec::new();
    for file in files {
        code::check_text(file, &mut all);
        if file.path.ends_with(".rs") {
            code::check_rust(file, &mut all);
        }
    }
    crates::check(files, &mut all);
    dependencies::check(files, &mut all);
    docs::check(files, &mut all);
    numbers::check(files, &mut all);
    all
}

/// The text files that git tracks or would track.
pub fn files(root: &Path) -> Result<Vec<File>> {
    let list = ["-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let output = Command::new("git").args(list).current_dir(root).output().context("can't start git")?;
    if !output.status.success() {
        bail!("git can't list the files: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let names = String::from_utf8(output.stdout).context("a file's name is not UTF-8")?;
    let mut files = Vec::new();
    for name in names.split_terminator('\0') {
        let path = root.join(name);
        // Deleted but not yet committed, or not a plain file.
        if !path.is_file() {
            continue;
        }
        let bytes = std::fs::read(&path).with_context(|| format!("can't read {name}"))?;
        if let Ok(text) = String::from_utf8(bytes) {
            files.push(File { path: name.into(), text });
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files.dedup_by(|a, b| a.path == b.path);
    Ok(files)
}

#[cfg(test)]
fn file(path: &str, text: &str) -> File {
    File { path: path.into(), text: text.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_names_place_rule_and_fix() {
        let finding = Finding::new("a/b.rs", 7, "no clocks", "take the time as an argument");
        assert_eq!(finding.to_string(), "a/b.rs:7: no clocks; take the time as an argument");
    }

    #[test]
    fn rules_of_all_kinds_are_run() {
        let found = findings(&[file("crates/link/src/utils.rs", "fn a() { todo!() }\n")]);
        let rules: Vec<_> = found.iter().map(|f| f.rule).collect();
        assert!(rules.contains(&"nothing unfinished") && rules.contains(&"no drawers"), "{rules:?}");
        assert!(rules.contains(&"the README exists"), "{rules:?}");
    }
}
