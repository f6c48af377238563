//! Counters of each flow and of all, and why packets are not taken.

use thiserror::Error;

/// Packets and bytes of a flow, or of all. At any time `in_packets = out_packets + consumed + abandoned +
/// revoked + those inside`; refused packets are not in `in_packets`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Accepted.
    pub in_packets: u64,
    /// Handed to a port.
    pub out_packets: u64,
    /// Their bytes.
    pub out_bytes: u64,
    /// Refused: the flow's queue, the flow table or the room for packets was full.
    pub refused: u64,
    /// Consumed during processing: dropped by their program, or addressed to the router itself.
    pub consumed: u64,
    /// Abandoned during processing: the program exceeded its budget.
    pub abandoned: u64,
    /// Discarded because of an invalid handle when their turn came.
    pub revoked: u64,
    /// Cycles measured, each packet's at most its budget.
    pub cycles: u64,
}

/// What every packet counts.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Traffic {
    pub out_packets: u64,
    pub out_bytes: u64,
    pub cycles: u64,
}

/// What few packets count.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Rare {
    pub refused: u64,
    pub consumed: u64,
    pub abandoned: u64,
    pub revoked: u64,
}

impl Counters {
    /// Combines both with the number of packets inside. Arrivals are the sum of all outcomes, so that no
    /// counter of an uncached flow is written on arrival.
    pub(crate) fn of(traffic: &Traffic, rare: &Rare, inside: u32) -> Self {
        let Traffic { out_packets, out_bytes, cycles } = *traffic;
        let Rare { refused, consumed, abandoned, revoked } = *rare;
        let in_packets = out_packets + consumed + abandoned + revoked + u64::from(inside);
        Self { in_packets, out_packets, out_bytes, refused, consumed, abandoned, revoked, cycles }
    }

    /// Adds those of another flow.
    pub(crate) fn add(&mut self, other: &Self) {
        self.in_packets += other.in_packets;
        self.out_packets += other.out_packets;
        self.out_bytes += other.out_bytes;
        self.refused += other.refused;
        self.consumed += other.consumed;
        self.abandoned += other.abandoned;
        self.revoked += other.revoked;
        self.cycles += other.cycles;
    }
}

/// Events that belong to no flow, or should be rare.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RareCounters {
    /// Packets refused because their flow's queue was full.
    pub queue_full: u64,
    /// Packets refused because all known flows were busy, or had assigned weights or ports.
    pub table_full: u64,
    /// Packets refused because their flow had used its share of the packet memory, or none was left.
    pub no_room: u64,
    /// Messages without a valid handle.
    pub invalid: u64,
    /// Idle flows evicted for new ones.
    pub recycled: u64,
    /// Measurements above the budget, which were treated as the budget.
    pub exploded: u64,
    /// Packets with a cost above their flow's credit of a round.
    pub beyond_quantum: u64,
}

/// Reason why a packet was not accepted. It is counted; the caller keeps the packet, and drops it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Refusal {
    /// Its flow's queue is full.
    #[error("the flow's queue is full")]
    QueueFull,
    /// The flow table is full, and no flow is idle.
    #[error("the flow table is full")]
    TableFull,
    /// Its flow has used its share of the packet memory, or none is left.
    #[error("there is no room for more packets of the flow")]
    NoRoom,
    /// The message has no valid handle.
    #[error("the handle is invalid")]
    Invalid,
}
