//! Flows and their packets: lists of preallocated slots, so that nothing is allocated while packets flow.

use crate::cost::Prices;
use crate::counters::{Counters, Rare, RareCounters};
use crate::estimate::Memory;
use crate::idle::Idle;
use crate::ports::Ports;
pub(crate) use crate::record::{Flow, Gone, List, PacketState, Slot, Turn};
use crate::room::Room;
use crate::table::{NONE, Table};
use crate::{Refusal, Settings, Weight};
use longwire_packet::{huge_vec, prefetch};

/// An admitted packet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AdmittedPacket {
    pub slot: u32,
    /// Whether its flow's queue was empty.
    pub first: bool,
    /// Predicted processing time of a packet of its flow.
    pub estimate: u32,
    /// The weight of its flow.
    pub weight: u32,
}

/// Packets waiting for a port.
#[derive(Debug, Clone, Copy, Default)]
struct Load {
    /// Packets that were processed.
    ready: u32,
    /// Flows with packets before the processors.
    flows: u32,
}

/// All flows and packets.
#[derive(Debug)]
pub(crate) struct Backlog {
    pub flows: Vec<Flow>,
    pub slots: Vec<Slot>,
    rare: Vec<Rare>,
    /// Each flow's successor in the rounds before the processors and before the port.
    pub links: [Vec<u32>; 2],
    /// Counters of evicted flows, and of packets without a flow.
    pub gone: Counters,
    pub happened: RareCounters,
    pub prices: Prices,
    /// Most turns of a flow that may be in progress.
    pub turns_ahead: u32,
    /// Most packets ready for a port; or, for schedulers with a second round before the port, most packets of
    /// each flow behind the first.
    port_limit: Option<u32>,
    share_limit: Option<u32>,
    pub table: Table,
    room: Room,
    /// Flows that may be evicted: without packets inside or a turn, and without an assigned weight or port.
    idle: Idle,
    /// Packets ready for each port, in order.
    ready: Vec<List>,
    loads: Vec<Load>,
    /// Ports whose flows have packets before the processors.
    pub busy: Ports,
    /// Recent cost of packets of all flows, smoothed over about 32 of them, in 2⁻¹⁶ cycles: the prediction
    /// for a flow without measurements.
    lately: u64,
    /// Packets before the processors.
    pub waiting: u32,
    /// Those with invalid handles.
    revoked: u32,
    /// Packets of all states.
    pub inside: u32,
    /// Position of the search for an idle flow.
    hand: u32,
    pub settings: Settings,
}

impl Backlog {
    /// An empty backlog. With `first_come`, packet memory is not shared by flow. Flows take turns in `stages`
    /// stages.
    pub(crate) fn new(settings: &Settings, first_come: bool, stages: usize) -> Self {
        let mut slots = huge_vec(settings.packets as usize);
        slots.resize(settings.packets as usize, Slot::default());
        let flows = settings.flows as usize;
        let links = |stage: usize| vec![NONE; if stage < stages { flows } else { 0 }];
        Self {
            flows: huge_vec(flows),
            room: Room::new(&mut slots, first_come),
            idle: Idle::new(settings.flows),
            slots,
            rare: Vec::with_capacity(flows),
            links: [links(0), links(1)],
            gone: Counters::default(),
            happened: RareCounters::default(),
            prices: Prices::new(settings),
            turns_ahead: settings.under_way.unwrap_or(0).max(settings.processors),
            port_limit: settings.ready_limit.filter(|_| stages < 2),
            share_limit: settings.ready_limit.filter(|_| stages == 2),
            table: Table::new(settings.flows),
            ready: vec![List::EMPTY; settings.ports.into()],
            loads: vec![Load::default(); settings.ports.into()],
            busy: Ports::default(),
            lately: 0,
            waiting: 0,
            revoked: 0,
            inside: 0,
            hand: 0,
            settings: settings.clone(),
        }
    }

    #[inline]
    pub(crate) fn flow(&self, flow: u32) -> &Flow {
        &self.flows[flow as usize]
    }

