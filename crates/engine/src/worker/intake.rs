use super::Worker;
use crate::nodes::Nodes;
use crate::order::{COPIES, PORT_PLACES, order_key};
use crate::verdicts::PATIENCE;
use longwire_block::path::UNDECIDED;
use longwire_block::{CONSUMED, DropReason, FLOOD, KEPT, REFUSED, Stamp, refusal};
use longwire_packet::{Batch, Handle, Meta};
use longwire_units::Nanos;

/// What a poll of the ports has received.
struct Fresh {
    batches: usize,
    /// The first batch and its node while it is the only one, which needs no sorting.
    alone: Option<(usize, Batch)>,
}

impl Worker {
    /// Polls the ports, calls nodes and chooses paths; the packets are then in `ready`.
    pub(crate) fn ingest(&mut self, now: Nanos, gap: Nanos) -> usize {
        self.tell_nodes(now);
        let ticked = self.intake.ready.len();
        let mut fresh = Fresh { batches: 0, alone: None };
        match self.ports.take_due(now) {
            None => {
                (0..self.ports.slots.len()).for_each(|slot| self.receive(slot, now, gap, &mut fresh));
                self.decide_fresh(fresh);
            }
            Some(due) => {
                due.iter().for_each(|&slot| self.receive(slot as usize, now, gap, &mut fresh));
                self.decide_fresh(fresh);
                due.iter().for_each(|&slot| self.nodes.note_deadline(self.ports.slots[slot as usize].node));
                self.ports.give_back(due);
            }
        }
        if self.simulated && ticked > 0 {
            // What nodes send at their deadlines comes among the arrivals of that moment in the order of
            // ports, as with several workers.
            let pool = &self.pool;
            self.intake.ready.sort_by_key(|&handle| order_key(pool, handle));
        }
        self.intake.ready.len()
    }

    /// Receives frames by one port.
    #[inline]
    fn receive(&mut self, slot: usize, now: Nanos, gap: Nanos, fresh: &mut Fresh) {
        let slot = &mut self.ports.slots[slot];
        let stamp = slot.port.stamp();
        let (polled, exact) = (stamp == Stamp::Poll, stamp == Stamp::Source);
        let stamped = matches!(stamp, Stamp::Kernel | Stamp::Sender);
        // Frames of sources after their next change are received later.
        let unchanged = Nanos(self.schedules.sources.next().0.saturating_sub(1));
        let until = if exact { now.min(unchanged) } else { now };
        loop {
            let mut batch = Batch::new();
            slot.receive(&mut self.pool, until, &mut batch);
            if batch.is_empty() {
                break;
            }
            fresh.batches += 1;
            let (place, mut seq, mut taken) = (slot.place, slot.seq, 0);
            let mut packets = self.pool.packets();
            for &handle in batch.as_slice() {
                let meta = packets.meta_mut(handle);
                meta.in_port = place;
                if stamped {
                    meta.arrival = meta.arrival.max(self.intake.begin);
                }
                meta.place = PORT_PLACES + u32::from(place);
                meta.seq = seq;
                seq += COPIES;
                taken += u64::from(meta.segments);
            }
            slot.seq = seq;
            self.counters.flow.taken += taken;
            if polled {
                self.counters.lateness.record_wait(gap, batch.len() as u64);
            }
            // In simulated time all packets of one moment are sorted together.
            let more = self.simulated && exact && batch.is_full();
            if fresh.batches == 1 {
                fresh.alone = Some((slot.node, batch));
            } else {
                if let Some((_, first)) = fresh.alone.take() {
                    self.intake.fresh.extend_from_slice(first.as_slice());
                }
                self.intake.fresh.extend_from_slice(batch.as_slice());
            }
            if !more {
                break;
            }
        }
    }

    /// Lets nodes decide about received packets.
    #[inline]
    fn decide_fresh(&mut self, fresh: Fresh) {
        if let Some((node, batch)) = fresh.alone {
            self.decide_whole(node, &batch);
        } else if fresh.batches > 1 {
            let pool = &self.pool;
            self.intake.fresh.sort_unstable_by_key(|&handle| order_key(pool, handle));
            self.decide();
        }
    }

