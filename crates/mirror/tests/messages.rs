//! Handmade, truncated and arbitrary messages of the kernel.

use longwire_mirror::{Change, Destination, KernelHop, KernelMember, KernelMessage, View, read};
use longwire_netlink::Malformed;
use longwire_router::{Confirmation, Member, NextHop, RouteHops};
use proptest::prelude::*;
use std::net::IpAddr;

/// (type, value) as an attribute, padded to four bytes.
fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = 4 + value.len() as u16;
    let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
    bytes.extend_from_slice(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// `struct rtmsg` of an IPv4 route, and attributes.
fn route_v4(prefix: u8, table: u8, kind: u8, attributes: &[(u16, &[u8])]) -> Vec<u8> {
    route(libc::AF_INET, prefix, table, kind, attributes)
}

/// `struct rtmsg` of a route of either family, and attributes.
fn route(family: libc::c_int, prefix: u8, table: u8, kind: u8, attributes: &[(u16, &[u8])]) -> Vec<u8> {
    let mut bytes = vec![family as u8, prefix, 0, 0, table, 0, 0, kind, 0, 0, 0, 0];
    attributes.iter().for_each(|(kind, value)| bytes.extend(attribute(*kind, value)));
    bytes
}

const MAIN: u8 = libc::RT_TABLE_MAIN;
const UNICAST: u8 = libc::RTN_UNICAST;
const THIRD: [u8; 4] = 3u32.to_ne_bytes();

fn told(body: &[u8]) -> Option<KernelMessage> {
    read(libc::RTM_NEWROUTE, 0, body).unwrap()
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn ip_bytes(text: &str) -> Vec<u8> {
    match ip(text) {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// A single next hop.
fn out_of(index: u32, gateway: Option<&str>) -> KernelHop {
    KernelHop::Via(vec![KernelMember { index, gateway: gateway.map(ip), weight: 1 }])
}

/// A view of a router whose ports 10 and 20 have the interfaces 3 and 4.
fn view() -> View {
    View::new([(3, 10), (4, 20)])
}

fn gateway(last: u8) -> [(u16, Vec<u8>); 3] {
    let to = (libc::RTA_DST, vec![10, 1, 0, 0]);
    [to, (libc::RTA_OIF, THIRD.to_vec()), (libc::RTA_GATEWAY, vec![10, 0, 0, last])]
}

fn via(last: u8, metric: u32) -> Vec<u8> {
    let list = gateway(last);
    let metric = metric.to_ne_bytes();
    let mut parts: Vec<(u16, &[u8])> = list.iter().map(|(kind, value)| (*kind, &value[..])).collect();
    parts.push((libc::RTA_PRIORITY, &metric));
    route_v4(16, MAIN, UNICAST, &parts)
}

/// The changes of the next hops for 10.1.0.0/16.
fn changes(view: &mut View) -> Vec<Option<RouteHops>> {
    let hop = |change| match change {
        Change::Route { to, way } if to.to_string() == "10.1.0.0/16" => Some(way),
        _ => None,
    };
    view.take_changes().into_iter().filter_map(hop).collect()
}

#[test]
fn routes_are_read() {
    let table: [(&str, Vec<u8>, Option<KernelHop>); 9] = [
        ("10.1.0.0/16", via(2, 0), Some(out_of(3, Some("10.0.0.2")))),
        ("0.0.0.0/0", route_v4(0, MAIN, UNICAST, &[(libc::RTA_OIF, &THIRD)]), Some(out_of(3, None))),
        (
            "10.0.0.1/32",
            route_v4(32, libc::RT_TABLE_LOCAL, libc::RTN_LOCAL, &[(libc::RTA_DST, &[10, 0, 0, 1])]),
            Some(KernelHop::Local),
        ),
        (
            "10.0.0.255/32",
            route_v4(32, libc::RT_TABLE_LOCAL, libc::RTN_BROADCAST, &[(libc::RTA_DST, &[10, 0, 0, 255])]),
            Some(KernelHop::Broadcast),
        ),
        (
            "10.2.0.0/16",
            route_v4(16, MAIN, libc::RTN_BLACKHOLE, &[(libc::RTA_DST, &[10, 2, 0, 0])]),
            Some(KernelHop::Discard),
        ),
        (
            "another table",
            route_v4(16, 100, UNICAST, &[(libc::RTA_DST, &[10, 2, 0, 0]), (libc::RTA_OIF, &THIRD)]),
            None,
        ),
        (
            "the loopback",
            route_v4(8, libc::RT_TABLE_LOCAL, libc::RTN_LOCAL, &[(libc::RTA_DST, &[127, 0, 0, 0])]),
            None,
        ),
        (
            "a group",
            route_v4(4, MAIN, UNICAST, &[(libc::RTA_DST, &[224, 0, 0, 0]), (libc::RTA_OIF, &THIRD)]),
            None,
        ),
        ("nowhere said", route_v4(16, MAIN, UNICAST, &[(libc::RTA_DST, &[10, 2, 0, 0])]), None),
    ];
    for (what, body, hop) in table {
        let read = told(&body).map(|told| match told {
            KernelMessage::Route { route, there: true, replaces: false } => {
                assert_eq!(route.to.to_string(), what);
                route.hop
            }
            other => panic!("{what}: {other:?}"),
        });
        assert_eq!(read, hop, "{what}");
    }
}

/// `struct rtnexthop`: length, flags, weight minus one, interface, and its gateway.
fn next_hop(flags: u8, weight: u8, index: u32, gateway: &str) -> Vec<u8> {
    let gateway = attribute(libc::RTA_GATEWAY, &ip_bytes(gateway));
    let length = 8 + gateway.len() as u16;
    [&length.to_ne_bytes()[..], &[flags, weight], &index.to_ne_bytes(), &gateway].concat()
}

#[test]
fn of_several_next_hops_all_count_that_are_not_dead() {
    let list =
        [next_hop(1, 0, 3, "10.0.0.2"), next_hop(0, 0, 9, "10.0.0.6"), next_hop(0, 255, 3, "10.0.0.7")]
            .concat();
    let body = route_v4(16, MAIN, UNICAST, &[(libc::RTA_DST, &[10, 1, 0, 0]), (libc::RTA_MULTIPATH, &list)]);
    let Some(KernelMessage::Route { route, .. }) = told(&body) else { panic!("no route") };
    let member = |index, last: u8, weight| KernelMember {
        index,
        gateway: Some(IpAddr::from([10, 0, 0, last])),
        weight,
    };
    assert_eq!(route.hop, KernelHop::Via(vec![member(9, 6, 1), member(3, 7, 256)]));
    // An interface without a port leads nowhere: the other next hop is left.
    let mut view = view();
    assert!(view.note(told(&body).unwrap()));
    assert_eq!(changes(&mut view), [Some(NextHop::via(10, ip("10.0.0.7")).into())]);
    let list = [next_hop(0, 1, 3, "10.0.0.6"), next_hop(0, 0, 3, "10.0.0.7")].concat();
    let body = route_v4(16, MAIN, UNICAST, &[(libc::RTA_DST, &[10, 1, 0, 0]), (libc::RTA_MULTIPATH, &list)]);
    assert!(view.note(read(libc::RTM_NEWROUTE, libc::NLM_F_REPLACE as u16, &body).unwrap().unwrap()));
    let several = |members: &[(&str, u16)]| {
        RouteHops::among(
            members.iter().map(|&(gateway, weight)| Member { hop: NextHop::via(10, ip(gateway)), weight }),
        )
        .unwrap()
    };
    assert_eq!(changes(&mut view), [Some(several(&[("10.0.0.6", 2), ("10.0.0.7", 1)]))]);
    // Another IPv4 route of the same metric may be before it or behind it: a dump says which.
    assert!(!view.note(told(&via(9, 0)).unwrap()));
    assert!(view.note(told(&via(9, 0)).unwrap()), "it is known");
    assert_eq!(changes(&mut view), [Some(several(&[("10.0.0.6", 2), ("10.0.0.7", 1)]))]);
    for length in [0u16, 7, 17, 200] {
        let mut broken = list.clone();
        broken[16..18].copy_from_slice(&length.to_ne_bytes());
        let body = route_v4(16, MAIN, UNICAST, &[(libc::RTA_MULTIPATH, &broken)]);
        assert_eq!(read(libc::RTM_NEWROUTE, 0, &body), Err(Malformed), "{length}");
    }
}

#[test]
fn routes_whose_next_hops_are_all_dead_are_left_out() {
    let mut single = via(2, 0);
    // `struct rtmsg`'s flags.
    single[8..12].copy_from_slice(&1u32.to_ne_bytes());
    let list = [next_hop(1, 0, 3, "10.0.0.2"), next_hop(17, 0, 4, "10.0.0.6")].concat();
    let several =
        route_v4(16, MAIN, UNICAST, &[(libc::RTA_DST, &[10, 1, 0, 0]), (libc::RTA_MULTIPATH, &list)]);
    for body in [&single, &several] {
        assert_eq!(told(body), None);
        let replaced = read(libc::RTM_NEWROUTE, libc::NLM_F_REPLACE as u16, body).unwrap();
        assert_eq!(replaced, Some(KernelMessage::RoutesUncertain));
        let mut view = view();
        let gone = || read(libc::RTM_DELROUTE, 0, body).unwrap().unwrap();
        assert!(view.note(gone()), "it was not known");
        assert!(view.note(told(&via(2, 0)).unwrap()));
        assert!(!view.note(gone()), "another may be meant");
    }
    // Without a carrier it is the only one used.
    single[8] = 16;
    let mut view = view();
    assert!(view.note(told(&single).unwrap()));
    assert_eq!(changes(&mut view), [Some(NextHop::via(10, ip("10.0.0.2")).into())]);
}

#[test]
fn ipv6_next_hops_come_and_go_alone_and_share_flows() {
    let to = (libc::RTA_DST, ip_bytes("2001:db8::"));
    let body = |parts: &[(u16, Vec<u8>)]| {
        let parts: Vec<(u16, &[u8])> = parts.iter().map(|(kind, value)| (*kind, &value[..])).collect();
        route(libc::AF_INET6, 32, MAIN, UNICAST, &parts)
    };
    let alone = |last: &str, metric: u32| {
        let (gateway, port) = ((libc::RTA_GATEWAY, ip_bytes(last)), (libc::RTA_OIF, THIRD.to_vec()));
        body(&[to.clone(), port, gateway, (libc::RTA_PRIORITY, metric.to_ne_bytes().to_vec())])
    };
    let together = |list: &[Vec<u8>], metric: u32| {
        let list = (libc::RTA_MULTIPATH, list.concat());
        body(&[to.clone(), list, (libc::RTA_PRIORITY, metric.to_ne_bytes().to_vec())])
    };
    let (a, b, c) = ("fe80::a", "fe80::b", "fe80::c");
    let way = |members: &[(&str, u16)]| {
        RouteHops::among(
            members.iter().map(|&(gateway, weight)| Member { hop: NextHop::via(10, ip(gateway)), weight }),
        )
        .ok()
    };
    let mut view = view();
    let mut note = |kind: u16, flags: i32, body: &[u8]| {
        let sound = view.note(read(kind, flags as u16, body).unwrap().unwrap());
        let mut ways = view.take_changes().into_iter().map(|change| match change {
            Change::Route { way, .. } => way,
            other => panic!("{other:?}"),
        });
        (sound, ways.next().unwrap())
    };
    let (new, gone) = (libc::RTM_NEWROUTE, libc::RTM_DELROUTE);
    let both = together(&[next_hop(0, 2, 3, a), next_hop(0, 0, 3, b)], 1024);
    assert_eq!(note(new, 0, &both), (true, way(&[(a, 3), (b, 1)])));
    // One is appended: the kernel reports all.
    let all = together(&[next_hop(0, 2, 3, a), next_hop(0, 0, 3, b), next_hop(0, 0, 3, c)], 1024);
    assert_eq!(note(new, libc::NLM_F_APPEND, &all), (true, way(&[(a, 3), (b, 1), (c, 1)])));
    // Another metric makes another route.
    assert_eq!(note(new, 0, &alone("fe80::d", 2048)), (true, way(&[(a, 3), (b, 1), (c, 1)])));
    assert_eq!(note(gone, 0, &alone(a, 1024)), (true, way(&[(b, 1), (c, 1)])));
    assert_eq!(note(gone, 0, &alone(a, 1024)), (false, way(&[(b, 1), (c, 1)])), "it is not known");
    assert_eq!(note(new, libc::NLM_F_REPLACE, &alone(a, 1024)), (true, way(&[(a, 1)])));
    assert_eq!(
        note(new, libc::NLM_F_APPEND, &together(&[next_hop(0, 0, 3, a), next_hop(0, 0, 3, b)], 1024)),
        (true, way(&[(a, 1), (b, 1)]))
    );
    assert_eq!(
        note(gone, 0, &together(&[next_hop(0, 0, 3, a), next_hop(0, 0, 3, b)], 1024)),
        (true, way(&[("fe80::d", 1)]))
    );
}

#[test]
fn what_can_not_be_is_malformed() {
    for (what, kind, body) in [
        ("a prefix of 33", libc::RTM_NEWROUTE, route_v4(33, MAIN, UNICAST, &[])),
        (
            "an address of 5 bytes",
            libc::RTM_NEWROUTE,
            route_v4(8, MAIN, UNICAST, &[(libc::RTA_DST, &[1; 5])]),
        ),
        (
            "an interface of 2 bytes",
            libc::RTM_NEWROUTE,
            route_v4(8, MAIN, UNICAST, &[(libc::RTA_OIF, &[1; 2])]),
        ),
        ("half a link", libc::RTM_NEWLINK, vec![0; 15]),
        ("no address", libc::RTM_NEWADDR, vec![libc::AF_INET as u8, 24, 0, 0, 3, 0, 0, 0]),
        ("a neighbour of no address", libc::RTM_NEWNEIGH, [vec![libc::AF_INET as u8], vec![0; 11]].concat()),
    ] {
        assert_eq!(read(kind, 0, &body), Err(Malformed), "{what}");
        assert_eq!(read(9999, 0, &body), Ok(None), "{what}, of a type that is not known");
    }
}

#[test]
fn of_routes_to_one_network_the_lowest_metric_counts() {
    let mut view = view();
    let hop = |last: u8| Some(RouteHops::One(NextHop::via(10, IpAddr::from([10, 0, 0, last]))));
    let mut note = |kind: u16, flags: i32, body: &[u8]| {
        let sound = read(kind, flags as u16, body).unwrap().is_none_or(|told| view.note(told));
        (sound, changes(&mut view))
    };
    let (new, gone) = (libc::RTM_NEWROUTE, libc::RTM_DELROUTE);
    assert_eq!(note(new, 0, &via(2, 20)), (true, vec![hop(2)]));
    assert_eq!(note(new, 0, &via(3, 10)), (true, vec![hop(3)]));
    assert_eq!(note(new, libc::NLM_F_REPLACE, &via(4, 10)), (true, vec![hop(4)]));
    assert_eq!(note(gone, 0, &via(4, 10)), (true, vec![hop(2)]));
    // An unknown one, beside one of the same metric: a dump is needed.
    assert_eq!(note(gone, 0, &via(9, 20)), (false, vec![hop(2)]));
    assert_eq!(note(gone, 0, &via(2, 20)), (true, vec![None]));
}

/// The kernel uses the first of them, and replaces only that.
#[test]
fn a_dump_says_which_of_several_ipv4_routes_of_one_metric_is_the_first() {
    let mut view = view();
    let hop = |last: u8| Some(RouteHops::One(NextHop::via(10, IpAddr::from([10, 0, 0, last]))));
    let note = |view: &mut View, kind: u16, flags: i32, last: u8| {
        let sound = view.note_if(read(kind, flags as u16, &via(last, 10)).unwrap());
        (sound, changes(view))
    };
    let (new, gone) = (libc::RTM_NEWROUTE, libc::RTM_DELROUTE);
    assert_eq!(note(&mut view, new, 0, 2), (true, vec![hop(2)]));
    assert!(!note(&mut view, new, libc::NLM_F_APPEND, 3).0, "before or behind the other one");
    assert!(!note(&mut view, new, libc::NLM_F_REPLACE, 4).0, "instead of one of two");
    view.forget();
    for last in [4, 3] {
        note(&mut view, new, 0, last);
    }
    assert_eq!(view.way(&Destination::new(ip("10.1.0.0"), 16).unwrap()), hop(4));
    assert_eq!(note(&mut view, gone, 0, 4), (true, vec![hop(3)]));
}

#[test]
fn an_interface_that_is_none_of_the_ports_leads_nowhere() {
    let mut view = view();
    let body =
        route_v4(16, MAIN, UNICAST, &[(libc::RTA_DST, &[10, 1, 0, 0]), (libc::RTA_OIF, &9u32.to_ne_bytes())]);
    assert!(view.note(told(&body).unwrap()));
    assert_eq!(changes(&mut view), [Some(NextHop::Discard.into())]);
}

#[test]
fn links_addresses_and_neighbours_become_changes_of_ports() {
    let mut view = view();
    let link = |flags: u32| [&[0; 4][..], &THIRD, &flags.to_ne_bytes(), &[0; 4]].concat();
    let up = read(libc::RTM_NEWLINK, 0, &link(libc::IFF_UP as u32)).unwrap().unwrap();
    assert!(view.note(up.clone()) && view.note(up));
    assert_eq!(view.take_changes(), [Change::Up { port: 10, up: true }]);
    // (flags, whether it is up, whether no dump is needed): IPv4 routes and next hops come and go with it
    // without messages.
    let (set_up, running, lower_up) = (libc::IFF_UP as u32, libc::IFF_RUNNING as u32, 1 << 16);
    for (flags, up, sound) in [
        (0, false, false),
        (0, false, true),
        (set_up, true, false),
        (set_up | running | lower_up, true, false),
        (set_up | lower_up, true, true),
        (set_up, true, false),
    ] {
        assert_eq!(
            view.note(read(libc::RTM_NEWLINK, 0, &link(flags)).unwrap().unwrap()),
            sound,
            "{flags:#x}"
        );
        assert_eq!(view.take_changes(), [Change::Up { port: 10, up }], "{flags:#x}");
    }

    let header = [&[libc::AF_INET as u8, 24, 0, 0][..], &THIRD].concat();
    let own = [header, attribute(libc::IFA_LOCAL, &[10, 0, 0, 1])].concat();
    assert!(view.note(read(libc::RTM_NEWADDR, 0, &own).unwrap().unwrap()));
    assert!(matches!(&view.take_changes()[..], [Change::Addresses { port: 10, v4,
            v6 }] if v4[0].len == 24 && v6.is_empty()));
    assert!(!view.note(read(libc::RTM_DELADDR, 0, &own).unwrap().unwrap()));

    let neighbour = |state: u16| {
        let header = [&[libc::AF_INET as u8, 0, 0, 0][..], &THIRD, &state.to_ne_bytes(), &[0; 2]].concat();
        [header, attribute(libc::NDA_DST, &[10, 0, 0, 2]), attribute(libc::NDA_LLADDR, &[2, 0, 0, 0, 0, 9])]
            .concat()
    };
    let _ = view.take_changes();
    let mac = [2, 0, 0, 0, 0, 9];
    // (type, state, update of the router): idle neighbours that the kernel forgets stay in the router.
    for (kind, state, expected) in [
        (libc::RTM_NEWNEIGH, libc::NUD_REACHABLE, Some(Some((mac, Confirmation::Answered)))),
        (libc::RTM_NEWNEIGH, libc::NUD_REACHABLE, None),
        (libc::RTM_NEWNEIGH, libc::NUD_STALE, Some(Some((mac, Confirmation::Doubtful)))),
        (libc::RTM_DELNEIGH, libc::NUD_STALE, None),
        (libc::RTM_NEWNEIGH, libc::NUD_PERMANENT, Some(Some((mac, Confirmation::Permanent)))),
        (libc::RTM_DELNEIGH, libc::NUD_PERMANENT, Some(None)),
        (libc::RTM_NEWNEIGH, libc::NUD_NOARP, None),
    ] {
        assert!(view.note_if(read(kind, 0, &neighbour(state)).unwrap()));
        let said = view.take_changes().into_iter().map(|change| match change {
            Change::Neighbour { port: 10, mac, .. } => mac,
            other => panic!("{other:?}"),
        });
        assert_eq!(said.collect::<Vec<_>>(), expected.into_iter().collect::<Vec<_>>(), "{kind} {state}");
    }
}

trait NoteIf {
    fn note_if(&mut self, told: Option<KernelMessage>) -> bool;
}

impl NoteIf for View {
    fn note_if(&mut self, told: Option<KernelMessage>) -> bool {
        told.is_none_or(|told| self.note(told))
    }
}

proptest! {
    #[test]
    fn messages_made_of_anything_do_no_harm(
        messages in prop::collection::vec((16u16..110, any::<u16>(),
            prop::collection::vec(any::<u8>(), 0..120)), 1..20)
    ) {
        let mut view = view();
        for (kind, flags, body) in messages {
            if let Ok(told) = read(kind, flags, &body) {
                view.note_if(told);
            }
        }
        for change in view.take_changes() {
            if let Change::Addresses { v4, v6, .. } = change {
                prop_assert!(v4.len() <= 64 && v6.len() <= 64);
            }
        }
    }

    #[test]
    fn good_messages_with_bytes_changed_or_cut_do_no_harm(
        at in 0usize..44, byte in any::<u8>(), length in 0usize..=44
    ) {
        let mut body = via(2, 10);
        body[at] = byte;
        body.truncate(length);
        if let Ok(told) = read(libc::RTM_NEWROUTE, 0, &body) {
            view().note_if(told);
        }
    }
}
