//! Services on the slow path: on their thread, and inline.
#![forbid(unsafe_code)]

mod support;

use longwire_punt::{
    AttachmentId, COPIED_LINE, Counts, CutReason, Inline, InlineService, Limits, Punt, PuntedPacket, Service,
    ServiceOutput, ServiceThread, TRIP, Turns, Verdict, WaitMode,
};
use longwire_units::Nanos;
use std::sync::mpsc;
use std::time::Instant;
use support::{Below, PATIENCE};

/// Obeys a packet's first byte.
struct Obedient;

impl Service for Obedient {
    fn handle(&mut self, packet: &mut PuntedPacket<'_>, made: &mut ServiceOutput) -> Verdict {
        assert_eq!((packet.facts().class.fid, packet.facts().len as usize), (5, packet.bytes().len()));
        match packet.bytes()[0] {
            0 => Verdict::Drop,
            1 => Verdict::Pass,
            2 => {
                let last = packet.bytes().len() - 1;
                packet.bytes_mut()[last] = 99;
                Verdict::Send { port: 1, band: None }
            }
            3 => {
                made.send(1, &[8; 100]);
                made.send(77, &[8; 100]);
                Verdict::Drop
            }
            4 => {
                made.send(1, &[9; 100]);
                panic!("a service may be wrong, and late")
            }
            _ => panic!("a service may be wrong"),
        }
    }
}

/// Changes each packet, and sends it out of a port that does not exist.
struct Astray;

impl Service for Astray {
    fn handle(&mut self, packet: &mut PuntedPacket<'_>, _made: &mut ServiceOutput) -> Verdict {
        packet.bytes_mut()[0] = 9;
        Verdict::Send { port: 77, band: None }
    }
}

/// Waits for a message for each packet.
struct Waits(mpsc::Receiver<()>);

impl Service for Waits {
    fn handle(&mut self, _packet: &mut PuntedPacket<'_>, _made: &mut ServiceOutput) -> Verdict {
        match self.0.recv() {
            Ok(()) | Err(mpsc::RecvError) => Verdict::Drop,
        }
    }
}

/// Reports each packet, and waits for a message.
struct Tells(mpsc::Sender<()>, mpsc::Receiver<()>);

impl Service for Tells {
    fn handle(&mut self, _packet: &mut PuntedPacket<'_>, _made: &mut ServiceOutput) -> Verdict {
        self.0.send(()).unwrap();
        self.1.recv().unwrap();
        Verdict::Drop
    }
}

fn patient() -> Limits {
    Limits { answer_within: Nanos::from_secs(60), patience: Nanos::from_secs(60), ..Limits::default() }
}

fn frame(order: u8, len: usize) -> Vec<u8> {
    let mut frame = vec![7; len];
    frame[0] = order;
    frame
}

fn turns() -> Turns {
    Turns::new("sfq").unwrap()
}

/// Starts a thread with these services.
fn started(
    punt: &mut Punt,
    services: Vec<(AttachmentId, Limits, Box<dyn Service>)>,
    waiting: WaitMode,
) -> ServiceThread {
    let mut slow = ServiceThread::start(punt.service_sender(), turns(), waiting).unwrap();
    for (attachment, limits, service) in services {
        slow.attach(attachment, &limits, service).unwrap();
    }
    slow
}

#[test]
fn a_service_drops_passes_changes_and_makes() {
    for waiting in [WaitMode::Polling, WaitMode::Woken] {
        let mut punt = Punt::new(vec![0, 1]);
        let attachment = punt.add_service("obedient", patient()).unwrap();
        let slow = started(&mut punt, vec![(attachment, patient(), Box::new(Obedient))], waiting);
        let mut below = Below::new(punt);
        below.until(|_| (), |below| below.punt.is_taken(attachment));
        for len in (60..65_000).step_by(1300) {
            for order in 0..4 {
                below.offer(attachment, &frame(order, len)).unwrap();
                below.until(|_| (), |below| below.punt.kept() == 0);
            }
        }
        let counts = below.punt.counts(attachment);
        assert_eq!(below.up, counts.verdicts);
        assert_eq!(
            below.sends,
            counts.made + below.sent.iter().filter(|(_, frame)| frame[0] == 2).count() as u64
        );
        assert!(
            below.sent.iter().all(|(port, frame)| *port == 1 && (frame[0] == 8 || frame.last() == Some(&99)))
        );
        assert!(below.passes > 0 && below.drops > 0 && counts.made > 0);
        // A packet to a port that the node does not have is a fault.
        assert_eq!(counts.faults, counts.made);
        drop(slow);
    }
}

