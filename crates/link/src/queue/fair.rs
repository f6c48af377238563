//! Flow queues with turns: deficit round robin that serves previously idle flows first (RFC 8290, section 4).

use super::counted::CountedFifo;
use super::flow::{flow_hash, slot, surely_one_flow};
use super::settings::Limit;
use super::{Ahead, QueueContext};
use crate::fifo::Fifo;
use longwire_block::{Dice, DropReason};
use longwire_packet::{Handle, Pool};

/// No flow.
pub(super) const NONE: u32 = u32::MAX;

/// Flows with state `S` each, and their turns.
#[derive(Debug)]
pub(super) struct Flows<S> {
    flows: Vec<Flow<S>>,
    /// Flows that were idle, and those that have had a turn.
    fresh: List,
    old: List,
    quantum: i64,
    /// The new number of flows, in effect once waiting packets have been taken out.
    wanted: usize,
    seed: u64,
    alone: Alone,
    /// Limits of all flows together: of any kind, and of bytes.
    pub limit: Limit,
    pub memory: u64,
}

/// On a decided link, the packets of the only flow that waits.
#[derive(Debug)]
struct Alone {
    /// The last of them.
    last: Handle,
    /// Bytes that have joined since the transmitter was idle.
    joined: u64,
}

/// One of the flows.
#[derive(Debug, Clone, Default)]
pub(super) struct Flow<S> {
    pub packets: CountedFifo,
    pub deficit: i64,
    /// The flow behind it in its list.
    pub next: u32,
    pub active: bool,
    /// The discipline's state for it.
    pub state: S,
}

/// Flows in the order of their turns, linked by [`Flow::next`].
#[derive(Debug, Clone, Copy)]
pub(super) struct List {
    pub head: u32,
    tail: u32,
}

impl Default for List {
    fn default() -> Self {
        Self { head: NONE, tail: NONE }
    }
}

impl<S: Default> Flows<S> {
    pub(super) fn new(mut dice: Dice) -> Self {
        let (fresh, old) = (List::default(), List::default());
        let (alone, seed) = (Alone { last: Handle::NONE, joined: 0 }, dice.draw());
        let (flows, limit) = (Vec::new(), Limit::default());
        Self { flows, fresh, old, quantum: 0, wanted: 0, seed, alone, limit, memory: 0 }
    }

    /// Sets the number of flows, and the bytes of a turn. With another number, waiting packets must be taken
    /// out and put in again: [`Flows::is_stale`].
    pub(super) fn set(&mut self, flows: u64, quantum: u64) {
        self.wanted = flows as usize;
        self.quantum = quantum as i64;
        if self.flows.is_empty() {
            self.begin_anew();
        }
    }

    /// Bytes that the flows take.
    pub(super) fn memory_bytes(&self) -> usize {
        self.flows.capacity() * size_of::<Flow<S>>()
    }

    /// Whether the number of flows is to change.
    pub(super) fn is_stale(&self) -> bool {
        self.flows.len() != self.wanted
    }

    /// Empty flows, in the new number.
    fn begin_anew(&mut self) {
        self.flows.clear();
        self.flows.resize_with(self.wanted, Flow::default);
    }

    /// The flow of a frame.
    #[inline]
    pub(super) fn find(&self, frame: &[u8]) -> usize {
        slot(flow_hash(frame, self.seed), self.flows.len() as u32)
    }

    #[inline]
    pub(super) fn flow(&mut self, flow: usize) -> &mut Flow<S> {
        &mut self.flows[flow]
    }

    /// Adds an arrival to its flow, and makes room if it exceeds a limit.
    #[inline]
    pub(super) fn join(&mut self, context: &mut QueueContext<'_>, flow: usize, handle: Handle) {
        self.push(context.pool, flow, handle);
        let limits = [self.limit, Limit::Bytes(self.memory)];
        let (packets, bytes) = (context.packets_waiting(), context.bytes_waiting());
        if limits.iter().any(|limit| limit.is_exceeded(packets, bytes, context.rate)) {
            self.make_room(context, context.waiting_without(handle), limits);
        }
    }

    /// Adds a packet to a flow.
    #[inline]
    pub(super) fn push(&mut self, pool: &mut Pool, flow: usize, handle: Handle) {
        let this = &mut self.flows[flow];
        this.packets.push(pool, handle);
        if !this.active {
            self.activate(flow);
        }
    }

    /// Gives a flow that was idle its first turn.
    #[inline]
    fn activate(&mut self, flow: usize) {
        let this = &mut self.flows[flow];
        this.active = true;
        this.deficit = self.quantum;
        append(&mut self.flows, &mut self.fresh, flow as u32);
    }

