//! Schedulers in a router: several ports, weighted flows on several processors, unknown flows.

use longwire_sched::model::{Departure, Machine, OpenArrivals, Packet, Setup};
use longwire_sched::{PerByte, SPECS, Settings, Weight};
use longwire_units::Nanos;

const MS: u64 = 1_000_000;

/// Two ports at 10 Mbit/s, processors at 1 GHz.
fn router(scheduler: &str, processors: u32) -> Setup {
    let settings = Settings {
        flows: 64,
        flow_limit: 256,
        processors,
        ports: 2,
        port: PerByte::of_rate(10_000_000),
        charged: PerByte::of_rate(10_000_000),
        ready_limit: Some(128),
        // Those at the processors, those in the ring before them, and the one held by the scheduler.
        under_way: Some(processors + 2),
        ..Settings::default()
    };
    Setup::new(scheduler, settings)
}

/// Packets of a flow at a fixed interval.
fn stream(key: u32, port: u16, bytes: u32, cycles: u64, every: u64, until: u64) -> Vec<(Nanos, Packet)> {
    let packet = Packet { port, ..Packet::new(key, bytes, cycles) };
    (1..=until / every).map(|number| (Nanos(number * every), packet)).collect()
}

/// What leaves until then.
fn departures(machine: &mut Machine, packets: Vec<(Nanos, Packet)>, until: u64) -> Vec<Departure> {
    let mut sent = Vec::new();
    machine.run(&mut OpenArrivals::new(packets), Nanos(until), &mut |departure| sent.push(*departure));
    sent
}

#[test]
fn a_port_that_is_behind_keeps_only_its_own_flows() {
    for spec in SPECS {
        let mut machine = Machine::new(router(spec.name, 1)).unwrap();
        // Nine flows demand five times the capacity of port 0, one half of port 1: a packet of 1000 bytes
        // takes 0.8 ms.
        let flows = (0..9).flat_map(|key| stream(key, 0, 1000, 1000, 1_440_000, 200 * MS));
        let packets: Vec<_> = flows.chain(stream(9, 1, 1000, 1000, 1_600_000, 200 * MS)).collect();
        let sent = departures(&mut machine, packets, 202 * MS);
        let other = sent.iter().filter(|departure| departure.packet.port == 1);
        let late = other.clone().map(|departure| (departure.sent - departure.arrived).0).max();
        if spec.name == "fifo" {
            // One queue for all.
            assert!(other.count() < 100, "{}", spec.name);
        } else {
            assert_eq!(other.count(), 125, "{}", spec.name);
            // Its own transmission, and one or two packets before it at the processor.
            assert!(late < Some(810_000), "{}: {late:?} ns", spec.name);
        }
    }
}

#[test]
fn ports_share_processors_by_the_weights_of_their_flows() {
    for spec in SPECS.iter().filter(|spec| spec.apart) {
        // Very fast ports. Four flows to port 0 and two to port 1, all demanding most of the processor; the
        // latter have weight two.
        let mut setup = router(spec.name, 1);
        (setup.settings.port, setup.settings.charged) = (PerByte::of_ns(1), PerByte::of_ns(1));
        let mut machine = Machine::new(setup).unwrap();
        for key in 4..6 {
            machine.scheduler().set_weight(key, Weight::new(2).unwrap()).unwrap();
            machine.scheduler().set_port(key, 1).unwrap();
        }
        let flows = (0..6).flat_map(|key| stream(key, (key / 4) as u16, 100, 5000, 6000, 30 * MS));
        let sent = departures(&mut machine, flows.collect(), 30 * MS);
        let share = |port| sent.iter().filter(|departure| departure.packet.port == port).count();
        assert!(share(0).abs_diff(share(1)) <= 20, "{}: {} and {}", spec.name, share(0), share(1));
    }
}

#[test]
fn a_flow_of_little_weight_has_little_on_a_port_of_its_own() {
    for (processors, requests) in [(1, 1), (1, 2), (2, 1), (2, 2)] {
        for spec in SPECS.iter().filter(|spec| spec.apart) {
            let mut setup = router(spec.name, processors);
            (setup.settings.port, setup.settings.charged) = (PerByte::of_ns(1), PerByte::of_ns(1));
            (setup.request_ring, setup.settings.quantum) = (requests, Nanos(3000));
            setup.settings.under_way = Some(processors + requests as u32 + 1);
            let mut machine = Machine::new(setup).unwrap();
            // Two flows to port 0, one to port 1, each demanding more than everything.
            let mut packets = Vec::new();
            for (key, (port, weight)) in (0..).zip([(0, 20), (0, 1), (1, 1)]) {
                machine.scheduler().set_weight(key, Weight::new(weight).unwrap()).unwrap();
                machine.scheduler().set_port(key, port).unwrap();
                packets.extend(stream(key, port, 100, 3000, 1000, 40 * MS));
            }
            let sent = departures(&mut machine, packets, 40 * MS);
            let other = sent.iter().filter(|departure| departure.packet.port == 1).count();
            // One part in 22, plus or minus a round.
            let share = sent.len() / 22;
            let near = other.abs_diff(share) <= 40;
            assert!(near, "{}, {processors} and {requests}: {other} of {}", spec.name, sent.len());
        }
    }
}

