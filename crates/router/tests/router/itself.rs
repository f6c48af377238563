//! Packets for the router itself: options, extension headers and addresses. Frames are built by hand.

use crate::rig::{CONTROL, Rig, SECOND, Seen, config, host_mac, router_mac};
use longwire_block::DropReason;
use longwire_router::ControlPort;
use longwire_wire::checksum::{Sum, pseudo_v6};
use longwire_wire::{
    Discovery, Ipv6, Ipv6Header, ethernet_header, ethertype, multicast_mac, protocol, solicited_node,
};
use std::net::Ipv6Addr;

const HOST: [u8; 4] = [10, 0, 1, 9];
const OPTIONS: Seen = Seen::Dropped(DropReason::Options);
const UNSERVED: Seen = Seen::Dropped(DropReason::Unserved);
/// Payload of an echo request.
const SAID: &[u8] = b"longwire";

fn v6(text: &str) -> u128 {
    text.parse::<Ipv6Addr>().unwrap().into()
}

/// An IPv4 packet from the host behind port 1, with options.
fn frame(destination: [u8; 4], options: &[u8], protocol: u8, payload: &[u8]) -> Vec<u8> {
    let total = (20 + options.len() + payload.len()) as u16;
    let mut frame = ethernet_header(router_mac(1), host_mac(1), ethertype::IPV4).to_vec();
    frame.extend([0x45 + (options.len() / 4) as u8, 0]);
    frame.extend(total.to_be_bytes());
    frame.extend([0, 7, 0, 0, 64, protocol, 0, 0]);
    frame.extend([HOST, destination].concat());
    frame.extend(options);
    let checksum = Sum::ZERO.bytes(&frame[14..]).checksum();
    frame[24..26].copy_from_slice(&checksum.to_be_bytes());
    [frame, payload.to_vec()].concat()
}

fn ping(destination: [u8; 4], options: &[u8]) -> Vec<u8> {
    let mut echo = [&[8, 0, 0, 0, 0, 3, 0, 5], SAID].concat();
    let checksum = Sum::ZERO.bytes(&echo).checksum();
    echo[2..4].copy_from_slice(&checksum.to_be_bytes());
    frame(destination, options, protocol::ICMP, &echo)
}

/// An IPv6 packet from a host at port 1, with `payload` of type `next` after the fixed header.
fn frame_v6(source: &str, destination: &str, next: u8, payload: &[u8]) -> Vec<u8> {
    let (source, destination) = (v6(source), v6(destination));
    let to = if destination >> 120 == 0xff { multicast_mac(destination) } else { router_mac(1) };
    let payload_len = payload.len() as u16;
    let header = Ipv6Header { source, destination, next_header: next, hop_limit: 255, payload_len };
    [&ethernet_header(to, host_mac(1), ethertype::IPV6)[..], &header.bytes(), payload].concat()
}

/// An echo request after `before`, which begins with a header of type `next`.
fn ping_v6(destination: &str, next: u8, before: &[u8]) -> Vec<u8> {
    const FROM: &str = "fd00:1::9";
    let mut echo = [&[128, 0, 0, 0, 0, 3, 0, 5], SAID].concat();
    let pseudo = pseudo_v6(v6(FROM), v6(destination), protocol::ICMPV6, echo.len() as u32);
    let checksum = pseudo.bytes(&echo).checksum();
    echo[2..4].copy_from_slice(&checksum.to_be_bytes());
    frame_v6(FROM, destination, next, &[before, &echo].concat())
}

/// Sender and content of an ICMPv6 packet with a correct checksum.
fn read_v6(seen: &Seen) -> (u128, Vec<u8>) {
    let packet = &seen.out().1[14..];
    let ip = Ipv6::check(packet).unwrap();
    assert_eq!(ip.next_header(), protocol::ICMPV6);
    let pseudo = pseudo_v6(ip.source(), ip.destination(), protocol::ICMPV6, ip.payload().len() as u32);
    assert_eq!(pseudo.bytes(ip.payload()).checksum(), 0);
    (ip.source(), ip.payload().to_vec())
}

