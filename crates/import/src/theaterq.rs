//! Trace files of TheaterQ, which change delay, rate, loss and queue over time, and its options in `tc`.
//!
//! A packet waits in the queue, is transmitted at the rate, and is then delayed, which is the order of one
//! link. The link reads the file itself; here it is only checked for contents that do not fit one link.

use super::framing::framed;
use super::lines::commands;
use super::quantity::whole;
use super::sheet::{Sheet, file_name};
use super::stage::Stage;
use super::words::Words;
use super::{ImportError, Notes, Source};
use longwire_trace::TraceError;

/// Number of fields of a line in the simple format, and in the extended one with routes and queues.
const SIMPLE: usize = 5;
const EXTENDED: std::ops::RangeInclusive<usize> = 9..=10;

/// TheaterQ's options.
struct Options {
    end: &'static str,
    seed: Option<u64>,
    overhead: i64,
    bytes: bool,
}

/// Contents of a trace besides times, delays, rates and losses.
#[derive(Default)]
struct Trace {
    limit: Option<u64>,
    limits_differ: bool,
    jitter: bool,
    duplicates: bool,
    routes: bool,
    queues: bool,
    stops: bool,
}

/// The scenario of one or two traces (both directions), and a `tc` command with their options.
pub(super) fn import(sources: &[Source], notes: &mut Notes) -> Result<Sheet, ImportError> {
    let mut options = Options { end: "loop", seed: None, overhead: 0, bytes: false };
    let (mut traces, mut told) = (Vec::new(), false);
    for source in sources {
        match &source.file {
            Some(name) if looks_like_trace(&source.text) => traces.push((file_name(0, name)?, &source.text)),
            _ => {
                options.read(&source.text, notes)?;
                told = true;
            }
        }
    }
    if traces.is_empty() {
        let fix = "name a file with lines KEEP,LATENCY,RATE,LOSS,LIMIT";
        return Err(ImportError::new(0, "there is no trace of TheaterQ in it", fix));
    }
    if !told {
        notes.add(
            0,
            "cont",
            "at its end a trace begins again, as with cont LOOP; else write end = \"hold\" or \"clear\"",
        );
    }
    for (name, _) in traces.iter().skip(2) {
        notes.add(0, name, "two traces are used: the way there and the way back");
    }
    let mut ways = Vec::new();
    for (name, text) in traces.iter().take(2) {
        let trace = Trace::read(text)?;
        playable(name, text)?;
        trace.note(name, notes);
        ways.push(vec![stage(name, &trace, &options, notes)]);
    }
    let mut sheet = Sheet::new("Two hosts, and between them a trace of TheaterQ.");
    sheet.seed = options.seed;
    sheet.host("a");
    sheet.host("b");
    let back = if ways.len() == 2 { ways.swap_remove(1) } else { Vec::new() };
    sheet.chain(("a", "b"), ("there", "back"), ways.swap_remove(0), back);
    Ok(sheet)
}

fn stage(name: &str, trace: &Trace, options: &Options, notes: &mut Notes) -> Stage {
    let from_file = || [("file", name.to_owned()), ("end", options.end.to_owned())];
    let mut stage = Stage::named("Losses, then the queue and the rate, then the delay.");
    stage.block("loss", "trace", &from_file());
    stage.block("rate", "trace", &from_file());
    framed(0, &mut stage, options.overhead, false, notes);
    if let Some(limit) = trace.limit {
        let unit = if options.bytes { "B" } else { "packets" };
        stage.set("queue", &format!("{limit} {unit}"));
    }
    stage.block("delay", "trace", &from_file());
    stage
}

/// Checks that a link can play the trace, to report errors here with the line.
fn playable(name: &str, text: &str) -> Result<(), ImportError> {
    let fix = format!("correct {name}");
    match longwire_trace::theaterq::entries(text) {
        Ok(_) => Ok(()),
        Err(TraceError::Line { line, what }) => Err(ImportError::new(line, what, fix)),
        Err(other) => Err(ImportError::new(0, other.to_string(), fix)),
    }
}

impl Options {
    /// Parses the options of one or more `tc` commands.
    fn read(&mut self, text: &str, notes: &mut Notes) -> Result<(), ImportError> {
        for line in commands(text)? {
            let Some(at) = line.words.iter().position(|word| word == "theaterq") else {
                notes.add(line.number, &line.text(), "it is not a command for theaterq");
                continue;
            };
            let mut words = Words::new(line.number, &line.words[at + 1..]);
            while let Some(word) = words.next() {
                self.option(word, &mut words, notes)?;
            }
        }
        Ok(())
    }