#[test]
fn a_flow_that_has_all_it_wants_counts_as_what_it_has() {
    for spec in SPECS.iter().filter(|spec| spec.apart) {
        let mut setup = processors(spec.name, 2);
        setup.settings.quantum = Nanos(20_000);
        let mut machine = Machine::new(setup).unwrap();
        machine.scheduler().set_weight(0, Weight::new(100).unwrap()).unwrap();
        machine.scheduler().set_port(2, 1).unwrap();
        // One of weight 100 demands three quarters of two processors; one of weight 1 to the same port and
        // one to the other demand everything.
        let flows = [(0, 0, 2000), (1, 0, 2000), (2, 1, 2000)].into_iter();
        let packets = flows.flat_map(|(key, port, every)| stream(key, port, 100, 3000, every, 20 * MS));
        let sent = departures(&mut machine, packets.collect(), 20 * MS);
        let had = |key| sent.iter().filter(|sent| sent.packet.key == key).count() * 3;
        assert!(had(0) > 29_700, "{}: {} of 30 000 µs", spec.name, had(0));
        assert!(had(1).abs_diff(had(2)) <= 250, "{}: {} and {}", spec.name, had(1), had(2));
    }
}

#[test]
fn dominant_shares_are_alike_whatever_the_port() {
    for spec in SPECS.iter().filter(|spec| spec.dominant) {
        // A byte takes 8 ns on each port. Packets to port 0 take 8 µs there and 3 µs on the processor, those
        // to port 1 1 µs and 3 µs; both demand everything.
        let mut setup = processors(spec.name, 1);
        (setup.settings.port, setup.settings.charged) = (PerByte::of_ns(8), PerByte::of_ns(8));
        let mut machine = Machine::new(setup).unwrap();
        machine.scheduler().set_port(1, 1).unwrap();
        let flows = [(0, 0, 1000), (1, 1, 125)].into_iter();
        let packets = flows.flat_map(|(key, port, bytes)| stream(key, port, bytes, 3000, 2000, 50 * MS));
        let sent = departures(&mut machine, packets.collect(), 50 * MS);
        let count = |key| sent.iter().filter(|sent| sent.packet.key == key).count() as u64;
        // 8 a = 3 b and 3 (a + b) = 1: eight elevenths of the port, and of the processor.
        let shares = [count(0) * 8000 * 100 / (50 * MS), count(1) * 3000 * 100 / (50 * MS)];
        assert!(shares.iter().all(|share| (71..=74).contains(share)), "{}: {shares:?}", spec.name);
    }
}

#[test]
fn weights_leave_no_processor_idle() {
    // (weights, all of whose flows demand all of four processors)
    for weights in [&[1, 1, 1, 1, 1, 1, 1, 16][..], &[1, 2, 3, 8], &[1; 8]] {
        for spec in SPECS {
            let mut setup = router(spec.name, 4);
            (setup.settings.port, setup.settings.charged) = (PerByte::of_ns(1), PerByte::of_ns(1));
            let mut machine = Machine::new(setup).unwrap();
            let mut packets = Vec::new();
            for (key, weight) in (0..).zip(weights) {
                machine.scheduler().set_weight(key, Weight::new(*weight).unwrap()).unwrap();
                packets.extend(stream(key, 0, 100, 3000, 750, 10 * MS));
            }
            departures(&mut machine, packets, 10 * MS);
            let busy = machine.stats().processor_busy;
            assert!(busy > 39_500_000, "{} with {weights:?}: {busy} of 40 ms", spec.name);
        }
    }
}

