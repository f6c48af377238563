//! Levels above a router: packets that go up, and their outcome.

use crate::programs::{prepared, program};
use crate::rig::{Rig, SECOND, Seen, host_mac, router_mac};
use etherparse::PacketBuilder;
use longwire_block::DropReason;
use longwire_punt::client::{Control, Event, Hello};
use longwire_punt::{
    Admission, AttachmentId, Capacity, ExpectedProcess, Facts, Inline, InlineService, Limits, Listener, Punt,
    PuntedPacket, Service, ServiceOutput, Turns, Verdict,
};
use longwire_router::{Fid, FlowKey, FullIpReason, Installation, Key};
use longwire_units::Nanos;
use std::sync::mpsc;

/// A UDP frame from the host behind port 1 to the one behind port 2, and to this port.
fn udp(ttl: u8, port: u16, payload: &[u8]) -> Vec<u8> {
    let builder =
        PacketBuilder::ethernet2(host_mac(1), router_mac(1)).ipv4([10, 0, 1, 9], [10, 0, 2, 9], ttl);
    let mut frame = Vec::new();
    builder.udp(7, port).write(&mut frame, payload).unwrap();
    frame
}

/// Sends packets for UDP port 53 up, after a program.
fn install(rig: &mut Rig, code: &str, attachment: AttachmentId) -> Fid {
    install_for(rig, 53, code, attachment)
}

/// Sends packets for a UDP port up, after a program.
fn install_for(rig: &mut Rig, port: u16, code: &str, attachment: AttachmentId) -> Fid {
    let key = FlowKey { destination_port: Some(port), ..FlowKey::default() };
    let installation = Installation {
        name: "up".into(),
        key: Key::Flow(key),
        above: Some(attachment),
        ..Installation::default()
    };
    rig.router.install(prepared(program("up", code), installation)).unwrap()
}

const PASS: &str = "r0 = 2\n exit";
const PAYLOAD: usize = 42;
/// Most polls for something that happens within milliseconds; each one yields the processor.
const PATIENCE: u64 = 10_000_000;

/// Obeys the first byte of the payload, and reports the facts it received.
struct Obedient(mpsc::Sender<Facts>);

impl Service for Obedient {
    fn handle(&mut self, packet: &mut PuntedPacket<'_>, made: &mut ServiceOutput) -> Verdict {
        self.0.send(*packet.facts()).unwrap();
        match packet.bytes()[PAYLOAD] {
            0 => Verdict::Drop,
            1 => Verdict::Pass,
            2 => {
                // From here on to the host at port 3; another byte compensates the checksum.
                (packet.bytes_mut()[32], packet.bytes_mut()[28]) = (3, 0);
                Verdict::Pass
            }
            3 => {
                made.send(2, &[8; 60]);
                Verdict::Send { port: 3, band: Some(4) }
            }
            _ => Verdict::Send { port: 9, band: None },
        }
    }
}

/// A router with that service, which takes a microsecond a packet.
fn with_service() -> (Rig, mpsc::Receiver<Facts>) {
    let (told, tells) = mpsc::channel();
    let service = InlineService {
        name: "obedient".into(),
        service: Box::new(Obedient(told)),
        time: Nanos::from_micros(1),
        weight: 1,
        limits: Limits { packets: 4, ..Limits::default() },
    };
    let mut rig = Rig::new();
    rig.router
        .set_levels(Punt::simulated(vec![1, 2, 3], Inline::new(vec![service], Turns::new("sfq").unwrap())));
    (rig, tells)
}

