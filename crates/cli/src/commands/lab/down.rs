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
            let Some(lab) = find(name)? else {
                return self.tell(&[EndedLab::by_itself(name)?.ok_or_else(|| unknown(name))?]);
            };
            return self.tell(&[take_down(&lab)?]);
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
        let mut printed = Ok(());
        for lab in all {
            let ended = take_down(lab).with_context(|| format!("can't take lab {} down", lab.info.instance));
            match ended {
                Ok(ended) if self.json.on => report.push(ended.row()),
                Ok(ended) => printed = printed.and_then(|()| print_ended(&ended)),
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
        if report.pass { printed.map(|()| Outcome::Well) } else { Ok(Outcome::Status(NOT_DOWN)) }
    }

    fn tell(&self, ended: &[EndedLab]) -> anyhow::Result<Outcome> {
        if !self.json.on {
            ended.iter().try_for_each(print_ended)?;
            return Ok(Outcome::Well);
        }
        let mut report = Report::new("lab down");
        report.extend(ended.iter().map(EndedLab::row));
        print_report(&report, true)
    }
}

/// Prints a lab that was taken down, with the last words of its run.
pub(crate) fn print_ended(ended: &EndedLab) -> anyhow::Result<()> {
    print_with(|out| {
        out.write_all(ended.words.text.as_bytes())?;
        ended.words.report.iter().try_for_each(|report| report_text::write(report, out))
    })?;
    if ended.by_itself { Ok(()) } else { outcome::print(&format!("lab {} is down", ended.name)) }
}
