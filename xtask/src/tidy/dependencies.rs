//! Dependencies in a crate's manifest must be used in its sources.

use super::docs::resolve;
use super::source::{Source, has_word};
use super::{File, Finding};
use std::collections::{BTreeMap, BTreeSet};

const RULE: &str = "every dependency is used";

/// The Rust files of the project by path.
type Sources<'f> = BTreeMap<&'f str, &'f File>;

/// Checks the manifests against their sources.
pub fn check(files: &[File], findings: &mut Vec<Finding>) {
    let rust = files.iter().filter(|file| file.path.ends_with(".rs"));
    let sources: Sources<'_> = rust.map(|file| (file.path.as_str(), file)).collect();
    // fuzz/ is a workspace of its own, which needs a fuzzer to build.
    let own = |file: &&File| file.path.ends_with("/Cargo.toml") && !file.path.starts_with("fuzz/");
    let manifests: Vec<&File> = files.iter().filter(own).collect();
    let folders: Vec<&str> = manifests.iter().map(|file| folder_of(&file.path)).collect();
    for manifest in &manifests {
        check_crate(manifest, &folders, &sources, findings);
    }
    check_workspace(files, &manifests, findings);
}

/// Checks one crate: its library must use its dependencies, its tests, benches and examples the others.
fn check_crate(manifest: &File, folders: &[&str], sources: &Sources<'_>, findings: &mut Vec<Finding>) {
    let Ok(table) = manifest.text.parse::<toml::Table>() else { return };
    let folder = folder_of(&manifest.path);
    let library = code(&format!("{folder}src/"), folders, sources);
    let whole = code(folder, folders, sources);
    for (kind, name) in named(&table) {
        let (code, place) = if kind == "dependencies" { (&library, "src/") } else { (&whole, "its sources") };
        if !has_word(code, &name.replace('-', "_")) {
            let fix = format!("remove {name} from [{kind}]: nothing in {place} names it");
            findings.push(Finding::new(&manifest.path, line_of(manifest, name), RULE, fix));
        }
    }
}

/// The code below a folder, without that of nested crates, and with that of included files.
fn code(folder: &str, crates: &[&str], sources: &Sources<'_>) -> String {
    let is_inner = |path: &str| {
        crates
            .iter()
            .any(|other| other.len() > folder.len() && other.starts_with(folder) && path.starts_with(other))
    };
    let below =
        sources.range(folder..).map(|(_, file)| *file).take_while(|file| file.path.starts_with(folder));
    let mut all: Vec<&File> = below.filter(|file| !is_inner(&file.path)).collect();
    let mut next = 0;
    while let Some(file) = all.get(next) {
        let others = included(file).into_iter().filter_map(|path| sources.get(path.as_str()).copied());
        let new: Vec<&File> = others.filter(|other| all.iter().all(|file| file.path != other.path)).collect();
        all.extend(new);
        next += 1;
    }
    all.into_iter().map(|file| Source::new(file.text.clone()).code).collect()
}

/// Dependencies of the workspace's manifest must be used by a crate.
fn check_workspace(files: &[File], manifests: &[&File], findings: &mut Vec<Finding>) {
    let Some(root) = files.iter().find(|file| file.path == "Cargo.toml") else { return };
    let parsed = |file: &File| file.text.parse::<toml::Table>().unwrap_or_default();
    let root_table = parsed(root);
    let listed = root_table.get("workspace").and_then(|table| table.get("dependencies")?.as_table());
    let tables: Vec<toml::Table> = manifests.iter().map(|file| parsed(file)).collect();
    let used: BTreeSet<&str> = tables.iter().flat_map(named).map(|(_, name)| name).collect();
    for name in listed.into_iter().flat_map(toml::Table::keys).filter(|name| !used.contains(name.as_str())) {
        let fix = format!("remove {name} from [workspace.dependencies]: no crate names it");
        findings.push(Finding::new(&root.path, line_of(root, name), RULE, fix));
    }
}

/// The line of a manifest that begins with a dependency's name.
fn line_of(manifest: &File, name: &str) -> usize {
    let begins = |line: &str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '.', '=']));
    manifest.text.lines().position(begins).map_or(1, |index| index + 1)
}

