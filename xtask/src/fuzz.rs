//! The functions of all fuzz targets over their mutated corpora, for the nightly job.

use crate::cargo::cargo;
use anyhow::{Context, Result};
use std::path::Path;

/// Builds `crates/hostile`, optimized and with the checks of tests, and runs it with these options.
///
/// # Errors
/// If cargo can't be started.
pub fn run(root: &Path, options: &[&str]) -> Result<bool> {
    let build = ["run", "--profile", "fuzz", "--package", "longwire-hostile", "--"];
    // Failures are reported in one line, because the input is kept.
    let status = cargo(root).args(build).args(options).env("RUST_BACKTRACE", "0").status();
    let status = status.context("can't start cargo")?;
    if status.code().is_none() {
        eprintln!("it was ended by a signal: go on with --resume --each to see at which case");
    }
    Ok(status.success())
}
