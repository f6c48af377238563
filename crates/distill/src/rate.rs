//! The rate of the bottleneck, from the dispersion of packets that waited for each other.
//!
//! Between the arrivals of two packets of which the second waited for the first lies the time that its bits
//! take, whatever the delay behind the transmitter adds to both: for independent delays the difference is as
//! often too long as too short, so that the median over pairs is right, and the sign test gives its interval.
//! Which packets waited is computed from the times of sending alone: to select them by their arrivals would
//! select the late ones.

use crate::estimate::Estimate;
use crate::pairing::{Packet, Paired};
use crate::service::served;
use crate::statistics::{Level, quantile, quantile_ranks};

/// Packets on which the rate is searched.
const SEARCHED: usize = 50_000;
/// Pieces of dispersion over which the median is taken, if there are enough packets: more would be shorter,
/// and each worse.
const PIECES: usize = 40;
/// Fewest pieces, if there are so many.
const FEWEST: usize = 20;
/// A rate has to explain this share of the delays' spread, so that chance does not.
const EXPLAINED: f64 = 0.05;
/// Packets over which the fastest arrivals are measured.
const FASTEST: usize = 10;

/// What is known of the rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RateFinding {
    /// Packets waited for each other.
    Limited(Estimate),
    /// None waited, or too few.
    Unknown {
        /// Bits a second at which the fastest ten packets in a row arrived; none if there are fewer, or they
        /// arrived at once.
        fastest_bit_per_second: Option<f64>,
        /// Packets that waited for each other, if there were any.
        waited: u64,
    },
}

impl RateFinding {
    /// The rate in bit/s, if it is known.
    pub fn estimate(&self) -> Option<Estimate> {
        match self {
            Self::Limited(estimate) => Some(*estimate),
            Self::Unknown { .. } => None,
        }
    }
}

/// Estimates the rate in bit/s.
pub fn rate(paired: &Paired, level: Level) -> RateFinding {
    let packets = &paired.packets[..];
    let unknown = |waited| RateFinding::Unknown { fastest_bit_per_second: fastest(packets), waited };
    let part = densest(packets);
    let plain = spread(part, 0.0);
    // Rounded times alone differ by that much.
    if plain <= 2.0 * paired.resolution_ns {
        return unknown(0);
    }
    let Some(mut ns_per_bit) = search(part) else { return unknown(0) };
    let mut found = None;
    let mut margin = 0.02;
    for _ in 0..4 {
        let pieces = pieces(packets, ns_per_bit / (1.0 + margin));
        let Some(next) = median(&pieces, paired.resolution_ns, level) else { break };
        ns_per_bit = next.value;
        margin = ((next.high - next.low) / next.value).clamp(1e-9, 0.02);
        found = Some(next);
    }
    let waited = served(packets, ns_per_bit).filter(|service| service.wait_ns > 0.0).count();
    let Some(found) = found else { return unknown(waited as u64) };
    let share = EXPLAINED.max(30.0 / part.len() as f64);
    if spread(part, found.value) > plain * (1.0 - share) {
        return unknown(0);
    }
    RateFinding::Limited(found.map(|ns_per_bit| 1e9 / ns_per_bit))
}

/// The stretch of packets with the most bits in its time.
fn densest(packets: &[Packet]) -> &[Packet] {
    let time = |part: &&[Packet]| {
        let bits: f64 = part.iter().map(|packet| packet.bits).sum();
        let span =
            part.last().map_or(0.0, |last| last.sent_ns) - part.first().map_or(0.0, |first| first.sent_ns);
        span / bits
    };
    // A short rest would be dense by chance.
    let whole = |part: &&[Packet]| part.len() == SEARCHED.min(packets.len());
    let parts = packets.chunks(SEARCHED).filter(whole);
    parts.min_by(|a, b| time(a).total_cmp(&time(b))).unwrap_or(packets)
}

/// The mean distance from the median of what is left of the delays without queue and transmission.
fn spread(packets: &[Packet], ns_per_bit: f64) -> f64 {
    let mut left: Vec<f64> = served(packets, ns_per_bit)
        .map(|service| {
            let packet = &packets[service.index];
            packet.delay_ns.unwrap_or_default() - (service.finish_ns - packet.sent_ns)
        })
        .collect();
    let middle = left.len() / 2;
    let count = left.len().max(1) as f64;
    let median = match left.len() {
        0 => return 0.0,
        _ => *left.select_nth_unstable_by(middle, f64::total_cmp).1,
    };
    left.iter().map(|value| (value - median).abs()).sum::<f64>() / count
}

