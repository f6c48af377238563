//! Widths of lines of Rust, Python and Markdown, and of commit subjects.

use super::{File, Finding};
use anyhow::{Context, Result};
use std::path::Path;
use std::process::Command;

/// Characters of a line of code or comment.
const CODE: usize = 110;
/// Characters of a line of Markdown.
const MARKDOWN: usize = 100;
/// Characters of a commit's subject.
const SUBJECT: usize = 72;
/// Commits whose subjects are checked, from the newest.
const COMMITS: &str = "-50";
/// Generated files.
const GENERATED: &[&str] = &["docs/book/reference.md", "python/src/longwire/_types.py"];

/// Checks the lines of Rust, Python and Markdown.
pub fn check(file: &File, findings: &mut Vec<Finding>) {
    if GENERATED.contains(&file.path.as_str()) {
        return;
    }
    let (most, long) = if file.path.ends_with(".rs") || file.path.ends_with(".py") {
        let is_long = |line: &&str| width(line) > CODE && !is_doc_table(line);
        (CODE, lines(&file.text, is_long))
    } else if file.path.ends_with(".md") {
        let mut fenced = false;
        let is_long = |line: &&str| {
            let is_fence = line.trim_start().starts_with("```");
            fenced ^= is_fence;
            let is_kept = fenced || is_fence || is_row(line) || is_mark(line) || has_link(line);
            width(line) > MARKDOWN && !is_kept
        };
        (MARKDOWN, lines(&file.text, is_long))
    } else {
        return;
    };
    for (number, width) in long {
        let fix = format!("break the line of {width} characters at {most}");
        findings.push(Finding::new(&file.path, number, "lines fit", fix));
    }
}

/// Checks the subjects of the newest commits, except merges, whose subjects name branches.
///
/// # Errors
/// If git can't be started.
pub fn check_commits(root: &Path, findings: &mut Vec<Finding>) -> Result<()> {
    let list = ["-c", "safe.directory=*", "log", "--no-merges", COMMITS, "--format=%h %s"];
    let output = Command::new("git").args(list).current_dir(root).output().context("can't start git")?;
    // A folder without a history has no commits to check.
    check_subjects(&String::from_utf8_lossy(&output.stdout), findings);
    Ok(())
}

/// Checks lines of a commit's hash and subject.
fn check_subjects(log: &str, findings: &mut Vec<Finding>) {
    for (commit, subject) in log.lines().filter_map(|line| line.split_once(' ')) {
        if width(subject) > SUBJECT {
            let fix = format!("say it in {SUBJECT} characters, not {}", width(subject));
            findings.push(Finding::new(&format!("commit {commit}"), 1, "subjects of commits fit", fix));
        }
    }
}

/// The numbers, counted from 1, and widths of the lines that are too long.
fn lines(text: &str, mut is_long: impl FnMut(&&str) -> bool) -> Vec<(usize, usize)> {
    let numbered = text.lines().enumerate();
    numbered.filter(|(_, line)| is_long(line)).map(|(index, line)| (index + 1, width(line))).collect()
}

fn width(line: &str) -> usize {
    line.chars().count()
}

/// Whether a line belongs to a table in a doc comment: Markdown can't break its rows.
fn is_doc_table(line: &str) -> bool {
    let line = line.trim_start();
    let doc = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
    doc.is_some_and(is_row)
}

/// Whether a line is a row of a table.
fn is_row(line: &str) -> bool {
    line.trim_start().starts_with('|')
}

/// Whether a line is an HTML comment, which marks generated text.
fn is_mark(line: &str) -> bool {
    line.starts_with("<!--")
}

fn has_link(line: &str) -> bool {
    line.contains("](") || line.contains("://")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::file;

    fn found(path: &str, text: &str) -> Vec<usize> {
        let mut findings = Vec::new();
        check(&file(path, text), &mut findings);
        findings.iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn lines_of_code_have_110_characters() {
        let (fits, long) = ("ä".repeat(110), "ä".repeat(111));
        let text = format!("{fits}\n{long}\n// {fits}\n    /// | {long} |\n//! |{long}|\n");
        assert_eq!(found("a.rs", &text), [2, 3]);
        assert_eq!(found("a.py", &format!("{fits}\n{long}\n")), [2]);
        assert!(found("a.toml", &text).is_empty());
    }

    #[test]
    fn lines_of_markdown_have_100_characters() {
        let (fits, long) = ("ä".repeat(100), "ä".repeat(101));
        let kept =
            format!("| {long} |\n[a]({long})\n<https://{long}>\n<!-- {long} -->\n```text\n{long}\n```\n");
        assert_eq!(found("a.md", &format!("{fits}\n{kept}{long}\n- {fits}\n")), [9, 10]);
        assert!(found("docs/book/reference.md", &long).is_empty());
    }

    #[test]
    fn subjects_have_72_characters() {
        let mut findings = Vec::new();
        let log = format!("1a {}\n2b {}\n\n", "ä".repeat(72), "ä".repeat(73));
        check_subjects(&log, &mut findings);
        let found: Vec<_> = findings.iter().map(|finding| finding.file.as_str()).collect();
        assert_eq!(found, ["commit 2b"]);
    }
}
