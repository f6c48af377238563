//! Dependencies between crates run downward only, and every crate takes the workspace's lints.

use super::dependencies::named;
use super::{File, Finding};

/// The crates, lowest first; those of one line are independent of each other. The order is that of
/// ARCHITECTURE.md.
const LAYERS: &[&[&str]] = &[
    &[
        "longwire-units",
        "longwire-report",
        "longwire-nesp",
        "longwire-netlink",
        "longwire-rundir",
        "longwire-settings-derive",
    ],
    &["longwire-clock", "longwire-packet", "longwire-settings", "longwire-tunnel"],
    &["longwire-wire", "longwire-drivers"],
    &["longwire-block", "longwire-document"],
    &["longwire-random", "longwire-trace", "longwire-expression", "longwire-program", "longwire-sched"],
    &["longwire-jit", "longwire-punt"],
    &["longwire-link", "longwire-router", "longwire-port"],
    &["longwire-engine", "longwire-prices"],
    &["longwire-scenario"],
    &["longwire-assemble", "longwire-constellation", "longwire-control", "longwire-import", "longwire-lab"],
    &["longwire-distill", "longwire-mirror", "longwire-partition", "longwire-terminal"],
    &["longwire-run", "longwire-halves"],
    &["longwire-service", "longwire-demo", "longwire-sweep"],
    &["longwire-bench"],
    &["longwire-validate"],
    &["longwire"],
    &["longwire-hostile"],
];
/// Crates without users that only use the report format.
const APART: &[&str] = &["xtask"];
const ARCHITECTURE: &str = "ARCHITECTURE.md";

/// Checks the manifests.
pub fn check(files: &[File], findings: &mut Vec<Finding>) {
    let table = files.iter().find(|f| f.path == ARCHITECTURE).map_or("", |f| f.text.as_str());
    // fuzz/ is a workspace of its own.
    let own = |f: &&File| f.path.ends_with("/Cargo.toml") && !f.path.starts_with("fuzz/");
    for file in files.iter().filter(own) {
        check_manifest(file, table, findings);
    }
}

fn check_manifest(file: &File, table: &str, findings: &mut Vec<Finding>) {
    let manifest: toml::Table = match file.text.parse() {
        Ok(manifest) => manifest,
        Err(error) => {
            findings.push(Finding::new(&file.path, 1, "manifests are TOML", error.to_string()));
            return;
        }
    };
    let name =
        manifest.get("package").and_then(|p| p.get("name")).and_then(toml::Value::as_str).unwrap_or("");
    if manifest.get("lints").and_then(|l| l.get("workspace")).and_then(toml::Value::as_bool) != Some(true) {
        let fix = "add [lints] workspace = true";
        findings.push(Finding::new(&file.path, 1, "every crate takes the workspace's lints", fix));
    }
    let folder = file.path.split('/').rev().nth(1).unwrap_or("");
    if !table.contains(&format!("| `{folder}` |")) {
        let fix = format!("add a row for `{folder}` to ARCHITECTURE.md");
        findings.push(Finding::new(&file.path, 1, "every crate has its row in ARCHITECTURE.md", fix));
    }
    let Some(own) = layer(name) else {
        if !APART.contains(&name) {
            let fix = format!("give {name} its layer in xtask/src/tidy/crates.rs");
            findings.push(Finding::new(&file.path, 1, "every crate has a layer", fix));
        }
        return;
    };
    for (_, dependency) in named(&manifest) {
        if layer(dependency).is_some_and(|other| other >= own) || APART.contains(&dependency) {
            let line = file.text.lines().position(|l| l.trim().starts_with(dependency)).map_or(1, |i| i + 1);
            let fix = format!("{name} must not know {dependency}: move what it needs to a crate below both");
            findings.push(Finding::new(&file.path, line, "dependencies run downward", fix));
        }
    }
}

fn layer(name: &str) -> Option<usize> {
    LAYERS.iter().position(|names| names.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::super::file;
    use super::*;

    fn rules(text: &str) -> Vec<(usize, &'static str)> {
        let table = file(ARCHITECTURE, "| `link` | links |\n");
        let mut findings = Vec::new();
        check(&[table, file("crates/link/Cargo.toml", text)], &mut findings);
        findings.into_iter().map(|f| (f.line, f.rule)).collect()
    }

    const LINTS: &str = "[lints]\nworkspace = true\n";

    #[test]
    fn downward_is_allowed() {
        let text = format!(
            "[package]\nname = \"longwire-link\"\n{LINTS}[dependencies]\nlongwire-block = {{}}\n\
             toml = \"1\"\n"
        );
        assert_eq!(rules(&text), []);
    }

    #[test]
    fn upward_and_sideways_are_not() {
        let package = format!("[package]\nname = \"longwire-link\"\n{LINTS}");
        let upward = format!("{package}[dev-dependencies]\nlongwire-engine = {{}}\n");
        assert_eq!(rules(&upward), [(6, "dependencies run downward")]);
        let sideways = format!("{package}[target.'cfg(unix)'.dependencies]\nlongwire-port = {{}}\n");
        assert_eq!(rules(&sideways), [(6, "dependencies run downward")]);
    }

    #[test]
    fn every_crate_is_known_and_takes_the_lints() {
        let unknown = format!("[package]\nname = \"longwire-new\"\n{LINTS}");
        assert_eq!(rules(&unknown), [(1, "every crate has a layer")]);
        let rule = "every crate takes the workspace's lints";
        assert_eq!(rules("[package]\nname = \"longwire-link\"\n"), [(1, rule)]);
        assert_eq!(rules("[package\n"), [(1, "manifests are TOML")]);
        let mut findings = Vec::new();
        check(
            &[file("crates/x/Cargo.toml", &format!("[package]\nname = \"xtask\"\n{LINTS}"))],
            &mut findings,
        );
        assert_eq!(findings[0].rule, "every crate has its row in ARCHITECTURE.md");
    }
}
