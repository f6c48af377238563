//! `longwire sweep run`

use crate::progress::Progress;
use crate::{Json, Outcome, outcome};
use anyhow::{Context, anyhow};
use longwire_report::{Report, Row};
use longwire_sweep::{Line, RowFile, Selection, Sweep, run_in_order};
use std::io::{IsTerminal, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Time before progress is shown.
const SILENCE: Duration = Duration::from_secs(2);
/// Most failed tasks that a summary names.
const MOST_NAMED: usize = 10;

/// Run the tasks of a sweep, and write a row of results for each
///
/// Rows are lines of JSON in the order of the tasks, on standard output or in a file. A file that has rows of
/// the sweep already is continued: only missing tasks run. A task that fails has a row that says why, and the
/// others go on; then the exit status is 1.
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

    /// Run only these tasks: 5, 0-9, or 0-9,17. Default: all.
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

    #[command(flatten)]
    json: Json,
}

/// The numbers of the tasks that have been run.
#[derive(Default)]
struct Ran {
    well: usize,
    failed: Vec<(u64, String)>,
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
        let wanted = tasks.len();
        if let Some(file) = &file {
            if file.was_repaired() {
                outcome::note("note: the last row was incomplete and is removed; its task runs again");
            }
            tasks.retain(|task| !file.has(*task));
        }
        let before = wanted - tasks.len();
        let ran = self.run_tasks(&sweep, &tasks, |line| match &mut file {
            Some(file) => file.append(line),
            None => print(line),
        })?;
        let outcome = Outcome::of(ran.failed.is_empty());
        match &self.output {
            None => Ok(outcome),
            Some(output) if self.json.on => {
                outcome::print_report(&report(&sweep, (wanted, before), &ran, output), true)
            }
            Some(output) => {
                summarize(before, &ran, output)?;
                Ok(outcome)
            }
        }
    }

    /// Runs tasks, and gives their rows to `take` in order.
    fn run_tasks(
        &self,
        sweep: &Sweep,
        tasks: &[u64],
        mut take: impl FnMut(&Line) -> anyhow::Result<()>,
    ) -> anyhow::Result<Ran> {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let jobs = self.jobs.map_or(processors, usize::from);
        let all = tasks.len();
        let progress = (!self.quiet).then(|| Progress::start(format!("running {all} tasks"), None));
        let begin = Instant::now();
        // A line for each tenth, where lines are not redrawn.
        let step = if std::io::stderr().is_terminal() { 1 } else { all.div_ceil(10) };
        let (mut ran, mut count) = (Ran::default(), 0);
        let work = |task: u64| sweep.run(task);
        run_in_order(tasks, jobs, work, |line| {
            take(&line)?;
            match line.failure() {
                Some(why) => ran.failed.push((line.task().unwrap_or_default(), why.into())),
                None => ran.well += 1,
            }
            count += 1;
            let is_due = count % step == 0 && begin.elapsed() >= SILENCE;
            if let Some(progress) = progress.as_ref().filter(|_| is_due) {
                progress.say(format!("{count} of {all} tasks, {} failed", ran.failed.len()));
            }
            Ok::<_, anyhow::Error>(())
        })?;
        Ok(ran)
    }
}

/// Prints a row. Nothing in it needs to be escaped for terminals, since it is JSON.
fn print(line: &Line) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(line.to_json().as_bytes())?;
    out.flush().context("printing a row")
}

fn report(sweep: &Sweep, (wanted, before): (usize, usize), ran: &Ran, output: &Path) -> Report {
    let mut report = Report::new("sweep run")
        .with("scenario", sweep.plan().file.as_str())
        .with("sweep", sweep.fingerprint())
        .with("output", output.display().to_string())
        .with("tasks", wanted)
        .with("done_before", before)
        .with("ran", ran.well + ran.failed.len())
        .with("failed", ran.failed.len());
    report.extend(ran.failed.iter().map(|(task, why)| {
        Row::new(format!("task {task}"), "").extra("task", *task).judged(false).note(why.as_str())
    }));
    report
}

fn summarize(before: usize, ran: &Ran, output: &Path) -> anyhow::Result<()> {
    let done = ran.well + ran.failed.len();
    let known = if before > 0 { format!(", {before} had been run before") } else { String::new() };
    let tasks = if done == 1 { "task" } else { "tasks" };
    let failed = ran.failed.len();
    outcome::print(&format!("{}: {done} {tasks} run, {failed} failed{known}", output.display()))?;
    for (task, why) in ran.failed.iter().take(MOST_NAMED) {
        outcome::print(&format!("  task {task}: {why}"))?;
    }
    if failed > MOST_NAMED {
        outcome::print(&format!("  and {} more; the column error says why", failed - MOST_NAMED))?;
    }
    Ok(())
}
