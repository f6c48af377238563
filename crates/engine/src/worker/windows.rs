//! The loop of simulated time with several workers, window by window.

use super::Worker;
use super::pump::Arrivals;
use crate::order::order_key;
use crate::walk::NextStep;
use crate::windows::{Announcement, WindowBarrier, adapted};
use longwire_block::path::UNDECIDED;
use longwire_block::{DropReason, FLOOD};
use longwire_packet::Handle;
use longwire_units::Nanos;
use std::sync::Arc;

impl Worker {
    /// Runs in windows until no event is left, or `until` is reached, and returns the end time; none if a
    /// pool was full, or another worker panicked.
    pub(crate) fn run_windows(&mut self, until: Nanos) -> Option<Nanos> {
        let windows = self.windows.as_ref()?;
        let (barrier, longest) = (Arc::clone(&windows.barrier), windows.longest);
        self.emulation.end_at(until);
        // The end of the last window, and the time before which all frames have been received.
        let (mut end, mut received) = (Nanos::ZERO, Nanos::ZERO);
        let mut length = longest;
        loop {
            let agreed = self.agree(&barrier, until, end);
            length = adapted(length, agreed.handed_over, longest);
            self.put_out_before(end);
            if agreed.failed || barrier.is_abandoned() {
                return None;
            }
            let awaiting = agreed.next > until;
            let start =
                if awaiting { self.pending_together(&barrier) } else { agreed.next.min(agreed.change) };
            if start > until {
                let end = self.end_together(&barrier, until);
                return (!barrier.is_abandoned()).then_some(end);
            }
            if !awaiting {
                self.schedules.links.interrupt();
            }
            // Pending changes are made one by one, because the next one may not be worth waiting for.
            let most = |from: Nanos| (from + length).min(until + Nanos(1));
            end = if awaiting { start + Nanos(1) } else { most(start) };
            if received <= start {
                self.take_in(end);
                self.send_all_over();
                self.meet(&barrier);
                self.stage_from_rings();
                received = end;
            }
            end = end.min(received);
            if let Some(windows) = &mut self.windows {
                windows.staged.begin(end);
            }
            self.pump(Arrivals::Staged, start, Nanos(end.0 - 1));
            received = received.max(most(end));
            self.take_in(received);
            self.send_all_over();
        }
    }

    /// Announces what is next here after a window that ended at `end`, and returns what is next anywhere.
    fn agree(&mut self, barrier: &WindowBarrier, until: Nanos, end: Nanos) -> Announcement {
        let change = if self.pool.live() > 0 { self.schedules.links.next() } else { Nanos::NEVER };
        // Packets that leave before are put out next.
        let here = self.next_frame(until).min(self.emulation.wheel.bound()).min(self.nodes.turns.next);
        let handed_over = self.windows.as_mut().map(|windows| windows.next(end));
        let (handed_over, held) = handed_over.unwrap_or((0, Nanos::NEVER));
        let (next, failed) = (here.min(held), self.lost_anything());
        barrier.announce(self.index, Announcement { next, change, handed_over, failed });
        let round = self.meet(barrier);
        self.stage_from_rings();
        barrier.agreed(round)
    }

    /// The next change worth waiting for if no other event is left anywhere.
    fn pending_together(&mut self, barrier: &WindowBarrier) -> Nanos {
        let own = self.pending();
        barrier.give_pending(self.index, own);
        self.meet(barrier);
        barrier.pending().time()
    }

    /// The end of the run for all workers: the planned end, or the last event.
    fn end_together(&mut self, barrier: &WindowBarrier, until: Nanos) -> Nanos {
        barrier.announce(self.index, Announcement { next: self.end(until), ..Announcement::NOTHING });
        let round = self.meet(barrier);
        barrier.announced(round).map(|each| each.next).max().unwrap_or(until)
    }

    /// Waits for all workers, unless one has panicked. Empties the rings meanwhile, so that nobody waits for
    /// room in one. Returns the number of the meeting.
    fn meet(&mut self, barrier: &WindowBarrier) -> usize {
        let round = barrier.next_round();
        let mut looks = 0;
        let mut met = barrier.come(round);
        while !met {
            self.stage_from_rings();
            if looks < barrier.patience {
                looks += 1;
                std::hint::spin_loop();
            } else {
                std::thread::yield_now();
            }
            met = barrier.has_been(round) || barrier.is_abandoned();
        }
        round
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
        if self.is_for_here(handle) {
            self.stage(handle);
        } else {
            self.walk(NextStep::Enter, handle);
        }
    }

    /// Whether a packet's next step is at a link or node here.
    fn is_for_here(&self, handle: Handle) -> bool {
        let meta = self.pool.meta(handle);
        let worker = match self.map.paths.link(meta.path) {
            Some(link) => Some(link.worker()),
            None if meta.path == UNDECIDED => Some(self.map.port_locations[usize::from(meta.in_port)].worker),
            None => None,
        };
        worker == Some(self.index)
    }

    fn stage(&mut self, handle: Handle) {
        let key = order_key(&self.pool, handle);
        if let Some(windows) = &mut self.windows {
            windows.staged.push(key, handle);
        }
    }

    /// Stages all packets handed over by other workers. They do not result from the packet that is being
    /// processed here.
    pub(crate) fn stage_from_rings(&mut self) {
        if self.peers.inbox.is_empty() {
            return;
        }
        let followed = self.windows.as_mut().and_then(|windows| windows.followed.take());
        self.drain_rings(|worker, handle| {
            if worker.is_for_here(handle) {
                worker.stage(handle);
            } else {
                worker.enter(handle);
            }
        });
        if let Some(windows) = &mut self.windows {
            windows.followed = followed;
        }
    }

    /// Holds a packet for a port here until its window is over.
    pub(crate) fn hold_back(&mut self, handle: Handle) {
        let meta = self.pool.meta_mut(handle);
        if let Some(windows) = &mut self.windows {
            windows.number(meta);
            windows.outgoing.push((meta.leave(), meta.place, meta.seq), handle);
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
        let first = self.windows.as_ref()?.staged.first()?;
        Some(((first.time, first.place), first.handle()))
    }

    /// Lets the first staged packet enter.
    pub(crate) fn enter_staged(&mut self) {
        let Some(windows) = &mut self.windows else { return };
        let first = windows.staged.pop();
        if let Some(soon) = windows.staged.soon() {
            self.pool.prefetch(soon);
        }
        if let Some(first) = first {
            self.follow(Some((first.place, first.seq)));
            self.enter(first.handle());
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
        if let Some(windows) = &mut self.windows {
            windows.outgoing.begin(end);
        }
        while let Some(windows) = &mut self.windows
            && let Some(packet) = windows.outgoing.pop()
        {
            if let Some(soon) = windows.outgoing.soon() {
                self.pool.prefetch(soon);
            }
            let out_port = self.pool.meta(packet.handle()).out_port;
            let home = self.map.port_locations[usize::from(out_port)];
            self.put_out(home.slot as usize, packet.handle());
        }
        self.flush_ports();
    }

    /// Drops packets that still waited when the run was stopped.
    pub(crate) fn drop_held_back(&mut self) {
        let Some(windows) = &mut self.windows else { return };
        let held: Vec<_> = windows.staged.drain().chain(windows.outgoing.drain()).collect();
        held.into_iter().for_each(|handle| self.drop(handle, DropReason::Stopped));
    }

    /// Whether the pool was full: a simulated run then ends, because its trace would depend on the pool.
    pub(crate) fn lost_anything(&self) -> bool {
        self.counters.drops[DropReason::PoolFull as usize] > 0 || self.ports.lost_anything()
    }
}