#[test]
fn a_service_decides_and_the_default_forwarder_does_the_rest() {
    let (mut rig, tells) = with_service();
    let fid = install(&mut rig, PASS, AttachmentId::slow(0));
    let mut go = |order: u8, ttl: u8| {
        let sent = rig.send(SECOND, 1, &udp(ttl, 53, &[order, 5, 5, 5]));
        assert_eq!(sent, [Seen::Kept]);
        assert_eq!(rig.router.stats().kept, 1);
        assert_eq!(rig.wait(SECOND + 999), []);
        rig.wait(SECOND + 1000)
    };
    assert_eq!(go(0, 64), [Seen::Dropped(DropReason::Service)]);
    let [Seen::Out(2, passed)] = &go(1, 64)[..] else { panic!("forwarded") };
    assert_eq!((passed[22], &passed[..6]), (63, &host_mac(2)[..]), "by minimal IP");
    let expired = go(1, 1);
    assert!(matches!(expired[..], [Seen::Out(1, _), Seen::Dropped(DropReason::HopLimit)]), "{expired:?}");
    let three = go(3, 64);
    assert!(
        matches!(&three[..], [Seen::Out(3, frame), Seen::Out(2, made)] if frame[22] == 64 && made == &[8; 60])
    );
    assert!(matches!(go(9, 64)[..], [Seen::Out(2, _)]), "no such port: forwarded");
    // The facts spare services classification: destination and flow.
    let facts: Vec<_> = tells.try_iter().collect();
    let classes: Vec<_> = facts.iter().map(|facts| facts.class.class).collect();
    assert_eq!(
        classes,
        [0, 0, FullIpReason::HopLimit as u16 + 1, 0, 0],
        "and why, if it is no regular packet"
    );
    assert!(facts.iter().all(|facts| (facts.class.fid, facts.in_port) == (fid.0, 1)));
    assert!(facts.iter().all(|each| each.class.flow == facts[0].class.flow && each.class.network == 14));
    assert_ne!(facts[0].class.flow, 0);
    assert!(matches!(rig.send(SECOND, 1, &udp(64, 80, &[0; 4]))[..], [Seen::Out(2, _)]), "not for it");
}

#[test]
fn a_port_that_is_down_drops_what_levels_above_send() {
    let (mut rig, _tells) = with_service();
    install(&mut rig, PASS, AttachmentId::slow(0));
    let down = || Seen::Dropped(DropReason::PortDown);
    let mut go = |up: bool| {
        assert!(rig.router.set_up(3, up) && rig.router.set_up(2, up));
        assert_eq!(rig.send(SECOND, 1, &udp(64, 53, &[3; 4])), [Seen::Kept]);
        rig.wait(SECOND + 1000)
    };
    assert_eq!(go(false), [down(), down()]);
    assert!(matches!(go(true)[..], [Seen::Out(3, _), Seen::Out(2, _)]));
}

#[test]
fn what_programs_drop_stays_down_and_what_finds_no_room_is_dropped() {
    let (mut rig, tells) = with_service();
    install(&mut rig, "r0 = 1\n exit", AttachmentId::slow(0));
    assert_eq!(rig.send(SECOND, 1, &udp(64, 53, &[1; 4])), [Seen::Dropped(DropReason::Program)]);
    assert!(tells.try_recv().is_err());
    let (mut rig, _tells) = with_service();
    install(&mut rig, PASS, AttachmentId::slow(0));
    let frames: Vec<_> = (0..6).map(|_| (SECOND, 1, udp(64, 53, &[1; 4]))).collect();
    let mut expected = vec![Seen::Kept; 5];
    expected.push(Seen::Dropped(DropReason::LevelFull));
    assert_eq!(rig.batch(&frames), expected);
    assert_eq!(rig.wait(2 * SECOND).len(), 5);
}

#[test]
fn packets_with_a_mark_go_up_and_others_do_not() {
    let (mut rig, tells) = with_service();
    // Packets for port 53 get mark 7 by a program of that flow; a program for all packets sends them up by
    // the mark.
    let key = FlowKey { destination_port: Some(53), ..FlowKey::default() };
    let marks = Installation { name: "marks".into(), key: Key::Flow(key), ..Installation::default() };
    rig.router.install(prepared(program("marks", "r1 = 7\n call 65538\n r0 = 2\n exit"), marks)).unwrap();
    let up = |mark| Installation {
        name: "up".into(),
        above: Some(AttachmentId::slow(0)),
        mark: Some(mark),
        ..Installation::default()
    };
    let other = rig.router.install(prepared(program("up", PASS), up(8))).unwrap();
    assert!(matches!(rig.send(SECOND, 1, &udp(64, 53, &[1; 4]))[..], [Seen::Out(2, _)]), "another mark");
    assert!(rig.router.remove(other));
    rig.router.install(prepared(program("up", PASS), up(7))).unwrap();
    assert_eq!(rig.send(SECOND, 1, &udp(64, 53, &[1; 4])), [Seen::Kept]);
    assert!(matches!(rig.send(SECOND, 1, &udp(64, 54, &[1; 4]))[..], [Seen::Out(2, _)]), "no mark");
    assert!(matches!(rig.wait(2 * SECOND)[..], [Seen::Out(2, _)]));
    assert_eq!(tells.try_iter().count(), 1);
}

