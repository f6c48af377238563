//! Stabilized RED: the drop probability depends on the number of flows, estimated from how often a packet
//! finds its own flow in a list of recent ones.

use super::flow::flow_hash;
use super::settings::{ECN, LIMIT, Limit, signal};
use super::{Admission, Discipline};
use longwire_block::{Block, Dice, DropReason, Verdict};
use longwire_settings::Settings;
use longwire_units::Probability;

/// "Full" SRED (Ott, Lakshman & Wong 1999, sections II to V).
///
/// Each arrival is compared with one of `zombies` flows at random. If it is its own, that is a hit; otherwise
/// it replaces that entry with probability `replace`. The hit frequency P moves by 1/zombies of each outcome
/// (the paper's choice, instead of its equation 3.3), and 1/P estimates the number of flows. A packet is
/// dropped with p_sred · min(1, 1/(256·P)²) · (1 + Hit/P), where p_sred is max-p from a third of the limit
/// on, a quarter of that from a sixth on, and else 0. Until the list is full every flow is listed and none is
/// dropped early. The paper's counts and times of zombies, which it does not use, are not stored; flows are
/// distinguished by a 64-bit hash.
#[derive(Debug, Default)]
pub struct Sred {
    /// P, in steps of 2⁻⁵⁶.
    hits: u64,
    /// 1 / zombies, in steps of 2⁻³².
    pace: u64,
    /// In steps of 2⁻³².
    max_p: u64,
    /// Threshold for a 63-bit draw.
    replace: u64,
    zombies: Vec<u64>,
    most: usize,
    limit: Limit,
    marks: bool,
    seed: u64,
    dice: Dice,
}

/// Stabilized RED: estimates the number of flows and drops accordingly.
#[derive(Debug, Settings)]
#[settings(
    key = "queue",
    kind = "sred",
    source = "Ott, Lakshman & Wong, SRED: stabilized RED, INFOCOM 1999",
    live
)]
pub struct SredSettings {
    #[setting(like = LIMIT)]
    limit: Limit,
    /// how many recent flows are listed, 1 to 65536
    #[setting(default = "1000", min = 1, max = 65_536)]
    zombies: u64,
    /// probability that a packet without a hit replaces the zombie
    #[setting(default = "25 %")]
    replace: Probability,
    /// probability of an early drop with many flows and a third of the limit waiting
    #[setting(default = "15 %")]
    max_p: Probability,
    #[setting(like = ECN)]
    ecn: bool,
}

impl Block for Sred {
    type Settings = SredSettings;

    fn build(settings: SredSettings, mut dice: Dice) -> Self {
        Self { seed: dice.draw(), dice, ..Self::default() }.with(settings)
    }

    /// Applies new parameters; list and hit frequency stay, except for zombies beyond the new number.
    fn change(&mut self, settings: SredSettings) {
        self.limit = settings.limit;
        self.most = settings.zombies as usize;
        self.replace = settings.replace.bits();
        self.pace = (1 << 32) / self.most as u64;
        self.max_p = settings.max_p.bits() >> 31;
        self.marks = settings.ecn;
        self.zombies.truncate(self.most);
        self.zombies.reserve_exact(self.most - self.zombies.len());
    }
}

impl Discipline for Sred {
    fn memory_bytes(&self) -> usize {
        self.zombies.capacity() * size_of::<u64>()
    }

    #[inline]
    fn admit(&mut self, packet: &Admission<'_>) -> Verdict {
        let listed = self.meet(flow_hash(packet.frame(), self.seed));
        if !self.limit.has_room(packet) {
            return Verdict::Drop(DropReason::QueueFull);
        }
        let highest = if self.limit.is_filled_to(3, packet) {
            self.max_p
        } else if self.limit.is_filled_to(6, packet) {
            self.max_p / 4
        } else {
            return Verdict::Pass;
        };
        match listed {
            Some(hit) if self.chooses(highest, hit) => signal(self.marks, packet),
            _ => Verdict::Pass,
        }
    }

    #[inline]
    fn plain(&self) -> bool {
        true
    }
}

