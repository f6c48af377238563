//! mahimahi's traces of packet delivery opportunities (Netravali et al., "Mahimahi: Accurate
//! Record-and-Replay for HTTP", USENIX ATC 2015, section 3.3).
//!
//! A line is a time in whole milliseconds, never less than the one before: an opportunity to deliver 1504
//! bytes (an IP packet of 1500 with the four bytes that mahimahi's TUN device prepends). Unused opportunities
//! are lost, several small packets share one, and a packet leaves at the opportunity that takes its last
//! byte. The last time, which is above zero, is the length of the trace, which then repeats.

use crate::{End, MAX_STEPS, TraceError, series::too_many};
use longwire_units::{Nanos, Rate};

/// The bytes that one opportunity delivers.
pub const BYTES: u64 = 1504;

const MILLI: u64 = 1_000_000;

/// Times at which a link can deliver [`BYTES`] bytes at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opportunities {
    /// In milliseconds, ascending. 32 bits, because there are many.
    times: Vec<u32>,
    /// Number of opportunities in the last millisecond.
    last: usize,
}

impl Opportunities {
    /// Reads a trace; blank lines and lines that begin with `#` are skipped.
    ///
    /// # Errors
    /// Names the line that is not a whole number of milliseconds, or is earlier than the one before it; or
    /// there are none or too many, or the last is at zero.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let mut times: Vec<u32> = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let time = line.parse().map_err(|_| {
                let what = format!("\"{line:.40}\" is not a time in whole milliseconds, 0 to {}", u32::MAX);
                TraceError::line(index + 1, what)
            })?;
            if let Some(&before) = times.last().filter(|&&before| before > time) {
                let what = format!("{time} ms is earlier than the {before} ms before it");
                return Err(TraceError::line(index + 1, what));
            }
            if times.len() == MAX_STEPS {
                return Err(too_many());
            }
            times.push(time);
        }
        let Some(&end) = times.last().filter(|&&end| end > 0) else {
            return Err(TraceError::whole(
                "the trace must last for some time: write one line a delivery opportunity, the last of them \
                 above 0 (ms)",
            ));
        };
        let last = times.len() - times.partition_point(|&time| time < end);
        Ok(Self { times, last })
    }

    /// The opportunities, in milliseconds.
    pub fn times(&self) -> &[u32] {
        &self.times
    }

    /// The time at which the trace ends or repeats.
    pub fn length(&self) -> Nanos {
        Nanos::from_millis(self.times.last().map_or(0, |&time| time.into()))
    }

    /// The mean rate of one round, rounded down.
    pub fn mean(&self) -> Rate {
        let bits = self.times.len() as u128 * u128::from(BYTES) * 8 * 1_000_000_000;
        Rate((bits / u128::from(self.length().0)) as u64)
    }

    /// The rate of the millisecond with the most opportunities; where rounds meet, the first and the last are
    /// one.
    pub fn highest(&self) -> Rate {
        let most = self.times.chunk_by(|one, other| one == other).map(<[u32]>::len).max().unwrap_or(0);
        let first = self.times.iter().take_while(|&&time| time == 0).count();
        Rate(most.max(first + self.last) as u64 * BYTES * 8 * 1000)
    }
}

/// A cursor over [`Opportunities`]: the next one that was neither used nor lost.
///
/// With [`End::Hold`], the last millisecond's opportunities repeat every millisecond. With [`End::Clear`],
/// there are none after the end, and transmission takes no time.
#[derive(Debug, Clone, Copy, Default)]
pub struct Deliveries {
    end: End,
    index: usize,
    /// Offset added to the times: the rounds so far.
    shift: Nanos,
}

/// Opportunities to try linearly before a binary search.
const NEAR: usize = 8;

impl Deliveries {
    /// Before the first opportunity.
    pub const fn new(end: End) -> Self {
        Self { end, index: 0, shift: Nanos::ZERO }
    }

    /// Time of the next opportunity; none if the trace has ended and the link is no longer limited.
    #[inline]
    pub fn next(&self, trace: &Opportunities) -> Option<Nanos> {
        trace.times.get(self.index).map(|&time| self.shift + Nanos(u64::from(time) * MILLI))
    }

    /// Uses the next opportunity.
    #[inline]
    pub fn take(&mut self, trace: &Opportunities) {
        self.index += 1;
        if self.index >= trace.times.len() {
            self.wrap(trace);
        }
    }

    /// Skips opportunities up to and including `time`.
    #[inline]
    pub fn pass(&mut self, trace: &Opportunities, time: Nanos) {
        for _ in 0..NEAR {
            match self.next(trace) {
                Some(next) if next <= time => self.take(trace),
                _ => return,
            }
        }
        self.set(trace, time);
    }

    /// Sets the cursor to the first opportunity after `time`, wherever it was.
    pub fn set(&mut self, trace: &Opportunities, time: Nanos) {
        let length = trace.length();
        self.shift = match self.end {
            _ if time < length => Nanos::ZERO,
            End::Loop => Nanos(time.0 - time.0 % length.0),
            End::Hold => Nanos((time.0 - length.0) / MILLI * MILLI),
            End::Clear => {
                self.index = trace.times.len();
                return;
            }
        };
        let within = (time - self.shift).0 / MILLI;
        self.index = trace.times.partition_point(|&at| u64::from(at) <= within);
        if self.index == trace.times.len() {
            self.wrap(trace);
        }
    }

