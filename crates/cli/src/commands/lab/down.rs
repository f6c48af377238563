//! `longwire lab down`

use crate::outcome::{print_report, print_with};
use crate::{Json, Outcome, outcome};
use anyhow::Context;
use longwire_port::interface::clear_leftovers;
use longwire_report::Report;
use longwire_report::output::chain;
use longwire_run::labs::{EndedLab, LabEntry, find, labs, take_down, unknown};
use longwire_run::report_text;
use longwire_run::test_hosts::log_of;

/// The exit status if a lab can't be taken down.
const NOT_DOWN: u8 = 2;

/// Take labs down: end the programs in their hosts and remove everything that was made
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire lab down two-hosts
  longwire lab down --all")]
pub struct Args {
    /// The lab.
    #[arg(required_unless_present = "all")]
    lab: Option<String>,

    /// All labs made by `lab up`, and the remains of killed processes.
    #[arg(long, conflicts_with = "lab")]
    all: bool,

    #[command(flatten)]
    json: Json,
}

impl Args {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        if let Some(name) = &self.lab {
            let ended = match find(name)? {
                Some(lab) => take_down(&lab)?,
                None => EndedLab::by_itself(name)?.ok_or_else(|| unknown(name))?,
            };
            return match self.json.on {
                true => print_report(&Report::new("lab down").with_rows([ended.row()]), true),
                false => print_ended(&ended),
            };
        }
        // Listing the sockets removes those of killed runs. A directory that can't be used has none of ours.
        let _ = longwire_control::list(&longwire_control::directory());
        clear_leftovers();
        // Runs and commands behind a link have labs, too, which must be ended by their own processes.
        let kept =
            |lab: &LabEntry| lab.info.dead || lab.info.owner.is_none() || log_of(&lab.info.instance).exists();
        let all: Vec<_> = labs()?.into_iter().filter(kept).collect();
        if all.is_empty() && !self.json.on {
            outcome::print("no lab is up")?;
        }
        self.end_all(&all)
    }

    /// Takes each of these labs down; those that can't be don't keep the others up.
    fn end_all(&self, all: &[LabEntry]) -> anyhow::Result<Outcome> {
        let mut report = Report::new("lab down");
        let mut printed = Ok(Outcome::Well);
        for lab in all {
            let ended = take_down(lab).with_context(|| format!("can't take lab {} down", lab.info.instance));
            match ended {
                Ok(ended) if self.json.on => report.push(ended.row()),
                Ok(ended) => printed = printed.and_then(|_| print_ended(&ended)),
                Err(error) => {
                    let fault = chain(error.as_ref());
                    outcome::note(&format!("error: {fault}"));
                    report.fail(fault);
                }
            }
        }
        if self.json.on {
            printed = outcome::print(&report.to_json());
        }
        if report.pass { printed } else { Ok(Outcome::Status(NOT_DOWN)) }
    }
}

/// Prints a lab that was taken down, with the last words of its run.
pub(crate) fn print_ended(ended: &EndedLab) -> anyhow::Result<Outcome> {
    print_with(|out| {
        out.write_all(ended.words.text.as_bytes())?;
        ended.words.report.iter().try_for_each(|report| report_text::write(report, out))?;
        if ended.by_itself { Ok(()) } else { writeln!(out, "lab {} is down", ended.name) }
    })
}
