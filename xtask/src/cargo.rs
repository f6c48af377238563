//! Cargo as a child process.

use anyhow::{Context, Result};
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

/// What the names of the variables begin with that cargo sets for the package that it runs: this one.
const OWN: [&str; 2] = ["CARGO_PKG_", "CARGO_MANIFEST_"];

/// Cargo in the workspace's folder.
///
/// It does not inherit what cargo has set for this program. Build scripts that ask to run again when such a
/// variable changes would do so each time, and all that depends on them would be built again.
pub fn cargo(root: &Path) -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(root);
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_own(name)) {
        command.env_remove(name);
    }
    command
}

/// Runs cargo with these arguments, and returns whether it succeeded.
///
/// # Errors
/// If cargo can't be started.
pub fn run_cargo(root: &Path, args: &[&str]) -> Result<bool> {
    Ok(cargo(root).args(args).status().context("can't start cargo")?.success())
}

fn is_own(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| OWN.iter().any(|start| name.starts_with(start)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_know_nothing_of_this_package() {
        let command = cargo(Path::new("."));
        let removed: Vec<_> = command.get_envs().filter(|(_, value)| value.is_none()).collect();
        assert!(removed.iter().any(|(name, _)| *name == "CARGO_MANIFEST_DIR"), "{removed:?}");
        assert!(removed.iter().any(|(name, _)| *name == "CARGO_PKG_NAME"), "{removed:?}");
        assert!(!is_own(OsStr::new("CARGO_TARGET_DIR")) && !is_own(OsStr::new("CARGO_HOME")));
    }
}
