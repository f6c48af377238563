//! `longwire ctl diff`, `apply` and `save`

use super::elsewhere::{Elsewhere, InstanceName};
use crate::{Json, Outcome, outcome};
use anyhow::Context;
use longwire_control::{ClientError, Comparison, ObjectDifference, RewiredObject, ScenarioRequest};
use longwire_report::{Report, Row, whole_file};
use std::path::{Path, PathBuf};

/// Change the running scenario to that of a file by the fewest changes
///
/// Settings of links, sources and media change at one instant, then those of each router. Then links and
/// hosts that are new join and those that are gone leave, at one instant. Nothing else is touched, and no
/// packet elsewhere is lost by it. All is checked first: if something can't change, nothing is applied,
/// unless the other settings are wanted (--partial).
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire ctl apply net.toml
  longwire ctl apply net.toml two-hosts --partial
  longwire ctl diff net.toml")]
pub(super) struct Apply {
    #[command(flatten)]
    scenario: ScenarioArgs,

    /// Change the settings that can change if something else can't, and exit with 1; nothing is added or
    /// removed then.
    #[arg(long)]
    partial: bool,
}

/// The scenario and the instance.
#[derive(Debug, clap::Args)]
pub(super) struct ScenarioArgs {
    /// The scenario file; - is standard input.
    file: PathBuf,

    #[command(flatten)]
    instance: InstanceName,

    #[command(flatten)]
    json: Json,
}

/// Write the running scenario to a file
///
/// It is the scenario that was started or applied last, with the changes made since as events ([[at]]) at
/// time 0 at its end. Programs that were installed while it ran, and their state, are not included.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire ctl save > now.toml
  longwire ctl save two-hosts --output now.toml")]
pub(super) struct Save {
    #[command(flatten)]
    instance: InstanceName,

    /// The file to write. Default: standard output.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    json: Json,
}

impl ScenarioArgs {
    pub(super) fn diff(&self, at: &Elsewhere) -> anyhow::Result<Outcome> {
        let toml = longwire_scenario::read_text(&self.file)?;
        let compared = at.connect(self.instance.get())?.compare(&toml);
        let comparison = compared.map_err(|error| in_file(error, &self.file, &toml))?;
        let mut report = self.show("ctl diff", &comparison)?;
        if !report.rows.is_empty() {
            report.fail("what runs differs from the scenario");
        }
        outcome::print_if_json(&report, self.json)
    }

    fn show(&self, command: &str, comparison: &Comparison) -> anyhow::Result<Report> {
        let mut all = Vec::new();
        for change in &comparison.changes {
            let row = Row::new(&*change.name, "").extra("kind", change.kind.word());
            all.push((row.extra("settings", serde_json::to_value(&change.settings)?), line(change)));
        }
        all.extend(rows(&comparison.removed, &comparison.added).map(|(row, object, what)| {
            let line = format!("{} {}: {what}", object.kind, object.name);
            (row, line)
        }));
        if comparison.paths {
            let row = Row::new("paths", "").extra("kind", "paths");
            all.push((row, "paths: packets take other ones".to_owned()));
        }
        all.extend(comparison.refused.iter().map(|refused| {
            let row = Row::new(&*refused.what, "").extra("kind", "refused").note(&*refused.reason);
            (row, format!("can't change: {}: {}", refused.what, refused.reason))
        }));
        let mut report = Report::new(command);
        for (row, line) in all {
            report.push(row);
            if !self.json.on {
                outcome::print(&line)?;
            }
        }
        Ok(report)
    }
}

/// An instance's refusal of a file's text: the mistakes with their places in the file.
///
/// The instance reads the text in its own folder, so it judges. Of those that are found here, the ones that
/// it has reported have all their fields; otherwise its text remains, with the file's name.
pub(super) fn in_file(refused: ClientError, file: &Path, text: &str) -> anyhow::Error {
    let ClientError::Refused(problem) = refused else { return refused.into() };
    let file = file.display().to_string();
    if let Err(mut found) = longwire_scenario::parse(&file, text) {
        found.findings.retain(|finding| problem.detail.contains(&finding.what));
        if !found.findings.is_empty() {
            return found.into();
        }
    }
    ClientError::Refused(Box::new(problem.in_file(&file))).into()
}

/// A row for each object that was removed or added, and what was done.
pub(super) fn rows<'a>(
    removed: &'a [RewiredObject],
    added: &'a [RewiredObject],
) -> impl Iterator<Item = (Row, &'a RewiredObject, &'static str)> {
    let all = removed.iter().map(|one| (one, "removed")).chain(added.iter().map(|one| (one, "added")));
    all.map(|(object, what)| {
        let row = Row::new(&*object.name, "").extra("kind", &*object.kind).extra("done", what);
        (row, object, what)
    })
}

/// A changed object on one line: `link up.forward: delay 20 ms -> 40 ms, loss none -> 1 %`.
fn line(change: &ObjectDifference) -> String {
    let value = |text: &Option<String>| match text.as_deref() {
        None => "none".to_owned(),
        Some("") => "\"\"".to_owned(),
        Some(text) => text.replace('\n', "; "),
    };
    let each = change
        .settings
        .iter()
        .map(|setting| format!("{} {} -> {}", setting.key, value(&setting.now), value(&setting.wanted)));
    format!("{} {}: {}", change.kind.word(), change.name, each.collect::<Vec<_>>().join(", "))
}

impl Apply {
    pub(super) fn run(&self, at: &Elsewhere) -> anyhow::Result<Outcome> {
        let ScenarioArgs { file, instance, .. } = &self.scenario;
        let wanted = ScenarioRequest { toml: longwire_scenario::read_text(file)?, partial: self.partial };
        let applied = at.connect(instance.get())?.apply(&wanted);
        let comparison = applied.map_err(|error| in_file(error, file, &wanted.toml))?;
        let mut report = self.scenario.show("ctl apply", &comparison)?;
        if report.rows.is_empty() && !self.scenario.json.on {
            outcome::note("nothing differs");
        }
        if !comparison.refused.is_empty() {
            report.fail("what runs still differs from the scenario");
        }
        outcome::print_if_json(&report, self.scenario.json)
    }
}

impl Save {
    pub(super) fn run(&self, at: &Elsewhere) -> anyhow::Result<Outcome> {
        let client = at.connect(self.instance.get())?;
        let toml = client.scenario()?;
        if let Some(file) = &self.output {
            whole_file::write(file, &toml).with_context(|| format!("can't write {}", file.display()))?;
        } else if !self.json.on {
            outcome::print(toml.trim_end())?;
        }
        let row = Row::new(client.name(), "").extra("kind", "instance").extra("toml", toml);
        outcome::print_if_json(&Report::new("ctl save").with_rows([row]), self.json)
    }
}
