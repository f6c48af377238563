//! Services in virtual time: run inline by one server, with a declared time per packet.

use crate::allowance::{Allowance, SharedAllowance, TRIP, copying};
use crate::attachment::{Counts, OfferError};
use crate::layout::{Class, Facts};
use crate::level::{AttachmentId, AttachmentView};
use crate::limits::Limits;
use crate::return_path::ReturnPath;
use crate::service::{PuntedPacket, Service, ServiceOutput};
use crate::turns::Turns;
use longwire_block::DropReason;
use longwire_packet::{Handle, Pool};
use longwire_units::Nanos;
use std::collections::VecDeque;

/// A service with its declared cost.
pub struct InlineService {
    /// Its name.
    pub name: Box<str>,
    /// The service.
    pub service: Box<dyn Service>,
    /// Server time per packet.
    pub time: Nanos,
    /// Its share of the server, relative to others.
    pub weight: u64,
    /// Queue limit, time limit, and what happens then. An inline service is never cut off, because it is
    /// never silent.
    pub limits: Limits,
}

/// The server of all services of a node. Its behaviour only depends on packets and their times.
pub struct Inline {
    services: Vec<QueuedService>,
    turns: Turns,
    serving: Option<Serving>,
    tokens: u64,
    kept: u64,
    made: ServiceOutput,
}

struct QueuedService {
    name: Box<str>,
    service: Box<dyn Service>,
    time: Nanos,
    limits: Limits,
    waiting: VecDeque<(Handle, Facts)>,
    /// Guaranteed worker time.
    reserved: Allowance,
    counts: Counts,
}

struct Serving {
    which: usize,
    handle: Handle,
    facts: Facts,
    done: Nanos,
}

/// Next event.
enum Event {
    /// The verdict on the packet being served.
    Done,
    /// The oldest packet of this service can no longer be finished in time.
    Late(usize),
}

impl Inline {
    /// Creates the server of these services, at most [`MOST_SERVICES`](crate::MOST_SERVICES).
    pub fn new(services: Vec<InlineService>, mut turns: Turns) -> Self {
        turns.weigh(&services.iter().map(|each| each.weight).enumerate().collect::<Vec<_>>());
        let attached = |InlineService { name, service, time, limits, .. }: InlineService| {
            let waiting = VecDeque::with_capacity(limits.packets as usize);
            let reserved = Allowance::new(limits.reserved);
            QueuedService { name, service, time, limits, waiting, reserved, counts: Counts::default() }
        };
        Self {
            services: services.into_iter().map(attached).collect(),
            turns,
            serving: None,
            tokens: 0,
            kept: 0,
            made: ServiceOutput::default(),
        }
    }

    /// Whether no worker time is left for a packet of this service, which is then counted.
    pub(crate) fn refuses(&mut self, which: usize, common: &mut SharedAllowance, now: Nanos) -> bool {
        let Some(attached) = self.services.get_mut(which) else { return false };
        let is_out_of_time = !common.allows(&mut attached.reserved, now);
        attached.counts.over_time += u64::from(is_out_of_time);
        is_out_of_time
    }

    pub(crate) fn offer(
        &mut self,
        which: usize,
        pool: &Pool,
        handle: Handle,
        class: &Class,
        common: &mut SharedAllowance,
    ) -> Result<(), OfferError> {
        let Some(attached) = self.services.get_mut(which) else { return Err(OfferError::Gone) };
        if attached.waiting.len() >= attached.limits.packets as usize {
            attached.counts.full += 1;
            return Err(OfferError::Full);
        }
        let meta = pool.meta(handle);
        if !common.allows(&mut attached.reserved, Nanos(meta.arrival)) {
            attached.counts.over_time += 1;
            return Err(OfferError::Full);
        }
        attached.spend(common, TRIP + copying(meta.len as usize));
        let facts = Facts {
            token: self.tokens,
            time: meta.arrival,
            expires: (Nanos(meta.arrival) + attached.limits.answer_within).0,
            in_port: meta.in_port,
            len: meta.len,
            segments: meta.segments,
            class: *class,
        };
        self.tokens += 1;
        self.kept += u64::from(meta.segments);
        attached.counts.up += 1;
        attached.waiting.push_back((handle, facts));
        let (now, time) = (Nanos(meta.arrival), attached.time.0);
        self.turns.enter(1 << which, now, |_| Some(time));
        if self.serving.is_none() {
            self.begin(now);
        }
        Ok(())
    }

