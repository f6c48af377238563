//! `netlink-packet-route` parses this crate's messages, writes messages that this crate parses, and parses
//! the kernel's messages for comparison.

use longwire_netlink::{
    Address, Hop, Link, LinkSettings, Message, Neighbour, Route, Socket, address, link, neighbour, route,
    split_reply,
};
use netlink_packet_core::{NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteNextHop, RouteNextHopFlags,
    RouteProtocol, RouteScope, RouteType, RouteVia,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd};

/// This crate's message as parsed by the oracle, and its flags.
fn theirs(mut m: Message) -> (RouteNetlinkMessage, i32) {
    let bytes = m.finish(7);
    let read = NetlinkMessage::<RouteNetlinkMessage>::deserialize(bytes).unwrap();
    assert_eq!((read.header.sequence_number, read.header.length as usize), (7, bytes.len()));
    let flags = read.header.flags.into();
    match read.payload {
        NetlinkPayload::InnerMessage(message) => (message, flags),
        other => panic!("{other:?}"),
    }
}

/// Type and body of a message written by the oracle.
fn ours(message: RouteNetlinkMessage) -> (u16, Vec<u8>) {
    let mut message = NetlinkMessage::new(NetlinkHeader::default(), NetlinkPayload::from(message));
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    let (reply, rest) = split_reply(&bytes).unwrap();
    assert!(rest.is_empty());
    (reply.kind, reply.body.to_vec())
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn family(address: IpAddr) -> AddressFamily {
    if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 }
}

const NEW: i32 = libc::NLM_F_REQUEST | libc::NLM_F_CREATE | libc::NLM_F_EXCL;

#[test]
fn links_are_written() {
    let file = std::fs::File::open("/proc/self/ns/net").unwrap();
    let near =
        LinkSettings { name: Some("near"), mtu: Some(9000), group: Some(5), up: true, ..Default::default() };
    let far = LinkSettings {
        name: Some("far"),
        mac: Some([2, 0, 0, 0, 0, 9]),
        namespace: Some(file.as_fd()),
        ..Default::default()
    };
    let (RouteNetlinkMessage::NewLink(pair), NEW) = theirs(link::new_veth(&near, &far)) else { panic!() };
    let [.., LinkAttribute::LinkInfo(info)] = &pair.attributes[..] else { panic!("{pair:?}") };
    let [LinkInfo::Kind(InfoKind::Veth), LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(peer)))] = &info[..]
    else {
        panic!("{info:?}")
    };
    assert_eq!((pair.header.flags, pair.header.change_mask), (LinkFlags::Up, LinkFlags::Up));
    assert_eq!(
        pair.attributes[..3],
        [LinkAttribute::IfName("near".into()), LinkAttribute::Mtu(9000), LinkAttribute::Group(5)]
    );
    assert_eq!((peer.header.flags, peer.header.change_mask), (LinkFlags::empty(), LinkFlags::empty()));
    assert_eq!(
        peer.attributes,
        [
            LinkAttribute::IfName("far".into()),
            LinkAttribute::Address(vec![2, 0, 0, 0, 0, 9]),
            LinkAttribute::NetNsFd(file.as_raw_fd()),
        ]
    );

    let settings = LinkSettings { queue_length: Some(10), carrier: Some(true), ..Default::default() };
    let (RouteNetlinkMessage::NewLink(change), libc::NLM_F_REQUEST) = theirs(link::change(3, &settings))
    else {
        panic!()
    };
    assert_eq!((change.header.index, change.header.change_mask), (3, LinkFlags::empty()));
    assert_eq!(change.attributes, [LinkAttribute::Carrier(1), LinkAttribute::TxQueueLen(10)]);

    let (RouteNetlinkMessage::DelLink(one), _) = theirs(link::delete(4)) else { panic!() };
    assert_eq!((one.header.index, one.attributes), (4, vec![]));
    let (RouteNetlinkMessage::DelLink(group), _) = theirs(link::delete_group(5)) else { panic!() };
    assert_eq!((group.header.index, group.attributes), (0, vec![LinkAttribute::Group(5)]));
    let (RouteNetlinkMessage::GetLink(asked), _) = theirs(link::ask(6)) else { panic!() };
    assert_eq!(asked.header.index, 6);
}

