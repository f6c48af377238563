//! Padding and trailers after an IP packet, and the sources of ICMP errors. Port 3 has an MTU of 1280.

use crate::rig::{Rig, Seen, config, host_mac, router_mac};
use etherparse::PacketBuilder;
use longwire_block::DropReason;
use longwire_router::{InterfaceAddress, NextHop};
use longwire_wire::checksum::Sum;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

fn v6(net: u16, host: u16) -> u128 {
    Ipv6Addr::new(0xfd00, net, 0, 0, 0, 0, 0, host).into()
}

/// A UDP packet of this length from a host at port 1, with DF set if `whole`.
fn udp_v4(from: [u8; 4], to: [u8; 4], len: usize, whole: bool) -> Vec<u8> {
    let udp = etherparse::IpNumber::UDP;
    let header = etherparse::Ipv4Header::new(len as u16 - 20, 64, udp, from, to).unwrap();
    let header = etherparse::Ipv4Header { dont_fragment: whole, ..header };
    let builder = PacketBuilder::ethernet2(host_mac(1), router_mac(1));
    let mut frame = Vec::new();
    let builder = builder.ip(etherparse::IpHeaders::Ipv4(header, Default::default())).udp(7, 9);
    builder.write(&mut frame, &vec![7; len - 28]).unwrap();
    frame
}

fn udp_v6(from: u128, to: u128, len: usize) -> Vec<u8> {
    let builder = PacketBuilder::ethernet2(host_mac(1), router_mac(1));
    let builder = builder.ipv6(from.to_be_bytes(), to.to_be_bytes(), 64).udp(7, 9);
    let mut frame = Vec::new();
    builder.write(&mut frame, &vec![7; len - 48]).unwrap();
    frame
}

/// The two families' packets of `len` bytes from the host behind port 1 to that of `net`.
fn both(net: u16, len: usize) -> [Vec<u8>; 2] {
    [udp_v4([10, 0, 1, 9], [10, 0, net as u8, 9], len, true), udp_v6(v6(1, 9), v6(net, 9), len)]
}

fn with_trailer(frame: &[u8], bytes: usize) -> Vec<u8> {
    [frame, &vec![0xee; bytes]].concat()
}

#[test]
fn a_trailer_is_not_forwarded_and_makes_no_packet_too_long() {
    let mut rig = Rig::new();
    for len in [200, 1276, 1279, 1280] {
        for frame in both(3, len) {
            let plain = rig.send(1, 1, &frame);
            for trailer in [1, 4, 12, 200] {
                let seen = rig.send(1, 1, &with_trailer(&frame, trailer));
                assert_eq!(seen, plain, "{len} and {trailer}");
                assert_eq!(seen[0].out().1.len(), 14 + len);
            }
        }
    }
    let stats = rig.router.stats();
    assert_eq!((stats.errors, stats.exceptions), (0, vec![]));
    // One byte more is too long, with or without a trailer.
    for frame in both(3, 1281) {
        for trailer in [0, 4] {
            let seen = rig.send(1, 1, &with_trailer(&frame, trailer));
            assert_eq!((&seen[0], seen.len()), (&Seen::Dropped(DropReason::Mtu), 2));
        }
    }
}

#[test]
fn padding_up_to_the_shortest_frame_stays() {
    let mut rig = Rig::new();
    let short = udp_v4([10, 0, 1, 9], [10, 0, 2, 9], 30, true);
    for (bytes, left) in [(0, 44), (16, 60), (17, 60), (40, 60)] {
        let seen = rig.send(1, 1, &with_trailer(&short, bytes));
        assert_eq!(seen[0].out().1.len(), left, "{bytes}");
    }
}

#[test]
fn full_ip_looks_at_the_packet_too() {
    let mut rig = Rig::new();
    // With an option to skip: a packet of 1280 bytes and a trailer of 40.
    let mut frame = udp_v4([10, 0, 1, 9], [10, 0, 3, 9], 1276, true);
    frame.splice(34..34, [148, 4, 0, 0]);
    (frame[14], frame[16], frame[17]) = (0x46, 5, 0);
    frame[24..26].fill(0);
    let checksum = Sum::ZERO.bytes(&frame[14..38]).checksum();
    frame[24..26].copy_from_slice(&checksum.to_be_bytes());
    let seen = rig.send(1, 1, &with_trailer(&frame, 40));
    assert_eq!((seen[0].out().0, seen[0].out().1.len(), seen.len()), (3, 1294, 1));
    // A packet that waits for a neighbour leaves without its trailer, and fragmentation uses the packet's own
    // length.
    let frames = [
        udp_v4([10, 0, 1, 9], [10, 0, 3, 77], 1280, false),
        udp_v4([10, 0, 1, 9], [10, 0, 3, 77], 1300, false),
    ];
    for frame in &frames {
        assert_eq!(rig.send(1, 1, &with_trailer(frame, 60))[0], Seen::Kept);
    }
    let mut answer = longwire_wire::ethernet_header(router_mac(3), host_mac(3), 0x806).to_vec();
    let ends = ((host_mac(3), [10, 0, 3, 77]), (router_mac(3), [10, 0, 3, 1]));
    let [sender, target] =
        [ends.0, ends.1].map(|(mac, ip): ([u8; 6], [u8; 4])| (mac, u32::from_be_bytes(ip)));
    answer.extend(longwire_wire::arp_message(2, sender, target));
    let seen = rig.send(2, 3, &answer);
    let out = seen.iter().filter(|seen| matches!(seen, Seen::Out(..)));
    let lens: Vec<_> = out.map(|seen| seen.out().1.len()).collect();
    assert_eq!(lens, [1294, 1290, 44 + 14], "{seen:?}");
}

