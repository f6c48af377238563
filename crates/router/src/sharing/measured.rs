//! The common part of one and several processors in a real run: a scheduler with measured costs, and ports
//! with transmission times.

use super::{Comer, Host, Meter, SharingConfig, SharingError};
use crate::Classify;
use crate::state::Fate;
use longwire_block::{DropReason, OUTBOX};
use longwire_packet::Handle;
use longwire_sched::{GrantedPacket, Resource, Scheduler, Settings, Ticket};
use longwire_units::Nanos;

/// Limits of the time for which packets are processed before the worker polls for packets again: as long as
/// polling took last.
const VISIT: (Nanos, Nanos) = (Nanos::from_micros(20), Nanos::from_micros(500));

/// See the module.
#[derive(Debug)]
pub(super) struct MeasuredSharing {
    pub config: SharingConfig,
    pub scheduler: Scheduler,
    pub meter: Meter,
    /// By a packet's index in the scheduler: the index of its output port, and its handle after processing.
    decided: Vec<(u16, Handle)>,
    /// The packet that each port is sending, its index, and its end.
    sending: Vec<Option<(u16, Handle, Nanos)>>,
    /// When it must be called next, and when it was last done.
    pub wake: Nanos,
    done: Nanos,
}

impl MeasuredSharing {
    pub fn new(config: &SharingConfig, meter: Meter) -> Result<Self, SharingError> {
        let settings = measured(&config.settings, meter.per_microsecond);
        let settings = Settings { ready_limit: Some(config.rings.ready), ..settings };
        let scheduler = Scheduler::new(&config.scheduler, &settings)?;
        let decided = vec![(0, Handle::NONE); settings.packets as usize];
        let sending = vec![None; settings.ports.into()];
        let config = SharingConfig { settings, ..config.clone() };
        let (wake, done) = (Nanos::NEVER, Nanos::ZERO);
        Ok(Self { config, scheduler, meter, decided, sending, wake, done })
    }

    pub fn kept(&self) -> u64 {
        u64::from(self.scheduler.inside()) + self.sending.iter().flatten().count() as u64
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

    /// End of a visit that begins now.
    pub fn end_of_visit(&self, now: Nanos) -> Nanos {
        let (least, most) = VISIT;
        now + now.since(self.done).clamp(least, most)
    }

    /// Ends a visit; `more` if there is work left.
    pub fn rest(&mut self, present: Nanos, more: bool) {
        self.done = present;
        let sent = self.sending.iter().flatten().map(|(.., end)| *end).min().unwrap_or(Nanos::NEVER);
        // Not before the worker has polled for packets: its time now is before the present.
        self.wake = if more { sent.min(present + Nanos(1)) } else { sent };
    }

    /// The next packet for a processor.
    pub fn grant(&mut self) -> Option<GrantedPacket> {
        self.scheduler.dequeue(Resource::Processor)
    }

    /// Records that a processor has finished a packet, which leaves by the port at this index, if any.
    pub fn processed(&mut self, ticket: Ticket, cycles: u64, gone_on: Option<(Handle, u16)>) {
        let Some((handle, place)) = gone_on else {
            self.scheduler.consume(ticket, Some(cycles));
            return;
        };
        self.decided[ticket.place()] = (place, handle);
        self.scheduler.processed(ticket, Some(cycles));
    }

    /// Completes transmissions, and starts the next ones. A busy port continues at the time when it was done,
    /// not when that is noticed.
    pub fn send<C: Classify>(&mut self, host: &mut Host<'_, C>, now: Nanos) {
        for port in 0..self.config.settings.ports {
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
                        let time = Nanos(self.config.settings.port.bytes(granted.bytes).into());
                        let (place, handle) = self.decided[granted.ticket.place()];
                        self.sending[usize::from(port)] = Some((place, handle, begin + time));
                    }
                }
            }
        }
    }
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
