//! `longwire tunnel`

use crate::Outcome;
use crate::key_args::KeyArgs;

/// Make keys for tunnels between instances
///
/// A tunnel is a port (driver = "tunnel") of each of two instances. Both have the same key.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire tunnel key tunnel.key
  scp -p tunnel.key other:")]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Make a key file that only its owner can read
    #[command(after_long_help = "\
Examples:
  longwire tunnel key tunnel.key")]
    Key(KeyArgs),
}

impl Args {
    /// Runs the command.
    ///
    /// # Errors
    /// If the file exists, or can't be written.
    pub fn run(self) -> anyhow::Result<Outcome> {
        match self.action {
            Action::Key(args) => args.make("tunnel key"),
        }
    }
}
