//! Changes at exact times: steps, ramps and repetitions for links and traffic sources.
//!
//! An event at t comes after departures at t and before arrivals by ports at t, whatever the number of
//! workers. The current blocks of every changed link and source are kept here, so that changing some
//! parameters keeps the others.

use crate::nodes::NodeEvent;
use crate::order::LONGEST;
use longwire_block::change::{Blocks, Edit, Ramp, Repeat, between};
use longwire_block::{Spec, Value, Values};
use longwire_units::Nanos;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::sync::Arc;

/// A change of one worker's links, or of its sources.
#[derive(Debug, Clone)]
pub struct Event {
    /// Time from the start of the run.
    pub time: Nanos,
    /// Repetition, if any.
    pub repeat: Option<Repeat>,
    /// Ramp, if the change is gradual.
    pub ramp: Option<Ramp>,
    /// Indices of the links or sources at the worker; media follow the links.
    pub places: Arc<[u32]>,
    /// The changes.
    pub edits: Arc<[Edit]>,
}

/// Changes of a worker's links, or of its sources.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// The changes; those at the same time are executed in this order.
    pub events: Vec<Event>,
    /// Blocks at the start of the run, defaults included, of the objects that change.
    pub made_of: HashMap<u32, Arc<Blocks>>,
}

/// A traffic source at one of a worker's ports.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceSetup {
    /// Index of the port at the worker.
    pub port: u32,
    /// The port's name for it; see [`Port::change_source`](longwire_block::Port::change_source).
    pub name: Box<str>,
}

/// All changes at a worker, and the sources that can be changed.
#[derive(Clone, Default)]
pub struct Agenda {
    /// Changes of its links.
    pub links: Changes,
    /// Changes of its sources.
    pub sources: Changes,
    /// The sources at its ports.
    pub source_setups: Vec<SourceSetup>,
    /// Changes of its nodes.
    pub nodes: Vec<NodeEvent>,
}

/// Most refusals listed in a report.
const MOST_REFUSED: usize = 10;

/// What an index refers to: a worker's links with the media after them, or the sources at its ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum TargetKind {
    Links,
    Sources,
}

/// One of several simultaneous changes, as its worker sees it.
#[derive(Debug, Clone)]
pub(crate) struct LocalChange {
    pub what: (TargetKind, u32),
    pub base: Arc<Blocks>,
    pub edits: Vec<Edit>,
    pub ramp: Option<Ramp>,
}

/// The next action. At one time, steps of ramps come first, then events in the agenda's order, then groups in
/// the order of their requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ScheduledAction {
    /// A step of a ramp of the link or source at `place`.
    Step { place: u32, number: u64 },
    /// The start of an event; `times` counts its repetitions.
    Begin { event: usize, times: u64 },
    /// Simultaneous changes.
    Group { number: u64 },
}

/// A parameter's initial and final value in a ramp.
#[derive(Debug, Clone)]
pub(crate) struct RampRange {
    pub spec: &'static Spec,
    pub fresh: Option<Values>,
    pub at: usize,
    pub from: Value,
    pub to: Value,
}

/// A ramp in progress, of one link or source.
#[derive(Debug)]
struct Running {
    number: u64,
    ranges: Vec<RampRange>,
    begin: Nanos,
    ramp: Ramp,
    /// Steps taken.
    taken: u64,
    /// Whether its event repeats without end.
    endless: bool,
}

/// Pending changes of a simulated run in which no other event is left.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PendingChanges {
    /// Whether packets are held that a change may release.
    holds: bool,
    /// The next change.
    next: Nanos,
    /// Pending actions that do not repeat without end.
    finite: u64,
    /// Time since which the endless ones have had no effect, and the time that they get.
    since: Nanos,
    patience: Nanos,
}

impl PendingChanges {
    /// Combines the pending changes of two workers.
    pub(crate) fn with(self, other: Self) -> Self {
        Self {
            holds: self.holds || other.holds,
            next: self.next.min(other.next),
            finite: self.finite + other.finite,
            since: self.since.max(other.since),
            patience: self.patience.max(other.patience),
        }
    }

    /// Time of the next change worth waiting for. Never if no packets are held, or if only endlessly
    /// repeating events are left and all of them have happened twice without releasing a packet.
    pub(crate) fn time(self) -> Nanos {
        let given_up = self.finite == 0 && self.next > self.since + self.patience;
        if !self.holds || given_up { Nanos::NEVER } else { self.next }
    }
}

