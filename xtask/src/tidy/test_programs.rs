//! Where all tests of a crate are one program, Cargo does not look for others: a file that is not named is
//! not run.

use super::{File, Finding};

/// Checks that each file of tests beside a `tests/main.rs` is a module there, or a program of the manifest's.
pub fn check(files: &[File], findings: &mut Vec<Finding>) {
    let text = |path: &str| files.iter().find(|file| file.path == path).map(|file| file.text.as_str());
    for file in files {
        let Some((package, name)) = file.path.split_once("/tests/") else { continue };
        let Some(name) = name.strip_suffix("/mod.rs").or(name.strip_suffix(".rs")) else { continue };
        let Some(main) = text(&format!("{package}/tests/main.rs")) else { continue };
        let manifest = text(&format!("{package}/Cargo.toml")).unwrap_or_default();
        let is_module = main.lines().any(|line| line == format!("mod {name};"));
        let is_used =
            main.lines().any(|line| line.starts_with("use ") && line.ends_with(&format!("{name};")));
        let is_program = manifest.contains(&format!("\"tests/{name}.rs\""));
        if name == "main" || name.contains('/') || is_module || is_used || is_program {
            continue;
        }
        let fix = format!("add mod {name}; to {package}/tests/main.rs");
        findings.push(Finding::new(&file.path, 1, "every test is run", fix));
    }
}

#[cfg(test)]
mod tests {
    use super::super::file;
    use super::*;

    #[test]
    fn a_file_that_nothing_names_is_found() {
        let files = [
            file("crates/a/tests/main.rs", "mod one;\nmod group;\n\nuse group::inner::shared;\n"),
            file("crates/a/Cargo.toml", "[[test]]\nname = \"own\"\npath = \"tests/own.rs\"\n"),
            file("crates/a/tests/one.rs", ""),
            file("crates/a/tests/own.rs", ""),
            file("crates/a/tests/group/mod.rs", ""),
            file("crates/a/tests/group/part.rs", ""),
            file("crates/a/tests/shared/mod.rs", ""),
            file("crates/a/tests/left.rs", ""),
            file("crates/a/tests/folder/mod.rs", ""),
            file("crates/b/tests/each_its_own.rs", ""),
        ];
        let mut findings = Vec::new();
        check(&files, &mut findings);
        let found: Vec<_> = findings.iter().map(|finding| &*finding.file).collect();
        assert_eq!(found, ["crates/a/tests/left.rs", "crates/a/tests/folder/mod.rs"]);
    }
}
