//! The limit of the queue, from losses at a full queue.
//!
//! With a known rate the backlog that each packet met is known. A queue with a limit of K accepts up to K and
//! loses what would be more: no accepted packet brings the backlog above K, and each packet that was lost at
//! a full queue would have. The limit counts packets or bytes, whichever separates more losses.

use crate::estimate::Estimate;
use crate::pairing::Packet;
use crate::service::{Transmitter, served};
use crate::statistics::{Level, wilson};
use std::collections::VecDeque;

/// Fewest losses above everything that was accepted, to speak of a full queue.
const FEWEST: u64 = 3;
/// Largest probability that losses for another reason have been so many there.
const BY_CHANCE: f64 = 0.001;

/// What a queue limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueUnit {
    /// Packets, the one being sent included.
    Packets,
    /// Bytes, as the rate counts them.
    Bytes,
}

/// What is known of the queue's limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum QueueFinding {
    /// Packets were lost at a full queue.
    Full {
        /// The limit. Its interval is certain, if the rate's is.
        limit: Estimate,
        /// What it counts.
        unit: QueueUnit,
        /// Packets lost there.
        lost: u64,
        /// Whether the other unit explains as many losses.
        is_either: bool,
    },
    /// It was never full: it holds at least this many packets, the one being sent included.
    AtLeast(u64),
}

/// The backlog that a packet would have made, itself included, in each unit: at least, and at most.
#[derive(Debug, Clone, Copy, Default)]
struct Demand {
    packets: [f64; 2],
    bytes: [f64; 2],
}

/// Finds the limit, and which packets met a queue that may have been full: their fates say nothing about
/// other losses.
pub fn queue(packets: &[Packet], transmitter: Transmitter, level: Level) -> (QueueFinding, Vec<bool>) {
    let demands = demands(packets, transmitter);
    let in_packets: Vec<[f64; 2]> = demands.iter().map(|demand| demand.packets).collect();
    let in_bytes: Vec<[f64; 2]> = demands.iter().map(|demand| demand.bytes).collect();
    let by = [(QueueUnit::Packets, in_packets), (QueueUnit::Bytes, in_bytes)];
    let found = by.map(|(unit, demands)| (unit, above(packets, &demands), demands));
    let is_either = found[0].1.lost == found[1].1.lost;
    let best = if found[1].1.lost > found[0].1.lost { 1 } else { 0 };
    let (unit, above, demands) = &found[best];
    if !above.is_full(packets, level) {
        let most = found[0].1.accepted.max(1.0) as u64;
        return (QueueFinding::AtLeast(most), vec![false; packets.len()]);
    }
    let high = (above.least_lost - 1.0).max(above.accepted);
    let limit = Estimate { value: above.accepted, low: above.accepted, high, samples: above.lost };
    let may_be_full = demands.iter().map(|demand| demand[1] > above.accepted).collect();
    (QueueFinding::Full { limit, unit: *unit, lost: above.lost, is_either }, may_be_full)
}

/// Losses above everything that was accepted.
#[derive(Debug, Clone, Copy)]
struct Above {
    /// The largest backlog that an accepted packet certainly made.
    accepted: f64,
    /// Losses with more.
    lost: u64,
    /// The least backlog of them.
    least_lost: f64,
}

fn above(packets: &[Packet], demands: &[[f64; 2]]) -> Above {
    let all = || packets.iter().zip(demands);
    let accepted = all()
        .filter(|(packet, _)| packet.delay_ns.is_some())
        .map(|(_, demand)| demand[0])
        .fold(0.0, f64::max);
    let lost = all().filter(|(packet, demand)| packet.delay_ns.is_none() && demand[1] > accepted);
    let (count, least) =
        lost.fold((0, f64::INFINITY), |(count, least), (_, demand)| (count + 1, demand[1].min(least)));
    Above { accepted, lost: count, least_lost: least }
}

impl Above {
    /// Whether these losses are more than other losses would be, at as many packets.
    fn is_full(&self, packets: &[Packet], level: Level) -> bool {
        let lost = packets.iter().filter(|packet| packet.delay_ns.is_none()).count() as u64;
        let others = (packets.len() as u64 - self.lost) as f64;
        let (_, usual) = wilson((lost - self.lost) as f64, others, level);
        self.lost >= FEWEST && usual.powf(self.lost as f64) < BY_CHANCE
    }
}

