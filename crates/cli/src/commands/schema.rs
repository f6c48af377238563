//! `longwire schema`

use crate::{Outcome, outcome};

/// Print the JSON schema of scenario files
///
/// Editors that support it complete keys, explain them and mark mistakes while you write.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire schema > longwire.schema.json")]
pub struct Args {}

impl Args {
    /// Prints it.
    ///
    /// # Errors
    /// If standard output can't be written to.
    pub fn run(self) -> anyhow::Result<Outcome> {
        outcome::print(&serde_json::to_string_pretty(&longwire_scenario::schema())?)
    }
}