fn is_answer(seen: &[Seen], from: &str) -> bool {
    let [Seen::Consumed, answer] = seen else { return false };
    let (source, message) = read_v6(answer);
    (source, message[0], &message[8..]) == (v6(from), 129, SAID)
}

/// A header with one option of this type, four bytes long.
const fn with_option(next: u8, option: u8) -> [u8; 8] {
    [next, 0, option, 4, 0, 0, 0, 0]
}

#[test]
fn unknown_options_say_what_is_to_become_of_what_is_for_the_router() {
    let mut rig = Rig::new();
    for kind in [protocol::HOP_BY_HOP, protocol::DESTINATION] {
        let ping = |option| ping_v6("fd00:1::1", kind, &with_option(protocol::ICMPV6, option));
        // Router alert, and an option to skip.
        for option in [0x05, 0x1e] {
            assert!(is_answer(&rig.send(SECOND, 1, &ping(option)), "fd00:1::1"), "{option:x}");
        }
        assert_eq!(rig.send(SECOND, 1, &ping(0x5e)), [OPTIONS]);
        for told in [0x9e, 0xde] {
            let seen = rig.send(SECOND, 1, &ping(told));
            assert_eq!((&seen[0], seen.len()), (&OPTIONS, 2), "{told:x}");
            let (source, message) = read_v6(&seen[1]);
            // Parameter problem, unknown option at 42; and the packet.
            assert_eq!((source, &message[..2]), (v6("fd00:1::1"), &[4, 2][..]));
            assert_eq!((&message[4..8], &message[8..]), (&[0, 0, 0, 42][..], &ping(told)[14..]));
        }
    }
    assert_eq!(rig.router.stats().errors, 4);
}

#[test]
fn those_of_groups_are_told_of_some() {
    let mut rig = Rig::new();
    let (all_nodes, other) = ("ff02::1", "ff02::5");
    let group = Seen::Dropped(DropReason::Group);
    for (kind, destination, option, told, fate) in [
        (protocol::HOP_BY_HOP, other, 0x1e, false, &group),
        (protocol::HOP_BY_HOP, all_nodes, 0x5e, false, &OPTIONS),
        (protocol::HOP_BY_HOP, all_nodes, 0x9e, true, &OPTIONS),
        (protocol::HOP_BY_HOP, all_nodes, 0xde, false, &OPTIONS),
        (protocol::HOP_BY_HOP, other, 0x9e, true, &OPTIONS),
        (protocol::DESTINATION, all_nodes, 0x9e, true, &OPTIONS),
        (protocol::DESTINATION, all_nodes, 0xde, false, &OPTIONS),
        // The router is not a member of this group.
        (protocol::DESTINATION, other, 0x9e, false, &group),
    ] {
        let seen = rig.send(SECOND, 1, &ping_v6(destination, kind, &with_option(protocol::ICMPV6, option)));
        assert_eq!((&seen[0], seen.len() == 2), (fate, told), "{kind} {destination} {option:x}");
        assert!(!told || read_v6(&seen[1]).1[..2] == [4, 2]);
    }
    // A host with only a link-local address also gets an error; its MAC address is resolved first.
    let near = frame_v6("fe80::9", all_nodes, protocol::HOP_BY_HOP, &with_option(protocol::NONE, 0x9e));
    let seen = rig.send(SECOND, 1, &near);
    assert_eq!((&seen[0], rig.router.stats().kept), (&OPTIONS, 1), "{seen:?}");
    rig.wait(9 * SECOND);
    assert_eq!(rig.router.stats().kept, 0);
}

