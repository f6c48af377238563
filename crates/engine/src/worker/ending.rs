//! How runs end.

use super::Worker;
use crate::TO_THE_END;
use longwire_block::{DropReason, PortError};
use longwire_units::Nanos;

impl Worker {
    /// When a run ends that was to end at `until`, as far as is known here: then, or else at the last event.
    pub(crate) fn end(&self, until: Nanos) -> Nanos {
        if until < TO_THE_END { until } else { self.emulation.seen.max(self.schedules.changed) }
    }

    /// Brings everything to the end of the run, at which all workers have agreed: changes, and background
    /// traffic that nobody has waited for. What is counted then does not depend on how many workers there
    /// are.
    pub(crate) fn conclude(&mut self, end: Nanos) {
        self.carry_out(end);
        self.nodes.change_all(end);
        self.nodes.change_no_more();
        for link in 0..self.emulation.links.len() as u32 {
            self.emulation.links.catch_up(&mut self.pool, link, end);
        }
    }

    /// Drops what other workers, which have ended, had handed over.
    pub(crate) fn empty_rings(&mut self) {
        self.drain_rings(|worker, handle| worker.drop(handle, DropReason::Stopped));
    }

    /// Ends the run: what is held is dropped as stopped, and the ports write out what they have buffered.
    pub(crate) fn finish(&mut self) -> Vec<PortError> {
        self.flush_ports();
        self.emulation.links.flush(&mut self.pool);
        self.drop_held_back();
        self.drop_held_for_tick();
        self.ports.slots.iter_mut().filter_map(|slot| slot.port.finish().err()).collect()
    }
}
