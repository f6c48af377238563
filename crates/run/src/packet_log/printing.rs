//! Entries of packet logs as lines: for people, as CSV and as JSON.

use super::reading::Entry;
use super::row::Event;
use crate::series::csv_text;
use longwire_units::{Nanos, counted};
use serde_json::json;
use std::borrow::Cow;
use std::fmt::Write;

/// A kind of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineFormat {
    /// For people.
    Text,
    /// With the columns of [`COLUMNS`].
    Csv,
    /// An object with these fields.
    Json,
}

/// The columns, as in CSV and JSON.
pub const COLUMNS: [&str; 10] = [
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

impl Entry {
    /// Appends the entry as a line.
    pub fn write(&self, format: LineFormat, out: &mut String) {
        // Writing to a String can't fail.
        let _ = match format {
            LineFormat::Text => self.text(out),
            LineFormat::Csv => self.csv(out),
            LineFormat::Json => self.json(out),
        };
    }

    fn json(&self, out: &mut String) -> std::fmt::Result {
        let (link, reason) = (self.link.as_deref(), self.reason.as_deref());
        let row = json!({
            "time_ns": self.time_ns, "event": self.event.name(), "link": link, "id": self.id,
            "length": self.length, "segments": self.segments, "reason": reason,
            "arrival_ns": self.arrival_ns, "leave_ns": self.leave_ns, "queue_bytes": self.queue_bytes,
        });
        writeln!(out, "{row}")
    }

    fn csv(&self, out: &mut String) -> std::fmt::Result {
        let time = |time: Option<u64>| time.map(|time| time.to_string()).unwrap_or_default();
        let Self { time_ns, id, length, segments, queue_bytes, .. } = self;
        let link = csv_text(self.link.as_deref().unwrap_or_default());
        let reason = csv_text(self.reason.as_deref().unwrap_or_default());
        let (arrival, leave, event) = (time(self.arrival_ns), time(self.leave_ns), self.event.name());
        writeln!(
            out,
            "{time_ns},{event},{link},{id},{length},{segments},{reason},{arrival},{leave},{queue_bytes}"
        )
    }

    fn text(&self, out: &mut String) -> std::fmt::Result {
        let Self { time_ns, event, id, length, segments, queue_bytes, .. } = *self;
        let (seconds, nanos) = (time_ns / 1_000_000_000, time_ns % 1_000_000_000);
        if event == Event::Lost {
            return writeln!(out, "{seconds}.{nanos:09} lost   {} before this", counted(id, "event"));
        }
        let link = self.link.as_deref().map_or_else(|| "-".into(), printable);
        write!(out, "{seconds}.{nanos:09} {:6} {link:12} #{id} {length} B", event.name())?;
        if segments > 1 {
            write!(out, " in {segments} segments")?;
        }
        if event == Event::Arrive && queue_bytes > 0 {
            write!(out, ", {queue_bytes} B in the queue")?;
        }
        if let Some(reason) = &self.reason {
            write!(out, ", {}", printable(reason))?;
        }
        if let (Event::Leave, Some(arrival)) = (event, self.arrival_ns) {
            write!(out, ", after {}", Nanos(time_ns.saturating_sub(arrival)))?;
        }
        writeln!(out)
    }
}

/// A name of a file from elsewhere as a terminal may show it: without line breaks and control sequences.
fn printable(name: &str) -> Cow<'_, str> {
    if name.contains(char::is_control) { name.escape_debug().to_string().into() } else { name.into() }
}
