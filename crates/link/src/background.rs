//! Background traffic: packets that stand in the queue and take their time to be sent, and exist nowhere else.

use crate::link::{Link, has};
use longwire_packet::Pool;
use longwire_units::Nanos;

/// Where a link's background packets come from.
#[derive(Debug)]
pub(crate) struct Background {
    next: Nanos,
}

impl Background {
    /// When the next packet comes; never if there is none.
    fn next(&self) -> Nanos {
        self.next
    }
}

impl Link {
    /// Carries out everything up to `now` but leaving, where more than ends of transmission happens: departures
    /// before arrivals.
    pub(crate) fn catch_up_with_others(&mut self, pool: &mut Pool, now: Nanos) {
        loop {
            let phantom = match &self.books.counters.rare {
                Some(rare) => rare.background.as_ref().map_or(Nanos::NEVER, Background::next),
                None => Nanos::NEVER,
            };
            let finish = if self.sending.is_none() { Nanos::NEVER } else { self.transmit.finish() };
            let resume = if self.features & has::WAITING == 0 { Nanos::NEVER } else { self.resume() };
            let next = finish.min(resume).min(phantom);
            if next > now || next == Nanos::NEVER {
                return;
            }
            if next == finish {
                self.finish(pool, finish);
            } else if next == resume {
                self.latest = self.latest.max(resume);
                self.begin_next(pool, resume);
            }
        }
    }
}
