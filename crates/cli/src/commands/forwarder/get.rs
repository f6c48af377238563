//! `longwire forwarder get`

use super::{ask, text};
use crate::{Outcome, outcome};
use longwire_control::ForwarderAsk;

/// Print a program's state
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire forwarder get r1 1
  longwire forwarder get r1 1 --json")]
pub struct Args {
    /// The router.
    router: String,

    /// The program's number.
    fid: u32,

    /// The instance, by name, process number or both (name-number).
    #[arg(long)]
    instance: Option<String>,

    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Prints it.
    ///
    /// # Errors
    /// If no instance is meant, or it does not answer, or has no such program.
    pub fn run(self) -> anyhow::Result<Outcome> {
        let answer = ask(self.instance.as_deref(), &self.router, &ForwarderAsk::Get { fid: self.fid })?;
        if self.json {
            outcome::print(&serde_json::to_string_pretty(&answer)?)?;
        } else {
            outcome::print(text(&answer["data"]))?;
        }
        Ok(Outcome::Well)
    }
}
