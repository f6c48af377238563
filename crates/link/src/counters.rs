//! What a link counts.

use crate::background::Background;
use crate::front::Front;
use crate::line::Heaps;
use crate::link::Link;
use crate::medium::Seat;
use longwire_block::{DropCounts, DropReason};
use longwire_units::Nanos;
use serde::Serialize;

/// What few links have.
#[derive(Debug, Default)]
pub(crate) struct Rare {
    pub drops: DropCounts,
    /// The most a packet was late, if the link's record has no room for it.
    pub max_late: Nanos,
    /// Made at the start for links that ask for it.
    pub histogram: Option<Box<Histogram>>,
    /// Packets marked as having met congestion, by the queue or before it.
    pub marked: u64,
    /// Copies made, and background packets.
    pub made: u64,
    /// Background packets that were sent.
    pub consumed: u64,
    /// Packets sent to another link.
    pub steered: u64,
    /// Packets of which bits were flipped.
    pub corrupted: u64,
    /// What the delay line needs for packets that overtake.
    pub heaps: Heaps,
    /// When the queue, which has packets, will have one for the transmitter.
    pub resume: Nanos,
    /// The packet being sent, where it has left the queue.
    pub taken: Taken,
    /// Background packets in the queue.
    pub phantoms: u32,
    /// Where background packets come from.
    pub background: Option<Background>,
    /// The delay before the queue.
    pub front: Option<Box<Front>>,
    /// Its place at a shared medium.
    pub seat: Option<Seat>,
}

/// A packet that opportunities have taken a part of: it waits no longer, and is not sent yet.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Taken {
    /// One, or none.
    pub packets: u32,
    /// The bytes it counts.
    pub bytes: u64,
}

/// What a link has done so far. in + made = out + dropped + consumed + steered + queued + travelling.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct LinkStats {
    /// Packets that came to the link.
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
    /// Packets of which bits were flipped.
    pub corrupted_packets: u64,
    /// How often it has sent in vain on a shared medium, because another sent too.
    pub collisions: u64,
    /// Packets dropped, by reason, where any were.
    pub drops: Vec<(&'static str, u64)>,
    /// Packets in the queue, the one being sent included.
    pub queued_packets: u64,
    /// Their bytes, as the link's rate counts them.
    pub queued_bytes: u64,
    /// Packets in the delay line, and in the one before the queue.
    pub travelling_packets: u64,
    /// Packets that left later than the run calls faithful.
    pub late_packets: u64,
    /// The most a packet was late.
    #[serde(rename = "max_late_ns", serialize_with = "Nanos::as_integer")]
    pub max_late: Nanos,
}

impl Link {
    /// Notes that a packet was later than all before: that seldom happens.
    #[cold]
    #[inline(never)]
    pub(crate) fn raise_max_late(&mut self, late: Nanos) {
        self.max_late = u32::try_from(late.0).unwrap_or(u32::MAX);
        if self.max_late == u32::MAX {
            let max_late = &mut self.rare().max_late;
            *max_late = late.max(*max_late);
        }
    }

    /// What it has done so far, but for what its medium counts, and how many packets were late.
    pub(crate) fn stats(&self) -> LinkStats {
        let rare = self.known_rare();
        let dropped = |reason: DropReason| rare.map_or(0, |rare| rare.drops[reason as usize]);
        let drops = DropReason::ALL.iter().map(|&reason| (reason.name(), dropped(reason)));
        let rarely = |of: fn(&Rare) -> u64| rare.map_or(0, of);
        let taken = rare.map_or(Taken::default(), |rare| rare.taken);
        // On a decided link, what waits lies on the line.
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
            max_late: rare.map_or(Nanos::ZERO, |rare| rare.max_late).max(Nanos(self.max_late.into())),
        }
    }
}

impl LinkStats {
    /// Packets dropped for any reason.
    pub fn dropped(&self) -> u64 {
        self.drops.iter().map(|(_, packets)| packets).sum()
    }

    /// Whether every packet that came is accounted for.
    pub fn is_conserved(&self) -> bool {
        let gone = self.out_packets + self.dropped() + self.consumed_packets + self.steered_packets;
        self.in_packets + self.made_packets == gone + self.queued_packets + self.travelling_packets
    }
}

