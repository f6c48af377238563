//! Packets that have left a link, at its end or before it: on to the next link, or out by a port.

use super::{Order, Worker};
use crate::ports::NOWHERE_HERE;
use crate::walk::NextStep;
use longwire_block::path::{DIRECT, LinkRef, NOWHERE, Paths, UNDECIDED};
use longwire_packet::{Handle, Meta, PacketEvent};
use longwire_units::Nanos;

impl Worker {
    /// Handles a packet that has left a link: on to the next, or out.
    #[inline]
    pub(crate) fn leave(&mut self, handle: Handle) {
        let &Meta { flags, path, .. } = self.pool.meta(handle);
        let next = if flags & Meta::DIVERTED != 0 {
            NextStep::Diverted
        } else if !Paths::is_one_link(path) && self.advance(handle) {
            NextStep::Enter
        } else {
            return self.egress(handle);
        };
        // Links served one by one for a whole step would not see each other's packets at their times.
        debug_assert!(self.order == Order::Exact, "a worker said to be flat has a packet for another link");
        self.walk(next, handle);
    }

    /// Moves a packet that has left a link to the next link, if its path has one.
    pub(crate) fn advance(&mut self, handle: Handle) -> bool {
        let meta = self.pool.meta_mut(handle);
        let path = self.map.paths.advance(meta.path);
        if self.map.paths.link(path).is_none() {
            return false;
        }
        (meta.path, meta.arrival) = (path, meta.leave());
        true
    }

    /// Applies a node's request for a link, if that begins where the packet's path begins. If the path leads
    /// directly from a router to its port's far side, the request is applied there.
    #[inline]
    pub(crate) fn grant_requested_link(&mut self, handle: Handle) {
        let meta = self.pool.meta_mut(handle);
        let Some(link) = meta.requested_link() else { return };
        let inner_ports = &self.map.inner_ports;
        if meta.path == DIRECT
            && inner_ports.routed(meta.in_port)
            && inner_ports.far_side(meta.out_port).is_some()
        {
            return;
        }
        meta.clear_requested_link();
        meta.path = self.map.requested.path(meta.path, link).unwrap_or(meta.path);
    }

    /// Handles a packet that leaves a link before its end: steered by a filter, or a reply of the link to the
    /// sender.
    #[cold]
    pub(crate) fn divert(&mut self, handle: Handle) {
        let meta = self.pool.meta_mut(handle);
        let target = meta.take_target();
        meta.flags &= !Meta::DIVERTED;
        if let Some(target) = target {
            meta.path = self.map.steered.path(meta.path, target.into()).unwrap_or(NOWHERE);
            meta.arrival = meta.leave();
            return self.walk(NextStep::Enter, handle);
        }
        // A reply leaves by the input port of its packet, without links.
        self.counters.flow.made += 1;
        let meta = self.pool.meta_mut(handle);
        if self.map.inner_ports.routed(meta.in_port) {
            // It is addressed to the sender behind the router, which has the route.
            meta.path = UNDECIDED;
            return self.walk(NextStep::Enter, handle);
        }
        self.walk(NextStep::Egress, handle);
    }

    /// Passes a packet to its port, here or at another worker. A flooded packet has none yet.
    #[inline]
    pub(crate) fn egress(&mut self, handle: Handle) {
        self.go_out(handle, self.pool.meta(handle).out_port);
    }

    #[inline]
    pub(crate) fn go_out(&mut self, handle: Handle, out_port: u16) {
        match self.ports.exits.get(usize::from(out_port)) {
            Some(&slot) if slot != NOWHERE_HERE => self.put_out(slot as usize, handle),
            _ => self.go_elsewhere(handle, out_port),
        }
    }

    /// Slow path of [`Worker::go_out`]: ports of other workers, ports without a driver, and packets that have
    /// to wait.
    #[inline(never)]
    fn go_elsewhere(&mut self, handle: Handle, out_port: u16) {
        if let Some(far) = self.map.inner_ports.far_side(out_port) {
            self.come_in(handle, far);
            return self.walk(NextStep::Decide, handle);
        }
        let Some(&home) = self.map.port_locations.get(usize::from(out_port)) else {
            return self.fork(handle, |worker, copy| worker.walk(NextStep::Enter, copy));
        };
        let worker = home.exit_of(self.index);
        if worker == self.index { self.hold_back(handle) } else { self.hand_over(worker, handle) }
    }

