//! Another classifier takes the place of IP's: MPLS labels (RFC 3031, RFC 3032), which are swapped on the way.

use crate::rig::{Rig, Seen, config, host_mac, router_mac};
use longwire_block::DropReason;
use longwire_packet::Meta;
use longwire_router::prefix::HopId;
use longwire_router::{Class, Classify, IpClassifier, NextHop, Router, RouterPort};
use std::collections::BTreeMap;
use std::net::IpAddr;

const MPLS: [u8; 2] = [0x88, 0x47];

/// Labels with what they become and where they go; all else is as IP sees it.
#[derive(Default)]
struct Labels {
    known: BTreeMap<u32, (u32, HopId)>,
    ip: IpClassifier,
}

impl Classify for Labels {
    fn classify(&mut self, port: &RouterPort, meta: &Meta, frame: &mut [u8]) -> Class {
        if frame.get(12..14) != Some(&MPLS[..]) {
            return self.ip.classify(port, meta, frame);
        }
        let Some(entry) = frame.get_mut(14..18) else { return Class::Dropped(DropReason::BadFrame) };
        let word = u32::from_be_bytes([entry[0], entry[1], entry[2], entry[3]]);
        let (label, rest, hops) = (word >> 12, word & 0xf00, word & 0xff);
        if hops <= 1 {
            return Class::Dropped(DropReason::HopLimit);
        }
        let Some(&(becomes, hop)) = self.known.get(&label) else {
            return Class::Dropped(DropReason::NoRoute);
        };
        entry.copy_from_slice(&(becomes << 12 | rest | (hops - 1)).to_be_bytes());
        Class::Switched { hop }
    }
}

fn labelled(label: u32, hops: u32) -> Vec<u8> {
    let entry = (label << 12 | 0x100 | hops).to_be_bytes();
    [&router_mac(1)[..], &host_mac(1), &MPLS, &entry, &[7; 42]].concat()
}

#[test]
fn labels_are_switched_and_ip_is_forwarded() {
    let mut router = Router::with_classifier(config(), Labels::default()).unwrap();
    router.set_neighbour(2, IpAddr::from([10, 0, 2, 9]), host_mac(2));
    let known = router.number_of(NextHop::via(2, IpAddr::from([10, 0, 2, 9]))).unwrap();
    let unknown = router.number_of(NextHop::via(3, IpAddr::from([10, 0, 3, 9]))).unwrap();
    router.classifier_mut().known = BTreeMap::from([(100, (200, known)), (101, (201, unknown))]);
    let mut rig = Rig::with(router);
    let seen = rig.send(1, 1, &labelled(100, 64));
    let expected = [&host_mac(2)[..], &router_mac(2), &labelled(200, 63)[12..]].concat();
    assert_eq!(seen, [Seen::Out(2, expected)]);
    assert_eq!(rig.send(2, 1, &labelled(102, 64)), [Seen::Dropped(DropReason::NoRoute)]);
    assert_eq!(rig.send(3, 1, &labelled(100, 1)), [Seen::Dropped(DropReason::HopLimit)]);
    // One whose next hop is to be asked for waits as it is.
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
