//! Processor time of a control process, as counted by the kernel, compared with its guarantee: packets only
//! go up to it while it stays within.
//!
//! The kernel counts the time of all threads of the connected process (CLOCK_PROCESS_CPUTIME_ID of
//! clock_getcpuclockid(3)), without its children. Cycles are time, as everywhere above routers: a level's
//! capacity is one processor's second.

use longwire_units::Nanos;
use std::time::Duration;

/// Least credit that can be saved, and least overdraft before a process is cut off.
const SAVED: Duration = Duration::from_millis(200);
const OVERDRAWN: Duration = Duration::from_secs(1);
/// Fraction of a processor that every process may use, for polling and waiting.
const LEAST: f64 = 0.01;

/// State of a process's account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Usage {
    /// Within its guarantee.
    Within,
    /// Overdrawn: no packets go up for a while.
    Beyond,
    /// Far overdrawn, though no packets went up.
    FarBeyond,
}

/// Account of a process's processor time.
#[derive(Debug)]
pub(crate) struct Account {
    /// Allowed fraction of time, from 0.
    rate: f64,
    /// Credit in nanoseconds; negative if overdrawn.
    credit: f64,
    used: Duration,
    last: Duration,
}

impl Account {
    /// The account of a process with `cycles` of the `capacity` per second, which has used `used` so far.
    pub fn new(cycles: u64, capacity: u64, used: Duration, now: Duration) -> Self {
        let mut account = Self { rate: 0.0, credit: 0.0, used, last: now };
        account.promise(cycles, capacity);
        account.credit = account.most();
        account
    }

    /// Changes the guarantee.
    pub fn promise(&mut self, cycles: u64, capacity: u64) {
        self.rate = (cycles as f64 / capacity.max(1) as f64).max(LEAST);
    }

    fn most(&self) -> f64 {
        (self.rate * SAVED.as_nanos() as f64).max(SAVED.as_nanos() as f64)
    }

    /// Charges the time used by now, and returns the time since the last call and the state.
    pub fn charge(&mut self, used: Duration, now: Duration) -> (Nanos, Usage) {
        let had = used.saturating_sub(self.used);
        let earned = now.saturating_sub(self.last).as_nanos() as f64 * self.rate;
        (self.used, self.last) = (used.max(self.used), now);
        self.credit = (self.credit + earned).min(self.most()) - had.as_nanos() as f64;
        let usage = if self.credit >= 0.0 {
            Usage::Within
        } else if self.credit >= -(OVERDRAWN.as_nanos() as f64) {
            Usage::Beyond
        } else {
            Usage::FarBeyond
        };
        (Nanos(had.as_nanos() as u64), usage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// The states after polls 20 ms apart, in each of which it uses this many milliseconds.
    fn usages(cycles: u64, taken: &[u32]) -> Vec<Usage> {
        let mut account = Account::new(cycles, 1000, 7 * MS, Duration::ZERO);
        let (mut used, mut now) = (7 * MS, Duration::ZERO);
        let look = |ms: &u32| {
            (used, now) = (used + *ms * MS, now + 20 * MS);
            let (had, usage) = account.charge(used, now);
            assert_eq!(had, Nanos(u64::from(*ms) * 1_000_000));
            usage
        };
        taken.iter().map(look).collect()
    }

    #[test]
    fn who_takes_what_was_promised_is_left_alone() {
        assert!(usages(500, &[10; 500]).iter().all(|usage| *usage == Usage::Within));
        // More for a while: 200 ms were saved, and 5 ms of each 20 are overdrawn, for 38 polls, the first of
        // which finds the credit full.
        let seen = usages(500, &[15; 100]);
        assert!(seen[..38].iter().all(|usage| *usage == Usage::Within));
        assert!(seen[38..].iter().all(|usage| *usage == Usage::Beyond));
    }

    #[test]
    fn who_takes_more_pays_it_back_or_is_cut_off() {
        // A whole processor for 1 s with a guarantee of a tenth, then nothing: 18 ms overdrawn per poll, 700
        // ms in all, paid back in 350 polls.
        let mut taken = vec![20; 50];
        taken.extend([0; 400]);
        let seen = usages(100, &taken);
        assert_eq!((seen[10], seen[11], seen[49]), (Usage::Within, Usage::Beyond, Usage::Beyond));
        assert_eq!((seen[49 + 349], seen[49 + 351]), (Usage::Beyond, Usage::Within));
        // Permanently: after (200 + 1000) / 18 polls.
        let seen = usages(100, &[20; 70]);
        assert_eq!((seen[65], seen[66]), (Usage::Beyond, Usage::FarBeyond));
        // Without a guarantee a hundredth is allowed.
        assert!(usages(0, &[1; 100]).contains(&Usage::Within));
    }
}
