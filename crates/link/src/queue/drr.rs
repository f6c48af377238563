//! Deficit round robin: flows take turns, and what a turn leaves over counts for the next.

use super::flow::{flow_hash, slot};
use super::settings::{FLOWS, Limit, QUANTUM, limit, number};
use super::{Admission, Discipline, Hall, Next};
use crate::fifo::Fifo;
use longwire_block::{Block, Dice, DropReason, Spec, Values, Verdict};
use longwire_packet::{Handle, Pool};

/// No flow.
const NONE: u32 = u32::MAX;

/// Flows by hash, each served up to `quantum` bytes a round, and what it could not use before.
///
/// Every arrival joins. When more waits than `limit` allows, the flow with most bytes loses packets from its head (the paper's buffer
/// stealing). A quantum below the longest packet makes rounds in which nothing is sent: each costs a step for each flow.
#[derive(Debug)]
pub struct Drr {
    flows: Vec<Flow>,
    /// The flows with packets, in the order of their turns.
    first: u32,
    last: u32,
    /// Whether the first of them has been given the quantum of its turn.
    begun: bool,
    quantum: u64,
    limit: Limit,
    /// How many of the flows packets are spread over; more remain from before a change.
    used: u32,
    seed: u64,
}

#[derive(Debug, Clone)]
struct Flow {
    fifo: Fifo,
    /// Bytes that wait.
    backlog: u64,
    deficit: u64,
    next: u32,
    active: bool,
}

impl Block for Drr {
    const SPEC: Spec = Spec {
        key: "queue",
        kind: "drr",
        summary: "Flows take turns by bytes; what a turn leaves over counts for the next.",
        source: "Shreedhar & Varghese, Efficient Fair Queuing using Deficit Round Robin (1995)",
        params: &[limit("1000 packets"), FLOWS, QUANTUM],
    };

    fn build(values: &Values, mut dice: Dice) -> Self {
        let mut block = Self {
            flows: Vec::new(),
            first: NONE,
            last: NONE,
            begun: false,
            quantum: 0,
            limit: Limit::Packets(0),
            used: 0,
            seed: dice.draw(),
        };
        block.change(values);
        block
    }

    /// Takes new parameters; with another number of flows, packets that wait stay where they are.
    fn change(&mut self, values: &Values) {
        self.limit = Limit::read(values, 0);
        self.used = number(values, 1) as u32;
        self.quantum = number(values, 2);
        let none = Flow { fifo: Fifo::EMPTY, backlog: 0, deficit: 0, next: NONE, active: false };
        self.flows.resize(self.flows.len().max(self.used as usize), none);
    }
}

impl Discipline for Drr {
    #[inline]
    fn admit(&mut self, _: &Admission<'_>) -> Verdict {
        Verdict::Pass
    }

    #[inline]
    fn push(&mut self, hall: &mut Hall<'_>, handle: Handle) {
        let number = slot(flow_hash(hall.pool.data(handle), self.seed), self.used);
        let flow = &mut self.flows[number];
        flow.backlog += hall.pool.meta(handle).leave;
        flow.fifo.push(hall.pool, handle);
        if !flow.active {
            (flow.active, flow.deficit) = (true, 0);
            self.append(number as u32);
        }
        while self.limit.is_exceeded(hall.packets_waiting(), hall.bytes_waiting(), hall.rate) {
            if !self.drop_from_longest(hall) {
                return;
            }
        }
    }

    #[inline]
    fn pop(&mut self, hall: &mut Hall<'_>) -> Next {
        while self.first != NONE {
            let front = self.first;
            let flow = &mut self.flows[front as usize];
            let Some(head) = flow.fifo.first() else {
                self.retire();
                continue;
            };
            if !self.begun {
                self.begun = true;
                flow.deficit += self.quantum;
            }
            let bytes = hall.pool.meta(head).leave;
            let Some(left) = flow.deficit.checked_sub(bytes) else {
                self.first = flow.next;
                self.begun = false;
                self.append(front);
                continue;
            };
            flow.deficit = left;
            flow.backlog -= bytes;
            let taken = flow.fifo.pop(hall.pool);
            if flow.fifo.is_empty() {
                self.retire();
            }
            return taken.map_or(Next::Empty, Next::Packet);
        }
        Next::Empty
    }

    /// Flow by flow in the order of their turns.
    fn drain(&mut self, pool: &mut Pool) -> Fifo {
        let mut all = Fifo::EMPTY;
        while self.first != NONE {
            let flow = &mut self.flows[self.first as usize];
            while let Some(handle) = flow.fifo.pop(pool) {
                all.push(pool, handle);
            }
            flow.backlog = 0;
            self.retire();
        }
        all
    }
}

impl Drr {
    /// Adds a flow at the end of the round.
    #[inline]
    fn append(&mut self, number: u32) {
        self.flows[number as usize].next = NONE;
        if self.first == NONE {
            self.first = number;
        } else {
            self.flows[self.last as usize].next = number;
        }
        self.last = number;
    }

    /// Takes the first flow, which is empty, out of the round. It loses what its turn left over.
    #[inline]
    fn retire(&mut self) {
        let flow = &mut self.flows[self.first as usize];
        flow.active = false;
        self.first = flow.next;
        self.begun = false;
    }

    /// Drops the first packet of the flow with most bytes. Whether there was one.
    fn drop_from_longest(&mut self, hall: &mut Hall<'_>) -> bool {
        let (mut longest, mut next) = (self.first, self.first);
        while next != NONE {
            let flow = &self.flows[next as usize];
            if flow.backlog > self.flows[longest as usize].backlog {
                longest = next;
            }
            next = flow.next;
        }
        let Some(flow) = self.flows.get_mut(longest as usize) else { return false };
        let Some(handle) = flow.fifo.pop(hall.pool) else { return false };
        flow.backlog -= hall.pool.meta(handle).leave;
        hall.drop(handle, DropReason::QueueFull);
        true
    }
}
