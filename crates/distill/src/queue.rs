//! The limit of the queue, from losses at a full queue.
//!
//! With a known rate the backlog that each packet met is known, up to the error of the rate and the noise of
//! times of sending. A queue with a limit of K accepts up to K and loses what would be more: no accepted
//! packet brings the backlog above K, and each packet that was lost at a full queue would have. The limit
//! counts packets or bytes, whichever separates losses better.

use crate::estimate::Estimate;
use crate::pairing::Packet;
use crate::service::{Transmitter, served};
use crate::statistics::{Level, binomial_tail, wilson};
use std::collections::VecDeque;

/// Fewest losses above everything that was certainly accepted, to speak of a full queue.
const FEWEST: usize = 3;
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
        /// The limit. Its interval is certain, if the rate's is and other losses are few.
        limit: Estimate,
        /// What it counts.
        unit: QueueUnit,
        /// Packets lost there.
        lost: u64,
        /// Whether the other unit explains as many losses.
        is_either: bool,
    },
    /// It was never evidently full: it holds at least this many packets, the one being sent included.
    AtLeast(u64),
}

/// What is known of the times at the queue.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QueueTimes {
    /// The rate at which it is emptied.
    pub transmitter: Transmitter,
    /// By how much packets may have come later than their times of sending say, in ns.
    pub noise_ns: f64,
}

/// The backlog that a packet would have made, itself included, in each unit: at least, and at most.
#[derive(Debug, Clone, Copy, Default)]
struct Demand {
    packets: [f64; 2],
    bytes: [f64; 2],
}

/// Finds the limit, and which packets met a queue that may have been full: their fates say nothing about
/// other losses.
pub fn queue(packets: &[Packet], times: &QueueTimes, level: Level) -> (QueueFinding, Vec<bool>) {
    let demands = demands(packets, times);
    let in_packets: Vec<[f64; 2]> = demands.iter().map(|demand| demand.packets).collect();
    let in_bytes: Vec<[f64; 2]> = demands.iter().map(|demand| demand.bytes).collect();
    let by = [(QueueUnit::Packets, in_packets), (QueueUnit::Bytes, in_bytes)];
    let found = by.map(|(unit, demands)| (unit, Above::of(packets, &demands), demands));
    let is_either = found[0].1.excess() == found[1].1.excess();
    let best = if found[1].1.excess() > found[0].1.excess() { 1 } else { 0 };
    let (unit, above, demands) = &found[best];
    let Some(high) = above.most(packets, level) else {
        let most = found[0].1.accepted.max(1.0) as u64;
        return (QueueFinding::AtLeast(most), vec![false; packets.len()]);
    };
    let lost = above.lost() as u64;
    let limit = Estimate { value: above.accepted, low: above.accepted, high, samples: lost };
    let may_be_full = demands.iter().map(|demand| demand[1] > above.accepted).collect();
    (QueueFinding::Full { limit, unit: *unit, lost, is_either }, may_be_full)
}

/// Packets that may have met more than everything that was certainly accepted.
#[derive(Debug, Clone)]
struct Above {
    /// The largest backlog that an accepted packet certainly made.
    accepted: f64,
    /// The backlogs that the packets may have made, ascending, and whether they were lost.
    packets: Vec<(f64, bool)>,
}

impl Above {
    fn of(packets: &[Packet], demands: &[[f64; 2]]) -> Self {
        let all = || packets.iter().zip(demands);
        let is_lost = |packet: &Packet| packet.delay_ns.is_none();
        let accepted = all().filter(|(packet, _)| !is_lost(packet)).map(|(_, demand)| demand[0]);
        let accepted = accepted.fold(0.0, f64::max);
        let above = all().filter(|(_, demand)| demand[1] > accepted);
        let mut above: Vec<_> = above.map(|(packet, demand)| (demand[1], is_lost(packet))).collect();
        above.sort_by(|a, b| a.0.total_cmp(&b.0));
        Self { accepted, packets: above }
    }

    fn lost(&self) -> usize {
        self.packets.iter().filter(|(_, is_lost)| *is_lost).count()
    }

    /// By how many the lost are more than the accepted.
    fn excess(&self) -> i64 {
        2 * self.lost() as i64 - self.packets.len() as i64
    }

    /// The largest limit that explains these losses: with a larger one, packets that met less than it would
    /// be lost for other reasons more often than others are. None if they need no limit.
    fn most(&self, packets: &[Packet], level: Level) -> Option<f64> {
        let lost = packets.iter().filter(|packet| packet.delay_ns.is_none()).count();
        let others = (packets.len() - self.packets.len()) as f64;
        let (_, usual) = wilson((lost - self.lost()) as f64, others, level);
        let is_by_chance = |count, lost| binomial_tail(count, lost, usual) >= BY_CHANCE;
        if self.lost() < FEWEST || is_by_chance(self.packets.len(), self.lost()) {
            return None;
        }
        let (mut most, mut count, mut lost) = (self.accepted, 0, 0);
        for same in self.packets.chunk_by(|a, b| a.0 == b.0) {
            most = most.max(same[0].0 - 1.0);
            count += same.len();
            lost += same.iter().filter(|(_, is_lost)| *is_lost).count();
            // With a limit as large as this, these would have met less.
            if !is_by_chance(count, lost) {
                break;
            }
        }
        Some(most)
    }
}

