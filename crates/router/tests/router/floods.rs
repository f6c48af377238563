//! Floods of exceptional packets affect neither regular packets nor known neighbours.

use crate::programs::{prepared, program};
use crate::rig::{Rig, SECOND, Seen, config, host_mac, router_mac};
use longwire_block::{DropReason, Node};
use longwire_punt::{
    AttachmentId, Inline, InlineService, Limits as PuntLimits, Punt, PuntedPacket, Service, ServiceOutput,
    TRIP, Turns, Verdict,
};
use longwire_router::{
    FlowKey, Installation, InterfaceAddress, Key, Limit, NeighbourLimits, NextHop, PolicedWork,
};
use longwire_units::Nanos;
use longwire_wire::{Discovery, Ipv4Header, Ipv6Header, arp_message, ethernet_header};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

fn packet(destination: [u8; 4], ttl: u8) -> Vec<u8> {
    let header = Ipv4Header {
        source: u32::from_be_bytes([10, 0, 1, 9]),
        destination: u32::from_be_bytes(destination),
        protocol: 17,
        ttl,
        traffic_class: 0,
        id: 0,
        payload_len: 26,
    };
    [&ethernet_header(router_mac(1), host_mac(1), 0x0800)[..], &header.bytes(), &[0; 26]].concat()
}

fn arp(port: u16, operation: u16, sender: ([u8; 6], [u8; 4]), target: [u8; 4]) -> Vec<u8> {
    let (sender, target) = ((sender.0, u32::from_be_bytes(sender.1)), ([0; 6], u32::from_be_bytes(target)));
    let to = if operation == 1 { [0xff; 6] } else { router_mac(port) };
    [&ethernet_header(to, sender.0, 0x0806)[..], &arp_message(operation, sender, target)].concat()
}

/// The destination MAC address of the router's request for the address, if it sends one.
fn asks(seen: &[Seen], address: [u8; 4]) -> Option<[u8; 6]> {
    seen.iter().find_map(|seen| match seen {
        Seen::Out(_, frame) if frame[12..14] == [8, 6] && frame[38..42] == address && frame[21] == 1 => {
            frame[..6].try_into().ok()
        }
        _ => None,
    })
}

#[test]
fn exceptional_packets_do_not_touch_regular_ones() {
    let mut rig = Rig::new();
    let (mut regular, mut told) = (0, 0);
    // One second of 32 regular and 32 exceptional packets every 200 us: 160000 of each.
    for turn in 0..5000u64 {
        let at = turn * 200_000;
        let frames: Vec<_> = (0..64)
            .map(|n| (at, 1, if n % 2 == 0 { packet([10, 0, 2, 9], 64) } else { packet([10, 0, 2, 9], 1) }))
            .collect();
        for seen in rig.batch(&frames) {
            match seen {
                Seen::Out(2, _) => regular += 1,
                Seen::Out(1, _) => told += 1,
                Seen::Dropped(DropReason::HopLimit) => {}
                other => panic!("{other:?}"),
            }
        }
    }
    // Errors: a burst of 64, then one per millisecond. Full IP: a burst of 1024, then one per 50 us.
    assert_eq!((regular, told), (160_000, 64 + 999));
    let exceptions = (PolicedWork::Exceptions.name(), 160_000 - 1024 - 19_996);
    assert!(rig.router.stats().policed.contains(&exceptions));
}

/// Passes all.
struct Passes;

impl Service for Passes {
    fn handle(&mut self, _packet: &mut PuntedPacket<'_>, _made: &mut ServiceOutput) -> Verdict {
        Verdict::Pass
    }
}

