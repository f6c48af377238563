//! A port with an interceptor, which sees its received and transmitted packets.

use longwire_block::{JoiningSource, Port, PortError, PortStats, Spec, Stamp, Underlay, Values};
use longwire_packet::{Batch, Pool};
use longwire_units::Nanos;

/// Intercepts the packets of a port.
pub trait Interceptor: Send {
    /// The description of the intercepted port.
    fn describe(&self, port: &dyn Port) -> String {
        port.describe()
    }

    /// Receives packets from the port, and adds those that continue to `batch`.
    ///
    /// # Errors
    /// Those of the port.
    fn receive(
        &mut self,
        port: &mut dyn Port,
        pool: &mut Pool,
        now: Nanos,
        batch: &mut Batch,
    ) -> Result<(), PortError> {
        port.receive(pool, now, batch)
    }

    /// Transmits packets through the port.
    ///
    /// # Errors
    /// Those of the port.
    fn transmit(&mut self, port: &mut dyn Port, pool: &mut Pool, batch: &Batch) -> Result<(), PortError> {
        port.transmit(pool, batch)
    }

    /// The counters of the intercepted port.
    fn stats(&self, port: &dyn Port) -> PortStats {
        port.stats()
    }
}

/// A port with an interceptor. All other methods are the port's own.
pub struct InterceptedPort<B> {
    port: Box<dyn Port>,
    interceptor: B,
}

impl<B: Interceptor> InterceptedPort<B> {
    /// Wraps `port` with `interceptor`.
    pub fn new(port: Box<dyn Port>, interceptor: B) -> Self {
        Self { port, interceptor }
    }
}

impl<B: Interceptor> Port for InterceptedPort<B> {
    fn name(&self) -> &str {
        self.port.name()
    }

    fn describe(&self) -> String {
        self.interceptor.describe(&*self.port)
    }

    fn stamp(&self) -> Stamp {
        self.port.stamp()
    }

    fn receive(&mut self, pool: &mut Pool, now: Nanos, batch: &mut Batch) -> Result<(), PortError> {
        self.interceptor.receive(&mut *self.port, pool, now, batch)
    }

    fn transmit(&mut self, pool: &mut Pool, batch: &Batch) -> Result<(), PortError> {
        self.interceptor.transmit(&mut *self.port, pool, batch)
    }

    fn next_arrival(&mut self) -> Option<Nanos> {
        self.port.next_arrival()
    }

    fn change_source(&mut self, now: Nanos, source: &str, spec: &'static Spec, values: &Values) -> bool {
        self.port.change_source(now, source, spec, values)
    }

    fn add_source(&mut self, now: Nanos, source: &mut Option<JoiningSource>) {
        self.port.add_source(now, source);
    }

    fn remove_source(&mut self, source: &str) {
        self.port.remove_source(source);
    }

    fn readable_fd(&self) -> Option<i32> {
        self.port.readable_fd()
    }

    fn stats(&self) -> PortStats {
        self.interceptor.stats(&*self.port)
    }

    fn underlay(&self) -> Option<Underlay> {
        self.port.underlay()
    }

    fn finish(&mut self) -> Result<(), PortError> {
        self.port.finish()
    }
}
