//! Bringing a running instance from one scenario to another: links, hosts, ports, bridges, routers and
//! traffic sources are added and removed while packets flow.

use crate::changed_ports::ChangedPorts;
use crate::comparison::{mistakes, without_changes};
use crate::control_planes::MirroredEngine;
use crate::instance::RunningInstance;
use crate::objects::NoticedChange;
use crate::objects::routers::{gone, meter};
use crate::planned_rewiring::{AppliedChange, PlannedRewiring, objects_between};
use crate::running_state::RunningState;
use crate::threads::{EndingThread, lock};
use longwire_assemble::Levels;
use longwire_block::flow::Course;
use longwire_control::{
    Comparison, Instance, Kind, RewireRequest, RewireResponse, ScenarioRequest, SetError,
};
use longwire_scenario::{
    EditError, NextStage, Plan, Router, ScenarioError, Stage, changed_sections, edited, next_stage,
    parse_after,
};
use longwire_units::Nanos;
use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

/// A rewiring whose hosts, ports and threads are there.
struct ReadyRewiring {
    planned: PlannedRewiring,
    ports: ChangedPorts,
    /// Above the new routers.
    levels: Vec<Levels>,
}

impl RunningInstance {
    /// Brings it to a scenario: settings of links, sources and media change at one instant, then those of
    /// routers, then links, hosts, ports, bridges, routers and sources join and leave at one instant. All is
    /// checked, hosts are made and ports opened, before anything changes. What removed links hold is dropped
    /// and counted. If something fails after settings have changed, the scenario stays the one before, with
    /// these changes.
    ///
    /// # Errors
    /// If the scenario is wrong, differs in what can't change while it runs and the rest is not wanted, or
    /// the first change fails; nothing has changed then.
    pub(crate) fn bring(&self, wanted: &ScenarioRequest) -> Result<AppliedChange<Comparison>, SetError> {
        let _alone = lock(&self.rewiring);
        let (mut shown, text, rewiring, made) = {
            let state = self.state();
            let running = self.running(&state);
            let (mut shown, changes, rewiring) = running.changes_to(wanted)?;
            let text = Arc::clone(&changes.text);
            let rewiring = rewiring.map(|planned| self.ready(planned)).transpose()?;
            let made = running.make(changes, &mut shown);
            (shown, text, rewiring, made)
        };
        let brought = match (made, rewiring) {
            (Err(error), _) => Err(error),
            (Ok(()), Some(ready)) => self.take_over(ready),
            (Ok(()), None) => {
                if shown.refused.is_empty() {
                    // The objects are the same: only the text differs.
                    let mut state = self.replace_state();
                    state.plan = Arc::new(Plan { text, ..(*state.plan).clone() });
                }
                Ok(None)
            }
        };
        let fault = match brought {
            Ok(fault) => fault,
            Err(error) if shown.changes.is_empty() => return Err(error),
            Err(error) => {
                let made = shown.changes.len();
                // Nothing has joined or left.
                shown = Comparison { changes: shown.changes, ..Comparison::default() };
                Some(refused(format!("not all of it was applied, only changes of {made} objects: {error}")))
            }
        };
        Ok(AppliedChange { done: shown, fault })
    }

    /// Adds and removes what is asked for, all at one instant. Links that stay keep what they are set to.
    /// What removed links hold is dropped and counted, unless they are drained.
    ///
    /// # Errors
    /// If there is nothing of a name, or the scenario would be wrong, or differ in what can't change while it
    /// runs; nothing has changed then.
    pub(crate) fn edit(&self, ask: &RewireRequest) -> Result<AppliedChange<RewireResponse>, SetError> {
        let _alone = lock(&self.rewiring);
        let plan = Arc::clone(&self.state().plan);
        // Changes that were written behind the scenario are what objects are set to: they stay that.
        let old = without_changes(&plan.text);
        let text = edited(old, &ask.add, &ask.remove).map_err(|error| self.not_edited(error))?;
        let new = parse_after(&plan, &text, self.elapsed());
        let new = new.map_err(|error| not_added(error, &text, &ask.add))?;
        if let Some(section) = changed_sections(old, &text).first() {
            return Err(SetError::Refused(format!(
                "{section} differs, and only links, hosts, ports, bridges, sources, and routers with their \
                 programs, can be added and removed while it runs: start it again"
            )));
        }
        self.follow(&new, ask.drain)
    }

    /// Why the scenario's text can't be edited so.
    fn not_edited(&self, error: EditError) -> SetError {
        let is_there = |name: &String| Kind::ALL.into_iter().any(|kind| self.names(kind).contains(name));
        match error {
            EditError::Unknown(name) if !is_there(&name) => SetError::NoObject { name },
            // Objects without a section of their own are not removed.
            error => refused(error),
        }
    }

