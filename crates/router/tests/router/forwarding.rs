//! What routers do for hosts: forward, answer pings and traceroutes, report errors, resolve neighbours.
//! Frames are built and parsed by etherparse.

use crate::rig::{Rig, SECOND, Seen, config, host_mac, router_mac};
use etherparse::{Icmpv4Type, Icmpv6Type, IpHeaders, PacketBuilder, PacketHeaders, TransportHeader};
use etherparse::{icmpv4, icmpv6};
use longwire_block::DropReason;
use longwire_router::{FullIpReason, Limit, NextHop, PolicedWork};
use std::net::{IpAddr, Ipv4Addr};

const HOST: [u8; 4] = [10, 0, 1, 9];
const FAR: [u8; 4] = [10, 0, 2, 9];

fn v6(net: u16, host: u16) -> [u8; 16] {
    std::net::Ipv6Addr::new(0xfd00, net, 0, 0, 0, 0, 0, host).octets()
}

fn udp(source: [u8; 4], destination: [u8; 4], ttl: u8, payload: usize) -> Vec<u8> {
    let mut frame = Vec::new();
    let builder = PacketBuilder::ethernet2(host_mac(1), router_mac(1)).ipv4(source, destination, ttl);
    builder.udp(1000, 33434).write(&mut frame, &vec![7; payload]).unwrap();
    frame
}

fn udp_v6(source: [u8; 16], destination: [u8; 16], hops: u8, payload: usize) -> Vec<u8> {
    let mut frame = Vec::new();
    let builder = PacketBuilder::ethernet2(host_mac(1), router_mac(1)).ipv6(source, destination, hops);
    builder.udp(1000, 33434).write(&mut frame, &vec![7; payload]).unwrap();
    frame
}

/// The Ethernet addresses, IP headers and ICMP type of a frame with correct checksums.
fn read(frame: &[u8]) -> ([u8; 6], IpHeaders, Option<TransportHeader>, Vec<u8>) {
    let headers = PacketHeaders::from_ethernet_slice(frame).unwrap();
    let link = headers.link.unwrap().ethernet2().unwrap();
    assert_eq!(link.source[..5], router_mac(0)[..5], "it comes from the router");
    let Some(etherparse::NetHeaders::Ipv4(ip, extensions)) = headers.net.clone() else {
        let Some(etherparse::NetHeaders::Ipv6(ip, extensions)) = headers.net else { panic!() };
        if let Some(TransportHeader::Icmpv6(icmp)) = &headers.transport {
            let sum = icmp.icmp_type.calc_checksum(ip.source, ip.destination, headers.payload.slice());
            assert_eq!(sum, Ok(icmp.checksum));
        }
        let payload = headers.payload.slice().to_vec();
        return (link.destination, IpHeaders::Ipv6(ip, extensions), headers.transport, payload);
    };
    assert_eq!(ip.calc_header_checksum(), ip.header_checksum);
    if let Some(TransportHeader::Icmpv4(icmp)) = &headers.transport {
        assert_eq!(icmp.icmp_type.calc_checksum(headers.payload.slice()), icmp.checksum);
    }
    let payload = headers.payload.slice().to_vec();
    (link.destination, IpHeaders::Ipv4(ip, extensions), headers.transport, payload)
}

/// Source, destination and type of an ICMPv4 message, and its quote.
fn icmp(frame: &[u8]) -> (Ipv4Addr, Ipv4Addr, Icmpv4Type, Vec<u8>) {
    let (_, IpHeaders::Ipv4(ip, _), Some(TransportHeader::Icmpv4(icmp)), payload) = read(frame) else {
        panic!("no ICMP: {frame:x?}")
    };
    (ip.source.into(), ip.destination.into(), icmp.icmp_type, payload)
}

fn icmp_v6(frame: &[u8]) -> ([u8; 16], [u8; 16], Icmpv6Type, Vec<u8>) {
    let (_, IpHeaders::Ipv6(ip, _), Some(TransportHeader::Icmpv6(icmp)), payload) = read(frame) else {
        panic!("no ICMPv6: {frame:x?}")
    };
    (ip.source, ip.destination, icmp.icmp_type, payload)
}

