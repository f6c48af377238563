//! A port with something before it that sees what comes in and goes out.

use longwire_block::{Port, PortError, PortStats, Spec, Stamp, Values};
use longwire_packet::{Batch, Pool};
use longwire_units::Nanos;

/// A wrapper before a port.
pub trait Before: Send {
    /// How the port with it is described.
    fn describe(&self, port: &dyn Port) -> String;

    /// Takes what comes in by the port, and adds what is to go on to `batch`.
    ///
    /// # Errors
    /// Those of the port.
    fn receive(
        &mut self,
        port: &mut dyn Port,
        pool: &mut Pool,
        now: Nanos,
        batch: &mut Batch,
    ) -> Result<(), PortError>;

    /// Passes on what goes out by the port.
    ///
    /// # Errors
    /// Those of the port.
    fn transmit(&mut self, port: &mut dyn Port, pool: &mut Pool, batch: &Batch) -> Result<(), PortError> {
        port.transmit(pool, batch)
    }

    /// What the port with it has counted.
    fn stats(&self, port: &dyn Port) -> PortStats {
        port.stats()
    }
}

/// A port with something before it. All else is the port's own business.
pub struct Wrapped<B> {
    port: Box<dyn Port>,
    before: B,
}

impl<B: Before> Wrapped<B> {
    /// Puts `before` before `port`.
    pub fn new(port: Box<dyn Port>, before: B) -> Self {
        Self { port, before }
    }
}

impl<B: Before> Port for Wrapped<B> {
    fn name(&self) -> &str {
        self.port.name()
    }

    fn describe(&self) -> String {
        self.before.describe(&*self.port)
    }

    fn stamp(&self) -> Stamp {
        self.port.stamp()
    }

    fn receive(&mut self, pool: &mut Pool, now: Nanos, batch: &mut Batch) -> Result<(), PortError> {
        self.before.receive(&mut *self.port, pool, now, batch)
    }

    fn transmit(&mut self, pool: &mut Pool, batch: &Batch) -> Result<(), PortError> {
        self.before.transmit(&mut *self.port, pool, batch)
    }

    fn next_arrival(&mut self) -> Option<Nanos> {
        self.port.next_arrival()
    }

    fn change_source(&mut self, now: Nanos, source: &str, spec: &'static Spec, values: &Values) -> bool {
        self.port.change_source(now, source, spec, values)
    }

    fn readable_fd(&self) -> Option<i32> {
        self.port.readable_fd()
    }

    fn stats(&self) -> PortStats {
        self.before.stats(&*self.port)
    }

    fn finish(&mut self) -> Result<(), PortError> {
        self.port.finish()
    }
}
