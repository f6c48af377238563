//! Threads as the processors of a real run. They run programs on copies; the worker does all else, and
//! decides about each flow's packets in order of arrival.
//!
//! The decision behind it: `docs/adr/0022-processors-on-threads.md`.

use super::measured::MeasuredSharing;
use super::processor::{Common, Job, Processor};
use super::{Comer, Host, Meter, SharingConfig, SharingError};
use crate::Classify;
use crate::classify::Class;
use crate::forwarder::{Forwarders, Ruling};
use crate::state::Fate;
use longwire_block::{DropReason, OUTBOX};
use longwire_packet::Handle;
use longwire_sched::{GrantedPacket, Scheduler, Settings, Ticket};
use longwire_units::Nanos;
use std::sync::Arc;
use std::task::Waker;

/// Most packets granted and not decided about: their results fit half an outbox.
pub(super) const MOST: usize = OUTBOX / 4;

#[derive(Debug)]
pub(super) struct Threads {
    measured: MeasuredSharing,
    processors: Vec<Processor>,
    /// The processor that is asked first for a returned packet: each in turn, or busy ones would keep others
    /// waiting.
    next: usize,
    common: Arc<Common>,
    /// By a packet's index in the scheduler: returned packets that wait for earlier ones of their flow.
    back: Vec<Option<Back>>,
    /// Packets granted and not decided about, and those of them at processors.
    open: usize,
    away: usize,
    /// When to check for returned packets, after the last visit.
    later: Nanos,
}

/// A packet that has returned from its processor, or met no program.
struct Back {
    ticket: Ticket,
    handle: Handle,
    class: Class,
    ruling: Ruling,
    /// Its processor time; none if it met no program.
    cycles: Option<u64>,
    /// It is to be dropped.
    broken_off: bool,
}

impl Threads {
    /// Starts the processors with the programs of `table`.
    pub fn new(config: &SharingConfig, meter: Meter, table: &Arc<Forwarders>) -> Result<Self, SharingError> {
        let (count, depth) = (config.settings.processors as usize, config.rings.requests);
        let most = (MOST / count).saturating_sub(1);
        if depth > most {
            return Err(SharingError::Requests { processors: count, requests: depth, most });
        }
        // Each has a packet in hand and a ring before it.
        let under_way = Some((count * (depth + 1)) as u32);
        let settings = Settings { under_way, ..config.settings.clone() };
        let measured = MeasuredSharing::new(&SharingConfig { settings, ..config.clone() }, meter)?;
        let common = Arc::new(Common::new(meter, count));
        let start = |number| Processor::start(number, depth, table, &common);
        let processors = (0..count).map(start).collect::<Result<_, _>>();
        let processors = processors.map_err(|error| SharingError::Thread { why: error.to_string() })?;
        let back = (0..config.settings.packets).map(|_| None).collect();
        Ok(Self { measured, processors, next: 0, common, back, open: 0, away: 0, later: Nanos::ZERO })
    }

    pub const fn config(&self) -> &SharingConfig {
        &self.measured.config
    }

    pub const fn scheduler(&self) -> &Scheduler {
        &self.measured.scheduler
    }

    pub const fn scheduler_mut(&mut self) -> &mut Scheduler {
        &mut self.measured.scheduler
    }

    pub fn kept(&self) -> u64 {
        self.measured.kept()
    }

    pub fn deadline(&self) -> Nanos {
        if self.away > 0 && self.processors.iter().any(Processor::is_done) {
            self.measured.wake.min(self.later)
        } else {
            self.measured.wake
        }
    }

    /// Sets how to wake the worker when a packet returns. Effective once.
    pub fn set_waker(&self, waker: &Waker) {
        self.common.waker.get_or_init(|| waker.clone());
    }

    /// Calls `act` while no program runs on a processor.
    pub fn between_packets<T>(&self, act: impl FnOnce() -> T) -> T {
        self.common.between_packets(act)
    }

    /// Admits a packet. Returns the index of its flow, if known.
    pub fn come<C: Classify>(&mut self, host: &mut Host<'_, C>, comer: Comer) -> Option<usize> {
        self.measured.come(host, comer)
    }

    /// Receives returned packets, passes on more for a while, and sends what is due.
    pub fn serve<C: Classify>(&mut self, host: &mut Host<'_, C>, now: Nanos) {
        let mut present = (self.measured.meter.now)();
        let until = self.measured.end_of_visit(present);
        self.measured.send(host, present.max(now));
        let more = loop {
            // The results of a flow's packets that are decided together need room, too.
            if present >= until || host.out.room() < OUTBOX / 2 {
                break true;
            }
            let has_come = self.take_back(host, present);
            let has_gone = self.give_next(host, present);
            if !has_come && !has_gone {
                break false;
            }
            present = (self.measured.meter.now)();
            self.measured.send(host, present);
        };
        self.later = present + Nanos(1);
        self.measured.rest(present, more);
    }

