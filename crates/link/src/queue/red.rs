//! Random early detection: arrivals are dropped or marked with a probability that grows with the average
//! queue.

use super::average::Average;
use super::early::{CERTAIN, Early, in_steps};
use super::settings::{ECN, LIMIT, Limit, MEAN_PACKET, WEIGHT, signal};
use super::{Admission, Discipline};
use longwire_block::{Block, Dice, DropReason, Verdict};
use longwire_settings::{Choice, Millionths, Settings};
use longwire_units::{Bytes, Probability};

/// RED, in two profiles.
///
/// `floyd` is the algorithm of 1993 with the gentle slope of 2000. The queue is the backlog at an arrival,
/// the packet being sent included. `count` is, as in the paper's text, the number of packets spared since the
/// last selected one, so that the gaps are uniform on 1 … 1/p_b; its figure 2 counts one too many. With `unit
/// = "bytes"` thresholds are in multiples of `mean-packet` and a packet's probability is proportional to its
/// length. ECN-capable packets are marked, if configured, below the average from which all are dropped: ECN
/// capability must not allow a sender to fill the queue (RFC 7567, section 4.2.1).
///
/// `osaka` is the one of "Realizing a Network Emulator System with Intel IXP1200 Network Processor", section
/// II-A.2: 16.16 fixed point, with the weight, max-p and the distance of the thresholds rounded to powers of
/// two, and 1 − count·p_b rounded down to one, so that shifts suffice. It has that paper's defect: only an
/// accepted packet updates the average, so that once above `max` it never falls again and everything is
/// dropped until the queue is changed. It counts packets, and is not gentle.
#[derive(Debug, Default)]
pub struct Red {
    average: Average,
    early: Early,
    limit: Limit,
    marks: bool,
    in_bytes: bool,
    profile: Profile,
    /// 1 / mean-packet, in steps of 2⁻³².
    per_mean: u64,
    shifts: Shifts,
    dice: Dice,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Choice)]
enum Profile {
    #[default]
    Floyd,
    Osaka,
}

/// State of the profile `osaka`, in 16.16 fixed point.
#[derive(Debug, Default)]
struct Shifts {
    average: u32,
    count: u32,
    min: u32,
    max: u32,
    /// The weight is 2^−this.
    weight: u32,
    /// max-p / (max − min) is 2^−this.
    slope: u32,
}

/// Words of `unit`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Choice)]
pub(crate) enum Unit {
    Packets,
    Bytes,
}

/// Random early detection: drops or marks early, by the average queue length.
#[derive(Debug, Settings)]
#[settings(
    key = "queue",
    kind = "red",
    source = "Floyd & Jacobson, Random early detection gateways for congestion avoidance, 1993; RFC 7567; \
        Realizing a Network Emulator System with Intel IXP1200 Network Processor, section II-A.2",
    live
)]
pub struct RedSettings {
    #[setting(like = LIMIT)]
    limit: Limit,
    /// average in packets from which packets are dropped early
    #[setting(default = "5", min = 0, max = 1_000_000)]
    min: u64,
    /// average in packets at which the probability is max-p; treated as min if it is less
    #[setting(default = "15", min = 0, max = 1_000_000)]
    max: u64,
    /// probability of an early drop at max
    #[setting(default = "10 %")]
    max_p: Probability,
    #[setting(like = WEIGHT)]
    weight: Millionths,
    /// yes: the probability rises from max-p to 1 between max and twice max; no: all are dropped above max
    #[setting(default = "yes")]
    gentle: bool,
    #[setting(like = ECN)]
    ecn: bool,
    #[setting(like = MEAN_PACKET)]
    mean_packet: Bytes,
    /// unit of the average; with bytes, thresholds are multiples of mean-packet, and long packets are dropped
    /// with a higher probability
    #[setting(default = "packets")]
    unit: Unit,
    /// floyd: the algorithm of 1993; osaka: rounds to powers of two and never recovers above max
    #[setting(default = "floyd")]
    profile: Profile,
}

impl Block for Red {
    type Settings = RedSettings;

    fn build(settings: RedSettings, mut dice: Dice) -> Self {
        let early = Early::new(Dice::seeded(dice.draw()));
        Self { early, dice, ..Self::default() }.with(settings)
    }

