//! The offset between the clocks of two machines, from probes and their answers (RFC 5905, section 8), and
//! bounds of its error.
//!
//! An exchange bounds the offset: whatever the way there and the way back took, the error is at most half the
//! round trip. The exchange with the tightest bound is used, and each bound grows with time, because the
//! clocks drift apart.

/// The four times of a probe and its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// When the probe was sent, on the own clock.
    pub sent: u64,
    /// When it came to the peer, on the peer's clock.
    pub came: u64,
    /// When the peer answered, on the peer's clock.
    pub answered: u64,
    /// When the answer came, on the own clock.
    pub back: u64,
}

/// Exchanges that are kept.
const KEPT: usize = 64;
/// Clocks drift apart by at most one part in so many: two crystals of 50 ppm each.
const DRIFT: u64 = 10_000;
/// Nanoseconds lost by rounding.
const ROUNDING: u64 = 2;
/// Answers to older probes are not used.
const OLDEST: u64 = 10_000_000_000;

/// What an exchange says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sample {
    /// Peer's clock minus own clock.
    offset: i64,
    /// Bound of its error at that time: half the round trip, and the drift during the exchange.
    bound: u64,
    round_trip: u64,
    /// When it was made, on the own clock.
    at: u64,
}

impl Sample {
    fn of(exchange: &Exchange) -> Option<Self> {
        let &Exchange { sent, came, answered, back } = exchange;
        let away = back.checked_sub(sent).filter(|away| *away <= OLDEST)?;
        let round_trip = away.checked_sub(answered.checked_sub(came)?)?;
        let there = i128::from(came) - i128::from(sent);
        let here = i128::from(answered) - i128::from(back);
        let offset = i64::try_from((there + here) / 2).ok()?;
        let bound = round_trip / 2 + away / DRIFT + ROUNDING;
        Some(Self { offset, bound, round_trip, at: back })
    }

    fn error(&self, now: u64) -> u64 {
        self.bound + now.saturating_sub(self.at) / DRIFT
    }
}

/// See the module.
#[derive(Debug, Clone, Default)]
pub struct ClockOffset {
    samples: Vec<Sample>,
    /// The place of the next sample, if all places are taken.
    next: usize,
    best: Option<Sample>,
    jumps: u64,
}

impl ClockOffset {
    /// Learns from an exchange. One that contradicts itself is ignored.
    pub fn add(&mut self, exchange: &Exchange) {
        let Some(sample) = Sample::of(exchange) else { return };
        let now = sample.at;
        if let Some(best) = self.best
            && best.offset.abs_diff(sample.offset) > best.error(now) + sample.bound
        {
            // Both can't be right: one of the clocks was set, or stood still.
            self.jumps += 1;
            self.samples.clear();
            self.next = 0;
        }
        if self.samples.len() < KEPT {
            self.samples.reserve_exact(KEPT - self.samples.len());
            self.samples.push(sample);
        } else {
            self.samples[self.next] = sample;
            self.next = (self.next + 1) % KEPT;
        }
        self.best = self.samples.iter().min_by_key(|sample| sample.error(now)).copied();
    }

    /// A time of the peer's clock on the own clock. None before the first exchange.
    #[inline]
    pub fn to_own(&self, peer: u64) -> Option<u64> {
        self.best.map(|best| peer.wrapping_sub(best.offset as u64))
    }

    /// The peer's clock minus the own clock.
    pub fn offset(&self) -> Option<i64> {
        self.best.map(|best| best.offset)
    }

    /// The largest possible error of the offset at `now`.
    pub fn error(&self, now: u64) -> Option<u64> {
        self.best.map(|best| best.error(now))
    }

    /// The least round trip among the exchanges that are kept.
    pub fn round_trip(&self) -> Option<u64> {
        self.samples.iter().map(|sample| sample.round_trip).min()
    }

    /// How often one of the clocks was set, or stood still.
    pub fn jumps(&self) -> u64 {
        self.jumps
    }

