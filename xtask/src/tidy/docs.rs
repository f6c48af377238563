//! Rules for documents: valid links, reachable pages, numbered decisions, and the README's test command.

use super::{File, Finding};
use crate::TEST_COMMAND;
use std::collections::BTreeSet;

const README: &str = "README.md";
const BOOK: &str = "docs/book/README.md";
const CI: &str = ".ci/run";
const TEST_MARK: &str = "<!-- test command -->";

/// Checks the documents.
pub fn check(files: &[File], findings: &mut Vec<Finding>) {
    check_links(files, findings);
    check_reached(files, findings);
    check_decisions(files, findings);
    check_test_command(files, findings);
}

/// Relative links of Markdown files must lead to files or folders of the project.
fn check_links(files: &[File], findings: &mut Vec<Finding>) {
    for file in files.iter().filter(|f| f.path.ends_with(".md")) {
        for (line, target) in links(file) {
            let folder = format!("{}/", target.trim_end_matches('/'));
            if target.is_empty() || files.iter().any(|f| f.path == target || f.path.starts_with(&folder)) {
                continue;
            }
            let fix = format!("there is no {target}");
            findings.push(Finding::new(&file.path, line, "links lead somewhere", fix));
        }
    }
}

/// Every file under docs/ must be linked from the README or the book, directly, over other pages, or with its
/// folder.
fn check_reached(files: &[File], findings: &mut Vec<Finding>) {
    let mut waiting: Vec<&File> = files.iter().filter(|f| f.path == README || f.path == BOOK).collect();
    let mut reached: BTreeSet<&str> = waiting.iter().map(|f| f.path.as_str()).collect();
    while let Some(page) = waiting.pop() {
        if !page.path.ends_with(".md") {
            continue;
        }
        for (_, target) in links(page) {
            let folder = target.trim_end_matches('/');
            let linked = |f: &&File| f.path == target || parent(&f.path) == folder;
            for file in files.iter().filter(linked) {
                if reached.insert(&file.path) {
                    waiting.push(file);
                }
            }
        }
    }
    for file in files.iter().filter(|f| f.path.starts_with("docs/") && !reached.contains(f.path.as_str())) {
        let fix = format!("link it from {BOOK} or {README}");
        findings.push(Finding::new(&file.path, 1, "every page can be reached", fix));
    }
}

/// Decisions must be numbered from 0001 without gaps, and have the number in their titles.
fn check_decisions(files: &[File], findings: &mut Vec<Finding>) {
    let pages = files.iter().filter(|f| f.path.starts_with("docs/adr/") && f.path.ends_with(".md"));
    for (index, page) in pages.enumerate() {
        let number = index + 1;
        let name = page.path.rsplit('/').next().unwrap_or("");
        let title = format!("# {number}. ");
        if !name.starts_with(&format!("{number:04}-")) || !page.text.starts_with(&title) {
            let fix = format!("name it {number:04}-… and let it begin with \"{title}\"");
            findings.push(Finding::new(&page.path, 1, "decisions are numbered without gaps", fix));
        }
    }
}

/// The README, `.ci/run` and `cargo xtask ci` must run the same tests.
fn check_test_command(files: &[File], findings: &mut Vec<Finding>) {
    let Some(readme) = files.iter().find(|f| f.path == README) else {
        findings.push(Finding::new(README, 1, "the README exists", "write it"));
        return;
    };
    let rule = "the README's test command is the one that is run";
    match marked_command(&readme.text) {
        Some((_, command)) if command == TEST_COMMAND => {}
        Some((line, _)) => {
            findings.push(Finding::new(
                README,
                line,
                rule,
                format!("write `{TEST_COMMAND}`, or change xtask"),
            ));
        }
        None => {
            let fix = format!("put {TEST_MARK} on the line before the fenced test command");
            findings.push(Finding::new(README, 1, rule, fix));
        }
    }
    let wanted = format!("TEST_COMMAND=\"{TEST_COMMAND}\"");
    let ci = files.iter().find(|f| f.path == CI);
    if !ci.is_some_and(|f| f.text.lines().any(|l| l.trim_start_matches("readonly ") == wanted)) {
        findings.push(Finding::new(CI, 1, rule, format!("it needs the line {wanted}")));
    }
}

/// The only command of the fenced block after the mark, with its line.
fn marked_command(text: &str) -> Option<(usize, &str)> {
    let mut lines = text.lines().enumerate().skip_while(|(_, l)| l.trim() != TEST_MARK).skip(1);
    lines.find(|(_, l)| l.trim_start().starts_with("```"))?;
    let (index, command) = lines.next()?;
    let closed = lines.next().is_some_and(|(_, l)| l.trim() == "```");
    closed.then(|| (index + 1, command.trim().trim_start_matches("$ ")))
}