#[test]
fn a_service_that_panics_is_cut_off_and_others_go_on() {
    let mut punt = Punt::new(vec![0, 1]);
    let [bad, good] = ["bad", "good"].map(|name| punt.add_service(name, patient()).unwrap());
    let services: Vec<(AttachmentId, Limits, Box<dyn Service>)> =
        vec![(bad, patient(), Box::new(Obedient)), (good, patient(), Box::new(Obedient))];
    let _slow = started(&mut punt, services, WaitMode::Woken);
    let mut below = Below::new(punt);
    below.until(|_| (), |below| below.punt.is_taken(bad) && below.punt.is_taken(good));
    for order in [1, 4, 1] {
        below.offer(bad, &frame(order, 60)).unwrap();
    }
    below.until(|_| (), |below| below.gone == 0 && below.punt.kept() == 0);
    let counts = below.punt.counts(bad);
    assert_eq!(
        (counts.last_cut, counts.returned + counts.verdicts, below.passes),
        (Some(CutReason::Panicked), 3, 3)
    );
    assert!(below.offer(bad, &frame(1, 60)).is_err());
    below.offer(good, &frame(2, 60)).unwrap();
    below.until(|_| (), |below| below.sends > 0);
    // What the other had made before is nobody's.
    assert_eq!((below.sends, below.punt.counts(good).made), (1, 0));
}

#[test]
fn a_full_service_leaves_another_alone() {
    let mut punt = Punt::new(vec![0, 1]);
    let limits = Limits { packets: 64, ..patient() };
    let full = punt.add_service("full", limits).unwrap();
    let free = punt.add_service("free", patient()).unwrap();
    // The first blocks the thread for a while; its packets only fill its own ring.
    let (word, wait) = mpsc::channel();
    let services: Vec<(AttachmentId, Limits, Box<dyn Service>)> =
        vec![(full, limits, Box::new(Waits(wait))), (free, patient(), Box::new(Obedient))];
    let slow = started(&mut punt, services, WaitMode::Woken);
    let mut below = Below::new(punt);
    below.until(|_| (), |below| below.punt.is_taken(full) && below.punt.is_taken(free));
    for _ in 0..100 {
        // Packets without room are counted.
        let _ = below.offer(full, &frame(0, 60));
    }
    assert_eq!((below.up, below.full), (64, 36));
    for _ in 0..500 {
        below.offer(free, &frame(2, 60)).unwrap();
    }
    (0..64).for_each(|_| word.send(()).unwrap());
    below.until(|_| (), |below| below.punt.kept() == 0);
    assert_eq!((below.drops, below.sends), (64, 500));
    drop((word, slow));
}

#[test]
fn a_service_does_not_see_packets_for_which_too_little_time_is_left() {
    let mut punt = Punt::new(vec![0, 1]);
    let attachment = punt.add_service("swamped", patient()).unwrap();
    let ((tell, told), (word, wait)) = (mpsc::channel(), mpsc::channel());
    let service = Box::new(Tells(tell, wait));
    let slow = started(&mut punt, vec![(attachment, patient(), service)], WaitMode::Woken);
    let mut below = Below::new(punt);
    below.until(|_| (), |below| below.punt.is_taken(attachment));
    let at = Nanos::from_secs;
    (0..3).for_each(|_| below.offer_at(at(100), attachment, &frame(1, 60)).unwrap());
    below.turn_at(at(100));
    told.recv_timeout(PATIENCE).unwrap();
    // While it handles the first, less than a quarter of the other two's minute is left.
    below.turn_at(at(146));
    word.send(()).unwrap();
    let begin = Instant::now();
    while below.punt.kept() > 0 {
        assert!(begin.elapsed() < PATIENCE);
        below.turn_at(at(147));
        std::thread::yield_now();
    }
    let Counts { verdicts, late, faults, cut, .. } = below.punt.counts(attachment);
    assert_eq!((verdicts, late, faults, cut), (1, 2, 0, 0));
    assert_eq!((below.drops, below.passes, told.try_recv().is_err()), (1, 2, true));
    drop((slow, word));
}

