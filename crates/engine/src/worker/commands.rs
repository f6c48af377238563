//! Commands of other threads: queries, and atomic changes of several objects at one instant, as they are
//! requested and as they are made.

use super::{Order, Worker};
use crate::by_worker::{ByWorker, in_order};
use crate::events::{LocalChange, TargetKind};
use crate::remote::{Bases, Changed, Command, Remote, RemoteError, ReportPart, Step, Target};
use crate::stats::{FlowStats, Report};
use longwire_block::change::{Blocks, Edit, Ramp};
use longwire_units::Nanos;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

/// Reason for which a source can't be changed.
const NO_SOURCE: &str = "its port sends nothing";

/// Most pending groups of changes at one worker, for links and for sources.
const MOST_WAITING: usize = 256;

/// Lead time of simultaneous changes at several workers: all of them must have received the command by then.
const AHEAD: Nanos = Nanos::from_millis(20);

/// A change of one object: a link, a source or a medium.
#[derive(Debug, Clone)]
pub struct Change {
    /// What is changed.
    pub target: Target,
    /// The blocks for which the edits were made, defaults included. If it was never changed, it has those of
    /// the start.
    pub base: Arc<Blocks>,
    /// The edits; unnamed parameters are kept.
    pub edits: Vec<Edit>,
    /// If the change is gradual: the values move step by step from its instant on.
    pub ramp: Option<Ramp>,
}

impl Remote {
    /// Makes all `changes` at one instant: at the time `at` of the engine's clock, or at once. They are
    /// checked against the current state. If the scenario's own events have made them impossible by their
    /// time, none of a worker's changes is made, and the report says so.
    ///
    /// # Errors
    /// If one of them can't be made, too many are pending, the time is past, or a worker has ended; nothing
    /// has changed then.
    pub fn change(
        &self,
        changes: Vec<Change>,
        at: Option<Nanos>,
        bases: Bases,
    ) -> Result<Changed, RemoteError> {
        let placed = changes.into_iter().map(|Change { target, base, edits, ramp }| {
            let (worker, what) = target.place();
            (worker, LocalChange { what, base, edits, ramp })
        });
        let ByWorker { parts, order } = ByWorker::new(placed);
        let now = longwire_clock::monotonic();
        if parts.len() == 1 && at.is_none() {
            return self.group((parts, &order), bases, Step::Now);
        }
        if at.is_some_and(|at| at <= now) {
            return Err(RemoteError::Refused("its time is past".into()));
        }
        let checked = self.group((parts.clone(), &order), bases, Step::Check)?;
        if checked.instant.is_none() {
            return Ok(checked);
        }
        self.group((parts, &order), Bases::Any, Step::At(at.unwrap_or(now + AHEAD)))
    }

    /// Sends each worker its part. The instant is the latest one.
    fn group(
        &self,
        (parts, order): (Vec<(u32, Vec<LocalChange>)>, &[usize]),
        bases: Bases,
        step: Step,
    ) -> Result<Changed, RemoteError> {
        let answers =
            self.ask_each(parts, |changes, reply| Command::Change { changes, bases, step, reply })?;
        let (mut instant, mut blocks) = (Some(Nanos::ZERO), Vec::new());
        for answer in answers {
            let changed = answer.map_err(RemoteError::Refused)?;
            instant = instant.zip(changed.instant).map(|(latest, one)| latest.max(one));
            blocks.push(changed.blocks);
        }
        Ok(Changed { instant, blocks: in_order(order, blocks) })
    }
}

