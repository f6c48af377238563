//! Departures at the ticks of a coarse clock, if there is one.

use super::Worker;
use longwire_block::DropReason;
use longwire_link::Fifo;
use longwire_units::Nanos;

impl Worker {
    /// Sends packets whose tick has come by `now`.
    #[cold]
    pub(crate) fn send_at_tick(&mut self, now: Nanos) {
        let Some(mut ticks) = self.ports.ticks.take() else { return };
        let tick = ticks.at_or_before(now);
        if tick > ticks.last {
            ticks.last = tick;
            for (slot, held) in ticks.held.iter_mut().enumerate() {
                self.send_held(slot, held, tick);
            }
        }
        self.ports.ticks = Some(ticks);
    }

    /// Sends packets with departure times up to `tick`, and keeps the rest.
    fn send_held(&mut self, slot: usize, held: &mut Fifo, tick: Nanos) {
        let mut waiting = held.take();
        while let Some(handle) = waiting.pop(&self.pool) {
            if self.pool.meta(handle).leave() > tick.0 {
                held.push(&mut self.pool, handle);
                continue;
            }
            self.put_out(slot, handle);
        }
        if !self.ports.slots[slot].out.batch.is_empty() {
            self.transmit(slot);
        }
    }

    /// Drops packets that wait for a tick at the end of the run.
    pub(crate) fn drop_held_for_tick(&mut self) {
        let Some(mut ticks) = self.ports.ticks.take() else { return };
        for held in &mut ticks.held {
            while let Some(handle) = held.pop(&self.pool) {
                self.drop(handle, DropReason::Stopped);
            }
        }
        self.ports.ticks = Some(ticks);
    }
}
