//! `longwire lab`

mod down;
mod enter;
mod hold;
mod list;
mod up;

use crate::{Json, Outcome};
use clap::Subcommand;
pub(crate) use down::print_ended;

/// Keep a scenario's test hosts and links up, and run programs in them
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire lab up scenarios/two-hosts.toml
  longwire lab exec two-hosts a -- ping -c 3 b
  longwire lab list
  longwire lab down two-hosts")]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Up(up::Args),
    Exec(enter::Args),
    /// List the labs
    #[command(after_long_help = "\
Examples:
  longwire lab list
  longwire lab list --json")]
    List(Json),
    Down(down::Args),
    #[command(hide = true)]
    Hold(hold::Args),
}

impl Args {
    /// Runs the action.
    ///
    /// # Errors
    /// If there is no such lab, or the system does not allow it.
    pub fn run(self) -> anyhow::Result<Outcome> {
        match self.action {
            Action::Up(args) => args.run(),
            Action::Exec(args) => args.run(),
            Action::List(json) => list::list(json),
            Action::Down(args) => args.run(),
            Action::Hold(args) => args.run(),
        }
    }
}
