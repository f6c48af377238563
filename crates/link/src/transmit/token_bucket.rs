//! A rate with a burst.

use super::framing::{BYTE, FRAMING_PARAM, Framing, Layer, OVERHEAD_PARAM};
use super::{Ahead, Sender};
use longwire_block::{Block, Dice};
use longwire_settings::Settings;
use longwire_units::{Bytes, Nanos, Rate};

/// Tokens arrive at a rate in a bucket of burst size. A packet begins when there are tokens for all its
/// bytes, and is then sent at the peak rate.
///
/// Tokens are in bits · 10⁹: a rate of r bit/s adds r of them per nanosecond. The time at which there are
/// enough is rounded down; the missing part becomes a debt, and delays what is sent at the peak, so that
/// rounding errors never accumulate. A packet larger than the burst begins when the bucket is full and owes
/// the rest (tc-tbf drops it): the long-term rate is exact for any packet sizes. The bucket is full at the
/// start.
#[derive(Debug, Default)]
pub struct TokenBucket {
    framing: Framing,
    rate: u64,
    peak: u64,
    /// Size of the bucket in tokens.
    burst: i64,
    state: BucketState,
    ahead: Ahead<BucketState>,
}

/// Its tokens, and the packet being sent.
#[derive(Debug, Clone, Copy, Default)]
struct BucketState {
    /// Tokens at `stamp`; negative for a debt.
    tokens: i64,
    stamp: Nanos,
    /// The tokens and their time before those of the packet being sent were taken, while it may still wait
    /// for them.
    before: (i64, Nanos),
    /// Beginning of the packet being sent, or the time up to which it is settled.
    start: Nanos,
    /// Remaining work at `start`, `late` included.
    work: u64,
    /// Work that could be sent between `start`, which is rounded down, and the exact beginning.
    late: u64,
    finish: Nanos,
    /// Whether the packet being sent has its tokens at `start`.
    is_paid: bool,
}

/// Largest burst: its tokens fit 63 bits.
const MAX_BURST: Bytes = Bytes(1_000_000_000);

/// Sends at a mean rate, and bursts at once or at a peak rate.
#[derive(Debug, Settings)]
#[settings(
    key = "rate",
    kind = "token-bucket",
    source = "RFC 2697, section 3 (the committed bucket); tc-tbf(8)",
    live
)]
pub struct TokenBucketSettings {
    /// the token rate: 300 bit/s to 400 Gbit/s, 0 for none, or unlimited
    rate: Rate,
    /// size of the bucket, 1 B to 1 GB; a larger packet starts when the bucket is full
    #[setting(min = Bytes(1), max = MAX_BURST)]
    burst: Bytes,
    /// the rate at which a packet with tokens is sent
    #[setting(default = "unlimited")]
    peak: Rate,
    #[setting(like = FRAMING_PARAM)]
    layer: Layer,
    #[setting(like = OVERHEAD_PARAM)]
    overhead: u64,
}

impl Block for TokenBucket {
    type Settings = TokenBucketSettings;

    fn build(settings: TokenBucketSettings, _: Dice) -> Self {
        let state = BucketState { tokens: i64::MAX, is_paid: true, ..BucketState::default() };
        Self { state, ..Self::default() }.with(settings)
    }

    /// Applies new rates to every bit not yet sent; a smaller bucket loses the excess tokens.
    fn change(&mut self, settings: TokenBucketSettings) {
        (self.rate, self.peak) = (settings.rate.0, settings.peak.0);
        self.burst = (settings.burst.0.min(MAX_BURST.0) * BYTE) as i64;
        self.framing = Framing::of(settings.layer, settings.overhead);
        self.state.tokens = self.state.tokens.min(self.burst);
        if self.state.is_paid {
            self.compute_finish();
        } else {
            self.pay(self.state.start, 0);
        }
    }
}

impl Sender for TokenBucket {
    #[inline]
    fn framing(&self) -> Framing {
        self.framing
    }

    #[inline]
    fn begin(&mut self, start: Nanos, bytes: u64) {
        self.state.work = bytes * BYTE;
        self.pay(start, 0);
        self.look_ahead();
    }

    #[inline]
    fn follow(&mut self, finish: Nanos, bytes: u64) {
        self.ahead.leave_behind(&self.state);
        let rest = match self.peak {
            0 | u64::MAX => 0,
            peak => self.state.work - (finish - self.state.start).0 * peak,
        };
        self.state.work = bytes * BYTE;
        self.pay(finish, rest);
    }

    #[inline]
    fn finish(&self) -> Nanos {
        self.state.finish
    }