    /// Ticks nodes whose deadline has come. For nodes that decide in turn only the deadline is read.
    fn tell_nodes(&mut self, now: Nanos) {
        if let Some(due) = self.nodes.take_due(now) {
            for &node in &due {
                self.tick(node as usize, now, 0);
                self.nodes.note_deadline(node as usize);
            }
            return self.nodes.give_back(due);
        }
        self.nodes.ask_all_in_turn(self.earliest_turn());
        for node in 0..self.nodes.all.len() {
            if self.nodes.all[node].deadline() <= now && !self.nodes.turns.has(node) {
                self.tick(node, now, 0);
            }
        }
    }

    /// Arrival time of a packet in the order of events. A packet stamped before an event that was already
    /// executed is treated as arriving after it: otherwise the order of packets from several links on the
    /// next one would depend on polling. With several workers on the machine's clock that is unavoidable, and
    /// the stamp is kept; so it is with tunnels, whose packets come after they arrived.
    pub(crate) fn arrival_in_order(&mut self, handle: Handle) -> Nanos {
        let meta = self.pool.meta_mut(handle);
        let (time, place) = self.counters.done;
        let by_itself = !self.simulated && self.peers.inbox.is_alone() && !self.ports.has_tunnels;
        if by_itself && (meta.arrival, meta.place) < (time, place) {
            meta.arrival = time + u64::from(meta.place < place);
        }
        Nanos(meta.arrival)
    }

    /// Lets a node decide about a batch, unless it decides in turn.
    fn decide_whole(&mut self, node: usize, batch: &Batch) {
        if !self.nodes.turns.has(node) {
            return self.decide_batch(node, batch, 0);
        }
        for &handle in batch.as_slice() {
            self.pool.meta_mut(handle).path = UNDECIDED;
        }
        self.intake.ready.extend_from_slice(batch.as_slice());
    }

    /// Lets nodes decide about packets of several ports, in order.
    fn decide(&mut self) {
        let fresh = std::mem::take(&mut self.intake.fresh);
        let mut batch = Batch::new();
        let mut node = 0;
        for &handle in &fresh {
            let in_port = self.pool.meta(handle).in_port;
            let its_node = self.ports.slots[self.map.port_locations[usize::from(in_port)].slot as usize].node;
            if batch.is_full() || (its_node != node && !batch.is_empty()) {
                self.decide_batch(node, &batch, 0);
                batch.clear();
            }
            if self.nodes.turns.has(its_node) {
                if !batch.is_empty() {
                    self.decide_batch(node, &batch, 0);
                    batch.clear();
                }
                self.pool.meta_mut(handle).path = UNDECIDED;
                self.intake.ready.push(handle);
                continue;
            }
            node = its_node;
            batch.push(handle);
        }
        if !batch.is_empty() {
            self.decide_batch(node, &batch, 0);
        }
        self.intake.fresh = fresh;
        self.intake.fresh.clear();
    }

    /// Lets a node decide about a batch. The results are added to `ready`, whose part from `first` on is in
    /// order.
    pub(crate) fn decide_batch(&mut self, node: usize, batch: &Batch, first: usize) {
        if let Some(&handle) = batch.as_slice().first() {
            let meta = self.pool.meta(handle);
            self.nodes.change(node, (meta.arrival, meta.place));
        }
        let handles = batch.as_slice();
        if self.nodes.all[node].stations().is_some() {
            return self.decide_by_stations(node, batch, first);
        }
        if self.nodes.all[node].takes_trains()
            || !handles.iter().any(|&handle| self.pool.meta(handle).is_train())
        {
            return self.forward(node, batch, first);
        }
        let mut single = Batch::new();
        for &handle in handles {
            if !self.pool.meta(handle).is_train() {
                self.gather(node, &mut single, handle, first);
                continue;
            }
            let Meta { segments, seq, .. } = *self.pool.meta(handle);
            for number in 0..segments {
                if let Some(segment) = longwire_wire::segment(&mut self.pool, handle, number, 1) {
                    self.pool.meta_mut(segment).seq = seq + u64::from(number);
                    self.gather(node, &mut single, segment, first);
                } else {
                    self.counters.count_drop(DropReason::PoolFull, 1);
                }
            }
            self.pool.free(handle);
        }
        self.forward(node, &single, first);
    }

