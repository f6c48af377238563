//! Numbers in the documents: results are stored as JSON in `docs/results`, and the tables between markers in
//! Markdown are generated from them, so that each number has its command, version and machine.

mod age;
mod measure;
mod table;

pub use measure::{OF_PROGRAMS, keep_programs};

use crate::files::{File, files};
use crate::finding::Finding;
use anyhow::{Context, Result, bail};
use std::path::Path;

/// Where results are kept.
const FOLDER: &str = "docs/results/";

/// `cargo xtask numbers`: generates the tables of all Markdown files, after the requested measurements.
///
/// # Errors
/// If something can't be measured, read or written, or a marker is wrong.
pub fn run(root: &Path, words: &[&str]) -> Result<bool> {
    let passed = match words {
        [] => true,
        ["--list"] => {
            print!("{}", measure::list());
            return Ok(true);
        }
        ["--measure", names @ ..] => measure::run(root, names)?,
        _ => bail!("cargo xtask numbers [--list | --measure [NAME]...]"),
    };
    let all = files(root)?;
    let mut changed = 0;
    for file in all.iter().filter(|file| file.path.ends_with(".md")) {
        let text = table::fill(&file.text, &all)
            .map_err(|(line, why)| anyhow::anyhow!("{}:{line}: {why}", file.path))?;
        if text != file.text {
            std::fs::write(root.join(&file.path), text)
                .with_context(|| format!("can't write {}", file.path))?;
            println!("tables made: {}", file.path);
            changed += 1;
        }
    }
    println!("numbers: {changed} files changed");
    Ok(passed)
}

/// Checks that the tables match the stored results.
pub fn check(files: &[File], findings: &mut Vec<Finding>) {
    for file in files.iter().filter(|file| file.path.ends_with(".md")) {
        match table::fill(&file.text, files) {
            Ok(text) if text == file.text => {}
            Ok(text) => {
                let differs = text.lines().zip(file.text.lines()).position(|(new, old)| new != old);
                let line = differs.unwrap_or_else(|| file.text.lines().count().saturating_sub(1)) + 1;
                findings.push(Finding::new(&file.path, line, RULE, "run cargo xtask numbers"));
            }
            Err((line, why)) => findings.push(Finding::new(&file.path, line, RULE, why)),
        }
    }
}

const RULE: &str = "tables of numbers are made from docs/results";

/// Checks that no result is more than a release older than the code that it measured.
///
/// # Errors
/// If git can't report when a crate was changed.
pub fn check_age(root: &Path, files: &[File], findings: &mut Vec<Finding>) -> Result<()> {
    age::check(root, files, findings)
}
