//! Programs on a router in an engine: they receive single packets, and are installed and removed while
//! packets flow.

use crate::support::TestBed;
use longwire_block::{Port, Stamp};
use longwire_engine::{NodeRef, Setup, TO_THE_END};
use longwire_packet::Gso;
use longwire_port::driver::memory::{Facts, FarEnd, MemoryPort};
use longwire_program::{Program, assemble};
use longwire_router::{
    Forwarder, Installation, InterfaceAddress, Router, RouterConfig, RouterPort, RouterPrices,
};
use longwire_units::Nanos;
use longwire_wire::{Ipv4Header, ethernet_header};

const BED: TestBed =
    TestBed { links: &[], routes: &[], workers: 1, pool_bytes: 8 << 20, lead: Nanos::from_millis(1) };
const ROUTER: NodeRef = NodeRef { worker: 0, place: 0 };

/// A router with two ports, which knows 10.0.1.9 behind the second.
fn router() -> Router {
    let port = |place: u8| RouterPort {
        place: place.into(),
        mac: [2, 0, 0, 0, 0xff, place],
        mtu: 1500,
        v4: vec![InterfaceAddress { address: 0x0a00_0001 | u32::from(place) << 8, len: 24 }],
        v6: vec![],
    };
    let config = RouterConfig { ports: (0..2).map(port).collect(), ..RouterConfig::default() };
    let mut router = Router::new(config).unwrap();
    assert!(router.set_neighbour(1, [10, 0, 1, 9].into(), [2, 0, 0, 0, 0, 1]));
    router
}

fn setup(router: Router, stamp: Stamp) -> (Setup, Vec<FarEnd>) {
    let pair = |name| MemoryPort::pair(name, stamp, 4096, 1 << 22);
    let (ports, ends): (Vec<_>, Vec<_>) = ["p0", "p1"].map(pair).into_iter().unzip();
    let ports = ports.into_iter().map(|port| Box::new(port) as Box<dyn Port>).collect();
    let mut setup = BED.setup(ports);
    setup.workers[0].nodes[0] = Box::new(router);
    (setup, ends)
}

/// Counts packets in four bytes of state, and their bytes in four more.
fn counter() -> Forwarder {
    let code = "r6 = *(u32 *)(r1 + 0)
        r7 = *(u32 *)(r1 + 4)
        r7 -= r6
        r1 = 8
        call 65536
        r1 = 1
        lock *(u32 *)(r0 + 0) += w1
        lock *(u32 *)(r0 + 4) += w7
        r0 = 2
        exit";
    let program = Program::new("counter", assemble(code).unwrap(), []);
    Forwarder::prepare(program, Installation::default(), &RouterPrices::default(), 1).unwrap()
}

/// A TCP packet from 10.0.0.9 to 10.0.1.9 with `data` bytes of data.
fn tcp(data: usize) -> Vec<u8> {
    let header = Ipv4Header {
        source: 0x0a00_0009,
        destination: 0x0a00_0109,
        protocol: 6,
        ttl: 64,
        traffic_class: 0,
        id: 0,
        payload_len: 20 + data as u16,
    };
    let mut transport = vec![0; 20 + data];
    transport[12] = 0x50;
    [&ethernet_header([2, 0, 0, 0, 0xff, 0], [2, 0, 0, 0, 0, 9], 0x0800)[..], &header.bytes(), &transport]
        .concat()
}

#[test]
fn programs_get_the_segments_of_trains() {
    for with_program in [false, true] {
        let mut router = router();
        let fid = with_program.then(|| router.install(counter()).unwrap());
        let table = router.forwarders();
        let (setup, mut ends) = setup(router, Stamp::Source);
        // 100 segments of 600 bytes and one of 100, twice; packets before, between and after.
        let train = Facts {
            segments: 101,
            gso_size: 600,
            header_len: 54,
            gso: Gso::TcpV4 as u8,
            csum_start: 34,
            csum_offset: 16,
            checksum: 1,
            ..Facts::default()
        };
        for ms in 1..=2 {
            let time = Nanos::from_millis(ms);
            assert!(ends[0].push_at(time, &tcp(1)));
            assert!(ends[0].push_with(&tcp(60_100), Facts { time, ..train }));
            assert!(ends[0].push_at(time, &tcp(2)));
        }
        let report = setup.simulate(TO_THE_END);
        assert!(report.is_conserved() && report.errors.is_empty(), "{report:?}");
        assert_eq!((report.flow.taken, report.flow.sent), (206, 206));
        let lengths: Vec<_> = std::iter::from_fn(|| ends[1].take()).map(|frame| frame.bytes.len()).collect();
        if let Some(fid) = fid {
            let once = [vec![55], vec![654; 100], vec![154], vec![56]].concat();
            assert_eq!(lengths, [once.clone(), once].concat(), "in order");
            let state = table.forwarder(fid).unwrap().state().get();
            let counts = [0, 4].map(|at| u32::from_le_bytes(state[at..at + 4].try_into().unwrap()));
            assert_eq!(counts, [206, 2 * (55 + 65_400 + 154 + 56)]);
        } else {
            assert_eq!(lengths, [55, 60_154, 56, 55, 60_154, 56], "whole");
        }
    }
}

#[test]
fn nothing_is_lost_while_programs_come_and_go() {
    let (setup, mut ends) = setup(router(), Stamp::Poll);
    let run = setup.start();
    let remote = run.remote();
    let frame = tcp(6);
    let (mut sent, mut came, mut seen) = (0u32, 0, 0);
    let mut out = Vec::new();
    for round in 0..60 {
        let before = remote.at_node(ROUTER, |router: &mut Router, _| router.forwarders()).unwrap();
        let table = match before.all().last() {
            Some(last) if round % 2 == 1 => before.without(last.fid()).unwrap(),
            _ => before.with(counter()).unwrap().1,
        };
        for _ in 0..200 {
            sent += u32::from(ends[0].push_with(&frame, Facts::default()));
            came += u32::from(ends[1].take_into(&mut out).is_some());
        }
        let made_from = before.clone();
        let swap = move |router: &mut Router, _| router.replace_forwarders(&made_from, table);
        let old = remote.at_node(ROUTER, swap).unwrap().expect("nobody else changes it");
        // The counts of the removed program stay known as long as its table is held.
        if round % 2 == 1 {
            seen += old.all().iter().map(|forwarder| forwarder.stats().packets as u32).sum::<u32>();
        }
    }
    let mut waits = 0;
    while came < sent && waits < 2_000_000 {
        match ends[1].take_into(&mut out) {
            Some(_) => came += 1,
            None => std::thread::yield_now(),
        }
        waits += 1;
    }
    let report = run.stop();
    assert!(report.is_conserved() && sent > 1000 && seen > 0, "{sent} sent, {seen} seen");
    assert_eq!((came, report.flow.taken, report.flow.sent), (sent, sent.into(), sent.into()));
}