    #[inline]
    pub(crate) fn flow_mut(&mut self, flow: u32) -> &mut Flow {
        &mut self.flows[flow as usize]
    }

    #[inline]
    pub(crate) fn slot(&self, slot: u32) -> &Slot {
        &self.slots[slot as usize]
    }

    /// Finds the flow of this key, or replaces an idle flow by it; none if all flows are busy.
    #[inline]
    pub(crate) fn find_or_make(&mut self, key: u32) -> Option<u32> {
        self.table.find(key).or_else(|| self.make(key))
    }

    fn make(&mut self, key: u32) -> Option<u32> {
        let new = Flow::new(key, &self.settings, &self.prices);
        if self.flows.len() < self.settings.flows as usize {
            self.flows.push(new);
            self.rare.push(Rare::default());
            let place = (self.flows.len() - 1) as u32;
            self.table.add(key, place);
            self.idle.add(place);
            return Some(place);
        }
        // Round robin, so that new flows stay for a while.
        let place = self.idle.next(self.hand)?;
        self.hand = if place + 1 < self.settings.flows { place + 1 } else { 0 };
        let counted = self.counters(place);
        self.gone.add(&counted);
        self.table.remove(self.flows[place as usize].key);
        self.table.add(key, place);
        self.flows[place as usize] = new;
        self.rare[place as usize] = Rare::default();
        self.happened.recycled += 1;
        Some(place)
    }

    /// Marks a flow as idle, if it is.
    #[inline]
    pub(crate) fn note_idle(&mut self, flow: u32) {
        let place = self.flow(flow);
        // A flow with a turn before the port has a packet inside.
        if place.inside == 0 && !place.pinned && !place.turn.active {
            self.idle.add(flow);
        }
    }

    /// Marks a flow in a round as busy.
    #[inline]
    pub(crate) fn note_busy(&mut self, flow: u32) {
        // A flow with packets inside is already marked.
        if self.flow(flow).inside == 0 {
            self.idle.remove(flow);
        }
    }

    /// Pins a flow, with its own weight or port.
    pub(crate) fn pin(&mut self, flow: u32, weight: Option<Weight>, port: Option<u16>) {
        let place = self.flow_mut(flow);
        place.pinned = true;
        if let Some(port) = port {
            place.move_to(port);
        }
        self.idle.remove(flow);
        if let Some(weight) = weight {
            self.reweigh(flow, weight.number());
        }
    }

    /// Assigns this port to a flow that is idle and has no assigned port.
    #[inline]
    pub(crate) fn aim(&mut self, flow: u32, port: u16) {
        let flow = self.flow_mut(flow);
        if flow.inside == 0 && !flow.pinned && !flow.turn.active {
            flow.move_to(port);
        }
    }

    /// Unpins a flow, which may be evicted once idle.
    pub(crate) fn unpin(&mut self, flow: u32) {
        self.flow_mut(flow).pinned = false;
        self.reweigh(flow, 1);
        self.note_idle(flow);
    }

    fn reweigh(&mut self, flow: u32, weight: u32) {
        let place = &mut self.flows[flow as usize];
        let before = std::mem::replace(&mut place.weight, weight);
        if place.inside > 0 {
            self.room.leave(before);
            self.room.enter(weight);
        }
    }

