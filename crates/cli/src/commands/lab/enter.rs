//! `longwire lab exec`

use crate::commands::exec::not_started::{not_started, program};
use crate::{Outcome, outcome};
use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::os::unix::process::CommandExt;

/// Run a command in a host of a lab
///
/// Its process, exit code, terminal and signals are the command's own; the lab's host names resolve.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire lab exec two-hosts a -- ping -c 3 b
  longwire lab exec two-hosts b -- iperf3 -s
  longwire lab exec two-hosts a                  a shell")]
pub struct Args {
    /// The lab.
    lab: String,

    /// The host.
    host: String,

    /// The command and its arguments. Default: your shell.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl Args {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let lab = longwire_run::labs::open(&self.lab)?;
        let host = lab.host(&self.host)?;
        let (program, arguments) = program(&self.command, std::env::var_os("SHELL"));
        if self.command.is_empty() && io::stdin().is_terminal() {
            outcome::note(&format!("longwire: a shell in host {}; leave with exit", self.host));
        }
        // The command takes the place of this process, so that whoever started it can signal it.
        let error = host.command(&program)?.args(arguments).exec();
        let end = not_started(&program, None, &error);
        end.fault.iter().for_each(|fault| outcome::note(&format!("longwire: {fault}")));
        Ok(Outcome::Status(end.code))
    }
}
