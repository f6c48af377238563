//! `longwire lab list`

use crate::outcome::print_report;
use crate::{Json, Outcome, outcome};
use longwire_report::shown::columns;
use longwire_report::{Report, Row, cells};
use longwire_run::labs::{LabEntry, labs};

/// List the labs
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire lab list
  longwire lab list --json")]
pub struct Args {
    #[command(flatten)]
    json: Json,
}

impl Args {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let labs = labs()?;
        if self.json.on {
            let mut report = Report::new("lab list");
            report.extend(labs.iter().map(row));
            return print_report(&report, true);
        }
        if labs.is_empty() {
            outcome::print("no lab is up; `longwire lab up scenarios/two-hosts.toml` makes one")?;
            return Ok(Outcome::Well);
        }
        let mut lines = vec![cells!["lab", "process", "hosts"]];
        lines.extend(labs.iter().map(line));
        outcome::print(&columns(&lines).join("\n"))?;
        Ok(Outcome::Well)
    }
}

fn hosts(lab: &LabEntry) -> Vec<String> {
    lab.info.hosts.iter().map(|host| host.name.clone()).collect()
}

fn line(lab: &LabEntry) -> Vec<String> {
    let process = lab.info.owner.map_or_else(|| "-".to_owned(), |pid| pid.to_string());
    let state = match lab.info.owner {
        _ if lab.info.dead => " (left by a killed process)",
        _ if lab.private => " (made without privileges)",
        _ => "",
    };
    vec![lab.info.instance.clone(), process, hosts(lab).join(", ") + state]
}

fn row(lab: &LabEntry) -> Row {
    Row::new(lab.info.instance.clone(), "hosts")
        .measured(lab.info.hosts.len())
        .extra("hosts", hosts(lab))
        .extra("pid", lab.info.owner)
        .extra("dead", lab.info.dead)
        .extra("private", lab.private)
}
