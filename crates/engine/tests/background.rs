//! Background traffic of links without packets: it continues until the run ends.

use crate::support::TestBed;
use longwire_block::{Port, Stamp, Values};
use longwire_engine::{Report, TO_THE_END};
use longwire_link::MEDIA;
use longwire_port::driver::memory::{FarEnd, MemoryPort};
use longwire_units::Nanos;
use std::time::{Duration, Instant};

/// From port 0 to port 1: 996 bytes and the FCS are sent in 1 ms and travel 1 ms, then 2 ms; on the second
/// link, and on the third, which no packet takes, a background packet of 1000 bytes comes every 4 ms from 0
/// on, and its transmission takes no time.
const BED: TestBed = TestBed {
    links: &[
        &[("rate", "8 Mbit/s"), ("delay", "1 ms")],
        &[("delay", "2 ms"), ("background", "2 Mbit/s")],
        &[("background", "2 Mbit/s")],
    ],
    routes: &[((0, 1), &[0, 1]), ((1, 0), &[2, 0])],
    workers: 1,
    pool_bytes: 8 << 20,
    lead: Nanos::from_millis(1),
};

fn ports() -> (Vec<Box<dyn Port>>, Vec<FarEnd>) {
    let pair = |name| MemoryPort::pair(name, Stamp::Source, 512, 1 << 17);
    let (ports, ends): (Vec<_>, Vec<_>) = ["p0", "p1"].map(pair).into_iter().unzip();
    (ports.into_iter().map(|port| Box::new(port) as Box<dyn Port>).collect(), ends)
}

/// Counters of a run in which one frame comes at 1 ms, and leaves at 5.
fn counted(workers: u32, until: Nanos) -> Report {
    let (ports, mut ends) = ports();
    let frame =
        |to: u8, from: u8| [&[2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from, 0x88, 0xb5][..], &[0; 982]].concat();
    assert!(ends[1].push_at(Nanos(1), &frame(1, 1)));
    assert!(ends[0].push_at(Nanos::from_millis(1), &frame(1, 0)));
    let report = TestBed { workers, ..BED }.setup(ports).simulate(until);
    assert!(report.is_conserved() && report.errors.is_empty(), "{report:?}");
    report
}

#[test]
fn is_counted_up_to_the_end_whatever_the_number_of_workers() {
    let ms = Nanos::from_millis;
    // At 0, 4, 8, … ms; without a stated end the run ends when the frame leaves.
    for (until, sent, background) in
        [(TO_THE_END, 1, 2), (ms(20), 1, 6), (ms(5), 1, 2), (ms(4), 0, 2), (ms(3), 0, 1)]
    {
        for workers in [1, 2, 3] {
            let report = counted(workers, until);
            let made = report.links.iter().map(|link| link.stats.made_packets);
            let consumed = report.links.iter().map(|link| link.stats.consumed_packets);
            let what = format!("until {until}, {workers} workers");
            assert_eq!(report.flow.sent, sent, "{what}");
            assert_eq!(made.collect::<Vec<_>>(), [0, background, background], "{what}");
            assert_eq!(consumed.collect::<Vec<_>>(), [0, background, background], "{what}");
        }
    }
}

/// In real time a link without packets is still served, by itself or at a shared medium. The end of the run
/// shows it: packets held then are counted, and those that have not come yet never are.
#[test]
fn comes_in_real_time_without_any_packet() {
    let half_duplex = MEDIA.iter().find(|spec| spec.kind == "half-duplex").unwrap();
    let rate = Values::read(half_duplex, &[("rate", "1 Gbit/s")]).unwrap();
    for shared in [false, true] {
        let (ports, _ends) = ports();
        let mut setup = BED.setup(ports);
        if shared {
            setup.workers[0].links.add_medium("air", (half_duplex, &rate), &[(1, "1"), (2, "2")]);
        }
        let run = setup.start();
        let (begun, long) = (Instant::now(), Nanos::from_millis(50));
        loop {
            // The worker answers after it has served what was due.
            let (_, at) = run.remote().flow().unwrap();
            if at.since(run.started()) >= long {
                break;
            }
            assert!(begun.elapsed() < Duration::from_secs(20), "the run does not go on");
            std::thread::yield_now();
        }
        let report = run.stop();
        assert!(report.is_conserved(), "{report:?}");
        // At least all packets up to 1 ms before: at 0, 4, … 48 ms. None comes before its time.
        let most = report.elapsed.0 / 4_000_000 + 1;
        for link in &report.links[1..] {
            let made = link.stats.made_packets;
            assert!((13..=most).contains(&made), "{made} of {most}, on a medium: {shared}");
        }
    }
}
