//! The log of a service on standard error: a line per event, with its time.

use chrono::{DateTime, SecondsFormat};
use longwire_report::printable;
use longwire_units::Nanos;
use serde_json::{Map, Value};
use std::io::Write;
use std::sync::Mutex;

/// Formats of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// The time, the level, the event, then its fields as KEY=VALUE.
    Text,
    /// A JSON object per line, with the time as text and as nanoseconds since 1970.
    Json,
}

/// Writes events as whole lines.
#[derive(Debug)]
pub struct EventLog {
    format: Format,
    writing: Mutex<()>,
}

/// A field of an event: its name and its value.
pub type Field<'f> = (&'f str, Value);

impl EventLog {
    /// A log in this format.
    pub const fn new(format: Format) -> Self {
        Self { format, writing: Mutex::new(()) }
    }

    /// Logs something that happened as intended.
    pub fn info(&self, event: &str, fields: &[Field<'_>]) {
        self.write("info", event, fields);
    }

    /// Logs something that was not done; the service goes on.
    pub fn warning(&self, event: &str, fields: &[Field<'_>]) {
        self.write("warning", event, fields);
    }

    /// Logs a failure.
    pub fn error(&self, event: &str, fields: &[Field<'_>]) {
        self.write("error", event, fields);
    }

    fn write(&self, level: &str, event: &str, fields: &[Field<'_>]) {
        let line = line(self.format, longwire_clock::realtime(), (level, event), fields);
        let _whole = self.writing.lock();
        // If the log can't be written, that can't be logged either.
        let _ = writeln!(std::io::stderr(), "{line}");
    }
}

fn line(format: Format, now: Nanos, (level, event): (&str, &str), fields: &[Field<'_>]) -> String {
    let time = timestamp(now);
    match format {
        Format::Json => {
            let head = [
                ("time", time.into()),
                ("time_ns", now.0.into()),
                ("level", level.into()),
                ("event", event.into()),
            ];
            let all: Map<String, Value> =
                head.iter().chain(fields).map(|(key, value)| ((*key).into(), value.clone())).collect();
            printable(&Value::Object(all).to_string()).into_owned()
        }
        Format::Text => {
            let fields = fields.iter().map(|(key, value)| format!(" {key}={}", plain(value)));
            let text = format!("{time} {level} {event}{}", fields.collect::<String>());
            printable(&text).into_owned()
        }
    }
}

/// A value, without quotes if it is one word.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text)
            if !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || "\"=".contains(c)) =>
        {
            text.clone()
        }
        other => other.to_string(),
    }
}

/// A time since 1970 in RFC 3339 format, in UTC with milliseconds.
fn timestamp(time: Nanos) -> String {
    let time = DateTime::from_timestamp_nanos(i64::try_from(time.0).unwrap_or(i64::MAX));
    time.to_rfc3339_opts(SecondsFormat::Millis, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_827_696, "2000-02-29T12:34:56.000Z"),
            (1_735_689_599, "2024-12-31T23:59:59.000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(timestamp(Nanos::from_secs(seconds)), text);
        }
        assert_eq!(timestamp(Nanos(1_999_999)), "1970-01-01T00:00:00.001Z");
    }

    #[test]
    fn a_line_is_an_event() {
        let fields = [("scenario", Value::from("dsl")), ("file", "a b.toml".into()), ("changes", 3.into())];
        let text = line(Format::Text, Nanos::ZERO, ("info", "applied"), &fields);
        let expected = "1970-01-01T00:00:00.000Z info applied scenario=dsl file=\"a b.toml\" changes=3";
        assert_eq!(text, expected);
        let json = line(Format::Json, Nanos(7), ("error", "failed"), &fields);
        let read: Value = serde_json::from_str(&json).unwrap();
        assert_eq!((&read["time_ns"], &read["level"]), (&7.into(), &"error".into()));
        assert_eq!((&read["event"], &read["changes"]), (&"failed".into(), &3.into()));
        // A name can neither begin a line nor steer the terminal.
        let hostile = [("link", Value::from("a\nb\u{1b}[2J"))];
        for format in [Format::Text, Format::Json] {
            let line = line(format, Nanos::ZERO, ("info", "changed"), &hostile);
            assert!(!line.contains(['\n', '\u{1b}']), "{line}");
        }
    }
}
