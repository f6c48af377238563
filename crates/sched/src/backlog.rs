//! Flows and the packets inside: lists through preallocated slots, so that nothing is allocated while packets flow.

use crate::cost::Prices;
use crate::counters::{Counters, Happened, Rare};
pub(crate) use crate::record::{Flow, Gone, List, Slot, State, Turn};
use crate::table::{NONE, Table};
use crate::{Refusal, Settings, Weight};
use longwire_packet::{huge_vec, prefetch};

/// How many flows are looked at for an idle one when the table is full.
const LOOKS: u32 = 64;

/// A packet that was let in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Admitted {
    pub slot: u32,
    /// Whether its flow had none waiting.
    pub first: bool,
    /// How long processing a packet of its flow is foretold to take.
    pub estimate: u32,
}

/// All flows and packets.
#[derive(Debug)]
pub(crate) struct Backlog {
    pub flows: Vec<Flow>,
    pub slots: Vec<Slot>,
    rare: Vec<Rare>,
    /// Of flows that made room for others, and of packets of no flow.
    pub gone: Counters,
    pub happened: Happened,
    pub prices: Prices,
    table: Table,
    free: List,
    /// Packets ready for each port, in the order in which they became so.
    ready: Vec<List>,
    ready_packets: Vec<u32>,
    /// Packets before the processors.
    pub waiting: u32,
    /// Those of them whose handles are invalid.
    revoked: u32,
    inside: u32,
    /// Where the search for an idle flow goes on.
    hand: u32,
    settings: Settings,
}

impl Backlog {
    pub(crate) fn new(settings: &Settings) -> Self {
        let none = Slot {
            handle: NONE,
            bytes: 0,
            flow: NONE,
            next: NONE,
            processor: 0,
            cost: 0,
            tag: 0,
            state: State::Free,
            arrived: 0,
        };
        let mut slots = huge_vec(settings.packets as usize);
        slots.resize(settings.packets as usize, none);
        let mut free = List::EMPTY;
        // From the last to the first would do as well; in order, the first packets lie side by side.
        (0..settings.packets).for_each(|slot| free.push(&mut slots, slot));
        let flows = settings.flows as usize;
        Self {
            flows: huge_vec(flows),
            slots,
            rare: Vec::with_capacity(flows),
            gone: Counters::default(),
            happened: Happened::default(),
            prices: Prices::new(settings),
            table: Table::new(settings.flows),
            free,
            ready: vec![List::EMPTY; settings.ports.into()],
            ready_packets: vec![0; settings.ports.into()],
            waiting: 0,
            revoked: 0,
            inside: 0,
            hand: 0,
            settings: settings.clone(),
        }
    }

