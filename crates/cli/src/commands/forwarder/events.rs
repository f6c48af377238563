//! `longwire forwarder events`

use super::{Target, shown, text};
use crate::stop_flag::stop_flag;
use crate::{Outcome, outcome};
use longwire_control::{ProgramRequest, Rings};
use longwire_halves::Interval;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Print the records of a program's rings (ringbuf, perf_event_array) as they arrive
///
/// A record that is read is removed from its ring. Records without room in a ring are lost, and their number
/// is printed.
#[derive(Debug, clap::Args)]
#[command(mut_arg("json", |json| {
    json.help("Print a JSON object for each record, and one when records were lost")
}))]
#[command(after_long_help = "\
Examples:
  longwire forwarder events r1 1
  longwire forwarder events r1 1 flows --type flow_event --json
  longwire forwarder events r1 1 --once")]
pub struct Args {
    #[command(flatten)]
    target: Target,

    /// The program's number.
    fid: u32,

    /// The ring. Default: all rings of the program.
    map: Option<String>,

    /// A type of its object, such as the name of a structure, whose fields are shown. Default: hexadecimal
    /// digits.
    #[arg(long = "type", value_name = "NAME")]
    kind: Option<String>,

    /// Polling interval of the rings.
    #[arg(long, value_name = "TIME", default_value = "100 ms")]
    interval: Interval,

    /// Print the available records and end.
    #[arg(long)]
    once: bool,
}

/// Longest pause between checks whether to stop.
const MOMENT: Duration = Duration::from_millis(50);

impl Args {
    /// Prints records until it is stopped.
    ///
    /// # Errors
    /// If no instance is selected, it no longer answers, or has no such program, ring or type.
    pub fn run(self) -> anyhow::Result<Outcome> {
        let stop = stop_flag()?;
        let asked =
            ProgramRequest::Events(self.fid, Rings { map: self.map.clone(), kind: self.kind.clone() });
        let mut lost = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            let answer = self.target.ask(&asked)?;
            for record in answer["records"].as_array().into_iter().flatten() {
                outcome::print(&self.line(record))?;
            }
            self.say_lost(&answer, &mut lost)?;
            if answer["more"] == Value::Bool(true) {
                continue;
            }
            if self.once {
                break;
            }
            pause(Duration::from_nanos(self.interval.nanos().0), &stop);
        }
        Ok(Outcome::Well)
    }

    fn line(&self, record: &Value) -> String {
        if self.target.of.json.on {
            let mut line = record.clone();
            line["event"] = "record".into();
            return line.to_string();
        }
        let time = record["time_ns"].as_u64().unwrap_or_default();
        let (seconds, nanos) = (time / 1_000_000_000, time % 1_000_000_000);
        let data = shown(&record["fields"], &record["data"]);
        format!("{seconds}.{nanos:09} {} {data}", text(&record["map"]))
    }

    /// Reports how many records were lost since the last report.
    fn say_lost(&self, answer: &Value, said: &mut Vec<u64>) -> anyhow::Result<()> {
        for (place, ring) in answer["rings"].as_array().into_iter().flatten().enumerate() {
            let now = ring["lost"].as_u64().unwrap_or_default();
            if said.len() <= place {
                said.push(0);
            }
            let more = now - said[place].min(now);
            said[place] = now;
            let name = &ring["name"];
            if more > 0 && self.target.of.json.on {
                outcome::print(&json!({ "event": "lost", "map": name, "records": more }).to_string())?;
            } else if more > 0 {
                outcome::note(&format!("{}: {more} records found no room and are lost", text(name)));
            }
        }
        Ok(())
    }
}

fn pause(length: Duration, stop: &AtomicBool) {
    let end = Instant::now() + length;
    while !stop.load(Ordering::Relaxed) {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        std::thread::sleep(left.min(MOMENT));
    }
}
