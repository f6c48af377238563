//! Changes at exact times: steps, ramps and repetitions of what links are made of, and of how traffic sources send.
//!
//! An event at t comes after departures at t and before arrivals by ports at t, whatever the number of workers. What a
//! link is made of now is kept here for every link that was changed, and so are sources, so that whoever names some
//! parameters keeps the others: the scenario's events, ramps half-way, and people at the control socket.

use crate::node_changes::NodeEvent;
use crate::order::LONGEST;
use longwire_block::change::{Blocks, Edit, Ramp, Repeat, between};
use longwire_block::{Spec, Value, Values};
use longwire_units::Nanos;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

/// A change of links of one worker, or of its sources.
#[derive(Debug, Clone)]
pub struct Event {
    /// When, from the start of the run.
    pub time: Nanos,
    /// Whether it comes again.
    pub repeat: Option<Repeat>,
    /// Whether it takes its time.
    pub ramp: Option<Ramp>,
    /// The links or the sources, by their place among the worker's. Media have places among the links, behind all of them.
    pub places: Arc<[u32]>,
    /// What changes.
    pub edits: Arc<[Edit]>,
}

/// What changes on a worker's links or on its sources, and when.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// The changes; of those at one time the first comes first.
    pub events: Vec<Event>,
    /// What those that change are made of when the run starts, defaults included.
    pub made_of: HashMap<u32, Arc<Blocks>>,
}

/// A traffic source at one of a worker's ports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceSeat {
    /// The port, by its place among the worker's.
    pub port: u32,
    /// What the port calls it: see [`Port::change_source`](longwire_block::Port::change_source).
    pub name: Box<str>,
}

/// All that changes at a worker, and the sources that can.
#[derive(Debug, Clone, Default)]
pub struct Agenda {
    /// Changes of its links.
    pub links: Changes,
    /// Changes of its sources.
    pub sources: Changes,
    /// The sources at its ports.
    pub seats: Vec<SourceSeat>,
    /// Changes of its nodes.
    pub nodes: Vec<NodeEvent>,
}

/// Most refusals that a report tells.
const MOST_REFUSED: usize = 10;

/// What a place means: one of the worker's links, or of the media behind them, or one of the sources at its ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
    Links,
    Sources,
}

/// One of several changes that are made together, at its worker.
#[derive(Debug, Clone)]
pub(crate) struct Placed {
    pub what: (Of, u32),
    pub base: Arc<Blocks>,
    pub edits: Vec<Edit>,
    pub ramp: Option<Ramp>,
}

/// What comes next. Of what is due at one time, steps of ramps come first, then events in the agenda's order,
/// then groups in the order in which they were asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Turn {
    /// A step of the ramp with that number, of the link or source at that place.
    Step { place: u32, number: u64 },
    /// The beginning of an event, for the how-manieth time.
    Begin { event: usize, times: u64 },
    /// Changes that are made together.
    Group { number: u64 },
}

/// A parameter's way from one value to another.
#[derive(Debug, Clone)]
pub(crate) struct Way {
    pub spec: &'static Spec,
    pub fresh: Option<Values>,
    pub at: usize,
    pub from: Value,
    pub to: Value,
}

/// A ramp that goes on, of one link or source.
#[derive(Debug)]
struct Running {
    number: u64,
    ways: Vec<Way>,
    begin: Nanos,
    ramp: Ramp,
    /// Steps taken.
    taken: u64,
    /// Whether the event that began it comes again for ever.
    endless: bool,
}

/// What a simulated run can hope for in which nothing but changes is left to happen.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Hope {
    /// Whether anything is held that a change may set going.
    holds: bool,
    /// The next change.
    next: Nanos,
    /// Turns to come that do not repeat for ever.
    finite: u64,
    /// Since when those that do have come in vain, and how long they are given.
    since: Nanos,
    patience: Nanos,
}

impl Hope {
    /// What two workers can hope for together.
    pub(crate) fn with(self, other: Self) -> Self {
        Self {
            holds: self.holds || other.holds,
            next: self.next.min(other.next),
            finite: self.finite + other.finite,
            since: self.since.max(other.since),
            patience: self.patience.max(other.patience),
        }
    }

