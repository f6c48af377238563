//! Routes with several next hops: each flow takes one path, whatever happens to its packets.

use crate::rig::{Rig, SECOND, Seen, host_mac, router_mac};
use longwire_block::DropReason;
use longwire_router::{FullIpReason, Member, NextHop, RouteError, RouteHops, WayError};
use longwire_wire::{Ipv4Header, Ipv6Header, ethernet_header, ethertype};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const SOURCE: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 9);
const SOURCE_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 1, 0, 0, 0, 0, 0, 9);

fn via(port: u16, weight: u16) -> Member {
    Member { hop: NextHop::via(port, IpAddr::from([10, 0, port as u8, 9])), weight }
}

fn via_v6(port: u16, weight: u16) -> Member {
    let gateway = Ipv6Addr::new(0xfd00, port, 0, 0, 0, 0, 0, 9);
    Member { hop: NextHop::via(port, gateway.into()), weight }
}

/// UDP to 192.0.2.1 from this port, with this much data.
fn flow(port: u16, ttl: u8, data: usize) -> Vec<u8> {
    let header = Ipv4Header {
        source: SOURCE.into(),
        destination: 0xc000_0201,
        protocol: 17,
        ttl,
        traffic_class: 0,
        id: port,
        payload_len: (8 + data) as u16,
    };
    let ethernet = ethernet_header(router_mac(1), host_mac(1), ethertype::IPV4);
    let [high, low] = port.to_be_bytes();
    [&ethernet[..], &header.bytes(), &[high, low, 0, 9, 0, 8, 0, 0], &vec![0; data]].concat()
}

/// An IPv6 packet of a flow, to 2001:db8::1, with this flow label.
fn flow_v6(port: u16, label: u8) -> Vec<u8> {
    let header = Ipv6Header {
        source: SOURCE_V6.into(),
        destination: 0x2001_0db8 << 96 | 1,
        next_header: 17,
        hop_limit: 64,
        payload_len: 8,
    };
    let mut header = header.bytes();
    header[3] = label;
    let ethernet = ethernet_header(router_mac(1), host_mac(1), ethertype::IPV6);
    let [high, low] = port.to_be_bytes();
    [&ethernet[..], &header, &[high, low, 0, 9, 0, 8, 0, 0]].concat()
}

/// A router that sends 192.0.2.0/24 and 2001:db8::/32 through the ports 2 and 3, weights 1 and 3.
fn rig() -> Rig {
    let mut rig = Rig::new();
    let way = |members: [Member; 2]| RouteHops::among(members).unwrap();
    rig.router.add_route_v4("192.0.2.0/24".parse().unwrap(), way([via(2, 1), via(3, 3)])).unwrap();
    rig.router.add_route_v6("2001:db8::/32".parse().unwrap(), way([via_v6(2, 1), via_v6(3, 3)])).unwrap();
    rig
}

/// The output ports of flows.
fn ways(rig: &mut Rig, flows: std::ops::Range<u16>) -> BTreeMap<u16, u16> {
    flows.map(|port| (port, rig.send(SECOND, 1, &flow(port, 64, 0))[0].out().0)).collect()
}

#[test]
fn flows_are_shared_out_by_weight_and_stay_where_they_are() {
    let mut rig = rig();
    let first = ways(&mut rig, 0..2000);
    let light = first.values().filter(|port| **port == 2).count();
    // Binomial with n = 2000, p = 1/4: 500, standard deviation 19.4; five of these.
    assert!((403..=597).contains(&light), "{light}");
    assert_eq!(first, ways(&mut rig, 0..2000));
    let v6 = |rig: &mut Rig, label| {
        (0..2000).filter(|&port| rig.send(SECOND, 1, &flow_v6(port, label))[0].out().0 == 2).count()
    };
    let light = v6(&mut rig, 0);
    assert!((403..=597).contains(&light), "{light}");
    assert!([0, 2000].contains(&v6(&mut rig, 7)), "one label, one flow");
    // Both have the MAC address of the next hop.
    let seen = rig.send(SECOND, 1, &flow(7, 64, 0));
    let (port, frame) = seen[0].out();
    assert_eq!(frame[..6], host_mac(port));
}

#[test]
fn a_change_of_next_hops_moves_few_flows() {
    let mut rig = rig();
    rig.router
        .add_route_v4(
            "192.0.2.0/24".parse().unwrap(),
            RouteHops::among([via(1, 1), via(2, 1), via(3, 1)]).unwrap(),
        )
        .unwrap();
    let three = ways(&mut rig, 0..3000);
    rig.router
        .add_route_v4("192.0.2.0/24".parse().unwrap(), RouteHops::among([via(1, 1), via(3, 1)]).unwrap())
        .unwrap();
    let two = ways(&mut rig, 0..3000);
    assert!(two.values().all(|port| *port != 2));
    // The middle one's flows go to the others, which keep their own.
    assert!(three.iter().all(|(flow, port)| *port == 2 || two[flow] == *port));
    rig.router.add_route_v4("192.0.2.0/24".parse().unwrap(), via(3, 1).hop).unwrap();
    assert!(ways(&mut rig, 0..100).values().all(|port| *port == 3));
    let route =
        rig.router.routes_v4().find(|(to, _)| to.bits() == 24 && to.address() == 0xc000_0200).unwrap();
    assert_eq!(route.1, RouteHops::One(via(3, 1).hop));
}

