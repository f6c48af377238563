//! ICMP errors about packets that programs or services have rewritten: address translation between port 1,
//! inside, and port 3, whose MTU is 1400.

use crate::programs::{self, prepared, program};
use crate::rig::{Rig, SECOND, Seen, config, host_mac, router_mac};
use crate::shipped::install;
use crate::threads::{METER, measured, several, until};
use etherparse::PacketBuilder;
use longwire_block::DropReason;
use longwire_punt::services::Native;
use longwire_punt::{
    AttachmentId, Inline, InlineService, Limits, Punt, PuntedPacket, Service, ServiceOutput, Turns, Verdict,
};
use longwire_router::{Confirmation, Installation, Key};
use longwire_units::Nanos;
use std::net::IpAddr;

const INSIDE: [u8; 4] = [10, 0, 1, 9];
const FAR: [u8; 4] = [10, 0, 3, 9];
/// The router's own address on port 3.
const EXTERNAL: [u8; 4] = [10, 0, 3, 1];
/// The inside host's port, and its translation.
const PORTS: [u16; 2] = [5000, 40_001];

/// A packet with DF set, of this IP length.
fn udp(port: u16, from: ([u8; 4], u16), to: ([u8; 4], u16), ttl: u8, len: usize) -> Vec<u8> {
    let header = etherparse::Ipv4Header {
        dont_fragment: true,
        ..etherparse::Ipv4Header::new(len as u16 - 20, ttl, etherparse::IpNumber::UDP, from.0, to.0).unwrap()
    };
    let builder = PacketBuilder::ethernet2(host_mac(port), router_mac(port));
    let builder = builder.ip(etherparse::IpHeaders::Ipv4(header, Default::default()));
    let mut frame = Vec::new();
    builder.udp(from.1, to.1).write(&mut frame, &vec![7; len - 28]).unwrap();
    frame
}

fn out(ttl: u8, len: usize) -> Vec<u8> {
    udp(1, (INSIDE, PORTS[0]), (FAR, 53), ttl, len)
}

fn back(ttl: u8, len: usize) -> Vec<u8> {
    udp(3, (FAR, 53), (EXTERNAL, PORTS[1]), ttl, len)
}

/// Installs a NAT44 with a mapping of the inside host's port.
fn translate(rig: &mut Rig) {
    let network = |address: [u8; 4], mask: [u8; 4]| [address, mask].concat();
    let inside = network([10, 0, 1, 0], [255, 255, 255, 0]);
    let state = [&[0; 8][..], &network(EXTERNAL, [255; 4]), &inside, &[0; 24]].concat();
    let nat = install(rig, "nat44", Key::All, &state);
    let table = rig.router.forwarders();
    let bindings = table.forwarder(nat).unwrap().maps().named("bindings").unwrap();
    let end = |address: [u8; 4], port: u16| [&address[..], &port.to_be_bytes()].concat();
    let ends = [end(INSIDE, PORTS[0]), end(EXTERNAL, PORTS[1])];
    for (side, from, to) in [(0, &ends[0], &ends[1]), (1, &ends[1], &ends[0])] {
        bindings.set(&[&from[..], &[17, side]].concat(), 0, &[&to[..], &[0; 18]].concat(), 0).unwrap();
    }
}

fn rig() -> Rig {
    let mut config = config();
    config.ports[2].mtu = 1400;
    Rig::of(config)
}

/// Asserts that an error of this type, code and MTU left by this port, to the sender of `cause`, quoting it.
#[track_caller]
fn assert_told(seen: &[Seen], port: u16, (kind, code, mtu): (u8, u8, u16), cause: &[u8]) {
    let errors: Vec<_> = seen.iter().filter(|seen| matches!(seen, Seen::Out(..))).collect();
    let [Seen::Out(out, error)] = errors[..] else { panic!("an error, and nothing else: {seen:?}") };
    assert_eq!((*out, &error[..6], &error[30..34]), (port, &host_mac(port)[..], &cause[26..30]));
    assert_eq!((error[23], error[34], error[35], &error[40..42]), (1, kind, code, &mtu.to_be_bytes()[..]));
    let quoted = (cause.len() - 14).min(548);
    assert_eq!(error[42..], cause[14..14 + quoted]);
}