#[test]
fn what_a_service_changes_is_looked_at_again() {
    let (mut rig, _tells) = with_service();
    install(&mut rig, PASS, AttachmentId::slow(0));
    // The source's third byte goes from 1 to 0, the destination's from 2 to 3: the sum is unchanged.
    rig.send(SECOND, 1, &udp(64, 53, &[2; 4]));
    let seen = rig.wait(2 * SECOND);
    assert!(matches!(&seen[..], [Seen::Out(3, frame)] if frame[..6] == host_mac(3)), "{seen:?}");
}

#[test]
fn a_process_decides_while_it_is_there() {
    let mut punt = Punt::new(vec![1, 2, 3]);
    let attachment = punt.add_control("test", Limits::default()).unwrap();
    let path = std::env::temp_dir().join(format!("longwire-router-{}.sock", std::process::id()));
    let admission = Admission::new(Capacity { packets: 1000, cycles: 1_000_000 });
    let listener = Listener::open(&path, punt.control_sender(1000), admission).unwrap();
    listener
        .expect(attachment, ExpectedProcess { name: "test".into(), limits: Limits::default(), promise: None })
        .unwrap();
    let mut rig = Rig::new();
    rig.router.set_levels(punt);
    let fid = install(&mut rig, PASS, attachment);
    assert!(matches!(rig.send(SECOND, 1, &udp(64, 53, &[1; 4]))[..], [Seen::Out(2, _)]), "nobody is there");

    let mut time = SECOND;
    let mut until = |rig: &mut Rig, is_taken: bool| {
        let begin = time;
        while rig.router.levels().unwrap().is_taken(attachment) != is_taken {
            assert!(time < begin + PATIENCE * 10_000_000);
            time += 10_000_000;
            assert_eq!(rig.wait(time), []);
            std::thread::yield_now();
        }
        time
    };
    let hello = Hello { name: "test".into(), packets: 100, cycles: 100, share: 1 };
    let mut control = Control::connect(&path, &hello).unwrap();
    let now = until(&mut rig, true);
    assert_eq!(rig.send(now, 1, &udp(64, 53, &[1; 4])), [Seen::Kept]);
    let Some(Event::Packet(facts, head)) = control.next().unwrap() else { panic!("it went up") };
    assert_eq!(
        (facts.class.fid, facts.in_port, facts.time, head),
        (fid.0, 1, now, &udp(64, 53, &[1; 4])[..])
    );
    let token = facts.token;
    assert!(control.answer(token, Verdict::Pass, &[]).unwrap());
    control.flush();
    assert!(matches!(rig.wait(now + 100_000)[..], [Seen::Out(2, _)]));

    rig.send(now + 200_000, 1, &udp(64, 53, &[1; 4]));
    drop(control);
    let mut seen = Vec::new();
    let mut tries = 0;
    while seen.is_empty() {
        assert!(tries < PATIENCE);
        tries += 1;
        // A nanosecond per poll: it is not late enough to be taken back.
        seen = rig.wait(now + 300_000 + tries);
        std::thread::yield_now();
    }
    assert!(matches!(seen[..], [Seen::Out(2, _)]), "it comes back when the process is gone");
    assert!(matches!(rig.send(now + 50_000_000, 1, &udp(64, 53, &[1; 4]))[..], [Seen::Out(2, _)]));
    let counts = rig.router.levels().unwrap().counts(attachment);
    assert_eq!((counts.up, counts.verdicts, counts.returned, counts.absent), (2, 1, 1, 2), "{counts:?}");
}

