//! Nodes whose packets go up, in an engine: packets that are up are counted, inline at exact times, and with
//! a process beside the worker.

use crate::support::TestBed;
use longwire_block::{KEPT, Node, OUTBOX, Outbox, Port, Stamp};
use longwire_clock::monotonic;
use longwire_engine::{NodeRef, Setup, TO_THE_END};
use longwire_packet::{Batch, Handle, Pool};
use longwire_port::driver::memory::{FarEnd, MemoryPort};
use longwire_punt::client::{Control, Event, Hello};
use longwire_punt::{
    Admission, AttachmentId, Capacity, Class, ExpectedProcess, Inline, InlineService, Limits, Listener,
    OfferError, Punt, PuntedPacket, Service, ServiceOutput, Turns, Verdict,
};
use longwire_units::Nanos;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A link of 1 ms each way between ports 0 and 1.
const BED: TestBed = TestBed {
    links: &[&[("delay", "1 ms")], &[("delay", "1 ms")]],
    routes: &[((0, 1), &[0]), ((1, 0), &[1])],
    workers: 1,
    pool_bytes: 8 << 20,
    lead: Nanos::from_millis(1),
};

/// A node that sends packets whose first byte is odd up, and all others straight across.
struct Above {
    punt: Punt,
    attachment: AttachmentId,
    passed: Vec<Handle>,
}

impl Above {
    fn new(punt: Punt, attachment: AttachmentId) -> Self {
        Self { punt, attachment, passed: Vec::with_capacity(OUTBOX) }
    }

    fn collect(&mut self, pool: &mut Pool, now: Nanos, out: &mut Outbox) {
        self.punt.collect(pool, now, out, &mut self.passed);
        for handle in self.passed.drain(..) {
            let meta = pool.meta(handle);
            let (in_port, arrival) = (meta.in_port, meta.arrival);
            out.at(Nanos(arrival));
            out.put(pool, handle, 1 - in_port);
        }
    }
}

impl Node for Above {
    fn forward(&mut self, pool: &mut Pool, batch: &Batch, out: &mut Outbox) {
        let mut now = Nanos::ZERO;
        for &handle in batch.as_slice() {
            let goes_up = pool.data(handle)[0] & 1 == 1;
            now = Nanos(pool.meta(handle).arrival);
            let offered = match goes_up {
                true => self.punt.offer(pool, handle, self.attachment, &Class::default()),
                false => Err(OfferError::Gone),
            };
            let meta = pool.meta_mut(handle);
            match offered {
                Ok(()) => meta.out_port = KEPT,
                Err(OfferError::Gone) => meta.out_port = 1 - meta.in_port,
                Err(OfferError::Full) => longwire_block::refuse(meta, longwire_block::DropReason::LevelFull),
                Err(OfferError::Absent) => {
                    longwire_block::refuse(meta, longwire_block::DropReason::LevelLate);
                }
            }
        }
        self.punt.flush(now);
        if self.punt.deadline() <= now {
            self.collect(pool, now, out);
        }
    }

    fn ports(&self) -> &[u16] {
        &[0, 1]
    }

    fn deadline(&self) -> Nanos {
        self.punt.deadline()
    }

    fn tick(&mut self, pool: &mut Pool, now: Nanos, out: &mut Outbox) {
        self.collect(pool, now, out);
    }

    fn kept(&self) -> u64 {
        self.punt.kept()
    }
}

fn setup(node: impl Node + 'static, workers: u32, stamp: Stamp) -> (Setup, Vec<FarEnd>) {
    let pair = |name| MemoryPort::pair(name, stamp, 4096, 1 << 20);
    let (ports, ends): (Vec<_>, Vec<_>) = ["p0", "p1"].map(pair).into_iter().unzip();
    let ports = ports.into_iter().map(|port| Box::new(port) as Box<dyn Port>).collect();
    let mut setup = TestBed { workers, ..BED }.setup(ports);
    setup.workers[0].nodes[0] = Box::new(node);
    (setup, ends)
}

struct ByByte;

impl Service for ByByte {
    fn handle(&mut self, packet: &mut PuntedPacket<'_>, _made: &mut ServiceOutput) -> Verdict {
        match packet.bytes()[1] {
            0 => Verdict::Drop,
            1 => Verdict::Pass,
            _ => Verdict::Send { port: packet.facts().in_port, band: None },
        }
    }
}

fn frame(first: u8, second: u8) -> Vec<u8> {
    let mut frame = vec![7; 60];
    (frame[0], frame[1]) = (first, second);
    frame
}

#[test]
fn in_virtual_time_a_service_takes_its_declared_time() {
    for workers in [1, 2] {
        let service = InlineService {
            name: "by byte".into(),
            service: Box::new(ByByte),
            time: Nanos::from_millis(3),
            weight: 1,
            limits: Limits { packets: 3, answer_within: Nanos::from_millis(100), ..Limits::default() },
        };
        let turns = Turns::new("sfq").unwrap();
        let punt = Punt::simulated(vec![0, 1], Inline::new(vec![service], turns));
        let (setup, mut ends) = setup(Above::new(punt, AttachmentId::slow(0)), workers, Stamp::Source);
        // Passed, sent back, dropped, passed, no room; and one that is not for the service.
        for (first, second) in [(1, 1), (1, 2), (1, 0), (1, 1), (1, 1), (0, 0)] {
            assert!(ends[0].push_at(Nanos::from_millis(10), &frame(first, second)));
        }
        let report = setup.simulate(TO_THE_END);
        assert!(report.is_conserved() && report.errors.is_empty(), "{report:?}");
        let mut times = |port: usize| {
            let frames = std::iter::from_fn(|| ends[port].take());
            frames.map(|frame| frame.facts.time.0 / 1_000_000).collect::<Vec<_>>()
        };
        // A millisecond after their release: at 10, 13 and 22 ms. What goes back takes no link.
        assert_eq!((times(1), times(0)), (vec![11, 14, 23], vec![16]), "{workers} workers");
        let drops = [longwire_block::DropReason::LevelFull, longwire_block::DropReason::Service];
        assert_eq!(drops.map(|reason| report.flow.dropped(reason)), [1, 1]);
    }
}

