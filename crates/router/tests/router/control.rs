//! A router's control plane: what it receives and sends, and that floods don't starve it.

use crate::rig::{CONTROL, Rig, SECOND, Seen, config, host_mac, router_mac};
use longwire_block::{DropReason, Node};
use longwire_router::{Confirmation, ControlPort, InterfaceAddress, NextHop, PolicedWork};
use longwire_units::Nanos;
use longwire_wire::checksum::Sum;
use longwire_wire::{Discovery, Ipv4Header, Ipv6Header, arp_message, ethernet_header};
use std::collections::BTreeMap;
use std::net::IpAddr;

const OWN: [u8; 4] = [10, 0, 1, 1];
const HOST: [u8; 4] = [10, 0, 1, 9];
const OSPF: u8 = 89;
const OSPF_ROUTERS: [u8; 4] = [224, 0, 0, 5];

fn rig() -> Rig {
    let mut config = config();
    config.control = (1..=3).map(|port| ControlPort { port, control: CONTROL + port }).collect();
    Rig::of(config)
}

/// A packet from the host behind port 1, with options or without.
fn packet(to: [u8; 4], protocol: u8, ttl: u8, options: &[u8], payload: &[u8]) -> Vec<u8> {
    let header = Ipv4Header {
        source: u32::from_be_bytes(HOST),
        destination: u32::from_be_bytes(to),
        protocol,
        ttl,
        traffic_class: 0,
        id: 0,
        payload_len: (options.len() + payload.len()) as u16,
    };
    let mut header = header.bytes().to_vec();
    header[0] += (options.len() / 4) as u8;
    header.extend_from_slice(options);
    header[10..12].fill(0);
    let checksum = Sum::ZERO.bytes(&header).checksum();
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    let mac = match to {
        [224..=239, b, c, d] => [1, 0, 0x5e, b, c, d],
        [.., 255] => [0xff; 6],
        _ => router_mac(1),
    };
    [&ethernet_header(mac, host_mac(1), 0x0800)[..], &header, payload].concat()
}

/// An ICMP message with a correct checksum.
fn icmp(kind: u8) -> Vec<u8> {
    let mut message = vec![kind, 0, 0, 0, 0, 7, 0, 1];
    let checksum = Sum::ZERO.bytes(&message).checksum();
    message[2..4].copy_from_slice(&checksum.to_be_bytes());
    message
}

/// A TCP or UDP header with these ports, and zeros elsewhere.
fn ports(from: u16, to: u16) -> Vec<u8> {
    [&from.to_be_bytes()[..], &to.to_be_bytes(), &[0; 16]].concat()
}

fn hello() -> Vec<u8> {
    packet(OSPF_ROUTERS, OSPF, 1, &[], &[0; 44])
}