    /// Forgets all exchanges: another clock is at the other end.
    pub(crate) fn forget(&mut self) {
        self.samples.clear();
        (self.next, self.best) = (0, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MILLI: u64 = 1_000_000;

    /// A peer whose clock is ahead by an offset and gains `ppm` on the own one.
    struct Peer {
        ahead: u64,
        ppm: u64,
    }

    impl Peer {
        fn clock(&self, own: u64) -> u64 {
            own + self.ahead + own * self.ppm / 1_000_000
        }

        /// A probe sent at `now`: the times there, at the peer, and back.
        fn exchange(&self, now: u64, times: [u64; 3]) -> Exchange {
            let [there, stay, back] = times;
            Exchange {
                sent: now,
                came: self.clock(now + there),
                answered: self.clock(now + there + stay),
                back: now + there + stay + back,
            }
        }
    }

    proptest! {
        /// Whatever the ways take, the estimate is wrong by no more than its bound.
        #[test]
        fn the_error_is_within_its_bound(
            ahead in 0u64..1 << 50,
            ppm in 0u64..90,
            times in prop::collection::vec([0..MILLI, 0..MILLI, 0..MILLI], 1..200),
        ) {
            let peer = Peer { ahead, ppm };
            let mut clock = ClockOffset::default();
            let mut now = 5_000 * MILLI;
            for time in times {
                let exchange = peer.exchange(now, time);
                clock.add(&exchange);
                for later in [exchange.back, exchange.back + 20 * MILLI] {
                    let own = clock.to_own(peer.clock(later)).unwrap();
                    let bound = clock.error(later).unwrap();
                    prop_assert!(own.abs_diff(later) <= bound, "{own} {later} {bound}");
                }
                now += 25 * MILLI;
            }
            prop_assert_eq!(clock.jumps(), 0);
        }
    }

    #[test]
    fn the_fastest_exchange_is_used_until_it_is_old() {
        let peer = Peer { ahead: 7_000, ppm: 0 };
        let mut clock = ClockOffset::default();
        clock.add(&peer.exchange(MILLI, [10_000, 0, 10_000]));
        clock.add(&peer.exchange(2 * MILLI, [500_000, 0, 100_000]));
        assert_eq!((clock.offset(), clock.round_trip()), (Some(7_000), Some(20_000)));
        assert_eq!(clock.error(2 * MILLI + 20_000), Some(10_004 + 100));
        // After 4 s at 100 ppm the bound of the first has grown by 400 us.
        clock.add(&peer.exchange(4_000 * MILLI, [300_000, 0, 100_000]));
        assert_eq!(clock.offset(), Some(7_000 + 100_000));
    }

    #[test]
    fn a_clock_that_jumps_is_noticed_and_followed() {
        let mut peer = Peer { ahead: 1_000, ppm: 0 };
        let mut clock = ClockOffset::default();
        for (at, ahead, jumps) in [(1, 1_000, 0), (2, 1_000, 0), (3, 5_000_000, 1), (4, 40, 2)] {
            peer.ahead = ahead;
            clock.add(&peer.exchange(at * MILLI, [9_000, 3_000, 9_000]));
            assert_eq!((clock.offset(), clock.jumps()), (Some(ahead as i64), jumps));
        }
    }

    #[test]
    fn exchanges_that_contradict_themselves_are_ignored() {
        let mut clock = ClockOffset::default();
        let right = Exchange { sent: 1_000, came: 5_000, answered: 5_100, back: 1_300 };
        for wrong in [
            Exchange { back: 999, ..right },
            Exchange { answered: 4_999, ..right },
            Exchange { answered: 5_301, ..right },
            Exchange { back: 1_000 + OLDEST + 1, ..right },
            Exchange { sent: 0, came: u64::MAX, answered: u64::MAX, back: 0 },
        ] {
            clock.add(&wrong);
            assert_eq!((clock.offset(), clock.error(0)), (None, None), "{wrong:?}");
        }
        clock.add(&right);
        assert_eq!((clock.offset(), clock.to_own(5_100)), (Some(3_900), Some(1_200)));
        clock.forget();
        assert_eq!(clock.to_own(5_100), None);
    }
}
