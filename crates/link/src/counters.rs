//! Counters of a link.

use crate::link::Link;
use crate::rare::{PartlyTaken, Rare};
use longwire_block::DropReason;
use longwire_units::Nanos;
use serde::Serialize;

/// Counters of a link. in + made = out + dropped + consumed + steered + queued + travelling.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct LinkStats {
    /// Packets that arrived at the link.
    pub in_packets: u64,
    /// Bytes of their frames.
    pub in_bytes: u64,
    /// Packets that left it.
    pub out_packets: u64,
    /// Bytes of their frames.
    pub out_bytes: u64,
    /// Packets made here: copies and background traffic.
    pub made_packets: u64,
    /// Background packets that were sent: they end at the end of the wire.
    pub consumed_packets: u64,
    /// Packets that a filter sent to another link.
    pub steered_packets: u64,
    /// Packets marked as having met congestion (RFC 3168).
    pub marked_packets: u64,
    /// Packets with flipped bits.
    pub corrupted_packets: u64,
    /// Failed transmissions on a shared medium, because another station sent too.
    pub collisions: u64,
    /// Dropped packets by reason; only reasons with a count.
    pub drops: Vec<(&'static str, u64)>,
    /// Packets in the queue, the one being sent included.
    pub queued_packets: u64,
    /// Their bytes, as counted by the link's rate.
    pub queued_bytes: u64,
    /// Packets in the delay line, and in the one before the queue.
    pub travelling_packets: u64,
    /// Packets that left later than tolerated.
    pub late_packets: u64,
    /// The highest lateness of a packet.
    #[serde(rename = "max_late_ns", serialize_with = "Nanos::as_integer")]
    pub max_late: Nanos,
}

impl Link {
    /// Records a new highest lateness, which is rare, or any for a histogram.
    #[cold]
    #[inline(never)]
    pub(crate) fn note_lateness(&mut self, late: Nanos) {
        let keeps_histogram = self.known_rare().is_some_and(|rare| rare.histogram.is_some());
        if !keeps_histogram {
            self.notable = u32::try_from(late.0.saturating_add(1)).unwrap_or(u32::MAX);
        }
        if keeps_histogram || self.notable == u32::MAX {
            let rare = self.rare();
            rare.max_late = late.max(rare.max_late);
            if let Some(histogram) = &mut rare.histogram {
                histogram.record(late);
            }
        }
    }

    /// Counters so far, without those of its medium and of lateness.
    pub(crate) fn stats(&self) -> LinkStats {
        let rare = self.known_rare();
        let dropped = |reason: DropReason| rare.map_or(0, |rare| rare.drops[reason as usize]);
        let drops = DropReason::ALL.iter().map(|&reason| (reason.name(), dropped(reason)));
        let rarely = |of: fn(&Rare) -> u64| rare.map_or(0, of);
        let taken = rare.map_or(PartlyTaken::default(), |rare| rare.taken);
        // On a decided link, waiting packets are on the line.
        let waiting_on_line = if self.is_decided() { self.waiting.packets } else { 0 };
        LinkStats {
            in_packets: self.in_packets,
            in_bytes: self.in_bytes,
            out_packets: self.out_packets,
            out_bytes: self.out_bytes,
            made_packets: rarely(|rare| rare.made),
            consumed_packets: rarely(|rare| rare.consumed),
            steered_packets: rarely(|rare| rare.steered),
            marked_packets: rarely(|rare| rare.marked),
            corrupted_packets: rarely(|rare| rare.corrupted),
            collisions: 0,
            drops: drops.filter(|(_, packets)| *packets > 0).collect(),
            queued_packets: u64::from(self.waiting.packets) + u64::from(taken.packets),
            queued_bytes: self.waiting.bytes + taken.bytes,
            travelling_packets: u64::from(self.line.packets() - waiting_on_line)
                + u64::from(self.packets_in_front()),
            late_packets: 0,
            max_late: rare
                .map_or(Nanos::ZERO, |rare| rare.max_late)
                .max(Nanos(self.notable.saturating_sub(1).into())),
        }
    }
}

impl LinkStats {
    /// Packets dropped for any reason.
    pub fn dropped(&self) -> u64 {
        self.drops.iter().map(|(_, packets)| packets).sum()
    }

    /// Whether every packet is accounted for.
    pub fn is_conserved(&self) -> bool {
        let gone = self.out_packets + self.dropped() + self.consumed_packets + self.steered_packets;
        self.in_packets + self.made_packets == gone + self.queued_packets + self.travelling_packets
    }
}