/// Half of 3.2 million packets per second go to a service that answers all; a fiftieth of the worker is
/// reserved for it.
#[test]
fn a_level_takes_no_more_than_its_part_of_the_worker() {
    const PART: u64 = 20_000_000;
    let service = InlineService {
        name: "all".into(),
        service: Box::new(Passes),
        time: Nanos::ZERO,
        weight: 1,
        limits: PuntLimits::default(),
    };
    let mut punt = Punt::simulated(vec![1, 2, 3], Inline::new(vec![service], Turns::new("sfq").unwrap()));
    punt.set_aside(None, Some(PART));
    let mut rig = Rig::new();
    rig.router.set_levels(punt);
    let key = FlowKey { destination_port: Some(0), protocol: Some(17), ..FlowKey::default() };
    let above = Some(AttachmentId::slow(0));
    let installation =
        Installation { name: "up".into(), key: Key::Flow(key), above, ..Installation::default() };
    rig.router.install(prepared(program("up", "r0 = 2\n exit"), installation)).unwrap();
    let flood = packet([10, 0, 2, 9], 64);
    let mut other = flood.clone();
    other[37] = 9;
    let (mut sent, mut refused) = (0, 0);
    // A tenth of a second in turns of 20 us.
    const TURNS: u64 = 5000;
    for turn in 1..=TURNS {
        let at = turn * 20_000;
        let frames: Vec<_> =
            (0..64).map(|n| (at, 1, if n % 2 == 0 { other.clone() } else { flood.clone() })).collect();
        for seen in rig.batch(&frames).into_iter().chain(rig.wait(at)) {
            match seen {
                Seen::Out(2, _) => sent += 1,
                Seen::Dropped(DropReason::LevelFull) => refused += 1,
                Seen::Kept => {}
                seen => panic!("{seen:?}"),
            }
        }
    }
    let counts = rig.router.levels().unwrap().counts(AttachmentId::slow(0));
    // Every regular packet, and those that went up and returned.
    assert_eq!((sent, refused), (TURNS * 32 + counts.up, counts.over_time));
    assert_eq!((counts.up + counts.over_time, counts.up), (TURNS * 32, counts.verdicts));
    // Its share of the time since the first turn, and of 10 ms: packets of 400 ns have used up both, the last
    // with the rest.
    let most = (TURNS - 1) * 20_000 * PART / SECOND + 10_000_000 * PART / SECOND;
    assert_eq!(counts.worker_ns, most.next_multiple_of(TRIP));
}

#[test]
fn known_neighbours_and_gateways_survive_floods_of_unknown_ones() {
    let mut config = config();
    config.police.requests = Limit { rate: 5, burst: 5 };
    let mut rig = Rig::of(config);
    let (known, mac) = ([10, 0, 2, 50], [2, 0, 0, 0, 5, 5]);
    let gateway = [10, 0, 2, 60];
    rig.router.add_route_v4("192.0.2.0/24".parse().unwrap(), NextHop::via(2, IpAddr::from(gateway))).unwrap();
    // A request is sent, and it answers.
    rig.send(0, 1, &packet(known, 64));
    assert!(matches!(rig.send(1, 2, &arp(2, 2, (mac, known), [10, 0, 2, 1]))[1], Seen::Out(2, _)));
    let mut probed = 0;
    for turn in 0..2000u64 {
        let at = SECOND + turn * 20_000_000;
        let mut seen = rig.wait(at);
        // Packets to strangers, and requests by strangers.
        for n in 0..16u64 {
            let stranger = [10, 0, 3, (turn * 16 + n) as u8];
            seen.extend(rig.send(at, 1, &packet([10, 0, 2, 100 + (n + turn) as u8 % 100], 64)));
            seen.extend(rig.send(at, 1, &packet(stranger, 64)));
            let forged = [2, 9, (turn >> 8) as u8, turn as u8, 9, n as u8];
            seen.extend(rig.send(at, 2, &arp(2, 1, (forged, [10, 0, 2, 110 + n as u8]), [10, 0, 2, 1])));
        }
        let there = rig.send(at, 1, &packet(known, 64));
        assert!(matches!(&there[0], Seen::Out(2, frame) if frame[..6] == mac), "turn {turn}: {there:?}");
        seen.extend(there);
        if let Some(to) = asks(&seen, known) {
            assert_eq!(to, mac, "at its own address");
            probed += 1;
            rig.send(at, 2, &arp(2, 2, (mac, known), [10, 0, 2, 1]));
        }
    }
    // Forty seconds: after thirty a probe was sent.
    assert_eq!(probed, 1);
    let seen = rig.send(50 * SECOND, 1, &packet([192, 0, 2, 1], 64));
    assert_eq!((&seen[0], asks(&seen, gateway)), (&Seen::Kept, Some([0xff; 6])));
    rig.wait(100 * SECOND);
    assert_eq!(rig.router.kept(), 0);
}

#[test]
fn a_gateway_is_asked_for_even_if_a_stranger_was_first() {
    let mut config = config();
    config.police.requests = Limit { rate: 0, burst: 1 };
    let mut rig = Rig::of(config);
    let gateway = [10, 0, 2, 60];
    rig.router.add_route_v4("192.0.2.0/24".parse().unwrap(), NextHop::via(2, IpAddr::from(gateway))).unwrap();
    // For a packet to a neighbour no request is allowed.
    for destination in [gateway, [192, 0, 2, 1]] {
        assert_eq!(rig.send(SECOND, 1, &packet(destination, 64)), [Seen::Kept]);
    }
    assert_eq!(asks(&rig.wait(2 * SECOND), gateway), Some([0xff; 6]));
}

