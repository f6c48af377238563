//! Errors and warnings of a scenario: place, fault and fix.

use std::fmt;
use std::ops::Range;

/// Most errors reported at once.
const MOST_ERRORS: usize = 20;
/// Most warnings of a plan.
const MOST_NOTES: usize = 50;
/// Most characters of a source line that are shown.
const MOST_SHOWN: usize = 120;
/// Most characters of a fault, and of a fix.
const MOST_TEXT: usize = 2000;

/// An error or warning about a scenario file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The file.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Which field of which section: `link "up", rate`.
    pub field: String,
    /// Its fault.
    pub what: String,
    /// The fix.
    pub fix: String,
    /// The line of the file, cut around the place.
    excerpt: String,
    /// The marked part of the excerpt in characters: start and length.
    caret: (usize, usize),
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: ", self.file, self.line, self.column)?;
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        writeln!(f, "{}", self.what)?;
        let number = self.line.to_string();
        let (first, width) = self.caret;
        writeln!(f, " {number} | {}", self.excerpt)?;
        write!(f, " {:blank$} | {:first$}{:^<width$}", "", "", "", blank = number.len())?;
        if !self.fix.is_empty() {
            write!(f, "\n {:blank$} = {}", "", self.fix, blank = number.len())?;
        }
        Ok(())
    }
}

/// Why a scenario has no plan: all errors, in the file's order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScenarioError {
    /// The errors; at least one.
    pub findings: Vec<Finding>,
    /// Whether there were more than are listed.
    pub more: bool,
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, finding) in self.findings.iter().enumerate() {
            if index > 0 {
                f.write_str("\n\n")?;
            }
            finding.fmt(f)?;
        }
        if self.more {
            f.write_str("\n\nand more; fix these first")?;
        }
        Ok(())
    }
}

impl std::error::Error for ScenarioError {}

/// A file being read, with its errors and warnings so far.
pub struct Findings<'a> {
    file: &'a str,
    text: &'a str,
    line_starts: Vec<usize>,
    errors: Vec<(usize, Finding)>,
    notes: Vec<Finding>,
    more: bool,
}

impl<'a> Findings<'a> {
    /// Nothing is found yet in this file.
    pub fn new(file: &'a str, text: &'a str) -> Self {
        let starts = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        let line_starts = std::iter::once(0).chain(starts).collect();
        Self { file, text, line_starts, errors: Vec::new(), notes: Vec::new(), more: false }
    }

    /// The file.
    pub const fn file(&self) -> &'a str {
        self.file
    }

    /// Records an error, unless the same is recorded for the place.
    pub fn error(&mut self, span: Range<usize>, field: &str, what: String, fix: impl Into<String>) {
        if self.full() {
            self.more = true;
            return;
        }
        let finding = self.finding(&span, field, what, fix.into());
        if !self.errors.iter().any(|(_, other)| *other == finding) {
            self.errors.push((span.start, finding));
        }
    }

    /// Records a warning.
    pub fn note(&mut self, span: Range<usize>, field: &str, what: String, fix: impl Into<String>) {
        if self.notes.len() < MOST_NOTES {
            let finding = self.finding(&span, field, what, fix.into());
            self.notes.push(finding);
        }
    }

    /// Whether there are so many errors that more are not worth finding.
    pub fn full(&self) -> bool {
        self.errors.len() >= MOST_ERRORS
    }

    /// Whether there is an error.
    pub fn failed(&self) -> bool {
        !self.errors.is_empty()
    }

    /// The warnings, or the errors if there are any.
    pub fn finish(mut self) -> Result<Vec<Finding>, ScenarioError> {
        if self.errors.is_empty() {
            return Ok(self.notes);
        }
        self.errors.sort_by_key(|(at, _)| *at);
        let findings = self.errors.into_iter().map(|(_, finding)| finding).collect();
        Err(ScenarioError { findings, more: self.more })
    }

    /// The line of a position, from 1.
    pub fn line(&self, at: usize) -> usize {
        self.line_starts.partition_point(|&first| first <= at)
    }

    /// Makes a finding without recording it.
    pub fn finding(&self, span: &Range<usize>, field: &str, what: String, fix: String) -> Finding {
        let start = self.text.floor_char_boundary(span.start);
        let line = self.line(start) - 1;
        let first = self.line_starts[line];
        let rest = &self.text[first..];
        let content = rest.split('\n').next().unwrap_or_default().trim_end_matches('\r');
        let at = self.text[first..start].chars().count();
        let end = self.text.floor_char_boundary(span.end.max(start)).min(first + content.len());
        let width = self.text.get(start..end).map_or(1, |marked| marked.chars().count().max(1));
        let skipped = at.saturating_sub(MOST_SHOWN / 2);
        let visible = |c: char| if c.is_control() { ' ' } else { c };
        let excerpt: String = content.chars().skip(skipped).take(MOST_SHOWN).map(visible).collect();
        Finding {
            file: self.file.into(),
            line: line + 1,
            column: at + 1,
            field: shortened(field.into()),
            what: shortened(what),
            fix: shortened(fix),
            excerpt,
            caret: (at - skipped, width.min(MOST_SHOWN - (at - skipped))),
        }
    }
}

