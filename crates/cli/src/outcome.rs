//! How a command ends: what it prints and the exit status.

use longwire_report::Report;
use longwire_scenario::Plan;
use std::io::{self, Write};
use std::process::ExitCode;

/// How a command ended that could be carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// All is well: exit status 0.
    Well,
    /// It was done, and its result is not what it should be: exit status 1.
    Failed,
    /// The exit status of a command that was run.
    Status(u8),
}

impl Outcome {
    /// Well if `pass`, else failed.
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

/// Prints a report, as JSON or as a table with the reasons of its failure, and says whether it passed.
///
/// # Errors
/// If standard output can't be written to.
pub fn print_report(report: &Report, json: bool) -> anyhow::Result<Outcome> {
    let mut out = io::stdout().lock();
    if json {
        writeln!(out, "{}", report.to_json())?;
    } else {
        report.print_table(&mut out)?;
        let failures = report.extra.get("failures").and_then(|list| list.as_array());
        for reason in failures.into_iter().flatten().filter_map(|reason| reason.as_str()) {
            writeln!(out, "failed: {reason}")?;
        }
    }
    out.flush()?;
    Ok(Outcome::of(report.pass))
}

/// Prints `text` and a newline.
///
/// # Errors
/// If standard output can't be written to.
pub fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}")?;
    Ok(out.flush()?)
}

/// Says something beside the result, on standard error.
pub fn note(text: &str) {
    // Where nobody reads notes there is nobody to tell that they can't be written.
    let _ = writeln!(io::stderr(), "{text}");
}

/// Says what in a scenario is allowed and yet looks like a mistake.
pub fn print_notes(plan: &Plan) {
    plan.notes.iter().for_each(|finding| note(&format!("note: {finding}")));
}

/// Whether an error is that nobody reads the output any more, as in `longwire … | head`.
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let kinds = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind);
    kinds.into_iter().any(|kind| kind == io::ErrorKind::BrokenPipe)
}

/// An error and its causes in one line, without those whose text is in one before.
pub fn chain(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::{Context, anyhow};

    #[test]
    fn causes_are_told_once() {
        let error =
            anyhow!("no such file").context("x.toml: no such file; name another").context("can't load");
        assert_eq!(chain(&error), "can't load: x.toml: no such file; name another");
    }

    #[test]
    fn a_closed_pipe_is_no_failure() {
        let closed =
            Err::<(), _>(io::Error::from(io::ErrorKind::BrokenPipe)).context("printing").unwrap_err();
        assert!(is_closed_pipe(&closed));
        assert!(!is_closed_pipe(&anyhow!("else")));
    }
}