/// Pending changes of a worker's links or sources, and the current blocks of those that changed.
#[derive(Default)]
pub(crate) struct Schedule {
    start: Nanos,
    events: Vec<Event>,
    made_of: HashMap<u32, Arc<Blocks>>,
    running: HashMap<u32, Vec<Running>>,
    queue: BinaryHeap<Reverse<(Nanos, ScheduledAction)>>,
    /// Groups of changes that wait for their time.
    groups: HashMap<u64, Vec<LocalChange>>,
    numbers: u64,
    /// Pending actions that do not repeat without end.
    finite: u64,
    /// The longest period of an endlessly repeating event.
    longest: Nanos,
    /// When each of those has happened once and the last finite action is done.
    settled: Nanos,
    /// Virtual time since which only changes have happened.
    quiet_since: Option<Nanos>,
    /// Changes that were refused.
    pub refused: Vec<String>,
}

impl Schedule {
    /// Schedules `changes` relative to `start`.
    pub(crate) fn new(changes: Changes, start: Nanos) -> Self {
        let Changes { events, made_of } = changes;
        let mut schedule = Self { start, events, made_of, ..Self::default() };
        for event in 0..schedule.events.len() {
            let time = start + schedule.events[event].time;
            if let Some(Repeat { every, times: None }) = schedule.events[event].repeat {
                schedule.longest = schedule.longest.max(every);
                schedule.settled = schedule.settled.max(time);
            }
            schedule.put(event, 1, time);
        }
        schedule
    }

    /// Time of the next change; never if there is none.
    #[inline]
    pub(crate) fn next(&self) -> Nanos {
        self.queue.peek().map_or(Nanos::NEVER, |Reverse((time, _))| *time)
    }

    /// The pending changes of a simulated run that has only changes left after `last`. `holds`: whether they
    /// can release a packet.
    pub(crate) fn pending(&mut self, last: Nanos, holds: bool) -> PendingChanges {
        let since = *self.quiet_since.get_or_insert(last);
        let patience = Nanos(self.longest.0.saturating_mul(2)).max(LONGEST);
        PendingChanges {
            holds,
            next: self.next(),
            finite: self.finite,
            since: since.max(self.settled),
            patience,
        }
    }

    /// Records, in virtual time, that events other than changes are pending.
    pub(crate) fn interrupt(&mut self) {
        self.quiet_since = None;
    }

    /// The blocks of a link or source, if it has changed or may change.
    pub(crate) fn made_of(&self, place: u32) -> Option<&Arc<Blocks>> {
        self.made_of.get(&place)
    }

    fn put(&mut self, event: usize, times: u64, time: Nanos) {
        let repeat = self.events[event].repeat;
        if times > 1 && repeat.is_none_or(|repeat| repeat.times.is_some_and(|most| times > most)) {
            return;
        }
        self.finite += u64::from(!self.is_endless(event));
        self.queue.push(Reverse((time, ScheduledAction::Begin { event, times })));
    }

    pub(crate) fn is_endless(&self, event: usize) -> bool {
        self.events[event].repeat.is_some_and(|repeat| repeat.times.is_none())
    }

    /// Takes the next action if it is due by `until`.
    pub(crate) fn pop(&mut self, until: Nanos) -> Option<(Nanos, ScheduledAction)> {
        if self.next() > until {
            return None;
        }
        let Reverse((time, turn)) = self.queue.pop()?;
        let endless = match turn {
            ScheduledAction::Begin { event, .. } => self.is_endless(event),
            ScheduledAction::Step { place, number } => {
                self.ramp(place, number).is_some_and(|ramp| ramp.endless)
            }
            ScheduledAction::Group { .. } => false,
        };
        if !endless {
            self.finite -= 1;
            self.settled = self.settled.max(time);
        }
        Some((time, turn))
    }

    fn ramp(&mut self, place: u32, number: u64) -> Option<&mut Running> {
        self.running.get_mut(&place)?.iter_mut().find(|ramp| ramp.number == number)
    }

    /// Starts a ramp of a link or source.
    pub(crate) fn begin_ramp(
        &mut self,
        place: u32,
        ranges: Vec<RampRange>,
        ramp: Ramp,
        begin: Nanos,
        endless: bool,
    ) {
        let number = self.numbers;
        self.numbers += 1;
        let running = Running { number, ranges, begin, ramp, taken: 0, endless };
        self.put_step(place, &running);
        self.running.entry(place).or_default().push(running);
    }

    /// Ramps of a link or source that have a step to come, cancelled ones included.
    pub(crate) fn ramps(&self, place: u32) -> usize {
        self.running.get(&place).map_or(0, Vec::len)
    }