#[test]
fn a_scheduler_that_takes_its_time_leaves_no_processor_idle() {
    // Two processors, packets of 4 µs, and 500 ns for each of the scheduler's three operations on a packet,
    // hidden by the ring before the processors.
    for weights in [[1, 1], [1, 9], [1, 300]] {
        for spec in SPECS {
            let mut setup = processors(spec.name, 2);
            (setup.step, setup.settings.under_way) = (Nanos(500), Some(4));
            setup.settings.quantum = Nanos(2000);
            let mut machine = Machine::new(setup).unwrap();
            let mut packets = Vec::new();
            for (key, weight) in (0..).zip(weights) {
                machine.scheduler().set_weight(key, Weight::new(weight).unwrap()).unwrap();
                packets.extend(stream(key, 0, 100, 4000, 2000, 10 * MS));
            }
            departures(&mut machine, packets, 10 * MS);
            let busy = machine.stats().processor_busy;
            assert!(busy > 19_900_000, "{} with {weights:?}: {busy} of 20 ms", spec.name);
        }
    }
}

#[test]
fn a_dear_packet_among_cheap_ones_leaves_no_processor_idle() {
    // Some of a flow's packets take long: later ones must wait for them, while another flow has packets for
    // all processors.
    for (count, weight, expensive, every) in [(2, 1, 280_000, 7), (4, 3, 280_000, 16), (3, 4, 400_000, 39)] {
        for spec in SPECS.iter().filter(|spec| spec.name != "fifo") {
            let mut setup = processors(spec.name, count);
            (setup.settings.flow_limit, setup.settings.packets) = (4096, 65_536);
            let mut machine = Machine::new(setup).unwrap();
            machine.scheduler().set_weight(0, Weight::new(weight).unwrap()).unwrap();
            let mut packets = stream(0, 0, 100, 12_000, 4000, 60 * MS);
            packets.iter_mut().step_by(every).for_each(|(_, packet)| packet.cycles = expensive);
            packets.extend(stream(1, 0, 100, 6000, 6000 / u64::from(count), 60 * MS));
            let sent = departures(&mut machine, packets, 60 * MS);
            let (busy, all) = (machine.stats().processor_busy, 60 * MS * u64::from(count));
            assert!(busy > all / 1000 * 997, "{} on {count}: {busy} of {all}", spec.name);
            // Those that charge measured costs give it its weight, too.
            if spec.dominant {
                let had: u64 =
                    sent.iter().filter(|sent| sent.packet.key == 0).map(|sent| sent.packet.cycles).sum();
                let share = had * 1000 / (all * weight as u64 / (weight as u64 + 1));
                assert!((950..=1050).contains(&share), "{} on {count}: {share} of 1000", spec.name);
            }
        }
    }
}

#[test]
fn a_flow_of_which_nothing_is_known_does_not_come_for_nothing() {
    for spec in SPECS.iter().filter(|spec| spec.apart) {
        let mut setup = router(spec.name, 1);
        (setup.settings.port, setup.settings.charged) = (PerByte::of_ns(1), PerByte::of_ns(1));
        setup.settings.quantum = Nanos(3000);
        let mut machine = Machine::new(setup).unwrap();
        // One permanent flow, and after 10 ms 200 packets of another at once; each takes 3 µs.
        let mut packets = stream(0, 0, 100, 3000, 3100, 12 * MS);
        packets.extend((0..200).map(|_| (Nanos(10 * MS), Packet::new(1, 100, 3000))));
        let sent = departures(&mut machine, packets, 12 * MS);
        let of_first: Vec<u64> = sent.iter().filter(|d| d.packet.key == 0).map(|d| d.sent.0).collect();
        let gap = of_first.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
        assert!(gap <= 20_000, "{}: nothing for {gap} ns", spec.name);
    }
}

/// A router with very fast ports: only processors are shared.
fn processors(scheduler: &str, count: u32) -> Setup {
    let mut setup = router(scheduler, count);
    (setup.settings.port, setup.settings.charged) = (PerByte::of_ns(1), PerByte::of_ns(1));
    setup
}

/// Processor time of departures from each port from `begin` on.
fn times(sent: &[Departure], begin: u64) -> [u64; 2] {
    let late = sent.iter().filter(|departure| departure.sent.0 >= begin);
    late.fold([0; 2], |mut times, departure| {
        times[usize::from(departure.packet.port)] += departure.packet.cycles;
        times
    })
}