    /// When the next change comes that is waited for: never if nothing is held, or if only events are left that come for ever, and all of
    /// them have come twice without setting a packet going.
    pub(crate) fn time(self) -> Nanos {
        let given_up = self.finite == 0 && self.next > self.since + self.patience;
        if !self.holds || given_up { Nanos::NEVER } else { self.next }
    }
}

/// A worker's changes to come of its links or of its sources, and what those that changed are made of.
pub(crate) struct Schedule {
    start: Nanos,
    events: Vec<Event>,
    made_of: HashMap<u32, Arc<Blocks>>,
    running: HashMap<u32, Vec<Running>>,
    queue: BinaryHeap<Reverse<(Nanos, Turn)>>,
    /// Changes that wait for their time together.
    groups: HashMap<u64, Vec<Placed>>,
    numbers: u64,
    /// Turns to come that do not repeat for ever.
    finite: u64,
    /// The longest time between two comings of an event that comes for ever.
    longest: Nanos,
    /// When all those have come for the first time, and the last turn of another was taken.
    settled: Nanos,
    /// Since when nothing but changes has happened, in virtual time.
    quiet_since: Option<Nanos>,
    /// Changes that could not be carried out.
    pub refused: Vec<String>,
}

impl Schedule {
    /// What `changes` says, from `start` on.
    pub(crate) fn new(changes: Changes, start: Nanos) -> Self {
        let mut schedule = Self {
            start,
            events: changes.events,
            made_of: changes.made_of,
            running: HashMap::new(),
            queue: BinaryHeap::new(),
            groups: HashMap::new(),
            numbers: 0,
            finite: 0,
            longest: Nanos::ZERO,
            settled: Nanos::ZERO,
            quiet_since: None,
            refused: Vec::new(),
        };
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

    /// When something changes next; never if nothing does.
    #[inline]
    pub(crate) fn next(&self) -> Nanos {
        self.queue.peek().map_or(Nanos::NEVER, |Reverse((time, _))| *time)
    }

    /// What can be hoped for in a simulated run in which nothing has happened after `last`, and nothing is left to happen but changes.
    /// `holds`: whether they can set something going.
    pub(crate) fn hope(&mut self, last: Nanos, holds: bool) -> Hope {
        let since = *self.quiet_since.get_or_insert(last);
        let patience = Nanos(self.longest.0.saturating_mul(2)).max(LONGEST);
        Hope { holds, next: self.next(), finite: self.finite, since: since.max(self.settled), patience }
    }

    /// Notes, in virtual time, that something else than changes is left to happen.
    pub(crate) fn stir(&mut self) {
        self.quiet_since = None;
    }

    /// What a link or source is made of, if it has changed or may.
    pub(crate) fn made_of(&self, place: u32) -> Option<&Arc<Blocks>> {
        self.made_of.get(&place)
    }

    fn put(&mut self, event: usize, times: u64, time: Nanos) {
        let repeat = self.events[event].repeat;
        if times > 1 && repeat.is_none_or(|repeat| repeat.times.is_some_and(|most| times > most)) {
            return;
        }
        self.finite += u64::from(!self.is_endless(event));
        self.queue.push(Reverse((time, Turn::Begin { event, times })));
    }

    pub(crate) fn is_endless(&self, event: usize) -> bool {
        self.events[event].repeat.is_some_and(|repeat| repeat.times.is_none())
    }

    /// Takes the next turn if it is due by `until`.
    pub(crate) fn pop(&mut self, until: Nanos) -> Option<(Nanos, Turn)> {
        if self.next() > until {
            return None;
        }
        let Reverse((time, turn)) = self.queue.pop()?;
        let endless = match turn {
            Turn::Begin { event, .. } => self.is_endless(event),
            Turn::Step { place, number } => self.ramp(place, number).is_some_and(|ramp| ramp.endless),
            Turn::Group { .. } => false,
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

    /// Begins a ramp of a link or source.
    pub(crate) fn begin_ramp(&mut self, place: u32, ways: Vec<Way>, ramp: Ramp, begin: Nanos, endless: bool) {
        let number = self.numbers;
        self.numbers += 1;
        let running = Running { number, ways, begin, ramp, taken: 0, endless };
        self.put_step(place, &running);
        self.running.entry(place).or_default().push(running);
    }

    fn put_step(&mut self, place: u32, running: &Running) {
        let after = running.ramp.step.0.saturating_mul(running.taken + 1).min(running.ramp.over.0);
        self.finite += u64::from(!running.endless);
        self.queue
            .push(Reverse((running.begin + Nanos(after), Turn::Step { place, number: running.number })));
    }

    /// Takes a ramp's step at `time`: what it makes of the blocks. None if nothing is left of the ramp.
    pub(crate) fn step(&mut self, place: u32, number: u64, time: Nanos) -> Option<Vec<Edit>> {
        let ramps = self.running.get_mut(&place)?;
        let mut running = ramps.swap_remove(ramps.iter().position(|ramp| ramp.number == number)?);
        running.taken += 1;
        let (done, over) = (time.since(running.begin), running.ramp.over);
        let edit = |way: &Way| {
            let value = if done < over { between(&way.from, &way.to, done, over) } else { None };
            let value = value.unwrap_or_else(|| way.to.clone());
            let fresh = way.fresh.as_ref().map(|fresh| fresh.replaced(way.at, value.clone()));
            Edit { spec: way.spec, given: vec![(way.at, value)], fresh }
        };
        let edits = running.ways.iter().map(edit).collect();
        if done < over && !running.ways.is_empty() {
            self.put_step(place, &running);
            self.running.entry(place).or_default().push(running);
        } else if self.running.get(&place).is_some_and(Vec::is_empty) {
            self.running.remove(&place);
        }
        Some(edits)
    }

    /// Lets ramps of what `edits` name end where they are: the last word counts.
    pub(crate) fn cancel(&mut self, place: u32, edits: &[Edit]) {
        let names = |edit: &Edit, way: &Way| {
            edit.spec.key == way.spec.key
                && (!edit.spec.is(way.spec) || edit.given.iter().any(|(at, _)| *at == way.at))
        };
        for ramp in self.running.get_mut(&place).into_iter().flatten() {
            ramp.ways.retain(|way| !edits.iter().any(|edit| names(edit, way)));
        }
    }

    /// Lets changes be made together at `time`.
    pub(crate) fn put_group(&mut self, changes: Vec<Placed>, time: Nanos) {
        let number = self.numbers;
        self.numbers += 1;
        self.finite += 1;
        self.groups.insert(number, changes);
        self.queue.push(Reverse((time, Turn::Group { number })));
    }

    /// Takes a group whose time has come.
    pub(crate) fn take_group(&mut self, number: u64) -> Vec<Placed> {
        self.groups.remove(&number).unwrap_or_default()
    }

    /// How many groups wait for their time.
    pub(crate) fn groups(&self) -> usize {
        self.groups.len()
    }

    /// Begins an event for the how-manieth time, at `time`, and answers what it is; its next time is noted.
    pub(crate) fn begin(&mut self, event: usize, times: u64, time: Nanos) -> Event {
        let begun = self.events[event].clone();
        if let Some(repeat) = begun.repeat {
            self.put(event, times + 1, time + repeat.every);
        }
        begun
    }

    /// What the link or source at `place` is made of: `base` unless it has changed before.
    pub(crate) fn made_of_or(&mut self, place: u32, base: Arc<Blocks>) -> Arc<Blocks> {
        Arc::clone(self.made_of.entry(place).or_insert(base))
    }

    /// Notes what it is made of from now on.
    pub(crate) fn note(&mut self, place: u32, blocks: Blocks) {
        self.made_of.insert(place, Arc::new(blocks));
    }

    /// Notes that `what` could not be changed at `time`.
    pub(crate) fn refuse(&mut self, time: Nanos, what: &str, why: &str) {
        if self.refused.len() < MOST_REFUSED {
            let at = time.since(self.start);
            self.refused.push(format!("the change of {what} at {at} was not carried out: {why}"));
        }
    }
}
