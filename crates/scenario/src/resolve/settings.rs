//! Sections `[engine]` and `[fidelity]`.

use super::{Desk, Entry};
use crate::file::File;
use crate::plan::{EngineSettings, Fidelity, LARGEST_POOL, SMALLEST_POOL};
use crate::words::Mapping;
use longwire_units::{Nanos, Probability};

const MOST_WORKERS: u64 = 64;
const MOST_CPUS: u64 = 1 << 16;

impl Desk<'_, '_> {
    /// How the engine runs. None after an error.
    pub(super) fn engine(&mut self, file: &File) -> Option<EngineSettings> {
        let defaults = EngineSettings::default();
        let Some(written) = &file.engine else { return Some(defaults) };
        let entry = Entry { section: "engine", ..Entry::root() };
        let workers = self.whole_or(&entry, "workers", written.workers.as_ref(), 1, 1..=MOST_WORKERS);
        let natural = if workers.is_some_and(|n| n > 1) { Mapping::Parallel } else { Mapping::Single };
        let mapping = self.term_or(&entry, "mapping", written.mapping.as_ref(), natural);
        match (workers, mapping, &written.mapping) {
            (Some(workers @ 2..), Some(Mapping::Single), Some(at)) => {
                let what = format!("the mapping \"single\" has one worker, but workers = {workers}");
                self.error(
                    &at.span,
                    &entry,
                    "mapping",
                    what,
                    "write mapping = \"parallel\", or leave it out",
                );
            }
            (Some(1), Some(Mapping::Pipeline), Some(at)) => {
                let what = "a pipeline has two workers or more, but workers = 1";
                self.error(&at.span, &entry, "mapping", what, "write workers = 2, or more");
            }
            _ => {}
        }
        let wait = self.term_or(&entry, "wait", written.wait.as_ref(), defaults.wait);
        let between =
            self.term_or(&entry, "between-workers", written.between_workers.as_ref(), defaults.between);
        let pool =
            self.term_in(&entry, "pool", written.pool.as_ref(), defaults.pool, SMALLEST_POOL..=LARGEST_POOL);
        let second = Nanos::ZERO..=Nanos::from_secs(1);
        let train_spread = self.term_in(
            &entry,
            "train-spread",
            written.train_spread.as_ref(),
            defaults.train_spread,
            second.clone(),
        );
        let tick = self.term_in(&entry, "tick", written.tick.as_ref(), defaults.tick, second);
        let cpus = self.cpus(&entry, file, workers);
        Some(EngineSettings {
            workers: workers? as u32,
            mapping: mapping?,
            wait: wait?,
            between: between?,
            pool: pool?,
            pool_given: written.pool.is_some(),
            resident: pool?,
            cpus: cpus?,
            train_spread: train_spread?,
            tick: tick?,
        })
    }

    fn cpus(&mut self, entry: &Entry<'_>, file: &File, workers: Option<u64>) -> Option<Vec<u32>> {
        let list = file.engine.as_ref().map_or(&[][..], |engine| &engine.cpus.0);
        let mut cpus = Vec::with_capacity(list.len());
        for written in list {
            let cpu = self.whole_or(entry, "cpus", Some(written), 0, 0..=MOST_CPUS)? as u32;
            if cpus.contains(&cpu) {
                let what = format!("processor {cpu} stands twice");
                self.error(&written.span, entry, "cpus", what, "give each worker a processor of its own");
            }
            cpus.push(cpu);
        }
        if let (Some(last), Some(workers)) = (list.last(), workers)
            && cpus.len() as u64 != workers
        {
            let what = format!("{} processors for {workers} workers", cpus.len());
            self.error(&last.span, entry, "cpus", what, "give one for each worker, or leave cpus out");
        }
        Some(cpus)
    }

    /// What counts as faithful. None after an error.
    pub(super) fn fidelity(&mut self, file: &File) -> Option<Fidelity> {
        let entry = Entry { section: "fidelity", ..Entry::root() };
        let share: Probability = "99 %".parse().expect("a probability");
        let written = file.fidelity.as_ref();
        let within = written.and_then(|fidelity| fidelity.within.as_ref());
        let within = self.term_or(&entry, "within", within, Nanos::from_micros(100));
        let share =
            self.term_or(&entry, "share", written.and_then(|fidelity| fidelity.share.as_ref()), share);
        Some(Fidelity { within: within?, share: share? })
    }
}
