//! The `longwire` command: one file per subcommand under [`commands`], and their shared code.
//!
//! A subcommand is a file under `commands/` and a line in its list. Commands return an [`Outcome`]; a failure
//! is an error, printed with its causes.
#![forbid(unsafe_code)]

mod browser;
pub mod commands;
mod completion;
mod foreground;
mod inputs;
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
use std::ffi::OsString;
use std::io::{ErrorKind, Write};
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
    let words: Vec<_> = std::env::args_os().collect();
    CompleteEnv::with_factory(|| completion::completing(usage::command(), &words))
        .var(completion::VARIABLE)
        .complete();
    longwire_rundir::on_wait(outcome::note);
    let parsed = usage::command().try_get_matches_from(&words);
    let cli = match parsed.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => {
            if !error.use_stderr() {
                return match usage::print(&error) {
                    Err(why) if why.kind() != ErrorKind::BrokenPipe => {
                        outcome::note(&format!("longwire: can't write to standard output: {why}"));
                        ExitCode::from(2)
                    }
                    _ => ExitCode::SUCCESS,
                };
            }
            let object = json::of_usage(&error);
            if !commands::exec::write_usage_error(&words, &object) {
                // If it can't be printed, that can't be either.
                print_error(&words, &object, || _ = usage::print(&error));
            }
            return ExitCode::from(2);
        }
    };
    match cli.command.run() {
        Ok(outcome) => outcome.into(),
        Err(error) if outcome::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            print_error(&words, &json::of_error(&error), || {
                let (red, plain) =
                    if longwire_report::output::has_colours() { ("\x1b[1;31m", "\x1b[0m") } else { ("", "") };
                let causes = longwire_report::output::chain(error.as_ref());
                // If the message can't be written, the exit status still reports the error.
                let _ = writeln!(std::io::stderr(), "{red}error:{plain} {causes}");
            });
            ExitCode::from(2)
        }
    }
}

/// Prints an error of a command line: as an object on standard output if it has `--json`, and by `as_text` on
/// standard error, unless it is one whose errors are objects only.
fn print_error(words: &[OsString], object: &serde_json::Value, as_text: impl FnOnce()) {
    let words = words.get(1..).unwrap_or_default();
    let is_printed = json::is_wanted(words) && outcome::print(&format!("{object:#}")).is_ok();
    if !is_printed || !json::has_errors_as_objects_only(words) {
        as_text();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_well_formed() {
        usage::command().debug_assert();
    }
}
