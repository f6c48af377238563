//! Rates of a link over time.

use crate::{Cursor, End, Opportunities, Series};
use longwire_units::{Nanos, Rate};

/// A rate trace: rates that hold for a while, or opportunities to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rates {
    /// Rates that hold from one time to the next.
    Steps(Steps),
    /// Times at which a fixed number of bytes can be sent at once.
    Opportunities(Opportunities),
}

impl Rates {
    /// The mean rate of one round of the trace, rounded down; unlimited if it ever is.
    pub fn mean(&self) -> Rate {
        match self {
            Self::Steps(steps) => steps.mean(),
            Self::Opportunities(opportunities) => opportunities.mean(),
        }
    }

    /// The highest rate at any time of the trace; for opportunities, in any millisecond.
    pub fn highest(&self) -> Rate {
        match self {
            Self::Steps(steps) => steps.highest(),
            Self::Opportunities(opportunities) => opportunities.highest(),
        }
    }
}

/// Rates that hold from one time to the next, with precomputed data for exact transmission.
///
/// Work is in bits · 10⁹: a rate of r bit/s does r of it per nanosecond.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Steps {
    pub(crate) series: Series<Rate>,
    /// The work of one round; the maximum if there is an unlimited step.
    round: u128,
}

/// When work is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finish {
    /// The time, rounded down; [`Nanos::NEVER`] if it never completes.
    pub at: Nanos,
    /// The remaining work after rounding.
    pub rest: u64,
}

impl Steps {
    /// Makes steps from the rates of `series`.
    pub fn new(series: Series<Rate>) -> Self {
        let work = |sum: u128, (span, rate): (Nanos, Rate)| match rate {
            Rate::UNLIMITED => u128::MAX,
            Rate(rate) => sum.saturating_add(u128::from(span.0) * u128::from(rate)),
        };
        let round = series.spans().fold(0, work);
        Self { series, round }
    }

    /// Whether work that begins at any time completes within the range of the clock: no outage lasts for
    /// ever, and the mean is at least 1 bit/s.
    pub fn goes_on(&self, end: End) -> bool {
        match end {
            End::Loop => self.mean() != Rate::STALLED,
            End::Hold => self.series.spans().last().is_some_and(|(_, rate)| rate != Rate::STALLED),
            End::Clear => true,
        }
    }

    /// Completion time of `work` that begins at `start`: the earliest time by which the rates have done it,
    /// rounded down to a nanosecond. `cursor` is left there. Any number of steps and outages is followed;
    /// whole rounds of a loop are skipped.
    #[inline]
    pub fn finish(&self, cursor: &mut Cursor, start: Nanos, work: u64) -> Finish {
        if let Some(rate) = cursor.value_at(&self.series, start)
            && rate != Rate::UNLIMITED
            && rate != Rate::STALLED
            && work <= rate.0.saturating_mul((cursor.next_change() - start).0)
        {
            // The common case: the work completes within the step.
            let whole = work / rate.0;
            return Finish { at: start + Nanos(whole), rest: work - whole * rate.0 };
        }
        self.finish_across(cursor, start, work)
    }

    /// Slow path of [`Steps::finish`]: follows the work across steps.
    #[inline(never)]
    fn finish_across(&self, cursor: &mut Cursor, start: Nanos, work: u64) -> Finish {
        let (mut at, mut work) = (start, work);
        loop {
            let Some(rate) = cursor.value_at(&self.series, at) else { return Finish { at, rest: 0 } };
            if rate == Rate::UNLIMITED {
                return Finish { at, rest: 0 };
            }
            let until = cursor.next_change();
            let capacity = u128::from((until - at).0) * u128::from(rate.0);
            if rate != Rate::STALLED && u128::from(work) <= capacity {
                let whole = work / rate.0;
                return Finish { at: at + Nanos(whole), rest: work - whole * rate.0 };
            }
            if until == Nanos::NEVER {
                return Finish { at: until, rest: work };
            }
            // Less than the work, which has 64 bits.
            work -= capacity as u64;
            at = until;
            if cursor.end() == End::Loop && at.since(cursor.round()) == self.series.length() {
                match self.skip(at, work) {
                    Some(skipped) => (at, work) = skipped,
                    None => return Finish { at: Nanos::NEVER, rest: work },
                }
            }
        }
    }