    fn put_step(&mut self, place: u32, running: &Running) {
        let after = running.ramp.step.0.saturating_mul(running.taken + 1).min(running.ramp.over.0);
        self.finite += u64::from(!running.endless);
        self.queue.push(Reverse((
            running.begin + Nanos(after),
            ScheduledAction::Step { place, number: running.number },
        )));
    }

    /// Takes a ramp's step at `time` and returns the resulting edit. None if the ramp was cancelled.
    pub(crate) fn step(&mut self, place: u32, number: u64, time: Nanos) -> Option<Vec<Edit>> {
        let ramps = self.running.get_mut(&place)?;
        let mut running = ramps.swap_remove(ramps.iter().position(|ramp| ramp.number == number)?);
        running.taken += 1;
        let (done, over) = (time.since(running.begin), running.ramp.over);
        let edit = |range: &RampRange| {
            let value = if done < over { between(&range.from, &range.to, done, over) } else { None };
            let value = value.unwrap_or_else(|| range.to.clone());
            let fresh = range.fresh.as_ref().map(|fresh| fresh.replaced(range.at, value.clone()));
            Edit { spec: range.spec, given: vec![(range.at, value)], fresh }
        };
        let edits = running.ranges.iter().map(edit).collect();
        if done < over && !running.ranges.is_empty() {
            self.put_step(place, &running);
            self.running.entry(place).or_default().push(running);
        } else if self.running.get(&place).is_some_and(Vec::is_empty) {
            self.running.remove(&place);
        }
        Some(edits)
    }

    /// Stops ramps of the blocks that `edits` name, at their current values: the latest change wins.
    pub(crate) fn cancel(&mut self, place: u32, edits: &[Edit]) {
        let names = |edit: &Edit, range: &RampRange| {
            edit.spec.key == range.spec.key
                && (!edit.spec.is(range.spec) || edit.given.iter().any(|(at, _)| *at == range.at))
        };
        for ramp in self.running.get_mut(&place).into_iter().flatten() {
            ramp.ranges.retain(|range| !edits.iter().any(|edit| names(edit, range)));
        }
    }

    /// Schedules simultaneous changes, if there are any.
    pub(crate) fn put_group(&mut self, changes: Vec<LocalChange>, time: Nanos) {
        if changes.is_empty() {
            return;
        }
        let number = self.numbers;
        self.numbers += 1;
        self.finite += 1;
        self.groups.insert(number, changes);
        self.queue.push(Reverse((time, ScheduledAction::Group { number })));
    }

    pub(crate) fn take_group(&mut self, number: u64) -> Vec<LocalChange> {
        self.groups.remove(&number).unwrap_or_default()
    }

    pub(crate) fn groups(&self) -> usize {
        self.groups.len()
    }

    /// Begins repetition number `times` of an event at `time`, schedules the next one, and returns the event.
    pub(crate) fn begin(&mut self, event: usize, times: u64, time: Nanos) -> Event {
        let begun = self.events[event].clone();
        if let Some(repeat) = begun.repeat {
            self.put(event, times + 1, time + repeat.every);
        }
        begun
    }

    /// The current blocks of the link or source at `place`: `base` unless it has changed before.
    pub(crate) fn made_of_or(&mut self, place: u32, base: Arc<Blocks>) -> Arc<Blocks> {
        Arc::clone(self.made_of.entry(place).or_insert(base))
    }

    pub(crate) fn note(&mut self, place: u32, blocks: Blocks) {
        self.made_of.insert(place, Arc::new(blocks));
    }

    /// Forgets removed links or sources and their pending changes.
    pub(crate) fn forget(&mut self, places: &[u32]) {
        if places.is_empty() {
            return;
        }
        for place in places {
            self.made_of.remove(place);
            self.running.get_mut(place).into_iter().flatten().for_each(|ramp| ramp.ranges.clear());
        }
        let gone: HashSet<u32> = places.iter().copied().collect();
        self.groups.values_mut().for_each(|group| group.retain(|change| !gone.contains(&change.what.1)));
        let names_any = |event: &&mut Event| event.places.iter().any(|place| gone.contains(place));
        for event in self.events.iter_mut().filter(names_any) {
            event.places = event.places.iter().copied().filter(|place| !gone.contains(place)).collect();
        }
    }

    /// Records that `what` could not be changed at `time`.
    pub(crate) fn refuse(&mut self, time: Nanos, what: &str, why: &str) {
        if self.refused.len() < MOST_REFUSED {
            let at = time.since(self.start);
            self.refused.push(format!("the change of {what} at {at} was not carried out: {why}"));
        }
    }
}
