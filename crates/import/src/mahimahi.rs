//! mahimahi's nested shells, and its packet-delivery traces.
//!
//! An outgoing packet passes the innermost shell first, an incoming one the outermost. Consecutive shells
//! that fit the order of one link become one link.

use super::quantity::{LONGEST_DELAY, Share, time, whole};
use super::sheet::{Sheet, file_name};
use super::stage::Stage;
use super::words::Words;
use super::{ImportError, Notes, Result, Source, shell};
use longwire_trace::Opportunities;
use longwire_units::{Bytes, Nanos};

/// Update interval of mahimahi's PIE, from its source.
const PIE_UPDATE: &str = "30 ms";
/// Most shells of one command line.
const MOST_SHELLS: usize = 100;

/// The effect of one shell on one direction.
enum Part {
    Loss(Share),
    OnOff(Nanos, Nanos),
    Link { trace: String, once: bool, queue: String },
    Delay(Nanos),
}

/// A shell: its effects on outgoing and on incoming packets.
#[derive(Default)]
struct Shell {
    up: Option<Part>,
    down: Option<Part>,
}

/// The scenario of a command line, or of one or two traces.
pub(super) fn import(sources: &[Source], notes: &mut Notes) -> Result<Sheet> {
    let shells = match sources {
        [up, ..] if is_trace(&up.text) => vec![traces(sources, notes)?],
        [first, ..] => read(&first.text, notes)?,
        [] => Vec::new(),
    };
    if shells.is_empty() {
        let fix = "write mm-delay 20 mm-link up.trace down.trace -- COMMAND, or name trace files";
        let what = sources.first().and_then(missing_file);
        return Err(ImportError::new(0, what.unwrap_or("there is no shell of mahimahi in it".into()), fix));
    }
    let mut sheet = Sheet::new("A host inside mahimahi's shells, and one outside.");
    let up = joined(shells.iter().rev().filter_map(|shell| shell.up.as_ref()));
    let down = joined(shells.iter().filter_map(|shell| shell.down.as_ref()));
    sheet.host("inside");
    sheet.host("outside");
    sheet.chain(("inside", "outside"), ("up", "down"), up, down);
    Ok(sheet)
}

/// The fault of a text that is in no file, and only names one or two that are not there.
fn missing_file(source: &Source) -> Option<String> {
    let words: Vec<&str> = source.text.split_whitespace().take(3).collect();
    let are_files = source.file.is_none() && words.len() < 3;
    let first =
        words.first().filter(|_| are_files && !words.iter().any(|word| name(word).starts_with("mm-")));
    first.map(|first| format!("there is no file {first}"))
}

/// Whether a text is a list of milliseconds, one per line.
fn is_trace(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty()).take(100).peekable();
    lines.peek().is_some() && lines.all(|line| line.bytes().all(|byte| byte.is_ascii_digit()))
}

/// One or two traces as a link shell.
fn traces(sources: &[Source], notes: &mut Notes) -> Result<Shell> {
    let part = |source: &Source| {
        let fix = "name the file: a scenario refers to it";
        let what = missing_file(source).unwrap_or("a trace must be in a file".into());
        let name = source.file.as_ref().ok_or_else(|| ImportError::new(0, what, fix))?;
        let (what, is) = (format!("{name} is not a packet-delivery trace"), is_trace(&source.text));
        ImportError::unless(is, 0, what, "write one whole number of milliseconds a line")?;
        // The link reads the file itself; errors are reported here, with the line.
        Opportunities::parse(&source.text).map_err(|error| ImportError::of_trace(name, error))?;
        Ok(Part::Link { trace: file_name(0, name)?, once: false, queue: "\"unlimited\"".into() })
    };
    let up = part(&sources[0])?;
    if sources.len() == 1 {
        notes.add(0, &super::shown(&sources[0]), "one trace is used for both directions");
    }
    for more in sources.iter().skip(2) {
        notes.add(0, &super::shown(more), "two traces are used: the way out and the way in");
    }
    Ok(Shell { up: Some(up), down: Some(part(sources.get(1).unwrap_or(&sources[0]))?) })
}

