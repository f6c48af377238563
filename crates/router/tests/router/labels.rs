//! Another classifier replaces IP's: the MPLS example, with label swapping.

#[path = "../../examples/mpls/labels.rs"]
mod mpls;

use crate::rig::{Rig, Seen, config, host_mac, router_mac};
use longwire_block::DropReason;
use longwire_router::{NextHop, Router};
use mpls::{Labels, MPLS, swap};
use std::net::IpAddr;

fn labelled(label: u32, hops: u32) -> Vec<u8> {
    let entry = (label << 12 | 0x100 | hops).to_be_bytes();
    [&router_mac(1)[..], &host_mac(1), &MPLS, &entry, &[7; 42]].concat()
}

#[test]
fn labels_are_switched_and_ip_is_forwarded() {
    let mut router = Router::with_classifier(config(), Labels::default()).unwrap();
    router.set_neighbour(2, IpAddr::from([10, 0, 2, 9]), host_mac(2));
    swap(&mut router, 100, 200, NextHop::via(2, IpAddr::from([10, 0, 2, 9]))).unwrap();
    swap(&mut router, 101, 201, NextHop::via(3, IpAddr::from([10, 0, 3, 9]))).unwrap();
    // Reserved labels, and those of more than 20 bits, never match.
    for (label, becomes) in [(3, 200), (100, 3), (1 << 20, 200)] {
        swap(&mut router, label, becomes, NextHop::via(3, IpAddr::from([10, 0, 3, 9]))).unwrap();
    }
    assert!(swap(&mut router, 102, 202, NextHop::via(9, IpAddr::from([10, 0, 3, 9]))).is_err());
    let mut rig = Rig::with(router);
    let seen = rig.send(1, 1, &labelled(100, 64));
    let expected = [&host_mac(2)[..], &router_mac(2), &labelled(200, 63)[12..]].concat();
    assert_eq!(seen, [Seen::Out(2, expected)]);
    assert_eq!(rig.send(2, 1, &labelled(102, 64)), [Seen::Dropped(DropReason::NoRoute)]);
    assert_eq!(rig.send(3, 1, &labelled(100, 1)), [Seen::Dropped(DropReason::HopLimit)]);
    let mut others = labelled(100, 64);
    others[5] ^= 1;
    assert_eq!(rig.send(3, 1, &others), [Seen::Dropped(DropReason::OtherStation)]);
    assert_eq!(rig.send(3, 1, &labelled(3, 64)), [Seen::Dropped(DropReason::NoRoute)]);
    assert_eq!(rig.send(3, 1, &labelled(100, 64)[..17]), [Seen::Dropped(DropReason::BadFrame)]);
    // A packet whose next hop is being resolved waits unchanged.
    let seen = rig.send(4, 1, &labelled(101, 64));
    assert_eq!((&seen[0], seen.len()), (&Seen::Kept, 2));
    let answer = longwire_wire::arp_message(2, (host_mac(3), 0x0a00_0309), (router_mac(3), 0x0a00_0301));
    let answer = [&longwire_wire::ethernet_header(router_mac(3), host_mac(3), 0x0806)[..], &answer].concat();
    let expected = [&host_mac(3)[..], &router_mac(3), &labelled(201, 63)[12..]].concat();
    assert_eq!(rig.send(5, 3, &answer), [Seen::Consumed, Seen::Out(3, expected)]);
    let mut ip = longwire_wire::ethernet_header(router_mac(1), host_mac(1), 0x0800).to_vec();
    let header = longwire_wire::Ipv4Header {
        source: 0x0a00_0109,
        destination: 0x0a00_0209,
        protocol: 17,
        ttl: 9,
        traffic_class: 0,
        id: 0,
        payload_len: 0,
    };
    ip.extend(header.bytes());
    assert_eq!(rig.send(6, 1, &ip)[0].out().0, 2);
}
