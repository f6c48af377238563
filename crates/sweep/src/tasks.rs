//! A sweep with its tasks: each is one value of every axis, and a seed.

use crate::axis::AxisSetting;
use crate::fault::Fault;
use crate::file::SweepFile;
use crate::line::Line;
use crate::result;
use crate::task::Task;
use anyhow::{Context, anyhow, ensure};
use longwire_run::comparison::{StartSetting, StartSettingError, with_settings};
use longwire_run::named_files::{named_files, quoted};
use longwire_run::port_files::PortFiles;
use longwire_scenario::Plan;
use longwire_units::Nanos;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::str::FromStr;

/// Most tasks.
const MOST_TASKS: u64 = 10_000_000;
/// Longest file in bytes.
const LONGEST_FILE: u64 = 16 << 20;
/// Most values of an axis that [`Sweep::faults`] tries.
const MOST_TRIED: u64 = 100;
/// Characters of a sweep's fingerprint.
const FINGERPRINT: usize = 12;

/// A scenario, and what is changed of it from task to task.
#[derive(Debug)]
pub struct Sweep {
    file: SweepFile,
    plan: Plan,
    count: u64,
    fingerprint: String,
}

impl Sweep {
    /// Reads the sweep in the file `path`, and its scenario.
    ///
    /// # Errors
    /// If one of them can't be read or has a mistake, or the first task can't begin.
    pub fn load(path: &Path) -> anyhow::Result<Self> {
        let name = path.display().to_string();
        let text = read(path)?;
        let in_file = |fault: Fault| fault.in_file(&name, &text);
        let file = SweepFile::read(&text).map_err(in_file)?;
        let scenario = path.parent().unwrap_or(Path::new("")).join(&file.scenario.0);
        let plan = longwire_scenario::load(&scenario)
            .with_context(|| format!("{name}: the scenario of the sweep"))?;
        let count = count(&file).map_err(in_file)?;
        let fingerprint = fingerprint(&file, &plan);
        let sweep = Self { file, plan, count, fingerprint };
        sweep.check().map_err(in_file)?;
        Ok(sweep)
    }

    /// Number of its tasks.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The scenario.
    pub const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// What distinguishes it from other sweeps: a hash of the scenario, the files that it and the settings
    /// name, settings, axes, seeds and duration.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// Duration of each run, if it is limited.
    pub const fn time(&self) -> Option<Nanos> {
        self.file.time
    }

    /// Patterns of the columns to keep; empty for all.
    pub fn columns(&self) -> &[String] {
        &self.file.columns
    }

    /// The names of its axes' settings, in the file's order.
    pub fn axes(&self) -> impl Iterator<Item = &str> {
        self.file.axes.iter().flat_map(|axis| &axis.settings).map(|setting| setting.target.as_str())
    }

    /// The longest number, value of each axis's settings, and seed, or the column's name if that is longer.
    pub fn widest_cells(&self) -> Vec<String> {
        let longest = |name: &str, values: &mut dyn Iterator<Item = String>| {
            let all = values.chain([name.to_owned()]);
            all.max_by_key(|text| text.chars().count()).unwrap_or_default()
        };
        let seeds = if self.file.seeds.is_empty() { &[self.plan.seed][..] } else { &self.file.seeds };
        let settings = self.file.axes.iter().flat_map(|axis| &axis.settings);
        let mut cells = vec![longest("task", &mut [self.count.saturating_sub(1).to_string()].into_iter())];
        cells.extend(settings.map(|one| longest(&one.target, &mut one.values.iter().cloned())));
        cells.push(longest("seed", &mut seeds.iter().map(u64::to_string)));
        cells
    }

