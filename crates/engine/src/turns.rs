//! Nodes whose ports lead to other nodes: they decide about each packet in its turn, in the exact order of what happens.

use crate::carry_out::EVENT_PLACE;
use crate::intake::{COPIES, PORT_PLACES};
use crate::walk::Next;
use crate::worker::Worker;
use longwire_block::PortStats;
use longwire_block::path::UNDECIDED;
use longwire_packet::{Batch, Handle};
use longwire_units::Nanos;

/// Where deadlines of nodes come in the order of what happens at one time: after links, before changes.
pub(crate) const TICK_PLACE: u32 = EVENT_PLACE - 1;

/// Which ports lead to other nodes instead of out of the engine, and whose nodes decide in their turn. Empty if there are none.
#[derive(Debug, Clone, Default)]
pub struct Joints {
    ports: Vec<Joint>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Joint {
    far: Option<u16>,
    in_turn: bool,
    routed: bool,
}

impl Joints {
    /// What goes out by `port` comes in by `far`. The nodes of both must decide in their turn.
    pub fn join(&mut self, port: u16, far: u16) {
        self.at(port).far = Some(far);
    }

    /// The node of `port` decides in its turn: about one packet at a time, after everything that happens before that packet comes. The
    /// links that packets enter after its decision must be its worker's. Links' answers to what it sent come back to it if it is a router.
    pub fn take_turns(&mut self, port: u16, is_router: bool) {
        let joint = self.at(port);
        (joint.in_turn, joint.routed) = (true, is_router);
    }

    fn at(&mut self, port: u16) -> &mut Joint {
        let place = usize::from(port);
        if self.ports.len() <= place {
            self.ports.resize(place + 1, Joint::default());
        }
        &mut self.ports[place]
    }

    #[inline]
    pub(crate) fn far_side(&self, port: u16) -> Option<u16> {
        self.ports.get(usize::from(port))?.far
    }

    #[inline]
    pub(crate) fn in_turn(&self, port: u16) -> bool {
        self.ports.get(usize::from(port)).is_some_and(|joint| joint.in_turn)
    }

    pub(crate) fn routed(&self, port: u16) -> bool {
        self.ports.get(usize::from(port)).is_some_and(|joint| joint.routed)
    }
}

/// The nodes of a worker that decide in their turn.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// By place among the worker's nodes, and the places of those that do.
    own: Vec<bool>,
    pub places: Vec<usize>,
    /// A time before which none of them wants to be told the time.
    pub next: Nanos,
}

impl Turns {
    /// Of `nodes` nodes those with these places.
    pub fn new(nodes: usize, in_turn: impl Iterator<Item = usize>) -> Self {
        let mut own = vec![false; nodes];
        in_turn.for_each(|node| own[node] = true);
        let places = (0..nodes).filter(|&node| own[node]).collect();
        Self { own, places, next: Nanos::NEVER }
    }

    /// Whether the node decides in its turn.
    #[inline]
    pub fn has(&self, node: usize) -> bool {
        self.own[node]
    }
}

impl Worker {
    /// Lets a packet that left by a port with a far side come in there, as far as that is known now: its node decides when its turn comes.
    pub(crate) fn come_in(&mut self, handle: Handle, far: u16) {
        let meta = self.pool.meta_mut(handle);
        let (segments, bytes, near) = (u64::from(meta.segments), meta.segment_bytes(), meta.out_port);
        (meta.in_port, meta.arrival, meta.path) = (far, meta.leave(), UNDECIDED);
        let home = self.map.homes[usize::from(near)];
        if home.worker == self.index {
            let PortStats { out_frames, out_bytes, .. } = &mut self.ports.slots[home.slot as usize].crossed;
            (*out_frames, *out_bytes) = (*out_frames + segments, *out_bytes + bytes);
        }
    }

    /// Lets the node decide about a packet whose turn it is, and what comes of it go its way.
    pub(crate) fn decide_in_turn(&mut self, handle: Handle) {
        let meta = self.pool.meta(handle);
        let (in_port, segments, bytes) = (meta.in_port, u64::from(meta.segments), meta.segment_bytes());
        let home = self.map.homes[usize::from(in_port)];
        if home.worker != self.index {
            return self.hand_over(home.worker, handle);
        }
        let slot = &mut self.ports.slots[home.slot as usize];
        let node = slot.node;
        if self.map.joints.far_side(in_port).is_some() {
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

    /// The earliest time of which a node is told that decides in its turn.
    pub(crate) fn earliest_turn(&self) -> Nanos {
        if self.simulated { Nanos::ZERO } else { Nanos(self.books.done.0) }
    }

    /// Tells the nodes that decide in their turn that it is `time`, if they wait for it.
    pub(crate) fn tick_in_turn(&mut self, time: Nanos) {
        for at in 0..self.nodes.turns.places.len() {
            let node = self.nodes.turns.places[at];
            if self.nodes.all[node].deadline() > time {
                continue;
            }
            self.emulation.seen = self.emulation.seen.max(time);
            self.books.did((time.0, TICK_PLACE));
            let first = self.intake.ready.len();
            self.tick(node, time, first);
            self.enter_from(first);
        }
        let deadlines = self.nodes.turns.places.iter().map(|&node| self.nodes.all[node].deadline());
        self.nodes.turns.next = deadlines.min().unwrap_or(Nanos::NEVER);
    }

    /// Tells a node the time; what it gives out waits in `ready`, from `first` on.
    pub(crate) fn tick(&mut self, node: usize, now: Nanos, first: usize) {
        self.nodes.change(node, (now.0, TICK_PLACE));
        self.nodes.all[node].tick(&mut self.pool, now, &mut self.nodes.outbox);
        for at in 0..self.nodes.outbox.packets().len() {
            let meta = self.pool.meta_mut(self.nodes.outbox.packets()[at].0);
            let home = self.map.homes[usize::from(meta.in_port)];
            let slot = &mut self.ports.slots[home.slot as usize];
            (meta.place, meta.seq) = (PORT_PLACES + u32::from(slot.place), slot.seq);
            slot.seq += COPIES;
        }
        self.empty_outbox(first);
    }

    /// Sends what waits in `ready` from `first` on its way, each with all that follows before the next.
    fn enter_from(&mut self, first: usize) {
        for at in first..self.intake.ready.len() {
            self.walk(Next::Enter, self.intake.ready[at]);
        }
        self.intake.ready.truncate(first);
    }
}
