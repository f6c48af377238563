//! Conversion of other tools' input to scenarios: command lines of tc netem, ipfw and mahimahi, Emulab's ns
//! scripts, trace files, matrices of delays, the topologies of containerlab and Docker Compose, and the
//! scenarios of the QUIC network simulator.
//!
//! [`import`] writes a scenario that [`parse`](longwire_scenario::parse) accepts, with comments, and a
//! [`Note`] for every option that it does not convert, or not exactly. The formats are described in
//! `docs/book/import.md`.
#![forbid(unsafe_code)]

mod compose;
mod condition;
mod containerlab;
mod dummynet;
mod framing;
mod interop_network;
mod ipfw;
mod lines;
mod mahimahi;
mod matrix;
mod netem;
mod ns;
mod ns_queue;
mod ns_value;
mod pf;
mod places;
mod qdisc;
mod quantity;
mod quic_interop;
mod sheet;
mod shell;
mod shell_branch;
mod sleeps;
mod sources;
mod stage;
mod tbf;
mod tc;
mod tcl;
mod tcl_value;
mod testbed;
mod testbed_at;
mod theaterq;
mod topology;
mod wiring;
mod words;
mod yaml;

pub use interop_network::{InteropNetwork, TcpEnd};
pub use quic_interop::{InteropLink, Rebinding, quic_interop};
pub use sources::SourceError;

use longwire_trace::TraceError;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// Longest script or command line that is imported, in bytes.
const LONGEST: usize = 4 << 20;
/// Most notes kept; the last of them then reports further ones.
const MOST_NOTES: usize = 200;

/// The formats that can be imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// `tc qdisc … netem`, with `tbf`: tc-netem(8), tc-tbf(8).
    Netem,
    /// `ipfw pipe N config`, `ipfw add pipe N`: ipfw(8), dummynet(4).
    Ipfw,
    /// ns-2 scripts, as far as they set up a network, and Emulab's dialect of them, in Tcl.
    Ns,
    /// `mm-delay`, `mm-loss`, `mm-link`, `mm-onoff`, and bare packet-delivery traces.
    Mahimahi,
    /// Trace files of TheaterQ, and its `tc` options.
    Theaterq,
    /// Delays between regions, as CSV.
    Matrix,
    /// Topology files of containerlab, and scripts of its `tools netem set`.
    Containerlab,
    /// Docker Compose files.
    Compose,
}

impl Format {
    /// The names of all.
    pub const NAMES: [&str; 8] =
        ["netem", "ipfw", "ns", "mahimahi", "theaterq", "matrix", "containerlab", "compose"];

    /// Longest imported text in bytes: if it may be a trace, the limit of traces.
    pub const fn longest(self) -> usize {
        let may_be_trace = matches!(self, Self::Mahimahi | Self::Theaterq);
        if may_be_trace { longwire_trace::MAX_FILE as usize } else { LONGEST }
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Ok(match name {
            "netem" | "tc" => Self::Netem,
            "ipfw" | "dummynet" => Self::Ipfw,
            "ns" => Self::Ns,
            "mahimahi" => Self::Mahimahi,
            "theaterq" => Self::Theaterq,
            "matrix" => Self::Matrix,
            "containerlab" | "clab" => Self::Containerlab,
            "compose" => Self::Compose,
            _ => return Err(longwire_scenario::name_hint(name, &Self::NAMES)),
        })
    }
}

/// An input: a text, and the file that it was read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The file's name for the scenario; none for a command line.
    pub file: Option<String>,
    /// Its contents.
    pub text: String,
}

/// An option that was not converted, or not exactly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Its line, from 1; 0 if it belongs to the whole.
    pub line: usize,
    /// The option, as it was written.
    pub option: String,
    /// The reason, and the replacement.
    pub why: String,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}: {}", place(self.line), self.option, self.why)
    }
}

/// The result of an import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedScenario {
    /// The scenario's text.
    pub scenario: String,
    /// Notes in the order of the source.
    pub notes: Vec<Note>,
}