#[test]
fn links_are_read() {
    let mut message = LinkMessage::default();
    message.header.index = 3;
    message.header.flags = LinkFlags::Up | LinkFlags::LowerUp;
    message.attributes = vec![
        LinkAttribute::IfName("near".into()),
        LinkAttribute::Link(77),
        LinkAttribute::NumTxQueues(3),
        LinkAttribute::NumRxQueues(4),
        LinkAttribute::LinkNetNsId(0),
    ];
    let (kind, body) = ours(RouteNetlinkMessage::NewLink(message.clone()));
    let read = Link::read(&body).unwrap().unwrap();
    assert_eq!((kind, read.index, read.peer, read.peer_is_elsewhere), (libc::RTM_NEWLINK, 3, 77, true));
    assert_eq!((read.receive_queues, read.transmit_queues), (4, 3));
    assert!(read.is_up() && read.has_carrier());

    message.header.flags = LinkFlags::Promisc;
    let read = Link::read(&ours(RouteNetlinkMessage::NewLink(message.clone())).1).unwrap().unwrap();
    assert!(!read.is_up() && !read.has_carrier());
    message.header.interface_family = AddressFamily::Bridge;
    assert_eq!(Link::read(&ours(RouteNetlinkMessage::NewLink(message)).1), Ok(None));
}

#[test]
fn addresses_are_written_and_read() {
    for (text, prefix) in [("10.0.0.1", 24), ("2001:db8::1", 64)] {
        let own = Address { index: 3, address: ip(text), prefix };
        let (RouteNetlinkMessage::NewAddress(written), NEW) = theirs(address::add(&own)) else { panic!() };
        assert_eq!((written.header.index, written.header.prefix_len), (3, prefix));
        assert_eq!(
            (written.header.family, written.header.flags),
            (family(ip(text)), AddressHeaderFlags::Nodad)
        );
        assert_eq!(
            written.attributes,
            [AddressAttribute::Local(ip(text)), AddressAttribute::Address(ip(text))]
        );
        assert_eq!(Address::read(&ours(RouteNetlinkMessage::NewAddress(written)).1), Ok(Some(own)));
    }
    let mut between = AddressMessage::default();
    (between.header.family, between.header.prefix_len) = (AddressFamily::Inet, 32);
    between.attributes =
        vec![AddressAttribute::Address(ip("10.0.0.2")), AddressAttribute::Local(ip("10.0.0.1"))];
    let read = Address::read(&ours(RouteNetlinkMessage::NewAddress(between)).1).unwrap().unwrap();
    assert_eq!(read.address, ip("10.0.0.1"));
}

#[test]
fn routes_are_written_and_read() {
    let hop = |index, gateway: &str| Hop::new(index, Some(ip(gateway)));
    let on_link = |hop| Hop { is_on_link: true, ..hop };
    let weighed = |hop, weight| Hop { weight, ..hop };
    let metric = |route, metric| Route { metric: Some(metric), ..route };
    let table = |route, table| Route { table, ..route };
    let (v4, v6) = (ip("10.1.0.0"), ip("2001:db8::"));
    let (gateway, several) = (on_link(hop(3, "10.0.0.2")), weighed(hop(4, "10.0.0.6"), 256));
    let v6_several = vec![on_link(hop(3, "fe80::a")), weighed(hop(4, "fe80::b"), 3)];
    for route in [
        Route::new(v4, 16, vec![hop(3, "10.0.0.2")]),
        Route::new(v4, 16, vec![gateway]),
        Route::new(v4, 16, vec![gateway, several, Hop::new(5, None)]),
        Route::new(v4, 16, vec![Hop::new(3, None)]),
        Route::new(v4, 16, vec![]),
        Route::new(ip("0.0.0.0"), 0, vec![gateway]),
        metric(Route::new(v6, 32, vec![hop(3, "fe80::a")]), 1024),
        table(Route::new(v6, 32, v6_several), 1000),
    ] {
        let (RouteNetlinkMessage::NewRoute(mut written), NEW) = theirs(route::add(&route)) else { panic!() };
        assert_eq!(written.header.address_family, family(route.to));
        assert_eq!(written.header.protocol, RouteProtocol::Static);
        assert_eq!(written.header.kind, RouteType::from(route.kind));
        let is_link = matches!(&route.hops[..], [Hop { gateway: None, .. }]);
        assert_eq!(written.header.scope, if is_link { RouteScope::Link } else { RouteScope::Universe });
        check_route(&route, &written);
        assert_eq!(
            Route::read(&ours(RouteNetlinkMessage::NewRoute(written.clone())).1),
            Ok(Some(route.clone()))
        );
        // The kernel also puts small table numbers into the header.
        written.header.table = u8::try_from(route.table).unwrap_or(RouteHeader::RT_TABLE_UNSPEC);
        assert_eq!(Route::read(&ours(RouteNetlinkMessage::NewRoute(written)).1), Ok(Some(route)));
    }
}