    fn settle(&mut self, now: Nanos) {
        if now < self.state.start {
            // It still waits for its tokens, which were not taken yet.
            (self.state.tokens, self.state.stamp) = self.state.before;
            self.state.work -= self.state.late;
            self.state.is_paid = false;
            self.state.start = now;
        } else {
            let sent = u128::from((now - self.state.start).0) * u128::from(self.peak);
            self.state.work -= sent.min(self.state.work.into()) as u64;
            self.state.is_paid = true;
            self.state.start = now;
        }
        self.fill(now);
    }

    #[inline]
    fn rate(&self) -> Rate {
        Rate(self.rate.min(self.peak))
    }

    #[inline]
    fn foresees(&self) -> bool {
        self.rate != 0 && self.peak != 0
    }

    #[inline]
    fn look_ahead(&mut self) {
        self.ahead.is_ahead = false;
    }

    #[inline]
    fn pass(&mut self, finish: Nanos, bytes: u64) {
        std::mem::swap(&mut self.state, &mut self.ahead.behind);
        self.follow(finish, bytes);
        std::mem::swap(&mut self.state, &mut self.ahead.behind);
    }

    fn go_back(&mut self, _now: Nanos, _first: Nanos, _last: Nanos, _behind: u64) {
        self.ahead.go_back(&mut self.state);
    }

    fn work_left(&self) -> u64 {
        self.state.work
    }

    /// The rest of a packet begun by another transmitter takes tokens like a packet of that size.
    fn take_over(&mut self, now: Nanos, work: u64) {
        self.state.work = work;
        self.pay(now, 0);
    }
}

impl TokenBucket {
    /// Takes the tokens for `work` as soon as there are enough from `earliest` on, and begins to send then.
    /// At `earliest`, which is rounded down, `rest` of the packet before is still to be sent.
    #[inline]
    fn pay(&mut self, earliest: Nanos, rest: u64) {
        self.fill(earliest);
        if rest > 0 {
            self.spill(rest);
        }
        self.state.before = (self.state.tokens, self.state.stamp);
        let missing = (self.state.work as i64).min(self.burst) - self.state.tokens;
        (self.state.start, self.state.late) = (earliest, rest);
        if missing > 0 {
            if self.rate == 0 {
                (self.state.start, self.state.finish, self.state.is_paid) =
                    (Nanos::NEVER, Nanos::NEVER, false);
                self.state.late = 0;
                return;
            }
            let wait = Nanos(missing as u64 / self.rate);
            self.state.start = earliest + wait;
            self.state.tokens += (wait.0 * self.rate) as i64;
            self.state.stamp = self.state.start;
            let late = self.late(missing as u64 - wait.0 * self.rate);
            self.state.late = if wait == Nanos::ZERO { late.max(rest) } else { late };
        }
        self.state.tokens -= self.state.work as i64;
        self.state.work += self.state.late;
        self.state.is_paid = true;
        self.compute_finish();
    }

    /// The work that could be sent while these tokens come, which take less than a nanosecond.
    #[inline]
    fn late(&self, tokens: u64) -> u64 {
        match self.peak {
            0 | u64::MAX => 0,
            peak => (u128::from(tokens) * u128::from(peak) / u128::from(self.rate)) as u64,
        }
    }

    /// A bucket that is full before `rest` is sent, within the nanosecond, loses what comes after that.
    #[inline]
    fn spill(&mut self, rest: u64) {
        if self.rate != u64::MAX {
            let come = (u128::from(rest) * u128::from(self.rate) / u128::from(self.peak)) as i64;
            self.state.tokens -= (self.state.tokens + come - self.burst).max(0);
        }
    }

    /// Adds the tokens up to `now`.
    #[inline]
    fn fill(&mut self, now: Nanos) {
        let room = (self.burst - self.state.tokens) as u64;
        let come = u128::from(now.since(self.state.stamp).0) * u128::from(self.rate);
        self.state.tokens =
            if self.rate == u64::MAX { self.burst } else { self.state.tokens + come.min(room.into()) as i64 };
        self.state.stamp = self.state.stamp.max(now);
    }