#[test]
fn in_line_each_packet_takes_its_service_the_declared_time() {
    let service = |us, weight| InlineService {
        name: "obedient".into(),
        service: Box::new(Obedient),
        time: Nanos::from_micros(us),
        weight,
        limits: Limits { packets: 4, ..Limits::default() },
    };
    let inline = Inline::new(vec![service(10, 1), service(20, 1)], turns());
    let mut below = Below::new(Punt::simulated(vec![0, 1], inline));
    let (first, second) = (AttachmentId::slow(0), AttachmentId::slow(1));
    let at = Nanos::from_micros;
    // Four for the first and two for the second, all at 100 µs. Starts by accumulated cost: 0 10 20 30 and 0
    // 20; ties by waiting time: 1 2 1 2 1 1.
    for (attachment, order) in [(first, 2), (first, 1), (first, 2), (first, 0), (second, 2), (second, 3)] {
        below.offer_at(at(100), attachment, &frame(order, 60)).unwrap();
    }
    // (deadline, then the totals: sent or passed or dropped)
    let table = [
        (110, (1, 0, 0)),
        (130, (2, 0, 0)),
        (140, (2, 1, 0)),
        (160, (3, 1, 1)),
        (170, (4, 1, 1)),
        (180, (4, 1, 2)),
    ];
    for (micros, (sends, passes, drops)) in table {
        assert_eq!(below.punt.deadline(), at(micros));
        below.turn_at(at(micros) - Nanos(1));
        below.turn_at(at(micros));
        assert_eq!((below.sends, below.passes, below.drops), (sends, passes, drops), "at {micros} µs");
    }
    assert_eq!(below.punt.deadline(), Nanos::NEVER);
    // Four wait and one is served; the sixth finds no room.
    let offered: Vec<_> = (0..6).map(|_| below.offer_at(at(200), first, &frame(0, 60)).is_ok()).collect();
    assert_eq!(offered, [true, true, true, true, true, false]);
    assert_eq!(below.punt.kept(), 5);
    below.turn_at(at(1000));
    assert_eq!((below.punt.kept(), below.punt.counts(first).full), (0, 1));
}

#[test]
fn in_line_moving_packets_takes_no_more_than_its_part_of_the_worker() {
    let service = |reserved| InlineService {
        name: "obedient".into(),
        service: Box::new(Obedient),
        time: Nanos::ZERO,
        weight: 1,
        limits: Limits { reserved, ..Limits::default() },
    };
    // A hundredth of the worker is set aside, half of it guaranteed to the second: 12 500 packets a second of
    // 400 ns. The rest is shared.
    let inline = Inline::new(vec![service(0), service(12_500 * TRIP)], turns());
    let mut punt = Punt::simulated(vec![0, 1], inline);
    punt.set_aside(None, Some(10_000_000));
    let mut below = Below::new(punt);
    let (flooded, promised) = (AttachmentId::slow(0), AttachmentId::slow(1));
    // A second of a million packets for the first, and 12 500 for the second.
    let mut refused = 0;
    for us in 1..=1_000_000 {
        let now = Nanos::from_micros(us);
        refused += u64::from(below.offer_at(now, flooded, &frame(1, 60)).is_err());
        if us % 80 == 0 {
            below.offer_at(now, promised, &frame(1, 60)).unwrap();
        }
        below.turn_at(now);
    }
    let counts = [flooded, promised].map(|attachment| below.punt.counts(attachment));
    assert_eq!(counts.map(|counts| counts.over_time), [refused, 0]);
    // 12 500, and the initial 10 ms.
    assert_eq!(counts.map(|counts| counts.up), [12_625, 12_500]);
    assert_eq!(counts.map(|counts| counts.worker_ns), [12_625 * TRIP, 12_500 * TRIP]);
    // New packets and bytes use it, too: a trip and a line for each of 100 bytes.
    let second = Nanos::from_secs(2);
    below.offer_at(second, flooded, &frame(3, 65)).unwrap();
    below.turn_at(second);
    let used = below.punt.counts(flooded).worker_ns - 12_625 * TRIP;
    assert_eq!(used, TRIP + COPIED_LINE + 2 * (TRIP + COPIED_LINE));
}