    /// Takes a slot in a flow's queue, without a cost yet.
    #[inline]
    pub(crate) fn admit(
        &mut self,
        flow: u32,
        handle: u32,
        bytes: u32,
        arrived: u64,
    ) -> Result<AdmittedPacket, Refusal> {
        let place = &mut self.flows[flow as usize];
        if place.waiting_packets >= self.settings.flow_limit {
            self.happened.queue_full += 1;
            self.refuse(flow);
            return Err(Refusal::QueueFull);
        }
        let is_room = self.room.is_for(place.inside, place.weight);
        let Some(slot) = is_room.then(|| self.room.take(&self.slots)).flatten() else {
            self.happened.no_room += 1;
            self.refuse(flow);
            return Err(Refusal::NoRoom);
        };
        let new = &mut self.slots[slot as usize];
        (new.handle, new.bytes, new.flow, new.state) = (handle, bytes, flow, PacketState::Waiting);
        (new.arrived, new.next) = (arrived, NONE);
        place.waiting.append(&mut self.slots, slot);
        if place.waiting_packets == 0 {
            let port = usize::from(place.port);
            self.loads[port].flows += 1;
            self.busy.insert(place.port);
        }
        place.waiting_packets += 1;
        if place.inside == 0 {
            self.room.enter(place.weight);
            if !place.pinned {
                self.idle.remove(flow);
            }
        }
        place.inside += 1;
        self.waiting += 1;
        self.inside += 1;
        let estimate =
            if place.is_measured { place.estimate } else { self.prices.processing(self.lately >> 16) };
        Ok(AdmittedPacket { slot, first: place.waiting_packets == 1, estimate, weight: place.weight })
    }

    /// Totals of all flows ever. Visits every flow.
    pub(crate) fn totals(&self) -> Counters {
        let mut totals = self.gone;
        (0..self.flows.len() as u32).for_each(|flow| totals.add(&self.counters(flow)));
        totals
    }

    /// Counters of a flow.
    pub(crate) fn counters(&self, flow: u32) -> Counters {
        let place = self.flow(flow);
        Counters::of(&place.traffic, &self.rare[flow as usize], place.inside)
    }

    /// Marks a waiting packet's handle as invalid.
    pub(crate) fn revoke(&mut self, slot: u32) {
        self.slots[slot as usize].state = PacketState::Revoked;
        self.revoked += 1;
    }

    pub(crate) fn refuse(&mut self, flow: u32) {
        self.rare[flow as usize].refused += 1;
    }

    /// The head of a flow's queue, after discarding packets with invalid handles.
    #[inline]
    pub(crate) fn head(&mut self, flow: u32) -> Option<u32> {
        loop {
            let head = self.flow(flow).waiting.first()?;
            // The packet itself, which may not be cached, is only read if it may be invalid.
            if self.revoked == 0 || self.slot(head).state == PacketState::Waiting {
                return Some(head);
            }
            self.pop(flow);
        }
    }

    /// Takes the head of a flow's queue for a processor. A packet with an invalid handle is discarded, and
    /// none is returned.
    #[inline]
    pub(crate) fn pop(&mut self, flow: u32) -> Option<u32> {
        let place = &mut self.flows[flow as usize];
        let head = place.waiting.pop(&self.slots)?;
        place.waiting_packets -= 1;
        if place.waiting_packets == 0 {
            let port = usize::from(place.port);
            self.loads[port].flows -= 1;
            if self.loads[port].flows == 0 {
                self.busy.remove(place.port);
            }
        }
        self.waiting -= 1;
        let slot = &mut self.slots[head as usize];
        if slot.state == PacketState::Revoked {
            self.revoked -= 1;
            self.rare[flow as usize].revoked += 1;
            self.release(head);
            return None;
        }
        slot.state = PacketState::Working;
        place.working.push(&mut self.slots, head);
        // It may still be the flow's turn.
        if let Some(next) = place.waiting.first() {
            prefetch(&self.slots[next as usize]);
        }
        Some(head)
    }

    /// Marks a packet as processed. Returns its flow.
    #[inline]
    pub(crate) fn hold(&mut self, slot: u32) -> u32 {
        let slot = &mut self.slots[slot as usize];
        slot.state = PacketState::Held;
        slot.flow
    }

    /// The next processed packet in order, which becomes ready for its port; none while an earlier packet is
    /// unfinished. Abandoned ones before it are freed.
    #[inline]
    pub(crate) fn next_in_order(&mut self, flow: u32) -> Option<u32> {
        loop {
            let place = &mut self.flows[flow as usize];
            let first = place.working.first()?;
            let slot = &mut self.slots[first as usize];
            match slot.state {
                PacketState::Held => {
                    place.working.first = slot.next;
                    slot.state = PacketState::Ready;
                    self.loads[usize::from(place.port)].ready += 1;
                    return Some(first);
                }
                PacketState::Gone => {
                    place.working.first = slot.next;
                    self.room.give_back(&mut self.slots, first);
                }
                _ => return None,
            }
        }
    }

