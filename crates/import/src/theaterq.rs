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
use super::{ImportError, Notes, Result, Source};
use longwire_trace::theaterq::{Entry, entries};
use longwire_units::{Nanos, Probability};

/// TheaterQ's options.
struct Options {
    /// What follows the end of a trace, if it is set.
    end: Option<&'static str>,
    seed: Option<u64>,
    overhead: i64,
    bytes: bool,
}

/// The scenario of one or two traces (both directions), and a `tc` command with their options.
pub(super) fn import(sources: &[Source], notes: &mut Notes) -> Result<Sheet> {
    let mut options = Options { end: None, seed: None, overhead: 0, bytes: false };
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
    let fix = "name a file with lines KEEP,LATENCY,RATE,LOSS,LIMIT";
    ImportError::unless(!traces.is_empty(), 0, "there is no trace of TheaterQ in it", fix)?;
    if !told {
        let why =
            "at its end a trace begins again, as with cont LOOP; else write end = \"hold\" or \"clear\"";
        notes.add(0, "cont", why);
    }
    // The module's own default (sch_theaterq.c, `theaterq_init`).
    let end = options.end.unwrap_or(if told { "hold" } else { "loop" });
    for (name, _) in traces.iter().skip(2) {
        notes.add(0, name, "two traces are used: the way there and the way back");
    }
    let mut ways = Vec::new();
    for (name, text) in traces.iter().take(2) {
        let entries = entries(text).map_err(|error| ImportError::of_trace(name, error))?;
        note_columns(name, &entries, notes);
        ways.push(vec![stage((name, end), &entries, &options, notes)]);
    }
    let mut sheet = Sheet::new("Two hosts, and between them a trace of TheaterQ.");
    sheet.seed = options.seed;
    sheet.host("a");
    sheet.host("b");
    let back = if ways.len() == 2 { ways.swap_remove(1) } else { Vec::new() };
    sheet.chain(("a", "b"), ("there", "back"), ways.swap_remove(0), back);
    Ok(sheet)
}

fn stage((name, end): (&str, &str), entries: &[Entry], options: &Options, notes: &mut Notes) -> Stage {
    let from_file = || [("file", name.to_owned()), ("end", end.to_owned())];
    let mut stage = Stage::named("Losses, then the queue and the rate, then the delay.");
    stage.block("loss", "trace", &from_file());
    stage.block("rate", "trace", &from_file());
    framed(0, &mut stage, options.overhead, false, notes);
    let unit = if options.bytes { "B" } else { "packets" };
    // The largest, unless the queue is unlimited at some time.
    let limit = entries.iter().try_fold(0, |most, entry| Some(most.max(entry.limit?)));
    stage.set("queue", &limit.map_or("unlimited".into(), |limit| format!("{limit} {unit}")));
    stage.block("delay", "trace", &from_file());
    stage
}

impl Options {
    /// Parses the options of one or more `tc` commands.
    fn read(&mut self, text: &str, notes: &mut Notes) -> Result<()> {
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

    fn option(&mut self, word: &str, words: &mut Words<'_>, notes: &mut Notes) -> Result<()> {
        match word {
            "cont" => {
                self.end = Some(words.value("cont", "LOOP", |word| match word {
                    "LOOP" => Some("loop"),
                    "HOLD" => Some("hold"),
                    // Newer versions call it CLEAN.
                    "CLEAR" | "CLEAN" => Some("clear"),
                    _ => None,
                })?);
            }
            "seed" => {
                // The highest bit, which a scenario's seed can't have, is dropped.
                self.seed = Some(words.value("seed", "1", whole)? & (u64::MAX >> 1));
            }
            "overhead" => {
                let overhead: i32 = words.value("overhead", "4", |word| word.parse().ok())?;
                self.overhead = overhead.into();
            }
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
            "ecn_enable" => {
                let why = "a full queue drops here; choose a queue that marks, such as codel";
                notes.add(words.line, word, why);
            }
            "ecn_disable" => {}
            other => {
                let known = "stage, cont, seed, overhead, syncgroup, ingest, byteqlen, pktqlen";
                return words.no_option("theaterq", other, known);
            }
        }
        Ok(())
    }
}

/// Whether the first line that begins with a digit has columns; others are headers and comments.
fn looks_like_trace(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim_start);
    lines.find(|line| line.starts_with(|c: char| c.is_ascii_digit())).is_some_and(|line| line.contains(','))
}

/// Notes contents of a trace besides times, delays, rates and losses, which do not fit one link.
fn note_columns(name: &str, entries: &[Entry], notes: &mut Notes) {
    let has = |property: fn(&Entry) -> bool| entries.iter().any(property);
    let limits_differ = entries.windows(2).any(|pair| pair[0].limit != pair[1].limit);
    let columns = [
        (
            limits_differ,
            "LIMIT",
            "it changes there; the queue keeps its largest value here (change it with [[at]] events)",
        ),
        (has(|entry| entry.jitter > Nanos::ZERO), "JITTER", "a trace has one delay at a time here"),
        (
            has(|entry| entry.duplicate > Probability::ZERO),
            "DUP_PROB, DUP_DELAY",
            "duplicates don't change over time here; see the key duplicate",
        ),
        (
            has(|entry| entry.has_zero_rate),
            "RATE",
            "0 and -1 are no limit of the rate here; newer versions of TheaterQ send nothing at a rate of 0",
        ),
        (has(|entry| entry.has_queue), "QUEUE_ID", "there is one queue here, whatever the bottleneck"),
        (has(|entry| entry.route > 0), "ROUTE_ID", "packets stay in order here"),
    ];
    for (_, what, why) in columns.into_iter().filter(|(is_there, ..)| *is_there) {
        notes.add(0, &format!("{name}: {what}"), why);
    }
}
