//! CoDel (RFC 8289): drops come at interval/√count, end with the queue, and resume at their rate.

use super::bench::{Bench, ECT_0, MS, NOT_ECT, SECOND};

/// 1000 bytes at 100 Mbit/s.
const SENT: u64 = 80_000;

/// Arrivals exceed the rate by an eighth; the times of drops or marks are recorded.
fn overload(bench: &mut Bench, field: u8, (from, until): (u64, u64)) -> Vec<u64> {
    let hits = |bench: &mut Bench, now| bench.dropped(now, "aqm") + bench.stats(now).marked_packets;
    let (mut times, mut seen) = (Vec::new(), hits(bench, from));
    let mut at = from;
    while at < until {
        bench.arrive(at, 1, field, 1000);
        let now = hits(bench, at);
        times.extend(std::iter::repeat_n(at, (now - seen) as usize));
        (seen, at) = (now, at + SENT * 8 / 9);
    }
    times
}

/// Against Σ 100 ms/√n from the first drop on: each is at the first end of a transmission after its time,
/// seen at the next arrival.
#[test]
fn drops_follow_the_square_root() {
    for (marks, field) in [("no", NOT_ECT), ("yes", ECT_0)] {
        let mut bench = Bench::new("codel", &[("limit", "unlimited"), ("ecn", marks)], "100 Mbit/s");
        let times = overload(&mut bench, field, (0, SECOND));
        // An eighth more than 100 Mbit/s: after 45 ms 5 ms wait, and another 100 ms later the first is
        // dropped.
        assert!((145 * MS..147 * MS).contains(&times[0]), "{}", times[0]);
        assert!(times.len() > 20, "{}", times.len());
        let mut due = times[0] as f64;
        for (number, time) in times.iter().enumerate().skip(1) {
            due += 100e6 / (number as f64).sqrt();
            let late = *time as f64 - due;
            assert!((-(SENT as f64)..2.0 * SENT as f64).contains(&late), "{number}: {late}");
        }
        let stats = bench.stats(SECOND);
        let hits = times.len() as u64;
        let wanted = if marks == "yes" { (hits, 0) } else { (0, hits) };
        assert_eq!((stats.marked_packets, bench.dropped(SECOND, "aqm")), wanted);
    }
}

/// The queue drains, and drops end. A short time later, dropping resumes at the rate it had reached; a long
/// time later, it starts again.
#[test]
fn leaves_and_remembers() {
    for (pause, remembers) in [(100 * MS, true), (3 * SECOND, false)] {
        let mut bench = Bench::new("codel", &[("limit", "unlimited")], "100 Mbit/s");
        let count = overload(&mut bench, NOT_ECT, (0, SECOND)).len() as u64;
        let from = 1100 * MS + pause;
        bench.advance(from);
        let drained = bench.dropped(from, "aqm");
        // Packets still waiting: 110 ms, in which drops come every 100 ms/√n at the closest.
        assert!((count..count + 9).contains(&drained), "{count} {drained}");
        let times = overload(&mut bench, NOT_ECT, (from, from + SECOND));
        let gap = (times[1] - times[0]) as f64;
        // Of n drops since it began, the last count is n, and n − 1 more than at its start.
        let wanted = if remembers { 100e6 / (drained as f64 - 1.0).sqrt() } else { 100e6 };
        assert!((gap - wanted).abs() < 2.0 * SENT as f64, "{pause}: {gap} {wanted}");
    }
}

/// A queue that never exceeds the target for a whole interval is not controlled, and neither is one with a
/// single packet.
#[test]
fn spares_bursts_and_slow_links() {
    let mut bench = Bench::new("codel", &[], "100 Mbit/s");
    for burst in 0..50 {
        for _ in 0..800 {
            bench.arrive(burst * 90 * MS, 1, NOT_ECT, 1000);
        }
    }
    assert_eq!(bench.dropped(5 * SECOND, "aqm"), 0, "64 ms of every 90");
    let mut slow = Bench::new("codel", &[], "64 kbit/s");
    for packet in 0..100 {
        // 125 ms each; the second of a pair waits as long.
        slow.arrive(packet / 2 * 250 * MS, 1, NOT_ECT, 1000);
    }
    slow.advance(100 * SECOND);
    assert_eq!(slow.left.len(), 100);
}