/// From the host behind port 1 to any address.
fn packet_to(destination: IpAddr) -> Vec<u8> {
    let IpAddr::V6(destination) = destination else {
        let IpAddr::V4(destination) = destination else { unreachable!() };
        return packet(destination.octets(), 64);
    };
    let source = Ipv6Addr::new(0xfd00, 1, 0, 0, 0, 0, 0, 9).into();
    packet_v6((source, destination.into()), (router_mac(1), host_mac(1)), (17, 64), &[0; 26])
}

fn packet_v6(
    (source, destination): (u128, u128),
    (to, from): ([u8; 6], [u8; 6]),
    (next_header, hop_limit): (u8, u8),
    payload: &[u8],
) -> Vec<u8> {
    let payload_len = payload.len() as u16;
    let header = Ipv6Header { source, destination, next_header, hop_limit, payload_len };
    [&ethernet_header(to, from, 0x86dd)[..], &header.bytes(), payload].concat()
}

/// A station behind a port of the router.
#[derive(Clone, Copy)]
struct Station {
    port: u16,
    mac: [u8; 6],
    address: IpAddr,
}

impl Station {
    /// Requests the router's address `own`, and so announces itself.
    fn question(&self, own: IpAddr) -> Vec<u8> {
        match (self.address, own) {
            (IpAddr::V4(address), IpAddr::V4(own)) => {
                arp(self.port, 1, (self.mac, address.octets()), own.octets())
            }
            (IpAddr::V6(address), IpAddr::V6(own)) => {
                let (source, target) = (address.into(), own.into());
                let message = Discovery::solicit(source, target, target, self.mac);
                packet_v6((source, target), (router_mac(self.port), self.mac), (58, 255), &message)
            }
            _ => unreachable!(),
        }
    }

    /// Answers, whether there was a request or not.
    fn answer(&self, own: IpAddr) -> Vec<u8> {
        match (self.address, own) {
            (IpAddr::V4(address), IpAddr::V4(own)) => {
                arp(self.port, 2, (self.mac, address.octets()), own.octets())
            }
            (IpAddr::V6(address), IpAddr::V6(own)) => {
                let (target, to) = (address.into(), own.into());
                let message = Discovery::advertise(target, to, target, self.mac, true);
                packet_v6((target, to), (router_mac(self.port), self.mac), (58, 255), &message)
            }
            _ => unreachable!(),
        }
    }

    /// Whether one of these frames is a request for it.
    fn is_asked(&self, seen: &[Seen]) -> bool {
        seen.iter().any(|seen| match (seen, self.address) {
            (Seen::Out(port, frame), IpAddr::V4(address)) => {
                *port == self.port
                    && frame[12..14] == [8, 6]
                    && frame[21] == 1
                    && frame[38..42] == address.octets()
            }
            (Seen::Out(port, frame), IpAddr::V6(address)) => {
                *port == self.port
                    && frame[12..14] == [0x86, 0xdd]
                    && frame[54] == 135
                    && frame[62..78] == address.octets()
            }
            _ => false,
        })
    }

    /// Sends it a packet, and answers a request. Returns whether that packet, or one that waited, is sent to
    /// it.
    fn is_reached(&self, rig: &mut Rig, at: u64, own: IpAddr) -> bool {
        let mut seen = rig.send(at, 1, &packet_to(self.address));
        if self.is_asked(&seen) {
            seen.extend(rig.send(at, self.port, &self.answer(own)));
        }
        seen.iter().any(|seen| {
            matches!(seen, Seen::Out(port,
            frame) if *port == self.port && frame[..6] == self.mac && frame[12..14] != [8, 6])
        })
    }
}