    /// Receives a returned packet, if there is one.
    fn take_back<C: Classify>(&mut self, host: &mut Host<'_, C>, now: Nanos) -> bool {
        let count = self.processors.len();
        let mut numbers = (self.next..count).chain(0..self.next);
        let returned = numbers.find_map(|number| Some((number, self.processors[number].take()?)));
        let Some((number, mut job)) = returned else { return false };
        self.next = (number + 1) % count;
        self.away -= 1;
        let back = job.packet.take().map(|(granted, class)| came_back(host, &mut job, (granted, class), now));
        self.processors[number].put(job);
        if let Some((granted, back)) = back {
            if let Some(cycles) = back.cycles {
                self.measured.scheduler.feedback(granted.key, cycles);
            }
            self.decide_in_order(host, &granted, back, now);
        }
        true
    }

    /// Passes the next packet to the processor with the least load, unless all are full.
    fn give_next<C: Classify>(&mut self, host: &mut Host<'_, C>, now: Nanos) -> bool {
        let idlest = self.processors.iter_mut().min_by_key(|processor| processor.load());
        let Some(processor) = idlest.filter(|processor| !processor.is_full() && self.open < MOST) else {
            return false;
        };
        let Some(granted) = self.measured.grant() else { return false };
        let Some(mut job) = processor.job() else { return false };
        self.open += 1;
        let handle = Handle(granted.handle);
        host.pool.meta_mut(handle).arrival = now.0;
        let class = host.core.classify_one(host.classifier, host.pool, handle);
        let sent = match class {
            Class::Dropped(_) => Err(Ruling::NONE),
            _ => host.programs.send(&mut job.errand, host.pool, handle),
        };
        match sent {
            Ok(()) => {
                job.packet = Some((granted, class));
                processor.give(job);
                self.away += 1;
            }
            Err(ruling) => {
                processor.put(job);
                let ticket = granted.ticket;
                let back = Back { ticket, handle, class, ruling, cycles: None, broken_off: false };
                self.decide_in_order(host, &granted, back, now);
            }
        }
        true
    }

    /// Decides about a packet, once all earlier ones of its flow are decided, and about those that have
    /// waited for it.
    fn decide_in_order<C: Classify>(
        &mut self,
        host: &mut Host<'_, C>,
        granted: &GrantedPacket,
        back: Back,
        now: Nanos,
    ) {
        self.back[granted.ticket.place()] = Some(back);
        while let Some(oldest) = self.measured.scheduler.oldest_working(granted.key)
            && let Some(back) = self.back[oldest.place()].take()
        {
            self.open -= 1;
            self.decide(host, granted.key, &back, now);
        }
    }

    fn decide<C: Classify>(&mut self, host: &mut Host<'_, C>, key: u32, back: &Back, now: Nanos) {
        host.out.at(now);
        host.core.before.resume(back.handle);
        if back.broken_off {
            self.measured.scheduler.abandon(back.ticket);
            host.core.settle(host.pool, back.handle, Fate::Dropped(DropReason::Aborted), host.out);
            return;
        }
        let before = (self.measured.meter.cycles)();
        let gone_on = host.carry_out((back.handle, back.class, &back.ruling), now);
        host.core.before.clear();
        let cycles = back.cycles.unwrap_or_else(|| {
            let cycles = (self.measured.meter.cycles)().wrapping_sub(before);
            self.measured.scheduler.feedback(key, cycles);
            cycles
        });
        self.measured.processed(back.ticket, cycles, gone_on);
    }
}

/// Completes a packet that has returned. If another packet replaces it, that one is used from here on.
fn came_back<C: Classify>(
    host: &mut Host<'_, C>,
    job: &mut Job,
    (granted, mut class): (GrantedPacket, Class),
    now: Nanos,
) -> (GrantedPacket, Back) {
    host.out.at(now);
    let (mut handle, broken_off) = (Handle(granted.handle), job.errand.is_broken_off());
    let router = (&mut *host.core, &mut *host.classifier);
    let mut ruling =
        host.programs.came_back(&mut job.errand, router, host.pool, (handle, &mut class), host.out);
    match ruling.instead.take() {
        Some(other) => {
            host.core.settle(host.pool, handle, Fate::Consumed, host.out);
            handle = other;
        }
        // Earlier packets of its flow may have to be decided first.
        None => host.core.before.hold(handle),
    }
    host.core.before.clear();
    let cycles = (!broken_off).then_some(job.cycles);
    (granted, Back { ticket: granted.ticket, handle, class, ruling, cycles, broken_off })
}

impl std::fmt::Debug for Back {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Back")
            .field("ticket", &self.ticket)
            .field("handle", &self.handle)
            .finish_non_exhaustive()
    }
}
