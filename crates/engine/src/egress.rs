//! How packets go on when they have left a link: to the next, or out by a port, late or not.

use crate::map::Map;
use crate::walk::Next;
use crate::worker::Worker;
use longwire_block::path::{LinkRef, Paths};
use longwire_packet::{Handle, Meta};
use longwire_units::Nanos;

/// A port that is another worker's, leads to another node, or has to wait for the end of a window.
pub(crate) const NOWHERE_HERE: u32 = u32::MAX;

/// By a port's place in the plan: its place among the ports of a worker, if packets leave by it at once, else [`NOWHERE_HERE`].
pub(crate) fn exits(map: &Map, worker: u32, windows: bool) -> Box<[u32]> {
    let exit = |(home, place): (&crate::Home, u16)| {
        let is_here = home.exit_of(worker) == worker && !windows && map.joints.far_side(place).is_none();
        if is_here { home.slot } else { NOWHERE_HERE }
    };
    map.homes.iter().zip(0..).map(exit).collect()
}

impl Worker {
    /// Sees to a packet that has left a link: on to the next, or out.
    #[inline]
    pub(crate) fn leave(&mut self, handle: Handle) {
        let &Meta { flags, path, .. } = self.pool.meta(handle);
        if flags & Meta::ASIDE != 0 {
            return self.walk(Next::Aside, handle);
        }
        if !Paths::is_one_link(path) && self.advance(handle) {
            return self.walk(Next::Enter, handle);
        }
        self.egress(handle);
    }

    /// Turns a packet that has left a link to the next one, if its path has one.
    pub(crate) fn advance(&mut self, handle: Handle) -> bool {
        let meta = self.pool.meta_mut(handle);
        let path = self.map.paths.advance(meta.path);
        if self.map.paths.link(path).is_none() {
            return false;
        }
        (meta.path, meta.arrival) = (path, meta.leave);
        true
    }

    /// Gives a packet to its port, here or with another worker. A flooded one has none yet.
    #[inline]
    pub(crate) fn egress(&mut self, handle: Handle) {
        self.go_out(handle, self.pool.meta(handle).out_port);
    }

    /// The same for a packet that is bound for `out_port`.
    #[inline]
    pub(crate) fn go_out(&mut self, handle: Handle, out_port: u16) {
        match self.exits.get(usize::from(out_port)) {
            Some(&slot) if slot != NOWHERE_HERE => self.put_out(slot as usize, handle),
            _ => self.go_elsewhere(handle, out_port),
        }
    }

    /// The same where that is no port of this worker with a driver, or has to wait.
    #[inline(never)]
    fn go_elsewhere(&mut self, handle: Handle, out_port: u16) {
        if let Some(far) = self.map.joints.far_side(out_port) {
            self.come_in(handle, far);
            return self.walk(Next::Decide, handle);
        }
        let Some(&home) = self.map.homes.get(usize::from(out_port)) else {
            return self.fork(handle, |worker, copy| worker.walk(Next::Enter, copy));
        };
        let worker = home.exit_of(self.index);
        if worker == self.index { self.hold_back(handle) } else { self.hand_over(worker, handle) }
    }

    /// Puts a packet into its port's batch, which is sent when full or at the end of the step.
    #[inline]
    pub(crate) fn put_out(&mut self, slot: usize, handle: Handle) {
        let &Meta { segments, leave, path, .. } = self.pool.meta(handle);
        let here = self.map.paths.link(path).filter(|link| link.worker() == self.index);
        let link = here.map_or(NOWHERE_HERE, LinkRef::local);
        if self.ports[slot].out.push(handle, segments, Nanos(leave), link) {
            self.flush_port(slot);
        }
    }

    /// Sends what waits in the ports' batches.
    pub(crate) fn flush_ports(&mut self) {
        for slot in 0..self.ports.len() {
            if !self.ports[slot].out.batch.is_empty() {
                self.flush_port(slot);
            }
        }
    }

    #[inline(never)]
    pub(crate) fn flush_port(&mut self, slot: usize) {
        match &mut self.ticks {
            Some(ticks) if !self.simulated => {
                let out = &mut self.ports[slot].out;
                ticks.hold(&mut self.pool, slot, &out.batch);
                out.clear();
            }
            _ => self.transmit(slot),
        }
    }

    /// Gives a port its batch, now, and books how late that is.
    pub(crate) fn transmit(&mut self, slot: usize) {
        if self.simulated
            && let Some(ticks) = &self.ticks
        {
            ticks.round(&mut self.pool, &self.ports[slot].out.batch);
        }
        if let Some(observer) = &mut self.observer {
            for &handle in self.ports[slot].out.batch.as_slice() {
                observer.departed(self.pool.meta(handle), self.pool.data(handle));
            }
        }
        let before = self.now();
        let port = &mut self.ports[slot];
        self.flow.sent += port.out.segments();
        let sent = port.port.transmit(&mut self.pool, &port.out.batch);
        if let Err(fault) = sent {
            port.fault = Some(fault);
        }
        self.book_lateness(slot, before, self.now());
        self.ports[slot].out.clear();
    }

    fn now(&self) -> Nanos {
        if self.simulated { Nanos::ZERO } else { crate::clock::monotonic() }
    }

    /// Books how late the packets of a port's batch left that it took between `before` and `after`, one after the other: each when its
    /// turn came, as far as that is known.
    fn book_lateness(&mut self, slot: usize, before: Nanos, after: Nanos) {
        let Self { ports, lateness, links, ticks, .. } = self;
        let (leaves, numbers) = ports[slot].out.departures();
        let within = self.tolerance.within;
        let ticks = ticks.as_ref().filter(|_| self.simulated);
        let step = after.since(before).0 / leaves.len() as u64;
        let mut left = before.0;
        for (&leave, &link) in leaves.iter().zip(numbers) {
            let now = ticks.map_or(Nanos(left), |ticks| ticks.leaves_at(leave));
            let late = lateness.record(Nanos(leave), now);
            links.note_lateness(link, late, within);
            left += step;
        }
    }
}
