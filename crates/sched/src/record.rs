//! What is kept of a flow and of a packet, and lists of packets.

use crate::Settings;
use crate::cost::Prices;
use crate::counters::Traffic;
use crate::estimate::Memory;
use crate::table::NONE;

/// Where a packet is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Free,
    /// In its flow's queue before the processors.
    Waiting,
    /// Its handle became invalid while it waited.
    Revoked,
    /// With a processor.
    Working,
    /// Processed, but not its predecessors.
    Held,
    /// Given up.
    Gone,
    /// On its way to the port.
    Ready,
}

/// Why a packet that was with a processor goes to no port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gone {
    Consumed,
    Abandoned,
}

/// A packet, in a cache line of its own.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Slot {
    pub handle: u32,
    pub bytes: u32,
    pub flow: u32,
    /// The next one of the list it is in.
    pub next: u32,
    /// What processing it costs, as predicted when it arrived.
    pub processor: u32,
    /// What its scheduler charges for it, frozen when it arrived.
    pub cost: u32,
    /// What its scheduler notes about it.
    pub tag: u32,
    pub state: State,
    /// When it arrived.
    pub arrived: u64,
}

impl Slot {
    /// Without a packet.
    pub(crate) const FREE: Self = Self {
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
}

/// Slots in order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct List {
    pub first: u32,
    pub last: u32,
}

impl List {
    pub(crate) const EMPTY: Self = Self { first: NONE, last: NONE };

    #[inline]
    pub(crate) fn first(&self) -> Option<u32> {
        (self.first != NONE).then_some(self.first)
    }

    #[inline]
    pub(crate) fn push(&mut self, slots: &mut [Slot], slot: u32) {
        slots[slot as usize].next = NONE;
        self.append(slots, slot);
    }

    /// The same for a slot that says itself that it is the last.
    #[inline]
    pub(crate) fn append(&mut self, slots: &mut [Slot], slot: u32) {
        if self.first == NONE {
            self.first = slot;
        } else {
            slots[self.last as usize].next = slot;
        }
        self.last = slot;
    }

    #[inline]
    pub(crate) fn pop(&mut self, slots: &[Slot]) -> Option<u32> {
        let first = self.first()?;
        self.first = slots[first as usize].next;
        Some(first)
    }
}

/// A flow's place in a round.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Turn {
    pub credit: i64,
    /// The round of its last credit, or in which it ended.
    pub round: u64,
    pub active: bool,
    /// It was left out until a processor is done with what it has of the flow.
    pub parked: bool,
}

/// More credit than any turn uses, and far from what 64 bits hold.
const MOST_CREDIT: i64 = 1 << 60;

impl Turn {
    const NEW: Self = Self { credit: 0, round: 0, active: false, parked: false };

    /// It begins anew at this time. Since it ended, each unit of time has paid `each` / 2 to the `shift` of
    /// what it owes: running empty forgives nothing. What credit is left then is lost, but to those who were
    /// parked: they wanted something all the time.
    #[inline]
    pub(crate) fn begin_anew(&mut self, time: u64, each: i64, shift: u32) {
        if self.credit < 0 || self.parked {
            let passed = time.saturating_sub(self.round).min(i64::MAX as u64) as i64;
            let paid = passed.saturating_mul(each) >> shift;
            self.credit = self.credit.saturating_add(paid).min(MOST_CREDIT);
        }
        if !std::mem::take(&mut self.parked) {
            self.credit = self.credit.min(0);
        }
    }
}

/// A flow. What schedulers keep of it is here. What every packet needs with a scheduler of rounds lies in the
/// first two cache lines, in the first what is needed before it is processed: with many flows the lines that
/// are not in the cache are what a packet costs. A packet that comes in touches the first only. Schedulers by
/// tags need the third, too.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct Flow {
    /// Before the processors.
    pub waiting: List,
    /// With processors, in the order of their arrival.
    pub working: List,
    pub key: u32,
    pub waiting_packets: u32,
    /// Of all states.
    pub inside: u32,
    pub weight: u32,
    /// The estimate in ns.
    pub estimate: u32,
    pub port: u16,
    /// It was given a weight or a port, and keeps its place.
    pub pinned: bool,
    /// Its estimate is its own: something was measured, or there is a first estimate.
    pub is_measured: bool,
    /// In rounds before the processors.
    pub turn: Turn,
    /// How many turns it was served in, and the latest of them of which a packet has reached the port.
    pub taken_turn: u32,
    pub left_turn: u32,
    pub memory: Memory,
    pub traffic: Traffic,
    /// What divisions by the weight left over.
    pub left_over: [u32; 2],
    /// What was measured beyond what was charged, in ns.
    pub owed: i64,
    /// In rounds before the port.
    pub later_turn: Turn,
    /// Before the port, where each flow has its own queue there.
    pub leaving: List,
    /// Start of the head and finish of the packet before, for each resource, in 2⁻¹⁰ ns of virtual time.
    pub start: [u64; 2],
    pub finish: [u64; 2],
}

impl Flow {
    pub(crate) fn new(key: u32, settings: &Settings, prices: &Prices) -> Self {
        let first = settings.first_estimate.unwrap_or(0);
        Self {
            key,
            weight: 1,
            waiting: List::EMPTY,
            waiting_packets: 0,
            inside: 0,
            working: List::EMPTY,
            leaving: List::EMPTY,
            turn: Turn::NEW,
            later_turn: Turn::NEW,
            traffic: Traffic::default(),
            start: [0; 2],
            finish: [0; 2],
            left_over: [0; 2],
            owed: 0,
            taken_turn: 0,
            left_turn: 0,
            port: 0,
            pinned: false,
            is_measured: settings.first_estimate.is_some(),
            memory: Memory::new(settings.estimator, first),
            estimate: prices.processing(first),
        }
    }
}

const _: () = assert!(std::mem::offset_of!(Flow, taken_turn) == 64);
const _: () = assert!(std::mem::offset_of!(Flow, later_turn) == 128);
const _: () = assert!(std::mem::offset_of!(Flow, finish) + size_of::<[u64; 2]>() == 192);

impl Flow {
    /// It goes to this port. What it had or owes in the line of another is told in that one's virtual time,
    /// and means nothing here.
    #[inline]
    pub(crate) fn move_to(&mut self, port: u16) {
        if port != self.port {
            (self.port, self.turn, self.start, self.finish) = (port, Turn::NEW, [0; 2], [0; 2]);
        }
    }

    /// Its turn before the processors (stage 0), or before the port.
    #[inline]
    pub(crate) fn turn_of_mut(&mut self, stage: usize) -> &mut Turn {
        if stage == 0 { &mut self.turn } else { &mut self.later_turn }
    }
}
