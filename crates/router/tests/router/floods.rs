//! Floods of what needs more than forwarding leave regular packets and known neighbours alone.

use crate::rig::{Rig, SECOND, Seen, config, host_mac, router_mac};
use longwire_block::{DropReason, Node};
use longwire_router::{Limit, NextHop, Work};
use longwire_wire::{Ipv4Header, arp_message, ethernet_header};
use std::net::IpAddr;

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

/// Whether the router asks for the address, and by which Ethernet address.
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
    // A second of 32 regular and 32 exceptional packets every 200 us: 160000 of each.
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
    // Errors: a burst of 64, then one a millisecond. Looked at by full IP: a burst of 1024, then one in 50 us.
    assert_eq!((regular, told), (160_000, 64 + 999));
    let policed = rig.router.stats().policed[Work::Exceptions as usize];
    assert_eq!(policed, 160_000 - 1024 - 19_996);
}

#[test]
fn known_neighbours_and_gateways_survive_floods_of_unknown_ones() {
    let mut config = config();
    config.police.requests = Limit { rate: 5, burst: 5 };
    let mut rig = Rig::of(config);
    let (known, mac) = ([10, 0, 2, 50], [2, 0, 0, 0, 5, 5]);
    let gateway = [10, 0, 2, 60];
    rig.router.add_route_v4("192.0.2.0/24".parse().unwrap(), NextHop::via(2, IpAddr::from(gateway))).unwrap();
    // It is asked for, and answers.
    rig.send(0, 1, &packet(known, 64));
    assert!(matches!(rig.send(1, 2, &arp(2, 2, (mac, known), [10, 0, 2, 1]))[1], Seen::Out(2, _)));
    let mut probed = 0;
    for turn in 0..2000u64 {
        let at = SECOND + turn * 20_000_000;
        let mut seen = rig.wait(at);
        // Packets to strangers, and questions by strangers.
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
    // Forty seconds: after thirty it was asked whether it is still there.
    assert_eq!(probed, 1);
    let seen = rig.send(50 * SECOND, 1, &packet([192, 0, 2, 1], 64));
    assert_eq!((&seen[0], asks(&seen, gateway)), (&Seen::Kept, Some([0xff; 6])));
    rig.wait(100 * SECOND);
    assert_eq!(rig.router.kept(), 0);
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
        // Whoever is there sends it back.
        frame.clone_from(back);
        frame[..6].copy_from_slice(&router_mac(1));
        frame[6..12].copy_from_slice(&host_mac(1));
        rounds += 1;
    };
    assert_eq!((rounds, &end[0]), (63, &Seen::Dropped(DropReason::HopLimit)));
}
