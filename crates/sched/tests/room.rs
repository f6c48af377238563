//! Packet memory: greedy flows leave others their share, whatever their number.

use longwire_sched::fairness::jain;
use longwire_sched::model::{Machine, OpenArrivals, Packet, Setup};
use longwire_sched::{PerByte, SPECS, Settings, Spec, Weight};
use longwire_units::Nanos;
use std::ops::Range;

/// What a packet takes, in ns.
const COST: u64 = 3000;
/// The key of the flow with a small demand.
const LIGHT: u32 = 5000;

/// One processor of 1 GHz and two ports, the first of which may be slow, with a router's default packet
/// memory.
fn setup(spec: &Spec, flows: u32, port: PerByte) -> Setup {
    let settings = Settings {
        flows: flows + 2,
        packets: 4096,
        flow_limit: 256,
        ports: 2,
        port,
        charged: PerByte::of_ns(0),
        quantum: Nanos(COST),
        budget: 10 * COST,
        ready_limit: Some(128),
        ..Settings::default()
    };
    Setup::new(spec.name, settings)
}

/// Packets of these flows, one each in every `every` ns; those of a round are close together and always in
/// the same order.
fn greedy(flows: Range<u32>, every: u64, until: u64, cost: impl Fn(u32) -> u64) -> Vec<(Nanos, Packet)> {
    let of_flow = |key: u32| {
        let packet = Packet::new(key, 200, cost(key));
        (0..until / every).map(move |round| (Nanos(round * every + u64::from(key) * 13), packet))
    };
    flows.flat_map(of_flow).collect()
}

fn run(machine: &mut Machine, packets: Vec<(Nanos, Packet)>, until: u64) {
    machine.run(&mut OpenArrivals::new(packets), Nanos(until), &mut |_| ());
}

#[test]
fn flows_that_ask_for_four_times_what_there_is_get_the_same_however_many_they_are() {
    for spec in SPECS.iter().filter(|spec| spec.apart) {
        for flows in [2, 16, 20, 40, 100, 1000] {
            // Each is served a hundred times, and the queues of the first 20 are long by then.
            let until = (COST * 100 * u64::from(flows)).max(10_000_000);
            let mut machine = Machine::new(setup(spec, flows, PerByte::of_ns(0))).unwrap();
            let every = COST * u64::from(flows) / 4;
            let mut packets = greedy(0..flows, every, until, |_| COST);
            // A tenth of its share: one packet while each of the others is served ten times.
            let share = COST * (u64::from(flows) + 1);
            packets.extend(
                (1..until / (10 * share)).map(|n| (Nanos(n * 10 * share + 5), Packet::new(LIGHT, 200, COST))),
            );
            run(&mut machine, packets, until);
            let scheduler = machine.scheduler();
            let had: Vec<f64> =
                (0..flows).map(|key| scheduler.counters(key).unwrap().cycles as f64).collect();
            let index = jain(&had);
            assert!(index >= 0.99, "{}, {flows} flows: {index}", spec.name);
            let light = scheduler.counters(LIGHT).unwrap();
            assert_eq!(light.refused, 0, "{}, {flows} flows: of {light:?}", spec.name);
            assert!(light.in_packets - light.out_packets <= 1, "{}, {flows} flows: {light:?}", spec.name);
        }
    }
}

#[test]
fn a_port_that_is_behind_leaves_room_for_flows_to_another() {
    for spec in SPECS.iter().filter(|spec| spec.apart) {
        // 40 flows demand much more than a port of 10 Mbit/s has; one flow to the other port 0.3 of it.
        let mut machine = Machine::new(setup(spec, 40, PerByte::of_ns(800))).unwrap();
        let until = 400_000_000;
        let mut packets = greedy(0..40, 1_000_000, until, |_| 1000);
        let other = Packet { port: 1, ..Packet::new(LIGHT, 200, 1000) };
        packets.extend((100..700).map(|n| (Nanos(n * 500_000), other)));
        run(&mut machine, packets, until);
        let scheduler = machine.scheduler();
        assert!(scheduler.happened().no_room > 0, "{}", spec.name);
        let other = scheduler.counters(LIGHT).unwrap();
        assert_eq!((other.refused, other.out_packets), (0, 600), "{}", spec.name);
    }
}

#[test]
fn weights_and_costs_count_though_room_is_scarce() {
    for spec in SPECS.iter().filter(|spec| spec.apart) {
        // 30 flows of weight 1, and 6 of weight 10: 4096 places do not allow 256 for each.
        let until = 30_000_000;
        let mut machine = Machine::new(setup(spec, 36, PerByte::of_ns(0))).unwrap();
        for key in 30..36 {
            machine.scheduler().set_weight(key, Weight::new(10).unwrap()).unwrap();
        }
        let expensive = |key: u32| if key.is_multiple_of(2) { COST } else { COST / 4 };
        let mut packets = greedy(0..30, 30_000, until, expensive);
        packets.extend(greedy(30..36, 3000, until, expensive));
        run(&mut machine, packets, until);
        let scheduler = machine.scheduler();
        assert!(scheduler.happened().no_room > 0, "{}", spec.name);
        let weight = |key: u32| if key < 30 { 1.0 } else { 10.0 };
        let had: Vec<f64> =
            (0..36).map(|key| scheduler.counters(key).unwrap().cycles as f64 / weight(key)).collect();
        let index = jain(&had);
        assert!(index >= 0.99, "{}: {index}, {had:?}", spec.name);
    }
}
