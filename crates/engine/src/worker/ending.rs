//! How runs end.

use super::Worker;
use crate::TO_THE_END;
use longwire_block::{DropReason, PortError};
use longwire_units::Nanos;

impl Worker {
    /// End time of a run that ends by `until`, as far as this worker knows: `until`, or else the last event.
    pub(crate) fn end(&self, until: Nanos) -> Nanos {
        if until < TO_THE_END { until } else { self.emulation.seen.max(self.schedules.changed) }
    }

    /// Advances changes and background traffic to the end of the run, on which all workers agree, so that the
    /// counters do not depend on the number of workers.
    pub(crate) fn conclude(&mut self, end: Nanos) {
        self.carry_out(end);
        self.sample_before(end);
        self.sample_rest(end);
        self.nodes.change_all(end);
        self.nodes.change_no_more();
        for link in 0..self.emulation.links.len() as u32 {
            self.emulation.links.catch_up(&mut self.pool, link, end);
        }
    }

    /// Drops packets handed over by other workers, which have ended.
    pub(crate) fn empty_rings(&mut self) {
        self.drain_rings(|worker, handle| worker.drop(handle, DropReason::Stopped));
    }

    /// Ends the run at `now`: held packets are dropped as stopped, and ports flush their buffers. Returns
    /// errors of ports, those that have left in virtual time included.
    pub(crate) fn finish(&mut self, now: Nanos) -> Vec<PortError> {
        self.flush_ports();
        self.emulation.links.flush(&mut self.pool, now);
        self.drop_held_back();
        self.drop_held_for_tick();
        let mut errors = std::mem::take(&mut self.ports.left);
        errors.extend(self.ports.slots.iter_mut().filter_map(|slot| slot.port.finish().err()));
        errors
    }
}