    /// The task of this number; the seed changes fastest, then the last axis.
    pub fn task(&self, number: u64) -> Task {
        let seeds = self.file.seeds.len().max(1) as u64;
        let seed = self.file.seeds.get((number % seeds) as usize).copied().unwrap_or(self.plan.seed);
        let mut rest = number / seeds;
        let mut steps = Vec::new();
        for axis in self.file.axes.iter().rev() {
            let count = axis.len().max(1) as u64;
            steps.push((axis, (rest % count) as usize));
            rest /= count;
        }
        let settings = steps
            .into_iter()
            .rev()
            .flat_map(|(axis, step)| axis.settings.iter().map(move |setting| start_setting(setting, step)));
        Task { number, settings: settings.collect(), seed }
    }

    /// Runs a task and returns its row, which says so if the task fails.
    pub fn run(&self, number: u64) -> Line {
        let task = self.task(number);
        let run = || {
            let plan = self.planned(&task)?;
            result::of_run(plan, self.file.time, &self.file.columns)
        };
        // An error of the program in one task leaves the others alone.
        let results = catch_unwind(AssertUnwindSafe(run));
        let results = results.unwrap_or_else(|_| Err(anyhow!("the run ended by an error of the program")));
        result::row(&task, &self.fingerprint, results)
    }

    /// The tasks that can't begin, and why, of those that differ from the first in one axis. Each value is
    /// tried once; of more than a hundred, evenly spaced ones with the last.
    pub fn faults(&self) -> impl Iterator<Item = (u64, StartSettingError)> {
        let mut stride = self.file.seeds.len().max(1) as u64;
        let mut tried = Vec::new();
        for axis in self.file.axes.iter().rev() {
            let last = axis.len().saturating_sub(1) as u64;
            let every = last.div_ceil(MOST_TRIED).max(1) as usize;
            tried.extend((1..=last).rev().step_by(every).map(|step| step * stride));
            stride *= last + 1;
        }
        tried.sort_unstable();
        tried.into_iter().filter_map(|number| Some((number, self.planned(&self.task(number)).err()?)))
    }

    /// The plan of a task.
    fn planned(&self, task: &Task) -> Result<Plan, StartSettingError> {
        let fixed = self.file.fixed.iter().map(|setting| start_setting(setting, 0));
        let all: Vec<_> = fixed.chain(task.settings.iter().cloned()).collect();
        with_settings(&self.plan, Some(task.seed), &all)
    }

    /// Checks what tasks have in common: that there are such objects and settings, and that no task writes a
    /// file.
    fn check(&self) -> Result<(), Fault> {
        let span = || self.file.scenario.1.clone();
        let of_scenario = |what: String, fix: &str| Fault::new(span(), "scenario", what, fix);
        let files = PortFiles::new(&self.plan, &[], &[]);
        let files = files.map_err(|error| of_scenario(format!("{error:#}"), ""))?;
        let mut ports = self.plan.ports.iter().zip(&files.captures);
        if let Some((port, _)) = ports.find(|(_, own)| own.output.is_some()) {
            let what = format!("its port \"{}\" writes a capture, and every task would", port.name);
            return Err(of_scenario(what, "remove output there"));
        }
        if let Some(router) = self.plan.control_planes().next() {
            let what = format!("its router \"{}\" has a control plane, which needs real time", router.name);
            return Err(of_scenario(what, "remove control-plane, and give the router its routes"));
        }
        let StartSettingError { target, reason } = match self.planned(&self.task(0)) {
            Ok(_) => return Ok(()),
            Err(error) => error,
        };
        let exact = self.file.settings().find(|setting| setting.target == target);
        let of_object = || self.file.settings().find(|setting| setting.target.starts_with(&target));
        Err(match exact.or_else(of_object) {
            Some(setting) => Fault::new(setting.span.clone(), target, reason, ""),
            None => of_scenario(reason, ""),
        })
    }
}

/// The text of the file `path`.
fn read(path: &Path) -> anyhow::Result<String> {
    let name = path.display();
    let file = File::open(path).with_context(|| format!("{name}: name the file of a sweep"))?;
    let mut text = String::new();
    file.take(LONGEST_FILE + 1).read_to_string(&mut text).with_context(|| format!("reading {name}"))?;
    ensure!(text.len() as u64 <= LONGEST_FILE, "{name} is longer than {LONGEST_FILE} bytes; write ranges");
    Ok(text)
}

