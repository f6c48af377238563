//! Services on the slow path: on their thread, and in line.
#![forbid(unsafe_code)]

mod support;

use longwire_punt::{
    Cut, FairTime, Inline, InlineService, Limits, Made, Punt, Punted, SeatId, Service, Slow, Verdict, Waiting,
};
use longwire_units::Nanos;
use std::sync::mpsc;
use support::Below;

/// Does what the first byte says.
struct Obedient;

impl Service for Obedient {
    fn handle(&mut self, packet: &mut Punted<'_>, made: &mut Made) -> Verdict {
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
            _ => panic!("a service may be wrong"),
        }
    }
}

/// Waits for a word with each packet.
struct Waits(mpsc::Receiver<()>);

impl Service for Waits {
    fn handle(&mut self, _packet: &mut Punted<'_>, _made: &mut Made) -> Verdict {
        match self.0.recv() {
            Ok(()) | Err(mpsc::RecvError) => Verdict::Drop,
        }
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

#[test]
fn a_service_drops_passes_changes_and_makes() {
    for waiting in [Waiting::Polling, Waiting::Woken] {
        let mut punt = Punt::new(vec![0, 1]);
        let seat = punt.add_service("obedient", patient());
        let share = Box::new(FairTime::new(&[1]));
        let slow = Slow::start(&mut punt, vec![(seat, Box::new(Obedient))], share, waiting).unwrap();
        let mut below = Below::new(punt);
        below.until(|_| (), |below| below.punt.is_taken(seat));
        for len in (60..65_000).step_by(1300) {
            for order in 0..4 {
                below.offer(seat, &frame(order, len)).unwrap();
                below.until(|_| (), |below| below.punt.kept() == 0);
            }
        }
        let counts = below.punt.counts(seat);
        assert_eq!(below.up, counts.verdicts);
        assert_eq!(
            below.sends,
            counts.made + below.sent.iter().filter(|(_, frame)| frame[0] == 2).count() as u64
        );
        assert!(
            below.sent.iter().all(|(port, frame)| *port == 1 && (frame[0] == 8 || frame.last() == Some(&99)))
        );
        assert!(below.passes > 0 && below.drops > 0 && counts.made > 0);
        // A packet to a port that the node has not is a fault for each.
        assert_eq!(counts.faults, counts.made);
        drop(slow);
    }
}

#[test]
fn a_service_that_panics_is_cut_off_and_others_go_on() {
    let mut punt = Punt::new(vec![0, 1]);
    let (bad, good) = (punt.add_service("bad", patient()), punt.add_service("good", patient()));
    let services: Vec<(SeatId, Box<dyn Service>)> =
        vec![(bad, Box::new(Obedient)), (good, Box::new(Obedient))];
    let _slow = Slow::start(&mut punt, services, Box::new(FairTime::new(&[1, 1])), Waiting::Woken).unwrap();
    let mut below = Below::new(punt);
    below.until(|_| (), |below| below.punt.is_taken(bad) && below.punt.is_taken(good));
    for order in [1, 4, 1] {
        below.offer(bad, &frame(order, 60)).unwrap();
    }
    below.until(|_| (), |below| below.gone == 0 && below.punt.kept() == 0);
    let counts = below.punt.counts(bad);
    assert_eq!(
        (counts.last_cut, counts.returned + counts.verdicts, below.passes),
        (Some(Cut::Panicked), 3, 3)
    );
    assert!(below.offer(bad, &frame(1, 60)).is_err());
    below.offer(good, &frame(2, 60)).unwrap();
    below.until(|_| (), |below| below.sends == 1);
}

#[test]
fn a_full_service_leaves_another_alone() {
    let mut punt = Punt::new(vec![0, 1]);
    let limits = Limits { packets: 64, ..patient() };
    let (full, free) = (punt.add_service("full", limits), punt.add_service("free", patient()));
    // The first holds up the thread for a while; its packets fill its own ring only.
    let (word, wait) = mpsc::channel();
    let services: Vec<(SeatId, Box<dyn Service>)> =
        vec![(full, Box::new(Waits(wait))), (free, Box::new(Obedient))];
    let slow = Slow::start(&mut punt, services, Box::new(FairTime::new(&[1, 1])), Waiting::Woken).unwrap();
    let mut below = Below::new(punt);
    below.until(|_| (), |below| below.punt.is_taken(full) && below.punt.is_taken(free));
    for _ in 0..100 {
        // Those for which there is no room are counted.
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
fn in_line_each_packet_takes_its_service_the_declared_time() {
    let service = |us, weight| InlineService {
        service: Box::new(Obedient),
        time: Nanos::from_micros(us),
        weight,
        packets: 4,
    };
    let inline = Inline::new(vec![service(10, 1), service(20, 1)]);
    let mut below = Below::new(Punt::simulated(vec![0, 1], inline));
    let (first, second) = (Punt::inline_seat(0), Punt::inline_seat(1));
    let at = Nanos::from_micros;
    // Four for the first and two for the second, all at 100 µs: served 1 2 1 1 2 1, for what costs half has two turns for one.
    for (seat, order) in [(first, 2), (first, 1), (first, 2), (first, 0), (second, 2), (second, 3)] {
        below.offer_at(at(100), seat, &frame(order, 60)).unwrap();
    }
    // (deadline, what it is: sent or passed or dropped, all together after it)
    let table = [
        (110, (1, 0, 0)),
        (130, (2, 0, 0)),
        (140, (2, 1, 0)),
        (150, (3, 1, 0)),
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