    /// Whether a packet that asks a decided link for admission is of the only flow that waits, if any does:
    /// such packets are sent in order, whatever their turns.
    #[inline(always)]
    pub(super) fn is_alone(&self, packet: &Ahead<'_>) -> bool {
        packet.waiting.packets == 0 || {
            let (one, other) = (packet.pool.data(self.alone.last), packet.pool.data(packet.handle));
            surely_one_flow(one, other) || self.share_flow(one, other)
        }
    }

    #[inline(never)]
    fn share_flow(&self, one: &[u8], other: &[u8]) -> bool {
        self.find(one) == self.find(other)
    }

    /// Counts such a packet, which joins.
    #[inline(always)]
    pub(super) fn join_alone(&mut self, packet: &Ahead<'_>) {
        let before = if packet.waiting.packets == 0 { 0 } else { self.alone.joined };
        self.alone = Alone { last: packet.handle, joined: before + packet.bytes };
    }

    /// Takes over the packets of the only flow that waits, behind the one being sent, with the turns that it
    /// has had: a new one whenever packets before the one to be sent had used up the previous ones.
    pub(super) fn take_back(&mut self, pool: &mut Pool, sending: Handle, mut waiting: Fifo) {
        let flow = self.find(pool.data(sending));
        self.activate(flow);
        let mut taken = self.alone.joined as i64;
        while let Some(handle) = waiting.pop(pool) {
            taken -= pool.meta(handle).counted() as i64;
            self.push(pool, flow, handle);
        }
        let turns = (taken - pool.meta(sending).counted() as i64) / self.quantum;
        self.flows[flow].deficit = self.quantum * (turns + 1) - taken;
        if turns > 0 {
            self.old = std::mem::take(&mut self.fresh);
        }
    }

    /// Takes the next packet; `take` takes it and its bytes from its flow (section 4.2).
    #[inline]
    pub(super) fn pop(
        &mut self,
        mut take: impl FnMut(&mut Flow<S>) -> Option<(Handle, u64)>,
    ) -> Option<Handle> {
        loop {
            let is_fresh = self.fresh.head != NONE;
            let list = if is_fresh { &mut self.fresh } else { &mut self.old };
            let front = list.head;
            if front == NONE {
                return None;
            }
            let flow = &mut self.flows[front as usize];
            if flow.deficit <= 0 {
                flow.deficit += self.quantum;
                list.head = flow.next;
                append(&mut self.flows, &mut self.old, front);
                continue;
            }
            if let Some((handle, bytes)) = take(flow) {
                flow.deficit -= bytes as i64;
                return Some(handle);
            }
            list.head = flow.next;
            if is_fresh {
                // It keeps its place among the others for one round: otherwise it could be new again and
                // again.
                append(&mut self.flows, &mut self.old, front);
            } else {
                flow.active = false;
            }
        }
    }

    /// Drops from the head of the flow with most waiting bytes: half of them, but at most 64 packets. Section
    /// 4.1 has half of the packets; Linux uses bytes. If the queue was too long `before` the arrival, because
    /// a limit was lowered, it drops only as much as arrived.
    #[inline(never)]
    fn make_room(&mut self, context: &mut QueueContext<'_>, before: (u64, u64), limits: [Limit; 2]) {
        let lowered = limits.iter().any(|limit| limit.is_exceeded(before.0, before.1, context.rate));
        let Some(flow) = self.flows.iter_mut().max_by_key(|flow| flow.packets.bytes) else { return };
        let half = flow.packets.bytes / 2;
        for _ in 0..64 {
            let Some(handle) = flow.packets.pop(context.pool) else { return };
            context.drop(handle, DropReason::QueueFull);
            let done = match lowered {
                true => !limits.iter().any(|limit| limit.is_overrun(context, before)),
                false => flow.packets.bytes <= half,
            };
            if done {
                return;
            }
        }
    }

    /// Removes all packets in the order of the turns. The flows start fresh.
    pub(super) fn drain(&mut self, pool: &mut Pool) -> Fifo {
        let mut all = Fifo::EMPTY;
        while let Some(handle) = self.pop(|flow| flow.pop(pool)) {
            all.push(pool, handle);
        }
        self.begin_anew();
        all
    }
}

impl<S> Flow<S> {
    /// Takes its first packet, and returns its bytes.
    #[inline]
    pub(super) fn pop(&mut self, pool: &Pool) -> Option<(Handle, u64)> {
        let handle = self.packets.pop(pool)?;
        Some((handle, pool.meta(handle).counted()))
    }
}

/// Adds a flow at the end of a list.
#[inline]
pub(super) fn append<S>(flows: &mut [Flow<S>], list: &mut List, flow: u32) {
    flows[flow as usize].next = NONE;
    if list.head == NONE {
        list.head = flow;
    } else {
        flows[list.tail as usize].next = flow;
    }
    list.tail = flow;
}