    pub(crate) const fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) const fn inside(&self) -> u32 {
        self.inside
    }

    #[inline]
    pub(crate) fn find(&self, key: u32) -> Option<u32> {
        self.table.find(key)
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

    /// The flow of this key, an idle one's place for it if there is no other; none if all are busy.
    #[inline]
    pub(crate) fn find_or_make(&mut self, key: u32) -> Option<u32> {
        if let Some(flow) = self.table.find(key) {
            return Some(flow);
        }
        self.make(key)
    }

    fn make(&mut self, key: u32) -> Option<u32> {
        let new = Flow::new(key, &self.settings, &self.prices);
        if self.flows.len() < self.settings.flows as usize {
            self.flows.push(new);
            self.rare.push(Rare::default());
            let place = (self.flows.len() - 1) as u32;
            self.table.add(key, place);
            return Some(place);
        }
        let count = self.flows.len() as u32;
        for _ in 0..LOOKS.min(count) {
            let place = self.hand;
            self.hand = (self.hand + 1) % count;
            let old = &self.flows[place as usize];
            let in_a_round = old.turn.active || old.later_turn.active;
            if old.inside == 0 && !old.pinned && !in_a_round {
                let old_key = old.key;
                let counted = self.counters(place);
                self.gone.add(&counted);
                self.table.remove(old_key);
                self.table.add(key, place);
                self.flows[place as usize] = new;
                self.rare[place as usize] = Rare::default();
                self.happened.recycled += 1;
                return Some(place);
            }
        }
        None
    }

    /// Keeps a flow's place, with a weight or a port of its own.
    pub(crate) fn pin(&mut self, flow: u32, weight: Option<Weight>, port: Option<u16>) {
        let flow = self.flow_mut(flow);
        flow.pinned = true;
        flow.weight = weight.map_or(flow.weight, Weight::number);
        flow.port = port.unwrap_or(flow.port);
    }

    /// Sends a flow that is idle, and was given no port, to this one.
    #[inline]
    pub(crate) fn aim(&mut self, flow: u32, port: u16) {
        let flow = self.flow_mut(flow);
        if flow.inside == 0 && !flow.pinned {
            flow.port = port;
        }
    }

    /// Lets a flow's place go once it is idle.
    pub(crate) fn unpin(&mut self, flow: u32) {
        let flow = self.flow_mut(flow);
        (flow.pinned, flow.weight) = (false, 1);
    }

    /// A slot in the queue of a flow. It has no cost yet.
    #[inline]
    pub(crate) fn admit(
        &mut self,
        flow: u32,
        handle: u32,
        bytes: u32,
        arrived: u64,
    ) -> Result<Admitted, Refusal> {
        let place = &mut self.flows[flow as usize];
        if place.waiting_packets >= self.settings.flow_limit {
            self.happened.queue_full += 1;
            self.refuse(flow);
            return Err(Refusal::QueueFull);
        }
        let Some(slot) = self.free.pop(&self.slots) else {
            self.happened.no_room += 1;
            self.refuse(flow);
            return Err(Refusal::NoRoom);
        };
        let new = &mut self.slots[slot as usize];
        (new.handle, new.bytes, new.flow, new.state) = (handle, bytes, flow, State::Waiting);
        (new.arrived, new.next) = (arrived, NONE);
        place.waiting.append(&mut self.slots, slot);
        place.waiting_packets += 1;
        place.inside += 1;
        place.traffic.in_packets += 1;
        place.traffic.in_bytes += u64::from(bytes);
        self.waiting += 1;
        self.inside += 1;
        Ok(Admitted { slot, first: place.waiting_packets == 1, estimate: place.estimate })
    }

    /// Of all flows there have been. It looks at every flow.
    pub(crate) fn totals(&self) -> Counters {
        let mut totals = self.gone;
        (0..self.flows.len() as u32).for_each(|flow| totals.add(&self.counters(flow)));
        totals
    }

    /// What was counted of a flow.
    pub(crate) fn counters(&self, flow: u32) -> Counters {
        Counters::of(&self.flow(flow).traffic, &self.rare[flow as usize])
    }

    /// Reads ahead where a key is looked up.
    #[inline]
    pub(crate) fn prefetch_key(&self, key: u32) {
        self.table.prefetch(key);
    }

    /// Reads ahead what all packets of a flow need.
    #[inline]
    pub(crate) fn prefetch_flow(&self, flow: u32) {
        if let Some(flow) = self.flows.get(flow as usize) {
            prefetch(flow);
            prefetch(&flow.taken_round);
        }
    }

    /// A waiting packet's handle is no longer valid.
    pub(crate) fn revoke(&mut self, slot: u32) {
        self.slots[slot as usize].state = State::Revoked;
        self.revoked += 1;
    }

    /// Reads ahead the end of a flow's queue. The flow has been read.
    #[inline]
    pub(crate) fn prefetch_tail(&self, flow: u32) {
        let waiting = &self.flow(flow).waiting;
        if waiting.first != NONE
            && let Some(slot) = self.slots.get(waiting.last as usize)
        {
            prefetch(slot);
        }
    }

    /// Reads ahead the head of a flow's queue. The flow has been read.
    #[inline]
    pub(crate) fn prefetch_head(&self, flow: u32) {
        let head = self.flows.get(flow as usize).and_then(|flow| flow.waiting.first());
        if let Some(slot) = head.and_then(|head| self.slots.get(head as usize)) {
            prefetch(slot);
        }
    }

    pub(crate) fn refuse(&mut self, flow: u32) {
        self.rare[flow as usize].refused += 1;
    }

    /// The head of a flow's queue, after those whose handles are invalid have been thrown away.
    #[inline]
    pub(crate) fn head(&mut self, flow: u32) -> Option<u32> {
        loop {
            let head = self.flow(flow).waiting.first()?;
            // The packet itself, which may not be in the cache, is looked at only if it may be invalid.
            if self.revoked == 0 || self.slot(head).state == State::Waiting {
                return Some(head);
            }
            self.pop(flow);
        }
    }

    /// Takes the head of a flow's queue; a packet goes to a processor, one with an invalid handle away, and none is returned for it.
    #[inline]
    pub(crate) fn pop(&mut self, flow: u32) -> Option<u32> {
        let place = &mut self.flows[flow as usize];
        let head = place.waiting.pop(&self.slots)?;
        place.waiting_packets -= 1;
        self.waiting -= 1;
        let slot = &mut self.slots[head as usize];
        if slot.state == State::Revoked {
            self.revoked -= 1;
            self.rare[flow as usize].revoked += 1;
            self.release(head);
            return None;
        }
        slot.state = State::Working;
        place.working.push(&mut self.slots, head);
        // It may be the flow's turn still.
        if let Some(next) = place.waiting.first() {
            prefetch(&self.slots[next as usize]);
        }
        Some(head)
    }

    /// A packet has been processed. Returns its flow.
    #[inline]
    pub(crate) fn hold(&mut self, slot: u32) -> u32 {
        let slot = &mut self.slots[slot as usize];
        slot.state = State::Held;
        slot.flow
    }

    /// A packet that has been processed, if all before it have been, too: else it is held. It counts as ready for its port. Given-up ones before it go.
    #[inline]
    pub(crate) fn next_in_order(&mut self, flow: u32) -> Option<u32> {
        loop {
            let place = &mut self.flows[flow as usize];
            let first = place.working.first()?;
            let slot = &mut self.slots[first as usize];
            match slot.state {
                State::Held => {
                    place.working.first = slot.next;
                    slot.state = State::Ready;
                    self.ready_packets[usize::from(place.port)] += 1;
                    return Some(first);
                }
                State::Gone => {
                    place.working.first = slot.next;
                    self.free_slot(first);
                }
                _ => return None,
            }
        }
    }

    /// Puts a packet at the end of its port's line.
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
        self.ready_packets.get(usize::from(port)).copied().unwrap_or(0)
    }

    /// A packet goes to the port, and its slot is free.
    #[inline]
    pub(crate) fn sent(&mut self, slot: u32, port: u16) {
        let Slot { flow, bytes, .. } = *self.slot(slot);
        self.ready_packets[usize::from(port)] -= 1;
        let place = self.flow_mut(flow);
        place.traffic.out_packets += 1;
        place.traffic.out_bytes += u64::from(bytes);
        place.inside -= 1;
        self.inside -= 1;
        self.free_slot(slot);
    }

    /// Takes out a packet that goes to no port; it counts as inside no more, and its slot is free once its predecessors are through. Returns its flow.
    #[inline]
    pub(crate) fn give_up(&mut self, slot: u32, because: Gone) -> u32 {
        let flow = self.slot(slot).flow;
        self.slots[slot as usize].state = State::Gone;
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
        self.free_slot(slot);
    }

    #[inline]
    fn uncount(&mut self, flow: u32) {
        self.flow_mut(flow).inside -= 1;
        self.inside -= 1;
    }

    #[inline]
    fn free_slot(&mut self, slot: u32) {
        let place = &mut self.slots[slot as usize];
        // What was used last is what the processor's cache still has.
        (place.state, place.next) = (State::Free, self.free.first);
        if self.free.first == NONE {
            self.free.last = slot;
        }
        self.free.first = slot;
    }

    /// Takes a measurement of a flow into its estimate.
    #[inline]
    pub(crate) fn measure(&mut self, flow: u32, cycles: u64) {
        let (estimator, place) = (self.settings.estimator, &mut self.flows[flow as usize]);
        let estimate = place.memory.take(estimator, cycles);
        place.estimate = self.prices.processing(estimate);
        place.traffic.cycles += cycles;
    }

    /// Cycles, and at most the budget.
    #[inline]
    pub(crate) fn within_budget(&mut self, cycles: u64) -> u64 {
        if cycles > self.settings.budget {
            self.happened.exploded += 1;
        }
        cycles.min(self.settings.budget)
    }
}
