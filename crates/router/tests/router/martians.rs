//! Packets with impossible sources, and packets that must not leave their link.

use crate::rig::{Rig, SECOND, Seen, config, host_mac, router_mac};
use longwire_block::DropReason;
use longwire_router::{InterfaceAddress, NextHop};
use longwire_wire::{Ipv4Header, Ipv6Header, ethernet_header, ethertype};
use std::net::{Ipv4Addr, Ipv6Addr};

const MARTIAN: Seen = Seen::Dropped(DropReason::Martian);
const FAR: &str = "10.0.2.9";
const FAR_V6: &str = "fd00:2::9";

/// UDP from port 1, without payload; to the station's MAC address, or to a group's.
fn frame(source: &str, destination: &str, ttl: u8) -> Vec<u8> {
    let destination: Ipv4Addr = destination.parse().unwrap();
    let header = Ipv4Header {
        source: source.parse::<Ipv4Addr>().unwrap().into(),
        destination: destination.into(),
        protocol: 17,
        ttl,
        traffic_class: 0,
        id: 0,
        payload_len: 8,
    };
    let to = if destination.is_multicast() { [1, 0, 0x5e, 0, 0, 5] } else { router_mac(1) };
    let ethernet = ethernet_header(to, host_mac(1), ethertype::IPV4);
    [&ethernet[..], &header.bytes(), &[0, 7, 0, 9, 0, 8, 0, 0]].concat()
}

fn frame_v6(source: &str, destination: &str, hop_limit: u8) -> Vec<u8> {
    let destination: Ipv6Addr = destination.parse().unwrap();
    let header = Ipv6Header {
        source: source.parse::<Ipv6Addr>().unwrap().into(),
        destination: destination.into(),
        next_header: 17,
        hop_limit,
        payload_len: 8,
    };
    let to = if destination.is_multicast() { [0x33, 0x33, 0, 0, 0, 5] } else { router_mac(1) };
    let ethernet = ethernet_header(to, host_mac(1), ethertype::IPV6);
    [&ethernet[..], &header.bytes(), &[0, 7, 0, 9, 0, 8, 0, 0]].concat()
}

/// A router whose port 3 is also in networks of two addresses: 10.1.0.0/31 and fd01::/127, with the other
/// hosts at 10.1.0.1 and fd01::1.
fn rig() -> Rig {
    let mut config = config();
    config.ports[2].v4.push(InterfaceAddress { address: 0x0a01_0000, len: 31 });
    config.ports[2].v6.push(InterfaceAddress { address: 0xfd01 << 112, len: 127 });
    Rig::of(config)
}

#[test]
fn sources_that_are_the_routers_own_are_martians() {
    let mut rig = rig();
    // (source, whether it is one)
    for (source, is_martian) in [
        ("10.0.1.1", true),
        ("10.0.2.1", true),
        ("10.0.3.1", true),
        ("10.0.1.0", true),
        ("10.0.1.255", true),
        ("10.0.3.255", true),
        ("10.1.0.0", true),
        // The other one of two: such networks have no broadcast address.
        ("10.1.0.1", false),
        ("10.0.1.9", false),
        ("10.0.1.2", false),
        ("10.0.1.254", false),
        ("10.0.4.1", false),
        ("192.0.2.1", false),
        ("203.0.113.255", false),
    ] {
        let seen = rig.send(SECOND, 1, &frame(source, FAR, 64));
        assert_eq!(seen[0] == MARTIAN, is_martian, "{source}: {seen:?}");
        assert_eq!(matches!(seen[0], Seen::Out(2, _)), !is_martian, "{source}: {seen:?}");
    }
    for (source, is_martian) in [
        ("fd00:1::1", true),
        ("fd00:2::1", true),
        // An anycast address is never a source (RFC 4291, 2.6.1).
        ("fd00:1::", true),
        ("fd01::", true),
        ("fd01::1", false),
        ("fd00:1::9", false),
        ("fd00:1::ffff:ffff:ffff:ffff", false),
    ] {
        let seen = rig.send(SECOND, 1, &frame_v6(source, FAR_V6, 64));
        assert_eq!(seen[0] == MARTIAN, is_martian, "{source}: {seen:?}");
        assert_eq!(matches!(seen[0], Seen::Out(2, _)), !is_martian, "{source}: {seen:?}");
    }
    assert_eq!(rig.router.stats().dropped, 7 + 4);
}