/// The time of a bit that explains the delays best; none if no two packets arrived at different times.
fn search(packets: &[Packet]) -> Option<f64> {
    let mut tried: Vec<(f64, f64)> =
        candidates(packets).into_iter().map(|candidate| (candidate, spread(packets, candidate))).collect();
    tried.sort_by(|a, b| a.0.total_cmp(&b.0));
    let best = (0..tried.len()).min_by(|a, b| tried[*a].1.total_cmp(&tried[*b].1))?;
    let (mut low, mut high) = (tried[best.saturating_sub(1)].0, tried[(best + 1).min(tried.len() - 1)].0);
    let (mut value, mut least) = tried[best];
    // Thirds of the interval around the best: the spread has one valley there.
    for _ in 0..40 {
        let thirds = [low + (high - low) / 3.0, high - (high - low) / 3.0];
        let [one, other] = thirds.map(|third| spread(packets, third));
        for (third, found) in thirds.into_iter().zip([one, other]) {
            if found < least {
                (value, least) = (third, found);
            }
        }
        (low, high) = if one < other { (low, thirds[1]) } else { (thirds[0], high) };
    }
    Some(value)
}

/// Times of a bit between arrivals of neighbours, and over stretches of 8 and 64 packets: among those of
/// packets that waited are good ones.
fn candidates(packets: &[Packet]) -> Vec<f64> {
    const QUANTILES: usize = 32;
    let arrivals: Vec<(f64, f64)> =
        packets.iter().filter_map(|packet| Some((packet.sent_ns + packet.delay_ns?, packet.bits))).collect();
    let mut all = Vec::new();
    for steps in [1, 8, 64] {
        let mut found: Vec<f64> = arrivals
            .windows(steps + 1)
            .step_by(steps)
            .map(|part| {
                let bits: f64 = part[1..].iter().map(|(_, bits)| bits).sum();
                (part[steps].0 - part[0].0) / bits
            })
            .filter(|time| *time > 0.0)
            .collect();
        found.sort_by(f64::total_cmp);
        all.extend((0..QUANTILES).filter_map(|n| quantile(&found, n as f64 / (QUANTILES - 1) as f64)));
    }
    all
}

/// A stretch of packets each of which waited for the one before: the time between the first arrival and the
/// last, and the bits sent in it.
#[derive(Debug, Clone, Copy)]
struct Piece {
    gap_ns: f64,
    bits: f64,
}

/// Cuts the packets that waited into pieces that share no packet, so that they are independent.
fn pieces(packets: &[Packet], ns_per_bit: f64) -> Vec<Piece> {
    let all: Vec<_> = served(packets, ns_per_bit).collect();
    let waits = all.iter().filter(|service| service.wait_ns > 0.0).count();
    let steps = (waits / PIECES).max(1);
    let arrival = |place: usize| {
        let packet = &packets[all[place].index];
        packet.sent_ns + packet.delay_ns.unwrap_or_default()
    };
    let mut pieces = Vec::new();
    let mut place = 1;
    while place < all.len() {
        let from = place - 1;
        let (mut to, mut bits) = (from, 0.0);
        while to - from < steps && all.get(to + 1).is_some_and(|next| next.wait_ns > 0.0) {
            to += 1;
            bits += packets[all[to].index].bits;
        }
        if to > from {
            pieces.push(Piece { gap_ns: arrival(to) - arrival(from), bits });
        }
        place = to + 2;
    }
    longest(pieces)
}

/// The longest pieces, as many as give the shortest interval: it shrinks with the square root of their
/// number, and with the bits of the shortest of them.
fn longest(mut pieces: Vec<Piece>) -> Vec<Piece> {
    pieces.sort_by(|a, b| b.bits.total_cmp(&a.bits));
    let weight = |count: &usize| (*count as f64).sqrt() * pieces[*count - 1].bits;
    let counts = FEWEST.min(pieces.len()).max(1)..=pieces.len();
    let count = counts.max_by(|a, b| weight(a).total_cmp(&weight(b)));
    pieces.truncate(count.unwrap_or(0));
    pieces
}

