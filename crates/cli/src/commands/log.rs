//! `longwire log`

use crate::{Json, Outcome, outcome};
use anyhow::ensure;
use longwire_run::link_pattern::LinkPattern;
use longwire_run::packet_log::reading::{Entry, read};
use longwire_run::packet_log::row::Event;
use longwire_run::series::csv_text;
use longwire_units::{Nanos, counted};
use serde_json::json;
use std::fmt::Write;
use std::path::PathBuf;

/// Print the packet log of a run
///
/// Reads a log of longwire run --log or longwire exec --log, .lwlog or .pcapng, and prints a line for each
/// event, as columns, CSV, or JSON lines. Times are from the start of the run. A packet keeps its number from
/// link to link.
#[derive(Debug, clap::Args)]
#[command(mut_arg("json", |json| json.help("Print a JSON object for each event")))]
#[command(after_long_help = "\
Examples:
  longwire run scenarios/two-hosts.toml --virtual --log run.lwlog
  longwire log run.lwlog --event drop
  longwire log run.lwlog --link 'dsl*' --reason queue-full --from 10s --to 20s --csv > drops.csv
  longwire log run.pcapng --json")]
pub struct Args {
    /// The log.
    file: PathBuf,

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
    #[arg(long, value_name = "REASON")]
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
/// The columns, as in CSV and JSON.
const COLUMNS: [&str; 10] = [
    "time_ns",
    "event",
    "link",
    "id",
    "length",
    "segments",
    "reason",
    "arrival_ns",
    "leave_ns",
    "queue_bytes",
];

/// Prints the text, and empties it.
fn show(text: &mut String) -> anyhow::Result<()> {
    outcome::print_with(|out| out.write_all(text.as_bytes()))?;
    text.clear();
    Ok(())
}

fn event(name: &str) -> Result<Event, String> {
    let names = || Event::ALL.map(Event::name).join(", ");
    Event::of_name(name).ok_or_else(|| format!("there are {}", names()))
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
        let (mut lost, mut text) = (0, String::new());
        if self.csv {
            text = format!("{}\n", COLUMNS.join(","));
        }
        let result = read(&self.file, &mut |entry| {
            lost += if entry.event == Event::Lost { entry.id } else { 0 };
            if self.wants(&entry) {
                self.print(&entry, &mut text)?;
            }
            if text.len() > AT_ONCE {
                show(&mut text)?;
            }
            Ok(true)
        });
        show(&mut text)?;
        if lost > 0 {
            outcome::note(&format!("the log is incomplete: {} lost", counted(lost, "event")));
        }
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

    fn print(&self, entry: &Entry, out: &mut String) -> std::fmt::Result {
        let link = entry.link.as_deref();
        let reason = entry.reason.as_deref();
        let Entry { time_ns, event, id, length, segments, arrival_ns, leave_ns, queue_bytes, .. } = *entry;
        if self.json.on {
            let row = json!({
                "time_ns": time_ns, "event": event.name(), "link": link, "id": id, "length": length,
                "segments": segments, "reason": reason, "arrival_ns": arrival_ns, "leave_ns": leave_ns,
                "queue_bytes": queue_bytes,
            });
            return writeln!(out, "{row}");
        }
        if self.csv {
            let time = |time: Option<u64>| time.map(|time| time.to_string()).unwrap_or_default();
            let (link, reason) = (csv_text(link.unwrap_or_default()), csv_text(reason.unwrap_or_default()));
            let (arrival, leave) = (time(arrival_ns), time(leave_ns));
            let event = event.name();
            return writeln!(
                out,
                "{time_ns},{event},{link},{id},{length},{segments},{reason},{arrival},{leave},{queue_bytes}"
            );
        }
        let (seconds, nanos) = (time_ns / 1_000_000_000, time_ns % 1_000_000_000);
        if event == Event::Lost {
            return writeln!(out, "{seconds}.{nanos:09} lost   {} before this", counted(id, "event"));
        }
        let link = link.unwrap_or("-");
        write!(out, "{seconds}.{nanos:09} {:6} {link:12} #{id} {length} B", event.name())?;
        if segments > 1 {
            write!(out, " in {segments} segments")?;
        }
        if event == Event::Arrive && queue_bytes > 0 {
            write!(out, ", {queue_bytes} B in the queue")?;
        }
        if let Some(reason) = reason {
            write!(out, ", {reason}")?;
        }
        if let (Event::Leave, Some(arrival)) = (event, arrival_ns) {
            write!(out, ", after {}", Nanos(time_ns.saturating_sub(arrival)))?;
        }
        writeln!(out)
    }
}
