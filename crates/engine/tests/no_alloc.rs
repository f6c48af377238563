//! No allocations on the packet path during a run.
#![forbid(unsafe_code)]

mod support;

use longwire_block::{Port, PortError, PortStats, Stamp};
use longwire_packet::{Batch, CountingAllocator, Gso, Pool, Train, allocations};
use longwire_units::Nanos;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use support::TestBed;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Allocations of a worker's thread half-way and at the end, and the times of both.
#[derive(Default)]
struct Marks {
    half: AtomicU64,
    end: AtomicU64,
}

/// Never a count.
const UNSET: u64 = u64::MAX;

/// A port that sends frames every few microseconds, and records its thread's allocations.
struct Feeder {
    frames: Vec<(Vec<u8>, u16)>,
    cursor: usize,
    stamp: Stamp,
    next: Nanos,
    /// Times of the two marks, from the first poll on.
    marks_at: [Nanos; 2],
    marks: Arc<Marks>,
    stats: PortStats,
}

const EVERY: Nanos = Nanos::from_micros(25);
const BURST: usize = 8;
const PORTS: u8 = 4;

fn mac(port: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, port]
}

/// Frames for the other ports, for unknown stations, for broadcast, and trains with segments of the second
/// number.
fn frames(from: u8) -> Vec<(Vec<u8>, u16)> {
    let frame = |destination: [u8; 6], payload: usize, mss| {
        let mut frame = vec![0u8; 54 + payload];
        frame[..6].copy_from_slice(&destination);
        frame[6..12].copy_from_slice(&mac(from));
        frame[12..15].copy_from_slice(&[8, 0, 0x45]);
        frame[16..18].copy_from_slice(&((40 + payload) as u16).to_be_bytes());
        frame[23] = 6;
        frame[46] = 0x50;
        (frame, mss)
    };
    let mut frames = vec![frame([0xff; 6], 10, 0), frame(mac(0x77), 300, 0)];
    for round in 0..6 {
        for to in (0..PORTS).filter(|&to| to != from) {
            frames.extend([
                frame(mac(to), round * 271, 0),
                frame(mac(to), 1000 + round * 3000, 1000),
                frame(mac(to), 6, 0),
            ]);
        }
    }
    frames
}

impl Feeder {
    fn ports(stamp: Stamp, halves: Nanos) -> (Vec<Box<dyn Port>>, Arc<Marks>) {
        let marks = Arc::new(Marks { half: AtomicU64::new(UNSET), end: AtomicU64::new(UNSET) });
        let port = |from| {
            Box::new(Self {
                frames: frames(from),
                cursor: 0,
                stamp,
                next: Nanos::ZERO,
                marks_at: [halves, halves + halves],
                marks: Arc::clone(&marks),
                stats: PortStats::default(),
            }) as Box<dyn Port>
        };
        let ports = (0..PORTS).map(port).collect();
        (ports, marks)
    }

    fn mark(&self, now: Nanos) {
        for (at, mark) in self.marks_at.iter().zip([&self.marks.half, &self.marks.end]) {
            if now >= *at && mark.load(Ordering::Relaxed) == UNSET {
                mark.store(allocations(), Ordering::Release);
            }
        }
    }
}

impl Port for Feeder {
    fn name(&self) -> &str {
        "feeder"
    }

    fn describe(&self) -> String {
        "feeder".into()
    }

    fn stamp(&self) -> Stamp {
        self.stamp
    }

    fn receive(&mut self, pool: &mut Pool, now: Nanos, batch: &mut Batch) -> Result<(), PortError> {
        if self.next == Nanos::ZERO {
            self.next = now + EVERY;
            self.marks_at.iter_mut().for_each(|at| *at += now);
        }
        self.mark(now);
        if self.next > now || self.marks.end.load(Ordering::Relaxed) != UNSET {
            return Ok(());
        }
        self.next = now + EVERY;
        for _ in 0..BURST {
            let (frame, mss) = &self.frames[self.cursor];
            self.cursor = (self.cursor + 1) % self.frames.len();
            let Some(handle) = pool.insert(frame) else {
                self.stats.in_pool_full += 1;
                continue;
            };
            let meta = pool.meta_mut(handle);
            meta.arrival = now.0;
            let payload = frame.len() - 54;
            if *mss > 0 && payload > usize::from(*mss) {
                let (segments, gso_size) = (payload.div_ceil(usize::from(*mss)) as u16, *mss);
                meta.set_train(Train { gso: Gso::TcpV4 as u8, segments, gso_size, header_len: 54 });
            }
            self.stats.in_frames += u64::from(meta.segments);
            batch.push(handle);
        }
        Ok(())
    }

