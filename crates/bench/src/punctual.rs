//! Sources for runs in real time.

use longwire_block::{Port, PortError, PortStats, Stamp};
use longwire_packet::{Batch, Pool};
use longwire_port::driver::memory::{Blast, BlastPlan};
use longwire_units::Nanos;
use std::net::Ipv4Addr;

/// The plan of a port that sends one packet, to nobody, so that a bridge learns its address. `macs` are the
/// destination's and its own.
pub fn greeting(macs: ([u8; 6], [u8; 6])) -> BlastPlan {
    let pairs = vec![(Ipv4Addr::UNSPECIFIED, Ipv4Addr::UNSPECIFIED)];
    BlastPlan { count: 1, pairs, macs, ..BlastPlan::sink() }
}

/// A source whose times are relative to its first poll, not to the clock's zero.
pub struct Punctual {
    blast: Blast,
    start: Option<Nanos>,
}

impl Punctual {
    /// Wraps this source.
    pub fn new(blast: Blast) -> Self {
        Self { blast, start: None }
    }
}

impl Port for Punctual {
    fn name(&self) -> &str {
        self.blast.name()
    }

    fn describe(&self) -> String {
        self.blast.describe()
    }

    fn stamp(&self) -> Stamp {
        self.blast.stamp()
    }

    fn receive(&mut self, pool: &mut Pool, now: Nanos, batch: &mut Batch) -> Result<(), PortError> {
        if self.blast.stamp() == Stamp::Poll {
            return self.blast.receive(pool, now, batch);
        }
        let start = *self.start.get_or_insert(now);
        let before = batch.len();
        self.blast.receive(pool, now - start, batch)?;
        for &handle in &batch.as_slice()[before..] {
            pool.meta_mut(handle).arrival += start.0;
        }
        Ok(())
    }

    fn transmit(&mut self, pool: &mut Pool, batch: &Batch) -> Result<(), PortError> {
        self.blast.transmit(pool, batch)
    }

    fn next_arrival(&mut self) -> Option<Nanos> {
        let next = self.blast.next_arrival()?;
        Some(if next == Nanos::NEVER { next } else { next + self.start.unwrap_or_default() })
    }

    fn stats(&self) -> PortStats {
        self.blast.stats()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paced_source_counts_from_its_first_question() {
        let plan = BlastPlan {
            pairs: vec![(Ipv4Addr::LOCALHOST, Ipv4Addr::LOCALHOST)],
            count: 3,
            gap: Some(Nanos(100)),
            ..BlastPlan::sink()
        };
        let mut port = Punctual::new(Blast::new("a", plan).unwrap());
        let mut pool = Pool::new(1 << 20).unwrap();
        let mut times = Vec::new();
        for now in [5000, 5150, 9000] {
            let mut batch = Batch::new();
            port.receive(&mut pool, Nanos(now), &mut batch).unwrap();
            times.extend(batch.as_slice().iter().map(|&handle| pool.meta(handle).arrival));
        }
        assert_eq!(times, [5000, 5100, 5200]);
        assert_eq!(port.next_arrival(), Some(Nanos::NEVER));
    }
}