    /// Applies new parameters; the average stays.
    fn change(&mut self, settings: RedSettings) {
        let RedSettings { min, max, max_p, weight: Millionths(weight), mean_packet: Bytes(mean), .. } =
            settings;
        let max_p = max_p.bits();
        self.limit = settings.limit;
        self.average.set_weight(weight, mean);
        self.per_mean = CERTAIN / mean;
        let in_bytes = settings.unit == Unit::Bytes;
        match (self.in_bytes, in_bytes) {
            (true, false) => self.average.scale(1, mean),
            (false, true) => self.average.scale(mean, 1),
            _ => {}
        }
        self.in_bytes = in_bytes;
        let scale = if self.in_bytes { mean } else { 1 };
        // No queue reaches thresholds beyond 2³⁰.
        let reach = |threshold: u64| (threshold * scale).min(1 << 30);
        self.early.set((reach(min), reach(max)), in_steps(max_p), settings.gentle);
        self.marks = settings.ecn;
        self.profile = settings.profile;
        self.shifts.set((min, max), max_p, weight);
    }
}

impl Discipline for Red {
    #[inline(always)]
    fn admit(&mut self, packet: &Admission<'_>) -> Verdict {
        if self.profile == Profile::Osaka {
            // A copy, because what a call gets by its address is stored in memory for all.
            return self.admit_by_shifts(&{ *packet });
        }
        let length = if self.in_bytes { packet.bytes_waiting } else { packet.packets_waiting };
        self.average.idle(packet.idle_since);
        self.average.arrival(packet.now, length, packet.rate);
        let size = if self.in_bytes { packet.bytes * self.per_mean } else { CERTAIN };
        self.early.judge(self.average.value(), size).verdict(packet, self.limit, self.marks)
    }

    #[inline]
    fn plain(&self) -> bool {
        true
    }
}

impl Red {
    /// The receiver-side algorithm of the Osaka paper, step by step.
    fn admit_by_shifts(&mut self, packet: &Admission<'_>) -> Verdict {
        let shifts = &mut self.shifts;
        shifts.count = shifts.count.saturating_add(1);
        let chosen = shifts.average >= shifts.min && shifts.chooses((self.dice.draw() >> 48) as u32);
        let verdict = if shifts.average >= shifts.max {
            Verdict::Drop(DropReason::Aqm)
        } else if !self.limit.has_room(packet) {
            Verdict::Drop(DropReason::QueueFull)
        } else if chosen {
            signal(self.marks, packet)
        } else {
            Verdict::Pass
        };
        if verdict != Verdict::Pass {
            shifts.count = 0;
        }
        if !matches!(verdict, Verdict::Drop(_)) {
            shifts.accept(packet.packets_waiting + 1);
        }
        verdict
    }
}

impl Shifts {
    /// Sets the parameters, each of the three rounded to the nearest power of two.
    fn set(&mut self, (min, max): (u64, u64), max_p: u64, weight: u64) {
        let span = nearest_power(max.saturating_sub(min).max(1), 1);
        self.min = point(min);
        self.max = point(min.saturating_add(1 << span));
        self.weight = (-nearest_power(weight, 1_000_000)).clamp(0, 31) as u32;
        self.slope = (span - nearest_power(max_p, 1 << 63)).clamp(0, 31) as u32;
    }

    /// Equations (5) and (6): whether a 16-bit draw is below p_a.
    fn chooses(&self, draw: u32) -> bool {
        let base = u64::from(self.average - self.min) >> self.slope;
        match (1u64 << 16).checked_sub(u64::from(self.count) * base) {
            None | Some(0) => true,
            Some(rest) => u64::from(draw) < base << (16 - rest.ilog2()),
        }
    }

    /// Equation (4), with the new packet in the queue.
    fn accept(&mut self, queue: u64) {
        let difference = i64::from(point(queue)) - i64::from(self.average);
        self.average = (i64::from(self.average) + (difference >> self.weight)) as u32;
    }
}

/// A whole number in 16.16 fixed point; at most 65535.
fn point(number: u64) -> u32 {
    (number.min(0xffff) as u32) << 16
}