    fn transmit(&mut self, pool: &mut Pool, batch: &Batch) -> Result<(), PortError> {
        for &handle in batch.as_slice() {
            self.stats.out_frames += u64::from(pool.meta(handle).segments);
            pool.free(handle);
        }
        Ok(())
    }

    fn next_arrival(&mut self) -> Option<Nanos> {
        match (self.stamp, self.marks.end.load(Ordering::Relaxed)) {
            (Stamp::Source, UNSET) => Some(self.next),
            (Stamp::Source, _) => Some(Nanos::NEVER),
            _ => None,
        }
    }

    fn stats(&self) -> PortStats {
        self.stats
    }
}

/// Links that lose, delay, overflow and split trains; 0 to 1 is one of them, 0 to 2 three in a row, 0 to 3
/// none.
const BED: TestBed = TestBed {
    links: &[
        &[("rate", "100 Mbit/s"), ("queue", "40 packets"), ("delay", "1 ms"), ("loss", "5 %")],
        &[("rate", "2 Gbit/s"), ("queue", "64 kB"), ("delay", "300 us"), ("mtu", "1200")],
        &[("loss", "30 %"), ("delay", "2 ms")],
        &[("rate", "20 Gbit/s"), ("delay", "100 us"), ("queue", "1 ms")],
    ],
    routes: &[
        ((0, 1), &[0]),
        ((1, 0), &[1]),
        ((0, 2), &[2, 3, 1]),
        ((2, 0), &[1, 2]),
        ((1, 2), &[3]),
        ((2, 3), &[2]),
        ((3, 1), &[3, 0]),
    ],
    workers: 1,
    pool_bytes: 64 << 20,
    lead: Nanos::from_micros(100),
};

const FLAT: TestBed =
    TestBed { routes: &[((0, 1), &[0]), ((1, 0), &[1]), ((0, 2), &[2]), ((2, 3), &[3])], ..BED };
const TWO_WORKERS: TestBed = TestBed { workers: 2, ..BED };

/// Allocations of the ports' thread in the second half of a run.
fn allocated(marks: &Marks) -> u64 {
    let half = marks.half.load(Ordering::Acquire);
    assert!((1..UNSET).contains(&half), "what a worker is made of was not counted");
    marks.end.load(Ordering::Acquire) - half
}

fn is_busy(report: &longwire_engine::Report) {
    assert!(report.is_conserved(), "{report:?}");
    let dropped: u64 = report.links.iter().map(|link| link.stats.dropped()).sum();
    assert!(report.flow.sent > 1000 && report.flow.made > 100 && dropped > 100, "{report:?}");
}

#[test]
fn none_in_real_time() {
    for (name, bed) in [("flat", FLAT), ("several hops", BED), ("two workers", TWO_WORKERS)] {
        let (ports, marks) = Feeder::ports(Stamp::Poll, Nanos::from_millis(300));
        let run = bed.setup(ports).start();
        let begun = Instant::now();
        while marks.end.load(Ordering::Acquire) == UNSET {
            assert!(begun.elapsed() < Duration::from_secs(20) && !run.has_ended(), "{name} does not go on");
            std::thread::yield_now();
        }
        is_busy(&run.stop());
        assert_eq!(allocated(&marks), 0, "{name}");
    }
}

#[test]
fn none_in_simulated_time() {
    for (name, bed) in [("flat", FLAT), ("several hops", BED)] {
        let (ports, marks) = Feeder::ports(Stamp::Source, Nanos::from_millis(100));
        is_busy(&bed.setup(ports).simulate(Nanos(u64::MAX - 1)));
        assert_eq!(allocated(&marks), 0, "{name}");
    }
}
