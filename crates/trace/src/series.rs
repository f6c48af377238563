//! Values that hold from one time to the next.

use crate::{MAX_STEPS, TraceError};
use longwire_settings::Choice;
use longwire_units::Nanos;

/// Behaviour after the last step of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Choice)]
pub enum End {
    /// The first step again.
    #[default]
    Loop,
    /// The last value stays.
    Hold,
    /// No limit: an unlimited rate, no delay, no loss.
    Clear,
}

/// Longest span of a series: 146 years, so that sums of a few never overflow.
const LONGEST: Nanos = Nanos(1 << 62);

/// Steps in time order, the first at zero; each value holds until the next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Series<T> {
    steps: Vec<(Nanos, T)>,
    length: Nanos,
}

impl<T: Copy + PartialEq> Series<T> {
    /// Makes a series of these steps, at most [`MAX_STEPS`], the last of which ends at `length`. Steps that
    /// change nothing are merged.
    ///
    /// # Errors
    /// There is no step, the first is not at zero, times do not increase, or `length` is not after the last
    /// one.
    pub(crate) fn new(mut steps: Vec<(Nanos, T)>, length: Nanos) -> Result<Self, TraceError> {
        let Some(&(first, _)) = steps.first() else {
            return Err(TraceError::whole("no line of the trace has a time and a value; write at least one"));
        };
        if first != Nanos::ZERO {
            return Err(TraceError::whole(format!(
                "the trace begins at {first}; say what holds from 0 s on"
            )));
        }
        if let Some(at) = steps.windows(2).position(|pair| pair[1].0 <= pair[0].0) {
            let (before, after) = (steps[at].0, steps[at + 1].0);
            return Err(TraceError::whole(format!("times must increase, but {after} comes after {before}")));
        }
        if length <= steps[steps.len() - 1].0 || length > LONGEST {
            return Err(TraceError::whole(format!(
                "the trace ends at {length}: that must be after its last step, and within 146 years"
            )));
        }
        steps.dedup_by_key(|(_, value)| *value);
        Ok(Self { steps, length })
    }

    /// Its steps: when each value begins to hold.
    pub fn steps(&self) -> &[(Nanos, T)] {
        &self.steps
    }

    /// When its last step ends.
    pub const fn length(&self) -> Nanos {
        self.length
    }

    /// The steps with their durations.
    pub fn spans(&self) -> impl Iterator<Item = (Nanos, T)> + '_ {
        let ends = self.steps.iter().skip(1).map(|step| step.0).chain([self.length]);
        self.steps.iter().zip(ends).map(|(&(from, value), until)| (until - from, value))
    }

    /// When the step at `index` ends, within the series.
    fn until(&self, index: usize) -> Nanos {
        self.steps.get(index + 1).map_or(self.length, |step| step.0)
    }
}

pub(crate) fn too_many() -> TraceError {
    TraceError::whole(format!("the trace has more than {MAX_STEPS} steps; cut it into parts"))
}

/// A position in a [`Series`], which moves forward in constant time per step and can be set anywhere.
#[derive(Debug, Clone, Copy)]
pub struct Cursor {
    end: End,
    /// Index of the current step; past the last one after the end of a series that clears.
    index: usize,
    /// When the current round of a loop began.
    round: Nanos,
    /// Start of the step, from the start of the run.
    from: Nanos,
    until: Nanos,
}

/// Steps to try linearly before a binary search: packets are close together, pauses are long.
const NEAR: usize = 8;

impl Default for Cursor {
    /// Before the beginning of a loop.
    fn default() -> Self {
        Self::new(End::Loop)
    }
}

impl Cursor {
    /// A cursor before the beginning; the first [`Cursor::value_at`] sets it.
    pub const fn new(end: End) -> Self {
        Self { end, index: 0, round: Nanos::ZERO, from: Nanos::NEVER, until: Nanos::ZERO }
    }

    /// The value at `time` after the start of the run; none after the end of a series that clears.
    #[inline]
    pub fn value_at<T: Copy + PartialEq>(&mut self, series: &Series<T>, time: Nanos) -> Option<T> {
        if time < self.from || time >= self.until {
            self.seek(series, time);
        }
        series.steps.get(self.index).map(|step| step.1)
    }

    /// The end of the last returned value; [`Nanos::NEVER`] if it stays.
    #[inline]
    pub const fn next_change(&self) -> Nanos {
        self.until
    }

    /// Behaviour after the last step.
    pub const fn end(&self) -> End {
        self.end
    }

    /// Start of the current round of the loop; zero without a loop.
    pub const fn round(&self) -> Nanos {
        self.round
    }

    /// Moves to `time`: from the current step if that is in the same round and not later, else from the
    /// round's first step.
    #[cold]
    fn seek<T: Copy + PartialEq>(&mut self, series: &Series<T>, time: Nanos) {
        let last = series.steps.len() - 1;
        match self.end {
            End::Loop if last == 0 => return self.stay(0, Nanos::ZERO),
            End::Hold if time >= series.steps[last].0 => return self.stay(last, series.steps[last].0),
            End::Clear if time >= series.length => return self.stay(last + 1, series.length),
            _ => {}
        }
        let same = time >= self.round && time - self.round < series.length;
        let forward = same && time >= self.from;
        if !same {
            self.round = Nanos(time.0 - time.0 % series.length.0);
        }
        let within = time - self.round;
        let first = if forward { self.index } else { 0 };
        let near = (first + NEAR).min(series.steps.len());
        self.index = match (first..near).find(|&index| within < series.until(index)) {
            Some(index) => index,
            None => near + series.steps[near..].partition_point(|step| step.0 <= within) - 1,
        };
        self.from = self.round + series.steps[self.index].0;
        self.until = self.round + series.until(self.index);
    }