/// Stations at port 2 claim addresses of `networks` without end, and answer for all of them; known neighbours
/// stay known, and others can be resolved.
fn flood_of_stations(claim: fn(u32) -> IpAddr, own: [IpAddr; 3], live: [IpAddr; 3], late: fn(u8) -> IpAddr) {
    const MOST: u64 = 256;
    let mut config = config();
    config.neighbours = NeighbourLimits { neighbours: MOST as usize, ..NeighbourLimits::default() };
    config.ports[1].v4.push(InterfaceAddress { address: Ipv4Addr::new(172, 16, 0, 1).into(), len: 12 });
    let mut rig = Rig::of(config);
    let station = |port: u16, number: u8, address| Station { port, mac: [2, 0, 0, 0, 7, number], address };
    let [near, far, other] = [station(2, 1, live[0]), station(3, 2, live[1]), station(3, 3, live[2])];
    for known in [near, far, other] {
        assert!(known.is_reached(&mut rig, SECOND, own[usize::from(known.port) - 1]));
    }
    let (mut answered, mut most) = (0, 0);
    // Twenty seconds, 2000 claims per second.
    for n in 0..40_000_u32 {
        let at = 2 * SECOND + u64::from(n) * 500_000;
        rig.wait(at);
        let [a, b, c, _] = n.to_le_bytes();
        let forged = Station { port: 2, mac: [2, 9, 0, a, b, c], address: claim(n) };
        rig.send(at, 2, &forged.question(own[0]));
        // Unsolicited answers to other addresses, also in the name of others.
        rig.send(at, 2, &Station { address: claim(1_000_000 + n), ..forged }.answer(own[0]));
        if n % 4 == 0 {
            answered += u32::from(forged.is_reached(&mut rig, at, own[0]));
        }
        if n % 100 == 0 {
            for known in [near, far, other] {
                assert!(known.is_reached(&mut rig, at, own[usize::from(known.port) - 1]), "claim {n}");
            }
        }
        most = most.max(rig.router.stats().neighbours);
    }
    // The table is full, three quarters of it with neighbours that have answered: mere claims have one
    // quarter.
    assert!(answered > 150 && most == MOST, "{answered} of them were reached, {most} remembered");
    // Another port may still have up to its share, a third; four of it are known.
    for n in 0..80 {
        let (late, at) = (station(3, 100 + n, late(n)), 30 * SECOND + u64::from(n) * SECOND / 10);
        rig.wait(at);
        assert!(late.is_reached(&mut rig, at, own[2]), "{n}: {:?}", late.address);
    }
    for known in [far, other] {
        assert!(known.is_reached(&mut rig, 39 * SECOND, own[2]));
    }
    rig.wait(100 * SECOND);
    assert_eq!(rig.router.kept(), 0);
}

#[test]
fn a_port_full_of_arp_leaves_others_neighbours_alone() {
    let v4 = |a, b, c, d| IpAddr::from([a, b, c, d]);
    let claim = |n: u32| IpAddr::from((Ipv4Addr::new(172, 16, 1, 0).to_bits() + n % 900_000).to_be_bytes());
    let own = [v4(172, 16, 0, 1), v4(10, 0, 2, 1), v4(10, 0, 3, 1)];
    let live = [v4(10, 0, 2, 50), v4(10, 0, 3, 50), v4(10, 0, 3, 51)];
    flood_of_stations(claim, own, live, |n| IpAddr::from([10, 0, 3, 100 + n]));
}

#[test]
fn a_port_full_of_neighbour_discovery_leaves_others_neighbours_alone() {
    let v6 = |net, host| IpAddr::V6(Ipv6Addr::new(0xfd00, net, 0, 0, 0, 0, 0, host));
    let claim = |n: u32| IpAddr::V6(Ipv6Addr::new(0xfd00, 2, 0, 0, 0, 1, (n >> 16) as u16, n as u16));
    flood_of_stations(claim, [v6(2, 1), v6(2, 1), v6(3, 1)], [v6(2, 0x50), v6(3, 0x50), v6(3, 0x51)], |n| {
        IpAddr::V6(Ipv6Addr::new(0xfd00, 3, 0, 0, 0, 0, 1, n.into()))
    });
}

#[test]
fn a_loop_ends() {
    let mut rig = Rig::new();
    rig.router
        .add_route_v4("192.0.2.0/24".parse().unwrap(), NextHop::via(1, IpAddr::from([10, 0, 1, 9])))
        .unwrap();
    let mut frame = packet([192, 0, 2, 1], 64);
    let mut rounds = 0;
    let end = loop {
        let seen = rig.send(rounds, 1, &frame);
        let Seen::Out(1, back) = &seen[0] else { break seen };
        // A live station returns it.
        frame.clone_from(back);
        frame[..6].copy_from_slice(&router_mac(1));
        frame[6..12].copy_from_slice(&host_mac(1));
        rounds += 1;
    };
    assert_eq!((rounds, &end[0]), (63, &Seen::Dropped(DropReason::HopLimit)));
}
