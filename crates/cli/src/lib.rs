//! The `longwire` command: one file per subcommand under [`commands`], and their shared code.
//!
//! A subcommand is a file under `commands/` and a line in its list. Commands return an [`Outcome`]; a failure
//! is an error, printed with its causes.
#![forbid(unsafe_code)]

mod browser;
mod causes;
pub mod commands;
mod completion;
mod foreground;
pub mod json;
mod key_args;
pub mod outcome;
pub mod progress;
mod record_args;
mod record_warnings;
pub mod stop_flag;
pub mod usage;

pub use json::Json;
pub use outcome::Outcome;

use clap::{FromArgMatches, Parser};
use clap_complete::CompleteEnv;
use std::io::Write;
use std::process::ExitCode;

/// Longwire puts the network of your choice between real programs.
///
/// It carries real packets through emulated links with bandwidth, delay, loss and queues, and reports how
/// faithful the emulation was. The same scenario runs in real time on interfaces and test hosts, and in
/// virtual time on captures and traffic sources.
#[derive(Debug, Parser)]
#[command(name = "longwire", version, max_term_width = 110, after_long_help = EXAMPLES)]
#[command(arg_required_else_help = true, subcommand_required = true)]
pub struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: commands::Command,
}

const EXAMPLES: &str = "\
Examples:
  longwire demo
  longwire exec --rate 4mbit --delay 60ms --loss 1% -- curl -O https://example.org/
  longwire check scenarios/two-hosts.toml
  longwire run scenarios/two-hosts.toml --virtual
  longwire run scenarios/two-hosts.toml --for 30s
  longwire ctl set up.forward rate=5mbit delay=40ms

Exit status: 0 when all went well, 1 when a result failed, 2 when something could not be done: a
wrong option, a mistake in a scenario, a missing privilege.";

/// Runs the command given by the process's arguments.
pub fn main() -> ExitCode {
    if longwire_bench::play_control_process() || longwire_validate::play_stage() {
        return ExitCode::SUCCESS;
    }
    CompleteEnv::with_factory(|| completion::completing(usage::command()))
        .var(completion::VARIABLE)
        .complete();
    longwire_rundir::on_wait(outcome::note);
    let words: Vec<_> = std::env::args_os().collect();
    let as_json = json::is_wanted(words.get(1..).unwrap_or_default());
    let parsed = usage::command().try_get_matches_from(&words);
    let cli = match parsed.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => {
            usage::print(&error);
            if as_json && error.use_stderr() {
                print_error(&json::of_usage(&error));
            } else if error.use_stderr() {
                commands::exec::write_usage_error(&words, &json::of_usage(&error));
            }
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    match cli.command.run() {
        Ok(outcome) => outcome.into(),
        Err(error) if outcome::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let (red, plain) =
                if longwire_report::output::has_colours() { ("\x1b[1;31m", "\x1b[0m") } else { ("", "") };
            // If the message can't be written, the exit status still reports the error.
            let _ = writeln!(std::io::stderr(), "{red}error:{plain} {}", causes::chain(&error));
            if as_json {
                print_error(&json::of_error(&error));
            }
            ExitCode::from(2)
        }
    }
}

/// Prints an error as JSON on standard output, in addition to the text on standard error.
fn print_error(error: &serde_json::Value) {
    // If the object can't be written, the exit status still reports the error.
    let _ = outcome::print(&format!("{error:#}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_well_formed() {
        usage::command().debug_assert();
    }
}