const TOO_BIG: (u8, u8, u16) = (3, 4, 1400);
const EXPIRED: (u8, u8, u16) = (11, 0, 0);
const NO_HOST: (u8, u8, u16) = (3, 1, 0);

#[test]
fn path_mtu_discovery_through_a_translator_finds_the_routers_own_port() {
    // Alone, and beside a program that is not plain.
    for others in [&[][..], &["balancer"]] {
        let mut rig = rig();
        translate(&mut rig);
        for name in others {
            install(&mut rig, name, Key::All, &[]);
        }
        let passed = rig.send(SECOND, 1, &out(64, 1400)).remove(0);
        assert_eq!((passed.out().0, &passed.out().1[26..30]), (3, &EXTERNAL[..]));
        for len in [1401, 1500] {
            let sent = out(64, len);
            let seen = rig.send(SECOND, 1, &sent);
            assert_eq!(seen[0], Seen::Dropped(DropReason::Mtu));
            assert_told(&seen, 1, TOO_BIG, &sent);
        }
        // In one batch with others, each sender gets its own error.
        let long = udp(1, (INSIDE, PORTS[0]), (FAR, 54), 64, 1450);
        let frames = [out(64, 100), long.clone(), out(64, 100)].map(|frame| (SECOND, 1, frame));
        let seen = rig.batch(&frames);
        assert_eq!((seen[0].out().0, seen[2].out().0), (3, 3));
        assert_told(&seen[3..], 1, TOO_BIG, &long);
    }
}

#[test]
fn who_is_outside_hears_of_the_address_that_it_knows() {
    let mut rig = rig();
    translate(&mut rig);
    let sent = back(1, 100);
    let seen = rig.send(SECOND, 3, &sent);
    assert_eq!(seen[0], Seen::Dropped(DropReason::HopLimit));
    assert_told(&seen, 3, EXPIRED, &sent);
    // A traceroute hop from inside.
    let sent = out(1, 100);
    assert_told(&rig.send(SECOND, 1, &sent), 1, EXPIRED, &sent);
}

#[test]
fn that_a_neighbour_does_not_answer_is_told_inside() {
    let mut rig = rig();
    translate(&mut rig);
    let sent = udp(1, (INSIDE, PORTS[0]), ([10, 0, 3, 77], 53), 64, 100);
    assert_eq!(rig.send(SECOND, 1, &sent)[0], Seen::Kept);
    let mut seen = rig.wait(100 * SECOND);
    seen.retain(|seen| !matches!(seen, Seen::Out(3, _)));
    assert_eq!(seen.len(), 2, "{seen:?}");
    assert_told(&seen, 1, NO_HOST, &sent);
}

/// The next packet has its place in the pool.
#[test]
fn what_waited_for_a_neighbour_is_forgotten_when_it_has_gone() {
    let mut rig = rig();
    translate(&mut rig);
    let host = [10, 0, 3, 77];
    let waits = udp(1, (INSIDE, PORTS[0]), (host, 53), 64, 100);
    assert_eq!(rig.send(SECOND, 1, &waits)[0], Seen::Kept);
    let now = Nanos(SECOND + 5);
    assert!(rig.router.note_neighbour(3, IpAddr::from(host), host_mac(7), Confirmation::Answered, now));
    assert_eq!(rig.wait(now.0)[0].out().0, 3);
    let sent = out(1, 100);
    assert_told(&rig.send(now.0, 1, &sent), 1, EXPIRED, &sent);
}

/// Translates one packet's source, as NAT44 does.
struct Translates;

impl Service for Translates {
    fn handle(&mut self, packet: &mut PuntedPacket<'_>, _: &mut ServiceOutput) -> Verdict {
        let frame = packet.bytes_mut();
        // No UDP checksum, which would change.
        (frame[40], frame[41]) = (0, 0);
        frame[26..30].copy_from_slice(&EXTERNAL);
        frame[34..36].copy_from_slice(&PORTS[1].to_be_bytes());
        frame[24..26].fill(0);
        let sum: u32 = frame[14..34].chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1])).sum();
        let check = !((sum & 0xffff) + (sum >> 16)) as u16;
        frame[24..26].copy_from_slice(&check.to_be_bytes());
        Verdict::Pass
    }
}