#[test]
fn full_ip_sends_a_flow_by_the_same_way() {
    let mut rig = rig();
    let regular = ways(&mut rig, 0..64);
    assert!(regular.values().any(|port| *port == 2) && regular.values().any(|port| *port == 3));
    for (&port, &way) in &regular {
        // Record route: handled by full IP.
        let mut frame = flow(port, 64, 0);
        frame.splice(34..34, [7, 7, 4, 0, 0, 0, 0, 0]);
        (frame[14], frame[17]) = (0x47, frame[17] + 8);
        frame[24..26].fill(0);
        let checksum = longwire_wire::checksum::Sum::ZERO.bytes(&frame[14..42]).checksum();
        frame[24..26].copy_from_slice(&checksum.to_be_bytes());
        assert_eq!(rig.send(u64::from(port) * SECOND, 1, &frame)[0].out().0, way, "flow {port}");
    }
    assert_eq!(rig.router.stats().exceptions, [(FullIpReason::Options.name(), 64)]);
}

#[test]
fn all_fragments_of_a_packet_go_the_same_way() {
    let mut rig = rig();
    let mut ways = BTreeMap::<u8, Vec<u16>>::new();
    for source in 2..66_u8 {
        // First, middle, last: offsets in units of eight bytes, and the more-fragments flag. Later ones have
        // data in place of ports.
        for (at, field) in [0x2000_u16, 0x2001, 0x0002].into_iter().enumerate() {
            let mut frame = flow(at as u16 * 1000, 64, 0);
            frame[29] = source;
            frame[20..22].copy_from_slice(&field.to_be_bytes());
            frame[24..26].fill(0);
            let checksum = longwire_wire::checksum::Sum::ZERO.bytes(&frame[14..34]).checksum();
            frame[24..26].copy_from_slice(&checksum.to_be_bytes());
            ways.entry(source).or_default().push(rig.send(SECOND, 1, &frame)[0].out().0);
        }
    }
    assert!(ways.values().all(|ways| ways.iter().all(|way| *way == ways[0])), "{ways:?}");
    assert!([2, 3].iter().all(|port| ways.values().any(|ways| ways[0] == *port)), "{ways:?}");
}

#[test]
fn next_hops_are_asked_for_and_errors_told_as_on_other_routes() {
    let mut rig = Rig::new();
    let strange =
        |port: u16| Member { hop: NextHop::via(port, IpAddr::from([10, 0, port as u8, 77])), weight: 1 };
    rig.router
        .add_route_v4("0.0.0.0/0".parse().unwrap(), RouteHops::among([strange(2), strange(3)]).unwrap())
        .unwrap();
    let mut asked = BTreeMap::new();
    for port in 0..16 {
        let seen = rig.send(SECOND, 1, &flow(port, 64, 0));
        assert_eq!(seen[0], Seen::Kept);
        for question in &seen[1..] {
            let (way, frame) = question.out();
            asked.insert(way, frame[38..42].to_vec());
        }
    }
    assert_eq!(asked, BTreeMap::from([(2, vec![10, 0, 2, 77]), (3, vec![10, 0, 3, 77])]));
    // An error for a sender behind several next hops takes one of them.
    let mut frame = flow(1, 1, 0);
    frame[26..30].copy_from_slice(&[198, 51, 100, 7]);
    frame[24..26].fill(0);
    let checksum = longwire_wire::checksum::Sum::ZERO.bytes(&frame[14..34]).checksum();
    frame[24..26].copy_from_slice(&checksum.to_be_bytes());
    assert_eq!(rig.send(SECOND, 1, &frame)[0], Seen::Dropped(DropReason::HopLimit));
    assert_eq!(rig.router.stats().errors, 1);
    rig.wait(100 * SECOND);
}

#[test]
fn what_can_not_be_is_refused() {
    let mut rig = rig();
    let foreign = RouteHops::among([via(2, 1), via(9, 1)]).unwrap();
    let refused = rig.router.add_route_v4("0.0.0.0/0".parse().unwrap(), foreign);
    assert_eq!(refused, Err(RouteError::ForeignPort { port: 9 }));
    let nowhere = Member { hop: NextHop::Discard, weight: 1 };
    assert_eq!(RouteHops::among([via(2, 1), nowhere]), Err(WayError::NoNeighbour));
    let (to, RouteHops::Several(group)) =
        rig.router.routes_v4().find(|(to, _)| to.bits() == 24 && to.address() == 0xc000_0200).unwrap()
    else {
        panic!("it leads to two")
    };
    assert_eq!((to.bits(), group.members()), (24, &[via(2, 1), via(3, 3)][..]));
}
