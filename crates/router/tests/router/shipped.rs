//! Every included forwarder, installed in a router and given packets.

use crate::rig::{Rig, SECOND, Seen, host_mac, router_mac};
use etherparse::{PacketBuilder, TcpHeader};
use longwire_block::DropReason;
use longwire_program::{Object, ShippedForwarder};
use longwire_router::{Fid, FlowKey, Forwarder, Installation, Key, LinkChoice, RouterPrices};
use longwire_wire::checksum::change;
use std::net::IpAddr;

const CLIENT: [u8; 4] = [10, 0, 1, 9];
const SERVER: [u8; 4] = [10, 0, 2, 9];

/// Installs a forwarder by name, with this initial state.
pub fn install(rig: &mut Rig, name: &str, key: Key, state: &[u8]) -> Fid {
    let shipped = ShippedForwarder::named(name).unwrap();
    let program = Object::parse(shipped.object).unwrap().program(shipped.function).unwrap();
    let link = |number: u16| LinkChoice { name: "".into(), number, port: 2, from: None };
    let links = (10..14).map(link).collect();
    let installation = Installation { name: name.into(), key, links, ..Installation::default() };
    let forwarder = Forwarder::prepare(program, installation, &RouterPrices::default(), 1).unwrap();
    assert!(forwarder.is_compiled(), "{name} runs as machine code");
    let fid = rig.router.install(forwarder).unwrap();
    assert!(state.is_empty() || rig.router.set_data(fid, state), "{name}");
    fid
}

/// A four-byte number in a forwarder's state.
fn word(rig: &Rig, fid: Fid, place: usize) -> u32 {
    u32::from_le_bytes(rig.router.data(fid).unwrap()[place..place + 4].try_into().unwrap())
}

