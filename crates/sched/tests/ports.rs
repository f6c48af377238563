//! Flows to several ports: they share processors as if they were in one line, by weight, and satisfied flows
//! leave the rest to others.

use longwire_block::Dice;
use longwire_sched::model::{Machine, OpenArrivals, Packet, Setup};
use longwire_sched::{PerByte, SPECS, Settings, Weight};
use longwire_units::Nanos;

const TIME: u64 = 40_000_000;

/// A flow: packets of one cost at a fixed interval.
#[derive(Debug, Clone, Copy)]
struct Flow {
    port: u16,
    weight: u32,
    cycles: u64,
    every: u64,
}

impl Flow {
    /// Its processor demand.
    fn wanted(&self) -> f64 {
        (TIME / self.every * self.cycles) as f64
    }
}

/// Some processors, and 2 to 9 flows that demand 2 to 200 % of them.
fn draw(dice: &mut Dice) -> (u32, Vec<Flow>) {
    let processors = 1 + dice.below(4);
    let flows = (0..2 + dice.below(8)).map(|_| {
        let cycles = 500 + dice.below(7500);
        let percent = [2, 5, 10, 20, 50, 75, 200][dice.below(7) as usize];
        let weight = [1, 1, 1, 2, 3, 5, 5][dice.below(7) as usize];
        let every = (cycles * 100 / (percent * processors)).max(100);
        Flow { port: dice.below(4) as u16, weight, cycles, every }
    });
    let flows = flows.collect();
    (processors as u32, flows)
}

/// Expected share of each flow: its demand, or its weighted part of what smaller demands leave.
fn shares(processors: u32, flows: &[Flow]) -> Vec<f64> {
    let mut shares: Vec<Option<f64>> = vec![None; flows.len()];
    loop {
        let left = (TIME * u64::from(processors)) as f64 - shares.iter().flatten().sum::<f64>();
        let open = || flows.iter().zip(&shares).filter(|(_, share)| share.is_none());
        let unit = left / open().map(|(flow, _)| f64::from(flow.weight)).sum::<f64>();
        let is_little = |flow: &Flow| flow.wanted() <= unit * f64::from(flow.weight);
        if !open().any(|(flow, _)| is_little(flow)) {
            let of = |(flow, share): (&Flow, &Option<f64>)| share.unwrap_or(unit * f64::from(flow.weight));
            return flows.iter().zip(&shares).map(of).collect();
        }
        for (flow, share) in
            flows.iter().zip(&mut shares).filter(|(flow, share)| share.is_none() && is_little(flow))
        {
            *share = Some(flow.wanted());
        }
    }
}

/// What each flow had.
fn served(scheduler: &str, processors: u32, flows: &[Flow]) -> Vec<f64> {
    let settings = Settings {
        flow_limit: 2048,
        packets: 32_768,
        processors,
        ports: 4,
        // Ports take no time.
        port: PerByte::of_ns(0),
        charged: PerByte::of_ns(0),
        ready_limit: Some(128),
        under_way: Some(processors + 2),
        quantum: Nanos(8000),
        ..Settings::default()
    };
    let setup = Setup::new(scheduler, settings);
    let mut machine = Machine::new(setup).unwrap();
    let mut packets = Vec::new();
    for (key, flow) in (0..).zip(flows) {
        machine.scheduler().set_weight(key, Weight::new(flow.weight.into()).unwrap()).unwrap();
        machine.scheduler().set_port(key, flow.port).unwrap();
        let packet = Packet { port: flow.port, ..Packet::new(key, 100, flow.cycles) };
        packets.extend((1..=TIME / flow.every).map(|number| (Nanos(number * flow.every), packet)));
    }
    packets.sort_by_key(|(time, _)| *time);
    let mut served = vec![0.0; flows.len()];
    machine.run(&mut OpenArrivals::new(packets), Nanos(TIME), &mut |departure| {
        served[departure.packet.key as usize] += departure.packet.cycles as f64;
    });
    served
}

#[test]
fn flows_share_processors_whatever_their_ports() {
    for case in 0..8 {
        let (processors, flows) = draw(&mut Dice::named(case, "sched/ports"));
        let due = shares(processors, &flows);
        for spec in SPECS.iter().filter(|spec| spec.apart) {
            let had = served(spec.name, processors, &flows);
            for ((flow, had), due) in flows.iter().zip(had).zip(&due) {
                assert!(had >= due * 0.95, "{}, case {case}: {had} of {due} for {flow:?}", spec.name);
            }
        }
    }
}

