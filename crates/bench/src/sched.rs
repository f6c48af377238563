//! Cost of sharing processors and ports: a packet's whole path through each scheduler, with few and with many
//! flows.

use crate::{BenchError, Sample, Settings};
use longwire_block::Dice;
use longwire_report::Row;
use longwire_sched::{PerByte, Resource, SPECS, Scheduler, Spec, Weight};
use longwire_units::Nanos;
use std::time::Instant;

/// Flows, packets inside, and the limit in ns for schedulers with constant-time selection.
const SIZES: [(u32, u32, f64); 2] = [(16, 64, 60.0), (100_000, 200_000, 120.0)];
/// Packets drawn beforehand, and packets timed at once: few, so that some runs are not interrupted on a busy
/// machine.
const PACKETS: usize = 400_000;
const TIMED: usize = 5_000;

/// The rows of this bench.
pub(crate) fn rows(settings: &Settings<'_>) -> Result<Vec<Row>, BenchError> {
    let mut rows = Vec::new();
    for (flows, inside, most) in SIZES {
        for spec in SPECS {
            let name = format!("sched: {}, {flows} flows", spec.name);
            let mut world = BenchHosts::new(spec, flows, inside)?;
            let sample: Sample = settings.repeat(300, &name, || Ok(world.run(TIMED)))?;
            // The others sort their flows, so they are only shown.
            rows.push(if spec.constant_time {
                sample.at_most(&name, "ns", most)
            } else {
                sample.shown(&name, "ns")
            });
        }
    }
    Ok(rows)
}

/// A scheduler with a constant number of packets inside, from flows in random order.
struct BenchHosts {
    scheduler: Scheduler,
    /// Flow and length of arriving packets, and cycles of processed ones, drawn before timing starts.
    coming: Vec<(u32, u32, u64)>,
    at: usize,
}

impl BenchHosts {
    fn new(spec: &Spec, flows: u32, inside: u32) -> Result<Self, BenchError> {
        let settings = longwire_sched::Settings {
            flows,
            packets: inside * 2,
            flow_limit: inside,
            port: PerByte::of_ns(8),
            charged: PerByte::of_ns(8),
            quantum: Nanos(13_000),
            budget: 4_000,
            ..longwire_sched::Settings::default()
        };
        let mut scheduler = Scheduler::new(spec.name, &settings).map_err(BenchError::not_here)?;
        let mut dice = Dice::named(1, "bench/sched");
        // Keys are arbitrary: these are spread over all 32 bits.
        let key = |flow: u64| (flow as u32).wrapping_mul(0x9e37_79b1);
        for flow in 0..flows {
            let weight = Weight::new(1 + i64::from(flow % 3)).unwrap_or(Weight::ONE);
            scheduler.set_weight(key(flow.into()), weight).map_err(BenchError::not_here)?;
        }
        let mut draw =
            || (key(dice.below(flows.into())), 60 + dice.below(1450) as u32, 80 + dice.below(3500));
        let coming: Vec<_> = (0..PACKETS).map(|_| draw()).collect();
        let mut world = Self { scheduler, coming, at: 0 };
        for _ in 0..inside {
            world.put();
        }
        // Warm-up, until rounds have the order of arrivals.
        world.run(PACKETS);
        Ok(world)
    }

    #[inline]
    fn put(&mut self) -> u64 {
        let (key, bytes, cycles) = self.coming[self.at];
        self.at = if self.at + 1 < self.coming.len() { self.at + 1 } else { 0 };
        // There is room for all of them.
        let _ = self.scheduler.enqueue(key, 1, bytes, Nanos::ZERO);
        cycles
    }

    /// Passes this many packets. Returns nanoseconds per packet: enqueued, given to a processor, processed
    /// and reported, given to the port.
    fn run(&mut self, packets: usize) -> f64 {
        let (start, mut sent) = (Instant::now(), 0u64);
        for _ in 0..packets {
            let ahead = |by: usize| Some(self.coming[(self.at + by) % PACKETS].0);
            // As a router does with a batch of packets.
            self.scheduler.expect(ahead(8), ahead(4), ahead(1));
            let cycles = self.put();
            if let Some(granted) = self.scheduler.dequeue(Resource::Processor) {
                self.scheduler.finish(granted.ticket, cycles);
            }
            sent += u64::from(self.scheduler.dequeue(Resource::Port(0)).is_some());
        }
        start.elapsed().as_nanos() as f64 / sent.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_packets_leave_as_come() {
        for spec in SPECS {
            let mut world = BenchHosts::new(spec, 16, 64).unwrap();
            let before = world.scheduler.totals().out_packets;
            assert!(world.run(1000) > 0.0);
            assert_eq!(world.scheduler.totals().out_packets - before, 1000, "{}", spec.name);
            assert_eq!(
                (world.scheduler.inside(), world.scheduler.totals().refused),
                (64, 0),
                "{}",
                spec.name
            );
        }
    }
}