#[test]
fn packets_are_forwarded_with_one_hop_less() {
    let mut rig = Rig::new();
    let frame = udp(HOST, FAR, 64, 22);
    let seen = rig.send(1, 1, &frame);
    let (port, out) = seen[0].out();
    let (to, IpHeaders::Ipv4(ip, _), ..) = read(out) else { panic!() };
    assert_eq!((port, to, ip.time_to_live), (2, host_mac(2), 63));
    // All else is unchanged.
    assert_eq!((&out[12..22], &out[26..]), (&frame[12..22], &frame[26..]));
    let seen = rig.send(2, 1, &udp_v6(v6(1, 9), v6(2, 9), 64, 22));
    let (port, out) = seen[0].out();
    let (to, IpHeaders::Ipv6(ip, _), ..) = read(out) else { panic!() };
    assert_eq!((port, to, ip.hop_limit), (2, host_mac(2), 63));
}

#[test]
fn the_longest_route_counts_at_once() {
    let mut rig = Rig::new();
    let gateway = |port, last| NextHop::via(port, IpAddr::from([10, 0, port as u8, last]));
    let way = |rig: &mut Rig| match &rig.send(1, 1, &udp(HOST, [192, 0, 2, 7], 64, 10))[..] {
        [Seen::Out(port, _)] => *port,
        other => panic!("{other:?}"),
    };
    rig.router.add_route_v4("0.0.0.0/0".parse().unwrap(), gateway(2, 9)).unwrap();
    assert_eq!((way(&mut rig), way(&mut rig)), (2, 2));
    rig.router.add_route_v4("192.0.2.0/24".parse().unwrap(), gateway(3, 9)).unwrap();
    assert_eq!((way(&mut rig), way(&mut rig)), (3, 3));
    assert!(rig.router.remove_route_v4("192.0.2.0/24".parse().unwrap()));
    assert_eq!(way(&mut rig), 2);
    let stats = rig.router.stats();
    assert_eq!((stats.cache_hits, stats.cache_misses), (2, 3));
    assert!(rig.router.add_route_v4("10.9.0.0/16".parse().unwrap(), gateway(7, 9)).is_err());
}

#[test]
fn a_ports_network_comes_back_when_what_replaced_its_route_goes() {
    let mut rig = Rig::new();
    let (net, net_v6) = ("10.0.2.0/24".parse().unwrap(), "fd00:2::/64".parse().unwrap());
    let (near, via) = (NextHop::Direct { port: 2 }, NextHop::via(3, IpAddr::from([10, 0, 3, 9])));
    let way = |rig: &Rig| rig.router.routes_v4().find(|(to, _)| *to == net).map(|(_, way)| way);
    let way_v6 = |rig: &Rig| rig.router.routes_v6().find(|(to, _)| *to == net_v6).map(|(_, way)| way);
    for other in [via, NextHop::Discard] {
        rig.router.add_route_v4(net, other).unwrap();
        assert_eq!(way(&rig), Some(other.into()));
        assert_eq!(rig.router.withdraw_route_v4(net), Ok(true));
        assert_eq!(way(&rig), Some(near.into()));
    }
    assert_eq!(rig.send(1, 1, &udp(HOST, FAR, 64, 10))[0].out().0, 2);
    rig.router.add_route_v6(net_v6, NextHop::Discard).unwrap();
    assert_eq!((rig.router.withdraw_route_v6(net_v6), way_v6(&rig)), (Ok(true), Some(near.into())));
    // Its own route can be removed, once.
    assert_eq!((rig.router.withdraw_route_v4(net), way(&rig)), (Ok(true), None));
    assert_eq!((rig.router.withdraw_route_v4(net), way(&rig)), (Ok(false), None));
    assert_eq!((rig.router.withdraw_route_v6(net_v6), way_v6(&rig)), (Ok(true), None));
    // Nothing is restored for other networks.
    let part = "10.0.2.0/25".parse().unwrap();
    rig.router.add_route_v4(part, NextHop::Discard).unwrap();
    assert_eq!(rig.router.withdraw_route_v4(part), Ok(true));
    assert!(rig.router.routes_v4().all(|(to, _)| to != part));
}

