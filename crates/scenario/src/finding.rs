//! What was found wrong, or odd, in a scenario: where it stands, what it is, and the fix.

use std::fmt;
use std::ops::Range;

/// Most errors that are told at once.
const MOST_ERRORS: usize = 20;
/// Most notes of a plan.
const MOST_NOTES: usize = 50;
/// Most characters of a source line that are shown.
const MOST_SHOWN: usize = 120;
/// Most characters of what is wrong, and of how to fix it.
const MOST_TOLD: usize = 2000;

/// Something in a scenario file that has to be, or should be, fixed.
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
    /// What to do about it.
    pub fix: String,
    /// The line as it stands in the file, cut to what is around the place.
    excerpt: String,
    /// Where in the excerpt, in characters: the first, and how many.
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

/// Why a scenario has no plan: everything that was found wrong, in the file's order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScenarioError {
    /// The errors; at least one.
    pub findings: Vec<Finding>,
    /// Whether there were more than are told.
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

/// A file that is being read, and what was found in it so far.
pub(crate) struct Findings<'a> {
    file: &'a str,
    text: &'a str,
    line_starts: Vec<usize>,
    errors: Vec<(usize, Finding)>,
    notes: Vec<Finding>,
    more: bool,
}

impl<'a> Findings<'a> {
    pub(crate) fn new(file: &'a str, text: &'a str) -> Self {
        let starts = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        let line_starts = std::iter::once(0).chain(starts).collect();
        Self { file, text, line_starts, errors: Vec::new(), notes: Vec::new(), more: false }
    }

    /// Writes an error down. One that says the same of the same place is told once.
    pub(crate) fn error(&mut self, span: Range<usize>, field: &str, what: String, fix: impl Into<String>) {
        if self.full() {
            self.more = true;
            return;
        }
        let finding = self.finding(&span, field, what, fix.into());
        if !self.errors.iter().any(|(_, other)| *other == finding) {
            self.errors.push((span.start, finding));
        }
    }

    /// Writes a note down.
    pub(crate) fn note(&mut self, span: Range<usize>, field: &str, what: String, fix: impl Into<String>) {
        if self.notes.len() < MOST_NOTES {
            let finding = self.finding(&span, field, what, fix.into());
            self.notes.push(finding);
        }
    }

    /// Whether enough errors are known, so that looking for more is idle.
    pub(crate) fn full(&self) -> bool {
        self.errors.len() >= MOST_ERRORS
    }

    /// Whether there is an error.
    pub(crate) fn failed(&self) -> bool {
        !self.errors.is_empty()
    }

    /// The notes, or the errors if there are any.
    pub(crate) fn finish(mut self) -> Result<Vec<Finding>, ScenarioError> {
        if self.errors.is_empty() {
            return Ok(self.notes);
        }
        self.errors.sort_by_key(|(at, _)| *at);
        let findings = self.errors.into_iter().map(|(_, finding)| finding).collect();
        Err(ScenarioError { findings, more: self.more })
    }

    /// The line of a place, from 1.
    pub(crate) fn line(&self, at: usize) -> usize {
        self.line_starts.partition_point(|&first| first <= at)
    }

    /// What is found at a place, told to nobody yet.
    pub(crate) fn finding(&self, span: &Range<usize>, field: &str, what: String, fix: String) -> Finding {
        let start = floor(self.text, span.start);
        let line = self.line(start) - 1;
        let first = self.line_starts[line];
        let rest = &self.text[first..];
        let content = rest.split('\n').next().unwrap_or_default().trim_end_matches('\r');
        let at = self.text[first..start].chars().count();
        let end = floor(self.text, span.end.max(start)).min(first + content.len());
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

/// A text that quotes the file, cut where it gets longer than anybody reads.
fn shortened(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(MOST_TOLD) {
        text.truncate(end);
        text.push('…');
    }
    text
}

/// The start of the character that `at` lies in.
fn floor(text: &str, at: usize) -> usize {
    text.floor_char_boundary(at)
}

/// What settings and sections are called elsewhere, and here.
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

/// The one of `known` that was probably meant by `given`, as the beginning of a fix.
pub fn suggestion<'k>(given: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let known: Vec<&str> = known.into_iter().collect();
    let named = called_elsewhere(given).and_then(|name| known.iter().find(|known| **known == name));
    named.copied().or_else(|| nearest(given, known))
}

/// What we call something that others call `given`.
pub fn called_elsewhere(given: &str) -> Option<&'static str> {
    let found = ELSEWHERE.iter().find(|(other, _)| other.eq_ignore_ascii_case(given));
    found.map(|(_, name)| *name)
}

/// The one of `known` that differs least from `given`, if that is not much.
fn nearest<'k>(given: &str, known: Vec<&'k str>) -> Option<&'k str> {
    let length = given.chars().count();
    let allowed = |name: &str| (length.max(name.chars().count()) / 3).max(1);
    // At least as many characters differ as one has more than the other: what is far too long is not even
    // compared, since comparing takes time and memory by the product of both lengths.
    let comparable = |name: &&str| length.abs_diff(name.chars().count()) <= allowed(name);
    let near = |name: &&str| {
        let lower = given.to_lowercase();
        (strsim::damerau_levenshtein(&lower, &name.to_lowercase()), usize::from(!lower.starts_with(*name)))
    };
    let compared = known.into_iter().filter(comparable).map(|name| (near(&name), name));
    let ((distance, _), best) = compared.min_by_key(|(near, _)| *near)?;
    // One letter is no more like another than like any.
    (distance <= allowed(best) && distance < length).then_some(best)
}

/// What to do about a key that is missing.
pub(crate) fn fix_missing(name: &str) -> String {
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

/// Says that `text` is none of the `known` words.
pub(crate) fn not_one_of(what: &str, text: &str, known: &[&str]) -> String {
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
        findings.error(at..at + 3, "host \"a\", mtu", "\"x\" is no number".into(), "write one");
        findings.error(at..at + 3, "host \"a\", mtu", "\"x\" is no number".into(), "write one");
        findings.error(text.len()..text.len(), "", "it ends".into(), "");
        let error = findings.finish().unwrap_err();
        assert_eq!(
            error.to_string(),
            "a.toml:2:8: host \"a\", mtu: \"x\" is no number\n 2 |  mtü = \"x\" # odd\n   |        ^^^\n   \
             = write one\n\na.toml:3:5: it ends\n 3 | last\n   |     ^"
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
    }
}