#[test]
fn a_fragment_that_is_all_there_is_is_no_fragment() {
    let mut rig = Rig::new();
    let fragment = |high, low| [protocol::ICMPV6, 0, high, low, 0, 0, 0, 9];
    let send =
        |rig: &mut Rig, before: &[u8]| rig.send(SECOND, 1, &ping_v6("fd00:1::1", protocol::FRAGMENT, before));
    assert!(is_answer(&send(&mut rig, &fragment(0, 0)), "fd00:1::1"));
    // Neither the first nor a later fragment is reassembled.
    assert_eq!(send(&mut rig, &fragment(0, 1)), [UNSERVED]);
    assert_eq!(send(&mut rig, &fragment(0, 8)), [UNSERVED]);
    let udp = [&[protocol::UDP, 0, 0, 0, 0, 0, 0, 9][..], &[0, 7, 0, 9, 0, 8, 0, 0]].concat();
    let seen = rig.send(SECOND, 1, &frame_v6("fd00:1::9", "fd00:1::1", protocol::FRAGMENT, &udp));
    assert_eq!((&seen[0], &read_v6(&seen[1]).1[..2]), (&UNSERVED, &[1, 4][..]), "port unreachable");
    // An error points to an unknown protocol number: the first byte of the fragment header.
    let other = [&[99, 0, 0, 0, 0, 0, 0, 9][..], &[0; 8]].concat();
    let seen = rig.send(SECOND, 1, &frame_v6("fd00:1::9", "fd00:1::1", protocol::FRAGMENT, &other));
    let message = read_v6(&seen[1]).1;
    assert_eq!((&message[..2], &message[4..8]), (&[4, 1][..], &[0, 0, 0, 40][..]));
}

#[test]
fn neighbours_are_not_told_of_in_fragments() {
    let mut rig = Rig::new();
    let (from, own) = (v6("fd00:1::77"), v6("fd00:1::1"));
    let question = Discovery::solicit(from, own, own, host_mac(1));
    let whole = frame_v6("fd00:1::77", "fd00:1::1", protocol::ICMPV6, &question);
    let behind = [&[protocol::ICMPV6, 0, 0, 0, 0, 0, 0, 9][..], &question].concat();
    let fragment = frame_v6("fd00:1::77", "fd00:1::1", protocol::FRAGMENT, &behind);
    assert_eq!(rig.send(SECOND, 1, &fragment), [Seen::Dropped(DropReason::BadHeader)]);
    assert_eq!(rig.send(SECOND, 1, &whole).len(), 2);
}

#[test]
fn what_means_any_router_is_answered_by_the_routers_own_address() {
    let mut rig = Rig::new();
    for (destination, from) in
        [("fd00:1::", "fd00:1::1"), ("fd00:2::", "fd00:2::1"), ("fd00:2::1", "fd00:2::1")]
    {
        let seen = rig.send(SECOND, 1, &ping_v6(destination, protocol::ICMPV6, &[]));
        assert!(is_answer(&seen, from), "{destination}: {seen:?}");
    }
    // Neighbour discovery of the anycast address: an answer from the router's own address, without override.
    let (from, any) = (v6("fd00:1::9"), v6("fd00:1::"));
    let question = Discovery::solicit(from, solicited_node(any), any, host_mac(1));
    let group = Ipv6Addr::from(solicited_node(any)).to_string();
    let seen = rig.send(SECOND, 1, &frame_v6("fd00:1::9", &group, protocol::ICMPV6, &question));
    assert_eq!((&seen[0], seen.len()), (&Seen::Consumed, 2));
    let packet = &seen[1].out().1[14..];
    let answer = Discovery::read(&Ipv6::check(packet).unwrap(), packet, 40).unwrap();
    assert_eq!((answer.target, answer.link_address, answer.overrides), (any, Some(router_mac(1)), false));
    assert_eq!(read_v6(&seen[1]).0, v6("fd00:1::1"));
}

