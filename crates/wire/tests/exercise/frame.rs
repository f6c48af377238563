//! Invariants for arbitrary bytes as a frame; also the fuzz target `frame`.

use longwire_wire::{
    Addresses, Arp, Ethernet, Icmp, Ipv4, Ipv6, Tcp, Udp, addresses, ethertype, l3_offset, protocol,
};

/// Reads every view that `frame` may contain. None panics, and they agree with each other.
pub fn run(frame: &[u8]) {
    let offset = l3_offset(frame);
    assert!(offset <= frame.len());
    let found = addresses(frame);
    let Ok(ethernet) = Ethernet::check(frame) else {
        assert_eq!(found, Addresses::Other);
        return;
    };
    assert_eq!(frame.len() - ethernet.payload().len(), offset);
    let is_tagged = offset > 14;
    let _ = (
        ethernet.destination(),
        ethernet.source(),
        Arp::check(ethernet.payload()).map(|arp| (arp.sender(), arp.target())),
    );
    match (found, ethernet.ethertype()) {
        (Addresses::V4 { source, destination }, ethertype::IPV4) => {
            assert!(!is_tagged);
            // The view is stricter: the total length in the header must be possible.
            if let Ok(ip) = Ipv4::check(ethernet.payload()) {
                assert_eq!((ip.source(), ip.destination()), (source, destination));
            }
        }
        (Addresses::V6 { source, destination }, ethertype::IPV6) => {
            assert!(!is_tagged);
            let ip = Ipv6::check(ethernet.payload()).expect("addresses were found");
            assert_eq!((ip.source(), ip.destination()), (source, destination));
        }
        (Addresses::Other, _) => {}
        (found, ethertype) => panic!("{found:?} in EtherType {ethertype:#x}"),
    }
    if let Ok(ip) = Ipv4::check(ethernet.payload()) {
        transport(ip.protocol(), ip.payload());
    }
    if let Ok(ip) = Ipv6::check(ethernet.payload())
        && let Some(found) = ip.transport()
    {
        transport(found.protocol, &ethernet.payload()[found.offset..]);
    }
}

fn transport(number: u8, bytes: &[u8]) {
    match number {
        protocol::TCP => drop(Tcp::check(bytes).map(|tcp| (tcp.header_len(), tcp.payload().len()))),
        protocol::UDP => drop(Udp::check(bytes).map(|udp| udp.length())),
        _ => drop(Icmp::check(bytes).map(|icmp| (icmp.kind(), icmp.rest_of_header()))),
    }
}
