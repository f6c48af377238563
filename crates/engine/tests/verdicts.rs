//! The verdict cache changes no result: a bridge with cached verdicts behaves as one that is called for every
//! packet, though stations move, expire, and exceed the cache.

use crate::support::TestBed;
use longwire_block::path::LinkRef;
use longwire_block::{Node, Outbox, Port, Stamp};
use longwire_engine::{Report, TO_THE_END};
use longwire_link::classify::Classifier;
use longwire_packet::{Batch, Pool};
use longwire_port::driver::memory::{FarEnd, MemoryPort};
use longwire_router::Bridge;
use longwire_units::Nanos;
use proptest::collection::vec;
use proptest::prelude::*;

const PORTS: u16 = 3;
const AGEING: Nanos = Nanos(40_000);
const STATIONS: usize = 4;

/// One link per rule, distinguished by its delay.
const BED: TestBed = TestBed {
    links: &[&[("delay", "1 us")], &[("delay", "2 us")], &[("delay", "4 us")], &[("delay", "8 us")]],
    routes: &[],
    workers: 1,
    pool_bytes: 8 << 20,
    lead: Nanos(1000),
};

/// A bridge whose station table is hidden from the engine.
struct Unknown(Bridge);

impl Node for Unknown {
    fn forward(&mut self, pool: &mut Pool, batch: &Batch, out: &mut Outbox) {
        self.0.forward(pool, batch, out);
    }

    fn ports(&self) -> &[u16] {
        self.0.ports()
    }
}

/// Time since the previous frame, port, source and destination station, addresses, and form.
type Input = (u64, u16, (u8, u8), (u8, u8), u8);

fn inputs() -> impl Strategy<Value = Vec<Input>> {
    let wait = prop_oneof![6 => Just(0), 3 => 0..2000u64, 1 => 0..60_000u64];
    // Mostly behind one port.
    let station = (0..6u8, 0..6u8, 0..PORTS, 0..12u8);
    let input = (wait, station, (0..3u8, 0..3u8), 0..12u8);
    let input = input.prop_map(|(wait, (from, to, port, moves), addresses, kind)| {
        let home = u16::from(from) % PORTS;
        (wait, if moves == 0 { port } else { home }, (from, to), addresses, kind)
    });
    vec(input, 1..400)
}

fn frame(&(_, _, (from, to), (source, destination), kind): &Input) -> Vec<u8> {
    let mac = |station: u8| if station == 5 { [0xff; 6] } else { [2, 0, 0, 0, 0, station] };
    let head = |kind: [u8; 2]| [&mac(to)[..], &mac(from), &kind].concat();
    let v4 = |first: u8| {
        let mut frame = head([8, 0]);
        frame.extend([first, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, source, 10, 0, 0, destination]);
        frame
    };
    let v6 = |next: u8, payload: &[u8]| {
        let mut frame = head([0x86, 0xdd]);
        frame.extend([0x60, 0, 0, 0, 0, payload.len() as u8, next, 255]);
        frame.extend([&[0xfd; 15][..], &[source], &[0xfd; 15], &[destination], payload].concat());
        frame
    };
    match kind {
        0 => head([8, 6]),
        1 => v4(0x46),
        // Truncated behind the addresses, and within them.
        2 => v4(0x45),
        3 => v4(0x45)[..33].to_vec(),
        4 => v6(17, &[0; 8]),
        5 => v6(6, &[])[..53].to_vec(),
        // Neighbour discovery, which has no address pair.
        6 => v6(58, &[135, 0, 0, 0, 0, 0, 0, 0]),
        7 => v6(6, &[0; 20]),
        _ => [v4(0x45), vec![0; 26]].concat(),
    }
}

/// Output of a port with times.
type Output = Vec<(Nanos, Vec<u8>)>;

/// Output of each port, and the report.
fn run(inputs: &[Input], remembered: bool) -> (Vec<Output>, Report) {
    let pair = |place: u16| MemoryPort::pair(&format!("p{place}"), Stamp::Source, 512, 1 << 20);
    let (ports, mut ends): (Vec<_>, Vec<FarEnd>) = (0..PORTS).map(pair).unzip();
    let ports = ports.into_iter().map(|port| Box::new(port) as Box<dyn Port>).collect();
    let mut setup = BED.setup(ports);
    let bridge = Bridge::new((0..PORTS).collect(), AGEING, STATIONS);
    setup.workers[0].nodes =
        vec![if remembered { Box::new(bridge) as Box<dyn Node> } else { Box::new(Unknown(bridge)) }];
    let link = |place| setup.map.paths.add(&[LinkRef::new(0, place)]);
    let [first, second, third, fourth] = [0, 1, 2, 3].map(link);
    let v4 = |source: u32, destination: u32| (0x0a00_0000 + source, 0x0a00_0000 + destination);
    let wide = |last: u8| u128::from_be_bytes([[0xfd; 15].as_slice(), &[last]].concat().try_into().unwrap());
    setup.map.classifier = Classifier::new(
        &[(v4(0, 1), first), (v4(1, 0), second), (v4(2, 2), third)],
        &[((wide(0), wide(1)), second), ((wide(1), wide(2)), third)],
        &[((0, 1), fourth), ((1, 2), first), ((2, 0), third)],
    );
    let mut at = Nanos(1);
    for input in inputs {
        at += Nanos(input.0);
        assert!(ends[usize::from(input.1)].push_at(at, &frame(input)));
    }
    let report = setup.simulate(TO_THE_END);
    let all = |end: &mut FarEnd| std::iter::from_fn(|| end.take().map(|f| (f.facts.time, f.bytes))).collect();
    (ends.iter_mut().map(all).collect(), report)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn what_is_remembered_is_what_would_be_decided(inputs in inputs()) {
        let (with, its_report) = run(&inputs, true);
        let (without, report) = run(&inputs, false);
        prop_assert_eq!(with, without);
        prop_assert_eq!(&its_report.flow, &report.flow);
        prop_assert!(report.is_conserved());
    }
}
