//! A router in an engine: packets that it makes, keeps and consumes are counted, and its timing is exact, in
//! simulated runs.

use crate::support::TestBed;
use longwire_block::{DropReason, Port, Stamp};
use longwire_engine::{NodeRef, RemoteError, Report, Setup, TO_THE_END};
use longwire_port::driver::memory::{FarEnd, MemoryPort};
use longwire_router::prefix::Prefix;
use longwire_router::{Bridge, InterfaceAddress, NextHop, Router, RouterConfig, RouterPort};
use longwire_units::Nanos;
use longwire_wire::{Ipv4Header, arp_message, ethernet_header};

/// A link of 1 ms each way between ports 0 and 1.
const BED: TestBed = TestBed {
    links: &[&[("delay", "1 ms")], &[("delay", "1 ms")]],
    routes: &[((0, 1), &[0]), ((1, 0), &[1])],
    workers: 1,
    pool_bytes: 8 << 20,
    lead: Nanos::from_millis(1),
};

const fn router_mac(port: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0xff, port]
}

const fn host_mac(port: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, port]
}

fn setup(workers: u32) -> (Setup, Vec<FarEnd>) {
    let pair = |name| MemoryPort::pair(name, Stamp::Source, 512, 1 << 17);
    let (ports, ends): (Vec<_>, Vec<_>) = ["p0", "p1"].map(pair).into_iter().unzip();
    let ports = ports.into_iter().map(|port| Box::new(port) as Box<dyn Port>).collect();
    let mut setup = TestBed { workers, ..BED }.setup(ports);
    let port = |place: u8| RouterPort {
        place: place.into(),
        mac: router_mac(place),
        mtu: 1500,
        v4: vec![InterfaceAddress { address: 0x0a00_0001 | u32::from(place) << 8, len: 24 }],
        v6: vec![],
    };
    let config = RouterConfig { ports: (0..2).map(port).collect(), ..RouterConfig::default() };
    setup.workers[0].nodes[0] = Box::new(Router::new(config).unwrap());
    (setup, ends)
}

/// A packet from 10.0.0.9 behind port 0.
fn packet(destination: u32, ttl: u8) -> Vec<u8> {
    let header = Ipv4Header {
        source: 0x0a00_0009,
        destination,
        protocol: 17,
        ttl,
        traffic_class: 0,
        id: 0,
        payload_len: 26,
    };
    [&ethernet_header(router_mac(0), host_mac(0), 0x0800)[..], &header.bytes(), &[0; 26]].concat()
}

/// The ARP reply of host `10.0.N.9` behind port N to the router.
fn answer(port: u8) -> Vec<u8> {
    let address = 0x0a00_0009 | u32::from(port) << 8;
    let message = arp_message(2, (host_mac(port), address), (router_mac(port), address & !0xff | 1));
    [&ethernet_header(router_mac(port), host_mac(port), 0x0806)[..], &message].concat()
}

/// Departure time of a frame, in nanoseconds, and its bytes.
type SentFrame = (u64, Vec<u8>);

fn run(workers: u32, frames: &[(u64, usize, Vec<u8>)]) -> (Report, Vec<Vec<SentFrame>>) {
    let (setup, mut ends) = setup(workers);
    for (ms, port, frame) in frames {
        assert!(ends[*port].push_at(Nanos::from_millis(*ms), frame));
    }
    let report = setup.simulate(TO_THE_END);
    assert!(report.is_conserved() && report.errors.is_empty(), "{report:?}");
    let taken = ends.iter_mut().map(|end| {
        let frames = std::iter::from_fn(|| end.take());
        frames.map(|frame| (frame.facts.time.0, frame.bytes)).collect()
    });
    (report, taken.collect())
}

#[test]
fn a_packet_waits_for_its_neighbour_then_takes_the_link() {
    for workers in [1, 2] {
        let frames = [(5, 0, packet(0x0a00_0109, 64)), (9, 1, answer(1))];
        let (report, out) = run(workers, &frames);
        // The request leaves at once, without the link; the packet when it is answered, and a millisecond
        // later.
        let times: Vec<_> = out[1].iter().map(|(time, frame)| (time / 1_000_000, frame.len())).collect();
        assert_eq!((out[0].len(), times), (0, vec![(5, 42), (10, 60)]), "{workers} workers");
        assert_eq!((report.flow.made, report.flow.consumed, report.flow.kept), (1, 1, 0));
    }
}

#[test]
fn nobody_answers_and_the_sender_is_told_in_time() {
    for workers in [1, 2] {
        let frames = [(5, 0, packet(0x0a00_0109, 64)), (6, 0, packet(0x0a00_0177, 1))];
        let (report, out) = run(workers, &frames);
        // Requested at 5, 1005 and 2005 ms, given up at 3005. The router also has to resolve the sender: from
        // 6 ms on because of the second packet's hop limit, whose error is never sent, for the sender does
        // not answer either.
        let times = |port: usize| out[port].iter().map(|(time, _)| time / 1_000_000).collect::<Vec<_>>();
        assert_eq!((times(1), times(0)), (vec![5, 1005, 2005], vec![6, 1006, 2006]), "{workers} workers");
        let drops = [DropReason::NoNeighbour, DropReason::HopLimit].map(|reason| report.flow.dropped(reason));
        // The packet, the error about the other packet, and the error about the first one's failed delivery.
        assert_eq!((drops, report.flow.kept), ([3, 1], 0), "{workers} workers");
    }
}

#[test]
fn what_still_waits_at_the_end_is_kept() {
    let (setup, mut ends) = setup(1);
    assert!(ends[0].push_at(Nanos::from_millis(5), &packet(0x0a00_0109, 64)));
    let report = setup.simulate(Nanos::from_millis(100));
    assert_eq!((report.flow.kept, report.flow.made, report.flow.sent), (1, 1, 1));
    assert!(report.is_conserved());
}

#[test]
fn a_running_router_is_asked_and_changed() {
    let (setup, _ends) = setup(2);
    let run = setup.start();
    let remote = run.remote();
    let router = NodeRef { worker: 0, place: 0 };
    let prefix = Prefix::new(0xc0a8_0000, 16).unwrap();
    let added =
        remote.at_node(router, move |router: &mut Router, _| router.add_route_v4(prefix, NextHop::Discard));
    assert_eq!(added, Ok(Ok(())));
    let routes =
        remote.at_node(router, |router: &mut Router, _| router.routes_v4().collect::<Vec<_>>()).unwrap();
    assert!(routes.contains(&(prefix, NextHop::Discard.into())), "{routes:?}");
    // Another kind of node, and a missing one, are not changed.
    let other = remote.at_node(router, |_: &mut Bridge, now| now);
    assert!(matches!(other, Err(RemoteError::Refused(why)) if why.contains("Bridge")));
    let nowhere = NodeRef { worker: 0, place: 9 };
    assert_eq!(remote.at_node(nowhere, |_: &mut Router, now| now), Err(RemoteError::Gone));
    assert!(run.stop().is_conserved());
}