#[test]
fn routes_that_only_the_kernel_makes_are_read() {
    let mut next_hop = RouteNextHop::default();
    (next_hop.flags, next_hop.interface_index) = (RouteNextHopFlags::Dead | RouteNextHopFlags::Linkdown, 3);
    let RouteAddress::Inet6(via) = ip("fe80::a").into() else { panic!() };
    next_hop.attributes = vec![RouteAttribute::Via(RouteVia::Inet6(via))];
    let mut message = RouteMessage::default();
    message.header.address_family = AddressFamily::Inet;
    message.header.source_prefix_length = 8;
    message.header.tos = 4;
    message.header.table = libc::RT_TABLE_LOCAL;
    message.header.kind = RouteType::Local;
    message.header.flags = RouteFlags::Cloned;
    message.attributes = vec![RouteAttribute::MultiPath(vec![next_hop])];
    let hop = Hop { is_dead: true, ..Hop::new(3, Some(ip("fe80::a"))) };
    let route = Route {
        source_prefix: 8,
        tos: 4,
        table: libc::RT_TABLE_LOCAL.into(),
        kind: libc::RTN_LOCAL,
        is_cloned: true,
        ..Route::new(ip("0.0.0.0"), 0, vec![hop])
    };
    assert_eq!(Route::read(&ours(RouteNetlinkMessage::NewRoute(message.clone())).1), Ok(Some(route.clone())));

    message.header.flags |= RouteFlags::Dead;
    message.attributes = vec![RouteAttribute::Oif(3), RouteAttribute::Via(RouteVia::Inet6(via))];
    assert_eq!(Route::read(&ours(RouteNetlinkMessage::NewRoute(message)).1), Ok(Some(route)));
}

#[test]
fn neighbours_are_written_and_read() {
    for (text, mac) in [("10.0.0.2", Some([2, 0, 0, 0, 0, 9])), ("fe80::2", None)] {
        let known = Neighbour { index: 3, address: ip(text), mac, state: libc::NUD_PERMANENT };
        let (RouteNetlinkMessage::NewNeighbour(written), flags) = theirs(neighbour::set(&known)) else {
            panic!()
        };
        assert_eq!(flags, libc::NLM_F_REQUEST | libc::NLM_F_CREATE | libc::NLM_F_REPLACE);
        assert_eq!((written.header.ifindex, written.header.family), (3, family(ip(text))));
        assert_eq!(
            (written.header.state, written.header.kind),
            (NeighbourState::Permanent, RouteType::Unicast)
        );
        check_neighbour(&known, &written);
        assert_eq!(Neighbour::read(&ours(RouteNetlinkMessage::NewNeighbour(written)).1), Ok(Some(known)));
    }
}

