//! Exchange of packets with other workers.

use super::{Order, Worker};
use crate::between::{CLASSES, class};
use crate::order::order_key;
use crate::ring::RingRead;
use longwire_block::DropReason;
use longwire_block::path::{DIRECT, UNDECIDED};
use longwire_packet::Handle;
use longwire_units::Nanos;

impl Worker {
    /// Takes packets from other workers, urgent ones first, with a limit per ring.
    pub(crate) fn take_from_rings(&mut self) -> usize {
        let mut came = 0;
        for class in 0..CLASSES {
            let mut some = self.peers.inbox.look(class);
            while some != 0 {
                let ring = (class, some.trailing_zeros() as usize);
                some &= some - 1;
                for _ in 0..self.peers.inbox.most {
                    match self.receive_from(ring) {
                        RingRead::Packet(handle) => self.intake.ready.push(handle),
                        RingRead::PoolFull(_) => {}
                        RingRead::Empty => break,
                    }
                    came += 1;
                }
            }
        }
        if came > 0 && self.order == Order::Exact {
            let pool = &self.pool;
            self.intake.ready.sort_by_key(|&handle| order_key(pool, handle));
        }
        came
    }

    /// Takes all packets from other workers.
    pub(crate) fn drain_rings(&mut self, mut each: impl FnMut(&mut Self, Handle)) {
        while let Some(ring) = self.peers.inbox.first() {
            if let RingRead::Packet(handle) = self.receive_from(ring) {
                each(self, handle);
            }
        }
    }

    /// Takes one packet from a ring. A packet for a port here, rather than a link, has no path.
    fn receive_from(&mut self, ring: (usize, usize)) -> RingRead {
        let taken = self.peers.inbox.take(ring, &mut self.pool);
        match taken {
            RingRead::Packet(handle) => {
                let meta = self.pool.meta_mut(handle);
                self.counters.flow.received += u64::from(meta.segments);
                if meta.path != UNDECIDED
                    && self.map.paths.link(meta.path).is_none_or(|link| link.worker() != self.index)
                {
                    (meta.path, meta.arrival) = (DIRECT, meta.leave());
                }
            }
            RingRead::PoolFull(segments) => {
                self.counters.flow.received += u64::from(segments);
                self.counters.count_drop(DropReason::PoolFull, segments.into());
            }
            RingRead::Empty => {}
        }
        taken
    }

    /// Hands a packet over to another worker: in batches, or at the end of the step or window.
    pub(crate) fn hand_over(&mut self, worker: u32, handle: Handle) {
        let class = class(self.pool.meta(handle));
        let Some(senders) = &mut self.peers.outbound.outlets[worker as usize] else {
            return self.drop(handle, DropReason::RingFull);
        };
        if let Some(windows) = &mut self.windows {
            let meta = self.pool.meta_mut(handle);
            windows.number(meta);
            let enters = match self.map.paths.link(meta.path) {
                Some(link) => link.worker() == worker,
                None => meta.path == UNDECIDED,
            };
            windows.note_handed_over(Nanos(if enters { meta.arrival } else { meta.leave() }));
        }
        let batch = &mut senders[class].batch;
        batch.push(handle);
        if batch.is_full() {
            self.send_over(worker as usize, class);
        } else {
            self.peers.outbound.waiting |= 1 << worker;
        }
    }

    /// Sends all waiting packets to other workers.
    #[inline]
    pub(crate) fn send_all_over(&mut self) {
        while self.peers.outbound.waiting != 0 {
            let worker = self.peers.outbound.waiting.trailing_zeros() as usize;
            self.peers.outbound.waiting &= self.peers.outbound.waiting - 1;
            for class in 0..CLASSES {
                self.send_over(worker, class);
            }
        }
    }

    /// Copies the waiting packets for a worker into its ring.
    fn send_over(&mut self, worker: usize, class: usize) {
        let Some(senders) = &mut self.peers.outbound.outlets[worker] else { return };
        let batch = std::mem::take(&mut senders[class].batch);
        let mut rest = batch.as_slice();
        while let Some(senders) = &mut self.peers.outbound.outlets[worker]
            && !rest.is_empty()
        {
            let sent = senders[class].send(&self.peers.bells[worker], &self.pool, rest);
            let (gone, left) = rest.split_at(sent);
            for &handle in gone {
                self.counters.flow.handed_over += u64::from(self.pool.meta(handle).segments);
                self.pool.free(handle);
            }
            rest = left;
            if rest.is_empty() {
                return;
            }
            let lost = match &self.windows {
                None => Some(DropReason::RingFull),
                // Nobody empties the ring of a worker that has panicked.
                Some(windows) => windows.barrier.is_abandoned().then_some(DropReason::Stopped),
            };
            if let Some(reason) = lost {
                return rest.iter().for_each(|&handle| self.drop(handle, reason));
            }
            // A simulated run loses nothing: the other worker empties the ring, and meanwhile this one its
            // own.
            self.stage_from_rings();
            std::thread::yield_now();
        }
    }
}