/// Counts of times in buckets that are an eighth of their value wide or less: exact up to 15 ns, up to 584 years.
#[derive(Debug, Clone)]
pub struct Histogram {
    counts: Box<[u64; BUCKETS]>,
    max: u64,
}

const SUB_BITS: u32 = 3;
const BUCKETS: usize = (64 - SUB_BITS as usize + 1) << SUB_BITS;

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: Box::new([0; BUCKETS]), max: 0 }
    }
}

impl Histogram {
    /// What one takes.
    pub const BYTES: usize = size_of::<Self>() + size_of::<[u64; BUCKETS]>();

    /// Counts a time.
    #[inline]
    pub fn record(&mut self, time: Nanos) {
        self.record_all(time, 1);
    }

    /// Counts a time that so many have taken: one at least.
    #[inline]
    pub fn record_all(&mut self, time: Nanos, count: u64) {
        self.counts[bucket(time.0)] += count;
        if time.0 > self.max {
            self.raise(time.0);
        }
    }

    /// Notes a time that is longer than all before: that seldom happens.
    #[cold]
    #[inline(never)]
    fn raise(&mut self, max: u64) {
        self.max = max;
    }

    /// How many times were counted.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The largest.
    pub fn max(&self) -> Nanos {
        Nanos(self.max)
    }

    /// The time that `share` (0 to 1) of all are at or below: the upper edge of its bucket.
    pub fn quantile(&self, share: f64) -> Nanos {
        let total = self.total();
        let wanted = ((total as f64 * share).ceil() as u64).clamp(1, total.max(1));
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return Nanos(upper_edge(index).min(self.max));
            }
        }
        Nanos(self.max)
    }

    /// How many are above `limit`; those in the limit's own bucket count as not above.
    pub fn above(&self, limit: Nanos) -> u64 {
        self.counts[bucket(limit.0) + 1..].iter().sum()
    }

    /// Adds another's counts.
    pub fn merge(&mut self, other: &Self) {
        self.counts.iter_mut().zip(other.counts.iter()).for_each(|(mine, theirs)| *mine += theirs);
        self.max = self.max.max(other.max);
    }
}

#[inline]
fn bucket(value: u64) -> usize {
    if value < 1 << SUB_BITS {
        return value as usize;
    }
    let top = 63 - value.leading_zeros();
    let sub = (value >> (top - SUB_BITS)) as usize & ((1 << SUB_BITS) - 1);
    ((top - SUB_BITS + 1) as usize) << SUB_BITS | sub
}

/// The largest value in the bucket.
fn upper_edge(index: usize) -> u64 {
    if index < 1 << SUB_BITS {
        return index as u64;
    }
    let shift = (index >> SUB_BITS) as u32 - 1;
    let sub = (index & ((1 << SUB_BITS) - 1)) as u64 + (1 << SUB_BITS);
    ((u128::from(sub) + 1) << shift).saturating_sub(1).min(u64::MAX.into()) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_narrow_and_in_order() {
        let mut last = 0;
        for shift in 0..64u32 {
            for near in [0u64, 1, 2] {
                let value = (1u64 << shift).saturating_add(near << shift.saturating_sub(2));
                let index = bucket(value);
                assert!(index >= last || value < 8, "{value}");
                assert!(
                    upper_edge(index) >= value && upper_edge(index) <= value.saturating_add(value / 8),
                    "{value}"
                );
                last = last.max(index);
            }
        }
        assert!(bucket(u64::MAX) < BUCKETS);
    }

    #[test]
    fn quantiles() {
        let mut histogram = Histogram::default();
        (1..=1000).for_each(|n| histogram.record(Nanos(n * 1000)));
        let p50 = histogram.quantile(0.5).0;
        assert!((500_000..=562_500).contains(&p50), "{p50}");
        assert_eq!(histogram.quantile(1.0), Nanos(1_000_000));
        assert_eq!(histogram.max(), Nanos(1_000_000));
        assert_eq!(Histogram::default().quantile(0.99), Nanos::ZERO);
        let above = histogram.above(Nanos(900_000));
        assert!((20..=100).contains(&above), "{above}");
    }
}