#[test]
fn a_traceroute_sees_every_router_and_the_last_port() {
    let mut rig = Rig::new();
    // In transit the port where the answer leaves answers for a packet; at its end the address to which it
    // was sent.
    for (destination, ttl, from, kind) in [
        (FAR, 1, [10, 0, 1, 1], Icmpv4Type::TimeExceeded(icmpv4::TimeExceededCode::TtlExceededInTransit)),
        (
            [10, 0, 2, 1],
            1,
            [10, 0, 2, 1],
            Icmpv4Type::DestinationUnreachable(icmpv4::DestUnreachableHeader::Port),
        ),
    ] {
        let frame = udp(HOST, destination, ttl, 40);
        let seen = rig.send(ttl.into(), 1, &frame);
        assert!(matches!(seen[0], Seen::Dropped(DropReason::HopLimit | DropReason::Unserved)));
        let (port, out) = seen[1].out();
        let (source, to, answer, quoted) = icmp(out);
        assert_eq!((port, source.octets(), to.octets(), &answer), (1, from, HOST, &kind));
        assert_eq!(quoted, frame[14..]);
    }
    let frame = udp_v6(v6(1, 9), v6(2, 9), 1, 40);
    let seen = rig.send(5, 1, &frame);
    let (source, to, kind, quoted) = icmp_v6(seen[1].out().1);
    let exceeded = Icmpv6Type::TimeExceeded(icmpv6::TimeExceededCode::HopLimitExceeded);
    assert_eq!((source, to, kind, &quoted[..]), (v6(1, 1), v6(1, 9), exceeded, &frame[14..]));
    let seen = rig.send(6, 1, &udp_v6(v6(1, 9), v6(2, 1), 1, 40));
    let (source, _, kind, _) = icmp_v6(seen[1].out().1);
    assert_eq!(source, v6(2, 1));
    assert_eq!(kind, Icmpv6Type::DestinationUnreachable(icmpv6::DestUnreachableCode::Port));
}

#[test]
fn pings_are_answered() {
    let mut rig = Rig::new();
    let payload: Vec<u8> = (0..101).collect();
    let mut frame = Vec::new();
    let builder = || PacketBuilder::ethernet2(host_mac(1), router_mac(1));
    builder().ipv4(HOST, [10, 0, 2, 1], 64).icmpv4_echo_request(7, 9).write(&mut frame, &payload).unwrap();
    let seen = rig.send(1, 1, &frame);
    assert_eq!(seen[0], Seen::Consumed);
    let (source, to, kind, echoed) = icmp(seen[1].out().1);
    let reply = Icmpv4Type::EchoReply(etherparse::IcmpEchoHeader { id: 7, seq: 9 });
    assert_eq!((source.octets(), to.octets(), kind, &echoed), ([10, 0, 2, 1], HOST, reply, &payload));
    frame[60] ^= 1;
    assert_eq!(rig.send(2, 1, &frame), [Seen::Dropped(DropReason::BadHeader)]);
    let mut frame = Vec::new();
    builder().ipv6(v6(1, 9), v6(1, 1), 64).icmpv6_echo_request(7, 9).write(&mut frame, &payload).unwrap();
    let seen = rig.send(3, 1, &frame);
    let (source, to, kind, echoed) = icmp_v6(seen[1].out().1);
    let reply = Icmpv6Type::EchoReply(etherparse::IcmpEchoHeader { id: 7, seq: 9 });
    assert_eq!((source, to, kind, &echoed), (v6(1, 1), v6(1, 9), reply, &payload));
}

#[test]
fn what_leads_nowhere_is_told() {
    let mut rig = Rig::new();
    let seen = rig.send(1, 1, &udp(HOST, [192, 0, 2, 1], 64, 10));
    assert_eq!(seen[0], Seen::Dropped(DropReason::NoRoute));
    let kind = icmp(seen[1].out().1).2;
    assert_eq!(kind, Icmpv4Type::DestinationUnreachable(icmpv4::DestUnreachableHeader::Network));
    let seen = rig.send(2, 1, &udp_v6(v6(1, 9), [0x20; 16], 64, 10));
    assert_eq!(seen[0], Seen::Dropped(DropReason::NoRoute));
    let kind = icmp_v6(seen[1].out().1).2;
    assert_eq!(kind, Icmpv6Type::DestinationUnreachable(icmpv6::DestUnreachableCode::NoRoute));
    rig.router.add_route_v4("192.0.2.0/24".parse().unwrap(), NextHop::Discard).unwrap();
    assert_eq!(rig.send(3, 1, &udp(HOST, [192, 0, 2, 1], 64, 10)), [Seen::Dropped(DropReason::Discard)]);
}

