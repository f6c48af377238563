//! Processors in virtual time: the machine of `longwire_sched::model`, whose packets are the router's.

use super::{Comer, Host, SharingConfig, SharingError};
use crate::Classify;
use crate::state::Fate;
use longwire_block::{Dice, DropReason};
use longwire_packet::{Handle, Meta};
use longwire_sched::model::{Departure, DropCause, Machine, Packet, Setup, Traffic};
use longwire_sched::{Estimator, Settings};
use longwire_units::Nanos;

#[derive(Debug)]
pub(super) struct Model {
    pub machine: Machine,
    dice: Dice,
}

impl Model {
    pub fn new(config: &SharingConfig, seed: u64) -> Result<Self, SharingError> {
        let settings = &config.settings;
        // Processors continue with packets in the ring before them and in the scheduler's hands, for which it
        // decides while they are busy. A line that could not be served then would lose its turn to another.
        let before = u32::try_from(config.rings.requests).unwrap_or(u32::MAX).saturating_add(1);
        let under_way = Some(settings.processors.saturating_add(before));
        let setup = Setup {
            scheduler: config.scheduler.to_string(),
            settings: Settings { ready_limit: Some(config.rings.ready), under_way, ..settings.clone() },
            input_ring: config.rings.input,
            request_ring: config.rings.requests,
            feedback_ring: config.rings.feedback,
            ready_ring: config.rings.ready,
            transmit_ring: 0,
            step: config.rings.step,
            drop_at_input: true,
            known: config.settings.estimator == Estimator::Exact,
        };
        let machine = Machine::new(setup)?;
        Ok(Self { machine, dice: Dice::named(seed, "processors") })
    }

    pub fn deadline(&self) -> Nanos {
        self.machine.next_time(None).unwrap_or(Nanos::NEVER)
    }

    /// Admits a packet. Returns the index of its flow, if known now.
    pub fn come<C: Classify>(
        &mut self,
        host: &mut Host<'_, C>,
        config: &SharingConfig,
        comer: Comer,
    ) -> Option<usize> {
        let cause = *host.pool.meta(comer.handle);
        host.out.because_of(&cause);
        // The cost of a packet: its flow's, the router's, or by prices.
        let named = comer.flow.named.and_then(|named| config.flows[named].cycles);
        let cycles = match named.or(config.cycles) {
            Some(demand) => demand.cycles(cause.wire_len, &mut self.dice),
            None => {
                let picoseconds = host.programs.price(&comer.words);
                picoseconds.saturating_mul(config.settings.clock_mhz.into()) / 1_000_000
            }
        };
        let mut packet = Packet::new(comer.flow.key, cause.wire_len, cycles);
        (packet.port, packet.handle) = (comer.port, comer.handle.0);
        let now = Nanos(cause.arrival);
        if config.rings.step > Nanos::ZERO {
            // The scheduler may admit the packet later, when its flow is known only by key.
            self.machine.scheduler().aim(comer.flow.key, comer.port);
        }
        let mut traffic = Bridge { host, coming: Some((now, packet)), cause: Some(cause) };
        self.machine.run(&mut traffic, now, &mut |_| {});
        self.machine.scheduler_ref().place_of(comer.flow.key)
    }

    pub fn run<C: Classify>(&mut self, host: &mut Host<'_, C>, now: Nanos) {
        self.machine.run(&mut Bridge { host, coming: None, cause: None }, now, &mut |_| {});
    }
}

/// The router as the machine's traffic.
struct Bridge<'a, 'h, C> {
    host: &'a mut Host<'h, C>,
    coming: Option<(Nanos, Packet)>,
    /// The packet that has just arrived, whose position in the order of events applies to all this.
    cause: Option<Meta>,
}

impl<C: Classify> Bridge<'_, '_, C> {
    fn settle(&mut self, handle: u32, fate: Fate, now: Nanos) {
        self.at(now);
        self.host.core.settle(self.host.pool, Handle(handle), fate, self.host.out);
    }

    fn at(&mut self, now: Nanos) {
        match &self.cause {
            Some(cause) => self.host.out.because_of(cause),
            None => self.host.out.at(now),
        }
    }
}

impl<C: Classify> Traffic for Bridge<'_, '_, C> {
    fn next_time(&self) -> Option<Nanos> {
        self.coming.map(|(time, _)| time)
    }

    fn take(&mut self) -> Option<Packet> {
        self.coming.take().map(|(_, packet)| packet)
    }

    fn processed(&mut self, packet: &mut Packet, now: Nanos) -> bool {
        self.at(now);
        let Some((handle, place)) = self.host.process(Handle(packet.handle), now) else { return false };
        (packet.handle, packet.note) = (handle.0, place);
        true
    }

    fn departed(&mut self, departure: &Departure) {
        self.settle(departure.packet.handle, Fate::Out(departure.packet.note), departure.sent);
    }

    fn dropped(&mut self, packet: Packet, why: DropCause, now: Nanos) {
        let reason = match why {
            DropCause::Input | DropCause::Refused(_) => DropReason::FlowFull,
            DropCause::Stopped => DropReason::Aborted,
        };
        self.settle(packet.handle, Fate::Dropped(reason), now);
    }
}