/// Bytes of two flows of packets of these lengths through a port of 100 Mbit/s in 40 ms, each demanding all
/// of it.
fn bytes_of_two(ready: u32, cycles: u64, lengths: [u32; 2]) -> [u64; 2] {
    let settings = Settings {
        flow_limit: 1024,
        packets: 4096,
        port: PerByte::of_ns(80),
        charged: PerByte::of_ns(80),
        ready_limit: Some(ready),
        quantum: Nanos(20_000),
        ..Settings::default()
    };
    let setup = Setup { ready_ring: ready, ..Setup::new("separate-drr", settings) };
    let mut machine = Machine::new(setup).unwrap();
    let packets = (0..TIME / 8000).flat_map(|step| {
        let each = (0..).zip(lengths).flat_map(|(key, bytes)| {
            (0..1000u32.div_ceil(bytes)).map(move |_| Packet::new(key, bytes, cycles))
        });
        each.map(move |packet| (Nanos(step * 8000), packet)).collect::<Vec<_>>()
    });
    let mut sent = [0; 2];
    machine.run(&mut OpenArrivals::new(packets.collect()), Nanos(TIME), &mut |departure| {
        sent[departure.packet.key as usize] += u64::from(departure.packet.bytes);
    });
    sent
}

#[test]
fn separate_drr_shares_a_full_port_by_bytes() {
    // Packets of the same cost, with lengths 10 or 23 times apart; cheap ones, and ones that use nearly all
    // of the processor.
    for (ready, cycles, lengths) in [(128, 300, [100, 1000]), (32, 300, [100, 1000]), (128, 2000, [64, 1500])]
    {
        let [short, long] = bytes_of_two(ready, cycles, lengths);
        // All that the port could send, except for late packets; and half each, to within one or two quanta
        // of bytes.
        assert!(short + long > TIME / 80 * 99 / 100, "{ready} {cycles}: {short} {long}");
        assert!(short.abs_diff(long) <= 2 * 1518 + 128 * 64, "{ready} {cycles}: {short} {long}");
    }
}

/// For 100 ms a flow is bound by its port, and leaves the processor to a flow of another port. Then it needs
/// the processor, too.
#[test]
fn processor_time_that_a_flow_left_to_others_is_not_saved() {
    const FULL: u64 = 100_000_000;
    const END: u64 = 150_000_000;
    let short = |port: u16| Packet { port, ..Packet::new(port.into(), 50, 5000) };
    let every = |times: std::ops::Range<u64>, step: usize, packet: Packet| {
        times.step_by(step).map(move |time| (Nanos(time), packet))
    };
    for spec in SPECS.iter().filter(|spec| spec.apart) {
        let settings = Settings {
            ports: 2,
            flow_limit: 4096,
            packets: 100_000,
            port: PerByte::of_ns(8),
            charged: PerByte::of_ns(8),
            ready_limit: Some(16),
            quantum: Nanos(10_000),
            dovetail: Nanos(1_000_000),
            ..Settings::default()
        };
        let mut machine = Machine::new(Setup { ready_ring: 16, ..Setup::new(spec.name, settings) }).unwrap();
        machine.scheduler().set_port(1, 1).unwrap();
        let long = every(0..FULL, 11_000, Packet::new(0, 1500, 100));
        let mut packets: Vec<_> =
            long.chain(every(FULL..END, 5000, short(0))).chain(every(0..END, 4000, short(1))).collect();
        packets.sort_by_key(|(time, _)| *time);
        let mut processed = [0, 0];
        machine.run(&mut OpenArrivals::new(packets), Nanos(END), &mut |departure| {
            // Long packets that still waited leave in the first 10 ms; short ones that came then, in 20.
            if departure.sent.0 > FULL + 20_000_000 {
                processed[departure.packet.key as usize] += departure.packet.cycles;
            }
        });
        let [one, other] = processed;
        assert!(one.abs_diff(other) * 10 <= one + other, "{}: {one} and {other}", spec.name);
    }
}