/// The shells of a command line, the outermost first.
fn read(text: &str, notes: &mut Notes) -> Result<Vec<Shell>> {
    let mut shells = Vec::new();
    for line in shell::run(text, |words| words.iter().any(|word| is_shell(word)), notes)? {
        if !shells.is_empty() && line.words.iter().any(|word| is_shell(word)) {
            let why = "it runs by itself there, after the previous one has ended; import it separately";
            notes.add(line.number, &line.text(), why);
            continue;
        }
        let mut words = Words::new(line.number, &line.words);
        while let Some(word) = words.next() {
            ImportError::if_above(shells.len() + 1, MOST_SHELLS, line.number, "shells", "leave some out")?;
            match name(word) {
                "mm-delay" => shells.push(delay(&mut words)?),
                "mm-loss" => shells.push(loss(&mut words)?),
                "mm-onoff" => shells.push(on_off(&mut words, notes)?),
                "mm-link" => shells.push(link(&mut words, notes)?),
                "--" | "sudo" => {}
                other => skipped(other.starts_with("mm-"), word, &mut words, notes),
            }
        }
    }
    Ok(shells)
}

/// Skips a shell or command that is not converted, up to the next shell that is.
fn skipped(is_mahimahis: bool, word: &str, words: &mut Words<'_>, notes: &mut Notes) {
    let mut rest = vec![word];
    while let Some(next) = words.peek().filter(|next| !is_shell(next)) {
        rest.push(next);
        words.next();
    }
    let why = if is_mahimahis {
        "this shell is not carried over; of mahimahi's, mm-delay, mm-loss, mm-link and mm-onoff are"
    } else {
        "the command is not carried over; it runs in the host \"inside\" (longwire lab exec)"
    };
    notes.add(words.line, &rest.join(" "), why);
}

fn name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// Whether a word is a shell that is converted.
fn is_shell(word: &str) -> bool {
    ["mm-delay", "mm-loss", "mm-onoff", "mm-link"].contains(&name(word))
}

fn delay(words: &mut Words<'_>) -> Result<Shell> {
    let delay = words.value("mm-delay", "20", |word| time(word, 1_000_000))?;
    let what = format!("{delay} is too long a delay");
    ImportError::unless(delay <= LONGEST_DELAY, words.line, what, "write at most 100000 ms")?;
    Ok(Shell { up: Some(Part::Delay(delay)), down: Some(Part::Delay(delay)) })
}

fn loss(words: &mut Words<'_>) -> Result<Shell> {
    let up = uplink("mm-loss", words)?;
    let part = Part::Loss(words.value("mm-loss uplink", "0.01", Share::fraction)?);
    Ok(one_direction(up, part))
}

fn on_off(words: &mut Words<'_>, notes: &mut Notes) -> Result<Shell> {
    let up = uplink("mm-onoff", words)?;
    let seconds = |word: &str| time(word, 1_000_000_000);
    let on = words.value("mm-onoff uplink", "1.5 0.5", seconds)?;
    let off = words.value("mm-onoff uplink ON", "0.5", seconds)?;
    let why = "the times are drawn with these means there; here the link is up and down for exactly so long";
    notes.add(words.line, "mm-onoff", why);
    Ok(one_direction(up, Part::OnOff(on, off)))
}

/// Whether the next word is `uplink`; an error if it is neither that nor `downlink`.
fn uplink(option: &str, words: &mut Words<'_>) -> Result<bool> {
    words.value(option, "uplink …", |word| match word {
        "uplink" => Some(true),
        "downlink" => Some(false),
        _ => None,
    })
}

fn one_direction(up: bool, part: Part) -> Shell {
    if up { Shell { up: Some(part), down: None } } else { Shell { up: None, down: Some(part) } }
}

/// `mm-link UP DOWN [options]`.
fn link(words: &mut Words<'_>, notes: &mut Notes) -> Result<Shell> {
    let line = words.line;
    let (mut files, mut once) = (Vec::new(), false);
    let mut kinds = [None, None];
    let mut arguments = [String::new(), String::new()];
    // Trace files may come before, between and after the options.
    while let Some(word) = words.peek() {
        let Some(option) = word.strip_prefix("--").filter(|option| !option.is_empty()) else {
            if files.len() == 2 || word == "--" {
                break;
            }
            files.push(file_name(line, word)?);
            words.next();
            continue;
        };
        words.next();
        let (name, given) =
            option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
        let side = usize::from(name.starts_with("downlink"));
        match name {
            "once" => once = true,
            "uplink-queue" | "downlink-queue" => {
                kinds[side] = given.or_else(|| words.next()).map(str::to_owned);
            }
            "uplink-queue-args" | "downlink-queue-args" => {
                arguments[side] = given.or_else(|| words.next()).unwrap_or_default().to_owned();
            }
            "uplink-log" | "downlink-log" => {
                let file = given.or_else(|| words.next()).unwrap_or_default();
                let why = "packets are recorded with longwire run --record here";
                notes.add(line, &format!("--{name} {file}"), why);
            }
            _ if name.contains("meter") => {
                notes.add(line, word, "it draws on the screen; see longwire ctl here");
            }
            _ => notes.add(line, word, "mm-link has no such option that is known here"),
        }
    }
    let Ok([up, down]) = <[String; 2]>::try_from(files) else {
        return Err(ImportError::new(line, "mm-link needs two traces", "write mm-link up.trace down.trace"));
    };
    if once {
        let why =
            "at the end of the trace the shell ends there; here the link sends without limit from then on";
        notes.add(line, "--once", why);
    }
    let mut part = |side: usize, trace: String| -> Result<Part> {
        let kind = kinds[side].as_deref().unwrap_or("infinite");
        Ok(Part::Link { trace, once, queue: queue(line, kind, &arguments[side], notes)? })
    };
    Ok(Shell { up: Some(part(0, up)?), down: Some(part(1, down)?) })
}

