//! Services in virtual time: run in line, by one server, for a declared time a packet.

use crate::allowance::{Allowance, Common, TRIP, copying};
use crate::layout::{Class, Facts, Verdict};
use crate::level::{SeatId, Seated};
use crate::limits::Limits;
use crate::seat::{Counts, Refused};
use crate::service::{Made, Punted, Service};
use crate::turns::Turns;
use crate::way::Way;
use longwire_block::DropReason;
use longwire_packet::{Handle, Pool};
use longwire_units::Nanos;
use std::collections::VecDeque;

/// A service and what it is taken to cost.
pub struct InlineService {
    /// What it is called.
    pub name: Box<str>,
    /// The service.
    pub service: Box<dyn Service>,
    /// How long it has the server for a packet.
    pub time: Nanos,
    /// Its share of the server, beside others'.
    pub weight: u64,
    /// How many packets may wait for it, how long, and what becomes of them then. Nobody is cut off: a service in line is never silent.
    pub limits: Limits,
}

/// One server for all services of a node. What it does depends on nothing but packets and their times.
pub struct Inline {
    services: Vec<Desk>,
    turns: Turns,
    serving: Option<Serving>,
    tokens: u64,
    kept: u64,
    made: Made,
}

struct Desk {
    name: Box<str>,
    service: Box<dyn Service>,
    time: Nanos,
    limits: Limits,
    waiting: VecDeque<(Handle, Facts)>,
    /// The worker's time that was promised.
    aside: Allowance,
    counts: Counts,
}

struct Serving {
    which: usize,
    handle: Handle,
    facts: Facts,
    done: Nanos,
}

/// What comes next.
enum Event {
    /// The verdict about the packet that is being served.
    Done,
    /// The oldest packet of this service's can't be done in time any more.
    Late(usize),
}

impl Inline {
    /// For these services, 64 at most, in the turns that a scheduler gives them.
    pub fn new(services: Vec<InlineService>, mut turns: Turns) -> Self {
        turns.weigh(&services.iter().map(|each| each.weight).enumerate().collect::<Vec<_>>());
        let seated = |InlineService { name, service, time, limits, .. }: InlineService| {
            let waiting = VecDeque::with_capacity(limits.packets as usize);
            let aside = Allowance::new(limits.aside);
            Desk { name, service, time, limits, waiting, aside, counts: Counts::default() }
        };
        Self {
            services: services.into_iter().map(seated).collect(),
            turns,
            serving: None,
            tokens: 0,
            kept: 0,
            made: Made::default(),
        }
    }

    /// Whether no time is left for a packet of this service's; it is counted then.
    pub(crate) fn refuses(&mut self, which: usize, common: &mut Common, now: Nanos) -> bool {
        let Some(seated) = self.services.get_mut(which) else { return false };
        let is_out_of_time = !common.allows(&mut seated.aside, now);
        seated.counts.over_time += u64::from(is_out_of_time);
        is_out_of_time
    }

    pub(crate) fn offer(
        &mut self,
        which: usize,
        pool: &Pool,
        handle: Handle,
        class: &Class,
        common: &mut Common,
    ) -> Result<(), Refused> {
        let Some(seated) = self.services.get_mut(which) else { return Err(Refused::Gone) };
        if seated.waiting.len() >= seated.limits.packets as usize {
            seated.counts.full += 1;
            return Err(Refused::Full);
        }
        let meta = pool.meta(handle);
        if !common.allows(&mut seated.aside, Nanos(meta.arrival)) {
            seated.counts.over_time += 1;
            return Err(Refused::Full);
        }
        seated.spend(common, TRIP + copying(meta.len as usize));
        let facts = Facts {
            token: self.tokens,
            time: meta.arrival,
            expires: (Nanos(meta.arrival) + seated.limits.answer_within).0,
            in_port: meta.in_port,
            len: meta.len,
            segments: meta.segments,
            class: *class,
        };
        self.tokens += 1;
        self.kept += u64::from(meta.segments);
        seated.counts.up += 1;
        seated.waiting.push_back((handle, facts));
        let (now, time) = (Nanos(meta.arrival), seated.time.0);
        self.turns.enter(1 << which, now, |_| Some(time));
        if self.serving.is_none() {
            self.begin(now);
        }
        Ok(())
    }

    /// Gives out what is done by `way.now`, and takes back what can't be done in time any more, each at its time.
    pub(crate) fn collect(&mut self, way: &mut Way<'_>) {
        let now = way.now;
        while way.has_room()
            && let Some((time, event)) = self.next().filter(|(time, _)| *time <= now)
        {
            way.now = time;
            way.out.at(time);
            match event {
                Event::Done => self.finish(way),
                Event::Late(which) => self.take_back(way, which),
            }
            if self.serving.is_none() {
                self.begin(time);
            }
        }
        way.now = now;
    }