fn start_setting(setting: &AxisSetting, step: usize) -> StartSetting {
    StartSetting { target: setting.target.clone(), value: setting.values[step].clone() }
}

fn count(file: &SweepFile) -> Result<u64, Fault> {
    let mut count = file.seeds.len().max(1) as u64;
    for axis in &file.axes {
        count = count.saturating_mul(axis.len() as u64);
        if count > MOST_TASKS {
            let span = axis.settings.first().map_or(0..0, |setting| setting.span.clone());
            let what = format!("with this axis there are more than {MOST_TASKS} tasks");
            return Err(Fault::new(span, "axes", what, "write fewer values, or several sweeps"));
        }
    }
    Ok(count)
}

fn fingerprint(file: &SweepFile, plan: &Plan) -> String {
    let settings = |setting: &AxisSetting| (setting.target.clone(), setting.values.clone());
    let fixed: Vec<_> = file.fixed.iter().map(settings).collect();
    let each = file.axes.iter().map(|axis| axis.settings.iter().map(settings).collect());
    let axes: Vec<Vec<_>> = each.collect();
    let time = file.time.map(|time| time.0);
    let all = (env!("CARGO_PKG_VERSION"), &*plan.text, time, &file.seeds, &file.columns, fixed, axes);
    let mut hash = Sha256::new_with_prefix(format!("{all:?}"));
    let values = file.settings().flat_map(|setting| &setting.values).map(String::as_str);
    for path in named_files(plan.folder(), quoted(&plan.text).chain(values)) {
        // A file that can't be read fails the tasks that need it.
        if let Ok(content) = hash_of(&path) {
            hash.update(content);
        }
    }
    let text: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    text[..FINGERPRINT].into()
}

/// The hash of a file's content.
fn hash_of(path: &Path) -> io::Result<[u8; 32]> {
    let (mut file, mut hash, mut chunk) = (File::open(path)?, Sha256::new(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut chunk)? {
            0 => return Ok(hash.finalize().into()),
            length => hash.update(&chunk[..length]),
        }
    }
}

/// Numbers of tasks: `5`, `0-9`, `0-9,17`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection(Vec<(u64, u64)>);

impl FromStr for Selection {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let range = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let range: (u64, u64) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
            (range.0 <= range.1).then_some(range)
        };
        let all: Option<Vec<_>> = text.split(',').map(range).collect();
        all.map(Self).ok_or_else(|| "write numbers of tasks, such as 5, 0-9 or 0-9,17".into())
    }
}

impl Selection {
    /// The selected tasks of a sweep, each once, in order. A range may reach beyond the last task, as that of
    /// the last job of an array does.
    ///
    /// # Errors
    /// If the sweep has no task with the first number of a range.
    pub fn of(&self, sweep: &Sweep) -> anyhow::Result<Vec<u64>> {
        let last = sweep.count().saturating_sub(1);
        if let Some((first, _)) = self.0.iter().find(|(first, _)| *first > last) {
            anyhow::bail!("there is no task {first}; the sweep has tasks 0 to {last}");
        }
        let mut all: Vec<u64> = self.0.iter().flat_map(|(first, end)| *first..=last.min(*end)).collect();
        all.sort_unstable();
        all.dedup();
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_selected() {
        let of = |text: &str| text.parse::<Selection>().map(|selection| selection.0);
        assert_eq!(of("5"), Ok(vec![(5, 5)]));
        assert_eq!(of("0-9, 17"), Ok(vec![(0, 9), (17, 17)]));
        for text in ["", "x", "1-", "-1", "9-0", "1,,2", "1-2-3"] {
            assert!(of(text).is_err(), "{text}");
        }
    }
}
