//! Reading of declared settings; sections `[engine]` and `[fidelity]`.

use super::{Entry, Resolver};
use crate::file::{self, File};
use crate::implied::{bare, near};
use crate::plan::{EngineSettings, Fidelity};
use crate::row::{Row, SettingText, WithSettings};
use crate::words::Mapping;
use crate::written::{Whole, Written};
use longwire_block::{Settings, Spec, Values};
use longwire_units::counted;

const MOST_CPUS: u64 = 1 << 16;

impl Resolver<'_, '_> {
    /// How the engine runs. None after an error.
    pub(super) fn engine(&mut self, file: &File) -> Option<EngineSettings> {
        let none = file::Engine::default();
        let written = file.engine.as_ref().unwrap_or(&none);
        let entry = Entry { section: "engine", ..Entry::root() };
        let mut engine: EngineSettings = self.row(&entry, written)?;
        match (engine.workers, engine.mapping, written.span("mapping")) {
            (2.., _, None) => engine.mapping = Mapping::Parallel,
            (workers @ 2.., Mapping::Single, Some(span)) => {
                let what = format!("the mapping \"single\" has one worker, but workers = {workers}");
                self.error(span, &entry, "mapping", what, "write mapping = \"parallel\", or leave it out");
            }
            (1, Mapping::Pipeline, Some(span)) => {
                let what = "a pipeline has two workers or more, but workers = 1";
                self.error(span, &entry, "mapping", what, "write workers = 2, or more");
            }
            _ => {}
        }
        engine.pool_given = written.span("pool").is_some();
        engine.cpus = self.cpus(&entry, &written.cpus.0, engine.workers)?;
        Some(engine)
    }

    /// Reads the settings of an entry, with templates expanded. None after an error.
    pub(super) fn row<T, S: Settings>(
        &mut self,
        entry: &Entry<'_>,
        written: &WithSettings<T, S>,
    ) -> Option<S> {
        self.values(entry, "", &S::SPEC, &written.row).map(|values| S::of(&values))
    }

    /// Reads the settings of an optional table within an entry. None after an error.
    pub(super) fn subtable<T, S: Settings>(
        &mut self,
        entry: &Entry<'_>,
        table: &str,
        written: Option<&WithSettings<T, S>>,
    ) -> Option<S> {
        let row = written.map_or(&[][..], |written| &written.row);
        self.values(entry, &format!("{table}."), &S::SPEC, row).map(|values| S::of(&values))
    }

    /// Reads the values of a spec, with templates expanded. None after an error.
    pub(super) fn values(
        &mut self,
        entry: &Entry<'_>,
        table: &str,
        spec: &Spec,
        row: &[SettingText],
    ) -> Option<Values> {
        let mut given = Vec::new();
        for (name, text, span) in row {
            let param = spec.params.iter().find(|param| param.name == *name)?;
            let key = format!("{table}{name}");
            let text = self.expanded(entry, &key, text, span)?;
            match param.read_in(&text, &self.folder) {
                Ok(_) => given.push((*name, text)),
                Err(error) => self.error(span, entry, &key, bare(&error), near(param, &text)),
            }
        }
        let pairs: Vec<_> = given.iter().map(|(name, text)| (*name, text.as_str())).collect();
        let values = Values::read_in(spec, &pairs, &self.folder).ok();
        values.filter(|_| given.len() == row.len())
    }

    fn cpus(&mut self, entry: &Entry<'_>, list: &[Written<Whole>], workers: u32) -> Option<Vec<u32>> {
        let mut cpus = Vec::with_capacity(list.len());
        for written in list {
            let cpu = self.whole_or(entry, "cpus", Some(written), 0, 0..=MOST_CPUS)? as u32;
            if cpus.contains(&cpu) {
                let what = format!("processor {cpu} is given twice");
                self.error(&written.span, entry, "cpus", what, "give each worker a processor of its own");
            }
            cpus.push(cpu);
        }
        if let Some(last) = list.last()
            && cpus.len() != workers as usize
        {
            let what =
                format!("{} for {}", counted(cpus.len() as u64, "processor"), counted(workers, "worker"));
            self.error(&last.span, entry, "cpus", what, "give one for each worker, or leave cpus out");
        }
        Some(cpus)
    }

    /// When a run is faithful. None after an error.
    pub(super) fn fidelity(&mut self, file: &File) -> Option<Fidelity> {
        let entry = Entry { section: "fidelity", ..Entry::root() };
        self.row(&entry, file.fidelity.as_ref().unwrap_or(&Row::default()))
    }
}
