//! Private words, and the standard terms for them.

use super::source::Source;
use super::{File, Finding};

/// Words that must not be used.
struct Private {
    /// Phrases, in lower case.
    phrases: &'static [&'static str],
    /// Their replacement.
    instead: &'static str,
}

const PRIVATE: &[Private] = &[
    Private { phrases: &["mend", "mends", "mended", "mending"], instead: "fix" },
    Private { phrases: &["dear", "dearer", "dearest"], instead: "expensive, worst-case" },
    Private { phrases: &["foretell", "foretells", "foretold", "foretelling"], instead: "predict" },
    Private { phrases: &["reckon", "reckons", "reckoned", "reckoning"], instead: "compute" },
    Private { phrases: &["what came of", "came of it"], instead: "outcome, result" },
    Private { phrases: &["tells of", "tell of"], instead: "reports" },
    Private { phrases: &["told of"], instead: "receives, is reported" },
    Private { phrases: &["counts as", "count as"], instead: "is treated as" },
    Private { phrases: &["stands for", "stand for", "stood for", "standing for"], instead: "means" },
    Private { phrases: &["told apart", "tell apart", "tells apart"], instead: "distinguished" },
    Private { phrases: &["ways part", "way parts"], instead: "paths diverge" },
    Private { phrases: &["hall", "halls"], instead: "queue context" },
    Private { phrases: &["desk", "desks"], instead: "resolver, session" },
    Private { phrases: &["seat", "seats", "seated"], instead: "attachment, setup" },
    Private { phrases: &["wish", "wishes", "wished"], instead: "request" },
    Private { phrases: &["hope", "hopes", "hoped"], instead: "pending change" },
    Private { phrases: &["stirred"], instead: "dirty" },
];

/// This file, which contains the words.
const OWN: &str = "xtask/src/tidy/wording.rs";

/// Checks comments and strings of a Rust file, or all of a Python or Markdown file.
pub fn check(file: &File, findings: &mut Vec<Finding>) {
    if file.path.ends_with(".rs") {
        check_beginnings(file, findings);
    }
    let text = match file.path.as_str() {
        OWN => return,
        path if path.ends_with(".rs") => prose(&file.text),
        path if path.ends_with(".md") || path.ends_with(".py") => file.text.clone(),
        _ => return,
    };
    let tokens = tokens(&text);
    for Private { phrases, instead } in PRIVATE {
        for phrase in *phrases {
            let words: Vec<&str> = phrase.split(' ').collect();
            let same = |run: &&[(String, usize)]| run.iter().map(|(word, _)| word).eq(&words);
            for run in tokens.windows(words.len()).filter(same) {
                let fix = format!("not \"{phrase}\", but: {instead}");
                findings.push(Finding::new(&file.path, run[0].1, "words of the field", fix));
            }
        }
    }
}

/// Doc comments must be understandable without the previous one.
fn check_beginnings(file: &File, findings: &mut Vec<Finding>) {
    let mut is_inside = false;
    for (index, line) in file.text.lines().map(str::trim_start).enumerate() {
        let doc = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        if !is_inside && doc.is_some_and(|text| text.starts_with(" The same")) {
            let fix = "say what it is, not that it is the same as another";
            findings.push(Finding::new(&file.path, index + 1, "doc comments stand alone", fix));
        }
        is_inside = doc.is_some();
    }
}

/// A Rust file's comments and literals; code is blank.
fn prose(text: &str) -> String {
    let code = Source::new(text.into()).code;
    let is_code = |at: usize| !code.as_bytes()[at].is_ascii_whitespace();
    text.char_indices().map(|(at, c)| if is_code(at) { ' ' } else { c }).collect()
}

/// The words of a text in lower case, and its punctuation, each with its line, counted from 1. Comment
/// markers and line breaks in strings are ignored, so that a phrase is found across lines.
fn tokens(text: &str) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let line = ["///", "//!", "//"].iter().find_map(|mark| line.strip_prefix(mark)).unwrap_or(line);
        let line = line.replace("\\n", "\n");
        let mut word = String::new();
        for c in line.chars().chain([' ']) {
            if c == '_' || c == '\'' || c.is_alphanumeric() {
                word.extend(c.to_lowercase());
                continue;
            }
            if !word.is_empty() {
                found.push((std::mem::take(&mut word), index + 1));
            }
            if !c.is_whitespace() && c != '\\' {
                found.push((c.into(), index + 1));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::file;

    fn found(path: &str, text: &str) -> Vec<(usize, String)> {
        let mut findings = Vec::new();
        check(&file(path, text), &mut findings);
        findings.into_iter().map(|finding| (finding.line, finding.fix)).collect()
    }

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let mut lines: Vec<usize> = found(path, text).into_iter().map(|(line, _)| line).collect();
        lines.sort_unstable();
        lines
    }

    #[test]
    fn advice_is_given() {
        assert_eq!(
            found("a.md", "Say what came of it."),
            [
                (1, "not \"what came of\", but: outcome, result".into()),
                (1, "not \"came of it\", but: outcome, result".into()),
            ]
        );
    }

    #[test]
    fn comments_and_strings_are_read_and_code_is_not() {
        assert_eq!(lines("a.rs", "let seat = hall;\n// The Seat's seat.\nx(\"a\\nhall\");\n"), [2, 3]);
        assert_eq!(lines("a.py", "x = 1\n# A seat.\n"), [2]);
        assert!(lines("a.toml", "# A seat.\n").is_empty());
    }

    #[test]
    fn phrases_are_found_over_the_end_of_a_line() {
        assert_eq!(lines("a.rs", "/// It counts\n    /// as a.\nx(\"a told \\\n   apart b\");\n"), [1, 3]);
        assert_eq!(lines("a.md", "It stands\nfor a.\n"), [1]);
    }

    #[test]
    fn doc_comments_do_not_begin_with_what_is_the_same() {
        assert_eq!(
            lines("a.rs", "/// The same for b.\nb();\n/// A\n/// The same c.\nc(); // The same.\n"),
            [1]
        );
        assert!(lines("a.md", "/// The same.\n").is_empty());
    }

    #[test]
    fn words_are_whole_and_phrases_without_punctuation() {
        assert_eq!(lines("a.md", "shall amend hopeful seat_1 SEATS\nwho counts, as a\n"), [1]);
    }
}
