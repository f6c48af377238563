//! Input of a case by its ports: frames of every kind, with their times.

use longwire_block::Dice;
use longwire_drivers::memory;
use longwire_packet::{Checksum, Gso};
use longwire_port::driver::memory::Facts;
use longwire_scenario::{Plan, Port};
use longwire_units::Nanos;
use longwire_wire::checksum::{Sum, pseudo_v4, pseudo_v6};
use longwire_wire::{Ipv4Header, Ipv6Header, arp_message, ethernet_header, ethertype, l3_offset, protocol};
use std::net::IpAddr;

/// A frame with its driver metadata, and the place of its input port.
pub struct Frame {
    pub port: usize,
    pub bytes: Vec<u8>,
    pub facts: Facts,
}

/// A sender or receiver behind a port.
struct Station {
    port: usize,
    mac: [u8; 6],
    v4: u32,
    v6: u128,
}

/// Whether frames of a case may come in by a port: a host's, or one of rings in memory.
pub fn takes_frames(plan: &Plan, port: &Port) -> bool {
    port.attachment.host().is_some() || plan.driver_of(port) == Some(&memory::DRIVER)
}

/// The frames of a case, in time order: bursts, gaps, trains, conversations and invalid frames.
pub fn frames(plan: &Plan, name: &str) -> Vec<Frame> {
    let stations = stations(plan);
    let sends = |station: &&Station| takes_frames(plan, &plan.ports[station.port]);
    let senders: Vec<_> = stations.iter().filter(sends).collect();
    if senders.is_empty() {
        return Vec::new();
    }
    let routers: Vec<_> =
        plan.routers.iter().flat_map(|router| &router.ports).map(|port| port.mac.0).collect();
    let mut dice = Dice::named(plan.seed, &format!("frames/{name}"));
    let mut time = 0;
    let mut frames = Vec::new();
    for _ in 0..120 + dice.below(80) {
        time += match dice.below(10) {
            0..4 => 0,
            4 => dice.below(10),
            5..7 => dice.below(100_000),
            7 => dice.below(8000),
            8 => dice.below(1_000_000),
            _ => dice.below(3_000_000),
        };
        let from = senders[dice.below(senders.len() as u64) as usize];
        let to = &stations[dice.below(stations.len() as u64) as usize];
        let mut frame = drawn(&mut dice, from, to);
        if !routers.is_empty() && dice.below(12) > 0 {
            frame.bytes[..6].copy_from_slice(&next_hop(plan, &routers, from, &mut dice));
        }
        frame.facts.time = Nanos(time);
        frames.push(frame);
    }
    frames
}

/// The stations behind the ports named in the scenario.
fn stations(plan: &Plan) -> Vec<Station> {
    let station = |(port, of): (usize, &Port)| {
        let own = |wanted: fn(&IpAddr) -> bool| of.addresses.iter().map(|net| net.address).find(wanted);
        let v4 = match own(IpAddr::is_ipv4) {
            Some(IpAddr::V4(address)) => address.to_bits(),
            _ => 0x0a00_0063,
        };
        let v6 = match own(IpAddr::is_ipv6) {
            Some(IpAddr::V6(address)) => address.to_bits(),
            _ => 0xfd00 << 112 | port as u128,
        };
        Station { port, mac: of.mac.0, v4, v6 }
    };
    let named = |(_, port): &(usize, &Port)| port.attachment.is_outer();
    plan.ports.iter().enumerate().filter(named).map(station).collect()
}

/// The MAC address of the router next to a station, or of another one.
fn next_hop(plan: &Plan, routers: &[[u8; 6]], from: &Station, dice: &mut Dice) -> [u8; 6] {
    let ports = plan.routers.iter().flat_map(|router| &router.ports);
    // The router with an address in the station's network, which may be behind a link.
    let near = ports.clone().find(|port| {
        let mut own = port.addresses.iter().map(|net| net.address);
        own.any(|address| matches!(address, IpAddr::V4(v4) if v4.to_bits() >> 8 == from.v4 >> 8))
    });
    match near {
        Some(port) if dice.below(12) > 0 => port.mac.0,
        _ => routers[dice.below(routers.len() as u64) as usize],
    }
}