/// The relative links of a Markdown file outside code: line, and target from the workspace's folder.
fn links(file: &File) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut fenced = false;
    for (index, line) in file.text.lines().enumerate() {
        fenced ^= line.trim_start().starts_with("```");
        // Every second part of a line split at backticks is code.
        let prose: String = line.split('`').step_by(2).collect();
        for part in prose.split("](").skip(1).filter(|_| !fenced) {
            let target = part.split([')', ' ', '#']).next().unwrap_or("");
            if !target.is_empty() && !target.contains("://") && !target.starts_with("mailto:") {
                found.push((index + 1, resolve(parent(&file.path), target)));
            }
        }
    }
    found
}

/// Joins a folder and a relative path, taking out `.` and `..`.
pub fn resolve(folder: &str, target: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|p| !p.is_empty()).collect();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|p| *p != "..") => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

#[cfg(test)]
mod tests {
    use super::super::file;
    use super::*;

    fn found(check: impl Fn(&[File], &mut Vec<Finding>), files: &[File]) -> Vec<(String, usize)> {
        let mut findings = Vec::new();
        check(files, &mut findings);
        findings.into_iter().map(|f| (f.file, f.line)).collect()
    }

    #[test]
    fn links_lead_somewhere() {
        let book = "[a](a.md) [up](../../README.md#top) [web](https://example.org/x) [folder](../adr/) `[c](c.md)`\n\n[b](b.md)\n";
        let files =
            [file(README, ""), file("docs/adr/0001-x.md", ""), file("docs/book/a.md", ""), file(BOOK, book)];
        assert_eq!(found(check_links, &files), [(BOOK.to_string(), 3)]);
        let fenced = [file(README, "```\n[x](y.md)\n```\n[z](z.md)\n")];
        assert_eq!(found(check_links, &fenced), [(README.to_string(), 4)]);
    }

    #[test]
    fn every_page_is_reached() {
        let pages = |readme: &str| {
            let a = file("docs/book/a.md", "![p](p.svg)");
            [
                file(README, readme),
                file(BOOK, "[decisions](../adr/)"),
                a,
                file("docs/book/p.svg", ""),
                file("docs/adr/0001-x.md", ""),
            ]
        };
        assert_eq!(found(check_reached, &pages("[a](docs/book/a.md)")), []);
        let missed = [("docs/book/a.md".to_string(), 1), ("docs/book/p.svg".to_string(), 1)];
        assert_eq!(found(check_reached, &pages("")), missed);
    }

    #[test]
    fn decisions_are_numbered() {
        let first = || file("docs/adr/0001-a.md", "# 1. A\n");
        assert_eq!(found(check_decisions, &[first(), file("docs/adr/0002-b.md", "# 2. B\n")]), []);
        let gap = [first(), file("docs/adr/0003-b.md", "# 3. B\n")];
        assert_eq!(found(check_decisions, &gap), [("docs/adr/0003-b.md".to_string(), 1)]);
        let title = [file("docs/adr/0001-a.md", "# 2. A\n")];
        assert_eq!(found(check_decisions, &title).len(), 1);
    }

    #[test]
    fn the_test_command_is_the_same_everywhere() {
        let ci = |command: &str| file(CI, &format!("#!/bin/bash\nreadonly TEST_COMMAND=\"{command}\"\n"));
        let readme = |command: &str| file(README, &format!("# L\n\n{TEST_MARK}\n```sh\n{command}\n```\n"));
        assert_eq!(found(check_test_command, &[readme(TEST_COMMAND), ci(TEST_COMMAND)]), []);
        assert_eq!(
            found(check_test_command, &[readme("cargo test"), ci(TEST_COMMAND)]),
            [(README.to_string(), 5)]
        );
        assert_eq!(
            found(check_test_command, &[readme(TEST_COMMAND), ci("cargo test")]),
            [(CI.to_string(), 1)]
        );
        assert_eq!(
            found(check_test_command, &[file(README, "# L\n"), ci(TEST_COMMAND)]),
            [(README.to_string(), 1)]
        );
        assert_eq!(found(check_test_command, &[]), [(README.to_string(), 1)]);
    }

    #[test]
    fn paths_are_joined() {
        assert_eq!(resolve("docs/book", "../adr/"), "docs/adr");
        assert_eq!(resolve("", "./a/b.md"), "a/b.md");
        assert_eq!(resolve("docs", "../../x"), "../x");
    }
}