/// Reason why an input can't be imported: place, error, and fix.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}{what}; {fix}", place(*line))]
pub struct ImportError {
    /// Its line, from 1; 0 if it belongs to the whole.
    pub line: usize,
    /// The fault.
    pub what: String,
    /// The fix.
    pub fix: String,
}

/// What a message about a line begins with.
fn place(line: usize) -> String {
    if line > 0 { format!("line {line}: ") } else { String::new() }
}

impl ImportError {
    fn new(line: usize, what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { line, what: shortened(&what.into()), fix: fix.into() }
    }

    /// An error unless something is as it must be.
    fn unless(is_good: bool, line: usize, what: impl Into<String>, fix: impl Into<String>) -> Result<()> {
        if is_good { Ok(()) } else { Err(Self::new(line, what, fix)) }
    }

    /// An error if there are more than `most` of `many`.
    fn if_above(count: usize, most: usize, line: usize, many: &str, fix: &str) -> Result<()> {
        if count <= most {
            Ok(())
        } else {
            Err(Self::new(line, format!("there are more than {most} {many}"), fix))
        }
    }

    /// The error of the trace `name`, which a link could not play.
    fn of_trace(name: &str, error: TraceError) -> Self {
        let fix = format!("correct {name}");
        match error {
            TraceError::Line { line, what } => Self::new(line, what, fix),
            other => Self::new(0, other.to_string(), fix),
        }
    }
}

/// One link described by options of another tool: keys of a link with their values as TOML, in packet order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LinkText {
    /// Keys and values.
    pub settings: Vec<(String, String)>,
}

/// The result of netem's options: links in series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetemLinks {
    /// The links in packet order: at least one.
    pub links: Vec<LinkText>,
    /// netem's own seed, if it was given.
    pub seed: Option<u64>,
    /// Options that were not converted, or not exactly.
    pub notes: Vec<Note>,
}

/// Writes the scenario described by `sources`; most formats take one source, traces also two (up and down), a
/// topology of containerlab also scripts.
///
/// # Errors
/// Names the line that can't be converted, and says how to fix it.
pub fn import(format: Format, sources: &[Source]) -> Result<ImportedScenario, ImportError> {
    let longest = format.longest();
    let (what, fix) = (format!("the text is longer than {longest} bytes"), "import a part of it");
    ImportError::unless(sources.iter().all(|source| source.text.len() <= longest), 0, what, fix)?;
    let Some(first) = sources.first() else {
        return Err(ImportError::new(0, "there is nothing to import", "name a file, or give a command line"));
    };
    let mut notes = Notes::default();
    let mut sheet = match format {
        Format::Netem => tc::import(&first.text, &mut notes),
        Format::Ipfw => ipfw::import(&first.text, &mut notes),
        Format::Ns => ns::import(&first.text, &mut notes),
        Format::Mahimahi => mahimahi::import(sources, &mut notes),
        Format::Theaterq => theaterq::import(sources, &mut notes),
        Format::Matrix => matrix::import(&first.text, &mut notes),
        Format::Containerlab => containerlab::import(sources, &mut notes),
        Format::Compose => compose::import(&first.text, &mut notes),
    }?;
    let takes_several = matches!(format, Format::Theaterq | Format::Mahimahi | Format::Containerlab);
    if !takes_several && sources.len() > 1 {
        let why = "one file or command line is imported at a time";
        sources[1..].iter().for_each(|source| notes.add(0, &shown(source), why));
    }
    sheet.quote(sources);
    let notes = notes.list;
    let scenario = sheet.text(&notes);
    if !names_files(&scenario) {
        possible(&scenario)?;
    }
    Ok(ImportedScenario { scenario, notes })
}

/// Whether it names a trace, a custom distribution or a profile of the user: files that need not exist yet.
fn names_files(scenario: &str) -> bool {
    let known = ["uniform", "normal", "pareto", "pareto-normal"];
    texts(scenario, "file").next().is_some()
        || texts(scenario, "distribution").any(|name| !known.contains(&name))
        || texts(scenario, "profile").any(|name| name.contains(".toml") || name.contains('/'))
}