    /// Adds and removes what the scenario's events up to `time` say, one after the other, logs it, and tells
    /// the receiver of changes.
    ///
    /// # Errors
    /// As [`RunningInstance::edit`], of the first that fails; that is logged and told, too.
    pub(crate) fn advance(&self, time: Nanos) -> Result<(), SetError> {
        loop {
            let fault = match self.advance_once(time) {
                Ok(None) => return Ok(()),
                Ok(Some(AppliedChange { done, fault })) => {
                    self.note_rewired(time, "scheduled", &done);
                    let changed = done.added.len() + done.removed.len();
                    // Nobody waits for the answer.
                    drop(self.state().objects.tell(|| NoticedChange::Applied { changed, scenario: None }));
                    fault
                }
                Err(error) => Some(error),
            };
            let Some(fault) = fault else { continue };
            let error = format!("[[at]] {time}: {fault}");
            self.log().note(time, "fault", error.as_str());
            drop(self.state().objects.tell(|| NoticedChange::Failed { error }));
            return Err(fault);
        }
    }

    /// Does what the next event up to `time` says; none if there is none.
    fn advance_once(&self, time: Nanos) -> Result<Option<AppliedChange<RewireResponse>>, SetError> {
        let _alone = lock(&self.rewiring);
        let old = Arc::clone(&self.state().plan);
        let next = next_stage(without_changes(&old.text), time).map_err(refused)?;
        let Some(NextStage { text, drain }) = next else { return Ok(None) };
        self.follow(&parse_after(&old, &text, time).map_err(refused)?, drain).map(Some)
    }

    /// Brings it to the objects of a plan. The caller has the lock.
    fn follow(&self, plan: &Plan, drained: bool) -> Result<AppliedChange<RewireResponse>, SetError> {
        let (old, layout) = {
            let state = self.state();
            (Arc::clone(&state.plan), Arc::clone(&state.layout))
        };
        let planned = PlannedRewiring::new(&old, &layout, plan, drained).map_err(refused)?;
        let done = objects_between(&planned.old, &planned.new);
        if done.added.is_empty() && done.removed.is_empty() && plan.text == old.text {
            return Ok(AppliedChange { done, fault: None });
        }
        self.check_aims(&planned)?;
        let fault = self.take_over(self.ready(planned)?)?;
        Ok(AppliedChange { done, fault })
    }

    /// Refuses what removes a port to which a change has directed a source that stays: no scenario could say
    /// what runs then.
    fn check_aims(&self, PlannedRewiring { old, new, made }: &PlannedRewiring) -> Result<(), SetError> {
        // Both are ascending.
        let leaves = |port: &u16| {
            made.old_ports.binary_search(port).is_ok() && made.new_ports.binary_search(port).is_err()
        };
        if !made.old_ports.iter().any(leaves) {
            return Ok(());
        }
        let objects = Arc::clone(&self.state().objects);
        let sources = &objects.sources;
        sources.look(self.remote(), 0..sources.names().len() as u32);
        for source in &new.sources {
            let course = sources.place(&source.name).and_then(|place| Course::among(&sources.known(place)));
            if let Some(port) = course.map(|course| course.aim.port).filter(leaves) {
                return Err(SetError::Refused(format!(
                    "source \"{}\" sends to \"{}\", which would not be there: direct it elsewhere first",
                    source.name,
                    old.ports[usize::from(port)].name
                )));
            }
        }
        Ok(())
    }

    /// Makes the hosts that a rewiring adds, opens its ports, and starts what is above its routers.
    fn ready(&self, mut planned: PlannedRewiring) -> Result<ReadyRewiring, SetError> {
        let PlannedRewiring { old, new, made } = &mut planned;
        let name = Instance::name(self);
        let mut routers = made.new_routers.iter().map(|&place| &new.routers[place as usize]);
        if let Some(finding) = routers.find_map(|router| router.not_in_real_time.as_ref()) {
            return Err(refused(finding));
        }
        made.measure_processors(new, meter()).map_err(refused)?;
        let directory = longwire_control::directory();
        let socket = |router: &Router| longwire_control::control_socket(&directory, &name, &router.name);
        let levels = made.raise(new, socket).map_err(refused)?;
        let mut watches = self.watches().clone();
        // A port that joins may have the files of one that leaves.
        watches.follow(&made.old_ports, &[]);
        let mut ports = ChangedPorts::open(&name, (&**old, &**new), made, &watches)?;
        made.give_ports(std::mem::take(&mut ports.added.ports));
        watches.follow(&[], &ports.added.watches);
        let sources = watches.joining_sources(new, made);
        made.give_sources(sources.map_err(|error| SetError::Refused(format!("{error:#}")))?);
        Ok(ReadyRewiring { planned, ports, levels })
    }

