//! `longwire forwarder levels`

use super::answers::{Fields, report};
use super::{ask, text};
use crate::{Json, Outcome, outcome};
use anyhow::Context;
use longwire_control::ForwarderAsk;
use longwire_report::Row;
use longwire_report::shown::{columns, count};
use serde_json::Value;

/// What is counted, in the order of columns.
const NUMBERS: [&str; 13] = [
    "up",
    "verdicts",
    "late",
    "returned",
    "kept",
    "refused",
    "over_time",
    "worker_ns",
    "throttled",
    "absent",
    "made",
    "faults",
    "cut",
];

/// List who is above a router: services, control processes, and what became of their packets
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire forwarder levels r1
  longwire forwarder levels r1 --socket
  python3 control.py $(longwire forwarder levels r1 --socket) monitor")]
pub struct Args {
    /// The router.
    router: String,

    /// The instance, by name, process number or both (name-number).
    #[arg(long)]
    instance: Option<String>,

    /// Print the path of the socket by which control processes come, and nothing else.
    #[arg(long, conflicts_with = "json")]
    socket: bool,

    #[command(flatten)]
    json: Json,
}

impl Args {
    /// Prints it.
    ///
    /// # Errors
    /// If no instance is meant, or it does not answer, or there is no socket.
    pub fn run(self) -> anyhow::Result<Outcome> {
        let answer = ask(self.instance.as_deref(), &self.router, &ForwarderAsk::Levels)?;
        let socket = answer["socket"].as_str();
        if self.socket {
            let none = "no control process is expected there: install a forwarder with --where control";
            outcome::print(socket.context(none)?)?;
            return Ok(Outcome::Well);
        }
        if self.json.on {
            let row = |seat| level_row(&self.router, seat);
            return outcome::print_report(
                &report("forwarder levels", &self.router, answer, "seats", row),
                true,
            );
        }
        let head = ["level", "name", "there"].into_iter().chain(NUMBERS).chain(["why"]);
        let mut lines = vec![head.map(str::to_owned).collect::<Vec<_>>()];
        for seat in answer["seats"].as_array().into_iter().flatten() {
            let there = if seat["there"] == Value::Bool(true) { "yes" } else { "no" };
            let numbers = NUMBERS.iter().map(|key| count(seat[key].as_u64().unwrap_or_default()));
            let words = [text(&seat["level"]), text(&seat["name"]), there].map(str::to_owned);
            let why = seat["last_cut"].as_str().unwrap_or("-").to_owned();
            lines.push(words.into_iter().chain(numbers).chain([why]).collect());
        }
        outcome::print(&columns(&lines).join("\n"))?;
        if let Some(socket) = socket {
            outcome::print(&format!("control processes come by {socket}"))?;
        }
        Ok(Outcome::Well)
    }
}

/// A row as in the report of a run.
fn level_row(router: &str, seat: Fields) -> Row {
    let word = |field: &str| seat.get(field).map_or("", text);
    let row = Row::new(format!("{router} {} {}", word("level"), word("name")), "").extra("kind", "level");
    seat.into_iter().fold(row, |row, (field, value)| match field.as_str() {
        "name" => row.extra("who", value),
        _ => row.extra(field, value),
    })
}
