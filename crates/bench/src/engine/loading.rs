//! Scenarios with very many links: the time until one runs, and until a running one has changed a link.

use crate::capacity::drive::{Course, links, ports};
use crate::{BenchError, Sample, Settings};
use longwire_assemble::BuiltEngine;
use longwire_block::change::Edit;
use longwire_block::path::LinkRef;
use longwire_engine::{Bases, Change, Remote, Run, Target};
use longwire_report::Row;
use longwire_scenario::with_defaults;
use std::sync::Arc;
use std::time::{Duration, Instant};

const LINKS: u32 = 1_000_000;
/// Keys of each link.
const KEYS: &str = "rate = \"100 Gbit/s\"\ndelay = \"10 ms\"\nloss = \"0 %\"";
/// Limits of loading all, in seconds, and of changing one, in nanoseconds.
const LOADED: f64 = 3.0;
const CHANGED: f64 = 1e6;
/// Number of links changed in each run, and their distance.
const CHANGES: u32 = 1000;
const STRIDE: u32 = 7919;

/// The rows of this bench.
pub(crate) fn rows(settings: &Settings<'_>) -> Result<Vec<Row>, BenchError> {
    of_links(settings, LINKS)
}

fn of_links(settings: &Settings<'_>, count: u32) -> Result<Vec<Row>, BenchError> {
    let (mut loads, mut changes) = (Vec::new(), Vec::new());
    for _ in 0..settings.runs(3) {
        settings.next(&format!("engine: loading {count} links"))?;
        let loaded = load(count)?;
        settings.next(&format!("engine: changing some of {count} links"))?;
        let changed = loaded.change_some();
        drop(loaded.run.stop());
        loads.push(loaded.parts);
        changes.push(changed?.into_iter().collect());
    }
    Ok(vec![load_row(count, &loads), change_row(count, &changes)])
}

/// Loading times of the stages.
#[derive(Debug, Clone, Copy)]
struct Parts {
    /// Text to plan.
    read: Duration,
    /// Plan to engine.
    build: Duration,
    /// Engine to the workers' first answer.
    start: Duration,
}

impl Parts {
    fn all(&self) -> f64 {
        (self.read + self.build + self.start).as_secs_f64()
    }
}

fn load_row(count: u32, loads: &[Parts]) -> Row {
    let sample: Sample = loads.iter().map(Parts::all).collect();
    let row = sample.at_most(&format!("engine: a scenario of {count} links, time to load"), "s", LOADED);
    let Some(best) = loads.iter().min_by(|a, b| a.all().total_cmp(&b.all())) else { return row };
    let [read, build, start] = [best.read, best.build, best.start].map(|part| part.as_secs_f64());
    row.extra("read_s", read).extra("build_s", build).extra("start_s", start).note(format!(
        "the best run: {read:.2} s from text to plan, {build:.2} s to an engine, {start:.2} s to the \
         worker's first answer"
    ))
}

/// The row of changes in each run, in nanoseconds: the 99th percentile counts.
fn change_row(count: u32, runs: &[Sample]) -> Row {
    let late: Sample = runs.iter().map(|changes| changes.quantile(0.99)).collect();
    let medians: Sample = runs.iter().map(Sample::median).collect();
    let most = runs.iter().map(Sample::most).fold(0.0, f64::max);
    let name = format!("engine: one of {count} links changes its rate while all carry packets, p99");
    late.at_most(&name, "ns", CHANGED).extra("change_median", medians.median()).extra("longest", most).note(
        format!(
            "of a run's changes the median takes {:.1} µs, the longest of all {:.1} µs; as longwire ctl set \
             does it: what the link is made of is asked, then it is changed",
            medians.median() / 1e3,
            most / 1e3
        ),
    )
}

/// A running scenario.
struct LoadedScenario {
    parts: Parts,
    course: Course,
    links: Vec<LinkRef>,
    run: Run,
}

/// Loads a scenario with this many links, and sends packets over all of them.
fn load(count: u32) -> Result<LoadedScenario, BenchError> {
    let text = ports("cpus = [0]") + &links(count, KEYS);
    let begin = Instant::now();
    let course = Course::new("loading", &text)?;
    let read = begin.elapsed();
    let course = course.shuffled(count);
    let ports = course.ports(None);
    let begin = Instant::now();
    let BuiltEngine { setup, layout, .. } = longwire_assemble::build(&course.plan, ports, |_| None)?;
    let build = begin.elapsed();
    let run = setup.start();
    run.remote().flow()?;
    let start = begin.elapsed() - build;
    Ok(LoadedScenario { parts: Parts { read, build, start }, course, links: layout.links, run })
}

impl LoadedScenario {
    /// Changes the rates of links spread over all, one by one. Returns the nanoseconds of each.
    fn change_some(&self) -> Result<Vec<f64>, BenchError> {
        let remote = self.run.remote();
        let all = self.links.len() as u32;
        (0..CHANGES.min(all)).map(|n| self.change(&remote, n.wrapping_mul(STRIDE) % all)).collect()
    }

    fn change(&self, remote: &Remote, place: u32) -> Result<f64, BenchError> {
        let profile = self.course.plan.links[place as usize].profile;
        let made_of = &self.course.plan.profiles[profile as usize].blocks;
        let (rate, _) = made_of.iter().find(|(spec, _)| spec.key == "rate").expect("links have a rate");
        let edit = Edit { spec: rate, given: vec![(0, rate.params[0].read("50 Gbit/s")?)], fresh: None };
        let base = with_defaults(made_of, &longwire_link::registry());
        let target = Target::Link(self.links[place as usize]);
        let begin = Instant::now();
        let change = Change { target, base: Arc::new(base), edits: vec![edit], ramp: None };
        remote.change(vec![change], None, Bases::Any)?;
        Ok(begin.elapsed().as_nanos() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_units::Rate;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn scenarios_load_and_their_links_change() {
        let settings = Settings { runs: None, quick: true, say: &|_| (), stop: &AtomicBool::new(false) };
        let rows = of_links(&settings, 2000).unwrap();
        assert!(rows.iter().all(|row| row.measured.is_some() && row.pass.is_some()), "{rows:?}");
    }

    #[test]
    fn what_is_changed_is_the_rate() {
        let loaded = load(3).unwrap();
        let target = Target::Link(loaded.links[1]);
        assert!(loaded.change(&loaded.run.remote(), 1).unwrap() > 0.0);
        let blocks = loaded.run.remote().made_of(&[target]).unwrap().remove(0).unwrap();
        drop(loaded.run.stop());
        let (_, values) = blocks.iter().find(|(spec, _)| spec.key == "rate").unwrap();
        assert_eq!(values.at(0), longwire_block::Value::Rate(Rate(50_000_000_000)));
    }

    #[test]
    fn rows_pass_by_the_best_load_and_by_all_but_one_of_100_changes() {
        let parts = |read| Parts {
            read: Duration::from_millis(read),
            build: Duration::from_secs(1),
            start: Duration::ZERO,
        };
        let row = load_row(7, &[parts(2500), parts(1900)]);
        assert_eq!((row.pass, row.extra["read_s"].as_f64()), (Some(true), Some(1.9)));
        let changes = |slow: usize| (0..100).map(|n| if n < slow { 2e6 } else { 1e5 }).collect::<Sample>();
        let row = |slow| change_row(7, &[changes(50), changes(slow)]);
        assert_eq!([0, 1, 2].map(|slow| row(slow).pass), [Some(true), Some(true), Some(false)]);
    }
}