#[test]
fn echoes_for_all_nodes_and_all_routers_are_answered_by_the_port() {
    let mut rig = Rig::new();
    for group in ["ff02::1", "ff02::2"] {
        let seen = rig.send(SECOND, 1, &ping_v6(group, protocol::ICMPV6, &[]));
        assert!(is_answer(&seen, "fd00:1::1"), "{group}: {seen:?}");
    }
    // Not for groups of which it is no member, and not for other multicast.
    for (group, fate) in [("ff02::5", DropReason::Group), ("ff05::1", DropReason::Group)] {
        assert_eq!(rig.send(SECOND, 1, &ping_v6(group, protocol::ICMPV6, &[])), [Seen::Dropped(fate)]);
    }
    // A link-local sender gets a link-local answer.
    let from = "fe80::9";
    assert!(rig.router.set_neighbour(1, from.parse().unwrap(), host_mac(1)));
    let mut echo = [&[128, 0, 0, 0, 0, 3, 0, 5], SAID].concat();
    let pseudo = pseudo_v6(v6(from), v6("ff02::1"), protocol::ICMPV6, echo.len() as u32);
    let checksum = pseudo.bytes(&echo).checksum();
    echo[2..4].copy_from_slice(&checksum.to_be_bytes());
    let seen = rig.send(SECOND, 1, &frame_v6(from, "ff02::1", protocol::ICMPV6, &echo));
    assert_eq!(seen.len(), 2, "{seen:?}");
    let (source, message) = read_v6(&seen[1]);
    assert_eq!((source, message[0]), (v6("fe80::ff:fe00:ff01"), 129), "{source:x}");
    // The same limits apply as for its own addresses.
    let answers: usize =
        (0..3000).map(|_| rig.send(SECOND, 1, &ping_v6("ff02::1", protocol::ICMPV6, &[])).len() - 1).sum();
    assert!(answers < 2500, "{answers}");
}

#[test]
fn routes_that_senders_choose_and_what_is_encrypted_end_at_the_router() {
    let mut rig = Rig::new();
    let routing = |kind: u8, left: u8, next: u8| {
        [&[next, 2, kind, left, 0, 0, 0, 0][..], &v6("fd00:2::9").to_be_bytes()].concat()
    };
    // Type 0, mobile, low-power networks, segment routing: the type is at 42.
    for kind in [0, 2, 3, 4, 99] {
        for left in [1, 7] {
            let sent = ping_v6("fd00:1::1", protocol::ROUTING, &routing(kind, left, protocol::ICMPV6));
            let seen = rig.send(SECOND, 1, &sent);
            assert_eq!((&seen[0], seen.len()), (&UNSERVED, 2), "{kind} {left}");
            let (source, message) = read_v6(&seen[1]);
            assert_eq!((source, &message[..2]), (v6("fd00:1::1"), &[4, 0][..]));
            assert_eq!((&message[4..8], &message[8..]), (&[0, 0, 0, 42][..], &sent[14..]));
        }
        // At its end it is skipped.
        let sent = ping_v6("fd00:1::1", protocol::ROUTING, &routing(kind, 0, protocol::ICMPV6));
        assert!(is_answer(&rig.send(SECOND, 1, &sent), "fd00:1::1"), "{kind}");
    }
    // No errors about packets to all nodes.
    let sent = ping_v6("ff02::1", protocol::ROUTING, &routing(4, 1, protocol::ICMPV6));
    assert_eq!(rig.send(SECOND, 1, &sent), [Seen::Dropped(DropReason::Group)]);
    // Encrypted: an unknown header, named at 6, or after options at 40.
    let payload = [0, 0, 1, 1, 0, 0, 0, 1, 9, 9, 9, 9, 9, 9, 9, 9];
    let behind = [&with_option(protocol::ENCRYPTED, 0x1e)[..], &payload].concat();
    for (next, payload, at) in
        [(protocol::ENCRYPTED, &payload[..], 6), (protocol::DESTINATION, &behind[..], 40)]
    {
        let seen = rig.send(SECOND, 1, &frame_v6("fd00:1::9", "fd00:2::1", next, payload));
        assert_eq!((&seen[0], seen.len()), (&UNSERVED, 2), "{next}");
        let (source, message) = read_v6(&seen[1]);
        assert_eq!(
            (source, &message[..2], &message[4..8]),
            (v6("fd00:2::1"), &[4, 1][..], &[0, 0, 0, at][..])
        );
    }
}