    /// The work done from `from` to `until`, at most `most`.
    pub fn done(&self, cursor: &mut Cursor, from: Nanos, until: Nanos, most: u64) -> u64 {
        let (mut at, mut done) = (from, 0u128);
        while at < until && done < u128::from(most) {
            let rate = match cursor.value_at(&self.series, at) {
                None | Some(Rate::UNLIMITED) => return most,
                Some(rate) => rate,
            };
            let rounds = (until - at).0 / self.series.length().0;
            if rounds > 0 && cursor.end() == End::Loop && cursor.round() == at {
                done = done.saturating_add(self.round.saturating_mul(rounds.into()));
                at += Nanos(rounds * self.series.length().0);
                continue;
            }
            let end = cursor.next_change().min(until);
            done += u128::from((end - at).0) * u128::from(rate.0);
            at = end;
        }
        done.min(most.into()) as u64
    }

    /// Skips the whole rounds that `work` takes, from the beginning of a round at `at`. None if it takes for
    /// ever.
    fn skip(&self, at: Nanos, work: u64) -> Option<(Nanos, u64)> {
        let whole = u128::from(work.saturating_sub(1)).checked_div(self.round)? as u64;
        let time = self.series.length().0.checked_mul(whole)?.checked_add(at.0)?;
        Some((Nanos(time), work - whole * self.round as u64))
    }

    fn mean(&self) -> Rate {
        if self.round == u128::MAX {
            return Rate::UNLIMITED;
        }
        Rate((self.round / u128::from(self.series.length().0)) as u64)
    }

