//! What a control process takes of its processor, by the kernel's count, beside what it was promised: packets
//! go up to it only as long as it keeps within that.
//!
//! The kernel counts the time of all threads of the process that has connected (CLOCK_PROCESS_CPUTIME_ID of
//! clock_getcpuclockid(3)), not that of its children. Cycles are time, as everywhere above routers: those
//! that the level has in a second are one processor's second.

use longwire_units::Nanos;
use std::time::Duration;

/// What may be saved up, and overdrawn before who does it is cut off, at least.
const SAVED: Duration = Duration::from_millis(200);
const OVERDRAWN: Duration = Duration::from_secs(1);
/// The part of a processor that everybody may take: to look for packets and to wait takes some, too.
const LEAST: f64 = 0.01;

/// What is to be done about a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It keeps within its promise.
    Within,
    /// It has had more: no packets are to go up for a while.
    Beyond,
    /// It has had far more, though no packets went up.
    FarBeyond,
}

/// An account of processor time.
#[derive(Debug)]
pub(crate) struct Account {
    /// What it may take of each second, from 0.
    rate: f64,
    /// What is left, in nanoseconds; may be owed.
    credit: f64,
    used: Duration,
    last: Duration,
}

impl Account {
    /// Of a process that may take so many of `capacity` cycles a second, and has used so much by now.
    pub fn new(cycles: u64, capacity: u64, used: Duration, now: Duration) -> Self {
        let mut account = Self { rate: 0.0, credit: 0.0, used, last: now };
        account.promise(cycles, capacity);
        account.credit = account.most();
        account
    }

    /// From now on it may take so many.
    pub fn promise(&mut self, cycles: u64, capacity: u64) {
        self.rate = (cycles as f64 / capacity.max(1) as f64).max(LEAST);
    }

    fn most(&self) -> f64 {
        (self.rate * SAVED.as_nanos() as f64).max(SAVED.as_nanos() as f64)
    }

    /// It has used so much by now: what it has had since it was last asked about, and how it stands.
    pub fn charge(&mut self, used: Duration, now: Duration) -> (Nanos, Standing) {
        let had = used.saturating_sub(self.used);
        let earned = now.saturating_sub(self.last).as_nanos() as f64 * self.rate;
        (self.used, self.last) = (used.max(self.used), now);
        self.credit = (self.credit + earned).min(self.most()) - had.as_nanos() as f64;
        let standing = if self.credit >= 0.0 {
            Standing::Within
        } else if self.credit >= -(OVERDRAWN.as_nanos() as f64) {
            Standing::Beyond
        } else {
            Standing::FarBeyond
        };
        (Nanos(had.as_nanos() as u64), standing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// How it stands after each of so many looks, 20 ms apart, in which it takes so many milliseconds each.
    fn standings(cycles: u64, taken: &[u32]) -> Vec<Standing> {
        let mut account = Account::new(cycles, 1000, 7 * MS, Duration::ZERO);
        let (mut used, mut now) = (7 * MS, Duration::ZERO);
        let look = |ms: &u32| {
            (used, now) = (used + *ms * MS, now + 20 * MS);
            let (had, standing) = account.charge(used, now);
            assert_eq!(had, Nanos(u64::from(*ms) * 1_000_000));
            standing
        };
        taken.iter().map(look).collect()
    }

    #[test]
    fn who_takes_what_was_promised_is_left_alone() {
        assert!(standings(500, &[10; 500]).iter().all(|standing| *standing == Standing::Within));
        // More for a while: 200 ms were saved, and 5 ms of each 20 are overdrawn, so for 38 looks, the first
        // of which finds it full.
        let seen = standings(500, &[15; 100]);
        assert!(seen[..38].iter().all(|standing| *standing == Standing::Within));
        assert!(seen[38..].iter().all(|standing| *standing == Standing::Beyond));
    }

    #[test]
    fn who_takes_more_pays_it_back_or_is_cut_off() {
        // A whole processor for 1 s, of which a tenth was promised, then nothing: 18 ms a look beyond it, so
        // 700 ms too much, paid back in 350 looks.
        let mut taken = vec![20; 50];
        taken.extend([0; 400]);
        let seen = standings(100, &taken);
        assert_eq!((seen[10], seen[11], seen[49]), (Standing::Within, Standing::Beyond, Standing::Beyond));
        assert_eq!((seen[49 + 349], seen[49 + 351]), (Standing::Beyond, Standing::Within));
        // For ever: after (200 + 1000) / 18 looks.
        let seen = standings(100, &[20; 70]);
        assert_eq!((seen[65], seen[66]), (Standing::Beyond, Standing::FarBeyond));
        // Who was promised nothing may take a hundredth.
        assert!(standings(0, &[1; 100]).contains(&Standing::Within));
    }
}