/// The texts that a key has in a scenario.
fn texts<'s>(scenario: &'s str, key: &str) -> impl Iterator<Item = &'s str> {
    let start = format!("{key} = \"");
    scenario.lines().filter(|line| !line.starts_with('#')).flat_map(move |line| {
        let places: Vec<usize> = line.match_indices(&start).map(|(at, _)| at).collect();
        let length = start.len();
        let whole = move |at: &usize| line[..*at].is_empty() || line[..*at].ends_with(' ');
        places.into_iter().filter(whole).filter_map(move |at| line[at + length..].split('"').next())
    })
}

/// Whether the result is a valid scenario: values have ranges here, and packets need a path.
fn possible(scenario: &str) -> Result<()> {
    let Err(error) = longwire_scenario::parse("imported.toml", scenario) else { return Ok(()) };
    let Some(first) = error.findings.first() else { return Ok(()) };
    let what = format!("the result is not valid: {}: {}", first.field, first.what);
    let fix = if first.fix.is_empty() { "change that setting" } else { &first.fix };
    Err(ImportError::new(0, what, fix))
}

/// Parses netem's options, as in `delay 100ms 20ms distribution normal loss gemodel 1% 25%`.
///
/// # Errors
/// What can't be parsed, and how to fix it.
pub fn netem_links(options: &str) -> Result<NetemLinks, ImportError> {
    let fix = "write delay 100ms loss 1%";
    ImportError::unless(options.len() <= LONGEST, 0, "these are no netem options", fix)?;
    let mut notes = Notes::default();
    let (stages, seed) = tc::options(options, &mut notes)?;
    let links = stages.into_iter().map(stage::Stage::into_text).collect();
    Ok(NetemLinks { links, seed, notes: notes.list })
}

/// The bridges and links, as scenario text, from one host to another and back: the links of each direction in
/// series. `names` are those of the two directions; several links of one direction are numbered.
pub fn links_between(
    hosts: (&str, &str),
    names: (&str, &str),
    there: Vec<LinkText>,
    back: Vec<LinkText>,
) -> String {
    let stages = |links: Vec<LinkText>| links.into_iter().map(stage::Stage::from).collect();
    let mut sheet = sheet::Sheet::default();
    sheet.chain(hosts, names, stages(there), stages(back));
    sheet.network()
}

/// What is read, or why it can't be.
type Result<T, E = ImportError> = std::result::Result<T, E>;

/// Notes so far.
#[derive(Default)]
struct Notes {
    list: Vec<Note>,
}

impl Notes {
    /// Whether no more are kept.
    fn full(&self) -> bool {
        self.list.len() >= MOST_NOTES
    }

    fn add(&mut self, line: usize, option: &str, why: impl Into<String>) {
        let note = Note { line, option: shortened(option), why: shortened(&why.into()) };
        if self.list.len() < MOST_NOTES && !self.list.contains(&note) {
            self.list.push(note);
            if self.list.len() == MOST_NOTES {
                let why = "more is not carried over, and not listed";
                self.list.push(Note { line, option: "and so on".into(), why: why.into() });
            }
        }
    }
}

/// A source's name in notes.
fn shown(source: &Source) -> String {
    source.file.clone().unwrap_or_else(|| source.text.clone())
}