    /// Returns packets finished by `path.now`, and takes back those that can't be finished in time, each at
    /// its time.
    pub(crate) fn collect(&mut self, path: &mut ReturnPath<'_>) {
        let now = path.now;
        while path.has_room()
            && let Some((time, event)) = self.next().filter(|(time, _)| *time <= now)
        {
            path.now = time;
            path.out.at(time);
            match event {
                Event::Done => self.finish(path),
                Event::Late(which) => self.take_back(path, which),
            }
            if self.serving.is_none() {
                self.begin(time);
            }
        }
        path.now = now;
    }

    /// Time of the next completion or expiry.
    pub(crate) fn deadline(&self) -> Nanos {
        self.next().map_or(Nanos::NEVER, |(time, _)| time)
    }

    pub(crate) const fn kept(&self) -> u64 {
        self.kept
    }

    /// Guaranteed worker time of all services, in nanoseconds per second.
    pub(crate) fn reserved(&self) -> u64 {
        self.services.iter().map(|service| service.limits.reserved).sum()
    }

    pub(crate) fn attachments(&self) -> impl Iterator<Item = AttachmentView<'_>> {
        self.services.iter().enumerate().map(|(number, service)| AttachmentView {
            attachment: AttachmentId::slow(number),
            level: "slow-path",
            name: &service.name,
            is_taken: true,
            kept: service.counts.up - service.counts.verdicts - service.counts.late,
            counts: service.counts,
        })
    }

    pub(crate) fn counts(&self, which: usize) -> Option<&Counts> {
        self.services.get(which).map(|attached| &attached.counts)
    }

    /// The next event and its time. At equal times a verdict is processed, and the next packet begun, before
    /// packets are taken back.
    fn next(&self) -> Option<(Nanos, Event)> {
        let done = self.serving.as_ref().map(|serving| (serving.done, Event::Done));
        let late =
            (0..).zip(&self.services).filter_map(|(which, one)| Some((one.latest()?, Event::Late(which))));
        done.into_iter().chain(late).min_by_key(|(time, _)| *time)
    }

    /// Begins the next packet that will be finished in time.
    fn begin(&mut self, at: Nanos) {
        let ready = (0..).zip(&self.services).fold(0, |ready, (index, service)| {
            let is_ready =
                service.waiting.front().is_some_and(|(_, facts)| (at + service.time).0 <= facts.expires);
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

    /// Completes a packet and executes its verdict.
    fn finish(&mut self, path: &mut ReturnPath<'_>) {
        let Some(Serving { which, handle, facts, .. }) = self.serving.take() else { return };
        self.turns.charge(self.services[which].time.0);
        let attached = &mut self.services[which];
        self.kept -= u64::from(facts.segments);
        let before = *path.pool.first_line(handle);
        let mut packet = PuntedPacket::new(facts, path.pool.data_mut(handle));
        let verdict = attached.service.handle(&mut packet, &mut self.made);
        let is_changed = packet.is_changed();
        if is_changed && path.passes(verdict) {
            path.rewritten.push((handle, before));
        }
        let written = if is_changed { facts.len as usize } else { 0 };
        attached.spend(path.common, copying(written));
        attached.counts.verdicts += 1;
        attached.counts.faults += u64::from(!path.obey(handle, verdict));
        for (port, frame) in self.made.take() {
            let is_made = path.out.room() > 0
                && path.common.allows(&mut attached.reserved, path.now)
                && path.may_make(port, frame.len())
                && path.make(port, None, frame.len(), |bytes| bytes.copy_from_slice(&frame));
            *if is_made { &mut attached.counts.made } else { &mut attached.counts.unmade } += 1;
            attached.spend(path.common, TRIP + copying(frame.len()));
        }
    }

    /// Takes back a service's oldest packet, which has used no server time.
    fn take_back(&mut self, path: &mut ReturnPath<'_>, which: usize) {
        let service = &mut self.services[which];
        let Some((handle, facts)) = service.waiting.pop_front() else { return };
        self.kept -= u64::from(facts.segments);
        service.counts.late += 1;
        if service.limits.drops {
            path.out.refuse(path.pool, handle, DropReason::LevelLate);
        } else {
            path.pass(handle);
        }
    }
}

impl QueuedService {
    /// Subtracts the worker's cost of moving its packets.
    fn spend(&mut self, common: &mut SharedAllowance, work: u64) {
        common.spend(&mut self.reserved, work);
        self.counts.worker_ns += work;
    }

    /// Latest start of its oldest packet: a later one would miss the time limit and waste server time.
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
