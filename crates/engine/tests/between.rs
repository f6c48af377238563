//! Packets that cross between workers, with both kinds of rings: in simulated time results are identical, in
//! real time every loss is counted.

use crate::support::TestBed;
use longwire_block::{Port, PortError, PortStats, Stamp};
use longwire_engine::{Report, RingKind, TO_THE_END};
use longwire_packet::{Batch, Pool};
use longwire_port::driver::memory::{FarEnd, MemoryPort};
use longwire_units::Nanos;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// From ports 0 and 1 to port 2 over two links, one of them shared. With several workers, each link is on
/// another one; the ports are on the first.
const BED: TestBed = TestBed {
    links: &[
        &[("loss", "5 %"), ("delay", "1 ms"), ("rate", "100 Mbit/s"), ("queue", "100 packets")],
        &[("delay", "2 ms"), ("duplicate", "10 %")],
        &[("delay", "1 ms"), ("rate", "50 Mbit/s"), ("queue", "60 packets")],
    ],
    routes: &[((0, 2), &[0, 2]), ((1, 2), &[1, 2])],
    workers: 1,
    pool_bytes: 8 << 20,
    lead: Nanos::from_millis(1),
};
const EACH: u32 = 200;

fn ports(stamp: Stamp) -> (Vec<Box<dyn Port>>, Vec<FarEnd>) {
    let pair = |name| MemoryPort::pair(name, stamp, 512, 1 << 17);
    let (ports, ends): (Vec<_>, Vec<_>) = ["p0", "p1", "p2"].map(pair).into_iter().unzip();
    (ports.into_iter().map(|port| Box::new(port) as Box<dyn Port>).collect(), ends)
}

fn frame(to: u8, from: u8, number: u32) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from, 0x88, 0xb5][..], &number.to_be_bytes(), &[0; 600]].concat()
}

/// Departure time of each frame, and its bytes.
fn simulated(workers: u32, between: RingKind) -> (Report, Vec<(Nanos, Vec<u8>)>) {
    let (ports, mut ends) = ports(Stamp::Source);
    assert!(ends[2].push_at(Nanos(1), &frame(0, 2, 0)));
    for number in 0..EACH {
        for from in [0, 1] {
            let time = Nanos(1_000_000 + u64::from(number / 10) * 500_000);
            assert!(ends[usize::from(from)].push_at(time, &frame(2, from, number)));
        }
    }
    let mut setup = TestBed { workers, ..BED }.setup(ports);
    setup.between = between;
    let report = setup.simulate(TO_THE_END);
    assert!(report.is_conserved() && report.errors.is_empty(), "{report:?}");
    let out = std::iter::from_fn(|| ends[2].take()).map(|f| (f.facts.time, f.bytes)).collect();
    (report, out)
}

#[test]
fn the_trace_is_the_same_in_simulated_time() {
    let (one, expected) = simulated(1, RingKind::Private);
    let lost: u64 = one.links.iter().map(|link| link.stats.dropped()).sum();
    assert!(expected.len() > 100 && lost > 10, "{} left, {lost} were dropped", expected.len());
    for workers in [2, 3] {
        for between in [RingKind::Private, RingKind::Shared] {
            let (report, out) = simulated(workers, between);
            assert!(report.flow.handed_over > 100, "{workers} workers");
            assert!(out == expected, "{workers} workers, {between:?}");
            let stats =
                |report: &Report| report.links.iter().map(|link| link.stats.clone()).collect::<Vec<_>>();
            assert_eq!(stats(&report), stats(&one), "{workers} workers, {between:?}");
        }
    }
}

#[test]
fn nothing_is_lost_uncounted_in_real_time() {
    for workers in [2, 3] {
        for between in [RingKind::Private, RingKind::Shared] {
            let (ports, mut ends) = ports(Stamp::Poll);
            let mut setup = TestBed { workers, ..BED }.setup(ports);
            (setup.between, setup.wait) = (between, longwire_engine::Wait::Sleep);
            let run = setup.start();
            let remote = run.remote();
            let taken = |at_least: u64| {
                let begun = Instant::now();
                while remote.flow().unwrap().0.taken < at_least {
                    assert!(begun.elapsed() < Duration::from_secs(60), "{workers} workers, {between:?}");
                    std::thread::yield_now();
                }
            };
            assert!(ends[2].push(&frame(0, 2, 0)));
            taken(1);
            for number in 0..EACH {
                for from in [0, 1] {
                    assert!(ends[usize::from(from)].push(&frame(2, from, number)));
                }
            }
            taken(1 + 2 * u64::from(EACH));
            let report = run.stop();
            let what = format!("{workers} workers, {between:?}: {report:?}");
            assert!(report.is_conserved() && report.errors.is_empty(), "{what}");
            assert_eq!(report.flow.taken, 1 + 2 * u64::from(EACH), "{what}");
            assert_eq!(report.flow.handed_over, report.flow.received, "{what}");
        }
    }
}

/// A port with a fault that shows at its first frame.
struct FaultyPort;

impl Port for FaultyPort {
    fn name(&self) -> &'static str {
        "p0"
    }

    fn describe(&self) -> String {
        "faulty".into()
    }

    fn stamp(&self) -> Stamp {
        Stamp::Source
    }

    fn receive(&mut self, _: &mut Pool, now: Nanos, _: &mut Batch) -> Result<(), PortError> {
        panic!("a fault of a driver at {now}");
    }

    fn transmit(&mut self, pool: &mut Pool, batch: &Batch) -> Result<(), PortError> {
        pool.free_batch(batch);
        Ok(())
    }

    fn next_arrival(&mut self) -> Option<Nanos> {
        Some(Nanos::from_millis(3))
    }

    fn stats(&self) -> PortStats {
        PortStats::default()
    }
}

#[test]
fn a_worker_that_panics_ends_a_simulated_run_of_several() {
    for workers in [2, 3] {
        let (mut ports, mut ends) = ports(Stamp::Source);
        ports[0] = Box::new(FaultyPort);
        assert!(ends[2].push_at(Nanos(1), &frame(0, 2, 0)));
        let setup = TestBed { workers, ..BED }.setup(ports);
        let (ended, end) = mpsc::channel();
        std::thread::spawn(move || {
            let _ = ended.send(setup.simulate(TO_THE_END));
        });
        let report = end.recv_timeout(Duration::from_secs(60)).expect("the others wait for it");
        assert!(report.errors.iter().any(|error| error.contains("a worker panicked")), "{report:?}");
    }
}