/// A text in one line, without control characters, and truncated.
fn shortened(text: &str) -> String {
    const MOST: usize = 300;
    let mut plain: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(MOST)
        .collect::<String>()
        .trim()
        .into();
    if text.chars().count() > MOST {
        plain.push('…');
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FORMATS: [Format; 8] = [
        Format::Netem,
        Format::Ipfw,
        Format::Ns,
        Format::Mahimahi,
        Format::Theaterq,
        Format::Matrix,
        Format::Containerlab,
        Format::Compose,
    ];

    /// Keywords of the formats, so that random texts get past the first check.
    const WORDS: &str = "tc|qdisc|add|show|dev|eth0|root|parent|1:1|handle|10:|netem|tbf|delay|loss|gemodel|s\
        tate|random|rate|\
                         slot|limit|ecn|seed|reorder|gap|duplicate|corrupt|distribution|normal|1%|100%|0.5|20\
                         ms|1mbit|\
                         32kb|-1|ipfw|pipe|queue|sched|config|bw|plr|mask|dst-ip|red|codel|pie|0.002/5/15/0.1\
                         |from|any|to|\
                         10.0.0.1|10.0.0.2|in|out|set|ns|[new simulator]|[$ns \
                         node]|$ns|duplex-link|$a|$b|100Mb|10ms|RED|\
                         make-lan|at|\"$l down\"|for|{set i 0}|{$i < 3}|{incr i}|{|}|[|]|expr|$i + \
                         1|mm-link|mm-delay|\
                         mm-loss|mm-onoff|uplink|--|--uplink-queue=droptail|up.trace|\n|;|\\\n\
                         |\"|'|#|0|1,2,3,4,5|\
                         tb-set-link-loss|99999999999999999999|\u{e9}|{n}|q|a|d|del|change|if|for|do|done|fi|\
                         case|esac|in|&&|>|2>&1|\
                         A=eth0|$A|${A:-x}|$((1+A))|$(x|`|(|)|\u{e000}|dnctl|dummynet|fq_pie|noecn|[new \
                         ErrorModel]|lossmodel|\
                         Queue/RED|queue-in-bytes_|limit_|CoDel|stab|netns|exec|sleep|f()|function|shift|$1|$\
                         @|\"$@\"|flush|delete|100|modify|\
                         topology:|nodes:|links:|endpoints:|services:|networks:|\
                         x-longwire:|- [a:1, b:2]|one-way,a,b|a,0,5|\
                         drop-rate|--delay=1ms|--bandwidth=1Mbps|--queue=1|--rate_to_client=3|\
                         LIMIT=75|PIPE=pipe1|BANDWIDTH=0|unit|byte|rate_|queue|$ns at 1";

    fn drawn() -> impl Strategy<Value = String> {
        let words: Vec<&'static str> = WORDS.split('|').collect();
        prop::collection::vec(prop::sample::select(words), 0..40).prop_map(|words| words.join(" "))
    }

    fn never_panics(text: &str) {
        for format in FORMATS {
            for file in [None, Some("some.file".to_owned())] {
                let source = Source { file, text: text.to_owned() };
                match import(format, std::slice::from_ref(&source)) {
                    Ok(imported) => assert!(imported.scenario.starts_with("# ")),
                    Err(error) => assert!(!error.fix.is_empty() && !error.what.is_empty(), "{error}"),
                }
            }
        }
        let _ = netem_links(text);
        let _ = quic_interop(text);
    }

    proptest! {
        #[test]
        fn hostile_text_never_panics(text in "\\PC{0,200}") {
            never_panics(&text);
        }

        #[test]
        fn hostile_words_never_panic(text in drawn()) {
            never_panics(&text);
        }
    }

    #[test]
    fn bounds_hold() {
        let long = Source { file: None, text: "x".repeat(LONGEST + 1) };
        for format in FORMATS {
            if format.longest() == LONGEST {
                let error = import(format, std::slice::from_ref(&long)).unwrap_err();
                assert!(error.what.contains("longer"), "{error}");
            }
            assert!(import(format, &[]).unwrap_err().what.contains("nothing"));
        }
        // A trace may be longer: here one opportunity per millisecond.
        let trace: String = (1..=700_000).map(|at| format!("{at}\n")).collect();
        assert!(trace.len() > LONGEST);
        let trace = Source { file: Some("up.trace".into()), text: trace };
        assert!(import(Format::Mahimahi, &[trace]).unwrap().scenario.contains("up.trace"));
        let mut notes = Notes::default();
        (0..1000).for_each(|line| notes.add(line, "option", "why"));
        assert_eq!(notes.list.len(), MOST_NOTES + 1);
    }

    #[test]
    fn errors_and_notes_name_the_line() {
        let error = ImportError::new(3, "\"x\" is not a time", "write 10ms");
        assert_eq!(error.to_string(), "line 3: \"x\" is not a time; write 10ms");
        let note = Note { line: 0, option: "limit 5".into(), why: "because".into() };
        assert_eq!(note.to_string(), "limit 5: because");
    }
}