impl Worker {
    /// Executes the commands received since the last call.
    pub(crate) fn obey(&mut self, commands: &Receiver<Command>, now: Nanos) {
        while let Ok(command) = commands.try_recv() {
            // A query of links' counters first executes what has happened on them by now.
            if !matches!(command, Command::Query(_) | Command::Sample { .. }) {
                self.counters.did((now.0, 0));
            }
            match command {
                Command::Query(look) => look(&mut self.emulation.links, now),
                Command::Flow(reply) => {
                    // The caller may have given up.
                    let _ = reply.send((FlowStats::of(&self.counters.flow), now));
                }
                Command::Report { first, reply } => {
                    let mut report = Report::default();
                    let next = self.add_part(&mut report, first, now);
                    let lateness = next.is_none().then(|| Box::new(self.counters.lateness.clone()));
                    let _ = reply.send(ReportPart { worker: self.index, report, next, lateness });
                }
                Command::Links { links, reply } => {
                    // Without one of the links the reply is dropped, which the caller sees as no answer.
                    if links.iter().all(|&link| link < self.emulation.links.len() as u32) {
                        let counted = links.into_iter().map(|link| self.count_link(link, now)).collect();
                        let _ = reply.send(counted);
                    }
                    self.emulation.arm_dirty();
                }
                Command::Sample { mut into, reply } => {
                    self.sample(&mut into);
                    let _ = reply.send(into);
                }
                Command::MadeOf { what, reply } => {
                    let one = |(of, place)| self.schedules.of(of).made_of(place).map(Arc::clone);
                    let _ = reply.send(what.into_iter().map(one).collect());
                }
                Command::Change { changes, bases, step, reply } => {
                    let _ = reply.send(self.together(changes, bases, step, now));
                }
                Command::Rewire { mut step, reply } => {
                    self.rewire(&mut step, now);
                    let _ = reply.send(step);
                }
                Command::AtNode { place, act } => {
                    // Without the node the reply is dropped, which the caller sees as no answer.
                    self.nodes.change_all(now);
                    if let Some(node) = self.nodes.all.get_mut(place as usize) {
                        act(&mut **node, now);
                        // Its deadline may be earlier now.
                        self.nodes.ask_again(place as usize, self.earliest_turn());
                    }
                }
            }
        }
    }

    /// Executes a phase of a group of changes, unless objects have other blocks than they may.
    fn together(
        &mut self,
        changes: Vec<LocalChange>,
        bases: Bases,
        step: Step,
        now: Nanos,
    ) -> Result<Changed, String> {
        let objects: Vec<_> = changes.iter().map(|change| change.what).collect();
        let mut is_other = |LocalChange { what: (of, place), base, .. }: &LocalChange| {
            let blocks = self.schedules.of(*of).made_of_or(*place, Arc::clone(base));
            !Arc::ptr_eq(&blocks, base) && !are_alike(&blocks, base)
        };
        let others = changes.iter().filter(|change| is_other(change)).count();
        let instant = match bases {
            Bases::Current if others > 0 => None,
            Bases::Current | Bases::Any => Some(self.execute(changes, step, now)?),
        };
        let blocks = |(of, place)| self.schedules.of(of).made_of(place).map(Arc::clone);
        Ok(Changed { instant, blocks: objects.into_iter().filter_map(blocks).collect() })
    }

    /// Executes a phase of a group of changes, and returns the time at which they are made.
    fn execute(&mut self, changes: Vec<LocalChange>, step: Step, now: Nanos) -> Result<Nanos, String> {
        let waiting = self.schedules.links.groups().max(self.schedules.sources.groups());
        if step != Step::Now && waiting >= MOST_WAITING {
            return Err(format!("{waiting} changes are pending already"));
        }
        self.schedules.could_make(&changes)?;
        match step {
            Step::Check => Ok(now),
            Step::Now => self.make(&changes, now).map(|()| now),
            Step::At(time) => {
                let time = time.max(now);
                let (links, sources) =
                    changes.into_iter().partition(|change| change.what.0 == TargetKind::Links);
                for (of, part) in [(TargetKind::Links, links), (TargetKind::Sources, sources)] {
                    let part: Vec<LocalChange> = part;
                    if !part.is_empty() {
                        self.schedules.of(of).put_group(part, time);
                    }
                }
                // Changes of links need exact order from now on.
                self.order = Order::Exact;
                Ok(time)
            }
        }
    }