/// Mostly TCP and UDP from one to the other, and sometimes unexpected frames.
fn drawn(dice: &mut Dice, from: &Station, to: &Station) -> Frame {
    let mut frame = match dice.below(24) {
        0 => arp(dice, from, to),
        1 => {
            let mut bytes = ethernet_header(to.mac, from.mac, 0x88b5).to_vec();
            bytes.resize(60 + dice.below(1454) as usize, 0x5a);
            Frame { port: from.port, bytes, facts: Facts::default() }
        }
        2..6 => train(dice, from, to),
        _ => {
            let payload = match dice.below(4) {
                0 => 0,
                1 => dice.below(64),
                2 => 1200 + dice.below(240),
                _ => dice.below(1440),
            };
            packet(dice, from, to, payload as usize)
        }
    };
    match dice.below(40) {
        0 | 1 => frame.bytes[..6].fill(0xff),
        2 => frame.bytes[..6].copy_from_slice(&[0x02, 0, 0, 0, 0x77, dice.below(4) as u8]),
        3 => frame.bytes[..6].copy_from_slice(&[0x01, 0x80, 0xc2, 0, 0, 0x0e]),
        4 => frame.bytes[..6].copy_from_slice(&[0x01, 0, 0x5e, 0, 0, 5]),
        5 => frame.bytes[6] |= 1,
        6 if frame.facts.segments == 1 && frame.facts.checksum == 0 => frame.bytes.truncate(10),
        // A header that is too short, and one with options: only the first byte is changed.
        7 if frame.facts.segments == 1 => frame.bytes[14] = 0x43,
        8 | 9 if frame.facts.segments == 1 && frame.bytes[14] == 0x45 => options(&mut frame.bytes),
        _ => {}
    }
    frame
}

/// Turns the first four bytes behind the IPv4 header into options that routers refuse: a source route.
fn options(frame: &mut [u8]) {
    if frame.len() < 38 {
        return;
    }
    frame[14] = 0x46;
    frame[34..38].copy_from_slice(&[131, 3, 4, 0]);
    frame[24..26].fill(0);
    let checksum = Sum::ZERO.bytes(&frame[14..38]).checksum();
    frame[24..26].copy_from_slice(&checksum.to_be_bytes());
}

fn arp(dice: &mut Dice, from: &Station, to: &Station) -> Frame {
    let target = if dice.below(2) == 0 { ([0; 6], to.v4) } else { ([0; 6], to.v4 >> 8 << 8 | 1) };
    let mut bytes = ethernet_header([0xff; 6], from.mac, ethertype::ARP).to_vec();
    bytes.extend_from_slice(&arp_message(1 + dice.below(2) as u16, (from.mac, from.v4), target));
    bytes.resize(60, 0);
    Frame { port: from.port, bytes, facts: Facts::default() }
}

/// A TCP segment, a datagram or an echo request with `payload` bytes of payload; half of them have a partial
/// checksum.
fn packet(dice: &mut Dice, from: &Station, to: &Station, payload: usize) -> Frame {
    let kind = [protocol::TCP, protocol::TCP, protocol::UDP, protocol::UDP, protocol::UDP, protocol::ICMP];
    let kind = kind[dice.below(6) as usize];
    let (mut frame, start) = of_protocol(dice, (from, to), kind, payload);
    open_checksum(&mut frame, start, kind);
    if dice.below(2) == 0 {
        close_checksum(&mut frame);
    }
    frame
}

/// A packet without a checksum, and the offset of its transport header.
fn of_protocol(
    dice: &mut Dice,
    (from, to): (&Station, &Station),
    kind: u8,
    payload: usize,
) -> (Frame, usize) {
    let transport = transport(dice, kind, payload);
    let (v6, tag) = (dice.below(4) == 0, dice.below(12) == 0);
    let class = [0, 0, 1, 2, 2, 0xb8, 0x28, 3][dice.below(8) as usize];
    let hops = [64, 64, 64, 64, 64, 64, 2, 1][dice.below(8) as usize];
    let next = if v6 { ethertype::IPV6 } else { ethertype::IPV4 };
    let mut bytes = ethernet_header(to.mac, from.mac, if tag { 0x8100 } else { next }).to_vec();
    if tag {
        bytes.extend_from_slice(&[0x20, 5]);
        bytes.extend_from_slice(&next.to_be_bytes());
    }
    let payload_len = transport.len() as u16;
    // For some, the receiver is elsewhere.
    let astray = u32::from(dice.below(12) == 0) * (1 + dice.below(0x30000) as u32);
    if v6 {
        let kind = if kind == protocol::ICMP { 58 } else { kind };
        let (source, destination) = (from.v6, to.v6.wrapping_add(u128::from(astray)));
        let mut header =
            Ipv6Header { source, destination, next_header: kind, hop_limit: hops, payload_len }.bytes();
        header[0] |= class >> 4;
        header[1] |= class << 4;
        bytes.extend_from_slice(&header);
    } else {
        let (source, destination) = (from.v4, to.v4.wrapping_add(astray));
        let id = dice.below(65536) as u16;
        let header = Ipv4Header {
            source,
            destination,
            protocol: kind,
            ttl: hops,
            traffic_class: class,
            id,
            payload_len,
        };
        bytes.extend_from_slice(&header.bytes());
    }
    let start = bytes.len();
    bytes.extend_from_slice(&transport);
    (Frame { port: from.port, bytes, facts: Facts::default() }, start)
}