/// A queue of mahimahi as the value of a link's key.
fn queue(line: usize, kind: &str, arguments: &str, notes: &mut Notes) -> Result<String> {
    let mut limit = None;
    let mut parameters: Vec<(&str, String)> = Vec::new();
    if kind == "pie" {
        parameters.push(("update", PIE_UPDATE.into()));
    }
    for argument in arguments.split(',').map(str::trim).filter(|argument| !argument.is_empty()) {
        let bad = || {
            let what = format!("queue arguments: \"{argument}\" can't be understood");
            ImportError::new(line, what, "write packets=100, or bytes=100000")
        };
        let (name, value) = argument.split_once('=').ok_or_else(bad)?;
        let (name, value) = (name.trim(), value.trim());
        let number = whole(value).ok_or_else(bad)?;
        let milliseconds = || Nanos(number.saturating_mul(1_000_000)).to_string();
        match (name, kind) {
            ("packets" | "bytes", _) if limit.is_some() => {
                notes.add(line, argument, "a queue has one limit here; the first is taken");
            }
            ("packets", _) => limit = Some(format!("{number} packets")),
            ("bytes", _) => limit = Some(Bytes(number).to_string()),
            ("target" | "interval", "codel") => {
                parameters.push((if name == "target" { "target" } else { "interval" }, milliseconds()));
            }
            ("qdelay_ref", "pie") => parameters.push(("target", milliseconds())),
            ("max_burst", "pie") => parameters.push(("burst", milliseconds())),
            _ => notes.add(line, argument, format!("a {kind} queue has no such argument here")),
        }
    }
    let limited = limit.clone().unwrap_or_else(|| "unlimited".into());
    Ok(match kind {
        "infinite" => "\"unlimited\"".into(),
        "droptail" => longwire_scenario::quoted(&limited),
        "drophead" => super::stage::block("head-drop", &[("limit", limited)]),
        "codel" | "pie" => {
            parameters.insert(0, ("limit", limited));
            super::stage::block(kind, &parameters)
        }
        other => {
            let what = format!("mahimahi has no queue \"{other}\"");
            return Err(ImportError::new(line, what, "there are infinite, droptail, drophead, codel, pie"));
        }
    })
}

/// Parts in packet order, in as few links as preserve the order.
fn joined<'p>(parts: impl Iterator<Item = &'p Part>) -> Vec<Stage> {
    // A link's own order: state, loss, queue and rate, delay.
    let place = |part: &Part| match part {
        Part::OnOff(..) => 1,
        Part::Loss(_) => 2,
        Part::Link { .. } => 3,
        Part::Delay(_) => 4,
    };
    let mut stages: Vec<Stage> = Vec::new();
    let mut last = usize::MAX;
    for part in parts {
        if place(part) <= last {
            stages.push(Stage::default());
        }
        last = place(part);
        let Some(stage) = stages.last_mut() else { continue };
        part.write(stage);
    }
    stages
}

impl Part {
    fn write(&self, stage: &mut Stage) {
        match self {
            Self::OnOff(on, off) => {
                stage.block("state", "flap", &[("up", on.to_string()), ("down", off.to_string())]);
            }
            Self::Loss(share) => stage.set("loss", &share.text()),
            Self::Link { trace, once, queue } => {
                let end = if *once { "clear" } else { "loop" };
                let parameters = [("file", trace.clone()), ("end", end.into())];
                stage.block("rate", "trace", &parameters);
                stage.settings.push(("queue".into(), queue.clone()));
            }
            Self::Delay(delay) => stage.set("delay", &delay.to_string()),
        }
    }
}
