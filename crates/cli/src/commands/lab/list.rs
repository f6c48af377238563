//! `longwire lab list`

use crate::{Json, Outcome, outcome};
use longwire_report::shown::columns;
use longwire_report::{Report, Row, cells};
use longwire_run::labs::{LabEntry, labs};

/// Prints the labs.
///
/// # Errors
/// If they can't be found.
pub(super) fn list(json: Json) -> anyhow::Result<Outcome> {
    let labs = labs()?;
    if json.on {
        return outcome::print_report(&Report::new("lab list").with_rows(labs.iter().map(row)), true);
    }
    if labs.is_empty() {
        return outcome::print("no lab is up; `longwire lab up scenarios/two-hosts.toml` makes one");
    }
    let mut lines = vec![cells!["lab", "process", "hosts"]];
    lines.extend(labs.iter().map(line));
    outcome::print(&columns(&lines).join("\n"))
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