    fn wrap(&mut self, trace: &Opportunities) {
        let count = trace.times.len();
        (self.index, self.shift) = match self.end {
            End::Loop => (0, self.shift + trace.length()),
            End::Hold => (count - trace.last, self.shift + Nanos(MILLI)),
            End::Clear => (count, self.shift),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn next_all(trace: &Opportunities, place: &mut Deliveries, count: usize) -> Vec<u64> {
        let mut times = Vec::new();
        for _ in 0..count {
            let Some(next) = place.next(trace) else { break };
            times.push(next.0 / MILLI);
            place.take(trace);
        }
        times
    }

    #[test]
    fn loops_holds_and_ends() {
        let trace = Opportunities::parse("0\n3\n3\n7\n10\n10\n").unwrap();
        assert_eq!((trace.length(), trace.times().len()), (Nanos::from_millis(10), 6));
        // 6 · 1504 bytes in 10 ms.
        assert_eq!(trace.mean(), Rate(7_219_200));
        // Two at 10 ms, and the one at 0 that begins the next round: 3 · 12 032 bits in a millisecond.
        assert_eq!(trace.highest(), Rate(36_096_000));
        for (end, times) in [
            (End::Loop, vec![0, 3, 3, 7, 10, 10, 10, 13, 13, 17, 20]),
            (End::Hold, vec![0, 3, 3, 7, 10, 10, 11, 11, 12, 12, 13]),
            (End::Clear, vec![0, 3, 3, 7, 10, 10]),
        ] {
            assert_eq!(next_all(&trace, &mut Deliveries::new(end), 11), times, "{end:?}");
        }
    }

    #[test]
    fn those_that_nobody_used_are_lost() {
        let trace = Opportunities::parse("0\n3\n3\n7\n10\n10\n").unwrap();
        // (end, time in µs, next in ms)
        for (end, time, next) in [
            (End::Loop, 0, Some(3)),
            (End::Loop, 2_999, Some(3)),
            (End::Loop, 3_000, Some(7)),
            (End::Loop, 10_000, Some(13)),
            (End::Loop, 9_999, Some(10)),
            (End::Loop, 7_777_000, Some(7_780)),
            (End::Hold, 10_000, Some(11)),
            (End::Hold, 9_999, Some(10)),
            (End::Hold, 5_000_500, Some(5_001)),
            (End::Clear, 9_999, Some(10)),
            (End::Clear, 10_000, None),
            (End::Clear, 99_000, None),
        ] {
            let mut place = Deliveries::new(end);
            place.pass(&trace, Nanos::from_micros(time));
            assert_eq!(place.next(&trace), next.map(Nanos::from_millis), "{end:?} after {time} us");
        }
    }

    #[test]
    fn says_which_line_is_wrong() {
        for (text, wanted) in [
            ("", "must last"),
            ("0\n0\n", "must last"),
            ("1\n2\nx\n", "line 3: \"x\" is not a time"),
            ("1\n\n# note\n5\n4\n", "line 5: 4 ms is earlier than the 5 ms"),
            ("-1\n", "line 1"),
            ("4294967296\n", "line 1"),
        ] {
            let error = Opportunities::parse(text).unwrap_err().to_string();
            assert!(error.contains(wanted), "{text:?}: {error}");
        }
    }

    proptest! {
        #[test]
        fn passing_equals_taking_one_by_one(
            gaps in prop::collection::vec(0u32..4, 1..40),
            end in prop::sample::select(vec![End::Loop, End::Hold, End::Clear]),
            waits in prop::collection::vec(0u64..60_000, 1..40),
        ) {
            let mut at = 1;
            let text: String = gaps.iter().map(|gap| { at += gap; format!("{at}\n") }).collect();
            let trace = Opportunities::parse(&text).unwrap();
            let (mut passing, mut taking, mut time) = (Deliveries::new(end), Deliveries::new(end), 0);
            for wait in waits {
                time += wait;
                passing.pass(&trace, Nanos::from_micros(time));
                while taking.next(&trace).is_some_and(|next| next <= Nanos::from_micros(time)) {
                    taking.take(&trace);
                }
                prop_assert_eq!(passing.next(&trace), taking.next(&trace));
                let mut set = Deliveries::new(end);
                set.set(&trace, Nanos::from_micros(time));
                for _ in 0..5 {
                    prop_assert_eq!(set.next(&trace), passing.next(&trace));
                    set.take(&trace);
                    passing.take(&trace);
                    taking.take(&trace);
                }
                passing.set(&trace, Nanos::from_micros(time));
                taking = passing;
            }
        }

        #[test]
        fn hostile_text_never_panics(text in "[0-9\n \r#-]{0,60}") {
            let _ = Opportunities::parse(&text);
        }
    }
}
