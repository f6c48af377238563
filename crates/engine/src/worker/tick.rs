//! Departures at the ticks of a coarse clock, if there is one.

use super::Worker;
use longwire_block::DropReason;
use longwire_link::Fifo;
use longwire_units::Nanos;

impl Worker {
    /// Sends packets whose tick has come by `now`.
    #[cold]
    pub(crate) fn send_at_tick(&mut self, now: Nanos) {
        let Some(ticks) = &mut self.ports.ticks else { return };
        let tick = ticks.at_or_before(now);
        if tick <= ticks.last {
            return;
        }
        ticks.last = tick;
        let mut all = std::mem::take(&mut ticks.held);
        for (slot, held) in all.iter_mut().enumerate() {
            self.send_held(slot, held, tick);
        }
        if let Some(ticks) = &mut self.ports.ticks {
            ticks.held = all;
        }
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

    /// Drops packets that wait for a tick at a port.
    pub(crate) fn drop_held(&mut self, slot: usize, reason: DropReason) {
        let ticks = self.ports.ticks.as_mut();
        let Some(held) = ticks.and_then(|ticks| ticks.held.get_mut(slot)) else { return };
        let mut held = held.take();
        while let Some(handle) = held.pop(&self.pool) {
            self.drop(handle, reason);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::{GONE_PORT, PortSlot};
    use crate::rewiring_step::RewiringStep;
    use crate::{InnerPort, Map, PortLocation, PortSetup, Setup, Tolerance, WorkerSetup};
    use longwire_block::PortStats;
    use longwire_block::path::{DIRECT, Paths};
    use longwire_link::Links;
    use longwire_link::classify::Classifier;
    use longwire_packet::Pool;

    /// A port is removed, and another one gets its slot within the tick.
    #[test]
    fn what_waits_for_a_tick_does_not_leave_by_the_next_port_of_its_slot() {
        let setup = |place, port: InnerPort| PortSetup { place, node: 0, port: Box::new(port) };
        let mut own = WorkerSetup::new(Pool::new(1 << 20).unwrap(), Links::with_capacity(0, 1, Nanos(1)));
        own.ports.push(setup(0, InnerPort::new("a")));
        let port_locations = vec![PortLocation::single(0, 0)];
        let map = Map::new(Classifier::new(&[], &[], &[]), Paths::default(), port_locations);
        let tolerance = Tolerance { tick: Nanos(100), ..Tolerance::default() };
        let mut worker = Worker::of(Setup { tolerance, ..Setup::new(vec![own], map) }).remove(0);
        let handle = worker.pool.insert(&[0; 60]).unwrap();
        let meta = worker.pool.meta_mut(handle);
        meta.path = DIRECT;
        meta.set_leave(50);
        worker.put_out(0, handle);
        worker.flush_ports();
        for (place, port) in [(GONE_PORT, InnerPort::removed()), (1, InnerPort::new("b"))] {
            let port = Some(PortSlot::new(setup(place, port)));
            worker.rewire(&mut RewiringStep { ports: vec![(0, port)], ..RewiringStep::default() }, Nanos(60));
        }
        worker.send_at_tick(Nanos(100));
        // It counts what is sent to it.
        assert_eq!(worker.ports.slots[0].port.stats(), PortStats::default());
        assert_eq!(worker.counters.drops[DropReason::PortDown as usize], 1);
        assert_eq!(worker.pool.live(), 0);
    }
}