    /// Makes the changes of a due group, or records why none of them could be made.
    pub(crate) fn take_group(&mut self, of: TargetKind, number: u64, time: Nanos) {
        let changes = self.schedules.of(of).take_group(number);
        let done = self.schedules.could_make(&changes).and_then(|()| self.make(&changes, time));
        if let Err(why) = done {
            self.schedules.of(of).refuse(time, &format!("{} objects together", changes.len()), &why);
        }
    }

    /// Makes changes and starts ramps. If a link, medium or source refuses, those before it are restored.
    fn make(&mut self, changes: &[LocalChange], now: Nanos) -> Result<(), String> {
        let mut before: Vec<((TargetKind, u32), Vec<Edit>)> = Vec::new();
        for LocalChange { what: (of, place), base, edits, .. } in
            changes.iter().filter(|change| change.ramp.is_none())
        {
            let blocks = self.schedules.of(*of).made_of_or(*place, Arc::clone(base));
            if let Err(why) = self.apply(*of, *place, edits, now) {
                for ((of, place), undo) in before.iter().rev() {
                    // Restoring the previous state can't fail.
                    let _ = self.apply(*of, *place, undo, now);
                }
                return Err(why);
            }
            before.push(((*of, *place), back(&blocks, edits)));
        }
        for LocalChange { what: (of, place), edits, ramp, .. } in changes {
            match ramp {
                Some(ramp) => {
                    if *of == TargetKind::Links {
                        // Steps need exact order from now on.
                        self.order = Order::Exact;
                    }
                    self.schedules.ramp(*of, *place, edits, *ramp, now, false)?;
                }
                None => self.schedules.of(*of).cancel(*place, edits),
            }
        }
        Ok(())
    }

    /// Applies `edits` to a link or source: all of them or none.
    pub(crate) fn apply(
        &mut self,
        of: TargetKind,
        place: u32,
        edits: &[Edit],
        now: Nanos,
    ) -> Result<(), String> {
        let (blocks, changes) = self.schedules.made_by(of, place, edits)?;
        match of {
            TargetKind::Links => self.emulation.change(&mut self.pool, place, now, &changes)?,
            TargetKind::Sources => self.set_source(place, &changes, now)?,
        }
        self.schedules.of(of).note(place, blocks);
        Ok(())
    }

    fn set_source(&mut self, source: u32, changes: &Blocks, now: Nanos) -> Result<(), String> {
        // At a requested change, frames that are due may not have been received yet: they come first.
        let setup = &self.schedules.source_setups[source as usize];
        let port = &mut self.ports.slots[setup.port as usize].port;
        let now = port.next_arrival().map_or(now, |next| now.min(next));
        let known = changes.iter().all(|(spec, values)| port.change_source(now, &setup.name, spec, values));
        let slot = setup.port as usize;
        self.ports.ask_again(slot);
        if known { Ok(()) } else { Err(NO_SOURCE.into()) }
    }
}

/// The edits that undo `edits` of an object with these blocks.
fn back(blocks: &Blocks, edits: &[Edit]) -> Vec<Edit> {
    let undo = |edit: &Edit| {
        let was = blocks.iter().find(|(spec, _)| spec.key == edit.spec.key);
        let (spec, fresh) = match was {
            Some((spec, values)) => (*spec, Some(values.clone())),
            None => {
                let none = longwire_link::without(edit.spec.key)?;
                (none, longwire_block::Values::read(none, &[]).ok())
            }
        };
        let values = fresh.as_ref().map(longwire_block::Values::as_slice).unwrap_or_default();
        Some(Edit { spec, given: values.iter().cloned().enumerate().collect(), fresh })
    };
    edits.iter().filter_map(undo).collect()
}

/// Whether two objects are made of the same blocks.
pub fn are_alike(one: &Blocks, other: &Blocks) -> bool {
    let same = |at: usize| one[at].0.is(other[at].0) && one[at].1 == other[at].1;
    one.len() == other.len() && (0..one.len()).all(same)
}
