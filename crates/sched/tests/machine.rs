//! The machine: throughput, conservation, and sharing by schedulers.

use longwire_sched::fairness::{Service, jain};
use longwire_sched::model::{
    ClosedArrivals, Demand, Departure, FlowPlan, Machine, OpenArrivals, Packet, Refill, Setup, table_7,
};
use longwire_sched::{Estimator, PerByte, SPECS, Settings};
use longwire_units::Nanos;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// The paper's machine: four processors of 600 MHz, a port of 50 Mbit/s.
fn paper(scheduler: &str) -> Setup {
    let settings = Settings {
        processors: 4,
        clock_mhz: 600,
        port: PerByte::of_rate(50_000_000),
        charged: PerByte::of_ns(80),
        quantum: Nanos(25_000),
        quantum_bytes: 128,
        estimator: Estimator::HALF,
        budget: 100_000,
        longest: 127,
        ..Settings::default()
    };
    Setup {
        input_ring: 16,
        request_ring: 4,
        feedback_ring: 8,
        ready_ring: 4,
        drop_at_input: false,
        ..Setup::new(scheduler, settings)
    }
}

fn times(packets: &[(u64, Packet)], setup: Setup) -> Vec<(u32, u64)> {
    let mut machine = Machine::new(setup).unwrap();
    let packets = packets.iter().map(|(time, packet)| (Nanos(*time), *packet)).collect();
    let mut seen = Vec::new();
    machine.run(&mut OpenArrivals::new(packets), Nanos::NEVER, &mut |departure| {
        seen.push((departure.packet.key, departure.sent.0));
    });
    seen
}

#[test]
fn times_by_hand() {
    let packet = Packet::new;
    for spec in SPECS {
        // One packet: 600 cycles are 1000 ns, 100 bytes are 16 µs.
        assert_eq!(times(&[(5, packet(1, 100, 600))], paper(spec.name)), [(1, 17_005)], "{}", spec.name);
        // Four processors: two flows' packets are processed at once, the port sends them one after the other.
        let two = [(0, packet(1, 100, 6000)), (0, packet(2, 50, 6000))];
        assert_eq!(times(&two, paper(spec.name)), [(1, 26_000), (2, 34_000)], "{}", spec.name);
        // A flow's second packet is ready first, and waits for the first.
        let order = [(0, packet(1, 50, 60_000)), (1, packet(1, 100, 600))];
        assert_eq!(times(&order, paper(spec.name)), [(1, 108_000), (1, 124_000)], "{}", spec.name);
    }
}

#[test]
fn the_schedulers_own_time_counts() {
    let setup = Setup { step: Nanos(500), ..paper("fifo") };
    // Enqueue at 0, dequeue at 500, processed from then on: 1 µs, and 16 µs on the port.
    let packet = Packet::new(1, 100, 600);
    assert_eq!(times(&[(0, packet)], setup), [(1, 17_500)]);
}

#[test]
fn processors_and_port_are_used_up() {
    // One resource is the bottleneck, so the packet rate is known.
    for (cycles, bytes, per_second) in [(6000u64, 10u32, 400_000u64), (60, 100, 62_500)] {
        for spec in SPECS {
            let flows: Vec<_> = (0..8)
                .map(|key| FlowPlan { key, bytes: (bytes, bytes), demand: Demand::PerPacket(cycles) })
                .collect();
            let mut machine = Machine::new(paper(spec.name)).unwrap();
            let mut traffic = ClosedArrivals::new(flows, 200, Refill::SameFlow, 1);
            machine.run(&mut traffic, Nanos::from_millis(20), &mut |_| ());
            let sent = machine.stats().sent * 50;
            assert!(sent.abs_diff(per_second) * 100 < per_second, "{}: {sent} of {per_second}", spec.name);
        }
    }
}

/// Service of each flow in a saturated run, in its dominant resource.
fn dominant(scheduler: &str, factor: u64) -> Vec<f64> {
    let mut setup = paper(scheduler);
    setup.settings.budget = 100_000 * factor;
    setup.settings.quantum = Nanos(25_000 * factor);
    let mut machine = Machine::new(setup).unwrap();
    let mut traffic = ClosedArrivals::new(table_7(factor), 16 * 32, Refill::SameFlow, 1);
    let mut service: BTreeMap<u32, Service> = BTreeMap::new();
    machine.run(&mut traffic, Nanos::from_millis(600), &mut |departure: &Departure| {
        let own = service.entry(departure.packet.key).or_default();
        own.processor += departure.processing.0 as f64 / 4.0;
        own.port += departure.transmission.0 as f64;
    });
    service.values().map(Service::dominant).collect()
}

#[test]
fn dominant_shares_are_equal_where_that_is_promised() {
    for spec in SPECS {
        for factor in [1, 10, 20] {
            let shares = dominant(spec.name, factor);
            assert_eq!(shares.len(), 16, "{}: nobody starves", spec.name);
            let index = jain(&shares);
            if spec.dominant {
                assert!(index >= 0.99, "{} x{factor}: {index}", spec.name);
            }
            if factor == 20 && matches!(spec.name, "cbcs" | "separate-drr" | "fifo" | "sfq") {
                assert!(index < 0.99, "{} x{factor}: {index}", spec.name);
            }
        }
    }
}

#[derive(Debug, Clone)]
struct Rings {
    input: usize,
    request: usize,
    feedback: usize,
    ready: u32,
    transmit: usize,
    step: u64,
    drops: bool,
}

fn rings() -> impl Strategy<Value = Rings> {
    (1usize..4, 1usize..4, 1usize..3, 1u32..4, 0usize..3, 0u64..2000, any::<bool>()).prop_map(
        |(input, request, feedback, ready, transmit, step, drops)| Rings {
            input,
            request,
            feedback,
            ready,
            transmit,
            step,
            drops,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// All losses are counted, whatever rings are full, and everything comes out in the end, each flow in
    /// order.
    #[test]
    fn packets_are_kept_under_back_pressure(
        rings in rings(),
        packets in prop::collection::vec((0u64..200_000, 0u32..5, 40u32..128, 0u64..30_000), 1..120),
    ) {
        for spec in SPECS {
            let mut setup = Setup {
                input_ring: rings.input,
                request_ring: rings.request,
                feedback_ring: rings.feedback,
                ready_ring: rings.ready,
                transmit_ring: rings.transmit,
                step: Nanos(rings.step),
                drop_at_input: rings.drops,
                ..paper(spec.name)
            };
            setup.settings.flow_limit = 9;
            setup.settings.ports = 2;
            setup.settings.budget = 29_000;
            let mut machine = Machine::new(setup).unwrap();
            machine.scheduler().set_port(4, 1).unwrap();
            let list = packets.iter().map(|(time, key, bytes, cycles)| {
                (Nanos(*time), Packet::new(*key, *bytes, *cycles))
            });
            let mut last = BTreeMap::new();
            let mut in_order = true;
            machine.run(&mut OpenArrivals::new(list.collect()), Nanos::NEVER, &mut |departure| {
                let before = last.insert(departure.packet.key, departure.arrived);
                in_order &= before.is_none_or(|before| before <= departure.arrived);
            });
            let stats = machine.stats();
            prop_assert!(in_order, "{}", spec.name);
            prop_assert_eq!(machine.inside(), 0, "{}: {:?}", spec.name, stats);
            prop_assert_eq!(stats.arrived, packets.len() as u64);
            let gone = stats.sent + stats.dropped_at_input + stats.refused + stats.stopped;
            prop_assert_eq!(stats.arrived, gone);
            prop_assert!(rings.drops || stats.dropped_at_input == 0);
        }
    }
}