/// A transport header and its payload, without checksum.
fn transport(dice: &mut Dice, kind: u8, payload: usize) -> Vec<u8> {
    let ports = [80u16, 443, 53, 5001, 7, 9, 23, 2000];
    let mut port = || ports[dice.below(8) as usize].to_be_bytes();
    let (source, destination) = (port(), port());
    let mut bytes = [source, destination].concat();
    match kind {
        protocol::TCP => {
            bytes.extend_from_slice(&(dice.draw() as u32).to_be_bytes());
            bytes.extend_from_slice(&(dice.draw() as u32).to_be_bytes());
            let flags = [0x10, 0x10, 0x18, 0x02, 0x12, 0x11][dice.below(6) as usize];
            bytes.extend_from_slice(&[0x50, flags, 2, 0, 0, 0, 0, 0]);
        }
        protocol::UDP => {
            bytes.extend_from_slice(&(8 + payload as u16).to_be_bytes());
            bytes.extend_from_slice(&[0, 0]);
        }
        _ => bytes.splice(.., [8, 0, 0, 0, 0, 1, 0, 2]).for_each(drop),
    }
    let first = dice.draw() as u8;
    bytes.extend((0..payload).map(|at| first.wrapping_add((at * 7 + at / 251) as u8)));
    bytes
}

/// Makes the checksum of TCP or UDP partial: the field contains the pseudo-header's sum.
fn open_checksum(frame: &mut Frame, start: usize, kind: u8) {
    let offset = match kind {
        protocol::TCP => 16,
        protocol::UDP => 6,
        _ => return,
    };
    let length = (frame.bytes.len() - start) as u16;
    let word = |at: usize| u32::from_be_bytes(frame.bytes[at..at + 4].try_into().unwrap());
    let long = |at: usize| u128::from_be_bytes(frame.bytes[at..at + 16].try_into().unwrap());
    let sum = if is_v6(frame, start) {
        pseudo_v6(long(start - 32), long(start - 16), kind, length.into())
    } else {
        pseudo_v4(word(start - 8), word(start - 4), kind, length)
    };
    let open = !sum.checksum();
    frame.bytes[start + offset..start + offset + 2].copy_from_slice(&open.to_be_bytes());
    frame.facts.csum_start = start as u16;
    frame.facts.csum_offset = offset as u16;
    frame.facts.checksum = Checksum::Partial as u8;
}

/// Fills the checksum in.
fn close_checksum(frame: &mut Frame) {
    if frame.facts.checksum == 0 {
        return;
    }
    let start = usize::from(frame.facts.csum_start);
    let at = start + usize::from(frame.facts.csum_offset);
    let sum = Sum::ZERO.bytes(&frame.bytes[start..]).checksum();
    frame.bytes[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    frame.facts = Facts::default();
}

/// Whether the transport header at `start` follows an IPv6 header.
fn is_v6(frame: &Frame, start: usize) -> bool {
    l3_offset(&frame.bytes) + 40 == start
}

/// Several segments in one, as from segmentation offload.
fn train(dice: &mut Dice, from: &Station, to: &Station) -> Frame {
    let mss = 200 + dice.below(1200) as usize;
    let payload = mss + 1 + dice.below(11 * mss as u64) as usize;
    let kind = if dice.below(3) == 0 { protocol::UDP } else { protocol::TCP };
    let (mut frame, start) = of_protocol(dice, (from, to), kind, payload);
    open_checksum(&mut frame, start, kind);
    let header = start + if kind == protocol::TCP { 20 } else { 8 };
    frame.facts.gso = match (kind, is_v6(&frame, start)) {
        (protocol::UDP, _) => Gso::Udp,
        (_, false) => Gso::TcpV4,
        (_, true) => Gso::TcpV6,
    } as u8;
    frame.facts.segments = payload.div_ceil(mss) as u16;
    frame.facts.gso_size = mss as u16;
    frame.facts.header_len = header as u16;
    frame
}
