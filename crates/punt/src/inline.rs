//! Services in virtual time: run in line, by one server, for a declared time a packet.

use crate::layout::{Class, Facts};
use crate::punt::{SeatId, Seated};
use crate::seat::{Counts, Refused, Way};
use crate::service::{Made, Punted, Service};
use crate::turns::Turns;
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
    /// Most packets that wait for it.
    pub packets: usize,
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
    packets: usize,
    waiting: VecDeque<(Handle, Facts)>,
    counts: Counts,
}

struct Serving {
    which: usize,
    handle: Handle,
    facts: Facts,
    done: Nanos,
}

impl Inline {
    /// For these services, 64 at most, in the turns that a scheduler gives them.
    pub fn new(services: Vec<InlineService>, mut turns: Turns) -> Self {
        turns.weigh(&services.iter().map(|each| each.weight).enumerate().collect::<Vec<_>>());
        let seated = |InlineService { name, service, time, packets, .. }| Desk {
            name,
            service,
            time,
            packets,
            waiting: VecDeque::with_capacity(packets),
            counts: Counts::default(),
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

    pub(crate) fn offer(
        &mut self,
        which: usize,
        pool: &Pool,
        handle: Handle,
        class: &Class,
    ) -> Result<(), Refused> {
        let Some(seated) = self.services.get_mut(which) else { return Err(Refused::Gone) };
        if seated.waiting.len() >= seated.packets {
            seated.counts.full += 1;
            return Err(Refused::Full);
        }
        let meta = pool.meta(handle);
        let facts = Facts {
            token: self.tokens,
            time: meta.arrival,
            expires: u64::MAX,
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

    /// Gives out what is done by `way.now`, each at its time.
    pub(crate) fn collect(&mut self, way: &mut Way<'_>) {
        let now = way.now;
        while way.has_room()
            && let Some(serving) = self.serving.take_if(|serving| serving.done <= now)
        {
            way.now = serving.done;
            way.out.at(serving.done);
            self.finish(way, serving);
            self.begin(way.now);
        }
        way.now = now;
    }

    /// When something is done next.
    pub(crate) fn deadline(&self) -> Nanos {
        self.serving.as_ref().map_or(Nanos::NEVER, |serving| serving.done)
    }

    pub(crate) const fn kept(&self) -> u64 {
        self.kept
    }

    pub(crate) fn seats(&self) -> impl Iterator<Item = Seated<'_>> {
        self.services.iter().enumerate().map(|(number, desk)| Seated {
            seat: SeatId::slow(number),
            level: "slow-path",
            name: &desk.name,
            is_taken: true,
            kept: desk.counts.up - desk.counts.verdicts,
            counts: desk.counts,
        })
    }

    pub(crate) fn counts(&self, which: usize) -> Option<&Counts> {
        self.services.get(which).map(|seated| &seated.counts)
    }

    fn begin(&mut self, at: Nanos) {
        let ready = (0..)
            .zip(&self.services)
            .fold(0, |ready, (index, seated)| ready | u64::from(!seated.waiting.is_empty()) << index);
        let Self { services, turns, .. } = self;
        turns.enter(ready, at, |which| Some(services[which].time.0));
        if let Some(which) = turns.pick(ready)
            && let Some((handle, facts)) = self.services[which].waiting.pop_front()
        {
            let time = self.services[which].time;
            self.serving = Some(Serving { which, handle, facts, done: at + time });
        }
    }

    fn finish(&mut self, way: &mut Way<'_>, serving: Serving) {
        let Serving { which, handle, facts, .. } = serving;
        self.turns.charge(self.services[which].time.0);
        let seated = &mut self.services[which];
        self.kept -= u64::from(facts.segments);
        let mut packet = Punted::new(facts, way.pool.data_mut(handle));
        let verdict = seated.service.handle(&mut packet, &mut self.made);
        seated.counts.verdicts += 1;
        seated.counts.faults += u64::from(!way.obey(handle, verdict));
        for (port, frame) in self.made.take() {
            let is_made = way.out.room() > 0
                && way.may_make(port, frame.len())
                && way.make(port, None, frame.len(), |bytes| bytes.copy_from_slice(&frame));
            *if is_made { &mut seated.counts.made } else { &mut seated.counts.unmade } += 1;
        }
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
