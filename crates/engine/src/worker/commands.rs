//! Commands of other threads: queries, and atomic changes of several objects at one instant, as they are
//! requested and as they are made.

use super::{Order, Worker};
use crate::by_worker::{ByWorker, in_order};
use crate::events::{LocalChange, TargetKind};
use crate::remote::{Bases, Changed, Command, PATIENCE, Remote, RemoteError, ReportPart, Step, Target};
use crate::stats::Report;
use longwire_block::change::{Blocks, Edit, Ramp};
use longwire_units::Nanos;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

/// Reason for which a source can't be changed.
const NO_SOURCE: &str = "its port sends nothing";

/// Pending groups of changes of one worker's links, or of its sources, with which no other is accepted.
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
    /// checked against the current state. If other changes have made them impossible by their time, a worker
    /// makes none of those of its links, or none of those of its sources, and the report says so.
    ///
    /// # Errors
    /// If one of them can't be made, too many are pending, or the time is past; nothing has changed then. If
    /// a worker has ended or does not answer, others may make their part.
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
        if parts.len() == 1 && at.is_none() {
            return self.group((parts, &order), bases, Step::Now);
        }
        if at.is_some_and(|at| at <= longwire_clock::monotonic()) {
            return Err(RemoteError::Refused("its time is past".into()));
        }
        let checked = self.group((parts.clone(), &order), bases, Step::Check)?;
        if checked.instant.is_none() {
            return Ok(checked);
        }
        // The checks may have taken long.
        let at = at.unwrap_or_else(|| longwire_clock::monotonic() + AHEAD);
        self.group((parts, &order), Bases::Any, Step::At(at))
    }

    /// Sends each worker its part. The instant is the latest one.
    fn group(
        &self,
        (parts, order): (Vec<(u32, Vec<LocalChange>)>, &[usize]),
        bases: Bases,
        step: Step,
    ) -> Result<Changed, RemoteError> {
        let command = |changes, reply| Command::Change { changes, bases, step, reply };
        let answers = self.ask_each(parts, PATIENCE, command)?;
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
    /// Executes the commands received since the last call. Returns how long that took.
    pub(crate) fn obey(&mut self, commands: &Receiver<Command>, now: Nanos) -> Nanos {
        let Ok(first) = commands.try_recv() else { return Nanos::ZERO };
        let begun = longwire_clock::monotonic();
        self.answer(first, now);
        while let Ok(command) = commands.try_recv() {
            self.answer(command, now);
        }
        longwire_clock::monotonic().since(begun)
    }

    /// Executes a command.
    fn answer(&mut self, command: Command, now: Nanos) {
        // A query of links' counters first executes what has happened on them by now.
        if !matches!(command, Command::Query(_) | Command::Sample { .. }) {
            self.counters.did((now.0, 0));
        }
        match command {
            Command::Query(look) => look(&mut self.emulation.links, now),
            Command::Flow(reply) => {
                // The caller may have given up.
                let _ = reply.send((self.counters.all_flow(), now));
            }
            Command::Report { first, reply } => {
                let mut report = Report::default();
                let next = self.add_part(&mut report, first, now);
                let lateness = next.is_none().then(|| Box::new(self.counters.lateness.clone()));
                let _ = reply.send(ReportPart { worker: self.index, report, next, lateness });
            }
            Command::Links { links, reply } => {
                // Without one of the links the reply is dropped, which tells the caller so.
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
                // Without the node the reply is dropped, which tells the caller so.
                self.nodes.change_all(now);
                if let Some(node) = self.nodes.all.get_mut(place as usize) {
                    act(&mut **node, now);
                    // Its deadline may be earlier now.
                    self.nodes.ask_again(place as usize, self.earliest_turn());
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
    fn execute(&mut self, mut changes: Vec<LocalChange>, step: Step, now: Nanos) -> Result<Nanos, String> {
        match step {
            Step::Check => {
                let waiting = self.schedules.links.groups().max(self.schedules.sources.groups());
                if waiting >= MOST_WAITING {
                    return Err(format!("{waiting} changes are pending already"));
                }
                self.schedules.could_make(&changes).map(|()| now)
            }
            Step::Now => {
                self.schedules.could_make(&changes)?;
                self.make(&changes, now).map(|()| now)
            }
            // All workers have agreed, so that none may refuse its part now: it is checked again at its time.
            Step::At(time) => {
                let time = time.max(now);
                let is_source = |change: &mut LocalChange| change.what.0 == TargetKind::Sources;
                let sources: Vec<_> = changes.extract_if(.., is_source).collect();
                self.schedules.links.put_group(changes, time);
                self.schedules.sources.put_group(sources, time);
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
        for LocalChange { what: (of, place), edits, .. } in
            changes.iter().filter(|change| change.ramp.is_none())
        {
            self.schedules.of(*of).cancel(*place, edits);
        }
        // Whatever the order of the request, ramps begin at the values that the others have set.
        for LocalChange { what: (of, place), edits, ramp, .. } in changes {
            let Some(ramp) = ramp else { continue };
            if *of == TargetKind::Links {
                // Steps need exact order from now on.
                self.order = Order::Exact;
            }
            self.schedules.ramp(*of, *place, edits, *ramp, now, false)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Map, Setup, WorkerSetup};
    use longwire_block::path::{LinkRef, Paths};
    use longwire_block::{Spec, Values};
    use longwire_link::classify::Classifier;
    use longwire_link::{LinkConfig, Links, registry};
    use longwire_packet::Pool;
    use std::sync::mpsc;
    use std::time::Duration;

    /// A worker with two links with a delay of 3 ms.
    fn worker() -> Worker {
        let mut links = Links::with_capacity(2, 1, Nanos::from_micros(10));
        let config = LinkConfig::default().with_text("delay", "3 ms").unwrap();
        (0..2).for_each(|link| _ = links.add(link, "", &config));
        let map = Map::new(Classifier::new(&[], &[], &[]), Paths::default(), vec![]);
        let setup = WorkerSetup::new(Pool::new(1 << 20).unwrap(), links);
        Worker::of(Setup::new(vec![setup], map)).remove(0)
    }

    /// The delay of a link, to 30 ms.
    fn change(link: u32, ramp: Option<Ramp>) -> LocalChange {
        let constant = |spec: &&Spec| (spec.key, spec.kind) == ("delay", "constant");
        let spec = registry().into_iter().find(constant).unwrap();
        let values = |text| Values::read(spec, &[("delay", text)]).unwrap();
        let fresh = values("30 ms");
        let edit = Edit { spec, given: vec![(0, fresh.at(0))], fresh: Some(fresh) };
        let base = Arc::new(vec![(spec, values("3 ms"))]);
        LocalChange { what: (TargetKind::Links, link), base, edits: vec![edit], ramp }
    }

    #[test]
    fn a_link_has_not_more_ramps_than_so_many() {
        let mut worker = worker();
        let ramp = Some(Ramp { over: Nanos::from_secs(7200), step: Nanos::from_secs(3600) });
        let mut begin = |links: &[u32]| {
            let changes = links.iter().map(|&link| change(link, ramp)).collect();
            worker.together(changes, Bases::Any, Step::Now, Nanos(1))
        };
        (0..255).for_each(|_| assert!(begin(&[0]).is_ok()));
        assert!(begin(&[0, 0]).is_err(), "the second of them would be one too many");
        assert!(begin(&[0, 1]).is_ok());
        assert!(begin(&[0]).unwrap_err().contains("256 ramps of it are in progress"));
        assert!(begin(&[1]).is_ok());
    }

    #[test]
    fn a_ramp_goes_on_whatever_the_order_of_the_request() {
        let ramp = Some(Ramp { over: Nanos(9), step: Nanos(1) });
        for changes in [[change(0, None), change(0, ramp)], [change(0, ramp), change(0, None)]] {
            let mut worker = worker();
            worker.together(changes.into(), Bases::Any, Step::Now, Nanos(1)).unwrap();
            let edits = worker.schedules.links.step(0, 0, Nanos(2));
            assert_eq!(edits.as_ref().map(Vec::len), Some(1));
        }
    }

    /// All workers have checked their parts then: if one refused, the others would have made theirs.
    #[test]
    fn a_worker_that_has_agreed_to_its_part_makes_it() {
        let mut worker = worker();
        let mut phase = |step| worker.together(vec![change(0, None)], Bases::Any, step, Nanos(1));
        assert!(phase(Step::Check).is_ok());
        let later = Step::At(Nanos(9));
        (0..MOST_WAITING).for_each(|_| assert!(phase(later).is_ok()));
        assert!(phase(Step::Check).unwrap_err().contains("256 changes are pending"));
        assert_eq!(phase(later).map(|changed| changed.instant), Ok(Some(Nanos(9))));
    }

    /// The workers answer the check later than changes are requested ahead of their time.
    #[test]
    fn changes_at_several_workers_have_one_instant_however_long_their_check_takes() {
        let mut workers = [worker(), worker()];
        let (inboxes, commands): (Vec<_>, Vec<_>) = workers.iter().map(|_| mpsc::channel()).unzip();
        let remote = Remote::new(inboxes, Arc::clone(&workers[0].peers.bells));
        let of = |worker| {
            let LocalChange { base, edits, ramp, .. } = change(0, None);
            Change { target: Target::Link(LinkRef::new(worker, 0)), base, edits, ramp }
        };
        let changes = vec![of(0), of(1)];
        let changed = std::thread::scope(|scope| {
            let asked = scope.spawn(|| remote.change(changes, None, Bases::Any));
            let mut late = Nanos::ZERO;
            for _ in 0..2 {
                let next = commands.iter().map(|inbox| inbox.recv_timeout(Duration::from_secs(20)).unwrap());
                let next: Vec<Command> = next.collect();
                if late == Nanos::ZERO {
                    let came = longwire_clock::monotonic();
                    while late <= came + AHEAD {
                        late = longwire_clock::monotonic();
                    }
                }
                for ((worker, command), now) in workers.iter_mut().zip(next).zip(late.0..) {
                    let (inbox, commands) = mpsc::channel();
                    inbox.send(command).unwrap();
                    worker.obey(&commands, Nanos(now));
                }
            }
            asked.join().unwrap().unwrap()
        });
        let times = workers.each_ref().map(|worker| Some(worker.schedules.links.next()));
        assert_eq!(times, [changed.instant; 2]);
    }

    /// That time is no pause of the machine.
    #[test]
    fn commands_take_time() {
        const LONG: Nanos = Nanos::from_millis(1);
        let (mut worker, (inbox, commands)) = (worker(), mpsc::channel());
        assert_eq!(worker.obey(&commands, Nanos(1)), Nanos::ZERO);
        let spin = |_: &mut Links, _: Nanos| {
            let begun = longwire_clock::monotonic();
            while longwire_clock::monotonic().since(begun) < LONG {}
        };
        inbox.send(Command::Query(Box::new(spin))).unwrap();
        assert!(worker.obey(&commands, Nanos(1)) >= LONG);
    }
}
