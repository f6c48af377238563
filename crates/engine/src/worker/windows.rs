//! The loop of simulated time with several workers, window by window.

use super::Worker;
use super::pump::Arrivals;
use crate::order::order_key;
use crate::walk::NextStep;
use crate::windows::{WindowBarrier, earliest};
use longwire_block::path::UNDECIDED;
use longwire_block::{DropReason, FLOOD};
use longwire_packet::Handle;
use longwire_units::Nanos;
use std::cmp::Reverse;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

impl Worker {
    /// Runs in windows until no event is left, or `until` is reached, and returns the end time; none if a
    /// pool was full.
    pub(crate) fn run_windows(&mut self, until: Nanos) -> Option<Nanos> {
        let windows = self.windows.as_ref()?;
        let (barrier, longest) = (Arc::clone(&windows.barrier), windows.longest);
        self.emulation.end_at(until);
        loop {
            let own = self.index as usize;
            let change = if self.pool.live() > 0 { self.schedules.links.next() } else { Nanos::NEVER };
            barrier.change[own].store(change.0, Ordering::SeqCst);
            barrier.next[own].store(self.bound(until).0, Ordering::SeqCst);
            self.meet(&barrier);
            let (next, change) = (earliest(&barrier.next), earliest(&barrier.change));
            let failed = barrier.failed.load(Ordering::SeqCst) > 0;
            self.meet(&barrier);
            if failed {
                return None;
            }
            let awaiting = next > until;
            let start = if awaiting { self.pending_together(&barrier) } else { next.min(change) };
            if start > until {
                return Some(self.end_together(&barrier, until));
            }
            if !awaiting {
                self.schedules.links.interrupt();
            }
            // Pending changes are made one by one, because the next one may not be worth waiting for.
            let end = (start + if awaiting { Nanos(1) } else { longest }).min(until + Nanos(1));
            self.take_in(end);
            self.meet(&barrier);
            self.stage_from_rings();
            self.pump(Arrivals::Staged, start, Nanos(end.0 - 1));
            self.meet(&barrier);
            self.stage_from_rings();
            self.put_out_before(end);
            if self.lost_anything() {
                barrier.failed.store(1, Ordering::SeqCst);
            }
        }
    }

    /// The next change worth waiting for if no other event is left anywhere.
    fn pending_together(&mut self, barrier: &WindowBarrier) -> Nanos {
        let own = self.pending();
        *barrier.pending[self.index as usize].lock().unwrap_or_else(PoisonError::into_inner) = own;
        self.meet(barrier);
        let all = barrier.pending();
        self.meet(barrier);
        all.time()
    }

    /// The end of the run for all workers: the planned end, or the last event.
    fn end_together(&mut self, barrier: &WindowBarrier, until: Nanos) -> Nanos {
        barrier.next[self.index as usize].store(self.end(until).0, Ordering::SeqCst);
        self.meet(barrier);
        Nanos(barrier.next.iter().map(|time| time.load(Ordering::SeqCst)).max().unwrap_or(until.0))
    }

    /// Waits for all workers, and empties the rings meanwhile so that nobody waits for room in one.
    fn meet(&mut self, barrier: &WindowBarrier) {
        let round = barrier.round.load(Ordering::SeqCst);
        if barrier.present.fetch_add(1, Ordering::SeqCst) + 1 == barrier.workers {
            barrier.present.store(0, Ordering::SeqCst);
            barrier.round.store(round + 1, Ordering::SeqCst);
            return;
        }
        while barrier.round.load(Ordering::SeqCst) == round {
            self.stage_from_rings();
            std::thread::yield_now();
        }
    }

    /// A lower bound on the next event here.
    fn bound(&mut self, until: Nanos) -> Nanos {
        let held = self.windows.iter().flat_map(|windows| [windows.staged.peek(), windows.outgoing.peek()]);
        let held = held.flatten().map(|Reverse((time, ..))| *time).min().unwrap_or(u64::MAX);
        self.next_frame(until).min(self.emulation.wheel.bound()).min(self.nodes.turns.next).min(Nanos(held))
    }

    /// The next arrival of a frame at a port here, or deadline of a node that does not decide in turn.
    pub(crate) fn next_arrival(&mut self) -> Nanos {
        self.ports.next_arrival().min(self.nodes.next_out_of_turn())
    }

