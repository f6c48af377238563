//! The average queue length of the RED family: an exponentially weighted moving average of the length at
//! arrivals, which decays while the queue is idle as if small packets had found it empty (Floyd & Jacobson,
//! "Random early detection gateways for congestion avoidance", 1993, its detailed algorithm; for the small
//! packets, section 11).

use longwire_units::{Nanos, Rate};

/// An average of 1, in steps of 2⁻³².
pub(super) const UNIT: u64 = 1 << 32;
/// A weight of 1, in steps of 2⁻⁴⁸.
pub(super) const WHOLE_WEIGHT: u64 = 1 << 48;
/// The longest representable queue, in packets or bytes.
const LONGEST: u64 = (1 << 31) - 1;
/// ln 2 in steps of 2⁻³².
const LN_2: u64 = 2_977_044_472;
/// log₂ e / 10⁹ in steps of 2⁻⁹⁶.
const LOG2_E_PER_NANO: u128 = 114_302_077_158_074_026_402;

/// The average and its parameters.
#[derive(Debug, Default)]
pub(super) struct Average {
    /// In steps of 2⁻³² packets or bytes.
    value: u64,
    /// In steps of 2⁻⁴⁸.
    weight: u64,
    /// Number of halvings of the average during the time of 10⁻⁹ bits, in steps of 2⁻⁹⁶.
    decay: u64,
    /// Time at which the queue was last found or became empty.
    idle_since: Nanos,
}

impl Average {
    /// Sets a weight in millionths, and the size of a mean packet.
    pub(super) fn set_weight(&mut self, millionths: u64, mean_packet: u64) {
        self.weight = (u128::from(millionths) * u128::from(WHOLE_WEIGHT) / 1_000_000) as u64;
        let weight = millionths as f64 / 1e6;
        // −log₂(1 − w) = 2/ln 2 · artanh(w / (2 − w)); beyond 32 halvings per packet nothing is left anyway.
        let (z, mut term, mut sum, mut n) = (weight / (2.0 - weight), 2.0, 0.0, 1.0);
        term *= z;
        while n < 10_000.0 && term > 1e-18 {
            sum += term / n;
            term *= z * z;
            n += 2.0;
        }
        let halvings =
            if millionths == 1_000_000 { 32.0 } else { (sum / LN_2 as f64 * UNIT as f64).min(32.0) };
        let per_nanobit = halvings / (mean_packet as f64 * 8.0 * 1e9);
        self.decay = (per_nanobit * UNIT as f64 * UNIT as f64 * UNIT as f64) as u64;
    }

    /// Sets ARED's weight 1 − e^(−1/C), where C is the number of mean packets that `rate` sends per second:
    /// the average has a time constant of one second at any rate.
    pub(super) fn set_weight_for(&mut self, rate: Rate, mean_packet: u64) {
        if rate == Rate::UNLIMITED || rate == Rate::STALLED {
            // No queue, or no transmission: the weight does not matter.
            return;
        }
        let x = (u128::from(mean_packet * 8) * u128::from(WHOLE_WEIGHT) / u128::from(rate.0)) as u64;
        self.weight = if x < WHOLE_WEIGHT >> 8 {
            // x − x²/2 + x³/6; the rest is less than 3·10⁻⁹ of it.
            let square = (u128::from(x) * u128::from(x)) >> 48;
            x - (square / 2) as u64 + ((square * u128::from(x) / 6) >> 48) as u64
        } else {
            let halvings = (u128::from(x) * 6_196_328_018) >> 48;
            WHOLE_WEIGHT - scaled(WHOLE_WEIGHT, u64::try_from(halvings).unwrap_or(u64::MAX))
        };
        self.decay = (LOG2_E_PER_NANO / u128::from(rate.0)) as u64;
    }

    /// Multiplies the average by `factor / divisor`, for another unit of length.
    pub(super) fn scale(&mut self, factor: u64, divisor: u64) {
        let scaled = u128::from(self.value) * u128::from(factor) / u128::from(divisor);
        self.value = scaled.min(u128::from(LONGEST) << 32) as u64;
    }

    /// The average, in steps of 2⁻³².
    #[inline]
    pub(super) fn value(&self) -> u64 {
        self.value
    }

    /// Adds the queue length at an arrival.
    #[inline]
    pub(super) fn arrival(&mut self, now: Nanos, length: u64, rate: Rate) {
        if length == 0 {
            self.value = self.faded(now, rate);
            self.idle_since = now;
        } else {
            self.observe(length);
        }
    }

    /// avg ← (1 − w)·avg + w·q.
    #[inline]
    pub(super) fn observe(&mut self, length: u64) {
        let difference = (length.min(LONGEST) << 32) as i64 - self.value as i64;
        self.value =
            (self.value as i64 + ((i128::from(difference) * i128::from(self.weight)) >> 48) as i64) as u64;
    }

    /// Records that the queue became empty, unless that was recorded later.
    #[inline]
    pub(super) fn idle(&mut self, now: Nanos) {
        self.idle_since = self.idle_since.max(now);
    }

    /// The average if the queue stays empty until `now`: avg·(1 − w)^m, where m is the number of mean packets
    /// that could have been sent; m may have a fraction.
    pub(super) fn faded(&self, now: Nanos, rate: Rate) -> u64 {
        if self.value == 0 {
            return 0;
        }
        let nanobits = u128::from(now.since(self.idle_since).0) * u128::from(rate.0);
        let halvings = nanobits.saturating_mul(self.decay.into()) >> 64;
        scaled(self.value, u64::try_from(halvings).unwrap_or(u64::MAX))
    }
}