#[test]
fn long_packets_are_fragmented_or_refused() {
    let mut rig = Rig::new();
    // 28 + 1372 = 1400 bytes for an MTU of 1280: 1256 bytes of payload, a multiple of 8, and 124.
    let mut frame = udp(HOST, [10, 0, 3, 9], 64, 1372);
    let forbidden = rig.send(1, 1, &frame);
    assert_eq!(forbidden[0], Seen::Dropped(DropReason::Mtu), "etherparse forbids fragmentation");
    let (.., kind, quoted) = icmp(forbidden[1].out().1);
    let needed = icmpv4::DestUnreachableHeader::FragmentationNeeded { next_hop_mtu: 1280 };
    assert_eq!((kind, quoted.len()), (Icmpv4Type::DestinationUnreachable(needed), 548));
    frame[20] &= !0x40;
    let checksum = etherparse::Ipv4Header::from_slice(&frame[14..]).unwrap().0.calc_header_checksum();
    frame[24..26].copy_from_slice(&checksum.to_be_bytes());
    let seen = rig.send(2, 1, &frame);
    assert_eq!(seen[0], Seen::Consumed);
    let mut whole = Vec::new();
    for (piece, (offset, more, len)) in seen[1..].iter().zip([(0, true, 1256), (157, false, 124)]) {
        let (port, out) = piece.out();
        let (to, IpHeaders::Ipv4(ip, _), ..) = read(out) else { panic!() };
        assert_eq!((port, to, ip.time_to_live, ip.identification), (3, host_mac(3), 63, 0));
        assert_eq!((ip.fragment_offset.value(), ip.more_fragments), (offset, more));
        assert_eq!((usize::from(ip.total_len), out.len()), (20 + len, 34 + len));
        whole.extend_from_slice(&out[34..]);
    }
    assert_eq!((seen.len(), &whole[..]), (3, &frame[34..]));
    // A fragment whose end has no place in a packet has no fragments either: their offset would begin anew.
    for (offset, wanted) in [(8019_u16, Seen::Consumed), (8020, Seen::Dropped(DropReason::BadHeader))] {
        frame[20..22].copy_from_slice(&offset.to_be_bytes());
        let checksum = etherparse::Ipv4Header::from_slice(&frame[14..]).unwrap().0.calc_header_checksum();
        frame[24..26].copy_from_slice(&checksum.to_be_bytes());
        let seen = rig.send(3, 1, &frame);
        let count = if wanted == Seen::Consumed { 3 } else { 1 };
        assert_eq!((&seen[0], seen.len()), (&wanted, count), "{offset}");
    }
    // Routers never fragment IPv6.
    let seen = rig.send(3, 1, &udp_v6(v6(1, 9), v6(3, 9), 64, 1372));
    let (.., kind, quoted) = icmp_v6(seen[1].out().1);
    assert_eq!((kind, quoted.len()), (Icmpv6Type::PacketTooBig { mtu: 1280 }, 1232));
}

