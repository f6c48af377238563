//! Progress of rounds, which keeps the lines of several ports in step.

/// Virtual time of rounds: the service so far of a permanently backlogged flow of weight 1, in its
/// scheduler's unit. It is exact at the beginning of a round; within a round it grows with charges, as if
/// this round were as long as the previous one. It wraps around: only differences matter.
#[derive(Debug, Clone, Default)]
pub(super) struct Progress {
    start: u64,
    /// Advance in the previous round, and the charges in that round.
    span: u64,
    expected: u64,
    charged: u64,
}

impl Progress {
    /// A round begins, at this virtual time.
    #[inline]
    pub(super) fn begin(&mut self, start: u64) {
        (self.span, self.start) = (start.wrapping_sub(self.start), start);
        (self.expected, self.charged) = (self.charged, 0);
    }

    /// A packet of this cost is taken.
    #[inline]
    pub(super) fn charge(&mut self, cost: u32) {
        self.charged += u64::from(cost);
    }

    /// When the round began.
    #[inline]
    pub(super) const fn start(&self) -> u64 {
        self.start
    }

    /// Where it is within the round.
    #[inline]
    pub(super) fn now(&self) -> u64 {
        let part = u128::from(self.span) * u128::from(self.charged.min(self.expected));
        self.start.wrapping_add((part / u128::from(self.expected.max(1))) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_is_taken_to_be_like_the_one_before() {
        let mut progress = Progress::default();
        progress.charge(300);
        // No round is known yet.
        assert_eq!(progress.now(), 0);
        progress.begin(1000);
        assert_eq!((progress.start(), progress.now()), (1000, 1000));
        progress.charge(75);
        assert_eq!(progress.now(), 1250);
        progress.charge(400);
        assert_eq!(progress.now(), 2000, "no further than a round, before the next one begins");
        progress.begin(u64::MAX);
        progress.charge(475);
        assert_eq!(progress.now(), u64::MAX.wrapping_add(u64::MAX - 1000));
    }
}
