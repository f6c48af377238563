//! A coarse clock for departures (`[engine] tick`), as emulators have that are driven by a timer: LinkEM's at
//! 8192 Hz, Dummynet's at the kernel's HZ.
//!
//! Links compute as ever. Only what goes out by a port waits for the first multiple of the tick, counted from
//! the beginning of the run, at or after the time at which it should leave; the difference is its lateness.

use longwire_link::Fifo;
use longwire_packet::{Batch, Pool};
use longwire_units::Nanos;

/// The ticks of a worker, and what waits for the next one in real time.
pub(crate) struct Ticks {
    tick: Nanos,
    begin: Nanos,
    /// The last tick that was seen to.
    pub last: Nanos,
    /// What waits, by port.
    pub held: Vec<Fifo>,
}

impl Ticks {
    /// Nothing if there is no tick.
    pub(crate) fn new(tick: Nanos, begin: Nanos, ports: usize) -> Option<Box<Self>> {
        let held = || (0..ports).map(|_| Fifo::EMPTY).collect();
        (tick > Nanos::ZERO).then(|| Box::new(Self { tick, begin, last: begin, held: held() }))
    }

    /// The first tick at or after `time`.
    fn at_or_after(&self, time: Nanos) -> Nanos {
        self.begin + Nanos(time.since(self.begin).0.div_ceil(self.tick.0).saturating_mul(self.tick.0))
    }

    /// The last tick at or before `time`.
    pub fn at_or_before(&self, time: Nanos) -> Nanos {
        self.begin + Nanos(time.since(self.begin).0 / self.tick.0 * self.tick.0)
    }

    /// The next tick for which something waits; never if nothing does.
    pub(crate) fn next(&self) -> Nanos {
        if self.held.iter().all(Fifo::is_empty) { Nanos::NEVER } else { self.last + self.tick }
    }

    /// Puts off the packets of a batch until their ticks.
    pub(crate) fn hold(&mut self, pool: &mut Pool, slot: usize, batch: &Batch) {
        batch.as_slice().iter().for_each(|&handle| self.held[slot].push(pool, handle));
    }

    /// On a simulated clock packets leave at their ticks.
    pub(crate) fn round(&self, pool: &mut Pool, batch: &Batch) {
        for &handle in batch.as_slice() {
            let meta = pool.meta_mut(handle);
            meta.set_leave(self.at_or_after(Nanos(meta.leave())).0);
        }
    }

    /// How late a packet leaves at its tick, on a simulated clock: when it leaves.
    pub(crate) fn leaves_at(&self, leave: u64) -> Nanos {
        self.at_or_after(Nanos(leave))
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