#[test]
fn nobody_is_told_about_errors_groups_and_later_fragments() {
    let mut rig = Rig::new();
    let mut error = Vec::new();
    let exceeded = Icmpv4Type::TimeExceeded(icmpv4::TimeExceededCode::TtlExceededInTransit);
    let builder = PacketBuilder::ethernet2(host_mac(1), router_mac(1)).ipv4(HOST, FAR, 1);
    builder.icmpv4(exceeded).write(&mut error, &[0; 28]).unwrap();
    let mut later = udp(HOST, FAR, 1, 20);
    later[20..22].copy_from_slice(&[0, 3]);
    let fix = |frame: &mut [u8]| {
        let checksum = etherparse::Ipv4Header::from_slice(&frame[14..]).unwrap().0.calc_header_checksum();
        frame[24..26].copy_from_slice(&checksum.to_be_bytes());
    };
    fix(&mut later);
    let mut broadcast = udp(HOST, FAR, 64, 20);
    broadcast[..6].fill(0xff);
    let table = [
        ("an error", error, DropReason::HopLimit),
        ("a later fragment", later, DropReason::HopLimit),
        ("a link broadcast", broadcast, DropReason::Group),
        ("a group", udp(HOST, [224, 0, 0, 5], 1, 20), DropReason::Group),
        ("a network's broadcast", udp(HOST, [10, 0, 2, 255], 64, 20), DropReason::Group),
        ("from the router itself", udp([10, 0, 1, 1], FAR, 1, 20), DropReason::Martian),
        ("a broadcast as source", udp([10, 0, 2, 255], FAR, 1, 20), DropReason::Martian),
        ("from nowhere", udp([192, 0, 2, 1], FAR, 1, 20), DropReason::HopLimit),
    ];
    for (what, frame, reason) in table {
        assert_eq!(rig.send(1, 1, &frame), [Seen::Dropped(reason)], "{what}");
    }
    assert_eq!(rig.router.stats().errors, 0);
}

#[test]
fn errors_are_limited() {
    let mut config = config();
    config.police.errors = Limit { rate: 10, burst: 5 };
    let mut rig = Rig::of(config);
    let told: Vec<_> = (0..20).map(|n| rig.send(n, 1, &udp(HOST, FAR, 1, 20)).len() - 1).collect();
    assert_eq!(told.iter().sum::<usize>(), 5);
    // A tenth of a second later one more; another port has its own limit.
    assert_eq!(rig.send(SECOND / 10, 1, &udp(HOST, FAR, 1, 20)).len(), 2);
    let stats = rig.router.stats();
    assert_eq!((stats.errors, stats.policed), (6, vec![(PolicedWork::Errors.name(), 15)]));
    assert_eq!(stats.exceptions, [(FullIpReason::HopLimit.name(), 21)]);
}

/// An ARP message, from or to the host 10.0.N.H behind port N.
fn arp(operation: u16, sender: ([u8; 6], [u8; 4]), target: ([u8; 6], [u8; 4])) -> Vec<u8> {
    let to = if operation == 1 { [0xff; 6] } else { target.0 };
    let message = longwire_wire::arp_message(
        operation,
        (sender.0, u32::from_be_bytes(sender.1)),
        (target.0, u32::from_be_bytes(target.1)),
    );
    [&longwire_wire::ethernet_header(to, sender.0, 0x0806)[..], &message].concat()
}

const NEW: [u8; 6] = [2, 0, 0, 0, 9, 9];

#[test]
fn packets_wait_for_neighbours() {
    let mut rig = Rig::new();
    let frame = |n: usize| udp(HOST, [10, 0, 2, 77], 64, n);
    let first = rig.send(1, 1, &frame(1));
    let question = arp(1, (router_mac(2), [10, 0, 2, 1]), ([0; 6], [10, 0, 2, 77]));
    assert_eq!(first, [Seen::Kept, Seen::Out(2, question.clone())]);
    assert_eq!(rig.send(2, 1, &frame(2)), [Seen::Kept]);
    assert_eq!(rig.wait(SECOND + 1), [Seen::Out(2, question)]);
    let seen = rig.send(SECOND + 2, 2, &arp(2, (NEW, [10, 0, 2, 77]), (router_mac(2), [10, 0, 2, 1])));
    assert_eq!(seen[0], Seen::Consumed);
    for (seen, n) in seen[1..].iter().zip([1, 2]) {
        let (port, out) = seen.out();
        let (to, IpHeaders::Ipv4(ip, _), ..) = read(out) else { panic!() };
        assert_eq!((port, to, ip.time_to_live, out.len()), (2, NEW, 63, 42 + n));
    }
    assert_eq!(rig.send(SECOND + 3, 1, &frame(3))[0].out().0, 2);
    assert_eq!(rig.wait(100 * SECOND), [], "nothing more is asked");
}