    fn highest(&self) -> Rate {
        self.series.steps().iter().map(|step| step.1).max().unwrap_or(Rate::STALLED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BIT: u64 = 1_000_000_000;

    fn steps(steps: &[(u64, u64)], length: u64) -> Steps {
        let steps = steps.iter().map(|&(at, rate)| (Nanos(at), Rate(rate))).collect();
        Steps::new(Series::new(steps, Nanos(length)).unwrap())
    }

    /// 1000 bit/s for 1 s, an outage of 1 s, 2000 bit/s for 1 s: 3000 bits in a round of 3 s.
    #[test]
    fn follows_steps_outages_and_rounds() {
        let second = 1_000_000_000;
        let trace = steps(&[(0, 1000), (second, 0), (2 * second, 2000)], 3 * second);
        assert_eq!((trace.mean(), trace.highest()), (Rate(1000), Rate(2000)));
        // (end, start in ms, bits, finish in ms)
        for (end, start, bits, finish) in [
            (End::Loop, 0, 500, Some(500)),
            (End::Loop, 0, 1000, Some(1000)),
            (End::Loop, 0, 1001, Some(2000)),
            (End::Loop, 0, 3000, Some(3000)),
            (End::Loop, 1500, 2500, Some(3500)),
            (End::Loop, 0, 30_000, Some(30_000)),
            (End::Loop, 0, 30_500, Some(30_500)),
            (End::Hold, 2500, 5000, Some(5000)),
            (End::Clear, 2500, 1000, Some(3000)),
            (End::Clear, 2500, 1001, Some(3000)),
            (End::Clear, 9000, 1001, Some(9000)),
        ] {
            let got = trace.finish(&mut Cursor::new(end), Nanos::from_millis(start), bits * BIT);
            let wanted = finish.map_or(Nanos::NEVER, Nanos::from_millis);
            // One bit at 2000 bit/s is half a millisecond.
            let slack = Nanos(if bits == 1001 && end == End::Loop { second / 2000 } else { 0 });
            assert_eq!(got.at, wanted + slack, "{end:?} {start} {bits}");
        }
    }

    #[test]
    fn an_outage_for_ever_never_ends() {
        for end in [End::Loop, End::Hold] {
            let dead = steps(&[(0, 0)], 10);
            assert_eq!(dead.finish(&mut Cursor::new(end), Nanos(3), BIT).at, Nanos::NEVER);
        }
        let dies = steps(&[(0, 1000), (10, 0)], 20);
        assert_eq!(dies.finish(&mut Cursor::new(End::Hold), Nanos(3), BIT).at, Nanos::NEVER);
        assert_eq!(dies.finish(&mut Cursor::new(End::Clear), Nanos(3), BIT).at, Nanos(20));
    }

    /// One nanosecond of 300 bit/s per hour: a large packet takes more rounds than the clock can represent.
    #[test]
    fn more_rounds_than_time_are_for_ever() {
        let slow = steps(&[(0, 300), (1, 0)], 3_600_000_000_000);
        assert_eq!(slow.finish(&mut Cursor::new(End::Loop), Nanos(0), 12_000 * BIT).at, Nanos::NEVER);
        // 900 bits · 10⁻⁹: three rounds, the last of them just its first nanosecond.
        assert_eq!(slow.finish(&mut Cursor::new(End::Loop), Nanos(0), 900).at, Nanos(7_200_000_000_001));
    }

    /// An hour of rounds of 2 µs, each of 300 bit/s for 1 µs.
    #[test]
    fn what_is_done_in_many_rounds() {
        let trace = steps(&[(0, 300), (1000, 0)], 2000);
        let mut cursor = Cursor::new(End::Loop);
        let (from, until) = (Nanos(500), Nanos(3_600_000_000_500));
        assert_eq!(trace.done(&mut cursor, from, until, u64::MAX), 300 * 1_800_000_000_000);
        assert_eq!(trace.done(&mut cursor, from, until, 12_345), 12_345);
    }

    /// A trace of 10 µs per step, over 1.2 million steps of different rates: every packet finishes at the
    /// time given by the running sum of the steps' work, computed in 128 bits with one visit per step.
    #[test]
    fn follows_a_million_steps_exactly() {
        let step = 10_000;
        let rate = |k: u64| k * 2_654_435_761 % 1_000_000_007;
        let list: Vec<_> = (0..1_200_000).map(|k| (k * step, rate(k))).collect();
        let trace = steps(&list, 1_200_000 * step);
        let (mut cursor, mut from, mut rest) = (Cursor::new(End::Hold), Nanos(0), 0);
        let (mut needed, mut summed, mut k, mut packets) = (0u128, 0u128, 0u64, 0);
        loop {
            let work = (64 + packets * 7919 % 1455) * 8 * BIT;
            needed += u128::from(work);
            while k < 1_200_000 && summed + u128::from(rate(k)) * u128::from(step) < needed {
                summed += u128::from(rate(k)) * u128::from(step);
                k += 1;
            }
            if k == 1_200_000 {
                break;
            }
            let wanted = k * step + ((needed - summed) / u128::from(rate(k))) as u64;
            let got = trace.finish(&mut cursor, from, work + rest);
            assert_eq!(got.at, Nanos(wanted), "packet {packets}");
            (from, rest, packets) = (got.at, got.rest, packets + 1);
        }
        assert!(packets > 900_000, "{packets}");
    }

    /// Reference implementation: the work of all packets so far, done nanosecond by nanosecond in 128 bits.
    fn slow(trace: &Steps, end: End, start: u64, works: &[u64]) -> Vec<Option<u64>> {
        let length = trace.series.length().0;
        let rate = |at: u64| {
            let within = match end {
                End::Loop => at % length,
                End::Hold => at.min(length - 1),
                End::Clear if at >= length => return u64::MAX,
                End::Clear => at,
            };
            trace.series.steps().iter().rfind(|step| step.0.0 <= within).unwrap().1.0
        };
        let mut finishes = Vec::new();
        let (mut at, mut done, mut needed) = (start, 0u128, 0u128);
        for &work in works {
            needed += u128::from(work);
            // The nanosecond in which the last of it completes; its end, if it completes exactly there.
            while at < start + 20_000 && rate(at) != u64::MAX && done + u128::from(rate(at)) <= needed {
                if done == needed {
                    break;
                }
                done += u128::from(rate(at));
                at += 1;
            }
            if rate(at) == u64::MAX {
                done = needed;
            }
            finishes.push((at < start + 20_000).then_some(at));
        }
        finishes
    }

    proptest! {
        /// Consecutive packets finish when the integral of the rate has reached the sum of their work.
        #[test]
        fn equals_the_integral(
            parts in prop::collection::vec((1u64..40, prop_oneof![Just(0u64), 1u64..2000]), 1..20),
            end in prop::sample::select(vec![End::Loop, End::Hold, End::Clear]),
            start in 0u64..2000,
            works in prop::collection::vec(1u64..20_000, 1..20),
        ) {
            let (mut at, mut list) = (0, Vec::new());
            for (span, rate) in parts {
                list.push((at, rate));
                at += span;
            }
            let trace = steps(&list, at);
            let wanted = slow(&trace, end, start, &works);
            let mut cursor = Cursor::new(end);
            let (mut from, mut rest) = (Nanos(start), 0);
            for (work, wanted) in works.iter().zip(wanted) {
                let Some(wanted) = wanted else { break };
                let got = trace.finish(&mut cursor, from, work + rest);
                prop_assert_eq!(got.at, Nanos(wanted));
                let done = trace.done(&mut cursor, from, got.at, work + rest);
                if end != End::Clear {
                    prop_assert_eq!(done + got.rest, work + rest);
                }
                (from, rest) = (got.at, got.rest);
            }
        }
    }
}
