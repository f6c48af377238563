//! What must hold for any bytes at all; shared by the property tests, the replay of the corpora and the fuzz targets.

use longwire_packet::{Checksum, Handle, Meta, Pool};
use longwire_wire::{
    Addresses, Arp, Ethernet, Icmp, Ipv4, Ipv6, Tcp, Udp, addresses, ethertype, finish_checksum, l3_offset,
    protocol, segment, virtio,
};

/// Reads every view that `frame` may hold. None panics, and what they say agrees.
pub fn frame(frame: &[u8]) {
    let offset = l3_offset(frame);
    assert!(offset <= frame.len());
    let found = addresses(frame);
    let Ok(ethernet) = Ethernet::check(frame) else {
        assert_eq!(found, Addresses::Other);
        return;
    };
    assert_eq!(frame.len() - ethernet.payload().len(), offset);
    let is_tagged = ethernet.tags()[0].is_some();
    let _ = (
        ethernet.destination(),
        ethernet.source(),
        Arp::check(ethernet.payload()).map(|arp| (arp.sender(), arp.target())),
    );
    match (found, ethernet.ethertype()) {
        (Addresses::V4 { source, destination }, ethertype::IPV4) => {
            assert!(!is_tagged);
            // The view asks more of the header: its total length must be possible.
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
        protocol::TCP => drop(Tcp::check(bytes).map(|tcp| (tcp.options().len(), tcp.payload().len()))),
        protocol::UDP => drop(Udp::check(bytes).map(|udp| (udp.payload().len(), udp.checksum()))),
        _ => drop(Icmp::check(bytes).map(|icmp| (icmp.kind(), icmp.payload().len()))),
    }
}

/// Reads `bytes` as a ten-byte virtio header and its frame. A header that is taken can be written again, and a
/// train can be split into segments whose checksums can be finished.
pub fn virtio(pool: &mut Pool, bytes: &[u8]) {
    let (header, frame) = bytes.split_at(bytes.len().min(virtio::LEN));
    let Some(packet) = pool.insert(frame) else { return };
    let (meta, frame) = pool.parts_mut(packet);
    if virtio::Header::read(header, meta, frame).is_ok() {
        let mut again = *meta;
        virtio::Header::read(&virtio::Header::write(meta), &mut again, frame)
            .expect("what was read can be written");
        // That a checksum was found right is not passed on, and only then are its places kept.
        let known = |meta: &Meta| (meta.segments, meta.gso, meta.gso_size, meta.header_len);
        assert_eq!(known(meta), known(&again));
        assert_eq!(meta.checksum == Checksum::Partial as u8, again.checksum == Checksum::Partial as u8);
        split(pool, packet);
        let (meta, frame) = pool.parts_mut(packet);
        finish_checksum(meta, frame).expect("its place was checked");
    }
    pool.free(packet);
    assert_eq!(pool.live(), 0);
}

/// Splits a train into its first few segments, its last and what is between.
fn split(pool: &mut Pool, train: Handle) {
    let meta = *pool.meta(train);
    if !meta.is_train() {
        return;
    }
    let payload = meta.len - u32::from(meta.header_len);
    assert_eq!(payload.div_ceil(u32::from(meta.gso_size)), u32::from(meta.segments));
    for (first, count) in [(0, 1), (1, 1), (meta.segments - 1, 1), (0, meta.segments - 1), (0, meta.segments)]
    {
        let part = segment(pool, train, first, count).expect("the pool has room");
        let (meta, frame) = pool.parts_mut(part);
        assert_eq!((meta.segments, meta.len as usize), (count, frame.len()));
        finish_checksum(meta, frame).expect("its place was checked");
        pool.free(part);
    }
}
