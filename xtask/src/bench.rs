//! Benchmarks: `longwire bench` in the packaged build, and the criterion benches of the workspace.

use crate::cargo::run_cargo;
use anyhow::{Context, Result};
use std::path::Path;

/// Runs the benchmark called `name`, or all of them.
///
/// # Errors
/// If cargo can't be started or a manifest can't be read.
pub fn run(root: &Path, name: Option<&str>) -> Result<bool> {
    let targets = criterion_targets(root)?;
    let chosen = |target: &str| name.is_none_or(|n| n == target);
    let criterion: Vec<_> = targets.iter().filter(|t| chosen(t)).collect();
    let mut passed = true;
    if name.is_none() || criterion.is_empty() {
        let mut line = vec!["run", "--profile", "measure", "--package", "longwire", "--", "bench"];
        line.extend(name);
        passed &= announced(root, &line)?;
    }
    for target in criterion {
        passed &= announced(root, &["bench", "--workspace", "--bench", target])?;
    }
    Ok(passed)
}

fn announced(root: &Path, args: &[&str]) -> Result<bool> {
    println!("== cargo {}", args.join(" "));
    run_cargo(root, args)
}

/// The names of the `[[bench]]` tables of all crates.
fn criterion_targets(root: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(root.join("crates")).context("no folder crates/")? {
        let manifest = entry?.path().join("Cargo.toml");
        let text = std::fs::read_to_string(&manifest).with_context(|| manifest.display().to_string())?;
        names.extend(bench_names(&text).with_context(|| manifest.display().to_string())?);
    }
    names.sort();
    Ok(names)
}

fn bench_names(manifest: &str) -> Result<Vec<String>> {
    let table: toml::Table = manifest.parse()?;
    let benches = table.get("bench").and_then(toml::Value::as_array);
    let name = |bench: &toml::Value| bench.get("name").and_then(toml::Value::as_str).map(String::from);
    Ok(benches.into_iter().flatten().filter_map(name).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn benches_are_found_in_manifests() {
        let manifest = "[package]\nname = \"x\"\n[[bench]]\nname = \"wheel\"\nharness = false\n[[bench]]\n\
            name = \"pool\"\n";
        assert_eq!(bench_names(manifest).unwrap(), ["wheel", "pool"]);
        assert!(bench_names("[package]\nname = \"x\"\n").unwrap().is_empty());
    }
}
