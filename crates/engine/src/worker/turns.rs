//! Nodes that decide in turn, and their deadlines.

use super::Worker;
use crate::order::{COPIES, PORT_PLACES, TICK_PLACE};
use crate::walk::NextStep;
use longwire_block::PortStats;
use longwire_block::path::UNDECIDED;
use longwire_packet::{Batch, Handle};
use longwire_units::Nanos;

impl Worker {
    /// Stages the arrival of a packet at the port `far`, whose node decides in turn.
    pub(crate) fn come_in(&mut self, handle: Handle, far: u16) {
        let meta = self.pool.meta_mut(handle);
        let (segments, bytes, near) = (u64::from(meta.segments), meta.segment_bytes(), meta.out_port);
        (meta.in_port, meta.arrival, meta.path) = (far, meta.leave(), UNDECIDED);
        let home = self.map.port_locations[usize::from(near)];
        if home.worker == self.index {
            let PortStats { out_frames, out_bytes, .. } = &mut self.ports.slots[home.slot as usize].crossed;
            (*out_frames, *out_bytes) = (*out_frames + segments, *out_bytes + bytes);
        }
    }

    /// Lets the node decide about a packet whose turn it is, and forwards the results.
    pub(crate) fn decide_in_turn(&mut self, handle: Handle) {
        let meta = self.pool.meta(handle);
        let (in_port, segments, bytes) = (meta.in_port, u64::from(meta.segments), meta.segment_bytes());
        let home = self.map.port_locations[usize::from(in_port)];
        if home.worker != self.index {
            return self.hand_over(home.worker, handle);
        }
        let slot = &mut self.ports.slots[home.slot as usize];
        let node = slot.node;
        if self.map.inner_ports.far_side(in_port).is_some() {
            slot.crossed.in_frames += segments;
            slot.crossed.in_bytes += bytes;
        }
        let mut batch = Batch::new();
        batch.push(handle);
        let first = self.intake.ready.len();
        self.decide_batch(node, &batch, first);
        self.nodes.ask_again(node, self.earliest_turn());
        self.enter_from(first);
    }

    /// The earliest time that may be passed to a node that decides in turn.
    pub(crate) fn earliest_turn(&self) -> Nanos {
        if self.simulated { Nanos::ZERO } else { Nanos(self.counters.done.0) }
    }

    /// Ticks the nodes that decide in turn whose deadline is `time`.
    pub(crate) fn tick_in_turn(&mut self, time: Nanos) {
        for at in 0..self.nodes.turns.places.len() {
            let node = self.nodes.turns.places[at];
            if self.nodes.all[node].deadline() > time {
                continue;
            }
            self.emulation.seen = self.emulation.seen.max(time);
            self.counters.did((time.0, TICK_PLACE));
            let first = self.intake.ready.len();
            self.tick(node, time, first);
            let seq = self.emulation.next_seq();
            self.follow(Some((TICK_PLACE, seq)));
            self.enter_from(first);
            self.follow(None);
        }
        let deadlines = self.nodes.turns.places.iter().map(|&node| self.nodes.all[node].deadline());
        self.nodes.turns.next = deadlines.min().unwrap_or(Nanos::NEVER);
    }

    /// Ticks a node; its output is added to `ready`, from `first` on.
    pub(crate) fn tick(&mut self, node: usize, now: Nanos, first: usize) {
        self.nodes.change(node, (now.0, TICK_PLACE));
        self.nodes.all[node].tick(&mut self.pool, now, &mut self.nodes.outbox);
        for at in 0..self.nodes.outbox.packets().len() {
            let meta = self.pool.meta_mut(self.nodes.outbox.packets()[at].0);
            let home = self.map.port_locations[usize::from(meta.in_port)];
            // A port that has left, of a packet that a retired node gives up, may be another worker's by now.
            let slot = self.ports.slots.get_mut(home.slot as usize);
            let Some(slot) = slot.filter(|slot| slot.place == meta.in_port) else {
                (meta.place, meta.seq) = (PORT_PLACES + u32::from(meta.in_port), 0);
                continue;
            };
            (meta.place, meta.seq) = (PORT_PLACES + u32::from(slot.place), slot.seq);
            slot.seq += COPIES;
        }
        self.empty_outbox(first);
    }

    /// Forwards the packets of `ready` from `first` on, each with all consequences before the next.
    fn enter_from(&mut self, first: usize) {
        for at in first..self.intake.ready.len() {
            self.walk(NextStep::Enter, self.intake.ready[at]);
        }
        self.intake.ready.truncate(first);
    }
}
