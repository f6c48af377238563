//! The project's rules that no compiler checks. Each finding names the place, the rule and the fix.

mod circles;
mod code;
mod crates;
mod dependencies;
mod docs;
mod paths;
mod source;
mod test_programs;
mod widths;
mod wording;

pub(crate) use source::has_word;

use crate::files::{File, files};
use crate::finding::Finding;
use crate::numbers;
use anyhow::Result;
use std::path::Path;

/// Checks all files, prints the findings, and returns whether there were none.
///
/// # Errors
/// If git can't list the files, or one can't be read.
pub fn run(root: &Path) -> Result<bool> {
    let files = files(root)?;
    let mut findings = findings(&files);
    numbers::check_age(root, &files, &mut findings)?;
    widths::check_commits(root, &mut findings)?;
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
        widths::check(file, &mut all);
        wording::check(file, &mut all);
        if file.path.ends_with(".rs") {
            code::check_rust(file, &mut all);
        }
    }
    circles::check(files, &mut all);
    crates::check(files, &mut all);
    dependencies::check(files, &mut all);
    docs::check(files, &mut all);
    numbers::check(files, &mut all);
    test_programs::check(files, &mut all);
    all
}

#[cfg(test)]
fn file(path: &str, text: &str) -> File {
    File { path: path.into(), text: text.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_of_all_kinds_are_run() {
        let text = format!("fn a() {{ todo!() }} // The h\x61ll.\n{}\n", "a".repeat(111));
        let found = findings(&[file("crates/link/src/utils.rs", &text)]);
        let rules: Vec<_> = found.iter().map(|f| f.rule).collect();
        assert!(rules.contains(&"nothing unfinished") && rules.contains(&"no drawers"), "{rules:?}");
        assert!(rules.contains(&"the README exists") && rules.contains(&"lines fit"), "{rules:?}");
        assert!(rules.contains(&"words of the field"), "{rules:?}");
    }
}