#[test]
fn what_a_port_had_for_itself_is_not_held_against_it() {
    // Unknown flows to port 0 for 80 ms, with 200 packets at once each, the first of which is predicted far
    // too cheap or too expensive.
    for spec in SPECS.iter().filter(|spec| spec.apart) {
        for (first_estimate, cycles) in [(Some(1), 30_000), (Some(1_000_000), 3000), (None, 30_000)] {
            let mut setup = processors(spec.name, 1);
            setup.settings.first_estimate = first_estimate;
            let mut machine = Machine::new(setup).unwrap();
            machine.scheduler().set_port(1, 1).unwrap();
            let bursts = (0..10u32).flat_map(|at| {
                let packet = Packet::new(10 + at, 100, cycles);
                (0..200).map(move |_| (Nanos(u64::from(at) * 8 * MS), packet))
            });
            // The cost of these two is known from earlier single packets: some schedulers do not correct
            // predictions.
            let both = (0..2).flat_map(|key| {
                let mut packets = stream(key, key as u16, 100, cycles, cycles / 2, 20 * MS);
                packets.iter_mut().for_each(|(time, _)| time.0 += 100 * MS);
                let before: Vec<_> = (0..25).map(|n| (Nanos(90 * MS + n * 100_000), packets[0].1)).collect();
                [before, packets].concat()
            });
            let sent = departures(&mut machine, bursts.chain(both).collect(), 120 * MS);
            let [one, other] = times(&sent, 100 * MS);
            assert!(one.abs_diff(other) <= 600_000, "{}, {first_estimate:?}: {one} and {other}", spec.name);
            assert!(one + other > 19_500_000, "{}: {}", spec.name, one + other);
        }
    }
}

#[test]
fn a_flow_alone_on_its_way_to_a_port_has_its_weight() {
    for spec in SPECS.iter().filter(|spec| spec.apart) {
        for count in [1, 2, 4] {
            let mut machine = Machine::new(processors(spec.name, count)).unwrap();
            machine.scheduler().set_weight(2, Weight::new(8).unwrap()).unwrap();
            machine.scheduler().set_port(2, 1).unwrap();
            let flows = [(0, 0), (1, 0), (2, 1)].into_iter();
            let packets = flows.flat_map(|(key, port)| stream(key, port, 100, 3000, 500, 10 * MS));
            let sent = departures(&mut machine, packets.collect(), 10 * MS);
            let [others, alone] = times(&sent, 0);
            // Eight of ten.
            let share = alone * 1000 / (alone + others);
            assert!((790..=810).contains(&share), "{} on {count}: {share} of 1000", spec.name);
        }
    }
}

#[test]
fn running_empty_forgives_nothing() {
    // With the paper's round schedulers it does: credit and debt of idle flows are forgotten.
    for spec in SPECS.iter().filter(|spec| spec.apart && !spec.name.starts_with("cbcs")) {
        for (processors_, weight, every) in [(1, 1, 110_000), (1, 1, 150_000), (1, 3, 70_000), (2, 1, 60_000)]
        {
            let mut setup = processors(spec.name, processors_);
            setup.settings.quantum = Nanos(1000);
            let mut machine = Machine::new(setup).unwrap();
            machine.scheduler().set_weight(1, Weight::new(weight).unwrap()).unwrap();
            // A flow whose packets cost a hundred quanta and come one by one, and one that always demands
            // more.
            let (expensive, little) =
                (stream(0, 0, 100, 100_000, every, 100 * MS), stream(1, 0, 100, 1000, 400, 100 * MS));
            let sent = departures(&mut machine, [expensive, little].concat(), 100 * MS);
            let had: u64 =
                sent.iter().filter(|sent| sent.packet.key == 0).map(|sent| sent.packet.cycles).sum();
            let all = 100 * MS * u64::from(processors_);
            // Packets are not split: one more.
            let due = all / (1 + weight as u64) + 100_000;
            assert!(had <= due, "{} {processors_} {weight} {every}: {had} of {all}", spec.name);
            let busy = machine.stats().processor_busy;
            assert!(busy > all / 100 * 99, "{} {processors_} {weight} {every}: busy for {busy}", spec.name);
        }
    }
}

#[test]
fn a_weight_that_is_lowered_counts_at_once() {
    for spec in SPECS.iter().filter(|spec| spec.name != "fifo") {
        let mut machine = Machine::new(processors(spec.name, 1)).unwrap();
        machine.scheduler().set_weight(0, Weight::new(1000).unwrap()).unwrap();
        let packets = || (0..2).flat_map(|key| stream(key, 0, 100, 3000, 1500, 20 * MS));
        let mut all = OpenArrivals::new(packets().collect());
        let mut had = [[0u64; 2]; 2];
        for (part, until) in [10 * MS, 20 * MS].into_iter().enumerate() {
            machine.run(&mut all, Nanos(until), &mut |departure| {
                had[part][departure.packet.key as usize] += departure.packet.cycles;
            });
            machine.scheduler().set_weight(0, Weight::ONE).unwrap();
        }
        assert!(had[0][0] > 9_500_000, "{}: {had:?}", spec.name);
        assert!(had[1][0].abs_diff(had[1][1]) < 200_000, "{}: {had:?}", spec.name);
    }
}