/// The backlog that each packet would make. Ends of transmission are known up to a slack, so that near one of
/// them a packet may count or not.
fn demands(packets: &[Packet], transmitter: Transmitter) -> Vec<Demand> {
    let mut services = served(packets, transmitter.ns_per_bit).peekable();
    // Accepted packets that may still count, and those that certainly do: their ends, and their bytes.
    let (mut perhaps, mut surely) = (Backlog::default(), Backlog::default());
    let demand = |(index, packet): (usize, &Packet)| {
        perhaps.leave(packet.sent_ns);
        surely.leave(packet.sent_ns);
        let own = packet.bits / 8.0;
        let demand = Demand {
            packets: [surely.ends.len() as f64 + 1.0, perhaps.ends.len() as f64 + 1.0],
            bytes: [surely.bytes + own, perhaps.bytes + own],
        };
        if let Some(service) = services.next_if(|service| service.index == index) {
            let slack = transmitter.slack_ns(&service);
            perhaps.join(service.finish_ns + slack, own);
            surely.join(service.finish_ns - slack, own);
        }
        demand
    };
    packets.iter().enumerate().map(demand).collect()
}

/// Packets that have not been sent.
#[derive(Debug, Default)]
struct Backlog {
    ends: VecDeque<(f64, f64)>,
    bytes: f64,
}

impl Backlog {
    fn join(&mut self, end_ns: f64, bytes: f64) {
        self.ends.push_back((end_ns, bytes));
        self.bytes += bytes;
    }

    fn leave(&mut self, now_ns: f64) {
        while let Some(&(end, bytes)) = self.ends.front()
            && end <= now_ns
        {
            self.ends.pop_front();
            self.bytes -= bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRANSMITTER: Transmitter = Transmitter { ns_per_bit: 100.0, error: 0.0, resolution_ns: 1.0 };

    /// Packets through a queue with a limit, of which each `lost`-th is lost before it. Their lengths in
    /// bytes alternate.
    fn packets(limit: f64, unit: QueueUnit, sizes: [f64; 2], lost: usize) -> Vec<Packet> {
        let mut packets: Vec<Packet> = Vec::new();
        let mut backlog = Backlog::default();
        let mut free = 0.0f64;
        for n in 0..4000 {
            // Bursts of 40 packets, in 4 ms of 10 ms.
            let sent_ns = (n / 40) as f64 * 1e7 + (n % 40) as f64 * 100_003.0;
            let bytes = sizes[n % 2];
            backlog.leave(sent_ns);
            let (count, total) = (backlog.ends.len() as f64 + 1.0, backlog.bytes + bytes);
            let fits = if unit == QueueUnit::Packets { count <= limit } else { total <= limit };
            let mut packet = Packet { sent_ns, bits: bytes * 8.0, delay_ns: None, copy_ns: None };
            if fits && n % lost != lost - 1 {
                free = free.max(sent_ns) + packet.bits * 100.0;
                backlog.join(free, bytes);
                packet.delay_ns = Some(free - sent_ns);
            }
            packets.push(packet);
        }
        packets
    }

    #[test]
    fn a_full_queue_shows_its_limit() {
        for (limit, unit, sizes, lost) in [
            (10.0, QueueUnit::Packets, [500.0, 500.0], usize::MAX),
            (10.0, QueueUnit::Packets, [200.0, 900.0], usize::MAX),
            (10.0, QueueUnit::Packets, [500.0, 500.0], 29),
            (7000.0, QueueUnit::Bytes, [200.0, 900.0], usize::MAX),
            (7000.0, QueueUnit::Bytes, [200.0, 900.0], 29),
        ] {
            let all = packets(limit, unit, sizes, lost);
            let (found, may_be_full) = queue(&all, TRANSMITTER, Level::DEFAULT);
            let QueueFinding::Full { limit: found, unit: of, is_either, .. } = found else {
                panic!("{found:?}")
            };
            assert!(of == unit && found.contains(limit), "{found:?} {limit} {unit:?}");
            assert_eq!(is_either, sizes[0] == sizes[1]);
            let others =
                all.iter().zip(&may_be_full).filter(|(packet, full)| packet.delay_ns.is_none() && !**full);
            assert_eq!(others.count() > 0, lost < 100);
        }
    }

    #[test]
    fn other_losses_are_no_full_queue() {
        let all = packets(1e9, QueueUnit::Packets, [500.0, 500.0], 29);
        let (found, may_be_full) = queue(&all, TRANSMITTER, Level::DEFAULT);
        // Of 4000 packets 137 are lost; in the 993.9 ms until the last one arrives, 2484 are sent.
        assert!(matches!(found, QueueFinding::AtLeast(1379)), "{found:?}");
        assert!(!may_be_full.contains(&true));
    }
}
