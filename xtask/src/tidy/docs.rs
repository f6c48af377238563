//! Documents: links lead somewhere, the book has every page, decisions are numbered, and the README's test
//! command is the one that is run.

use super::{File, Finding};
use crate::TEST_COMMAND;
use std::collections::BTreeSet;

const README: &str = "README.md";
const SUMMARY: &str = "docs/book/SUMMARY.md";
const BOOK_SETTINGS: &str = "docs/book.toml";
const CI: &str = ".ci/run";
const TEST_MARK: &str = "<!-- test command -->";

/// Checks the documents.
pub fn check(files: &[File], findings: &mut Vec<Finding>) {
    check_links(files, findings);
    check_reached(files, findings);
    check_decisions(files, findings);
    check_test_command(files, findings);
}

/// Relative links of Markdown files lead to files, folders or headings of the project.
fn check_links(files: &[File], findings: &mut Vec<Finding>) {
    for file in files.iter().filter(|f| f.path.ends_with(".md")) {
        for Link { line, target, anchor } in links(file) {
            let folder = format!("{}/", target.trim_end_matches('/'));
            let page = files.iter().find(|f| f.path == target);
            let fix = match page {
                Some(page) if anchor.is_empty() || anchors(&page.text).contains(&anchor) => continue,
                Some(_) => format!("{target} has no heading #{anchor}"),
                None if target.is_empty() || files.iter().any(|f| f.path.starts_with(&folder)) => continue,
                None => format!("there is no {target}"),
            };
            findings.push(Finding::new(&file.path, line, "links lead somewhere", fix));
        }
    }
}

/// The book's summary links every page under docs/. Every other file there is linked from a page, or with its
/// folder.
fn check_reached(files: &[File], findings: &mut Vec<Finding>) {
    let pages = || files.iter().filter(|f| f.path.ends_with(".md"));
    let linked = |page: &File| links(page).into_iter().map(|link| link.target).collect::<Vec<_>>();
    let chapters: Vec<String> = pages().filter(|f| f.path == SUMMARY).flat_map(linked).collect();
    let targets: Vec<String> = pages().flat_map(linked).collect();
    for file in files.iter().filter(|f| f.path.starts_with("docs/") && f.path != SUMMARY) {
        let folder = parent(&file.path);
        let (reached, fix) = if file.path.ends_with(".md") {
            (chapters.contains(&file.path), format!("link it from {SUMMARY}"))
        } else {
            let linked = targets.iter().any(|t| *t == file.path || t.trim_end_matches('/') == folder);
            (linked || file.path == BOOK_SETTINGS, "link it from a page".to_string())
        };
        if !reached {
            findings.push(Finding::new(&file.path, 1, "every page can be reached", fix));
        }
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
            let fix = format!("write `{TEST_COMMAND}`, or change xtask");
            findings.push(Finding::new(README, line, rule, fix));
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

/// A relative link of a Markdown file.
struct Link {
    line: usize,
    /// The path from the workspace's folder.
    target: String,
    /// The heading within the target, or nothing.
    anchor: String,
}

/// The relative links of a Markdown file outside code.
fn links(file: &File) -> Vec<Link> {
    let mut found = Vec::new();
    for (line, text) in unfenced(&file.text) {
        // Every second part of a line split at backticks is code.
        let prose: String = text.split('`').step_by(2).collect();
        for part in prose.split("](").skip(1) {
            let link = part.split([')', ' ']).next().unwrap_or("");
            if link.is_empty() || link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if path.is_empty() { file.path.clone() } else { resolve(parent(&file.path), path) };
            found.push(Link { line, target, anchor: anchor.into() });
        }
    }
    found
}

/// The names by which links reach the headings of a Markdown text, as mdBook and forges make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (_, line) in unfenced(text) {
        let title = line.trim_start_matches('#');
        if title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let kept = title.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        let name = kept.collect::<String>().to_lowercase().replace(' ', "-");
        let unused = (1..).map(|n| format!("{name}-{n}")).find(|n| !found.contains(n));
        found.insert(if found.contains(&name) { unused.unwrap_or_default() } else { name });
    }
    found
}

/// Lines outside fenced blocks, numbered from 1.
fn unfenced(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        (!fenced && !fence).then_some((index + 1, line))
    })
}

/// Joins a folder and a relative path, resolving `.` and `..`.
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
        let page = "docs/book/README.md";
        let book = "[a](a.md) [up](../../README.md#top) [web](https://example.org/x) [folder](../adr/) \
            `[c](c.md)`\n\n[b](b.md)\n";
        let files = [
            file(README, "# Top\n"),
            file("docs/adr/0001-x.md", ""),
            file("docs/book/a.md", ""),
            file(page, book),
        ];
        assert_eq!(found(check_links, &files), [(page.to_string(), 3)]);
        let fenced = [file(README, "```\n[x](y.md)\n```\n[z](z.md)\n")];
        assert_eq!(found(check_links, &fenced), [(README.to_string(), 4)]);
    }

    #[test]
    fn links_lead_to_headings() {
        let text = "# One `two`, three\n## Again\n## Again\n```\n# code\n```\n\
                    [a](#one-two-three) [b](#again-1) [c](#code)\n[d](README.md#missing)\n";
        let missing = [(README.to_string(), 7), (README.to_string(), 8)];
        assert_eq!(found(check_links, &[file(README, text)]), missing);
    }

    #[test]
    fn every_page_is_reached() {
        let pages = |summary: &str| {
            let a = file("docs/book/a.md", "![p](p.svg) [results](../results/)");
            [file(README, "[a](docs/book/a.md)"), file(SUMMARY, summary), a]
                .into_iter()
                .chain(
                    ["docs/book/p.svg", "docs/book/q.svg", "docs/results/r.json"].map(|path| file(path, "")),
                )
                .collect::<Vec<_>>()
        };
        let unlinked = ("docs/book/q.svg".to_string(), 1);
        assert_eq!(found(check_reached, &pages("[a](a.md)")), std::slice::from_ref(&unlinked));
        assert_eq!(found(check_reached, &pages("")), [("docs/book/a.md".to_string(), 1), unlinked]);
    }

    #[test]
    fn decisions_are_numbered() {
        let first = || file("docs/adr/0001-a.md", "# 1. A\n");
        assert_eq!(found(check_decisions, &[first(), file("docs/adr/0002-b.md", "# 2. B\n")]), []);
        let gap = [first(), file("docs/adr/0003-b.md", "# 3. B\n")];
        assert_eq!(found(check_decisions, &gap), [("docs/adr/0003-b.md".to_string(), 1)]);
        let twice = [first(), file("docs/adr/0001-b.md", "# 1. B\n")];
        assert_eq!(found(check_decisions, &twice), [("docs/adr/0001-b.md".to_string(), 1)]);
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
