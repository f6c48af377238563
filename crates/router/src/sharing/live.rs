//! Processors of a real run, with measured costs. If there is one, it is the engine's worker: each packet's
//! cycles are measured while the router works on it, and predict those of its flow's next packet. Several are
//! threads, which run programs on copies; the worker does all else, and decides about each flow's packets in
//! order of arrival.
//!
//! The decision behind it: `docs/adr/0022-processors-on-threads.md`.

use super::processor::{Common, Job, Processor};
use super::{Comer, Host, Meter, SharingConfig, SharingError};
use crate::Classify;
use crate::classify::Class;
use crate::forwarder::{Forwarders, Ruling};
use crate::state::Fate;
use longwire_block::{DropReason, OUTBOX};
use longwire_packet::Handle;
use longwire_sched::{GrantedPacket, Resource, Scheduler, Settings, Ticket};
use longwire_units::Nanos;
use std::io;
use std::sync::Arc;

/// Most packets granted to threads and not decided about: their results fit half an outbox.
pub(super) const MOST: usize = OUTBOX / 4;

/// Limits of the time for which packets are processed before the worker polls for packets again: as long as
/// polling took last.
const VISIT: (Nanos, Nanos) = (Nanos::from_micros(20), Nanos::from_micros(500));

/// See the module.
#[derive(Debug)]
pub(super) struct Live {
    pub scheduler: Scheduler,
    meter: Meter,
    /// By a packet's index in the scheduler: the index of its output port, and its handle after processing.
    decided: Vec<(u16, Handle)>,
    /// The packet that each port is sending, its index, and its end.
    sending: Vec<Option<(u16, Handle, Nanos)>>,
    /// When it must be called next, and when it was last done.
    wake: Nanos,
    done: Nanos,
    /// The threads; none if the worker is the only processor.
    processors: Vec<Processor>,
    /// The processor that is asked first for a returned packet: each in turn, or busy ones would keep others
    /// waiting.
    next: usize,
    pub common: Arc<Common>,
    /// By a packet's index in the scheduler: returned packets that wait for earlier ones of their flow.
    back: Vec<Option<Back>>,
    /// Packets granted and not decided about, and those of them at processors.
    open: usize,
    away: usize,
    /// When to check for returned packets, after the last visit.
    later: Nanos,
}

/// A packet that has returned from its processor, or met no program.
#[derive(Debug)]
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

impl Live {
    /// Starts the processors, with the programs of `table`.
    pub fn new(config: &SharingConfig, meter: Meter, table: &Arc<Forwarders>) -> Result<Self, SharingError> {
        let (several, depth) = (config.settings.processors as usize, config.rings.requests);
        let mut settings = measured(&config.settings, meter.per_microsecond);
        settings.ready_limit = Some(config.rings.ready);
        let (mut count, mut waiting) = (0, 0);
        if let Some(most) = config.most_requests() {
            if depth > most {
                return Err(SharingError::Requests { processors: several, requests: depth, most });
            }
            // Each has a packet in hand and a ring before it.
            settings.under_way = Some((several * (depth + 1)) as u32);
            (count, waiting) = (several, settings.packets);
        }
        let scheduler = Scheduler::new(&config.scheduler, &settings)?;
        let common = Arc::new(Common::new(meter, count));
        let start = |number| Processor::start(number, depth, table, &common);
        let processors = (0..count).map(start).collect::<io::Result<_>>();
        let processors = processors.map_err(|error| SharingError::Thread { why: error.to_string() })?;
        Ok(Self {
            scheduler,
            meter,
            decided: vec![(0, Handle::NONE); settings.packets as usize],
            sending: vec![None; settings.ports.into()],
            wake: Nanos::NEVER,
            done: Nanos::ZERO,
            processors,
            next: 0,
            common,
            back: (0..waiting).map(|_| None).collect(),
            open: 0,
            away: 0,
            later: Nanos::ZERO,
        })
    }

    pub fn kept(&self) -> u64 {
        u64::from(self.scheduler.inside()) + self.sending.iter().flatten().count() as u64
    }

    pub fn deadline(&self) -> Nanos {
        if self.away > 0 && self.processors.iter().any(Processor::is_done) {
            self.wake.min(self.later)
        } else {
            self.wake
        }
    }

    /// Admits a packet. Returns the index of its flow, if known.
    pub fn come<C: Classify>(&mut self, host: &mut Host<'_, C>, comer: Comer) -> Option<usize> {
        let meta = host.pool.meta(comer.handle);
        let (bytes, arrival) = (meta.wire_len, Nanos(meta.arrival));
        self.scheduler.aim(comer.flow.key, comer.port);
        match self.scheduler.enqueue(comer.flow.key, comer.handle.0, bytes, arrival) {
            Ok(ticket) => {
                self.wake = self.wake.min(arrival);
                Some(self.scheduler.flow_of(ticket))
            }
            Err(_) => {
                let fate = Fate::Dropped(DropReason::FlowFull);
                host.pool.meta_mut(comer.handle).out_port = fate.code();
                host.core.counts.note(fate, 1);
                // A flow is known, and reported, even if its first packet was refused.
                self.scheduler.place_of(comer.flow.key)
            }
        }
    }

