//! A port that connects two nodes. It has no driver: the engine moves its packets (see
//! [`InnerPorts`](crate::InnerPorts)).

use longwire_block::{Port, PortError, PortStats, Stamp};
use longwire_packet::{Batch, Pool};
use longwire_units::Nanos;

/// A port inside the engine.
#[derive(Debug, Clone)]
pub struct InnerPort {
    name: Box<str>,
    what: &'static str,
    stats: PortStats,
}

impl InnerPort {
    /// Creates a port.
    pub fn new(name: &str) -> Self {
        Self { name: name.into(), what: "a router's own port", stats: PortStats::default() }
    }

    /// Replaces a removed port: packets that are still sent to it are dropped.
    pub fn removed() -> Self {
        Self { name: Box::default(), what: "a port that was removed", stats: PortStats::default() }
    }
}

impl Port for InnerPort {
    fn name(&self) -> &str {
        &self.name
    }

    fn describe(&self) -> String {
        self.what.into()
    }

    fn stamp(&self) -> Stamp {
        Stamp::Source
    }

    fn receive(&mut self, _: &mut Pool, _: Nanos, _: &mut Batch) -> Result<(), PortError> {
        Ok(())
    }

    /// The engine moves packets of connected ports, so a packet that gets here has no destination.
    fn transmit(&mut self, pool: &mut Pool, batch: &Batch) -> Result<(), PortError> {
        for &handle in batch.as_slice() {
            self.stats.out_down += u64::from(pool.meta(handle).segments);
            pool.free(handle);
        }
        Ok(())
    }

    fn next_arrival(&mut self) -> Option<Nanos> {
        Some(Nanos::NEVER)
    }

    fn stats(&self) -> PortStats {
        self.stats
    }
}