#[test]
fn what_is_for_the_router_goes_up_as_it_is() {
    let mut rig = rig();
    let record_route = [7, 7, 4, 0, 0, 0, 0, 0];
    // (name, packet, kind of work).
    let table = [
        ("a hello", hello(), PolicedWork::ControlRouting),
        ("OSPF with one hop to go", packet(OWN, OSPF, 1, &[], &[0; 44]), PolicedWork::ControlRouting),
        ("BGP", packet(OWN, 6, 1, &[], &ports(40_000, 179)), PolicedWork::ControlRouting),
        ("BGP's answer", packet(OWN, 6, 64, &[], &ports(179, 40_000)), PolicedWork::ControlRouting),
        ("BFD", packet(OWN, 17, 255, &[], &ports(49_152, 3784)), PolicedWork::ControlRouting),
        ("an answer to a ping", packet(OWN, 1, 64, &[], &icmp(0)), PolicedWork::ControlPing),
        ("unreachable", packet(OWN, 1, 64, &[], &icmp(3)), PolicedWork::ControlPing),
        ("with options", packet(OWN, 17, 64, &record_route, &ports(9, 9)), PolicedWork::ControlOptions),
        (
            "IGMP with router alert",
            packet([224, 0, 0, 22], 2, 1, &[148, 4, 0, 0], &[0; 8]),
            PolicedWork::ControlOptions,
        ),
        ("SSH", packet(OWN, 6, 64, &[], &ports(40_000, 22)), PolicedWork::ControlOther),
        (
            "another port's address",
            packet([10, 0, 2, 1], 17, 64, &[], &ports(9, 9)),
            PolicedWork::ControlOther,
        ),
        ("for all hosts", packet([10, 0, 1, 255], 17, 64, &[], &ports(9, 9)), PolicedWork::ControlOther),
    ];
    for (at, (what, frame, class)) in table.into_iter().enumerate() {
        let mut expected = BTreeMap::from_iter(rig.router.stats().punted);
        let seen = rig.send(at as u64 * SECOND, 1, &frame);
        assert_eq!(seen, [Seen::Out(CONTROL + 1, frame)], "{what}");
        *expected.entry(class.name()).or_default() += 1;
        assert_eq!(BTreeMap::from_iter(rig.router.stats().punted), expected, "{what}");
    }
    // The router answers pings itself, and forwards packets for other hosts.
    let echo = rig.send(SECOND, 1, &packet(OWN, 1, 64, &[], &icmp(8)));
    assert!(echo[0] == Seen::Consumed && echo[1].out().0 == 1, "{echo:?}");
    assert!(matches!(
        &rig.send(SECOND, 1, &packet([10, 0, 2, 9], 17, 64, &[], &[0; 8]))[..],
        [Seen::Out(2, _)]
    ));
}

#[test]
fn ipv6_likewise() {
    let mut rig = rig();
    let own = rig.router.routes_v6().find(|(_, hop)| *hop == NextHop::Local).unwrap().0.address() | 1;
    let near = 0xfe80 << 112 | 9;
    let (host, link_local) = (own | 8, 0xfe80_0000_0000_0000_0000_00ff_fe00_ff01);
    let frame = |source, destination: u128, next_header, hop_limit, payload: &[u8]| {
        let header =
            Ipv6Header { source, destination, next_header, hop_limit, payload_len: payload.len() as u16 };
        let mac = if destination >> 120 == 0xff { [0x33, 0x33, 0, 0, 0, 5] } else { router_mac(1) };
        [&ethernet_header(mac, host_mac(1), 0x86dd)[..], &header.bytes(), payload].concat()
    };
    for (what, frame, class) in [
        ("a hello", frame(near, 0xff02 << 112 | 5, OSPF, 1, &[0; 36]), PolicedWork::ControlRouting),
        (
            "OSPF to the address within the link",
            frame(near, link_local, OSPF, 1, &[0; 36]),
            PolicedWork::ControlRouting,
        ),
        ("BGP", frame(host, own, 6, 64, &ports(40_000, 179)), PolicedWork::ControlRouting),
        (
            "an answer to a ping",
            frame(host, own, 58, 64, &[129, 0, 0, 0, 0, 1, 0, 1]),
            PolicedWork::ControlPing,
        ),
        ("SSH", frame(host, own, 6, 64, &ports(40_000, 22)), PolicedWork::ControlOther),
    ] {
        let mut expected = BTreeMap::from_iter(rig.router.stats().punted);
        assert_eq!(rig.send(SECOND, 1, &frame), [Seen::Out(CONTROL + 1, frame)], "{what}");
        *expected.entry(class.name()).or_default() += 1;
        assert_eq!(BTreeMap::from_iter(rig.router.stats().punted), expected, "{what}");
    }
}

