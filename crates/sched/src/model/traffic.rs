//! Sources of a machine's packets.

use super::demand::{FlowPlan, Packet};
use crate::Refusal;
use longwire_block::Dice;
use longwire_units::Nanos;
use std::collections::VecDeque;

/// Why a packet was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DropCause {
    /// Ring 1 was full.
    Input,
    /// The scheduler refused it.
    Refused(Refusal),
    /// Its program exceeded its budget.
    Stopped,
}

/// A packet that has been sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Departure {
    /// The packet.
    pub packet: Packet,
    /// When it came to the input.
    pub arrived: Nanos,
    /// Time of its last bit.
    pub sent: Nanos,
    /// Its processor's time.
    pub processing: Nanos,
    /// The port's time.
    pub transmission: Nanos,
}

/// A source of packets that observes their outcome.
pub trait Traffic {
    /// Arrival time of the next packet; none if there is none before a departure.
    fn next_time(&self) -> Option<Nanos>;

    /// The packet announced by [`next_time`](Self::next_time).
    fn take(&mut self) -> Option<Packet>;

    /// A packet has been sent.
    fn departed(&mut self, _: &Departure) {}

    /// A packet was dropped.
    fn dropped(&mut self, _: Packet, _why: DropCause, _now: Nanos) {}

    /// Called for a processed packet. Returns whether it goes on to its port, and may write a note.
    fn processed(&mut self, _: &mut Packet, _now: Nanos) -> bool {
        true
    }
}

/// Packets at given times.
#[derive(Debug)]
pub struct OpenArrivals(VecDeque<(Nanos, Packet)>);

impl OpenArrivals {
    /// These, in the order of their times.
    pub fn new(mut packets: Vec<(Nanos, Packet)>) -> Self {
        packets.sort_by_key(|(time, _)| *time);
        Self(packets.into())
    }
}

impl Traffic for OpenArrivals {
    fn next_time(&self) -> Option<Nanos> {
        self.0.front().map(|(time, _)| *time)
    }

    fn take(&mut self) -> Option<Packet> {
        self.0.pop_front().map(|(_, packet)| packet)
    }
}

/// Flow of the packet that replaces a departed one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refill {
    /// Flow after flow, in order: interleaved streams from the first packet on.
    InTurn,
    /// Any flow, drawn.
    Drawn,
    /// The flow of the departed packet: each flow always has the same number inside.
    SameFlow,
}

/// A constant number of packets inside: each that leaves is replaced at once.
#[derive(Debug)]
pub struct ClosedArrivals {
    flows: Vec<FlowPlan>,
    refill: Refill,
    dice: Dice,
    next: usize,
    waiting: VecDeque<(Nanos, Packet)>,
}

impl ClosedArrivals {
    /// `inside` packets of these flows, from time 0 on; at least one flow.
    pub fn new(flows: Vec<FlowPlan>, inside: usize, refill: Refill, seed: u64) -> Self {
        let mut traffic =
            Self { flows, refill, dice: Dice::named(seed, "traffic"), next: 0, waiting: VecDeque::new() };
        for number in 0..inside {
            // Initially flows take turns, whatever the refill, so that each has its part.
            let flow = number % traffic.flows.len().max(1);
            traffic.add(flow, Nanos::ZERO);
        }
        traffic.next = inside % traffic.flows.len().max(1);
        traffic
    }

    fn add(&mut self, flow: usize, now: Nanos) {
        if let Some(plan) = self.flows.get(flow) {
            let packet = plan.packet(&mut self.dice);
            self.waiting.push_back((now, packet));
        }
    }

    fn refill(&mut self, key: u32, now: Nanos) {
        let count = self.flows.len().max(1);
        let flow = match self.refill {
            Refill::InTurn => {
                let flow = self.next;
                self.next = (flow + 1) % count;
                flow
            }
            Refill::Drawn => self.dice.below(count as u64) as usize,
            Refill::SameFlow => self.flows.iter().position(|flow| flow.key == key).unwrap_or(0),
        };
        self.add(flow, now);
    }
}

impl Traffic for ClosedArrivals {
    fn next_time(&self) -> Option<Nanos> {
        self.waiting.front().map(|(time, _)| *time)
    }

    fn take(&mut self) -> Option<Packet> {
        self.waiting.pop_front().map(|(_, packet)| packet)
    }

    fn departed(&mut self, departure: &Departure) {
        self.refill(departure.packet.key, departure.sent);
    }

    fn dropped(&mut self, packet: Packet, _: DropCause, now: Nanos) {
        self.refill(packet.key, now);
    }
}
