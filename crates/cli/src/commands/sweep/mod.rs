//! `longwire sweep`

mod plan;
mod plot;
mod run;
mod table;

use crate::Outcome;

/// Run a scenario in virtual time for many values of its settings
///
/// A file names the scenario, and axes with the values of its settings; each combination is a task with a row
/// of results. Tasks run on all processors, as jobs of a cluster, or some now and the others later: the same
/// task gives the same row everywhere.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire sweep plan scenarios/sweeps/dumbbell.toml
  longwire sweep run scenarios/sweeps/dumbbell.toml --output rows.jsonl
  longwire sweep run scenarios/sweeps/dumbbell.toml --task 3
  longwire sweep table rows.jsonl --columns 'source.*.lost'
  longwire sweep table rows.jsonl --csv > rows.csv
  longwire sweep plot rows.jsonl --x bottleneck.rate --y source.flow1.delay_ns_p95 --output delay.svg")]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    Plan(plan::Args),
    Run(run::Args),
    Table(table::Args),
    Plot(plot::Args),
}

impl Args {
    /// Runs the command.
    ///
    /// # Errors
    /// If the sweep has a mistake, or a file can't be read or written.
    pub fn run(self) -> anyhow::Result<Outcome> {
        match self.action {
            Action::Plan(args) => args.run(),
            Action::Run(args) => args.run(),
            Action::Table(args) => args.run(),
            Action::Plot(args) => args.run(),
        }
    }
}