#[test]
fn what_it_sends_goes_out_as_it_is() {
    let mut rig = rig();
    let frame = [&ethernet_header(host_mac(2), router_mac(2), 0x0800)[..], &hello()[14..]].concat();
    assert_eq!(rig.send(1, CONTROL + 2, &frame), [Seen::Kept, Seen::Out(2, frame.clone())]);
    assert_eq!(rig.router.stats().from_control, 1);
    // Nothing is sent by a port that is down, or by one that the router does not have.
    assert!(rig.router.set_up(2, false));
    assert_eq!(rig.send(2, CONTROL + 2, &frame), [Seen::Dropped(DropReason::PortDown)]);
    assert_eq!(rig.send(2, CONTROL + 9, &frame), [Seen::Dropped(DropReason::PortDown)]);
    let through = packet([10, 0, 2, 9], 17, 64, &[], &[0; 8]);
    assert_eq!(rig.send(3, 1, &through), [Seen::Dropped(DropReason::PortDown)]);
    assert!(rig.router.set_up(2, true) && !rig.router.set_up(9, true));
    assert!(matches!(&rig.send(4, 1, &through)[..], [Seen::Out(2, _)]));
}

/// Each flood is 100000 packets per second for ten seconds. Meanwhile a hello arrives every second, and a
/// packet to be forwarded every millisecond.
#[test]
fn floods_leave_hellos_and_regular_packets_alone() {
    let record_route = [7, 7, 4, 0, 0, 0, 0, 0];
    let floods = [
        ("pings", packet(OWN, 1, 64, &[], &icmp(8)), PolicedWork::Exceptions),
        ("answers to pings", packet(OWN, 1, 64, &[], &icmp(0)), PolicedWork::ControlPing),
        ("options that pass", packet([10, 0, 2, 9], 17, 64, &record_route, &[0; 8]), PolicedWork::Exceptions),
        ("options for the router", packet(OWN, 17, 64, &record_route, &[0; 8]), PolicedWork::ControlOptions),
        ("UDP", packet(OWN, 17, 64, &[], &ports(9, 9)), PolicedWork::ControlOther),
        ("groups", packet([224, 0, 0, 251], 17, 1, &[], &ports(5353, 5353)), PolicedWork::ControlOther),
    ];
    for (what, flood, refused) in floods {
        let mut rig = rig();
        let (mut hellos, mut regular) = (0, 0);
        let through = packet([10, 0, 2, 9], 17, 64, &[], &[0; 8]);
        for turn in 0..10_000u64 {
            let at = turn * 1_000_000;
            let mut frames = vec![(at, 1, flood.clone()); 50];
            frames.push((at, 1, through.clone()));
            if turn % 1000 == 999 {
                frames.push((at, 1, hello()));
            }
            for half in [&frames[..], &vec![(at, 1, flood.clone()); 50][..]] {
                for seen in rig.batch(half) {
                    hellos += u32::from(matches!(&seen, Seen::Out(101, frame) if frame[23] == OSPF));
                    regular += u32::from(matches!(&seen, Seen::Out(2, frame) if frame[14] == 0x45));
                }
            }
        }
        assert_eq!((hellos, regular), (10, 10_000), "{what}");
        let policed = BTreeMap::from_iter(rig.router.stats().policed);
        assert!(policed[refused.name()] > 500_000, "{what}: {:?}", rig.router.stats());
    }
}