#[test]
fn who_is_not_there_is_told() {
    let mut rig = Rig::new();
    assert_eq!(rig.send(1, 1, &udp(HOST, [10, 0, 2, 77], 64, 10)).len(), 2);
    let seen = rig.wait(10 * SECOND);
    // Two more requests, then the sender gets an error.
    assert_eq!((seen.len(), &seen[3]), (4, &Seen::Dropped(DropReason::NoNeighbour)));
    let (source, to, kind, _) = icmp(seen[2].out().1);
    assert_eq!((source.octets(), to.octets()), ([10, 0, 1, 1], HOST));
    assert_eq!(kind, Icmpv4Type::DestinationUnreachable(icmpv4::DestUnreachableHeader::Host));
    assert_eq!(rig.router.stats().kept, 0);
}

#[test]
fn questions_for_own_addresses_are_answered() {
    let mut rig = Rig::new();
    let question = arp(1, (NEW, [10, 0, 2, 5]), ([0; 6], [10, 0, 2, 1]));
    let answer = arp(2, (router_mac(2), [10, 0, 2, 1]), (NEW, [10, 0, 2, 5]));
    assert_eq!(rig.send(1, 2, &question), [Seen::Consumed, Seen::Out(2, answer)]);
    // The sender of a request is known, but unconfirmed: it is probed in turn.
    let seen = rig.send(2, 1, &udp(HOST, [10, 0, 2, 5], 64, 10));
    assert_eq!((seen[0].out().0, seen[0].out().1[..6].to_vec()), (2, NEW.to_vec()));
    assert_eq!(seen[1].out().1[..6], NEW);
    let other = arp(1, (NEW, [10, 0, 2, 5]), ([0; 6], [10, 0, 2, 2]));
    assert_eq!(rig.send(3, 2, &other), [Seen::Consumed]);
    let forged = arp(1, (NEW, [10, 0, 2, 1]), ([0; 6], [10, 0, 2, 1]));
    assert_eq!(rig.send(4, 2, &forged), [Seen::Dropped(DropReason::Martian)]);
}

/// A neighbour discovery message from `source`, with the MAC address NEW, into port 2.
fn discovery(source: [u8; 16], destination: [u8; 16], message: &[u8]) -> Vec<u8> {
    let (source, destination) = (u128::from_be_bytes(source), u128::from_be_bytes(destination));
    let to =
        if destination >> 120 == 0xff { longwire_wire::multicast_mac(destination) } else { router_mac(2) };
    let header = longwire_wire::Ipv6Header {
        source,
        destination,
        next_header: 58,
        hop_limit: 255,
        payload_len: message.len() as u16,
    };
    [&longwire_wire::ethernet_header(to, NEW, 0x86dd)[..], &header.bytes(), message].concat()
}

#[test]
fn ipv6_neighbours_are_asked_and_answered() {
    let mut rig = Rig::new();
    let (host, own) = (u128::from_be_bytes(v6(2, 0x77)), u128::from_be_bytes(v6(2, 1)));
    let seen = rig.send(1, 1, &udp_v6(v6(1, 9), v6(2, 0x77), 64, 10));
    assert_eq!((&seen[0], seen[1].out().1[..6].to_vec()), (&Seen::Kept, vec![0x33, 0x33, 0xff, 0, 0, 0x77]));
    let (_, to, kind, _) = icmp_v6(seen[1].out().1);
    assert_eq!(to, longwire_wire::solicited_node(host).to_be_bytes());
    assert!(matches!(kind, Icmpv6Type::NeighborSolicitation), "{kind:?}");
    let answer = longwire_wire::Discovery::advertise(host, own, host, NEW, true);
    let seen = rig.send(2, 2, &discovery(v6(2, 0x77), v6(2, 1), &answer));
    assert_eq!((&seen[0], seen[1].out().0, &seen[1].out().1[..6]), (&Seen::Consumed, 2, &NEW[..]));
    let group = longwire_wire::solicited_node(own);
    let question = longwire_wire::Discovery::solicit(host, group, own, NEW);
    let seen = rig.send(3, 2, &discovery(v6(2, 0x77), group.to_be_bytes(), &question));
    let (source, to, kind, _) = icmp_v6(seen[1].out().1);
    assert_eq!((source, to), (v6(2, 1), v6(2, 0x77)));
    assert!(matches!(kind, Icmpv6Type::NeighborAdvertisement(flags) if flags.solicited && flags.router));
}