    /// Decides about packets of a node with a station table.
    pub(crate) fn decide_by_stations(&mut self, node: usize, batch: &Batch, first: usize) {
        if self.nodes.verdicts.skipped > 0 {
            self.nodes.verdicts.skipped -= 1;
            return self.forward(node, batch, first);
        }
        let (mut rest, mut known) = (batch.as_slice(), 0);
        while !rest.is_empty() {
            let Self { nodes: Nodes { all, verdicts, .. }, pool, map, intake, .. } = self;
            let alike = verdicts.decide_alike(&mut *all[node], pool, &map.classifier, rest);
            intake.ready.extend_from_slice(&rest[..alike]);
            known += alike;
            rest = &rest[alike..];
            let (others, more) = rest.split_at(self.nodes.verdicts.unlike(&mut self.pool, rest));
            if !others.is_empty() {
                let mut batch = Batch::new();
                others.iter().for_each(|&handle| batch.push(handle));
                self.forward(node, &batch, first);
            }
            rest = more;
        }
        if 2 * known < batch.len() {
            self.nodes.verdicts.skipped = PATIENCE;
        }
    }

    /// Adds a packet to a batch for a node, which is passed to the node when full.
    fn gather(&mut self, node: usize, batch: &mut Batch, handle: Handle, first: usize) {
        if batch.is_full() {
            self.forward(node, batch, first);
            batch.clear();
        }
        batch.push(handle);
    }

    /// Lets a node decide about packets without its verdict cache.
    pub(crate) fn forward(&mut self, node: usize, batch: &Batch, first: usize) {
        self.nodes.all[node].forward(&mut self.pool, batch, &mut self.nodes.outbox);
        let among = self.map.classifier.classify(&mut self.pool, batch);
        self.nodes.note_verdict(&mut self.pool, &self.map.classifier, node, batch);
        if among.last_port >= REFUSED {
            self.see_to_special(node, batch, among.flags);
        } else {
            self.make_ready(batch, among.flags);
        }
        self.empty_outbox(first);
    }

    /// Handles packets of which some go to no port, or to several.
    fn see_to_special(&mut self, node: usize, batch: &Batch, flags: u8) {
        let mut plain = Batch::new();
        for &handle in batch.as_slice() {
            let meta = self.pool.meta(handle);
            if meta.out_port == FLOOD {
                self.make_ready(&plain, flags);
                plain.clear();
                self.flood(node, handle);
            } else if let Some(reason) = refusal(meta) {
                self.drop(handle, reason);
            } else if meta.out_port == CONSUMED {
                self.counters.consume(&mut self.pool, handle);
            } else if meta.out_port != KEPT {
                plain.push(handle);
            }
        }
        self.make_ready(&plain, flags);
    }

    /// Sends what a node generated or released. A packet that no port received skips the links between ports,
    /// as replies of links do, unless links lead from the node itself to its port.
    pub(crate) fn empty_outbox(&mut self, first: usize) {
        let count = self.nodes.outbox.packets().len();
        for at in 0..count {
            let (handle, out_port) = self.nodes.outbox.packets()[at];
            let meta = self.pool.meta_mut(handle);
            meta.out_port = out_port;
            if let Some(reason) = refusal(meta) {
                self.drop(handle, reason);
                continue;
            }
            if out_port == CONSUMED {
                self.counters.consume(&mut self.pool, handle);
                continue;
            }
            if meta.in_port == out_port {
                meta.flags |= Meta::OWN;
                meta.path = self.map.classifier.path_by_ports(out_port, out_port);
            } else {
                self.map.classifier.classify_one(&mut self.pool, handle);
            }
            self.grant_requested_link(handle);
            self.intake.ready.push(handle);
        }
        self.counters.flow.made += self.nodes.outbox.clear();
        if count > 0 && self.simulated {
            let pool = &self.pool;
            self.intake.ready[first..].sort_by_key(|&handle| order_key(pool, handle));
        }
    }

    /// Adds packets with a path to those that enter links. Requested links are checked only if the combined
    /// flags contain one.
    fn make_ready(&mut self, batch: &Batch, flags: u8) {
        if Meta::any_requested_link(flags) {
            batch.as_slice().iter().for_each(|&handle| self.grant_requested_link(handle));
        }
        self.intake.ready.extend_from_slice(batch.as_slice());
    }
}
