//! Hand-made trains, which no kernel socket here would send.

use crate::net::{Net, now, until};
use longwire_block::Port;
use longwire_packet::{Batch, Checksum, Gso, Handle, Pool, Train};
use longwire_port::driver::af_packet::{AfPacket, AfPacketOptions, Header};
use longwire_units::Nanos;
use longwire_wire::{Ethernet, Ipv4, Tcp, checksum, validate_train};
use std::process::Command;

/// Four segments of 1000 bytes and one of 500.
const PAYLOAD: usize = 4500;
const GSO_SIZE: u16 = 1000;

/// A TCP train with a VLAN tag and an open checksum.
fn tagged_train(pool: &mut Pool) -> Handle {
    let mut bytes = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x81, 0, 0x20, 5, 0x08, 0];
    let total = (40 + PAYLOAD) as u16;
    let mut ip = vec![0x45, 0, (total >> 8) as u8, total as u8, 0, 9, 0x40, 0, 64, 6, 0, 0];
    ip.extend([10, 0, 0, 1, 10, 0, 0, 2]);
    let sum = checksum::Sum::ZERO.bytes(&ip).checksum().to_be_bytes();
    ip[10..12].copy_from_slice(&sum);
    bytes.extend(ip);
    bytes.extend([0x10, 0, 0x20, 0, 0, 0, 0, 77, 0, 0, 0, 0, 0x50, 0x10, 1, 0, 0, 0, 0, 0]);
    let open = checksum::pseudo_v4(0x0a00_0001, 0x0a00_0002, 6, total - 20).folded().to_be_bytes();
    bytes[18 + 20 + 16..][..2].copy_from_slice(&open);
    bytes.extend((0..PAYLOAD).map(|i| (i ^ (i >> 8)) as u8));
    let handle = pool.insert(&bytes).unwrap();
    let (meta, frame) = pool.parts_mut(handle);
    meta.checksum = Checksum::Partial as u8;
    validate_train(meta, frame, (Gso::TcpV4 as u8, GSO_SIZE)).unwrap();
    handle
}

fn open(net: &Net, interface: &'static str, header: Header) -> AfPacket {
    let options = AfPacketOptions { header, slots: Some(64), ..Default::default() };
    net.run(move || AfPacket::open(interface, interface, &options)).unwrap()
}

/// Sends the train from one port to the other, and returns what arrives.
fn cross(from: &mut AfPacket, to: &mut AfPacket, pool: &mut Pool, packets: usize) -> Vec<Handle> {
    let mut batch = Batch::new();
    batch.push(tagged_train(pool));
    from.transmit(pool, &batch).unwrap();
    let mut got = Vec::new();
    until("the train to arrive", || {
        let mut batch = Batch::new();
        to.receive(pool, now(), &mut batch).unwrap();
        got.extend_from_slice(batch.as_slice());
        (got.len() >= packets).then_some(())
    });
    got
}

#[test]
fn a_tagged_train_crosses_whole() {
    let Some(net) = Net::new() else { return };
    net.veth("left", "right");
    let mut pool = Pool::new(1 << 20).unwrap();
    let (mut left, mut right) = (open(&net, "left", Header::On), open(&net, "right", Header::On));
    let got = cross(&mut left, &mut right, &mut pool, 1);
    let wanted = tagged_train(&mut pool);
    let facts = |handle| {
        let meta = pool.meta(handle);
        (meta.train(), meta.open_checksum())
    };
    let train = Train { gso: Gso::TcpV4 as u8, segments: 5, gso_size: GSO_SIZE, header_len: 58 };
    assert_eq!(facts(got[0]), facts(wanted));
    assert_eq!(facts(wanted), (Some(train), Some((38, 16))));
    assert_eq!(pool.data(got[0]), pool.data(wanted));
    assert_eq!((right.stats().in_frames, right.stats().in_bytes), (5, 5 * 58 + PAYLOAD as u64));
    assert_eq!(left.stats().out_bytes, right.stats().in_bytes);
}

#[test]
fn a_train_is_split_for_a_port_without_header() {
    let Some(net) = Net::new() else { return };
    net.veth("left", "right");
    let (mut left, mut right) = (open(&net, "left", Header::Off), open(&net, "right", Header::Off));
    crosses_split(&mut left, &mut right);
}

/// The kernel would drop it.
#[test]
fn a_train_is_split_for_an_interface_that_does_not() {
    // The second leaves TCP over IPv6 to the interface.
    for feature in ["tso", "tx-tcp-segmentation"] {
        let Some(net) = Net::new() else { return };
        net.veth("left", "right");
        let mut pool = Pool::new(1 << 20).unwrap();
        let (mut early, mut right) = (open(&net, "left", Header::On), open(&net, "right", Header::On));
        assert_eq!(cross(&mut early, &mut right, &mut pool, 1).len(), 1);
        net.run(move || {
            let status = Command::new("ethtool").args(["-K", "left", feature, "off"]).status();
            assert!(status.expect("ethtool is installed").success());
        });
        // A port that was open before finds out when a train has been refused.
        let mut sent = Batch::new();
        sent.push(tagged_train(&mut pool));
        early.transmit(&mut pool, &sent).unwrap();
        assert_eq!(early.stats().out_full, 5);
        let later = Nanos(now().0 + 2_000_000_000);
        early.receive(&mut pool, later, &mut Batch::new()).unwrap();
        crosses_split(&mut early, &mut right);
        drop((early, right));
        let (mut left, mut right) = (open(&net, "left", Header::On), open(&net, "right", Header::On));
        crosses_split(&mut left, &mut right);
    }
}

/// Sends the train from one port to the other, which gets its segments.
fn crosses_split(left: &mut AfPacket, right: &mut AfPacket) {
    let mut pool = Pool::new(1 << 20).unwrap();
    let before = (left.stats().out_frames, right.stats().in_frames);
    let got = cross(left, right, &mut pool, 5);
    let mut payload = Vec::new();
    for &handle in &got {
        let frame = pool.data(handle);
        let ethernet = Ethernet::check(frame).unwrap();
        assert_eq!(u16::from_be_bytes([frame[14], frame[15]]) & 0xfff, 5, "the VLAN of its tag");
        let ip = Ipv4::check(ethernet.payload()).unwrap();
        let tcp = Tcp::check(ip.payload()).unwrap();
        assert_eq!(tcp.sequence(), 77 + payload.len() as u32);
        let sum = checksum::pseudo_v4(ip.source(), ip.destination(), 6, ip.payload().len() as u16);
        assert_eq!(sum.bytes(ip.payload()).checksum(), 0, "a checksum that is right sums to nothing");
        payload.extend_from_slice(tcp.payload());
    }
    let wanted = tagged_train(&mut pool);
    assert_eq!(payload, pool.data(wanted)[58..]);
    assert_eq!((left.stats().out_frames - before.0, right.stats().in_frames - before.1), (5, 5));
}

#[test]
fn segments_above_the_mtu_are_counted() {
    let Some(net) = Net::new() else { return };
    net.veth("left", "right");
    net.ip("link set left mtu 1000");
    let mut pool = Pool::new(1 << 20).unwrap();
    for header in [Header::On, Header::Off] {
        let mut left = open(&net, "left", header);
        let mut batch = Batch::new();
        batch.push(tagged_train(&mut pool));
        left.transmit(&mut pool, &batch).unwrap();
        // Without the header only the last segment is short enough.
        let (sent, long) = if header == Header::On { (0, 5) } else { (1, 4) };
        assert_eq!((left.stats().out_frames, left.stats().out_oversize), (sent, long));
        assert_eq!(pool.live(), 0);
    }
}
