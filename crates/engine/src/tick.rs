//! A coarse clock for departures (`[engine] tick`), as in timer-driven emulators: LinkEM at 8192 Hz, Dummynet
//! at the kernel's HZ.
//!
//! Links are not affected. Only packets that leave by a port wait for the first multiple of the tick, counted
//! from the beginning of the run, at or after their departure time; the difference is their lateness.

use longwire_link::Fifo;
use longwire_packet::{Batch, Pool};
use longwire_units::Nanos;

/// The ticks of a worker, and packets waiting for the next one in real time.
pub(crate) struct Ticks {
    tick: Nanos,
    begin: Nanos,
    /// The last tick that was handled.
    pub last: Nanos,
    /// Waiting packets, by port. The lists are taken out while those whose tick has come are sent.
    pub held: Vec<Fifo>,
}

impl Ticks {
    /// Returns none if there is no tick.
    pub(crate) fn new(tick: Nanos, begin: Nanos, ports: usize) -> Option<Box<Self>> {
        let held = || (0..ports).map(|_| Fifo::EMPTY).collect();
        (tick > Nanos::ZERO).then(|| Box::new(Self { tick, begin, last: begin, held: held() }))
    }

    /// The first tick at or after `time`.
    pub(crate) fn at_or_after(&self, time: Nanos) -> Nanos {
        self.begin + Nanos(time.since(self.begin).0.div_ceil(self.tick.0).saturating_mul(self.tick.0))
    }

    /// The last tick at or before `time`.
    pub fn at_or_before(&self, time: Nanos) -> Nanos {
        self.begin + Nanos(time.since(self.begin).0 / self.tick.0 * self.tick.0)
    }

    /// The next tick for which a packet waits; never if none does.
    pub(crate) fn next(&self) -> Nanos {
        if self.held.iter().all(Fifo::is_empty) { Nanos::NEVER } else { self.last + self.tick }
    }

    /// Whether packets have to wait: not while those whose tick has come are sent.
    pub(crate) fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    /// Holds the packets of a batch until their ticks.
    pub(crate) fn hold(&mut self, pool: &mut Pool, slot: usize, batch: &Batch) {
        batch.as_slice().iter().for_each(|&handle| self.held[slot].push(pool, handle));
    }

    /// Rounds departure times to ticks: packets are sent as having left then.
    pub(crate) fn round(&self, pool: &mut Pool, batch: &Batch) {
        for &handle in batch.as_slice() {
            let meta = pool.meta_mut(handle);
            meta.set_leave(self.at_or_after(Nanos(meta.leave())).0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_count_from_the_beginning() {
        let ticks = Ticks::new(Nanos(122), Nanos(1000), 0).unwrap();
        for (time, before, after) in
            [(1000, 1000, 1000), (1001, 1000, 1122), (1122, 1122, 1122), (1367, 1366, 1488)]
        {
            assert_eq!(ticks.at_or_before(Nanos(time)), Nanos(before), "{time}");
            assert_eq!(ticks.at_or_after(Nanos(time)), Nanos(after), "{time}");
        }
        assert!(Ticks::new(Nanos::ZERO, Nanos::ZERO, 0).is_none());
    }
}