impl Sred {
    /// Compares a flow with a zombie, and returns whether it was a hit; none while the list is not full.
    #[inline]
    fn meet(&mut self, flow: u64) -> Option<bool> {
        if self.zombies.len() < self.most {
            self.zombies.push(flow);
            return None;
        }
        let draw = self.dice.draw();
        let met = (((draw >> 32) * self.most as u64) >> 32) as usize;
        let zombie = &mut self.zombies[met];
        let hit = *zombie == flow;
        if !hit && self.dice.draw() >> 1 < self.replace {
            *zombie = flow;
        }
        // Equation (3.2).
        let fade = ((u128::from(self.hits) * u128::from(self.pace)) >> 32) as u64;
        self.hits = self.hits - fade + if hit { self.pace << 24 } else { 0 };
        Some(hit)
    }

    /// Whether to drop a packet: equations (4.4) and (5.1), rearranged without divisions.
    #[inline]
    fn chooses(&mut self, highest: u64, hit: bool) -> bool {
        let draw = u128::from(self.dice.draw() >> 32);
        // P and (256·P)², at least 1, in steps of 2⁻³².
        let frequency = u128::from(self.hits >> 24);
        let many = ((frequency * frequency) >> 16).max(1 << 32);
        let highest = u128::from(highest);
        if hit {
            // u · max(1, (256·P)²) · P < p_sred · (P + 1)
            ((draw * many) >> 32) * frequency < highest * (frequency + (1 << 32))
        } else {
            draw * many < highest << 32
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frequency of 1, in steps of 2⁻⁵⁶.
    const ALWAYS: u64 = 1 << 56;

    impl Sred {
        /// The estimated number of flows, 1/P.
        fn flows(&self) -> f64 {
            ALWAYS as f64 / self.hits as f64
        }
    }

    fn sred() -> Sred {
        Sred::build(Settings::read(&[]).unwrap(), Dice::named(1, "sred"))
    }

    /// With n flows of equal rates 1/P converges to n. P over 80 000 packets is the mean of as many outcomes,
    /// each a hit with probability 1/n: its relative deviation is √(n/80 000), and three and a half are
    /// allowed.
    #[test]
    fn hits_tell_the_number_of_flows() {
        for flows in [2u64, 10, 100] {
            let (mut queue, mut dice) = (sred(), Dice::named(flows, "arrivals"));
            let mut sum = 0.0;
            for number in 0..180_000 {
                queue.meet(dice.below(flows) + 1);
                if number >= 100_000 {
                    sum += 1.0 / queue.flows();
                }
            }
            let estimate = 80_000.0 / sum;
            // The list itself also fluctuates: it is renewed only every 4000 packets.
            let tolerance = 3.5 * (flows as f64 / 80_000.0).sqrt() + 0.05;
            assert!((estimate / flows as f64 - 1.0).abs() < tolerance, "{flows}: {estimate}");
        }
    }

    /// If every packet hits, P differs from 1 by (1 − 1/1000)^n after n of them: 0.90479, 0.36770 and 0.04971
    /// at 100, 1000 and 3000.
    #[test]
    fn the_hit_frequency_has_a_memory_of_the_list() {
        let mut queue = sred();
        (0..1000).for_each(|_| assert_eq!(queue.meet(1), None));
        let mut packets = 0;
        for (after, missed) in [(100, 0.904_79), (1000, 0.367_70), (3000, 0.049_71)] {
            while packets < after {
                assert_eq!(queue.meet(1), Some(true));
                packets += 1;
            }
            let found = 1.0 - queue.hits as f64 / ALWAYS as f64;
            assert!((found - missed).abs() < 1e-5, "{after}: {found}");
        }
    }

    /// p_zap computed by hand at P = 1/64 ((256·P)² = 16) and P = 1/1024 (below 1/256), with and without a
    /// hit; of 100 000 draws within five deviations.
    #[test]
    fn drops_by_flows_and_hits() {
        for (per, hit, wanted) in
            [(64, false, 0.15 / 16.0), (64, true, 0.15 / 16.0 * 65.0), (1024, false, 0.15), (1024, true, 1.0)]
        {
            let mut queue = sred();
            queue.hits = ALWAYS / per;
            let highest = queue.max_p;
            let drops = (0..100_000).filter(|_| queue.chooses(highest, hit)).count() as f64;
            let deviation = (100_000.0 * wanted * (1.0f64 - wanted)).sqrt();
            assert!((drops - 100_000.0 * wanted).abs() <= 5.0 * deviation, "1/{per} {hit}: {drops}");
        }
    }
}
