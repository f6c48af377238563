//! `longwire forwarder get`

use super::answers::about_one;
use super::{Target, text};
use crate::{Outcome, outcome};
use longwire_control::{ProgramRequest, TypeQuery};
use serde_json::Value;

/// Print a program's state
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire forwarder get r1 1
  longwire forwarder get r1 1 --type limits
  longwire forwarder get r1 1 --json")]
pub struct Args {
    #[command(flatten)]
    target: Target,

    /// The program's number.
    fid: u32,

    /// A type of its object, such as the name of a structure, whose fields are shown. Default: hexadecimal
    /// digits.
    #[arg(long = "type", value_name = "NAME")]
    kind: Option<String>,
}

impl Args {
    /// Prints the state.
    ///
    /// # Errors
    /// If no instance is selected, or it does not answer, or has no such program.
    pub fn run(self) -> anyhow::Result<Outcome> {
        let answer = self.target.ask(&ProgramRequest::Get(self.fid, TypeQuery { kind: self.kind }))?;
        if self.target.json.on {
            return outcome::print_report(&about_one("forwarder get", &self.target.router, answer), true);
        }
        match &answer["fields"] {
            Value::Null => outcome::print(text(&answer["data"]))?,
            fields => outcome::print(&fields.to_string())?,
        }
        Ok(Outcome::Well)
    }
}