/// Port 1 has two networks; hosts behind the gateway 10.0.2.9 are reached by port 2.
fn rig() -> Rig {
    let mut config = config();
    config.ports[0].v4.push(InterfaceAddress { address: Ipv4Addr::new(10, 1, 1, 1).into(), len: 24 });
    config.ports[0].v6.push(InterfaceAddress { address: v6(0x101, 1), len: 64 });
    let mut rig = Rig::of(config);
    let via = |address: IpAddr| NextHop::via(2, address);
    rig.router.add_route_v4("192.0.2.0/24".parse().unwrap(), via(Ipv4Addr::new(10, 0, 2, 9).into())).unwrap();
    let gateway = Ipv6Addr::from(v6(2, 9)).into();
    rig.router.add_route_v6("2001:db8::/32".parse().unwrap(), via(gateway)).unwrap();
    let near = [Ipv4Addr::new(10, 1, 1, 9).into(), IpAddr::V6(v6(0x101, 9).into())];
    assert!(near.into_iter().all(|near| rig.router.set_neighbour(1, near, host_mac(1))));
    rig
}

/// The port by which an error left, and its source.
fn told(seen: &[Seen]) -> (u16, IpAddr) {
    let [_, error] = seen else { panic!("an error: {seen:?}") };
    let (port, frame) = error.out();
    let source: IpAddr = match frame[12] {
        8 => <[u8; 4]>::try_from(&frame[26..30]).unwrap().into(),
        _ => <[u8; 16]>::try_from(&frame[22..38]).unwrap().into(),
    };
    (port, source)
}

#[test]
fn errors_come_from_the_port_that_they_leave_by() {
    let mut rig = rig();
    let one = |net: u16| (IpAddr::from([10, 0, net as u8, 1]), IpAddr::V6(v6(net, 1).into()));
    let two = (IpAddr::from([10, 1, 1, 1]), IpAddr::V6(v6(0x101, 1).into()));
    let far = ([192, 0, 2, 7], 0x2001_0db8 << 96 | 7);
    // The sender at port 1, and the port where the error leaves.
    for (from, port, (own_v4, own_v6)) in [
        (([10, 0, 1, 9], v6(1, 9)), 1, one(1)),
        (([10, 1, 1, 9], v6(0x101, 9)), 1, two),
        (([10, 0, 3, 9], v6(3, 9)), 3, one(3)),
        (far, 2, one(2)),
    ] {
        let mut v4 = udp_v4(from.0, [10, 0, 2, 9], 100, true);
        v4[22] = 1;
        v4[24..26].fill(0);
        let checksum = Sum::ZERO.bytes(&v4[14..34]).checksum();
        v4[24..26].copy_from_slice(&checksum.to_be_bytes());
        assert_eq!(told(&rig.send(1, 1, &v4)), (port, own_v4));
        let mut v6 = udp_v6(from.1, v6(2, 9), 100);
        v6[21] = 1;
        assert_eq!(told(&rig.send(1, 1, &v6)), (port, own_v6));
        // No route, too long.
        assert_eq!(told(&rig.send(1, 1, &udp_v4(from.0, [203, 0, 113, 1], 100, true))), (port, own_v4));
        assert_eq!(told(&rig.send(1, 1, &udp_v6(from.1, 0x2a00 << 112, 100))), (port, own_v6));
    }
}

#[test]
fn errors_about_what_was_for_the_router_come_from_the_address_that_was_asked() {
    let mut rig = rig();
    let far = ([192, 0, 2, 7], 0x2001_0db8 << 96 | 7);
    for (to, from) in [([10, 0, 1, 1], [10, 0, 1, 9]), ([10, 0, 3, 1], [10, 0, 1, 9]), ([10, 1, 1, 1], far.0)]
    {
        assert_eq!(told(&rig.send(1, 1, &udp_v4(from, to, 100, true))).1, IpAddr::from(to));
    }
    for (to, from) in [(v6(1, 1), v6(1, 9)), (v6(3, 1), v6(1, 9)), (v6(0x101, 1), far.1)] {
        assert_eq!(told(&rig.send(1, 1, &udp_v6(from, to, 100))).1, IpAddr::V6(to.into()));
    }
    // An anycast address is never a source: the router's address there is.
    assert_eq!(told(&rig.send(1, 1, &udp_v6(v6(1, 9), v6(3, 0), 100))).1, IpAddr::V6(v6(3, 1).into()));
}