fn words(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn tcp(ports: [u16; 2], set: impl FnOnce(&mut TcpHeader), data: &[u8]) -> Vec<u8> {
    let mut header = TcpHeader::new(ports[0], ports[1], 1000, 512);
    set(&mut header);
    let ip = PacketBuilder::ethernet2(host_mac(1), router_mac(1)).ipv4(CLIENT, SERVER, 64);
    let mut frame = Vec::new();
    ip.tcp_header(header).write(&mut frame, data).unwrap();
    frame
}

fn udp(destination_port: u16, len: usize) -> Vec<u8> {
    let ip = PacketBuilder::ethernet2(host_mac(1), router_mac(1)).ipv4(CLIENT, SERVER, 64);
    let mut frame = Vec::new();
    ip.udp(1024, destination_port).write(&mut frame, &vec![5; len]).unwrap();
    frame
}

fn send(rig: &mut Rig, frame: &[u8]) -> Seen {
    rig.send(SECOND, 1, frame).remove(0)
}

/// The packets of a connection from the client to the server's port.
fn flow_to(port: u16) -> Key {
    Key::Flow(FlowKey {
        source: Some(CLIENT.into()),
        destination: Some(SERVER.into()),
        destination_port: Some(port),
        ..FlowKey::default()
    })
}

fn passed(seen: &Seen) -> bool {
    matches!(seen, Seen::Out(2, _))
}

#[test]
fn monitors_count_and_let_pass() {
    let mut rig = Rig::new();
    let syns = install(&mut rig, "syn-monitor", Key::All, &[]);
    let acks = install(&mut rig, "ack-monitor", flow_to(80), &[]);
    let performance = install(&mut rig, "performance-monitor", Key::All, &words(&[2]));
    let hitters = install(&mut rig, "heavy-hitters", Key::All, &[0; 24]);
    assert!(rig.router.set_data(hitters, &[&[100, 0, 0, 0, 0, 0, 0, 0][..], &[7; 8], &[0; 8]].concat()));
    for _ in 0..3 {
        assert!(passed(&send(&mut rig, &tcp([1024, 80], |tcp| tcp.syn = true, b""))));
    }
    let ack = |tcp: &mut TcpHeader| (tcp.ack, tcp.acknowledgment_number) = (true, 77);
    for _ in 0..4 {
        assert!(passed(&send(&mut rig, &tcp([1024, 80], ack, b""))));
        // Of another flow.
        assert!(passed(&send(&mut rig, &tcp([1024, 81], ack, b""))));
    }
    assert!(passed(&send(&mut rig, &udp(53, 20))));
    assert_eq!(word(&rig, syns, 0), 3, "three SYNs");
    assert_eq!((word(&rig, acks, 0), word(&rig, acks, 8)), (77, 3), "repeated three times");
    let table = rig.router.forwarders();
    let protocols = table.forwarder(performance).unwrap().maps().named("protocols").unwrap();
    let packets = |protocol: u32| protocols.get(&protocol.to_le_bytes(), 0).unwrap()[0];
    assert_eq!((packets(6), packets(17)), (11, 1));
    let top = table.forwarder(hitters).unwrap().maps().named("top").unwrap().dump();
    assert_eq!(top.len(), 2, "three connections; UDP has not sent 100 bytes: {top:?}");
}

#[test]
fn filters_drop() {
    let mut rig = Rig::new();
    // One port from 23; ten from 6000.
    let range = |first: u32, count: u32| first << 16 | count;
    let ports = words(&[range(23, 1), range(6000, 10), 0, 0, 0]);
    let filter = install(&mut rig, "port-filter", Key::All, &ports);
    let dropped = Seen::Dropped(DropReason::Program);
    for (port, is_dropped) in
        [(22, false), (23, true), (24, false), (5999, false), (6000, true), (6009, true), (6010, false)]
    {
        assert_eq!(send(&mut rig, &udp(port, 4)) == dropped, is_dropped, "{port}");
    }
    let reasons = rig.router.forwarders().forwarder(filter).unwrap().stats().reasons;
    assert_eq!((reasons[0], reasons[1], reasons[2]), (1, 2, 0));
    assert!(rig.router.remove(filter));

    let detector = install(&mut rig, "detector", Key::All, &[]);
    let table = rig.router.forwarders();
    let filters = table.forwarder(detector).unwrap().maps().named("filters").unwrap();
    assert!(passed(&send(&mut rig, &udp(53, 4))));
    let mapped = std::net::Ipv4Addr::from(CLIENT).to_ipv6_mapped().octets();
    filters.set(&mapped, 0, &[0; 8], 0).unwrap();
    assert_eq!(send(&mut rig, &udp(53, 4)), dropped);
    assert_eq!(filters.get(&mapped, 0).unwrap()[0], 1);
}

#[test]
fn a_policer_lets_its_rate_pass() {
    let mut rig = Rig::new();
    // 1000 bytes per second, a burst of 100: one frame of 46 bytes twice, then one each 46 ms.
    let double = |number: u64| number.to_le_bytes();
    let billion = 1_000_000_000;
    let state =
        [double(1000), double(100 * billion), double(billion / 10), double(100 * billion), [0; 8], [0; 8]];
    let policer = install(&mut rig, "policer", flow_to(53), state.as_flattened());
    let frame = udp(53, 4);
    assert_eq!(frame.len(), 46);
    for (milliseconds, is_passed) in
        [(1000, true), (1000, true), (1000, false), (1037, false), (1038, true), (1038, false)]
    {
        let seen = rig.send(milliseconds * 1_000_000, 1, &frame).remove(0);
        assert_eq!(passed(&seen), is_passed, "{milliseconds}");
    }
    assert!(passed(&send(&mut rig, &udp(54, 4))), "another flow");
    assert_eq!(word(&rig, policer, 40), 3);
}

#[test]
fn markers_and_layers() {
    let mut rig = Rig::new();
    install(&mut rig, "dscp-marker", Key::All, &words(&[46, 1, 0, 0]));
    let seen = send(&mut rig, &udp(53, 4));
    assert_eq!((seen.out().0, seen.out().1[15], seen.out().1[22]), (2, 46 << 2, 63));
    let headers = &seen.out().1[14..34];
    let sum: u32 = headers.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff, "the checksum is right");

    // Layers from 3 on are dropped; the layer is the first byte of the payload.
    let wavelet = install(&mut rig, "wavelet", flow_to(5000), &words(&[3, 0]));
    let layer = |layer: u8| {
        let ip = PacketBuilder::ethernet2(host_mac(1), router_mac(1)).ipv4(CLIENT, SERVER, 64);
        let mut frame = Vec::new();
        ip.udp(1024, 5000).write(&mut frame, &[layer; 20]).unwrap();
        frame
    };
    let passes: Vec<_> = (0..5).map(|number| passed(&send(&mut rig, &layer(number)))).collect();
    assert_eq!((passes, word(&rig, wavelet, 4)), (vec![true, true, true, false, false], 3));
}

#[test]
fn nat_translates_and_the_route_is_that_of_the_new_address() {
    let mut rig = Rig::new();
    // The external address is 10.0.2.9; nothing is inside.
    let state = [&[0; 8][..], &SERVER, &[255; 4], &[0; 32]].concat();
    let nat = install(&mut rig, "nat44", Key::All, &state);
    let table = rig.router.forwarders();
    let bindings = table.forwarder(nat).unwrap().maps().named("bindings").unwrap();
    let endpoint = |address: [u8; 4], port: u16| [&address[..], &port.to_be_bytes()].concat();
    // 10.0.2.9 port 80 is mapped to 10.0.3.9 port 8080.
    let key = [&endpoint(SERVER, 80)[..], &[6, 1]].concat();
    let value = [&endpoint([10, 0, 3, 9], 8080)[..], &[0; 18]].concat();
    bindings.set(&key, 0, &value, 0).unwrap();
    let seen = send(&mut rig, &tcp([1024, 80], |tcp| tcp.syn = true, b""));
    let (port, frame) = seen.out();
    assert_eq!((port, &frame[..6], &frame[30..34]), (3, &host_mac(3)[..], &[10, 0, 3, 9][..]));
    let sliced = etherparse::PacketHeaders::from_ethernet_slice(frame).unwrap();
    let (Some(etherparse::NetHeaders::Ipv4(ip, _)), Some(etherparse::TransportHeader::Tcp(tcp))) =
        (sliced.net, sliced.transport)
    else {
        panic!("TCP over IPv4")
    };
    assert_eq!((tcp.destination_port, tcp.checksum), (8080, tcp.calc_checksum_ipv4(&ip, &[]).unwrap()));
}