    /// Appends a packet to its port's queue.
    #[inline]
    pub(crate) fn line_up(&mut self, slot: u32) {
        let port = self.port_of(slot);
        self.ready[port].push(&mut self.slots, slot);
    }

    #[inline]
    pub(crate) fn next_of_line(&mut self, port: u16) -> Option<u32> {
        self.ready[usize::from(port)].pop(&self.slots)
    }

    #[inline]
    pub(crate) fn port_of(&self, slot: u32) -> usize {
        self.flow(self.slot(slot).flow).port.into()
    }

    pub(crate) fn ready(&self, port: u16) -> u32 {
        self.loads.get(usize::from(port)).map_or(0, |load| load.ready)
    }

    /// Whether the queue of a port is full.
    #[inline]
    pub(crate) fn is_full(&self, port: u16) -> bool {
        self.port_limit.is_some_and(|limit| self.loads[usize::from(port)].ready >= limit)
    }

    /// Whether a flow has reached its limit of packets with processors and before its port.
    #[inline]
    pub(crate) fn has_enough(&self, flow: u32) -> bool {
        let place = self.flow(flow);
        self.share_limit.is_some_and(|limit| place.inside - place.waiting_packets >= limit)
    }

    /// Frees the slot of a packet that goes to the port.
    #[inline]
    pub(crate) fn sent(&mut self, slot: u32, port: u16) {
        let Slot { flow, bytes, .. } = *self.slot(slot);
        self.loads[usize::from(port)].ready -= 1;
        let place = self.flow_mut(flow);
        place.traffic.out_packets += 1;
        place.traffic.out_bytes += u64::from(bytes);
        self.release(slot);
    }

    /// Removes a packet that goes to no port. It is no longer inside, and its slot is freed after its
    /// predecessors. Returns its flow.
    #[inline]
    pub(crate) fn give_up(&mut self, slot: u32, because: Gone) -> u32 {
        let flow = self.slot(slot).flow;
        self.slots[slot as usize].state = PacketState::Gone;
        let counters = &mut self.rare[flow as usize];
        *match because {
            Gone::Consumed => &mut counters.consumed,
            Gone::Abandoned => &mut counters.abandoned,
        } += 1;
        self.uncount(flow);
        flow
    }

    #[inline]
    fn release(&mut self, slot: u32) {
        self.uncount(self.slot(slot).flow);
        self.room.give_back(&mut self.slots, slot);
    }

    #[inline]
    fn uncount(&mut self, flow: u32) {
        self.inside -= 1;
        let place = self.flow_mut(flow);
        place.inside -= 1;
        if place.inside == 0 {
            self.room.leave(self.flows[flow as usize].weight);
            self.note_idle(flow);
        }
    }

    /// Adds a measurement to a flow's estimate.
    #[inline]
    pub(crate) fn measure(&mut self, flow: u32, cycles: u64) {
        let (estimator, place) = (self.settings.estimator, &mut self.flows[flow as usize]);
        if !place.is_measured {
            // Before the first measurement nothing is known.
            place.memory = Memory::new(estimator, cycles);
        }
        let estimate = place.memory.take(estimator, cycles);
        place.estimate = self.prices.processing(estimate);
        place.traffic.cycles += cycles;
        place.is_measured = true;
        let before = if self.lately == 0 { cycles << 16 } else { self.lately };
        self.lately = before - (before >> 5) + (cycles << 11);
    }

    /// Limits cycles to the budget.
    #[inline]
    pub(crate) fn within_budget(&mut self, cycles: u64) -> u64 {
        if cycles > self.settings.budget {
            self.happened.exploded += 1;
        }
        cycles.min(self.settings.budget)
    }
}