    /// Receives frames that arrive by ports before `end`, in time order, and sends each to the worker of its
    /// link.
    fn take_in(&mut self, end: Nanos) {
        loop {
            let next = self.next_frame(Nanos(end.0 - 1));
            if next >= end {
                return;
            }
            self.emulation.seen = self.emulation.seen.max(next);
            self.ingest(next, Nanos::ZERO);
            let mut ready = std::mem::take(&mut self.intake.ready);
            ready.drain(..).for_each(|handle| self.route(handle));
            self.intake.ready = ready;
        }
    }

    /// Stages a packet that arrives at a link here, or waits for its turn at a node here; `enter` handles all
    /// others.
    fn route(&mut self, handle: Handle) {
        let meta = self.pool.meta(handle);
        let worker = match self.map.paths.link(meta.path) {
            Some(link) => Some(link.worker()),
            None if meta.path == UNDECIDED => Some(self.map.port_locations[usize::from(meta.in_port)].worker),
            None => None,
        };
        if worker == Some(self.index) {
            self.stage(handle);
        } else {
            self.walk(NextStep::Enter, handle);
        }
    }

    fn stage(&mut self, handle: Handle) {
        let (time, place, seq) = order_key(&self.pool, handle);
        if let Some(windows) = &mut self.windows {
            windows.held += 1;
            windows.staged.push(Reverse((time, place, seq, windows.held, handle.0)));
        }
    }

    /// Stages all packets handed over by other workers.
    pub(crate) fn stage_from_rings(&mut self) {
        self.drain_rings(Self::route);
    }

    /// Holds a packet for a port here until its window is over.
    pub(crate) fn hold_back(&mut self, handle: Handle) {
        let meta = self.pool.meta_mut(handle);
        if let Some(windows) = &mut self.windows {
            windows.number(meta);
            windows.held += 1;
            windows.outgoing.push(Reverse((meta.leave(), meta.place, meta.seq, windows.held, handle.0)));
        }
    }

    /// Whether links here hold packets other than background traffic, or will; packets that have left them
    /// wait for their port.
    pub(crate) fn links_hold_packets(&self) -> bool {
        let outgoing = self.windows.as_ref().map_or(0, |windows| windows.outgoing.len());
        self.real_packets() > outgoing as u64
    }

    /// The first staged packet, with its time and place.
    pub(crate) fn first_staged(&self) -> Option<((u64, u32), Handle)> {
        let Reverse((time, place, .., handle)) = self.windows.as_ref()?.staged.peek()?;
        Some(((*time, *place), Handle(*handle)))
    }

    /// Lets the first staged packet enter.
    pub(crate) fn enter_staged(&mut self) {
        let first = self.windows.as_mut().and_then(|windows| windows.staged.pop());
        if let Some(Reverse((_, place, seq, _, handle))) = first {
            self.follow(Some((place, seq)));
            self.enter(Handle(handle));
            self.follow(None);
        }
    }

    /// Records which packet is being processed, in windows.
    pub(crate) fn follow(&mut self, packet: Option<(u32, u64)>) {
        if let Some(windows) = &mut self.windows {
            windows.follow(packet);
        }
    }

    /// Forwards a packet that has left a link ahead of time: its arrival is in the future, but determined.
    pub(crate) fn go_ahead(&mut self, handle: Handle) {
        let out_port = self.pool.meta(handle).out_port;
        if self.advance(handle) {
            self.route(handle);
        } else if let Some(far) = self.map.inner_ports.far_side(out_port) {
            self.come_in(handle, far);
            self.route(handle);
        } else if out_port == FLOOD {
            self.fork(handle, Self::route);
        } else {
            self.egress(handle);
        }
    }

    /// Sends packets that leave before `end`, in order.
    fn put_out_before(&mut self, end: Nanos) {
        while let Some(windows) = &mut self.windows
            && let Some(&Reverse((time, .., handle))) = windows.outgoing.peek()
            && time < end.0
        {
            windows.outgoing.pop();
            let home = self.map.port_locations[usize::from(self.pool.meta(Handle(handle)).out_port)];
            self.put_out(home.slot as usize, Handle(handle));
        }
        self.flush_ports();
    }

    /// Drops packets that still waited when the run was stopped.
    pub(crate) fn drop_held_back(&mut self) {
        let Some(windows) = &mut self.windows else { return };
        let held = windows.staged.drain().chain(windows.outgoing.drain());
        let held: Vec<_> = held.map(|Reverse((.., handle))| Handle(handle)).collect();
        held.into_iter().for_each(|handle| self.drop(handle, DropReason::Stopped));
    }

    /// Whether the pool was full: a simulated run then ends, because its trace would depend on the pool.
    pub(crate) fn lost_anything(&self) -> bool {
        self.counters.flow.drops[DropReason::PoolFull as usize] > 0 || self.ports.lost_anything()
    }
}