#[test]
fn neighbours_that_it_asks_for_answer_it_whatever_others_say() {
    let mut rig = rig();
    let arp = |operation: u16, from: [u8; 4]| {
        let (sender, target) =
            ((host_mac(1), u32::from_be_bytes(from)), (router_mac(1), u32::from_be_bytes(OWN)));
        [&ethernet_header(router_mac(1), host_mac(1), 0x0806)[..], &arp_message(operation, sender, target)]
            .concat()
    };
    let asked = [10, 0, 1, 77];
    // A flood of unsolicited replies uses up the limit for them.
    while rig.send(SECOND, 1, &arp(2, [10, 0, 1, 66])) != [Seen::Dropped(DropReason::SlowPath)] {}
    let question =
        arp_message(1, (router_mac(1), u32::from_be_bytes(OWN)), ([0; 6], u32::from_be_bytes(asked)));
    let question = [&ethernet_header([0xff; 6], router_mac(1), 0x0806)[..], &question].concat();
    assert_eq!(rig.send(SECOND, CONTROL + 1, &question)[1], Seen::Out(1, question.clone()));
    let answer = arp(2, asked);
    assert_eq!(rig.send(SECOND, 1, &answer), [Seen::Out(CONTROL + 1, answer.clone())]);
    // A request lets a single reply through.
    assert_eq!(rig.send(SECOND, 1, &answer), [Seen::Dropped(DropReason::SlowPath)]);
    // A request expires: after four seconds its reply is treated as unsolicited.
    rig.send(SECOND, CONTROL + 1, &question);
    while rig.send(5 * SECOND, 1, &arp(2, [10, 0, 1, 66])) != [Seen::Dropped(DropReason::SlowPath)] {}
    assert_eq!(rig.send(5 * SECOND, 1, &answer), [Seen::Dropped(DropReason::SlowPath)]);
    // In IPv6, a reply belongs to the request with the same target.
    let own = 0xfd00_0001 << 96 | 1;
    let target = own | 0x76;
    let message = Discovery::solicit(own, target, target, router_mac(1));
    let header =
        Ipv6Header { source: own, destination: target, next_header: 58, hop_limit: 255, payload_len: 32 };
    let question =
        [&ethernet_header(host_mac(1), router_mac(1), 0x86dd)[..], &header.bytes(), &message].concat();
    rig.send(5 * SECOND, CONTROL + 1, &question);
    let message = Discovery::advertise(target, own, target, host_mac(1), true);
    let header =
        Ipv6Header { source: target, destination: own, next_header: 58, hop_limit: 255, payload_len: 32 };
    let answer =
        [&ethernet_header(router_mac(1), host_mac(1), 0x86dd)[..], &header.bytes(), &message].concat();
    assert_eq!(rig.send(5 * SECOND, 1, &answer), [Seen::Out(CONTROL + 1, answer.clone())]);
}

#[test]
fn it_changes_addresses_and_neighbours() {
    let mut rig = rig();
    let address = u32::from_be_bytes([10, 0, 7, 1]);
    let old = rig.router.set_addresses(1, (vec![InterfaceAddress { address, len: 24 }], vec![])).unwrap();
    assert_eq!((old.0.len(), old.1.len()), (1, 2));
    rig.router.add_route_v4("10.0.7.1/32".parse().unwrap(), NextHop::Local).unwrap();
    assert!(rig.router.set_addresses(9, (vec![], vec![])).is_err());
    assert!(rig.router.set_addresses(1, (vec![InterfaceAddress { address, len: 33 }], vec![])).is_err());
    let echo = rig.send(1, 1, &packet([10, 0, 7, 1], 1, 64, &[], &icmp(8)));
    assert_eq!(echo[0], Seen::Consumed);
    let (known, mac) = (IpAddr::from([10, 0, 2, 50]), [2, 0, 0, 0, 5, 5]);
    let through = packet([10, 0, 2, 50], 17, 64, &[], &[0; 8]);
    for state in [Confirmation::Doubtful, Confirmation::Answered, Confirmation::Permanent] {
        assert!(rig.router.note_neighbour(2, known, mac, state, Nanos(SECOND)));
        assert!(!rig.router.note_neighbour(9, known, mac, state, Nanos(SECOND)));
        let seen = rig.send(SECOND, 1, &through);
        assert!(matches!(&seen[0], Seen::Out(2, frame) if frame[..6] == mac), "{state:?}: {seen:?}");
    }
    assert!(rig.router.forget_neighbour(2, known) && !rig.router.forget_neighbour(2, known));
    assert_eq!(rig.send(SECOND, 1, &through)[0], Seen::Kept);
    // A neighbour for which packets wait is not removed. They are sent when its address becomes known.
    assert!(!rig.router.forget_neighbour(2, known));
    assert!(rig.router.note_neighbour(2, known, mac, Confirmation::Answered, Nanos(SECOND + 5)));
    assert_eq!(rig.router.deadline(), Nanos(SECOND + 5));
    let seen = rig.wait(SECOND + 5);
    assert!(matches!(&seen[..], [Seen::Out(2, frame)] if frame[..6] == mac), "{seen:?}");
    assert_eq!((rig.router.kept(), rig.router.deadline()), (0, Nanos::NEVER));
}