/// Cuts a text that quotes the file to a readable length.
fn shortened(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(MOST_TEXT) {
        text.truncate(end);
        text.push('…');
    }
    text
}

/// Names of settings and sections in other tools, and here.
const ELSEWHERE: [(&str, &str); 15] = [
    ("bandwidth", "rate"),
    ("bw", "rate"),
    ("speed", "rate"),
    ("throughput", "rate"),
    ("latency", "delay"),
    ("jitter", "delay"),
    ("packet-loss", "loss"),
    ("drop", "loss"),
    ("buffer", "queue"),
    ("limit", "queue"),
    ("max_queue_size", "queue"),
    ("corrupt", "bit-error"),
    ("ber", "bit-error"),
    ("node", "host"),
    ("switch", "bridge"),
];

/// Fewest letters that mean the name that begins with them.
const LEAST_BEGINNING: usize = 3;

/// The one of `known` that `given` probably means.
pub fn suggestion<'k>(given: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let known: Vec<&str> = known.into_iter().collect();
    let named = called_elsewhere(given).and_then(|name| known.iter().find(|known| **known == name));
    named.copied().or_else(|| nearest(given, &known)).or_else(|| only_one_begun(given, &known))
}

/// The only one of `known` that begins with `given`, if that is not too short.
fn only_one_begun<'k>(given: &str, known: &[&'k str]) -> Option<&'k str> {
    let mut begun = known.iter().filter(|name| given.len() >= LEAST_BEGINNING && name.starts_with(given));
    begun.next().copied().filter(|_| begun.next().is_none())
}

/// The name here for what other tools call `given`.
pub fn called_elsewhere(given: &str) -> Option<&'static str> {
    let found = ELSEWHERE.iter().find(|(other, _)| other.eq_ignore_ascii_case(given));
    found.map(|(_, name)| *name)
}

/// The one of `known` with the least edit distance from `given`, if that is small.
fn nearest<'k>(given: &str, known: &[&'k str]) -> Option<&'k str> {
    let length = given.chars().count();
    let allowed = |name: &str| (length.max(name.chars().count()) / 3).max(1);
    // The edit distance is at least the difference in length; comparing takes time and memory by the product
    // of both.
    let comparable = |name: &&str| length.abs_diff(name.chars().count()) <= allowed(name);
    let near = |name: &&str| {
        let lower = given.to_lowercase();
        (strsim::damerau_levenshtein(&lower, &name.to_lowercase()), usize::from(!lower.starts_with(*name)))
    };
    let compared = known.iter().copied().filter(comparable).map(|name| (near(&name), name));
    let ((distance, _), best) = compared.min_by_key(|(near, _)| *near)?;
    // A single letter resembles nothing in particular.
    (distance <= allowed(best) && distance < length).then_some(best)
}

/// "did you mean …?", if one of `known` was probably meant by `given`.
pub fn did_you_mean<'k>(given: &str, known: impl IntoIterator<Item = &'k str>) -> Option<String> {
    suggestion(given, known).map(|near| format!("did you mean \"{near}\"?"))
}