/// A verdict without a port passes the packet with its changes, as a valid one may.
#[test]
fn a_changed_packet_for_no_port_keeps_its_original_beginning() {
    let service = InlineService {
        name: "astray".into(),
        service: Box::new(Astray),
        time: Nanos(1000),
        weight: 1,
        limits: Limits::default(),
    };
    let inline = Inline::new(vec![service], turns());
    let (attachment, mut below) = (AttachmentId::slow(0), Below::new(Punt::simulated(vec![0, 1], inline)));
    below.offer_at(Nanos(10), attachment, &frame(1, 60)).unwrap();
    below.turn_at(Nanos(1010));
    let original: Vec<u8> = below.punt.rewritten().iter().map(|(_, line)| line[0]).collect();
    assert_eq!((below.passes, below.punt.counts(attachment).faults, original), (1, 1, vec![1]));
}

#[test]
fn in_line_packets_that_can_not_be_done_in_time_are_taken_back() {
    let at = Nanos::from_millis;
    // (answers within, drops, (ms, verdicts, late) for five packets at 0 of 10 ms each)
    type Steps = &'static [[u64; 3]];
    let table: [(u64, bool, Steps); 5] = [
        (60, false, &[[10, 1, 0], [20, 2, 0], [30, 3, 0], [40, 4, 0], [50, 5, 0]]),
        // A packet not begun by 15 ms can't be finished by 25.
        (25, false, &[[10, 1, 0], [15, 1, 3], [20, 2, 3]]),
        (25, true, &[[10, 1, 0], [15, 1, 3], [20, 2, 3]]),
        // A verdict in time is executed, and the second is begun in time.
        (20, false, &[[10, 1, 3], [20, 2, 3]]),
        // None ever can.
        (5, false, &[[0, 0, 5]]),
    ];
    for (within, drops, steps) in table {
        let limits = Limits { answer_within: at(within), drops, ..Limits::default() };
        let inline = Inline::new(vec![in_line(at(10), limits)], turns());
        let (attachment, mut below) =
            (AttachmentId::slow(0), Below::new(Punt::simulated(vec![0, 1], inline)));
        (0..5).for_each(|_| below.offer_at(at(0), attachment, &frame(2, 60)).unwrap());
        for &[ms, verdicts, late] in steps {
            assert_eq!(below.punt.deadline(), at(ms), "{within} ms");
            below.turn_at(at(ms));
            let counts = below.punt.counts(attachment);
            assert_eq!((counts.verdicts, counts.late, counts.faults), (verdicts, late, 0), "at {ms} ms");
            let (passed, dropped) = if drops { (0, late) } else { (late, 0) };
            assert_eq!((below.sends, below.passes, below.drops), (verdicts, passed, dropped));
            assert_eq!(below.punt.kept(), 5 - verdicts - late);
        }
        assert_eq!((below.punt.deadline(), below.punt.counts(attachment).cut), (Nanos::NEVER, 0));
        assert!(
            below.offer_at(at(100), attachment, &frame(2, 60)).is_ok() && below.punt.is_taken(attachment)
        );
    }
}

fn in_line(time: Nanos, limits: Limits) -> InlineService {
    InlineService { name: "slow".into(), service: Box::new(Obedient), time, weight: 1, limits }
}