/// Sends all packets up to a service, after the programs that are there.
fn send_up(rig: &mut Rig, service: Box<dyn Service>) {
    let service = InlineService {
        name: "above".into(),
        service,
        time: Nanos::from_micros(1),
        weight: 1,
        limits: Limits::default(),
    };
    let inline = Inline::new(vec![service], Turns::new("sfq").unwrap());
    rig.router.set_levels(Punt::simulated(vec![1, 2, 3], inline));
    let up =
        Installation { name: "up".into(), above: Some(AttachmentId::slow(0)), ..Installation::default() };
    rig.router.install(prepared(program("up", "r0 = 2\n exit"), up)).unwrap();
}

#[test]
fn what_was_translated_above_is_told_of_as_it_was() {
    let mut rig = rig();
    send_up(&mut rig, Box::new(Translates));
    let long = out(64, 1500);
    let frames = [out(64, 100), long.clone(), out(64, 200)].map(|frame| (SECOND, 1, frame));
    assert_eq!(rig.batch(&frames), [Seen::Kept, Seen::Kept, Seen::Kept]);
    let mut seen = rig.wait(2 * SECOND);
    let gone = |seen: &Seen| matches!(seen, Seen::Out(3, frame) if frame[26..30] == EXTERNAL);
    assert_eq!(seen.iter().filter(|seen| gone(seen)).count(), 2, "{seen:?}");
    seen.retain(|seen| !gone(seen));
    assert_told(&seen, 1, TOO_BIG, &long);
}

/// A program translates, and the service changes nothing.
#[test]
fn what_was_translated_on_its_way_up_is_told_of_as_it_was() {
    let mut rig = rig();
    translate(&mut rig);
    send_up(&mut rig, (Native::named("witness").unwrap().make)());
    for sent in [out(64, 1500), out(1, 100)] {
        let frames = [out(64, 100), sent.clone()].map(|frame| (SECOND, 1, frame));
        assert_eq!(rig.batch(&frames), [Seen::Kept, Seen::Kept]);
        let mut seen = rig.wait(2 * SECOND);
        let passed = seen.remove(0);
        assert_eq!((passed.out().0, &passed.out().1[26..30]), (3, &EXTERNAL[..]));
        let expected = if sent.len() > 1414 { TOO_BIG } else { EXPIRED };
        assert_told(&seen, 1, expected, &sent);
    }
}

#[test]
fn processors_on_threads_remember_it_too() {
    let mut rig = measured(several("cbcs", 2, 4), METER);
    translate(&mut rig);
    let sent = out(64, 1500);
    assert_eq!(rig.send(SECOND, 1, &sent)[0], Seen::Kept);
    let seen = until(&mut rig, |rig, _| rig.router.stats().kept == 0);
    // Port 3 of this rig has another MTU.
    assert_told(&seen, 1, (3, 4, 1280), &sent);
}

/// A program makes packets longer, except those with a TTL of 1. A packet that it replaces gives up its place
/// in the pool, which the next one has.
#[test]
fn processors_on_threads_forget_a_packet_that_was_replaced() {
    const GROW: &str = "r2 = *(u32 *)(r1 + 0)
        r3 = *(u32 *)(r1 + 4)
        r4 = r2
        r4 += 34
        if r4 > r3 goto out
        r5 = *(u8 *)(r2 + 22)
        if r5 == 1 goto out
        r2 = 100
        call xdp_adjust_tail
        out: r0 = 2
        exit";
    let mut rig = measured(several("cbcs", 2, 4), METER);
    let grow = Installation { threads: 3, ..programs::general() };
    programs::install(&mut rig, GROW, grow);
    let grown = udp(3, (FAR, 53), (INSIDE, PORTS[0]), 64, 100);
    assert_eq!(rig.send(SECOND, 3, &grown)[0], Seen::Kept);
    let seen = until(&mut rig, |rig, _| rig.router.stats().kept == 0);
    assert!(seen.contains(&Seen::Consumed), "{seen:?}");
    let sent = out(1, 100);
    assert_eq!(rig.send(SECOND, 1, &sent)[0], Seen::Kept);
    let seen = until(&mut rig, |rig, _| rig.router.stats().kept == 0);
    assert_told(&seen, 1, EXPIRED, &sent);
}
