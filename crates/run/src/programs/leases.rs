//! Programs that are there for a time only, unless who installed them says that they are to stay.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Shortest and longest lease in seconds.
pub const LENGTHS: std::ops::RangeInclusive<u64> = 1..=3600;

/// A router's place in the plan, and its program's number.
pub type Leased = (usize, u32);

/// The leases of a run.
#[derive(Debug, Default)]
pub struct Leases {
    held: Mutex<BTreeMap<Leased, Lease>>,
    /// Rung when there is another one.
    bell: OnceLock<Sender<()>>,
}

#[derive(Debug, Clone, Copy)]
struct Lease {
    length: Duration,
    until: Instant,
}

impl Leases {
    /// What is to be waited at for new leases. Only the first who asks gets a line that is rung.
    pub fn line(&self) -> Receiver<()> {
        let (bell, line) = channel();
        // A second line ends at once, which is what who waits at it does then.
        let _ = self.bell.set(bell);
        line
    }

    /// Gives a program one from now on.
    pub fn give(&self, leased: Leased, length: Duration, now: Instant) {
        self.held().insert(leased, Lease { length, until: now + length });
        if let Some(bell) = self.bell.get() {
            // Where nobody waits, the run has ended.
            let _ = bell.send(());
        }
    }

    /// Lets one begin again. False if the program has none.
    pub fn renew(&self, leased: Leased, now: Instant) -> bool {
        let mut held = self.held();
        let Some(lease) = held.get_mut(&leased) else { return false };
        lease.until = now + lease.length;
        true
    }

    /// How long a program's lease is, and how much of it is left. None if it has none.
    pub fn of(&self, leased: Leased, now: Instant) -> Option<(Duration, Duration)> {
        let Lease { length, until } = *self.held().get(&leased)?;
        Some((length, until.saturating_duration_since(now)))
    }

    /// Forgets one.
    pub fn end(&self, leased: Leased) {
        self.held().remove(&leased);
    }

    /// Takes out those that are over, and says how long it is until the next one is.
    pub fn over(&self, now: Instant) -> (Vec<Leased>, Option<Duration>) {
        let mut held = self.held();
        let over = held.extract_if(.., |_, lease| lease.until <= now).map(|(leased, _)| leased).collect();
        let next = held.values().map(|lease| lease.until.saturating_duration_since(now)).min();
        (over, next)
    }

    /// Nothing that holds them panics.
    fn held(&self) -> MutexGuard<'_, BTreeMap<Leased, Lease>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
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
        for (leased, length) in [((0, 1), 10), ((0, 2), 10), ((1, 1), 20), ((1, 2), 5)] {
            leases.give(leased, Duration::from_secs(length), at(0));
        }
        assert_eq!(line.try_iter().count(), 4);
        assert!(leases.renew((0, 2), at(4)) && !leases.renew((2, 1), at(4)));
        let seconds = |length, left| Some((Duration::from_secs(length), Duration::from_secs(left)));
        assert_eq!((leases.of((0, 2), at(5)), leases.of((2, 1), at(5))), (seconds(10, 9), None));
        leases.end((1, 2));
        assert_eq!(leases.over(at(9)), (vec![], Some(Duration::from_secs(1))));
        assert_eq!(leases.over(at(10)), (vec![(0, 1)], Some(Duration::from_secs(4))));
        assert!(!leases.renew((0, 1), at(10)), "it is over");
        assert_eq!(leases.over(at(60)), (vec![(0, 2), (1, 1)], None));
        drop(leases);
        assert!(line.recv().is_err());
    }
}
