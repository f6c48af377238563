//! The engine's worker as the only processor of a real run. Each packet's cycles are measured while the
//! router works on it, and predict those of its flow's next packet.

use super::measured::MeasuredSharing;
use super::{Comer, Host, Meter, SharingConfig, SharingError};
use crate::Classify;
use longwire_block::OUTBOX;
use longwire_packet::Handle;
use longwire_sched::{GrantedPacket, Scheduler};
use longwire_units::Nanos;

#[derive(Debug)]
pub(super) struct Live(MeasuredSharing);

impl Live {
    pub fn new(config: &SharingConfig, meter: Meter) -> Result<Self, SharingError> {
        MeasuredSharing::new(config, meter).map(Self)
    }

    pub const fn config(&self) -> &SharingConfig {
        &self.0.config
    }

    pub const fn scheduler(&self) -> &Scheduler {
        &self.0.scheduler
    }

    pub const fn scheduler_mut(&mut self) -> &mut Scheduler {
        &mut self.0.scheduler
    }

    pub fn kept(&self) -> u64 {
        self.0.kept()
    }

    pub const fn deadline(&self) -> Nanos {
        self.0.wake
    }

    /// Admits a packet. Returns the index of its flow, if known.
    pub fn come<C: Classify>(&mut self, host: &mut Host<'_, C>, comer: Comer) -> Option<usize> {
        self.0.come(host, comer)
    }

    /// Processes packets for a while, and sends what is due.
    pub fn serve<C: Classify>(&mut self, host: &mut Host<'_, C>, now: Nanos) {
        let Self(measured) = self;
        let mut present = (measured.meter.now)();
        let until = measured.end_of_visit(present);
        measured.send(host, present.max(now));
        let more = loop {
            // Packets created during processing need room, too.
            if present >= until || host.out.room() < OUTBOX / 2 {
                break true;
            }
            let Some(granted) = measured.grant() else { break false };
            process(measured, host, &granted, present);
            present = (measured.meter.now)();
            measured.send(host, present);
        };
        measured.rest(present, more);
    }
}

fn process<C: Classify>(
    measured: &mut MeasuredSharing,
    host: &mut Host<'_, C>,
    granted: &GrantedPacket,
    now: Nanos,
) {
    let cycles = measured.meter.cycles;
    let before = cycles();
    let decided = host.process(Handle(granted.handle), now);
    let cycles = cycles().wrapping_sub(before);
    measured.scheduler.feedback(granted.key, cycles);
    measured.processed(granted.ticket, cycles, decided);
}