    /// Puts a packet into its port's batch, which is sent when full or at the end of the step.
    #[inline]
    pub(crate) fn put_out(&mut self, slot: usize, handle: Handle) {
        let meta = self.pool.meta(handle);
        let (&Meta { segments, path, .. }, leave) = (meta, meta.leave());
        let here = self.map.paths.link(path).filter(|link| link.worker() == self.index);
        let link = here.map_or(NOWHERE_HERE, LinkRef::local);
        let out = &mut self.ports.slots[slot].out;
        if let Some(future) = &mut self.ports.future
            && out.batch.is_empty()
        {
            future.filled.push(slot as u32);
        }
        if out.push(handle, segments, Nanos(leave), link) {
            self.flush_port(slot);
        }
    }

    /// Sends the waiting batches of all ports.
    pub(crate) fn flush_ports(&mut self) {
        let Some(future) = &mut self.ports.future else {
            return (0..self.ports.slots.len()).for_each(|slot| self.flush_waiting(slot));
        };
        let mut filled = std::mem::take(&mut future.filled);
        filled.drain(..).for_each(|slot| self.flush_waiting(slot as usize));
        if let Some(future) = &mut self.ports.future {
            future.filled = filled;
        }
    }

    #[inline]
    fn flush_waiting(&mut self, slot: usize) {
        if !self.ports.slots[slot].out.batch.is_empty() {
            self.flush_port(slot);
        }
    }

    #[inline(never)]
    pub(crate) fn flush_port(&mut self, slot: usize) {
        if self.simulated || self.ports.ticks.as_ref().is_none_or(|ticks| !ticks.is_holding()) {
            return self.transmit(slot);
        }
        // Not later: until its tick a packet waits here, and no tunnel brings it.
        self.count_overdue(slot);
        if let Some(ticks) = &mut self.ports.ticks {
            let out = &mut self.ports.slots[slot].out;
            ticks.hold(&mut self.pool, slot, &out.batch);
            out.clear();
        }
    }

    /// Counts the packets of a port's batch that tunnels brought too late.
    fn count_overdue(&mut self, slot: usize) {
        if self.ports.has_tunnels && !self.simulated {
            let late = self.now().since(self.counters.tolerance.within);
            self.ports.count_overdue(slot, &self.pool, late);
        }
    }

    /// Sends a port's batch and records its lateness.
    pub(crate) fn transmit(&mut self, slot: usize) {
        match &self.ports.ticks {
            Some(ticks) => ticks.round(&mut self.pool, &self.ports.slots[slot].out.batch),
            None => self.count_overdue(slot),
        }
        if self.pool.is_probed() {
            for &handle in self.ports.slots[slot].out.batch.as_slice() {
                self.pool.report(handle, PacketEvent::Departed);
            }
        }
        let before = self.now();
        let port = &mut self.ports.slots[slot];
        self.counters.flow.sent += port.out.segments();
        let sent = port.port.transmit(&mut self.pool, &port.out.batch);
        if let Err(fault) = sent {
            port.fault = Some(fault);
        }
        self.book_lateness(slot, before, self.now());
        self.ports.slots[slot].out.clear();
        self.ports.ask_again(slot);
    }

    fn now(&self) -> Nanos {
        if self.simulated { Nanos::ZERO } else { longwire_clock::monotonic() }
    }

    /// Records the lateness of a port's batch that was sent between `before` and `after`: each packet at its
    /// own time, as far as that is known.
    fn book_lateness(&mut self, slot: usize, before: Nanos, after: Nanos) {
        let Self { ports, counters, emulation, .. } = self;
        let (leaves, numbers) = ports.slots[slot].out.departures();
        let within = counters.tolerance.within;
        let mut note = |leave: u64, link: u32, left: Nanos| {
            let late = counters.lateness.record(Nanos(leave), left);
            emulation.links.note_lateness(link, late, within);
        };
        let packets = leaves.iter().zip(numbers);
        if let Some(ticks) = ports.ticks.as_ref().filter(|_| self.simulated) {
            return packets.for_each(|(&leave, &link)| note(leave, link, ticks.at_or_after(Nanos(leave))));
        }
        let step = after.since(before).0 / leaves.len() as u64;
        let mut left = before.0;
        for (&leave, &link) in packets {
            note(leave, link, Nanos(left));
            left += step;
        }
    }
}
