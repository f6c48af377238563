//! Adaptive RED: RED that adjusts its maximum probability to keep the average half-way between the
//! thresholds.

use super::average::Average;
use super::early::{CERTAIN, Early, in_steps, length};
use super::settings::{ECN, LIMIT, Limit, MEAN_PACKET};
use super::{Admission, Discipline};
use longwire_block::{Block, Dice, Verdict};
use longwire_settings::Settings;
use longwire_units::{Bytes, Nanos, Probability, Rate};

/// Gentle RED with a max-p that adapts (Floyd, Gummadi & Shenker 2001, figure 2).
///
/// Every `interval`, if the average is above min + 0.6·(max − min), max-p grows by min(0.01, max-p/4), up to
/// 50 %; if it is below min + 0.4·(max − min), max-p shrinks to nine tenths, down to 1 %. The weight follows
/// the rate: 1 − e^(−1/C), for C mean packets per second. Adaptations between two packets are executed when
/// the second one comes.
#[derive(Debug)]
pub struct Ared {
    average: Average,
    early: Early,
    limit: Limit,
    marks: bool,
    /// In steps of 2⁻³².
    max_p: u64,
    /// The configured `max-p`.
    given: u64,
    thresholds: (u64, u64),
    /// The rate for which the weight was computed.
    rate: Rate,
    mean_packet: u64,
    interval: Nanos,
    next: Nanos,
}

/// Most adaptations executed at once. After that many with the same average max-p has reached its limit.
const MOST: u64 = 128;

/// Adaptive RED: adapts its drop probability to hold the average between the thresholds.
#[derive(Debug, Settings)]
#[settings(
    key = "queue",
    kind = "ared",
    source = "Floyd, Gummadi & Shenker, Adaptive RED: an algorithm for increasing the robustness of RED's \
        active queue management, 2001",
    live
)]
pub struct AredSettings {
    #[setting(like = LIMIT)]
    limit: Limit,
    /// average in packets from which packets are dropped early
    #[setting(default = "5", min = 0, max = 1_000_000)]
    min: u64,
    /// average in packets at which the probability is max-p; treated as min if it is less
    #[setting(default = "15", min = 0, max = 1_000_000)]
    max: u64,
    /// initial probability of an early drop at max
    #[setting(default = "10 %")]
    max_p: Probability,
    /// time between adaptations of max-p, up to 100 s; less than 1 ms is treated as 1 ms
    #[setting(default = "500 ms", max = Nanos::from_secs(100))]
    interval: Nanos,
    #[setting(like = ECN)]
    ecn: bool,
    #[setting(like = MEAN_PACKET)]
    mean_packet: Bytes,
}

impl Block for Ared {
    type Settings = AredSettings;

    fn build(settings: AredSettings, dice: Dice) -> Self {
        Self {
            average: Average::default(),
            early: Early::new(dice),
            limit: settings.limit,
            marks: false,
            max_p: 0,
            given: u64::MAX,
            thresholds: (0, 0),
            rate: Rate::STALLED,
            mean_packet: 0,
            interval: Nanos::ZERO,
            next: Nanos::ZERO,
        }
        .with(settings)
    }

    /// Applies new parameters; average and max-p stay, unless a new max-p is given.
    fn change(&mut self, settings: AredSettings) {
        self.limit = settings.limit;
        self.thresholds = (settings.min, settings.max);
        let given = in_steps(settings.max_p.bits());
        if given != self.given {
            (self.given, self.max_p) = (given, given);
        }
        self.interval = settings.interval.max(Nanos::from_millis(1));
        self.marks = settings.ecn;
        self.mean_packet = settings.mean_packet.0;
        self.rate = Rate::STALLED;
        self.early.set(self.thresholds, self.max_p, true);
    }
}

impl Discipline for Ared {
    #[inline(always)]
    fn admit(&mut self, packet: &Admission<'_>) -> Verdict {
        if packet.rate != self.rate {
            self.rate = packet.rate;
            self.average.set_weight_for(packet.rate, self.mean_packet);
        }
        // First: adaptations that are due ask for the average after a part of the idle time.
        self.average.idle(packet.idle_since);
        if packet.now >= self.next {
            self.catch_up(packet);
        }
        self.average.arrival(packet.now, packet.packets_waiting, packet.rate);
        self.early.judge(self.average.value(), CERTAIN).verdict(packet, self.limit, self.marks)
    }

    #[inline]
    fn plain(&self) -> bool {
        true
    }
}

impl Ared {
    /// Adapts max-p for every due time, with the average at that time.
    fn catch_up(&mut self, packet: &Admission<'_>) {
        if self.next == Nanos::ZERO {
            self.next = packet.now + self.interval;
            return;
        }
        let due = packet.now.since(self.next).0 / self.interval.0 + 1;
        let skipped = due.saturating_sub(MOST);
        self.next = Nanos(self.next.0 + skipped * self.interval.0);
        for _ in skipped..due {
            let idle = packet.packets_waiting == 0;
            let average =
                if idle { self.average.faded(self.next, packet.rate) } else { self.average.value() };
            self.adapt(average);
            self.next += self.interval;
        }
        self.early.set(self.thresholds, self.max_p, true);
    }

    /// Figure 2 of the paper.
    fn adapt(&mut self, average: u64) {
        let (min, max) = self.thresholds;
        let tenths = |n: u64| length(min) + length(max.saturating_sub(min)) / 10 * n;
        if average > tenths(6) && self.max_p <= CERTAIN / 2 {
            self.max_p += (CERTAIN / 100).min(self.max_p / 4);
        } else if average < tenths(4) && self.max_p >= CERTAIN / 100 {
            self.max_p = self.max_p / 10 * 9;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Busy for ten seconds with fourteen waiting, then empty for 450 ms: at the adaptation in between the
    /// average is 14·e^−0.4 = 9.4, which is on target.
    #[test]
    fn the_average_fades_from_the_end_of_a_busy_period() {
        let settings = [("min", "5"), ("max", "15"), ("limit", "100 packets")];
        let mut queue = Ared::build(Settings::read(&settings).unwrap(), Dice::named(1, "ared"));
        let found = |ms: u64, packets_waiting: u64, idle_since: u64| Admission {
            idle_since: Nanos::from_millis(idle_since),
            now: Nanos::from_millis(ms),
            bytes: 1000,
            packets_waiting,
            bytes_waiting: packets_waiting * 1000,
            rate: Rate(1_000_000),
            packet: None,
            band: 0,
        };
        (0..10_000).for_each(|ms| {
            queue.admit(&found(ms, 14, 0));
        });
        (queue.next, queue.max_p) = (Nanos::from_millis(10_400), CERTAIN / 10);
        queue.admit(&found(10_450, 0, 10_000));
        assert_eq!(queue.max_p, CERTAIN / 10);
    }

    /// (average, max-p before, after) in thousandths, computed by hand; thresholds 5 and 15, so that the
    /// target is 9 … 11.
    #[test]
    fn adapts_as_the_paper_says() {
        let mut queue = Ared::build(Settings::read(&[]).unwrap(), Dice::named(1, "ared"));
        for (average, before, after) in [
            (12, 100, 110.0),
            (12, 20, 25.0),
            (12, 501, 501.0),
            (10, 100, 100.0),
            (8, 100, 90.0),
            (8, 9, 9.0),
        ] {
            queue.max_p = CERTAIN * before / 1000;
            queue.adapt(length(average));
            let got = queue.max_p as f64 / CERTAIN as f64 * 1000.0;
            assert!((got - after).abs() < 1e-5, "{average} {before}: {got}");
        }
    }
}