/// Sends back everything until `stop`.
fn echo(path: &std::path::Path, stop: &AtomicBool) {
    let hello = Hello { name: "echo".into(), packets: 100_000, cycles: 100, share: 1 };
    let mut control = Control::connect(path, &hello).unwrap();
    while !stop.load(Ordering::Relaxed) {
        let mut tokens = Vec::new();
        while let Some(event) = control.next().unwrap() {
            if let Event::Packet(facts, _) = event {
                tokens.push(facts.token);
            }
        }
        for token in tokens {
            assert!(control.answer(token, Verdict::Send { port: 1, band: None }, &[0xee]).unwrap());
        }
        control.wait(Duration::from_millis(10)).unwrap();
    }
}

#[test]
fn in_real_time_a_process_decides_and_regular_packets_pass_by() {
    let mut punt = Punt::new(vec![0, 1]);
    let minute = Nanos::from_secs(60);
    let limits = Limits { answer_within: minute, patience: minute, ..Limits::default() };
    let attachment = punt.add_control("echo", limits).unwrap();
    let path = std::env::temp_dir().join(format!("longwire-engine-{}.sock", std::process::id()));
    let admission = Admission::new(Capacity { packets: 100_000, cycles: 100_000_000 });
    let listener = Listener::open(&path, punt.control_sender(100_000), admission).unwrap();
    listener.expect(attachment, ExpectedProcess { name: "echo".into(), limits, promise: None }).unwrap();
    let (setup, mut ends) = setup(Above::new(punt, attachment), 1, Stamp::Poll);
    let run = setup.start();
    let stop = AtomicBool::new(false);
    let begin = Instant::now();
    std::thread::scope(|scope| {
        let echo = scope.spawn(|| echo(&path, &stop));
        let (mut regular, mut echoed) = (0, 0);
        while regular < 1000 || echoed < 1000 {
            assert!(begin.elapsed() < Duration::from_secs(60), "{regular} regular, {echoed} echoed");
            // Packets without room come later.
            ends[0].push(&frame(0, 0));
            ends[0].push(&frame(1, 0));
            while let Some(frame) = ends[1].take() {
                match frame.bytes[0] {
                    0xee => echoed += 1,
                    0 => regular += 1,
                    // Before the process came, or when its guarantee was used up.
                    _ => {}
                }
            }
            std::thread::yield_now();
        }
        stop.store(true, Ordering::Relaxed);
        echo.join().unwrap();
    });
    let report = run.stop();
    assert!(report.is_conserved() && report.errors.is_empty(), "{report:?}");
    drop(listener);
}

/// A service that polls every 5 ms, and records when.
struct Looking {
    next: Nanos,
    looks: Arc<Mutex<Vec<Nanos>>>,
}

const EVERY: Nanos = Nanos::from_millis(5);

impl Node for Looking {
    fn forward(&mut self, _: &mut Pool, _: &Batch, _: &mut Outbox) {}

    fn ports(&self) -> &[u16] {
        &[0, 1]
    }

    fn deadline(&self) -> Nanos {
        self.next
    }

    fn tick(&mut self, _: &mut Pool, now: Nanos, _: &mut Outbox) {
        self.looks.lock().unwrap().push(now);
        self.next = now + EVERY;
    }
}

/// A node with an immediate deadline is ticked with the current time, and not with one from before the run or
/// before its request: from there it would take step after step, for all the time that the machine has been
/// up.
#[test]
fn at_once_is_no_time_of_long_ago() {
    let looks = Arc::new(Mutex::new(Vec::new()));
    let (mut setup, _ends) = setup(Looking { next: Nanos::ZERO, looks: Arc::clone(&looks) }, 1, Stamp::Poll);
    (0..2).for_each(|port| setup.map.inner_ports.take_turns(port, true));
    setup.workers[0].flat = false;
    let before = monotonic();
    let run = setup.start();
    let since = |count: usize| {
        let begin = Instant::now();
        while looks.lock().unwrap().len() < count {
            assert!(begin.elapsed() < Duration::from_secs(60), "it is never told the time");
            std::thread::yield_now();
        }
        looks.lock().unwrap().clone()
    };
    assert!(since(1)[0] >= before, "{:?} before the run", before.since(since(1)[0]));
    let (asked, had) = run
        .remote()
        .at_node(NodeRef { worker: 0, place: 0 }, |node: &mut Looking, now| {
            node.next = Nanos::ZERO;
            (now, node.looks.lock().unwrap().len())
        })
        .unwrap();
    let looked = since(had + 2);
    run.stop();
    assert!(looked[had] >= asked, "{:?} before it was asked", asked.since(looked[had]));
    assert!(looked[had + 1] >= looked[had] + EVERY);
}