    /// Processes packets for a while, and sends what is due.
    pub fn serve<C: Classify>(&mut self, host: &mut Host<'_, C>, now: Nanos) {
        if self.processors.is_empty() {
            self.visit(host, now, Self::process_next);
        } else {
            self.visit(host, now, Self::exchange);
        }
    }

    /// Calls `work` for a while, as long as that finds some, and sends what is due.
    fn visit<C: Classify>(
        &mut self,
        host: &mut Host<'_, C>,
        now: Nanos,
        work: impl Fn(&mut Self, &mut Host<'_, C>, Nanos) -> bool,
    ) {
        let mut present = (self.meter.now)();
        let (least, most) = VISIT;
        let until = present + present.since(self.done).clamp(least, most);
        self.send(host, present.max(now));
        let more = loop {
            // Packets created during processing, and a flow's packets that are decided together, need room,
            // too.
            if present >= until || host.out.room() < OUTBOX / 2 {
                break true;
            }
            if !work(self, host, present) {
                break false;
            }
            present = (self.meter.now)();
            self.send(host, present);
        };
        (self.done, self.later) = (present, present + Nanos(1));
        let sent = self.sending.iter().flatten().map(|(.., end)| *end).min().unwrap_or(Nanos::NEVER);
        // Not before the worker has polled for packets: its time now is before the present.
        self.wake = if more { sent.min(self.later) } else { sent };
    }

    /// Processes the next packet on the worker. False if there is none.
    fn process_next<C: Classify>(&mut self, host: &mut Host<'_, C>, now: Nanos) -> bool {
        let Some(granted) = self.scheduler.dequeue(Resource::Processor) else { return false };
        let cycles = self.meter.cycles;
        let before = cycles();
        let decided = host.process(Handle(granted.handle), now);
        let cycles = cycles().wrapping_sub(before);
        self.scheduler.feedback(granted.key, cycles);
        self.processed(granted.ticket, cycles, decided);
        true
    }

    /// Receives a packet from a thread, and passes on the next. False if there is neither.
    fn exchange<C: Classify>(&mut self, host: &mut Host<'_, C>, now: Nanos) -> bool {
        let has_come = self.take_back(host, now);
        let has_gone = self.give_next(host, now);
        has_come || has_gone
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
                self.scheduler.feedback(granted.key, cycles);
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
        let Some(granted) = self.scheduler.dequeue(Resource::Processor) else { return false };
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
        while let Some(oldest) = self.scheduler.oldest_working(granted.key)
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
            self.scheduler.abandon(back.ticket);
            host.core.settle(host.pool, back.handle, Fate::Dropped(DropReason::Aborted), host.out);
            return;
        }
        let before = (self.meter.cycles)();
        let gone_on = host.carry_out((back.handle, back.class, &back.ruling), now);
        host.core.before.clear();
        let cycles = back.cycles.unwrap_or_else(|| {
            let cycles = (self.meter.cycles)().wrapping_sub(before);
            self.scheduler.feedback(key, cycles);
            cycles
        });
        self.processed(back.ticket, cycles, gone_on);
    }

    /// Records that a processor has finished a packet, which leaves by the port at this index, if any.
    fn processed(&mut self, ticket: Ticket, cycles: u64, gone_on: Option<(Handle, u16)>) {
        let Some((handle, place)) = gone_on else {
            self.scheduler.consume(ticket, Some(cycles));
            return;
        };
        self.decided[ticket.place()] = (place, handle);
        self.scheduler.processed(ticket, Some(cycles));
    }

    /// Completes transmissions, and starts the next ones. A busy port continues at the time when it was done,
    /// not when that is noticed.
    fn send<C: Classify>(&mut self, host: &mut Host<'_, C>, now: Nanos) {
        for port in 0..self.scheduler.settings().ports {
            let mut begin = now;
            loop {
                match self.sending[usize::from(port)] {
                    Some((.., end)) if end > now => break,
                    Some((place, handle, end)) => {
                        host.out.at(end);
                        host.core.settle(host.pool, handle, Fate::Out(place), host.out);
                        (begin, self.sending[usize::from(port)]) = (end, None);
                    }
                    None => {
                        if host.out.room() < OUTBOX / 4 {
                            break;
                        }
                        let Some(granted) = self.scheduler.dequeue(Resource::Port(port)) else { break };
                        let time = Nanos(self.scheduler.settings().port.bytes(granted.bytes).into());
                        let (place, handle) = self.decided[granted.ticket.place()];
                        self.sending[usize::from(port)] = Some((place, handle, begin + time));
                    }
                }
            }
        }
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
    let mut handle = Handle(granted.handle);
    let broken_off = job.errand.fault == Some(DropReason::Aborted);
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

/// Settings converted to cycles of the meter.
fn measured(settings: &Settings, per_microsecond: u32) -> Settings {
    // The same time as in cycles of the model's clock.
    let same_time = |cycles: u64| {
        (u128::from(cycles) * u128::from(per_microsecond) / u128::from(settings.clock_mhz)).clamp(1, 1 << 30)
            as u64
    };
    let budget = same_time(settings.budget);
    let first_estimate =
        settings.first_estimate.map(|first| if first == 0 { 0 } else { same_time(first).min(budget) });
    Settings { clock_mhz: per_microsecond, budget, first_estimate, ..settings.clone() }
}
