//! Result of a command: its output and exit status.

use crate::Json;
use anyhow::Context;
pub use longwire_report::output::note;
use longwire_report::{Report, output};
use longwire_scenario::Plan;
use std::io::{self, Write};
use std::process::ExitCode;

/// Outcome of a command that ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Success: exit status 0.
    Well,
    /// The command ran, but its result is a failure: exit status 1.
    Failed,
    /// The exit status of a command that was executed.
    Status(u8),
}

impl Outcome {
    /// Success if `pass`, else failure.
    pub const fn of(pass: bool) -> Self {
        if pass { Self::Well } else { Self::Failed }
    }
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Well => Self::SUCCESS,
            Outcome::Failed => Self::from(1),
            Outcome::Status(status) => Self::from(status),
        }
    }
}

/// Prints a report, as JSON or as a table with the reasons of its failure, and returns the outcome.
///
/// # Errors
/// If standard output can't be written to.
pub fn print_report(report: &Report, json: bool) -> anyhow::Result<Outcome> {
    print_with(|out| {
        if json {
            return writeln!(out, "{}", report.to_json());
        }
        report.print_table(out)?;
        let failures = report.extra.get("failures").and_then(|list| list.as_array());
        let mut reasons = failures.into_iter().flatten().filter_map(|reason| reason.as_str());
        reasons.try_for_each(|reason| writeln!(out, "failed: {reason}"))
    })?;
    Ok(Outcome::of(report.pass))
}

/// Prints the report of a command that is silent on success, if JSON is requested, and returns the outcome.
///
/// # Errors
/// If standard output can't be written to.
pub fn print_if_json(report: &Report, json: Json) -> anyhow::Result<Outcome> {
    if json.on { print_report(report, true) } else { Ok(Outcome::of(report.pass)) }
}

/// Passes standard output to `write`: see [`output::print_with`]. Returns success.
///
/// # Errors
/// If standard output can't be written to.
pub fn print_with(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> anyhow::Result<Outcome> {
    output::print_with(write).context("can't write to standard output").map(|()| Outcome::Well)
}

/// Prints `text` and a newline, and returns success.
///
/// # Errors
/// If standard output can't be written to.
pub fn print(text: &str) -> anyhow::Result<Outcome> {
    print_with(|out| writeln!(out, "{text}"))
}

/// Prints notes on parts of a scenario that are allowed but look like mistakes.
pub fn print_notes(plan: &Plan) {
    plan.notes.iter().for_each(|finding| note(&format!("note: {finding}")));
}

/// Whether an error means that the output's reader has closed it, as in `longwire … | head`.
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    causes.any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::anyhow;

    #[test]
    fn a_closed_pipe_is_no_failure() {
        let closed =
            Err::<(), _>(io::Error::from(io::ErrorKind::BrokenPipe)).context("printing").unwrap_err();
        assert!(is_closed_pipe(&closed));
        assert!(!is_closed_pipe(&anyhow!("else")));
    }
}
