//! Pending changes of a worker's links and of the sources at its ports.

use crate::events::{Agenda, LocalChange, RampRange, Schedule, SourceSetup, TargetKind};
use longwire_block::change::{Blocks, Edit, Ramp, set_block};
use longwire_units::Nanos;
use std::collections::HashMap;
use std::sync::Arc;

/// Reason for which a change is impossible.
pub(crate) const TOO_LITTLE: &str =
    "its block for the key is of another kind, and parameters without a default are not given";
const NOT_INTERPOLATED: &str =
    "its values can't be interpolated: the block is of another kind, or a value is a word or unlimited";

/// Most ramps of a link or source in progress at which a request may begin another one. A ramp that a later
/// change has cancelled is one of them until its next step.
const MOST_RAMPS: usize = 256;

pub(crate) struct Schedules {
    pub links: Schedule,
    pub sources: Schedule,
    /// The sources.
    pub source_setups: Vec<SourceSetup>,
    /// Time of the last change of links.
    pub changed: Nanos,
}

impl Schedules {
    /// `start` is the start of the run. Changes of nodes are kept elsewhere.
    pub fn new(agenda: Agenda, start: Nanos) -> Self {
        let Agenda { links, sources, source_setups, nodes: _ } = agenda;
        let (links, sources) = (Schedule::new(links, start), Schedule::new(sources, start));
        Self { links, sources, source_setups, changed: Nanos::ZERO }
    }

    /// The changes of links or of sources.
    pub fn of(&mut self, of: TargetKind) -> &mut Schedule {
        match of {
            TargetKind::Links => &mut self.links,
            TargetKind::Sources => &mut self.sources,
        }
    }

    /// Changes that were refused.
    pub fn refused(&self) -> impl Iterator<Item = &String> {
        self.links.refused.iter().chain(&self.sources.refused)
    }

    /// Starts a ramp to the values of `edits`.
    pub fn ramp(
        &mut self,
        of: TargetKind,
        place: u32,
        edits: &[Edit],
        ramp: Ramp,
        now: Nanos,
        endless: bool,
    ) -> Result<(), String> {
        let schedule = self.of(of);
        let Some(blocks) = schedule.made_of(place) else { return Err(NOT_INTERPOLATED.into()) };
        let mut ranges = Vec::new();
        for edit in edits {
            let begins = edit.begins(blocks).ok_or(NOT_INTERPOLATED)?;
            let each = edit.given.iter().zip(begins);
            ranges.extend(each.map(|((at, to), from)| RampRange {
                spec: edit.spec,
                fresh: edit.fresh.clone(),
                at: *at,
                from,
                to: to.clone(),
            }));
        }
        schedule.cancel(place, edits);
        schedule.begin_ramp(place, ranges, ramp, now, endless);
        Ok(())
    }

    /// The result of `edits` on a link or source: all of its blocks, and the changed ones.
    pub fn made_by(
        &mut self,
        of: TargetKind,
        place: u32,
        edits: &[Edit],
    ) -> Result<(Blocks, Blocks), &'static str> {
        let mut blocks = Blocks::clone(self.of(of).made_of(place).ok_or(TOO_LITTLE)?);
        let mut changes: Blocks = Vec::new();
        for edit in edits {
            let (spec, values) = edit.apply(&blocks).ok_or(TOO_LITTLE)?;
            set_block(&mut blocks, spec, values.clone());
            changes.retain(|(other, _)| other.key != spec.key);
            changes.push((spec, values));
        }
        Ok((blocks, changes))
    }

    /// Checks whether several changes can be made together. Ramps begin at the values that the others set.
    pub fn could_make(&mut self, changes: &[LocalChange]) -> Result<(), String> {
        // The blocks that each object gets, and its ramps in progress.
        let mut made: HashMap<(TargetKind, u32), (Blocks, usize)> = HashMap::new();
        let (steps, ramps): (Vec<_>, Vec<_>) = changes.iter().partition(|change| change.ramp.is_none());
        for LocalChange { what, base, edits, ramp } in steps.into_iter().chain(ramps) {
            let (blocks, running) = made.entry(*what).or_insert_with(|| {
                let schedule = self.of(what.0);
                let blocks = schedule.made_of_or(what.1, Arc::clone(base));
                (Blocks::clone(&blocks), schedule.ramps(what.1))
            });
            if ramp.is_some() {
                if *running >= MOST_RAMPS {
                    return Err(format!("{running} ramps of it are in progress already"));
                }
                *running += 1;
            }
            for edit in edits {
                if ramp.is_some() {
                    edit.begins(blocks).ok_or(NOT_INTERPOLATED)?;
                    continue;
                }
                let (spec, values) = edit.apply(blocks).ok_or(TOO_LITTLE)?;
                set_block(blocks, spec, values);
            }
        }
        Ok(())
    }
}