    /// When something is done next, or is too late to be begun.
    pub(crate) fn deadline(&self) -> Nanos {
        self.next().map_or(Nanos::NEVER, |(time, _)| time)
    }

    pub(crate) const fn kept(&self) -> u64 {
        self.kept
    }

    /// What all services were promised of the worker's time, in nanoseconds a second.
    pub(crate) fn aside(&self) -> u64 {
        self.services.iter().map(|desk| desk.limits.aside).sum()
    }

    pub(crate) fn seats(&self) -> impl Iterator<Item = Seated<'_>> {
        self.services.iter().enumerate().map(|(number, desk)| Seated {
            seat: SeatId::slow(number),
            level: "slow-path",
            name: &desk.name,
            is_taken: true,
            kept: desk.counts.up - desk.counts.verdicts - desk.counts.late,
            counts: desk.counts,
        })
    }

    pub(crate) fn counts(&self, which: usize) -> Option<&Counts> {
        self.services.get(which).map(|seated| &seated.counts)
    }

    /// What comes next, and when. At one time a verdict is heard, and the next packet begun, before packets are taken back.
    fn next(&self) -> Option<(Nanos, Event)> {
        let late = (0..).zip(&self.services).filter_map(|(which, desk)| Some((desk.latest()?, which))).min();
        match (&self.serving, late) {
            (Some(serving), Some((latest, _))) if serving.done <= latest => Some((serving.done, Event::Done)),
            (_, Some((latest, which))) => Some((latest, Event::Late(which))),
            (Some(serving), None) => Some((serving.done, Event::Done)),
            (None, None) => None,
        }
    }

    /// Begins the packet whose turn it is, of those that will be done in time.
    fn begin(&mut self, at: Nanos) {
        let ready = (0..).zip(&self.services).fold(0, |ready, (index, desk)| {
            let is_ready = desk.waiting.front().is_some_and(|(_, facts)| (at + desk.time).0 <= facts.expires);
            ready | u64::from(is_ready) << index
        });
        let Self { services, turns, .. } = self;
        turns.enter(ready, at, |which| Some(services[which].time.0));
        if let Some(which) = turns.pick(ready)
            && let Some((handle, facts)) = self.services[which].waiting.pop_front()
        {
            let done = at + self.services[which].time;
            self.serving = Some(Serving { which, handle, facts, done });
        }
    }

    /// The server is done with a packet: what is said about it is obeyed.
    fn finish(&mut self, way: &mut Way<'_>) {
        let Some(Serving { which, handle, facts, .. }) = self.serving.take() else { return };
        self.turns.charge(self.services[which].time.0);
        let seated = &mut self.services[which];
        self.kept -= u64::from(facts.segments);
        let before = *way.pool.first_line(handle);
        let mut packet = Punted::new(facts, way.pool.data_mut(handle));
        let verdict = seated.service.handle(&mut packet, &mut self.made);
        if packet.is_changed() && verdict == Verdict::Pass {
            way.rewritten.push((handle, before));
        }
        let written = if packet.is_changed() { facts.len as usize } else { 0 };
        seated.spend(way.common, copying(written));
        seated.counts.verdicts += 1;
        seated.counts.faults += u64::from(!way.obey(handle, verdict));
        for (port, frame) in self.made.take() {
            let is_made = way.out.room() > 0
                && way.common.allows(&mut seated.aside, way.now)
                && way.may_make(port, frame.len())
                && way.make(port, None, frame.len(), |bytes| bytes.copy_from_slice(&frame));
            *if is_made { &mut seated.counts.made } else { &mut seated.counts.unmade } += 1;
            seated.spend(way.common, TRIP + copying(frame.len()));
        }
    }

    /// Takes back a service's oldest packet, which has cost the server nothing.
    fn take_back(&mut self, way: &mut Way<'_>, which: usize) {
        let desk = &mut self.services[which];
        let Some((handle, facts)) = desk.waiting.pop_front() else { return };
        self.kept -= u64::from(facts.segments);
        desk.counts.late += 1;
        if desk.limits.drops {
            way.out.refuse(way.pool, handle, DropReason::LevelLate);
        } else {
            way.pass(handle);
        }
    }
}

impl Desk {
    /// Takes off what moving its packets costs the worker.
    fn spend(&mut self, common: &mut Common, work: u64) {
        common.spend(&mut self.aside, work);
        self.counts.worker_ns += work;
    }

    /// When its oldest packet has to be begun: what is begun later is not done in time, and would take the server's time from packets that can be.
    fn latest(&self) -> Option<Nanos> {
        let (_, facts) = self.waiting.front()?;
        Some(Nanos(facts.expires.saturating_sub(self.time.0).max(facts.time)))
    }
}

impl std::fmt::Debug for Inline {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inline")
            .field("services", &self.services.len())
            .field("kept", &self.kept)
            .finish_non_exhaustive()
    }
}
