//! `longwire sweep plan`

use crate::{Json, Outcome, outcome};
use longwire_report::Report;
use longwire_report::shown::columns;
use longwire_sweep::{Sweep, Task};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Tasks that are printed at once: there may be ten million.
const BATCH: usize = 10_000;

/// List the tasks of a sweep, and check it
///
/// Nothing is run. Each value is tried with the first ones of the other axes, of a long range a hundred
/// values: tasks that can't begin are named, and the exit status is 1. They fail when they run, and their
/// rows say so; other combinations may fail, too.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire sweep plan scenarios/sweeps/dumbbell.toml
  longwire sweep plan scenarios/sweeps/dumbbell.toml --json
  longwire sweep plan scenarios/sweeps/dumbbell.toml --count")]
pub struct Args {
    /// The file of the sweep.
    file: PathBuf,

    /// Print only the number of tasks, which are numbered from 0.
    #[arg(long, conflicts_with = "json")]
    count: bool,

    #[command(flatten)]
    json: Json,
}

impl Args {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let sweep = Sweep::load(&self.file)?;
        if self.count {
            return outcome::print(&sweep.count().to_string());
        }
        let faults: BTreeMap<u64, String> =
            sweep.faults().map(|(task, error)| (task, error.to_string())).collect();
        let mut tasks = (0..sweep.count()).map(|number| sweep.task(number));
        if self.json.on {
            let report = Report::new("sweep plan")
                .with("scenario", sweep.plan().file.as_str())
                .with("sweep", sweep.fingerprint())
                .with("tasks", sweep.count())
                .with("for_ns", sweep.time().map(|time| time.0))
                .with_rows(tasks.map(|task| match faults.get(&task.number) {
                    Some(why) => task.row().judged(false).note(why.as_str()),
                    None => task.row(),
                }));
            return outcome::print_report(&report, true);
        }
        let head = ["task"].into_iter().chain(sweep.axes()).chain(["seed"]);
        let widest = sweep.widest_cells();
        let mut lines = vec![head.map(String::from).collect::<Vec<_>>()];
        while !lines.is_empty() {
            // Columns are as wide in each batch.
            lines.push(widest.clone());
            let mut shown = columns(&lines);
            shown.pop();
            outcome::print(&shown.join("\n"))?;
            lines = tasks.by_ref().take(BATCH).map(Task::cells).collect();
        }
        for (task, why) in &faults {
            outcome::note(&format!("note: task {task} can't begin: {why}"));
        }
        Ok(Outcome::of(faults.is_empty()))
    }
}