/// For a second each of these services gets a packet every given number of microseconds, from 0 on, with this
/// time limit; then the rest is waited for. Returns each service's verdicts and late packets.
fn swamped(services: &[(u64, u64)], within: Nanos) -> Vec<[u64; 2]> {
    let limits = Limits { answer_within: within, drops: true, ..Limits::default() };
    let inline = services.iter().map(|&(takes, _)| in_line(Nanos::from_micros(takes), limits)).collect();
    let mut below = Below::new(Punt::simulated(vec![0, 1], Inline::new(inline, turns())));
    for us in 0..1_000_000 {
        for (number, (_, every)) in services.iter().enumerate() {
            if us % every == 0 {
                below.turn_at(Nanos::from_micros(us));
                below.offer_at(Nanos::from_micros(us), AttachmentId::slow(number), &frame(0, 60)).unwrap();
            }
        }
    }
    below.turn_at(Nanos::from_secs(2));
    assert_eq!((below.punt.kept(), below.full, below.gone), (0, 0, 0));
    let counts = (0..services.len()).map(|number| below.punt.counts(AttachmentId::slow(number)));
    counts.map(|counts| [counts.verdicts, counts.late]).collect()
}

#[test]
fn in_line_a_swamped_service_answers_as_many_as_it_can() {
    let ms = Nanos::from_millis;
    // 120 µs each, one every 100 µs: of 10 000 the last comes at 999.9 ms and must begin by 1019.78. The
    // server is never idle until then: it begins one at each multiple of 120 µs, 0 to 8498.
    assert_eq!(swamped(&[(120, 100)], ms(20)), [[8499, 1501]]);
    // Twice its capacity, and 5 ms: the last must begin by 1004.85 ms, at the multiples 0 to 10 048 of 100
    // µs.
    assert_eq!(swamped(&[(100, 50)], ms(5)), [[10_049, 9951]]);
    // Not swamped.
    assert_eq!(swamped(&[(100, 100)], ms(5)), [[10_000, 0]]);
}

#[test]
fn in_line_a_swamped_service_takes_nothing_from_another_and_keeps_its_share() {
    // Both 100 µs each with equal weights, which is 5000 a second; one gets 20 000, the other 4000. The last
    // of the first must begin by 1019.85 ms, at the multiples 0 to 10 198 of 100 µs; 4000 of these are the
    // other's, and 6199 its own.
    let had = swamped(&[(100, 50), (100, 250)], Nanos::from_millis(20));
    assert_eq!(had, [[6199, 13_801], [4000, 0]]);
    // Both are overloaded: each has half of them; the first has the odd one.
    let had = swamped(&[(100, 50), (100, 50)], Nanos::from_millis(20));
    assert_eq!(had, [[5100, 14_900], [5099, 14_901]]);
}

#[test]
fn attachments_are_removed_and_made_again_while_packets_are_up() {
    let mut punt = Punt::new(vec![0, 1]);
    let first = punt.add_service("first", patient()).unwrap();
    let (word, wait) = mpsc::channel();
    let mut slow = started(&mut punt, vec![(first, patient(), Box::new(Waits(wait)))], WaitMode::Woken);
    let mut below = Below::new(punt);
    below.until(|_| (), |below| below.punt.is_taken(first));
    for _ in 0..3 {
        below.offer(first, &frame(1, 60)).unwrap();
    }
    below.turn();
    below.punt.remove(first);
    // Its packets go to the default forwarder; its number is not reused before.
    let other = below.punt.add_service("other", patient()).unwrap();
    assert_ne!(other, first);
    assert!(below.offer(first, &frame(1, 60)).is_err());
    below.until(|_| (), |below| below.punt.kept() == 0);
    assert_eq!((below.passes, below.punt.attachments().count()), (3, 1));
    drop(word);
    assert_eq!(below.punt.add_service("second", patient()), Some(first));
    slow.attach(first, &patient(), Box::new(Obedient)).unwrap();
    below.until(|_| (), |below| below.punt.is_taken(first));
    below.offer(first, &frame(2, 60)).unwrap();
    below.until(|_| (), |below| below.sends == 1);
    for number in 2..64 {
        assert_eq!(below.punt.add_service("more", patient()), Some(AttachmentId::slow(number)));
    }
    assert_eq!(below.punt.add_service("too many", patient()), None);
}