/// The backlog that each packet would make. Ends of transmission are known up to a slack, so that near one of
/// them a packet may count or not.
fn demands(packets: &[Packet], times: &QueueTimes) -> Vec<Demand> {
    let QueueTimes { transmitter, noise_ns } = times;
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
            let slack = transmitter.slack_ns(&service) + noise_ns;
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
    use crate::delay::noise_ns as noise_ns_of;
    use crate::pairing::{Counts, Paired};
    use longwire_block::Dice;

    const TRANSMITTER: Transmitter = Transmitter { ns_per_bit: 100.0, error: 0.0, resolution_ns: 1.0 };
    const TIMES: QueueTimes = QueueTimes { transmitter: TRANSMITTER, noise_ns: 0.0 };

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
            let (found, may_be_full) = queue(&all, &TIMES, Level::DEFAULT);
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
        let (found, may_be_full) = queue(&all, &TIMES, Level::DEFAULT);
        // Of 4000 packets 137 are lost; in the 993.9 ms until the last one arrives, 2484 are sent.
        assert!(matches!(found, QueueFinding::AtLeast(1379)), "{found:?}");
        assert!(!may_be_full.contains(&true));
    }

    /// Packets of 1000 bits through a queue of `limit` packets with other losses of `loss`, on a busy
    /// machine: times of sending are too early, and arrivals late, by up to `noise_ns`, mostly by far less.
    fn noisy(seed: u64, limit: usize, loss: f64, noise_ns: f64) -> Paired {
        let mut dice = Dice::named(seed, "noise");
        let mut share = move || dice.draw() as f64 / 2f64.powi(64);
        let late = |share: f64| noise_ns * share.powi(12);
        let (mut packets, mut ends, mut free, mut reached) = (Vec::new(), VecDeque::new(), 0.0f64, 0.0f64);
        for n in 0..2000 {
            // Bursts of 40 packets, in 2.4 ms of 10 ms.
            let sent_ns = reached.max(f64::from(n / 40) * 1e7 + f64::from(n % 40) * 60_000.0);
            reached = sent_ns + late(share());
            while ends.front().is_some_and(|end| *end <= reached) {
                ends.pop_front();
            }
            let mut packet = Packet { sent_ns, bits: 1000.0, delay_ns: None, copy_ns: None };
            if ends.len() < limit && share() >= loss {
                free = free.max(reached) + 100_000.0;
                ends.push_back(free);
                packet.delay_ns = Some(free + 5e6 + late(share()) - sent_ns);
            }
            packets.push(packet);
        }
        Paired { packets, resolution_ns: 1.0, counts: Counts::default() }
    }

    /// Of 100 measurements each: how often a full queue was found, and how often the limit is not in the
    /// interval, or below what the queue certainly holds.
    fn found(limit: usize, loss: f64, noise_ns: f64) -> (usize, usize) {
        let transmitter = Transmitter { error: 0.004, ..TRANSMITTER };
        let mut count = (0, 0);
        for seed in 0..100 {
            let paired = noisy(seed, limit, loss, noise_ns);
            let noise_ns = noise_ns_of(&paired, transmitter);
            let (finding, _) = queue(&paired.packets, &QueueTimes { transmitter, noise_ns }, Level::DEFAULT);
            let (is_full, is_right) = match finding {
                QueueFinding::Full { limit: found, .. } => (true, found.contains(limit as f64)),
                QueueFinding::AtLeast(least) => (false, least <= limit as u64),
            };
            count.0 += usize::from(is_full);
            count.1 += usize::from(!is_right);
        }
        count
    }

    #[test]
    fn with_noise_the_limit_is_in_the_interval_or_unknown() {
        for noise_ns in [0.0, 50_000.0, 1e6, 4e6] {
            for loss in [0.0, 0.05] {
                let (full, wrong) = found(usize::MAX, loss, noise_ns);
                assert!(
                    full <= 1 && wrong <= 1,
                    "never full, {loss} {noise_ns}: {full} found, {wrong} wrong"
                );
                let (full, wrong) = found(8, loss, noise_ns);
                assert!(wrong <= 5, "{loss} {noise_ns}: {full} found, {wrong} wrong");
                // With noise as long as the queue is, it is not always seen, and with more hardly ever.
                let least = if noise_ns < 1e6 { 95 } else { 50 };
                assert!(full >= least || noise_ns > 1e6, "{loss} {noise_ns}: {full} found");
            }
        }
    }
}
