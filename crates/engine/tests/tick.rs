//! Departures at the ticks of a coarse clock, and the resulting lateness.

use crate::support::TestBed;
use longwire_block::{Port, Stamp};
use longwire_engine::{Report, TO_THE_END, Tolerance};
use longwire_port::driver::memory::{FarEnd, MemoryPort};
use longwire_units::Nanos;
use std::time::{Duration, Instant};

const BED: TestBed = TestBed {
    links: &[&[("rate", "8 Mbit/s"), ("delay", "1 ms")], &[("delay", "2 ms")]],
    routes: &[((0, 1), &[0, 1])],
    workers: 1,
    pool_bytes: 8 << 20,
    lead: Nanos::from_millis(1),
};

fn ports() -> (Vec<Box<dyn Port>>, Vec<FarEnd>) {
    let pair = |name| MemoryPort::pair(name, Stamp::Source, 512, 1 << 17);
    let (ports, ends): (Vec<_>, Vec<_>) = ["p0", "p1"].map(pair).into_iter().unzip();
    (ports.into_iter().map(|port| Box::new(port) as Box<dyn Port>).collect(), ends)
}

fn frame(to: u8, from: u8) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from, 0x88, 0xb5][..], &[0; 982]].concat()
}

/// Frames of 1000 bytes at 1, 1, 1 and 6 ms, through both links: without a tick they leave at 5, 6, 7 and 10
/// ms.
fn run(workers: u32, tick: Nanos) -> (Vec<u64>, Report) {
    let (ports, mut ends) = ports();
    assert!(ends[1].push_at(Nanos(1), &frame(1, 1)));
    for ms in [1, 1, 1, 6] {
        assert!(ends[0].push_at(Nanos::from_millis(ms), &frame(1, 0)));
    }
    let mut setup = TestBed { workers, ..BED }.setup(ports);
    setup.tolerance = Tolerance { tick, ..Tolerance::default() };
    let report = setup.simulate(TO_THE_END);
    assert!(report.is_conserved() && report.errors.is_empty(), "{report:?}");
    let left = std::iter::from_fn(|| ends[1].take()).map(|frame| frame.facts.time.0);
    (left.collect(), report)
}

#[test]
fn leaves_at_the_next_tick_in_virtual_time() {
    let us = Nanos::from_micros;
    for (tick, left, late) in [
        (Nanos::ZERO, [5_000, 6_000, 7_000, 10_000], 0),
        (us(122), [5_002, 6_100, 7_076, 10_004], 100),
        (us(4_000), [8_000, 8_000, 8_000, 12_000], 3_000),
    ] {
        for workers in [1, 2] {
            let (times, report) = run(workers, tick);
            assert_eq!(times, left.map(|us: u64| us * 1000), "tick {tick}, {workers} workers");
            let fidelity = report.fidelity.unwrap();
            assert_eq!(fidelity.lateness.all.max, us(late), "tick {tick}");
            // The port's worker keeps the lateness of its own links only.
            if workers == 1 {
                let links = report.links.iter().map(|link| link.stats.max_late);
                assert_eq!(links.max(), Some(us(late)), "tick {tick}");
            }
            assert_eq!(fidelity.faithful, late <= 100, "{:?}", fidelity.causes);
            if late > 100 {
                assert!(fidelity.causes[0].contains("ticks of 4 ms"), "{:?}", fidelity.causes);
            }
        }
    }
}

/// On the machine's clock no packet leaves before its tick, and packets that wait when the run ends are
/// dropped as stopped.
#[test]
fn waits_for_the_tick_in_real_time() {
    let (ports, mut ends) = ports();
    let mut setup = BED.setup(ports);
    let tick = Nanos::from_millis(40);
    setup.tolerance = Tolerance { tick, ..Tolerance::default() };
    let run = setup.start();
    let begun = Instant::now();
    assert!(ends[1].push(&frame(1, 1)));
    assert!(ends[0].push(&frame(1, 0)));
    let frame = loop {
        if let Some(frame) = ends[1].take() {
            break frame;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "nothing comes");
        std::thread::yield_now();
    };
    let left = frame.facts.time.since(run.started());
    assert!(left > Nanos::ZERO && left.0.is_multiple_of(tick.0), "as in virtual time: {left}");
    let (_, at) = run.remote().flow().unwrap();
    // The frame takes 4 ms through the links, so it can't leave at the beginning.
    assert!(at.since(run.started()) >= tick, "{}", at.since(run.started()));
    let report = run.stop();
    assert!(report.is_conserved(), "{report:?}");
    assert_eq!(report.flow.sent, 1);
}