    /// Sets the cursor to a step that holds for ever from `from` on.
    fn stay(&mut self, index: usize, from: Nanos) {
        (self.index, self.round, self.from, self.until) = (index, Nanos::ZERO, from, Nanos::NEVER);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn series(steps: &[(u64, u32)], length: u64) -> Series<u32> {
        Series::new(steps.iter().map(|&(at, value)| (Nanos(at), value)).collect(), Nanos(length)).unwrap()
    }

    /// Steps at 0, 10, 30 of a trace of 50.
    #[test]
    fn values_and_changes() {
        let series = series(&[(0, 1), (10, 2), (30, 3)], 50);
        for (end, table) in [
            (
                End::Loop,
                vec![
                    (0, Some(1), 10),
                    (9, Some(1), 10),
                    (10, Some(2), 30),
                    (49, Some(3), 50),
                    (50, Some(1), 60),
                    (1_000_030, Some(3), 1_000_050),
                    (5, Some(1), 10),
                ],
            ),
            (
                End::Hold,
                vec![
                    (29, Some(2), 30),
                    (30, Some(3), u64::MAX),
                    (1_000, Some(3), u64::MAX),
                    (0, Some(1), 10),
                ],
            ),
            (
                End::Clear,
                vec![(49, Some(3), 50), (50, None, u64::MAX), (999, None, u64::MAX), (12, Some(2), 30)],
            ),
        ] {
            let mut cursor = Cursor::new(end);
            for (at, value, until) in table {
                assert_eq!(cursor.value_at(&series, Nanos(at)), value, "{end:?} at {at}");
                assert_eq!(cursor.next_change(), Nanos(until), "{end:?} at {at}");
            }
        }
    }

    #[test]
    fn one_step_never_changes_unless_it_ends() {
        let one = series(&[(0, 7)], 10);
        for (end, until) in [(End::Loop, u64::MAX), (End::Hold, u64::MAX), (End::Clear, 10)] {
            let mut cursor = Cursor::new(end);
            assert_eq!(cursor.value_at(&one, Nanos(3)), Some(7));
            assert_eq!(cursor.next_change(), Nanos(until));
        }
    }

    #[test]
    fn steps_that_change_nothing_are_joined() {
        let joined = series(&[(0, 1), (10, 1), (20, 2), (30, 2)], 40);
        assert_eq!(joined.steps(), [(Nanos(0), 1), (Nanos(20), 2)]);
        assert_eq!(joined.spans().collect::<Vec<_>>(), [(Nanos(20), 1), (Nanos(20), 2)]);
    }

    #[test]
    fn refuses_what_is_no_series() {
        let error = |steps: &[(u64, u32)], length| {
            let steps = steps.iter().map(|&(at, value)| (Nanos(at), value)).collect();
            Series::new(steps, Nanos(length)).unwrap_err().to_string()
        };
        assert!(error(&[], 1).contains("no line of the trace"));
        assert!(error(&[(5, 1)], 10).contains("begins at 5 ns"));
        assert!(error(&[(0, 1), (4, 2), (4, 3)], 10).contains("must increase"));
        assert!(error(&[(0, 1), (4, 2)], 4).contains("after its last step"));
    }

    /// Reference implementation: the step at `time`, by linear search.
    fn slow(series: &Series<u32>, end: End, time: u64) -> Option<u32> {
        let length = series.length().0;
        let within = match end {
            End::Loop => time % length,
            End::Hold => time.min(length - 1),
            End::Clear if time >= length => return None,
            End::Clear => time,
        };
        series.steps().iter().filter(|step| step.0.0 <= within).map(|step| step.1).next_back()
    }

    proptest! {
        /// Any position, forward or back, near or far.
        #[test]
        fn equals_looking_at_every_step(
            gaps in prop::collection::vec((1u64..50, 0u32..4), 1..60),
            last in 1u64..50,
            end in prop::sample::select(vec![End::Loop, End::Hold, End::Clear]),
            jumps in prop::collection::vec(prop_oneof![0i64..20, -3000i64..6000], 1..100),
        ) {
            let mut at = 0;
            let mut steps = vec![(0, 9)];
            for (gap, value) in gaps {
                at += gap;
                steps.push((at, value));
            }
            let series = series(&steps, at + last);
            let mut cursor = Cursor::new(end);
            let mut time = 0u64;
            for jump in jumps {
                time = time.saturating_add_signed(jump);
                let value = cursor.value_at(&series, Nanos(time));
                prop_assert_eq!(value, slow(&series, end, time));
                let change = cursor.next_change();
                prop_assert!(change > Nanos(time));
                if change != Nanos::NEVER {
                    prop_assert_eq!(slow(&series, end, change.0 - 1), value);
                }
            }
        }
    }
}