/// The n for which 2^n is nearest to a ratio, in logarithms.
fn nearest_power(numerator: u64, denominator: u64) -> i64 {
    if numerator == 0 {
        return -63;
    }
    // ⌊log₂(x²·2) / 2⌋ rounds log₂ x to the nearest.
    let [mut square, mut other] = [numerator, denominator].map(|n| u128::from(n) * u128::from(n));
    let mut n = 0;
    while square.saturating_mul(2) <= other {
        square <<= 2;
        n -= 1;
    }
    while square > other.saturating_mul(2) {
        other <<= 2;
        n += 1;
    }
    n
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_units::{Nanos, Rate};

    fn red(given: &[(&str, &str)]) -> Red {
        Red::build(Settings::read(given).unwrap(), Dice::named(1, "red"))
    }

    fn found(now: Nanos, packets_waiting: u64) -> Admission<'static> {
        Admission {
            idle_since: Nanos::ZERO,
            now,
            bytes: 500,
            packets_waiting,
            bytes_waiting: packets_waiting * 500,
            rate: Rate(4_000_000),
            packet: None,
            band: 0,
        }
    }

    #[test]
    fn powers_of_two_nearest() {
        for (numerator, denominator, n) in [
            (2000, 1_000_000, -9),
            (1, 10, -3),
            (10, 1, 3),
            (12, 1, 4),
            (1, 1, 0),
            (1, 1_000_000, -20),
            (11, 1, 3),
        ] {
            assert_eq!(nearest_power(numerator, denominator), n, "{numerator}/{denominator}");
        }
    }

    /// Osaka's average computed by hand: w = ½, q = 1, 2, 3: 0.5, 1.25, 2.125.
    #[test]
    fn osaka_counts_what_it_accepts() {
        let mut queue = red(&[("profile", "osaka"), ("weight", "0.5"), ("min", "5"), ("max", "13")]);
        for (waiting, average) in [(0, 0.5), (1, 1.25), (2, 2.125)] {
            assert_eq!(queue.admit(&found(Nanos(0), waiting)), Verdict::Pass);
            assert_eq!(f64::from(queue.shifts.average) / 65536.0, average);
        }
    }

    /// A burst lifts both averages above max; then the queue is empty, and a packet comes each second.
    /// Floyd's average falls in the first pause; Osaka's stays, and every packet is dropped for ever.
    #[test]
    fn osaka_never_comes_back() {
        for (profile, recovers) in [("floyd", true), ("osaka", false)] {
            let mut queue =
                red(&[("profile", profile), ("weight", "0.25"), ("gentle", "no"), ("max-p", "0 %")]);
            let lifted = (0..1000).any(|_| queue.admit(&found(Nanos(0), 100)) != Verdict::Pass);
            assert!(lifted, "{profile}");
            let later = (1..1000).map(|second| queue.admit(&found(Nanos::from_secs(second), 0)));
            let passed = later.filter(|verdict| *verdict == Verdict::Pass).count();
            assert_eq!(passed, if recovers { 999 } else { 0 }, "{profile}");
        }
    }

    /// An average of 10 between 5 and 15 is p_b = 5 %: gaps between drops are uniform on 1 … 20. Chi-square
    /// with 19 degrees of freedom, 99.99 % below 51. A twenty-first, possible where p_b is 2⁻³² too small,
    /// does not occur.
    #[test]
    fn gaps_are_uniform() {
        let mut queue = red(&[("weight", "1")]);
        let (mut gaps, mut gap, mut drops) = ([0u32; 20], 0, 0);
        while drops < 20_000 {
            gap += 1;
            if queue.admit(&found(Nanos(0), 10)) != Verdict::Pass {
                gaps[gap - 1] += 1;
                (gap, drops) = (0, drops + 1);
            }
        }
        let chi: f64 = gaps.iter().map(|&n| (f64::from(n) - 1000.0).powi(2) / 1000.0).sum();
        assert!(chi < 51.0, "{chi} {gaps:?}");
    }

    #[test]
    fn another_unit_keeps_the_average_length() {
        let mut queue = red(&[("unit", "bytes"), ("weight", "1")]);
        queue.admit(&found(Nanos(0), 10));
        assert_eq!(queue.average.value(), 5000 << 32);
        queue.change(Settings::read(&[("weight", "1")]).unwrap());
        assert_eq!(queue.average.value(), 10 << 32);
        queue.change(Settings::read(&[("unit", "bytes"), ("weight", "1")]).unwrap());
        assert_eq!(queue.average.value(), 5000 << 32);
    }

    /// In bytes, thresholds are 5 and 15 times 500 bytes and p_b is proportional to the length: at an average
    /// of 5000 bytes 5 % for 500 bytes, 10 % for 1000. The share of 20 000 packets is within five deviations.
    #[test]
    fn bytes_weigh_by_length() {
        for (bytes, share) in [(500, 0.05), (1000, 0.10)] {
            let mut queue = red(&[("unit", "bytes"), ("weight", "1")]);
            let packet = Admission { bytes, ..found(Nanos(0), 10) };
            let drops = (0..20_000).filter(|_| queue.admit(&packet) != Verdict::Pass).count() as f64;
            // Uniform gaps have a mean of (1/p_b + 1)/2.
            let wanted = 20_000.0 * 2.0 / (1.0 / share + 1.0);
            assert!((drops - wanted).abs() < 5.0 * wanted.sqrt(), "{bytes}: {drops} {wanted}");
        }
    }
}