    #[inline]
    fn compute_finish(&mut self) {
        self.state.finish = match self.peak {
            0 => Nanos::NEVER,
            u64::MAX => self.state.start,
            peak => self.state.start + Nanos(self.state.work / peak),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bucket(rate: &str, burst: &str, peak: &str) -> TokenBucket {
        TokenBucket::build(values(rate, burst, peak), Dice::named(0, ""))
    }

    fn values(rate: &str, burst: &str, peak: &str) -> TokenBucketSettings {
        let given = [("rate", rate), ("burst", burst), ("peak", peak), ("framing", "ip")];
        TokenBucketSettings::read(&given).unwrap()
    }

    /// 1000 bytes are 8 ms at 1 Mbit/s and 1 ms at 8 Mbit/s; in a millisecond come 125 bytes of tokens.
    #[test]
    fn packets_wait_for_tokens() {
        for (burst, peak, ends) in [
            ("2 kB", "unlimited", [0, 0, 8, 16, 24]),
            // The second begins at 1 ms with 1125 bytes of tokens; at 2 ms 250 are left, and 750 take 6 ms to
            // come.
            ("2 kB", "8 Mbit/s", [1, 2, 9, 17, 25]),
            // Larger than the burst: it begins when the bucket is full, and the next when 500 owed and 500
            // more have arrived.
            ("500 B", "unlimited", [0, 8, 16, 24, 32]),
            ("1 B", "unlimited", [0, 8, 16, 24, 32]),
            // A peak below the rate is the limit.
            ("2 kB", "500 kbit/s", [16, 32, 48, 64, 80]),
        ] {
            let mut link = bucket("1 Mbit/s", burst, peak);
            link.begin(Nanos::ZERO, 1000);
            for end in ends {
                assert_eq!(link.finish(), Nanos::from_millis(end), "burst {burst}, peak {peak}");
                crate::transmit::follow(&mut link, 1000);
            }
        }
    }

    #[test]
    fn a_pause_fills_the_bucket_to_its_brim() {
        let mut link = bucket("1 Mbit/s", "2 kB", "unlimited");
        link.begin(Nanos::ZERO, 2000);
        // (start in ms, bytes, finish in ms): 8 ms bring 1000 bytes, an hour brings 2000.
        for (start, bytes, finish) in [
            (8, 1000, 8),
            (12, 1000, 16),
            (3_600_000, 1000, 3_600_000),
            (3_600_000, 1000, 3_600_000),
            (3_600_000, 1000, 3_600_008),
        ] {
            link.begin(Nanos::from_millis(start), bytes);
            assert_eq!(link.finish(), Nanos::from_millis(finish), "{start}");
        }
    }

    #[test]
    fn outages_and_no_limits() {
        let mut link = bucket("0", "2 kB", "unlimited");
        link.begin(Nanos(5), 2000);
        assert_eq!(link.finish(), Nanos(5));
        crate::transmit::follow(&mut link, 1);
        assert_eq!(link.finish(), Nanos::NEVER);
        link.settle(Nanos::from_secs(1));
        assert_eq!(link.work_left(), BYTE);
        link.change(values("8 kbit/s", "2 kB", "unlimited"));
        assert_eq!(link.finish(), Nanos::from_secs(1) + Nanos::from_millis(1));

        let mut link = bucket("unlimited", "1 B", "8 Mbit/s");
        link.begin(Nanos(0), 1000);
        crate::transmit::follow(&mut link, 1000);
        assert_eq!((link.finish(), link.rate()), (Nanos::from_millis(2), Rate(8_000_000)));
        let mut link = bucket("1 Mbit/s", "2 kB", "0");
        link.begin(Nanos(0), 1000);
        assert_eq!(link.finish(), Nanos::NEVER);
    }

    /// A packet that waits for its tokens gets them at the new rate, and one that has them is sent at the new
    /// peak.
    #[test]
    fn a_change_takes_every_bit_not_yet_sent() {
        let mut link = bucket("1 Mbit/s", "1 kB", "unlimited");
        link.begin(Nanos::ZERO, 1000);
        crate::transmit::follow(&mut link, 1000);
        assert_eq!(link.finish(), Nanos::from_millis(8));
        link.settle(Nanos::from_millis(4));
        link.change(values("2 Mbit/s", "1 kB", "unlimited"));
        assert_eq!(link.finish(), Nanos::from_millis(6));

        let mut link = bucket("1 Mbit/s", "2 kB", "1 Mbit/s");
        link.begin(Nanos::ZERO, 1000);
        link.settle(Nanos::from_millis(4));
        link.change(values("1 Mbit/s", "2 kB", "2 Mbit/s"));
        assert_eq!(link.finish(), Nanos::from_millis(6));
        // A smaller bucket has lost the excess: 1000 and 4 ms · 125 bytes were there, now 100. At 6 ms it is
        // still full, and a packet of 200 owes 100.
        link.settle(Nanos::from_millis(4));
        link.change(values("1 Mbit/s", "100 B", "unlimited"));
        link.begin(Nanos::from_millis(6), 200);
        assert_eq!(link.finish(), Nanos::from_millis(6));
        crate::transmit::follow(&mut link, 100);
        assert_eq!(link.finish(), Nanos::from_millis(6) + Nanos::from_micros(1600));
    }

    /// The bucket is empty at 0. By 4 ms 500 bytes have come at 1 Mbit/s; the other 500 take 2 ms at 2
    /// Mbit/s.
    #[test]
    fn tokens_that_came_before_a_change_have_come() {
        let mut link = bucket("1 Mbit/s", "1 kB", "unlimited");
        link.begin(Nanos::ZERO, 1000);
        link.settle(Nanos::from_millis(4));
        link.change(values("2 Mbit/s", "1 kB", "unlimited"));
        link.begin(Nanos::from_millis(5), 1000);
        assert_eq!(link.finish(), Nanos::from_millis(6));
    }

    /// A million packets of 64 bytes at 2 999 999 999 bit/s and a burst of one: the k-th begins when k of
    /// them would be sent.
    #[test]
    fn rounding_never_accumulates() {
        let mut link = bucket("2999999999 bit/s", "64 B", "unlimited");
        link.begin(Nanos::ZERO, 64);
        for k in 0..1_000_000u64 {
            assert_eq!(link.finish(), Nanos(k * 64 * BYTE / 2_999_999_999), "packet {k}");
            crate::transmit::follow(&mut link, 64);
        }
    }

    proptest! {
        /// Against exact fractions of a nanosecond: times and tokens in 128 bits, in units of 1/rate ns.
        #[test]
        fn equals_exact_arithmetic_and_conforms(
            rate in 300u64..4_000_000_000,
            burst in 1u64..20_000,
            packets in prop::collection::vec((prop_oneof![Just(0u64), 0u64..100_000, 0u64..50_000_000],
                1u64..9000), 1..60),
        ) {
            let mut link = bucket(&format!("{rate} bit/s"), &format!("{burst} B"), "unlimited");
            let (r, brim) = (i128::from(rate), i128::from(burst * BYTE));
            let (mut tokens, mut at, mut arrival, mut starts) = (brim, 0i128, 0u64, Vec::new());
            for (index, &(gap, bytes)) in packets.iter().enumerate() {
                arrival += gap;
                if index == 0 || Nanos(arrival) >= link.finish() {
                    link.begin(Nanos(arrival), bytes);
                } else {
                    crate::transmit::follow(&mut link, bytes);
                }
                let work = i128::from(bytes * BYTE);
                let now = at.max(i128::from(arrival) * r);
                tokens = (tokens + (now - at)).min(brim);
                let wait = (work.min(brim) - tokens).max(0);
                (tokens, at) = (tokens + wait - work, now + wait);
                prop_assert_eq!(i128::from(link.finish().0), at / r);
                starts.push((link.finish().0, bytes, work));
            }
            // In any interval at most the burst and the arrived tokens are used, except for a nanosecond's
            // tokens of rounding.
            for (first, &(from, ..)) in starts.iter().enumerate() {
                let mut sent = 0;
                for &(until, bytes, work) in &starts[first..] {
                    if bytes > burst {
                        break;
                    }
                    sent += work;
                    prop_assert!(sent <= brim + r * (i128::from(until - from) + 1));
                }
            }
        }

        /// With a peak, in units of 1/(rate · peak) ns, in which a token times the peak comes.
        #[test]
        fn equals_exact_arithmetic_with_a_peak(
            (rate, peak) in (300u64..4_000_000_000, 300u64..4_000_000_000),
            burst in 1u64..20_000,
            packets in prop::collection::vec((prop_oneof![Just(0u64), 0u64..100_000, 0u64..50_000_000],
                1u64..9000), 1..60),
        ) {
            let mut link = bucket(&format!("{rate} bit/s"), &format!("{burst} B"), &format!("{peak} bit/s"));
            let (r, p) = (i128::from(rate), i128::from(peak));
            let brim = i128::from(burst * BYTE) * p;
            // The tokens at a time, the exact end of the last packet, and its arrival.
            let (mut tokens, mut stamp, mut end, mut arrival) = (brim, 0i128, 0i128, 0u64);
            for (index, &(gap, bytes)) in packets.iter().enumerate() {
                arrival += gap;
                let now = if index == 0 || Nanos(arrival) >= link.finish() {
                    link.begin(Nanos(arrival), bytes);
                    i128::from(arrival) * r * p
                } else {
                    crate::transmit::follow(&mut link, bytes);
                    end
                };
                let work = i128::from(bytes * BYTE);
                tokens = (tokens + now - stamp).min(brim);
                let wait = ((work * p).min(brim) - tokens).max(0);
                stamp = now + wait;
                (tokens, end) = (tokens + wait - work * p, stamp + work * r);
                prop_assert_eq!(i128::from(link.finish().0), end / (r * p), "packet {}", index);
            }
        }
    }
}