/// value · 2^(−halvings), `halvings` in steps of 2⁻³²; within 10⁻⁸ of it and rounded down.
fn scaled(value: u64, halvings: u64) -> u64 {
    let whole = halvings >> 32;
    if whole >= 64 {
        return 0;
    }
    let entry = u128::from(POWERS[(halvings >> 24 & 0xff) as usize]);
    // Between two entries 2^(−x) = e^(−y) ≈ 1 − y + y²/2, where y < 0.0028.
    let y = u128::from((halvings & 0xff_ffff) * LN_2);
    let factor = entry - ((entry * (y - ((y * y) >> 65))) >> 64);
    (((u128::from(value) * factor) >> 63) >> whole) as u64
}

/// 2^(−i/256) in steps of 2⁻⁶³.
const POWERS: [u64; 256] = {
    /// 2^(−1/256) in steps of 2⁻⁶⁴.
    const ROOT: u128 = 18_396_865_112_328_554_661;
    let mut powers = [1 << 63; 256];
    let mut at = 1;
    while at < 256 {
        powers[at] = ((powers[at - 1] as u128 * ROOT) >> 64) as u64;
        at += 1;
    }
    powers
};

#[cfg(test)]
mod tests {
    use super::*;

    fn as_f64(value: u64) -> f64 {
        value as f64 / UNIT as f64
    }

    fn average(millionths: u64) -> Average {
        let mut average = Average::default();
        average.set_weight(millionths, 500);
        average
    }

    /// A weight of ½: each line is half the last average and half the length found.
    #[test]
    fn follows_the_length_found() {
        let mut average = average(500_000);
        for (length, wanted) in [(1, 0.5), (8, 4.25), (8, 6.125), (1, 3.5625), (100, 51.78125)] {
            average.arrival(Nanos(0), length, Rate(1));
            assert_eq!(as_f64(average.value()), wanted, "after {length}");
        }
    }

    /// 500 bytes at 4 Mbit/s take 1 ms; with a weight of ½ the average halves in each.
    #[test]
    fn falls_while_idle() {
        let mut average = average(500_000);
        average.arrival(Nanos(0), 64, Rate(4_000_000));
        assert_eq!(as_f64(average.value()), 32.0);
        average.idle(Nanos::from_millis(10));
        // (arrival in ms, average): 2 ms, then another 3, then half a packet's time: √½, then an hour.
        for (at, wanted) in [(12_000, 8.0), (15_000, 1.0), (15_500, 0.5f64.sqrt()), (3_600_000_000, 0.0)] {
            average.arrival(Nanos::from_micros(at), 0, Rate(4_000_000));
            assert!((as_f64(average.value()) - wanted).abs() < 1e-7, "{at}: {}", as_f64(average.value()));
        }
    }

    /// (1 − 0.002)^m by repeated multiplication, m the idle time in packets of 500 bytes at 4 Mbit/s.
    #[test]
    fn falls_by_the_weight() {
        for m in [1, 10, 346, 2000] {
            let mut average = average(2000);
            average.value = 50 << 32;
            average.arrival(Nanos::from_millis(m), 0, Rate(4_000_000));
            let wanted = (0..m).fold(50.0, |value, _| value * 0.998);
            assert!((as_f64(average.value()) / wanted - 1.0).abs() < 1e-7, "{m}");
        }
        let mut average = average(2000);
        average.value = 50 << 32;
        average.arrival(Nanos::from_millis(1), 0, Rate::STALLED);
        assert_eq!(average.value(), 50 << 32, "a link that sends nothing is not idle");
        average.arrival(Nanos::from_millis(2), 0, Rate::UNLIMITED);
        assert_eq!(average.value(), 0);
    }

    /// ARED's weight: 1 − e^(−1/C), here from its series, and an average that decays by e each second.
    #[test]
    fn weights_for_a_rate() {
        for rate in [300, 8_000, 1_000_000, 10_000_000_000, 400_000_000_000] {
            let mut average = Average::default();
            average.set_weight_for(Rate(rate), 500);
            let x = 4000.0 / rate as f64;
            let mut wanted = 0.0;
            let mut term = -1.0;
            for n in 1..200 {
                term *= -x / f64::from(n);
                wanted += term;
            }
            let weight = average.weight as f64 / WHOLE_WEIGHT as f64;
            // 2⁻⁴⁸ is the step: at 400 Gbit/s a ten-millionth of the weight.
            assert!((weight / wanted - 1.0).abs() < 1e-6, "{rate}: {weight} {wanted}");
            average.value = 1000 << 32;
            assert!((as_f64(average.faded(Nanos::from_secs(1), Rate(rate))) - 367.879441).abs() < 1e-3);
        }
    }

    #[test]
    fn powers_of_two() {
        for eighths in 0..200u64 {
            let wanted = (0..eighths).fold(1e9, |value, _| value * 0.917_004_043_204_671_2);
            assert!((scaled(1_000_000_000, eighths << 29) as f64 - wanted).abs() < 10.0, "{eighths}");
        }
        assert_eq!(scaled(u64::MAX, u64::MAX), 0);
        assert_eq!(scaled(u64::MAX, 0), u64::MAX);
    }
}