/// An answer to a probe may leave out the link address that the probe was sent to (RFC 4861, 7.2.4).
#[test]
fn an_answer_without_a_link_address_confirms_the_known_one() {
    let mut rig = Rig::new();
    let (host, own) = (u128::from_be_bytes(v6(2, 0x77)), u128::from_be_bytes(v6(2, 1)));
    let group = longwire_wire::solicited_node(own);
    let question = longwire_wire::Discovery::solicit(host, group, own, NEW);
    assert_eq!(rig.send(1, 2, &discovery(v6(2, 0x77), group.to_be_bytes(), &question)).len(), 2);
    let frame = udp_v6(v6(1, 9), v6(2, 0x77), 64, 10);
    let seen = rig.send(2, 1, &frame);
    assert_eq!((seen.len(), &seen[1].out().1[..6]), (2, &NEW[..]), "it is probed");
    let mut answer = [0; 24];
    (answer[0], answer[4]) = (136, 0x40);
    answer[8..].copy_from_slice(&v6(2, 0x77));
    let sum = longwire_wire::checksum::pseudo_v6(host, own, 58, 24).bytes(&answer).checksum();
    answer[2..4].copy_from_slice(&sum.to_be_bytes());
    assert_eq!(rig.send(SECOND, 2, &discovery(v6(2, 0x77), v6(2, 1), &answer)), [Seen::Consumed]);
    assert_eq!(rig.wait(30 * SECOND), [], "it is asked no more");
    assert_eq!(rig.send(31 * SECOND - 1, 1, &frame).len(), 1);
    assert_eq!(rig.send(31 * SECOND, 1, &frame).len(), 2, "30 s later it is probed again");
}

/// A packet from HOST with IPv4 options.
fn with_options(destination: [u8; 4], options: &[u8]) -> Vec<u8> {
    let mut ip = etherparse::Ipv4Header::new(8, 64, etherparse::ip_number::UDP, HOST, destination).unwrap();
    ip.options = options.try_into().unwrap();
    ip.total_len = (20 + options.len() + 8) as u16;
    ip.header_checksum = ip.calc_header_checksum();
    let mut frame = longwire_wire::ethernet_header(router_mac(1), host_mac(1), 0x0800).to_vec();
    ip.write(&mut frame).unwrap();
    frame.extend([0; 8]);
    frame
}

/// A packet with an IPv6 hop-by-hop option of this type.
fn with_hop_by_hop(destination: [u8; 16], option: u8) -> Vec<u8> {
    let mut frame = udp_v6(v6(1, 9), destination, 64, 10);
    frame.splice(54..54, [17, 0, option, 4, 0, 0, 0, 0]);
    frame[20] = 0;
    frame[19] += 8;
    frame
}

#[test]
fn options_go_to_full_ip() {
    let mut rig = Rig::new();
    let with = |options: &[u8]| with_options(FAR, options);
    let seen = rig.send(1, 1, &with(&[7, 7, 4, 0, 0, 0, 0, 0]));
    let (_, IpHeaders::Ipv4(ip, _), ..) = read(seen[0].out().1) else { panic!() };
    assert_eq!((ip.options.as_slice(), ip.time_to_live), (&[7, 7, 8, 10, 0, 2, 1, 0][..], 63));
    let seen = rig.send(2, 1, &with(&[131, 7, 4, 10, 0, 2, 9, 0]));
    assert_eq!(seen[0], Seen::Dropped(DropReason::Options));
    let kind = icmp(seen[1].out().1).2;
    assert_eq!(kind, Icmpv4Type::DestinationUnreachable(icmpv4::DestUnreachableHeader::SourceRouteFailed));
    let seen = rig.send(3, 1, &with(&[7, 9, 4, 0]));
    let kind = icmp(seen[1].out().1).2;
    let pointer = icmpv4::ParameterProblemHeader::PointerIndicatesError(21);
    assert_eq!(kind, Icmpv4Type::ParameterProblem(pointer));
}

