//! Leases: programs that are removed unless their installer renews them.

use crate::threads::lock;
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

/// Shortest and longest lease in seconds.
pub const LENGTHS: std::ops::RangeInclusive<u64> = 1..=3600;

/// A router's number, and a program's.
pub type LeaseKey = (usize, u32);

/// The leases of a run.
#[derive(Debug, Default)]
pub struct Leases {
    held: Mutex<BTreeMap<LeaseKey, Lease>>,
    /// Signals a new lease.
    bell: OnceLock<Sender<()>>,
}

#[derive(Debug, Clone, Copy)]
struct Lease {
    length: Duration,
    until: Instant,
}

impl Leases {
    /// A receiver of signals about new leases. Only the first caller gets a live one.
    pub fn line(&self) -> Receiver<()> {
        let (bell, line) = channel();
        // A second receiver is disconnected at once.
        let _ = self.bell.set(bell);
        line
    }

    /// Gives a program a lease that starts now.
    pub fn give(&self, key: LeaseKey, length: Duration, now: Instant) {
        lock(&self.held).insert(key, Lease { length, until: now + length });
        if let Some(bell) = self.bell.get() {
            // Without a receiver the run has ended.
            let _ = bell.send(());
        }
    }

    /// Renews a lease. False if the program has none.
    pub fn renew(&self, key: LeaseKey, now: Instant) -> bool {
        let mut held = lock(&self.held);
        let Some(lease) = held.get_mut(&key) else { return false };
        lease.until = now + lease.length;
        true
    }

    /// The length and remainder of a program's lease, if it has one.
    pub fn of(&self, key: LeaseKey, now: Instant) -> Option<(Duration, Duration)> {
        let Lease { length, until } = *lock(&self.held).get(&key)?;
        Some((length, until.saturating_duration_since(now)))
    }

    /// Ends the leases at routers that are gone.
    pub fn retain(&self, is_there: impl Fn(usize) -> bool) {
        lock(&self.held).retain(|(router, _), _| is_there(*router));
    }

    /// Ends a lease.
    pub fn end(&self, key: LeaseKey) {
        lock(&self.held).remove(&key);
    }

    /// Removes expired leases; returns them and the time until the next one expires.
    pub fn over(&self, now: Instant) -> (Vec<LeaseKey>, Option<Duration>) {
        let mut held = lock(&self.held);
        let over = held.extract_if(.., |_, lease| lease.until <= now).map(|(key, _)| key).collect();
        let next = held.values().map(|lease| lease.until.saturating_duration_since(now)).min();
        (over, next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_renewed_is_over() {
        let (leases, begin) = (Leases::default(), Instant::now());
        let at = |seconds| begin + Duration::from_secs(seconds);
        let line = leases.line();
        for (key, length) in [((0, 1), 10), ((0, 2), 10), ((1, 1), 20), ((1, 2), 5)] {
            leases.give(key, Duration::from_secs(length), at(0));
        }
        assert_eq!(line.try_iter().count(), 4);
        assert!(leases.renew((0, 2), at(4)) && !leases.renew((2, 1), at(4)));
        let seconds = |length, left| Some((Duration::from_secs(length), Duration::from_secs(left)));
        assert_eq!((leases.of((0, 2), at(5)), leases.of((2, 1), at(5))), (seconds(10, 9), None));
        leases.give((7, 1), Duration::from_secs(1), at(0));
        assert_eq!(line.try_iter().count(), 1);
        leases.retain(|router| router < 7);
        leases.end((1, 2));
        assert_eq!(leases.over(at(9)), (vec![], Some(Duration::from_secs(1))));
        assert_eq!(leases.over(at(10)), (vec![(0, 1)], Some(Duration::from_secs(4))));
        assert!(!leases.renew((0, 1), at(10)), "it is over");
        assert_eq!(leases.over(at(60)), (vec![(0, 2), (1, 1)], None));
        drop(leases);
        assert!(line.recv().is_err());
    }
}
