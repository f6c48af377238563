//! The load of a speed, and the engine alone, memory to memory in real time: packet rate, cost and lateness.

use crate::Settings;
use crate::ends::Shared;
use crate::experiment::{blast, paced, partner, scenario, silent};
use longwire_bench::engine::speed;
use longwire_bench::punctual::Punctual;
use longwire_bench::{BenchError, stop_after};
use longwire_block::{Port, PortError};
use longwire_clock::monotonic;
use longwire_engine::Report;
use longwire_packet::{Batch, Pool};
use longwire_port::driver::memory::{Blast, BlastPlan};
use longwire_port::intercepted::{InterceptedPort, Interceptor};
use longwire_units::{Histogram, Nanos};
use std::time::Duration;

/// A load, of memory ports or of real ones.
pub(crate) struct Load {
    /// Ports, in pairs; each sends to its partner. A single port sends only.
    pub ports: usize,
    /// Links of each port, selected by address.
    pub links_a_port: u32,
    /// Length of the frames without FCS.
    pub frame_bytes: usize,
    /// The links, as in a scenario.
    pub links: String,
    /// Bits per second of each port at the link layer; none for full speed.
    pub rate: Option<u64>,
}

/// Results.
pub(crate) struct MemoryResult {
    pub packets_per_second: f64,
    pub report: Report,
}

impl Load {
    /// The traffic of an end.
    pub(crate) fn plan(&self, place: usize) -> BlastPlan {
        let plan = blast(place, self.links_a_port, self.frame_bytes);
        match self.rate {
            _ if place >= self.ports => silent(place),
            Some(rate) => BlastPlan { count: u64::MAX, ..paced(plan, rate, Nanos::NEVER) },
            None => plan,
        }
    }

    fn ends(&self) -> usize {
        (0..self.ports).map(|place| partner(place).max(place) + 1).max().unwrap_or(2)
    }

    fn ports(&self) -> Result<Vec<Box<dyn Port>>, BenchError> {
        let port = |place| -> Result<Box<dyn Port>, BenchError> {
            let blast = Blast::new(longwire_bench::world::HOSTS[place], self.plan(place));
            Ok(Box::new(Punctual::new(blast.map_err(BenchError::not_here)?)))
        };
        (0..self.ends()).map(port).collect()
    }

    /// Carries it for `time`, after half as long a warm-up.
    pub(crate) fn carry(&self, settings: &Settings<'_>, time: Duration) -> Result<MemoryResult, BenchError> {
        self.carry_through(settings, time, self.ports()?)
    }

    /// As [`Self::carry`], through these ports. A packet that is unaccounted for is an error: then there is
    /// no result.
    fn carry_through(
        &self,
        settings: &Settings<'_>,
        time: Duration,
        ports: Vec<Box<dyn Port>>,
    ) -> Result<MemoryResult, BenchError> {
        let plan = longwire_scenario::parse("validate", &scenario(self.ends(), &self.links))?;
        let run = longwire_assemble::build(&plan, ports, |_| None)?.setup.start();
        let speed = speed(&run.remote(), [time / 2, time], |time| settings.pause(time));
        let (packets_per_second, report) = stop_after(run, speed)?;
        if !report.is_conserved() {
            return Err(BenchError::failed(
                "counting packets",
                "packets are missing from the engine's books",
            ));
        }
        Ok(MemoryResult { packets_per_second, report })
    }

    /// Histogram of its packets' lateness over `time`.
    pub(crate) fn lateness(&self, settings: &Settings<'_>, time: Duration) -> Result<Histogram, BenchError> {
        let late = Shared::new(Histogram::default());
        let watch = |port| -> Box<dyn Port> {
            Box::new(InterceptedPort::new(port, Punctuality { late: late.clone() }))
        };
        let ports = self.ports()?.into_iter().map(watch).collect();
        self.carry_through(settings, time, ports)?;
        let histogram = std::mem::take(&mut *late.lock());
        Ok(histogram)
    }
}

/// Records the lateness of the packets that a port sends.
struct Punctuality {
    late: Shared<Histogram>,
}

impl Interceptor for Punctuality {
    fn transmit(&mut self, port: &mut dyn Port, pool: &mut Pool, batch: &Batch) -> Result<(), PortError> {
        let now = monotonic();
        let mut late = self.late.lock();
        for &handle in batch.as_slice() {
            late.record(now.since(Nanos(pool.meta(handle).leave())));
        }
        port.transmit(pool, batch)
    }
}
