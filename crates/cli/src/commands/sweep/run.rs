//! `longwire sweep run`

use crate::progress::Progress;
use crate::{Outcome, outcome};
use anyhow::anyhow;
use longwire_sweep::{DoneBefore, Line, RowFile, Selection, Sweep, TaskOutcomes, run_in_order};
use std::io::IsTerminal;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Time before progress is shown.
const SILENCE: Duration = Duration::from_secs(2);

/// Run the tasks of a sweep, and write a row of results for each
///
/// Rows are lines of JSON in the order of the tasks, on standard output or in a file. A file that has rows of
/// the sweep already is continued: only missing tasks run. A task that fails has a row that says why, and the
/// others go on. The exit status is 1 if a task failed, now or before.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire sweep run scenarios/sweeps/dumbbell.toml --output rows.jsonl
  longwire sweep run scenarios/sweeps/dumbbell.toml --output rows.jsonl --jobs 2 --json
  longwire sweep run scenarios/sweeps/dumbbell.toml --task 3
  longwire sweep run scenarios/sweeps/dumbbell.toml --task 0-3,8 > some.jsonl

In a job array of Slurm, each job runs a task and has a file of its own:
  #SBATCH --array=0-999
  longwire sweep run sweep.toml --task $SLURM_ARRAY_TASK_ID --output rows-$SLURM_ARRAY_TASK_ID.jsonl")]
pub struct Args {
    /// The file of the sweep.
    file: PathBuf,

    /// Run only these tasks: 5, 0-9, or 0-9,17. A range may reach beyond the last task. Default: all.
    #[arg(long, value_name = "NUMBERS")]
    task: Option<String>,

    /// Write rows to this file, and run only the tasks that it does not have. Default: standard output.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Run this many tasks at the same time. Default: one for each processor.
    #[arg(long, short, value_name = "NUMBER")]
    jobs: Option<NonZeroUsize>,

    /// Show no progress.
    #[arg(long, short)]
    quiet: bool,

    /// With --output: print the summary as JSON. Rows are JSON in any case.
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let sweep = Sweep::load(&self.file)?;
        let mut tasks = match &self.task {
            Some(numbers) => {
                let selection = numbers.parse::<Selection>();
                selection.map_err(|fix| anyhow!("--task: {fix}"))?.of(&sweep)?
            }
            None => (0..sweep.count()).collect(),
        };
        let mut file = self.output.as_deref().map(|path| RowFile::open(path, &sweep)).transpose()?;
        let mut before = DoneBefore::default();
        if let Some(file) = &file {
            if file.was_repaired() {
                outcome::note("note: the last row was incomplete and is removed; its task runs again");
            }
            before.tasks = tasks.iter().filter(|task| file.has(**task)).count();
            before.failed = tasks.iter().filter(|task| file.has_failed(**task)).count();
            tasks.retain(|task| !file.has(*task));
        }
        let mut outcomes = TaskOutcomes::after(before, &sweep);
        self.run_tasks(&sweep, &tasks, &mut outcomes, |line| match &mut file {
            Some(file) => file.append(line),
            None => outcome::print_with(|out| out.write_all(line.to_json().as_bytes())).map(drop),
        })?;
        for pattern in outcomes.unfitted() {
            outcome::note(&format!("note: none of these tasks has a column \"{pattern}\""));
        }
        if let Some(output) = self.output.map(|output| output.display().to_string()) {
            if self.json {
                return outcome::print_report(&outcomes.report(&sweep, &output), true);
            }
            outcome::print(&outcomes.lines(&output).join("\n"))?;
        }
        Ok(Outcome::of(outcomes.pass()))
    }

    /// Runs tasks, gives their rows to `take` in order, and counts them.
    fn run_tasks(
        &self,
        sweep: &Sweep,
        tasks: &[u64],
        outcomes: &mut TaskOutcomes,
        mut take: impl FnMut(&Line) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let jobs = self.jobs.map_or(processors, usize::from);
        let all = tasks.len();
        let progress = (!self.quiet).then(|| Progress::start(format!("running {all} tasks"), None));
        let begin = Instant::now();
        // A line for each tenth, where lines are not redrawn.
        let step = if std::io::stderr().is_terminal() { 1 } else { all.div_ceil(10) };
        run_in_order(
            tasks,
            jobs,
            |task| sweep.run(task),
            |line| {
                take(&line)?;
                outcomes.add(&line);
                let count = outcomes.ran();
                let is_due = count.is_multiple_of(step) && begin.elapsed() >= SILENCE;
                if let Some(progress) = progress.as_ref().filter(|_| is_due) {
                    progress.say(format!("{count} of {all} tasks, {} failed", outcomes.failed()));
                }
                Ok(())
            },
        )
    }
}