#[test]
fn source_routes_end_at_the_router() {
    let control = |port| ControlPort { port, control: CONTROL + port };
    for with_control in [false, true] {
        let mut config = config();
        config.control = if with_control { (1..=3).map(control).collect() } else { vec![] };
        let mut rig = Rig::of(config);
        for (what, options) in [
            ("loose, to go on", [131, 7, 4, 10, 0, 2, 9, 0]),
            ("loose, at its end", [131, 7, 8, 10, 0, 2, 9, 0]),
            ("strict", [1, 137, 7, 8, 10, 0, 2, 9]),
        ] {
            assert_eq!(rig.send(SECOND, 1, &ping([10, 0, 1, 1], &options)), [OPTIONS], "{what}");
            let other = frame([10, 0, 1, 1], &options, protocol::UDP, &[0, 7, 0, 9, 0, 8, 0, 0]);
            assert_eq!(rig.send(SECOND, 1, &other), [OPTIONS], "{what}");
        }
        let stats = rig.router.stats();
        assert_eq!((stats.dropped, stats.errors), (6, 0));
    }
}

#[test]
fn answers_to_pings_record_their_route_and_time() {
    let mut rig = Rig::new();
    let mut answer = |options: &[u8]| {
        let seen = rig.send(SECOND, 1, &ping([10, 0, 2, 1], options));
        let packet = seen[1].out().1[14..].to_vec();
        let header_len = usize::from(packet[0] & 15) * 4;
        assert_eq!(Sum::ZERO.bytes(&packet[..header_len]).checksum(), 0);
        assert_eq!(usize::from(u16::from_be_bytes([packet[2], packet[3]])), packet.len());
        let (header, message) = packet.split_at(header_len);
        assert_eq!((&header[12..16], &header[16..20]), (&[10, 0, 2, 1][..], &HOST[..]));
        assert_eq!((message[0], &message[4..8], &message[8..]), (0, &[0, 3, 0, 5][..], SAID));
        assert_eq!(Sum::ZERO.bytes(message).checksum(), 0);
        header[20..].to_vec()
    };
    // One entry was there before; the router is the second, and there is room for a third.
    let route = [7, 15, 8, 10, 9, 9, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(answer(&route), [7, 15, 12, 10, 9, 9, 9, 10, 0, 2, 1, 0, 0, 0, 0, 0]);
    // After one second: 1000 ms, not since midnight.
    assert_eq!(answer(&[68, 8, 5, 0, 0, 0, 0, 0]), [68, 8, 9, 0, 0x80, 0, 3, 0xe8]);
    assert_eq!(answer(&[148, 4, 0, 0]), [0; 0]);
    assert_eq!(answer(&[]), [0; 0]);
}

#[test]
fn what_is_wrong_with_options_is_pointed_at() {
    let mut rig = Rig::new();
    // (options, error offset in the header)
    for (options, at) in [
        ([7, 1, 4, 0], 21),
        ([1, 7, 0, 4], 22),
        ([1, 1, 1, 7], 23),
        ([7, 9, 4, 0], 21),
        // The pointer of record route is four or more.
        ([7, 4, 3, 0], 22),
    ] {
        // To the router, and through it.
        for destination in [[10, 0, 1, 1], [10, 0, 2, 9]] {
            let seen = rig.send(SECOND, 1, &ping(destination, &options));
            assert_eq!((&seen[0], seen.len()), (&OPTIONS, 2), "{options:?} {destination:?}");
            let message = &seen[1].out().1[34..];
            assert_eq!((&message[..2], message[4]), (&[12, 0][..], at), "{options:?} {destination:?}");
        }
    }
}