/// The median time of a bit, with the interval of the sign test; none if there are too few pieces for it, or
/// packets overtook each other in most. If all agree to the rounding of their stamps, the interval has what
/// they leave open.
fn median(pieces: &[Piece], resolution_ns: f64, level: Level) -> Option<Estimate> {
    let (low, high) = quantile_ranks(pieces.len(), 0.5, level)?;
    // Each of the two stamps is rounded by up to its unit.
    let sorted = |rounding: f64| {
        let mut times: Vec<f64> = pieces.iter().map(|piece| (piece.gap_ns + rounding) / piece.bits).collect();
        times.sort_by(f64::total_cmp);
        times
    };
    let (lows, highs) = (sorted(-resolution_ns), sorted(resolution_ns));
    let (most, least) = (*lows.last()?, *highs.first()?);
    let (value, low, high) = if most <= least {
        ((most + least) / 2.0, most, least)
    } else {
        (quantile(&sorted(0.0), 0.5)?, lows[low], highs[high])
    };
    (low > 0.0).then_some(Estimate { value, low, high, samples: pieces.len() as u64 })
}

/// The rate of the fastest ten packets in a row, without the first, in bit/s.
fn fastest(packets: &[Packet]) -> Option<f64> {
    let mut arrivals: Vec<(f64, f64)> =
        packets.iter().filter_map(|packet| Some((packet.sent_ns + packet.delay_ns?, packet.bits))).collect();
    arrivals.sort_by(|a, b| a.0.total_cmp(&b.0));
    let rate = |part: &[(f64, f64)]| {
        let time = part[FASTEST - 1].0 - part[0].0;
        let bits: f64 = part[1..].iter().map(|(_, bits)| bits).sum();
        (time > 0.0).then(|| bits * 1e9 / time)
    };
    arrivals.windows(FASTEST).filter_map(rate).max_by(f64::total_cmp)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pairing::Counts;
    use longwire_block::Dice;

    /// Packets sent at these times through a transmitter of 100 ns a bit, with a delay behind it.
    fn paired(times: impl Iterator<Item = f64>, delay: f64, jitter: f64) -> Paired {
        let packet = |sent_ns| Packet { sent_ns, bits: 1000.0, delay_ns: Some(0.0), copy_ns: None };
        let mut packets: Vec<Packet> = times.map(packet).collect();
        let finishes: Vec<f64> = served(&packets, 100.0).map(|service| service.finish_ns).collect();
        let mut dice = Dice::named(1, "jitter");
        for (packet, finish) in packets.iter_mut().zip(finishes) {
            let share = dice.draw() as f64 / 2f64.powi(64);
            packet.delay_ns = Some(finish - packet.sent_ns + delay + share * jitter);
        }
        Paired { packets, resolution_ns: 1.0, counts: Counts::default() }
    }

    #[test]
    fn pairs_in_light_traffic_are_enough() {
        // Every fifth packet follows its predecessor closely.
        let times = (0..500).map(|n| f64::from(n) * 1e6 - if n % 5 == 4 { 990_000.0 } else { 0.0 });
        let found = rate(&paired(times, 5e6, 0.0), Level::DEFAULT).estimate().unwrap();
        assert!(found.contains(1e7) && found.high / found.low < 1.0001, "{found:?}");
    }

    #[test]
    fn a_saturated_link_has_its_rate() {
        let times = (0..5000).map(|n| f64::from(n) * 70_000.0);
        let level = Level::new(0.9999).unwrap();
        let found = rate(&paired(times, 0.0, 1e6), level).estimate().unwrap();
        assert!(found.contains(1e7) && found.high / found.low < 1.1, "{found:?}");
    }

    #[test]
    fn without_waiting_there_is_no_rate() {
        let times = || (0..500).map(|n| f64::from(n) * 1e6);
        for jitter in [0.0, 3e6] {
            let found = rate(&paired(times(), 2e6, jitter), Level::DEFAULT);
            let RateFinding::Unknown { fastest_bit_per_second: Some(fastest), .. } = found else {
                panic!("{found:?}")
            };
            assert!(fastest > 0.99e6, "{fastest}");
        }
        assert_eq!(fastest(&[]), None);
    }
}