#[test]
fn both_read_the_kernels_own_messages_alike() {
    let socket = Socket::route().unwrap();
    let (mut links, mut addresses, mut routes) = (0, 0, 0);
    for listing in [link::list(), address::list(), route::list(), neighbour::list()] {
        let alike = |kind, body: &[u8]| match again(kind, body) {
            RouteNetlinkMessage::NewLink(theirs) => {
                let ours = Link::read(body).unwrap().unwrap();
                links += 1;
                assert_eq!(
                    (ours.index, ours.is_up()),
                    (theirs.header.index, theirs.header.flags.contains(LinkFlags::Up))
                );
                for attribute in &theirs.attributes {
                    match attribute {
                        LinkAttribute::Link(peer) => assert_eq!(ours.peer, *peer),
                        LinkAttribute::LinkNetNsId(_) => assert!(ours.peer_is_elsewhere),
                        LinkAttribute::NumRxQueues(queues) => assert_eq!(ours.receive_queues, *queues),
                        LinkAttribute::NumTxQueues(queues) => assert_eq!(ours.transmit_queues, *queues),
                        _ => {}
                    }
                }
            }
            RouteNetlinkMessage::NewAddress(theirs) => {
                let ours = Address::read(body).unwrap().unwrap();
                addresses += 1;
                assert_eq!((ours.index, ours.prefix), (theirs.header.index, theirs.header.prefix_len));
                assert!(theirs.attributes.iter().any(|attribute| match attribute {
                    AddressAttribute::Local(own) | AddressAttribute::Address(own) => *own == ours.address,
                    _ => false,
                }));
            }
            RouteNetlinkMessage::NewRoute(theirs) => {
                let Some(ours) = Route::read(body).unwrap() else { return };
                routes += 1;
                assert_eq!(theirs.header.kind, RouteType::from(ours.kind));
                check_route(&ours, &theirs);
            }
            RouteNetlinkMessage::NewNeighbour(theirs) => {
                let Some(ours) = Neighbour::read(body).unwrap() else { return };
                assert_eq!(u16::from(theirs.header.state), ours.state);
                check_neighbour(&ours, &theirs);
            }
            other => panic!("{other:?}"),
        };
        socket.dump(listing, alike).unwrap();
    }
    // Every namespace has a loopback interface; if it is up, it has an address and a route.
    assert!(links > 0 && (addresses > 0) == (routes > 0), "{links} {addresses} {routes}");
}

/// A kernel message as parsed by the oracle.
fn again(kind: u16, body: &[u8]) -> RouteNetlinkMessage {
    let mut m = Message::new(kind, 0);
    m.bytes(body);
    theirs(m).0
}

fn check_route(ours: &Route, theirs: &RouteMessage) {
    let header = &theirs.header;
    assert_eq!(
        (header.destination_prefix_length, header.source_prefix_length),
        (ours.prefix, ours.source_prefix)
    );
    assert_eq!((header.tos, header.flags.contains(RouteFlags::Cloned)), (ours.tos, ours.is_cloned));
    let is_several = theirs.attributes.iter().any(|a| matches!(a, RouteAttribute::MultiPath(_)));
    for attribute in &theirs.attributes {
        match (attribute, &ours.hops[..]) {
            (RouteAttribute::Destination(to), _) => assert_eq!(*to, ours.to.into()),
            (RouteAttribute::Priority(metric), _) => assert_eq!(Some(*metric), ours.metric),
            (RouteAttribute::Table(table), _) => assert_eq!(*table, ours.table),
            (RouteAttribute::Oif(index), [hop]) if !is_several => assert_eq!(*index, hop.index),
            (RouteAttribute::Gateway(via), [hop]) if !is_several => {
                assert_eq!(hop.gateway.map(RouteAddress::from).as_ref(), Some(via));
                assert_eq!(hop.is_on_link, header.flags.contains(RouteFlags::Onlink));
            }
            (RouteAttribute::MultiPath(list), hops) => {
                assert_eq!(list.len(), hops.len());
                list.iter().zip(hops).for_each(|(theirs, ours)| check_hop(ours, theirs));
            }
            (RouteAttribute::Oif(_) | RouteAttribute::Gateway(_), []) => panic!("{ours:?} {theirs:?}"),
            _ => {}
        }
    }
}

fn check_hop(ours: &Hop, theirs: &RouteNextHop) {
    assert_eq!((theirs.interface_index, u16::from(theirs.hops) + 1), (ours.index, ours.weight));
    assert_eq!(theirs.flags.contains(RouteNextHopFlags::Onlink), ours.is_on_link);
    let gateway = theirs.attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::Gateway(via) => Some(via.clone()),
        _ => None,
    });
    assert_eq!(gateway, ours.gateway.map(RouteAddress::from));
}

fn check_neighbour(ours: &Neighbour, theirs: &NeighbourMessage) {
    assert_eq!(theirs.header.ifindex, ours.index);
    for attribute in &theirs.attributes {
        match attribute {
            NeighbourAttribute::Destination(address) => {
                let ours = match ours.address {
                    IpAddr::V4(address) => NeighbourAddress::Inet(address),
                    IpAddr::V6(address) => NeighbourAddress::Inet6(address),
                };
                assert_eq!(*address, ours);
            }
            NeighbourAttribute::LinkLayerAddress(mac) => {
                assert_eq!(ours.mac.map(Vec::from), Some(mac.clone()).filter(|mac| mac.len() == 6));
            }
            _ => {}
        }
    }
}
