//! What became of the tasks of a sweep that were run.

use crate::line::Line;
use crate::tasks::Sweep;
use longwire_control::fits;
use longwire_report::{Report, Row};

/// Most failed tasks that the text names.
const MOST_NAMED: usize = 10;

/// Tasks that a file had rows of before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DoneBefore {
    /// All of them.
    pub tasks: usize,
    /// Those that failed.
    pub failed: usize,
}

/// The numbers of the tasks that have been run.
#[derive(Debug)]
pub struct TaskOutcomes {
    before: DoneBefore,
    well: usize,
    failed: Vec<(u64, String)>,
    /// Patterns of columns that no row has fitted.
    unfitted: Vec<String>,
}

impl TaskOutcomes {
    /// No task of `sweep` has been run yet but those of `before`.
    pub fn after(before: DoneBefore, sweep: &Sweep) -> Self {
        Self { before, well: 0, failed: Vec::new(), unfitted: sweep.columns().to_vec() }
    }

    /// Counts the task of a row.
    pub fn add(&mut self, line: &Line) {
        match line.failure() {
            Some(why) => self.failed.push((line.task().unwrap_or_default(), why.into())),
            None => {
                self.well += 1;
                self.unfitted.retain(|pattern| !line.columns().any(|(column, _)| fits(column, pattern)));
            }
        }
    }

    /// The patterns of columns that no task has results for, if any has results.
    pub fn unfitted(&self) -> &[String] {
        if self.well > 0 { &self.unfitted } else { &[] }
    }

    /// Tasks that were run.
    pub const fn ran(&self) -> usize {
        self.well + self.failed.len()
    }

    /// Tasks that failed.
    pub const fn failed(&self) -> usize {
        self.failed.len()
    }

    /// Whether no task failed, now or before.
    pub const fn pass(&self) -> bool {
        self.failed.is_empty() && self.before.failed == 0
    }

    /// The report on tasks of `sweep`, whose rows are in the file `output`; a row for each that failed.
    pub fn report(&self, sweep: &Sweep, output: &str) -> Report {
        let mut report = Report::new("sweep run")
            .with("scenario", sweep.plan().file.as_str())
            .with("sweep", sweep.fingerprint())
            .with("output", output)
            .with("tasks", self.before.tasks + self.ran())
            .with("done_before", self.before.tasks)
            .with("failed_before", self.before.failed)
            .with("ran", self.ran())
            .with("failed", self.failed());
        report.pass = self.pass();
        report.extend(self.failed.iter().map(|(task, why)| {
            Row::new(format!("task {task}"), "").extra("task", *task).judged(false).note(why.as_str())
        }));
        report
    }

    /// The outcomes as lines of text, for people.
    pub fn lines(&self, output: &str) -> Vec<String> {
        let known = match self.before {
            DoneBefore { tasks: 0, .. } => String::new(),
            DoneBefore { tasks, failed: 0 } => format!(", {tasks} had been run before"),
            DoneBefore { tasks, failed } => {
                format!(", {tasks} had been run before, {failed} of these failed")
            }
        };
        let (ran, failed) = (self.ran(), self.failed());
        let tasks = if ran == 1 { "task" } else { "tasks" };
        let mut lines = vec![format!("{output}: {ran} {tasks} run, {failed} failed{known}")];
        lines.extend(self.failed.iter().take(MOST_NAMED).map(|(task, why)| format!("  task {task}: {why}")));
        if failed > MOST_NAMED {
            lines.push(format!("  and {} more; the column error says why", failed - MOST_NAMED));
        }
        lines
    }
}
