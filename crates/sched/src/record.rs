//! Records of flows and packets, and lists of packets.

use crate::Settings;
use crate::cost::Prices;
use crate::counters::Traffic;
use crate::estimate::Memory;
use crate::table::NONE;

/// Where a packet is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum PacketState {
    #[default]
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

/// Reason why a packet that was with a processor goes to no port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gone {
    Consumed,
    Abandoned,
}

/// A packet, in a cache line of its own.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(64))]
pub(crate) struct Slot {
    pub handle: u32,
    pub bytes: u32,
    pub flow: u32,
    /// The next slot of its list.
    pub next: u32,
    /// Predicted processing cost, from its arrival.
    pub processor: u32,
    /// The scheduler's charge, fixed at its arrival.
    pub cost: u32,
    /// Data of the scheduler.
    pub tag: u32,
    pub state: PacketState,
    /// Arrival time.
    pub arrived: u64,
}

/// Slots in order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct List {
    pub first: u32,
    pub last: u32,
}

impl Default for List {
    fn default() -> Self {
        Self::EMPTY
    }
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

    /// Appends a slot that is already marked as the last.
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

/// A flow's state in a round.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Turn {
    pub credit: i64,
    /// The round of its last credit, or of its end.
    pub round: u64,
    pub active: bool,
    /// Parked until a processor has finished its packets of the flow.
    pub parked: bool,
}

/// More credit than any turn uses, and far below the 64-bit limit.
const MOST_CREDIT: i64 = 1 << 60;

impl Turn {
    /// Starts again at this time. Since the flow ended, each unit of time has paid `each` / 2 to the `shift`
    /// of its debt: an empty queue does not cancel debts. Remaining credit is lost, except for parked flows,
    /// which always had packets.
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

/// A flow with its schedulers' state. With a scheduler of rounds, packets use the first two cache lines, and
/// the first one before processing: with many flows, cache misses dominate a packet's cost. An arriving
/// packet only touches the first line. Schedulers with tags use the third, too.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub(crate) struct Flow {
    /// Before the processors.
    pub waiting: List,
    /// With processors, in order of arrival.
    pub working: List,
    pub key: u32,
    pub waiting_packets: u32,
    /// Of all states.
    pub inside: u32,
    pub weight: u32,
    /// The estimate in ns.
    pub estimate: u32,
    pub port: u16,
    /// Pinned because of an assigned weight or port.
    pub pinned: bool,
    /// Whether its estimate is its own: something was measured, or there is an initial estimate.
    pub is_measured: bool,
    /// In rounds before the processors.
    pub turn: Turn,
    /// Number of its turns, and the latest of them of which a packet has reached the port.
    pub taken_turn: u32,
    pub left_turn: u32,
    pub memory: Memory,
    pub traffic: Traffic,
    /// Remainders of divisions by the weight.
    pub left_over: [u32; 2],
    /// Measured cost beyond the charge, in ns.
    pub owed: i64,
    /// In rounds before the port.
    pub later_turn: Turn,
    /// Its queue before the port, where each flow has its own.
    pub leaving: List,
    /// Start of the head and finish of the previous packet, for each resource, in 2⁻¹⁰ ns of virtual time.
    pub start: [u64; 2],
    pub finish: [u64; 2],
}

impl Flow {
    pub(crate) fn new(key: u32, settings: &Settings, prices: &Prices) -> Self {
        let first = settings.first_estimate.unwrap_or(0);
        Self {
            key,
            weight: 1,
            is_measured: settings.first_estimate.is_some(),
            memory: Memory::new(settings.estimator, first),
            estimate: prices.processing(first),
            ..Self::default()
        }
    }
}

const _: () = assert!(std::mem::offset_of!(Flow, taken_turn) == 64);
const _: () = assert!(std::mem::offset_of!(Flow, later_turn) == 128);
const _: () = assert!(std::mem::offset_of!(Flow, finish) + size_of::<[u64; 2]>() == 192);

impl Flow {
    /// Moves it to another port. Credit or debt in another line is in that line's virtual time, and has no
    /// meaning here.
    #[inline]
    pub(crate) fn move_to(&mut self, port: u16) {
        if port != self.port {
            (self.port, self.turn, self.start, self.finish) = (port, Turn::default(), [0; 2], [0; 2]);
        }
    }

    /// Its state in the round before the processors (stage 0), or before the port.
    #[inline]
    pub(crate) fn turn_of_mut(&mut self, stage: usize) -> &mut Turn {
        if stage == 0 { &mut self.turn } else { &mut self.later_turn }
    }
}
