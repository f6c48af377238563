//! `longwire log`

use crate::{Json, Outcome, outcome};
use anyhow::ensure;
use longwire_block::DropReason;
use longwire_report::output::print_with;
use longwire_run::link_pattern::{LinkPattern, LinkSearch};
use longwire_run::packet_log::following::follow;
use longwire_run::packet_log::printing::{COLUMNS, LineFormat};
use longwire_run::packet_log::reading::{Entry, read};
use longwire_run::packet_log::row::Event;
use longwire_scenario::name_hint;
use longwire_units::{Nanos, counted};
use std::cell::RefCell;
use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;

/// Print the packet log of a run
///
/// Reads a log of longwire run --log or longwire exec --log, .lwlog or .pcapng, and prints a line for each
/// event, as columns, CSV, or JSON lines, in the order in which they were decided. Times are from the start
/// of the run. A packet keeps its number from link to link. With --follow it goes on while the log is
/// written.
#[derive(Debug, clap::Args)]
#[command(mut_arg("json", |json| json.help("Print a JSON object for each event")))]
#[command(after_long_help = "\
Examples:
  longwire run scenarios/two-hosts.toml --virtual --log run.lwlog
  longwire log run.lwlog --event drop
  longwire log run.lwlog --link 'dsl*' --reason queue-full --from 10s --to 20s --csv > drops.csv
  longwire log run.lwlog --follow --event drop
  longwire log run.lwlog --sort --json
  longwire log run.pcapng --json")]
pub struct Args {
    /// The log.
    file: PathBuf,

    /// Print also what is added, with the files that follow this one, until the run ends.
    #[arg(long, short)]
    follow: bool,

    /// Print events in order of time, which takes memory for all of them.
    #[arg(long, conflicts_with = "follow")]
    sort: bool,

    /// Print CSV with a line of column names.
    #[arg(long, conflicts_with = "json")]
    csv: bool,

    /// Only events at links with these names; * and ? are wildcards, commas separate names.
    #[arg(long, value_name = "NAMES")]
    link: Option<LinkPattern>,

    /// Only events of this kind: arrive, leave, drop, mark, steer or lost; repeatable.
    #[arg(long, value_name = "EVENT", value_parser = event)]
    event: Vec<Event>,

    /// Only drops for this reason, such as queue-full; repeatable.
    #[arg(long, value_name = "REASON", value_parser = reason)]
    reason: Vec<String>,

    /// Only events of the packet with this number.
    #[arg(long, value_name = "NUMBER")]
    id: Option<u64>,

    /// Only events from this time on.
    #[arg(long, value_name = "TIME")]
    from: Option<Nanos>,

    /// Only events before this time.
    #[arg(long, value_name = "TIME")]
    to: Option<Nanos>,

    #[command(flatten)]
    json: Json,
}

/// Bytes that are printed at once.
const AT_ONCE: usize = 64 * 1024;

/// Prints the text, and empties it.
fn show(text: &mut String) -> io::Result<()> {
    print_with(|out| out.write_all(text.as_bytes()))?;
    text.clear();
    Ok(())
}

/// Adds an event to the text, which is printed if it is long.
fn print(entry: &Entry, format: LineFormat, text: &mut String) -> io::Result<()> {
    entry.write(format, text);
    if text.len() > AT_ONCE { show(text) } else { Ok(()) }
}

fn event(name: &str) -> Result<Event, String> {
    let names = || Event::ALL.map(Event::name).join(", ");
    Event::of_name(name).ok_or_else(|| format!("there are {}", names()))
}

fn reason(name: &str) -> Result<String, String> {
    let known: Vec<_> = DropReason::ALL.iter().map(|reason| reason.name()).collect();
    if known.contains(&name) { Ok(name.into()) } else { Err(name_hint(name, &known)) }
}

impl Args {
    /// Prints the events.
    ///
    /// # Errors
    /// If the file is not a packet log, or is damaged.
    pub fn run(self) -> anyhow::Result<Outcome> {
        if let (Some(from), Some(to)) = (self.from, self.to) {
            ensure!(from < to, "--from {from} is not before --to {to}");
        }
        let format = match (self.csv, self.json.on) {
            (true, _) => LineFormat::Csv,
            (false, true) => LineFormat::Json,
            (false, false) => LineFormat::Text,
        };
        let (mut lost, text) = (0, RefCell::new(String::new()));
        let mut unsorted = Vec::new();
        let mut search = LinkSearch::new(self.link.as_ref());
        if format == LineFormat::Csv {
            let _ = writeln!(text.borrow_mut(), "{}", COLUMNS.join(","));
        }
        let mut then = |entry: Entry| {
            lost += if entry.event == Event::Lost { entry.id } else { 0 };
            entry.link.iter().for_each(|name| search.see(name));
            match self.wants(&entry) {
                true if self.sort => unsorted.push(entry),
                true => print(&entry, format, &mut text.borrow_mut())?,
                false => {}
            }
            Ok(())
        };
        let result = if self.follow {
            follow(&self.file, &|| show(&mut text.borrow_mut()), &mut then)
        } else {
            read(&self.file, &mut then)
        };
        // Events of one time stay in their order.
        unsorted.sort_by_key(|entry: &Entry| entry.time_ns);
        unsorted.iter().try_for_each(|entry| print(entry, format, &mut text.borrow_mut()))?;
        show(&mut text.borrow_mut())?;
        if lost > 0 {
            outcome::note(&format!("the log is incomplete: {} lost", counted(lost, "event")));
        }
        let none = search.fits_none(&format!("the log {}", self.file.display()));
        none.iter().for_each(|none| outcome::note(&format!("note: {none}")));
        result.map(|()| Outcome::Well)
    }

    fn wants(&self, entry: &Entry) -> bool {
        let link = || entry.link.as_deref();
        let reason = |wanted: &String| entry.reason.as_deref() == Some(wanted);
        self.link.as_ref().is_none_or(|pattern| link().is_some_and(|name| pattern.fits(name)))
            && (self.event.is_empty() || self.event.contains(&entry.event))
            && (self.reason.is_empty() || self.reason.iter().any(reason))
            && self.id.is_none_or(|id| entry.id == id && entry.event != Event::Lost)
            && self.from.is_none_or(|from| entry.time_ns >= from.0)
            && self.to.is_none_or(|to| entry.time_ns < to.0)
    }
}