    fn option(&mut self, word: &str, words: &mut Words<'_>, notes: &mut Notes) -> Result<(), ImportError> {
        match word {
            "cont" => {
                self.end = words.value("cont", "LOOP", |word| match word {
                    "LOOP" => Some("loop"),
                    "HOLD" => Some("hold"),
                    "CLEAR" => Some("clear"),
                    _ => None,
                })?;
            }
            "seed" => self.seed = Some(words.value("seed", "1", whole)?),
            "overhead" => self.overhead = words.value("overhead", "4", |word| word.parse().ok())?,
            "byteqlen" => self.bytes = true,
            "pktqlen" => self.bytes = false,
            "stage" | "ingest" | "syncgroup" => {
                let value = words.next().unwrap_or_default();
                let why = match word {
                    "stage" => "traces begin with the run here",
                    "ingest" => "the format of a trace is detected from the file here",
                    _ => "all traces begin with the run here, and so are in step",
                };
                notes.add(words.line, &format!("{word} {value}"), why);
            }
            "allow_gso" | "prevent_gso" => {
                notes.add(words.line, word, "large segments are always counted one by one here");
            }
            "ecn_enable" => notes.add(
                words.line,
                word,
                "a full queue drops here; choose a queue that marks, such as codel",
            ),
            "ecn_disable" => {}
            other => {
                let what = format!("theaterq has no option \"{other}\"");
                let fix = "options are stage, cont, seed, overhead, syncgroup, ingest, byteqlen, pktqlen";
                return Err(ImportError::new(words.line, what, fix));
            }
        }
        Ok(())
    }
}

/// Skips lines that don't begin with a digit, as TheaterQ does.
fn entries(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
    lines.filter(|(_, line)| line.starts_with(|c: char| c.is_ascii_digit()))
}

fn looks_like_trace(text: &str) -> bool {
    entries(text).next().is_some_and(|(_, line)| line.contains(','))
}

impl Trace {
    fn read(text: &str) -> Result<Self, ImportError> {
        let mut trace = Self::default();
        let mut fields = 0;
        for (number, line) in entries(text) {
            let fields_of = line.split(',').map(str::trim);
            // A rate of -1 means no limit, and is irrelevant here.
            let values: Option<Vec<u64>> =
                fields_of.map(|field| if field == "-1" { Some(1) } else { whole(field) }).collect();
            let count = values.as_ref().map_or(0, Vec::len);
            let fix = "write KEEP,LATENCY,RATE,LOSS,LIMIT, or all nine or ten fields";
            let Some(values) =
                values.filter(|values| values.len() == SIMPLE || EXTENDED.contains(&values.len()))
            else {
                return Err(ImportError::new(number, "this is not a line of a TheaterQ trace", fix));
            };
            if fields != 0 && fields != count {
                return Err(ImportError::new(number, "lines differ in their number of fields", fix));
            }
            fields = count;
            trace.add(&values);
        }
        Ok(trace)
    }

    fn add(&mut self, values: &[u64]) {
        let limit = if values.len() == SIMPLE { values[4] } else { values[5] };
        self.limits_differ |= self.limit.is_some_and(|other| other != limit);
        self.limit = self.limit.max(Some(limit));
        self.stops |= values[if values.len() == SIMPLE { 2 } else { 3 }] == 0;
        if let [_, _, jitter, _, _, _, duplicates, _, route, queue @ ..] = values {
            self.jitter |= *jitter > 0;
            self.duplicates |= *duplicates > 0;
            self.routes |= *route > 0;
            self.queues |= !queue.is_empty();
        }
    }

    fn note(&self, name: &str, notes: &mut Notes) {
        let mut say = |what: &str, why: &str| notes.add(0, &format!("{name}: {what}"), why);
        if self.limits_differ {
            say(
                "LIMIT",
                "it changes there; the queue keeps its largest value here (change it with [[at]] events)",
            );
        }
        if self.jitter {
            say("JITTER", "a trace has one delay at a time here");
        }
        if self.duplicates {
            say("DUP_PROB, DUP_DELAY", "duplicates don't change over time here; see the key duplicate");
        }
        if self.stops {
            say(
                "RATE",
                "0 and -1 are no limit of the rate here; newer versions of TheaterQ send nothing at a rate \
                 of 0",
            );
        }
        if self.queues {
            say("QUEUE_ID", "there is one queue here, whatever the bottleneck");
        }
        if self.routes {
            say("ROUTE_ID", "packets stay in order here");
        }
    }
}