/// The kind and name of each dependency in a manifest, platform-specific ones included.
pub fn named(table: &toml::Table) -> Vec<(&str, &str)> {
    let mut names = Vec::new();
    for (key, value) in table {
        let Some(inner) = value.as_table() else { continue };
        match key.as_str() {
            "dependencies" | "dev-dependencies" | "build-dependencies" => {
                names.extend(inner.keys().map(|name| (key.as_str(), name.as_str())));
            }
            "target" => names.extend(inner.values().filter_map(toml::Value::as_table).flat_map(named)),
            _ => {}
        }
    }
    names
}

/// The files of other crates that `file` includes as modules: `#[path =
/// "../../wire/tests/exercise/frame.rs"]`.
fn included(file: &File) -> Vec<String> {
    let paths =
        file.text.lines().filter_map(|line| line.trim().strip_prefix("#[path = \"")?.strip_suffix("\"]"));
    paths.map(|path| resolve(folder_of(&file.path), path)).collect()
}

/// The folder of a file, with a slash at its end.
fn folder_of(path: &str) -> &str {
    path.rfind('/').map_or("", |end| &path[..=end])
}

#[cfg(test)]
mod tests {
    use super::super::file;
    use super::*;

    fn found(files: &[File]) -> Vec<(String, usize, String)> {
        let mut findings = Vec::new();
        check(files, &mut findings);
        findings.into_iter().map(|finding| (finding.file, finding.line, finding.fix)).collect()
    }

    #[test]
    fn what_nothing_names_is_found() {
        let manifest =
            "[dependencies]\nlongwire-units = {}\ntoml = \"1\"\n[dev-dependencies]\nproptest = \"1\"\n";
        let code = "// toml, of which only a comment speaks\nuse longwire_units::Nanos;\n\
            const A: &str = \"toml\";\n";
        let files = [file("crates/a/Cargo.toml", manifest), file("crates/a/src/lib.rs", code)];
        let (path, removed) = ("crates/a/Cargo.toml".to_owned(), |name: &str, kind: &str, place: &str| {
            format!("remove {name} from [{kind}]: nothing in {place} names it")
        });
        let toml = (path.clone(), 3, removed("toml", "dependencies", "src/"));
        let proptest = (path, 5, removed("proptest", "dev-dependencies", "its sources"));
        assert_eq!(found(&files), [toml, proptest]);
    }

    #[test]
    fn what_only_tests_use_is_no_dependency_of_the_library() {
        let test = || file("crates/a/tests/t.rs", "use toml::Table;\n");
        let of = |kind: &str| file("crates/a/Cargo.toml", &format!("[{kind}]\ntoml = \"1\"\n"));
        assert_eq!(found(&[of("dependencies"), test()]).len(), 1);
        assert_eq!(found(&[of("dev-dependencies"), test()]), []);
    }

    #[test]
    fn a_crate_within_another_is_not_its_source() {
        let manifest = |folder: &str| file(&format!("{folder}/Cargo.toml"), "[dependencies]\ntoml = \"1\"\n");
        let code = |folder: &str| file(&format!("{folder}/src/lib.rs"), "use toml::Table;\n");
        let files = [manifest("crates/a"), manifest("crates/a/b"), code("crates/a/b")];
        assert_eq!(found(&files).len(), 1);
        assert_eq!(
            found(&[manifest("crates/a"), manifest("crates/a/b"), code("crates/a/b"), code("crates/a")]),
            []
        );
    }

    #[test]
    fn included_files_count() {
        let include = |path: &str| format!("#[path = \"{path}\"]\nmod exercise;\n");
        let files = [
            file("crates/a/Cargo.toml", "[dependencies]\ntoml = \"1\"\n"),
            file("crates/a/src/lib.rs", &include("../../b/tests/exercise.rs")),
            file("crates/b/tests/exercise.rs", &include("bench/bench.rs")),
            file("crates/b/tests/bench/bench.rs", "use toml::Table;\n"),
        ];
        assert_eq!(found(&files), []);
        assert_eq!(found(&files[..3]).len(), 1);
    }

    #[test]
    fn what_the_workspace_lists_some_crate_names() {
        let root = "[workspace.dependencies]\ntoml = \"1\"\ntoml_edit = \"1\"\n";
        let files = [
            file("Cargo.toml", root),
            file("crates/a/Cargo.toml", "[target.'cfg(unix)'.dependencies]\ntoml = \"1\"\n"),
            file("crates/a/src/lib.rs", "use toml::Table;\n"),
        ];
        let fix = "remove toml_edit from [workspace.dependencies]: no crate names it".to_owned();
        assert_eq!(found(&files), [("Cargo.toml".to_owned(), 3, fix)]);
    }
}