#[test]
fn they_are_found_whatever_else_is_the_matter_and_never_answered() {
    let mut rig = rig();
    let own_within_link = "fe80::ff:fe00:ff01";
    for (what, frame) in [
        ("no hop left", frame("10.0.2.1", FAR, 1)),
        ("to the router", frame("10.0.1.1", "10.0.1.1", 64)),
        ("no route", frame("10.0.1.1", "198.51.100.1", 64)),
        ("to a group", frame("10.0.1.1", "224.0.0.5", 1)),
        ("to be asked for", frame("10.0.1.255", "10.0.2.77", 64)),
        ("IPv6, no hop left", frame_v6("fd00:2::1", FAR_V6, 1)),
        ("IPv6, no route", frame_v6("fd00:2::1", "2001:db8::1", 64)),
        ("IPv6, to a group", frame_v6(own_within_link, "ff02::5", 1)),
        ("IPv6, within the link", frame_v6(own_within_link, own_within_link, 64)),
    ] {
        assert_eq!(rig.send(SECOND, 1, &frame), [MARTIAN], "{what}");
    }
}

#[test]
fn what_is_own_follows_the_routes() {
    let mut rig = rig();
    let is_martian = |rig: &mut Rig, source: &str| rig.send(SECOND, 1, &frame(source, FAR, 64))[0] == MARTIAN;
    assert!(!is_martian(&mut rig, "10.0.7.1"));
    rig.router.add_route_v4("10.0.7.1/32".parse().unwrap(), NextHop::Local).unwrap();
    rig.router.add_route_v4("10.0.7.255/32".parse().unwrap(), NextHop::Broadcast).unwrap();
    assert!(is_martian(&mut rig, "10.0.7.1") && is_martian(&mut rig, "10.0.7.255"));
    rig.router.add_route_v4("10.0.7.1/32".parse().unwrap(), NextHop::Direct { port: 3 }).unwrap();
    assert!(!is_martian(&mut rig, "10.0.7.1"));
    assert!(rig.router.remove_route_v4("10.0.7.255/32".parse().unwrap()));
    assert!(!is_martian(&mut rig, "10.0.7.255"));
    // A whole network may be the router's.
    rig.router.add_route_v4("10.0.8.0/24".parse().unwrap(), NextHop::Local).unwrap();
    assert!(is_martian(&mut rig, "10.0.8.77") && !is_martian(&mut rig, "10.0.9.77"));
    assert!(rig.router.remove_route_v4("10.0.8.0/24".parse().unwrap()));
    assert!(!is_martian(&mut rig, "10.0.8.77"));
}

#[test]
fn ipv4_addresses_within_a_link_stay_there() {
    let mut config = config();
    config.ports[0].v4.push(InterfaceAddress { address: 0xa9fe_0101, len: 16 });
    let mut rig = Rig::of(config);
    let near = "169.254.7.7";
    rig.router.set_neighbour(1, near.parse().unwrap(), host_mac(1));
    rig.router.add_route_v4("0.0.0.0/0".parse().unwrap(), NextHop::via(2, FAR.parse().unwrap())).unwrap();
    for (source, destination) in [
        (near, FAR),
        (near, "169.254.8.8"),
        (near, "198.51.100.1"),
        ("10.0.1.9", near),
        ("169.254.1.1", FAR),
        // An address of another port is not within this link.
        (near, "10.0.2.1"),
    ] {
        let seen = rig.send(SECOND, 1, &frame(source, destination, 64));
        assert_eq!(seen, [MARTIAN], "{source} to {destination}");
        assert_eq!(rig.send(SECOND, 1, &frame(source, destination, 1)), [MARTIAN], "and with no hop left");
    }
    // To the port itself: that UDP port is closed, and the error goes back over the same link, not by the
    // default route.
    for own in ["10.0.1.1", "169.254.1.1"] {
        let seen = rig.send(SECOND, 1, &frame(near, own, 64));
        assert_eq!((&seen[0], seen.len()), (&Seen::Dropped(DropReason::Unserved), 2));
        let (port, told) = seen[1].out();
        assert_eq!((port, &told[..6], &told[30..34]), (1, &host_mac(1)[..], &[169, 254, 7, 7][..]));
        assert_eq!((told[23], told[34], told[35]), (1, 3, 3), "ICMP: port unreachable");
    }
    // Gateways may have link-local addresses.
    rig.router
        .add_route_v4("198.51.100.0/24".parse().unwrap(), NextHop::via(1, near.parse().unwrap()))
        .unwrap();
    assert_eq!(rig.send(SECOND, 1, &frame("10.0.1.9", "198.51.100.1", 64))[0].out().0, 1);
}

#[test]
fn directed_broadcasts_are_not_forwarded() {
    let mut rig = rig();
    for destination in ["10.0.2.255", "10.0.2.0", "10.0.1.255"] {
        let seen = rig.send(SECOND, 1, &frame("10.0.1.9", destination, 64));
        assert_eq!(seen, [Seen::Dropped(DropReason::Group)], "{destination}");
    }
    // Of two addresses both are hosts.
    assert_eq!(rig.send(SECOND, 1, &frame("10.0.1.9", "10.1.0.1", 64))[0], Seen::Kept);
}