#[test]
fn minimal_ip_as_a_program_sends_by_itself() {
    let mut rig = Rig::new();
    let state = [&host_mac(3)[..], &router_mac(3), &words(&[1 + 3])].concat();
    install(&mut rig, "minimal-ip", flow_to(53), &state);
    let seen = send(&mut rig, &udp(53, 4));
    assert_eq!((seen.out().0, &seen.out().1[..6], seen.out().1[22]), (3, &host_mac(3)[..], 63));
    assert!(passed(&send(&mut rig, &udp(54, 4))));
}

#[test]
fn a_splicer_joins_two_connections() {
    let mut rig = Rig::new();
    let splicer = install(&mut rig, "tcp-splicer", flow_to(80), &[]);
    let frame = tcp([1024, 80], |tcp| tcp.ack = true, b"data");
    assert_eq!(&send(&mut rig, &frame).out().1[26..38], &frame[26..38], "not spliced yet");
    // From the proxy 10.0.2.1 port 5000 to the server 10.0.3.9 port 8080, sequence numbers plus 500,
    // acknowledgements minus 7.
    let ports = [5000u16.to_be_bytes(), 8080u16.to_be_bytes()].concat();
    let shifts = words(&[500, 7u32.wrapping_neg()]);
    let new = [10, 0, 2, 1, 10, 0, 3, 9];
    let ends =
        [&new[..], &ports, &[500u32.to_be_bytes(), 7u32.wrapping_neg().to_be_bytes()].concat()].concat();
    // Addresses and ports are adjacent in the header.
    let sums = [change(&frame[26..38], &ends), change(&frame[26..34], &new)].map(u16::to_be_bytes).concat();
    let state = [&new[..], &ports, &shifts, &sums, &[0; 4]].concat();
    assert!(rig.router.set_data(splicer, &state));
    let seen = send(&mut rig, &frame);
    let (port, spliced) = seen.out();
    assert_eq!((port, &spliced[26..34]), (3, &[10, 0, 2, 1, 10, 0, 3, 9][..]));
    let sliced = etherparse::PacketHeaders::from_ethernet_slice(spliced).unwrap();
    let (Some(etherparse::NetHeaders::Ipv4(ip, _)), Some(etherparse::TransportHeader::Tcp(tcp))) =
        (sliced.net, sliced.transport)
    else {
        panic!("TCP over IPv4")
    };
    assert_eq!((tcp.source_port, tcp.destination_port, tcp.sequence_number), (5000, 8080, 1500));
    assert_eq!(tcp.acknowledgment_number, 7u32.wrapping_neg());
    assert_eq!(tcp.checksum, tcp.calc_checksum_ipv4(&ip, b"data").unwrap());
}

#[test]
fn a_balancer_spreads_flows_over_links() {
    let mut rig = Rig::new();
    let balancer = install(&mut rig, "balancer", Key::All, &words(&[3, 7, 0, 0]));
    for port in 0..60 {
        for _ in 0..2 {
            assert!(passed(&send(&mut rig, &udp(port, 4))));
        }
    }
    assert_eq!(word(&rig, balancer, 8), 120);
    let mut taken = [0; 3];
    for both in rig.chosen.chunks(2) {
        assert_eq!(both[0], both[1], "a flow stays on its link");
        let link = both[0].link.unwrap();
        assert_eq!(both[0].mark, u32::from(link) - 10 + 1);
        taken[usize::from(link - 10)] += 1;
    }
    // 60 flows, a third each: the standard deviation is the root of 60 * 1/3 * 2/3, 3.7.
    assert!(taken.iter().all(|flows| (9..=31).contains(flows)), "{taken:?}");
}

#[test]
fn all_are_here() {
    let mut rig = Rig::new();
    for shipped in ShippedForwarder::ALL {
        install(&mut rig, shipped.name, Key::All, &[]);
    }
    assert_eq!((ShippedForwarder::ALL.len(), rig.router.forwarders().all().len()), (18, 18));
    // With empty states and maps they do nothing.
    assert!(passed(&send(&mut rig, &udp(53, 20))));
    assert!(passed(&send(&mut rig, &tcp([1, 2], |_| (), b"data"))));
    let v6 = IpAddr::from([0xfd00, 2, 0, 0, 0, 0, 0, 9]);
    let IpAddr::V6(v6) = v6 else { unreachable!() };
    let ip = PacketBuilder::ethernet2(host_mac(1), router_mac(1)).ipv6(
        [0xfd, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9],
        v6.octets(),
        64,
    );
    let mut frame = Vec::new();
    ip.udp(1, 2).write(&mut frame, &[0; 8]).unwrap();
    assert!(passed(&send(&mut rig, &frame)));
}