    /// Lets the engine take over what was planned. Returns what failed afterwards, if anything did. The
    /// caller has the lock.
    ///
    /// # Errors
    /// If the run has ended.
    fn take_over(&self, ready: ReadyRewiring) -> Result<Option<SetError>, SetError> {
        // The next plan does not have events that are over, and whose objects go.
        self.note_scheduled(&self.state().plan);
        let ReadyRewiring { planned, mut ports, levels } = ready;
        let PlannedRewiring { new, made, .. } = planned;
        let fresh: HashSet<u32> = made.added.iter().copied().collect();
        if let Some(logged) = self.logged.get() {
            logged.place(&new, &made.layout.links, made.added.iter().copied());
        }
        let fresh_sources: HashSet<u32> = made.new_sources.iter().copied().collect();
        let (routers, links) = (made.layout.routers(&new), made.layout.links.clone());
        let sources = made.layout.sources.clone();
        {
            let mut watches = self.watches();
            watches.follow(&made.old_ports, &ports.added.watches);
            watches.widen(new.source_numbers);
        }
        let faults;
        {
            let mut state = self.replace_state();
            let removed = self.remote().rewire(made.rewiring).map_err(gone)?;
            faults = removed.errors;
            if let Some(series) = self.sampled.get() {
                let (mut series, time) = (lock(series), self.elapsed());
                let left: HashMap<_, _> = removed.links.into_iter().collect();
                for place in made.removed.into_iter().map(|place| place as usize) {
                    if let Some(stats) = left.get(&state.layout.links[place]) {
                        series.add_last(time, &state.plan.links[place].name, stats);
                    }
                }
            }
            ports.keep();
            let live = state.objects.routers.in_plan(&new, routers.clone(), levels);
            let sources = (&sources[..], &fresh_sources);
            let objects = state.objects.moved_to(&new, (&links, &fresh), sources, live);
            *state = RunningState::new(Arc::clone(&new), objects, made.layout);
        }
        let engine = MirroredEngine { remote: self.remote(), routers: &routers, links: &links };
        let mirrored = self.planes.follow(&new, ports.take_planes(), engine);
        let not_removed = ports.close().err();
        let not_mirrored = mirrored.err().map(|error| {
            SetError::Unavailable(format!("it was added, and its control plane does not work: {error:#}"))
        });
        let not_written = faults
            .first()
            .map(|fault| SetError::Unavailable(format!("it was removed, and its port failed: {fault}")));
        Ok(not_removed.or(not_mirrored).or(not_written))
    }
}

/// The mistakes of a scenario's text that ends with the added sections: theirs have lines of these.
fn not_added(mut error: ScenarioError, text: &str, add: &str) -> SetError {
    // Empty lines are not behind it.
    let before = if add.trim().is_empty() { usize::MAX } else { text.lines().count() - add.lines().count() };
    if !error.findings.iter().all(|finding| finding.line > before) {
        return refused(error);
    }
    error.findings.iter_mut().for_each(|finding| finding.line -= before);
    mistakes("add", error)
}

fn refused(error: impl Display) -> SetError {
    SetError::Refused(error.to_string())
}

/// The thread that executes additions and removals of `[[at]]`, like requests. Its result: the failures.
pub(crate) type Stages = EndingThread<Vec<String>>;

/// Starts the thread for a run that began at `started`, if its plan adds or removes anything.
///
/// # Errors
/// If no thread can be started.
pub(crate) fn start_stages(instance: &Arc<RunningInstance>, started: Nanos) -> io::Result<Option<Stages>> {
    let plan = Arc::clone(&instance.state().plan);
    if plan.stages.is_empty() {
        return Ok(None);
    }
    let instance = Arc::downgrade(instance);
    let work = move |ended: &Receiver<()>| {
        // Waits for a stage and executes it; returns the error if it failed. None if the run has ended.
        let take = |stage: &Stage| {
            let wait = (started + stage.time).since(longwire_clock::monotonic());
            if ended.recv_timeout(Duration::from_nanos(wait.0)) != Err(RecvTimeoutError::Timeout) {
                return None;
            }
            let failed = instance.upgrade()?.advance(stage.time).err();
            Some(failed.map(|error| format!("[[at]] {}: {error}", stage.time)))
        };
        plan.stages.iter().map_while(take).flatten().collect()
    };
    Stages::start("stages", work).map(Some)
}
