//! Cargo as a child process.

use anyhow::{Context, Result};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
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

/// The folder of what cargo builds.
pub fn target(root: &Path) -> PathBuf {
    target_of(root, std::env::var_os("CARGO_TARGET_DIR"))
}

/// With `CARGO_TARGET_DIR` as given: a relative one begins where cargo runs.
fn target_of(root: &Path, given: Option<OsString>) -> PathBuf {
    root.join(given.unwrap_or_else(|| "target".into()))
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

    #[test]
    fn programs_are_where_cargo_builds_them() {
        let of = |given: Option<&str>| target_of(Path::new("/here"), given.map(OsString::from));
        assert_eq!(of(None), Path::new("/here/target"));
        assert_eq!(of(Some("/there")), Path::new("/there"));
        assert_eq!(of(Some("beside")), Path::new("/here/beside"));
    }
}