/// The fix for an unknown name: the one of `known` that was probably meant, else all of them.
pub fn name_hint(given: &str, known: &[&str]) -> String {
    let list = || format!("there are {}", known.join(", "));
    did_you_mean(given, known.iter().copied()).unwrap_or_else(list)
}

/// The fix for a missing key.
pub fn fix_missing(name: &str) -> String {
    let example = match name {
        "address" => "address = \"10.0.0.1/24\"",
        "driver" => "driver = \"af_packet\"",
        "links" => "links = [\"first\", \"second\"]",
        "source" | "destination" | "via" => return format!("add {name} = \"10.0.0.1\""),
        "to" => "to = \"b\"",
        "time" => "time = \"12 s\"",
        _ => return format!("add {name} = \"…\""),
    };
    format!("add {example}")
}

/// An error that `text` is none of the `known` words.
pub fn not_one_of(what: &str, text: &str, known: &[&str]) -> String {
    let list = known.join(", ");
    match suggestion(text, known.iter().copied()) {
        Some(word) => format!("\"{text}\" is not {what}; did you mean \"{word}\"? There are {list}"),
        None => format!("\"{text}\" is not {what}; there are {list}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_the_place() {
        let text = "seed = 1\n\tmtü = \"x\" # odd\nlast";
        let mut findings = Findings::new("a.toml", text);
        let at = text.find("\"x\"").unwrap();
        findings.error(at..at + 3, "host \"a\", mtu", "\"x\" is not a number".into(), "write one");
        findings.error(at..at + 3, "host \"a\", mtu", "\"x\" is not a number".into(), "write one");
        findings.error(text.len()..text.len(), "", "it ends".into(), "");
        let error = findings.finish().unwrap_err();
        assert_eq!(
            error.to_string(),
            "a.toml:2:8: host \"a\", mtu: \"x\" is not a number\n 2 |  mtü = \"x\" # odd\n   |        ^^^\n\
             \x20  = write one\n\na.toml:3:5: it ends\n 3 | last\n   |     ^"
        );
    }

    /// A key of ten million characters was compared with every known one for an hour, and then printed.
    #[test]
    fn long_names_are_neither_compared_nor_repeated() {
        let long = "k".repeat(10_000_000);
        assert_eq!(suggestion(&long, ["rate", "queue"]), None);
        assert_eq!((suggestion("qeue", ["rate", "queue"]), suggestion("x", ["rate"])), (Some("queue"), None));
        let mut findings = Findings::new("a.toml", "");
        findings.error(0..0, "", format!("there is no key {long}"), "");
        assert!(findings.finish().unwrap_err().to_string().len() < 3000);
    }

    #[test]
    fn cuts_long_lines_and_stops_somewhere() {
        let text = format!("{}X{}", "a".repeat(1000), "b".repeat(1000));
        let mut findings = Findings::new("a.toml", &text);
        for n in 0..100 {
            findings.error(1000..1001 + n, "", format!("error {n}"), "");
        }
        let error = findings.finish().unwrap_err();
        assert_eq!(error.findings.len(), 20);
        assert!(error.more && error.findings[0].to_string().len() < 400);
        assert_eq!(error.findings[0].column, 1001);
    }

    #[test]
    fn suggests_what_is_near() {
        let known = ["rate", "delay", "loss", "queue"];
        for (given, wanted) in
            [("ratee", Some("rate")), ("dealy", Some("delay")), ("Loss", Some("loss")), ("colour", None)]
        {
            assert_eq!(suggestion(given, known), wanted, "{given}");
        }
        assert_eq!(suggestion("x", ["a"]), None);
        let known = ["wifi-lossy", "dial-up-28k", "dial-up-56k", "dsl[17].up"];
        for (given, wanted) in
            [("wifi", Some("wifi-lossy")), ("dial", None), ("wi", None), ("dsl[71].up", Some("dsl[17].up"))]
        {
            assert_eq!(suggestion(given, known), wanted, "{given}");
        }
    }
}
