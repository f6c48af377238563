//! `longwire forwarder levels`

use super::answers::Fields;
use super::{Target, text};
use crate::{Outcome, outcome};
use anyhow::Context;
use longwire_control::ProgramRequest;
use longwire_report::Row;
use longwire_report::shown::{columns, count};
use serde_json::Value;

/// The counters, in the order of columns.
const NUMBERS: &str =
    "up verdicts late returned kept refused over_time worker_ns throttled absent made faults cut";

/// List the services and control processes above a router, with the outcome of their packets
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire forwarder levels r1
  longwire forwarder levels r1 --socket
  python3 control.py $(longwire forwarder levels r1 --socket) monitor")]
pub struct Args {
    #[command(flatten)]
    target: Target,

    /// Print only the path of the socket for control processes.
    #[arg(long, conflicts_with = "json")]
    socket: bool,
}

impl Args {
    /// Prints the list.
    ///
    /// # Errors
    /// If no instance is selected, or it does not answer, or there is no socket.
    pub fn run(self) -> anyhow::Result<Outcome> {
        let answer = self.target.ask(&ProgramRequest::Levels)?;
        let socket = answer["socket"].as_str();
        if self.socket {
            let none = "the router expects no control process: install a forwarder with --where control";
            return outcome::print(socket.context(none)?);
        }
        if self.target.of.json.on {
            return self.target.print_list("forwarder levels", answer, "attachments", level_row);
        }
        let head = ["level", "name", "there"].into_iter().chain(NUMBERS.split(' ')).chain(["why"]);
        let mut lines = vec![head.map(str::to_owned).collect::<Vec<_>>()];
        for attachment in answer["attachments"].as_array().into_iter().flatten() {
            let there = if attachment["there"] == Value::Bool(true) { "yes" } else { "no" };
            let numbers = NUMBERS.split(' ').map(|key| count(attachment[key].as_u64().unwrap_or_default()));
            let words = [text(&attachment["level"]), text(&attachment["name"]), there].map(str::to_owned);
            let why = attachment["last_cut"].as_str().unwrap_or("-").to_owned();
            lines.push(words.into_iter().chain(numbers).chain([why]).collect());
        }
        outcome::print(&columns(&lines).join("\n"))?;
        if let Some(socket) = socket {
            outcome::print(&format!("control processes attach at {socket}"))?;
        }
        Ok(Outcome::Well)
    }
}

/// A row as in the report of a run.
fn level_row(router: &str, attachment: Fields) -> Row {
    let word = |field: &str| attachment.get(field).map_or("", text);
    let row = Row::new(format!("{router} {} {}", word("level"), word("name")), "").extra("kind", "level");
    attachment.into_iter().fold(row, |row, (field, value)| match field.as_str() {
        "name" => row.extra("who", value),
        _ => row.extra(field, value),
    })
}