#[test]
fn errors_quote_options_as_they_came() {
    let mut rig = Rig::new();
    let with = |to: [u8; 4], bytes: &[u8], payload: usize| {
        let len = payload as u16;
        let mut ip = etherparse::Ipv4Header::new(len, 64, etherparse::ip_number::UDP, HOST, to).unwrap();
        ip.options = bytes.try_into().unwrap();
        ip.total_len += bytes.len() as u16;
        ip.dont_fragment = true;
        ip.header_checksum = ip.calc_header_checksum();
        let mut frame = longwire_wire::ethernet_header(router_mac(1), host_mac(1), 0x0800).to_vec();
        ip.write(&mut frame).unwrap();
        frame.resize(frame.len() + payload, 0);
        frame
    };
    // A good record route before one whose pointer is wrong; and a packet too long for port 3.
    let record = [7, 7, 4, 0, 0, 0, 0, 1];
    let wrong = with(FAR, &[&record[..], &[7, 7, 5, 0, 0, 0, 0, 0]].concat(), 8);
    let long = with([10, 0, 3, 9], &record, 1300);
    for (frame, reason) in [(wrong, DropReason::Options), (long, DropReason::Mtu)] {
        let seen = rig.send(1, 1, &frame);
        assert_eq!(seen[0], Seen::Dropped(reason));
        let quote = icmp(seen[1].out().1).3;
        assert_eq!(quote, frame[14..][..quote.len()]);
    }
}

#[test]
fn hop_by_hop_options_say_what_is_to_become_of_the_packet() {
    let mut rig = Rig::new();
    let with = |option: u8| with_hop_by_hop(v6(2, 9), option);
    // An unknown option to skip, and router alert.
    assert_eq!(rig.send(1, 1, &with(0x1e))[0].out().0, 2);
    assert_eq!(rig.send(2, 1, &with(0x05))[0].out().0, 2);
    assert_eq!(rig.send(3, 1, &with(0x5e)), [Seen::Dropped(DropReason::Options)]);
    let seen = rig.send(4, 1, &with(0x9e));
    assert_eq!(seen[0], Seen::Dropped(DropReason::Options));
    let frame = seen[1].out().1;
    // Parameter problem, code 2, pointing at the option.
    assert_eq!((&frame[54..56], &frame[58..62]), (&[4, 2][..], &[0, 0, 0, 42][..]));
}

/// Nobody is asked there, and no sender hears of an MTU of 0 or of a silent host.
#[test]
fn a_port_that_is_down_takes_no_exceptional_packets_either() {
    let mut rig = Rig::new();
    assert!(rig.router.set_up(2, false));
    let hop_by_hop = with_hop_by_hop(v6(2, 0x77), 0x1e);
    let record_route = with_options([10, 0, 2, 77], &[7, 7, 4, 0, 0, 0, 0, 0]);
    for frame in [hop_by_hop, record_route, udp(HOST, [10, 0, 2, 77], 64, 10)] {
        assert_eq!(rig.send(1, 1, &frame), [Seen::Dropped(DropReason::PortDown)]);
    }
    assert_eq!(rig.wait(10 * SECOND), []);
    let stats = rig.router.stats();
    assert_eq!((stats.made, stats.kept), (0, 0));
}

#[test]
fn trains_are_forwarded_whole_if_their_segments_fit() {
    let mut rig = Rig::new();
    let tcp = |net: u8| {
        let mut frame = Vec::new();
        let builder = PacketBuilder::ethernet2(host_mac(1), router_mac(1)).ipv4(HOST, [10, 0, net, 9], 64);
        builder.tcp(1, 2, 3, 4).write(&mut frame, &[7; 5000]).unwrap();
        frame
    };
    let seen = rig.train(1, 1, &tcp(2), 1460);
    assert_eq!((seen.len(), seen[0].out().0, seen[0].out().1.len()), (1, 2, 5054));
    // Segments of 1500 bytes do not fit an MTU of 1280: one error for all four.
    let seen = rig.train(2, 1, &tcp(3), 1460);
    assert_eq!((seen.len(), &seen[0]), (2, &Seen::Dropped(DropReason::Mtu)));
    assert_eq!(rig.router.stats().dropped, 4);
    assert_eq!(rig.train(3, 1, &tcp(3), 1240)[0].out().0, 3);
}
