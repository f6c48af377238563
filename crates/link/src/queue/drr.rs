//! Deficit round robin: flows take turns, and the rest of a turn is carried over.

use super::fair::{Flow, List, NONE, append};
use super::flow::{flow_hash, slot};
use super::settings::{FLOWS, LIMIT, Limit, QUANTUM};
use super::{Admission, Discipline, Next, QueueContext};
use crate::fifo::Fifo;
use longwire_block::{Block, Dice, DropReason, Verdict};
use longwire_packet::{Handle, Pool};
use longwire_settings::Settings;
use longwire_units::Bytes;

/// Flows by hash, each served up to `quantum` bytes per round, plus its unused deficit.
///
/// Every arrival joins. When the queue exceeds `limit`, the flow with most bytes loses packets from its head
/// (the paper's buffer stealing); after the limit was lowered, an arrival drops no more than it adds. A
/// quantum below the longest packet causes rounds without transmission: each costs a step per flow.
#[derive(Debug, Default)]
pub struct Drr {
    flows: Vec<Flow<()>>,
    /// The flows with packets.
    turns: List,
    /// Whether the first of them has received the quantum of its turn.
    begun: bool,
    quantum: i64,
    limit: Limit,
    /// The new number of flows, in effect once waiting packets have been taken out.
    wanted: usize,
    seed: u64,
}

/// Flows take turns by bytes; unused credit is kept for the next turn.
#[derive(Debug, Settings)]
#[settings(
    key = "queue",
    kind = "drr",
    source = "Shreedhar & Varghese, Efficient Fair Queuing using Deficit Round Robin (1995)",
    live
)]
pub struct DrrSettings {
    #[setting(like = LIMIT)]
    limit: Limit,
    #[setting(like = FLOWS)]
    flows: u64,
    #[setting(like = QUANTUM)]
    quantum: Bytes,
}

impl Block for Drr {
    type Settings = DrrSettings;

    fn build(settings: DrrSettings, mut dice: Dice) -> Self {
        Self { seed: dice.draw(), ..Self::default() }.with(settings)
    }

    /// Applies new parameters. With another number of flows, waiting packets are redistributed.
    fn change(&mut self, settings: DrrSettings) {
        self.limit = settings.limit;
        self.wanted = settings.flows as usize;
        self.quantum = settings.quantum.0 as i64;
        if self.flows.is_empty() {
            self.flows = vec![Flow::default(); self.wanted];
        }
    }
}

impl Discipline for Drr {
    fn memory_bytes(&self) -> usize {
        self.flows.capacity() * size_of::<Flow<()>>()
    }

    #[inline]
    fn admit(&mut self, _: &Admission<'_>) -> Verdict {
        Verdict::Pass
    }

    #[inline(always)]
    fn push(&mut self, context: &mut QueueContext<'_>, handle: Handle) {
        let before = context.waiting_without(handle);
        self.add(context.pool, handle);
        while self.limit.is_overrun(context, before) {
            if !self.drop_from_longest(context) {
                return;
            }
        }
    }

    fn adopt(&mut self, context: &mut QueueContext<'_>, mut waiting: Fifo) {
        while let Some(handle) = waiting.pop(context.pool) {
            self.add(context.pool, handle);
        }
    }

    fn resettle(&mut self, context: &mut QueueContext<'_>) {
        if self.flows.len() != self.wanted {
            let waiting = self.drain(context.pool);
            self.flows = vec![Flow::default(); self.wanted];
            self.adopt(context, waiting);
        }
    }

    #[inline(always)]
    fn pop(&mut self, context: &mut QueueContext<'_>) -> Next {
        self.next(context.pool).map_or(Next::Empty, Next::Packet)
    }

    fn drain(&mut self, pool: &mut Pool) -> Fifo {
        let mut all = Fifo::EMPTY;
        while let Some(handle) = self.next(pool) {
            all.push(pool, handle);
        }
        all
    }
}

impl Drr {
    /// Adds a packet to its flow.
    #[inline]
    fn add(&mut self, pool: &mut Pool, handle: Handle) {
        let number = slot(flow_hash(pool.data(handle), self.seed), self.flows.len() as u32);
        let flow = &mut self.flows[number];
        flow.packets.push(pool, handle);
        if !flow.active {
            (flow.active, flow.deficit) = (true, 0);
            append(&mut self.flows, &mut self.turns, number as u32);
        }
    }

    /// Takes the packet to be sent next.
    #[inline]
    fn next(&mut self, pool: &Pool) -> Option<Handle> {
        while self.turns.head != NONE {
            let front = self.turns.head;
            let flow = &mut self.flows[front as usize];
            let Some(head) = flow.packets.fifo.first() else {
                self.retire();
                continue;
            };
            if !self.begun {
                self.begun = true;
                flow.deficit += self.quantum;
            }
            let bytes = pool.meta(head).counted();
            if flow.deficit < bytes as i64 {
                self.turns.head = flow.next;
                self.begun = false;
                append(&mut self.flows, &mut self.turns, front);
                continue;
            }
            flow.deficit -= bytes as i64;
            flow.packets.bytes -= bytes;
            let taken = flow.packets.fifo.pop(pool);
            if flow.packets.fifo.is_empty() {
                self.retire();
            }
            return taken;
        }
        None
    }

    /// Removes the first flow, which is empty, from the round. It loses its deficit.
    #[inline]
    fn retire(&mut self) {
        let flow = &mut self.flows[self.turns.head as usize];
        flow.active = false;
        self.turns.head = flow.next;
        self.begun = false;
    }

    /// Drops the first packet of the flow with most bytes. Returns whether there was one.
    fn drop_from_longest(&mut self, context: &mut QueueContext<'_>) -> bool {
        let (mut longest, mut next) = (self.turns.head, self.turns.head);
        while next != NONE {
            let flow = &self.flows[next as usize];
            if flow.packets.bytes > self.flows[longest as usize].packets.bytes {
                longest = next;
            }
            next = flow.next;
        }
        let Some(flow) = self.flows.get_mut(longest as usize) else { return false };
        let Some(handle) = flow.packets.pop(context.pool) else { return false };
        context.drop(handle, DropReason::QueueFull);
        true
    }
}