#[test]
fn what_is_not_to_go_on_without_an_answer_is_late_if_nobody_is_there() {
    let mut punt = Punt::new(vec![1, 2, 3]);
    let attachment = punt.add_control("test", Limits { drops: true, ..Limits::default() }).unwrap();
    let mut rig = Rig::new();
    rig.router.set_levels(punt);
    install(&mut rig, PASS, attachment);
    assert_eq!(rig.send(SECOND, 1, &udp(64, 53, &[1; 4])), [Seen::Dropped(DropReason::LevelLate)]);
}

#[test]
fn a_full_process_refuses_before_the_empty_program_and_behind_others() {
    // The empty program, and an equivalent longer one: outcomes and counters are equal.
    for (name, code) in [("early", PASS), ("late", "r1 = 0\n r0 = 2\n exit")] {
        let mut punt = Punt::new(vec![1, 2, 3]);
        let limits = Limits { packets: 16, ..Limits::default() };
        let attachment = punt.add_control("test", limits).unwrap();
        let path = std::env::temp_dir().join(format!("longwire-router-{name}-{}.sock", std::process::id()));
        let admission = Admission::new(Capacity { packets: 1000, cycles: 1_000_000 });
        let listener = Listener::open(&path, punt.control_sender(1000), admission).unwrap();
        listener.expect(attachment, ExpectedProcess { name: "test".into(), limits, promise: None }).unwrap();
        let mut rig = Rig::new();
        rig.router.set_levels(punt);
        let fid = install(&mut rig, code, attachment);
        let hello = Hello { name: "test".into(), packets: 1000, cycles: 1000, share: 1 };
        let _silent = Control::connect(&path, &hello).unwrap();
        let mut now = SECOND;
        while !rig.router.levels().unwrap().is_taken(attachment) {
            assert!(now < SECOND + PATIENCE * 10_000_000, "nobody was let in");
            now += 10_000_000;
            rig.wait(now);
            std::thread::yield_now();
        }
        let frames: Vec<_> = (0..20).map(|_| (now, 1, udp(64, 53, &[1; 4]))).collect();
        let mut expected = vec![Seen::Kept; 16];
        expected.extend([const { Seen::Dropped(DropReason::LevelFull) }; 4]);
        assert_eq!(rig.batch(&frames), expected, "{name}");
        let counts = rig.router.levels().unwrap().counts(attachment);
        assert_eq!((counts.up, counts.full, counts.over_rate), (16, 4, 0), "{name}");
        let stats = rig.router.forwarders().forwarder(fid).unwrap().stats();
        assert_eq!((stats.packets, stats.passed), (20, 20), "{name}");
        assert!(matches!(rig.send(now, 1, &udp(64, 80, &[0; 4]))[..], [Seen::Out(2, _)]), "{name}");
    }
}

#[test]
fn packets_of_a_batch_go_up_in_their_order_whatever_their_programs_say() {
    let (mut rig, tells) = with_service();
    let long = install_for(&mut rig, 53, "r1 = 0\n r0 = 2\n exit", AttachmentId::slow(0));
    let empty = install_for(&mut rig, 54, PASS, AttachmentId::slow(0));
    let frames: Vec<_> = [53, 54, 53, 54, 53, 54, 53, 54]
        .into_iter()
        .map(|port| (SECOND, 1, udp(64, port, &[0; 4])))
        .collect();
    // One is served, and four wait.
    let mut expected = vec![Seen::Kept; 5];
    expected.extend([const { Seen::Dropped(DropReason::LevelFull) }; 3]);
    assert_eq!(rig.batch(&frames), expected);
    assert_eq!(rig.wait(SECOND + 5000), [const { Seen::Dropped(DropReason::Service) }; 5]);
    let fids: Vec<_> = tells.try_iter().map(|facts| facts.class.fid).collect();
    assert_eq!(fids, [long.0, empty.0, long.0, empty.0, long.0]);
}
