//! Schedulers as a router has them: several ports, flows with weights on several processors, flows that come with nothing known of them.
#![forbid(unsafe_code)]

use longwire_sched::model::{Departure, Machine, Open, Packet, Setup};
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
        ..Settings::default()
    };
    Setup {
        scheduler: scheduler.into(),
        settings,
        input_ring: 4096,
        request_ring: 1,
        feedback_ring: 128,
        ready_ring: 128,
        transmit_ring: 0,
        step: Nanos::ZERO,
        drop_at_input: true,
        known: false,
    }
}

/// Packets of a flow, one every so often.
fn stream(key: u32, port: u16, bytes: u32, cycles: u64, every: u64, until: u64) -> Vec<(Nanos, Packet)> {
    let packet = Packet { port, ..Packet::new(key, bytes, cycles) };
    (1..=until / every).map(|number| (Nanos(number * every), packet)).collect()
}

/// What leaves until then.
fn departures(machine: &mut Machine, packets: Vec<(Nanos, Packet)>, until: u64) -> Vec<Departure> {
    let mut sent = Vec::new();
    machine.run(&mut Open::new(packets), Nanos(until), &mut |departure| sent.push(*departure));
    sent
}

#[test]
fn a_port_that_is_behind_keeps_only_its_own_flows() {
    for spec in SPECS {
        let mut machine = Machine::new(router(spec.name, 1)).unwrap();
        // Nine flows ask for five times what port 0 has, one for half of port 1: a packet of 1000 bytes takes 0.8 ms.
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
            // Its own transmission, and a packet or two before it at the processor.
            assert!(late < Some(810_000), "{}: {late:?} ns", spec.name);
        }
    }
}

#[test]
fn ports_share_processors_by_the_weights_of_their_flows() {
    for spec in SPECS.iter().filter(|spec| spec.apart) {
        // Ports that hardly take any time. Four flows to port 0 and two to port 1, all of them asking for most of the processor, and the latter weigh two.
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
fn weights_leave_no_processor_idle() {
    // (weights, all of whose flows ask for all of four processors)
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
            let busy = machine.seen().processor_busy;
            assert!(busy > 39_500_000, "{} with {weights:?}: {busy} of 40 ms", spec.name);
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
        // One flow all the time, and after 10 ms 200 packets of another at once; each takes 3 µs.
        let mut packets = stream(0, 0, 100, 3000, 3100, 12 * MS);
        packets.extend((0..200).map(|_| (Nanos(10 * MS), Packet::new(1, 100, 3000))));
        let sent = departures(&mut machine, packets, 12 * MS);
        let of_first: Vec<u64> = sent.iter().filter(|d| d.packet.key == 0).map(|d| d.sent.0).collect();
        let gap = of_first.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
        assert!(gap <= 20_000, "{}: nothing for {gap} ns", spec.name);
    }
}
