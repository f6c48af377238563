//! DualPI2 (RFC 9332): what overload does to each queue.

use crate::bench::{Bench, ECT_0, ECT_1, NOT_ECT, SECOND, Steady, send};

fn bytes(bench: &Bench, flow: u16, from: u64) -> f64 {
    let of = bench.left.iter().filter(|left| left.flow == flow && left.leave > from);
    of.map(|left| left.bytes).sum::<u64>() as f64
}

/// A low-latency flow that does not slow down takes all it can; the classic queue keeps its tenth of the 10 Mbit/s, or what is asked.
#[test]
fn the_classic_queue_is_protected() {
    for (protection, part) in [("10 %", 0.1), ("30 %", 0.3)] {
        // Too much of both, and nothing is dropped.
        let given = [("protection", protection), ("limit", "unlimited"), ("alpha", "0"), ("beta", "0")];
        let mut bench = Bench::new("dualpi2", &given, "10 Mbit/s");
        let mut flows =
            [Steady::new(1, ECT_1, 1000, 20_000_000, 0), Steady::new(2, NOT_ECT, 1000, 20_000_000, 0)];
        send(&mut bench, &mut flows, 4 * SECOND);
        let (low, classic) = (bytes(&bench, 1, SECOND), bytes(&bench, 2, SECOND));
        let got = classic / (low + classic);
        assert!((got - part).abs() < 0.01, "{protection}: {got}");
    }
}

/// Of a lone low-latency flow that is a little too fast every packet is marked from the step on, and none that waits less.
#[test]
fn the_step_marks() {
    let given = [("alpha", "0"), ("beta", "0"), ("step", "5 ms")];
    let mut bench = Bench::new("dualpi2", &given, "10 Mbit/s");
    send(&mut bench, &mut [Steady::new(1, ECT_1, 1000, 11_000_000, 0)], SECOND);
    assert!(bench.left.len() > 1000);
    for left in &bench.left {
        // 0.8 ms of it is its own transmission.
        let waited = left.leave - left.arrival - 800_000;
        assert_eq!(left.marked, waited >= 5_000_000, "{waited}");
    }
}

/// Two flows that do not slow down, twice what the link sends: p' rises until the link is overloaded, and both are dropped, ECN-capable or
/// not, so that about the target waits.
#[test]
fn overload_drops_both() {
    for classic in [NOT_ECT, ECT_0] {
        let mut bench = Bench::new("dualpi2", &[("limit", "unlimited")], "10 Mbit/s");
        let mut flows =
            [Steady::new(1, ECT_1, 1000, 10_000_000, 0), Steady::new(2, classic, 1000, 10_000_000, 0)];
        send(&mut bench, &mut flows, 60 * SECOND);
        assert!(bench.dropped(60 * SECOND, "aqm") > 60_000, "half of 150 000, once settled");
        let late: Vec<_> = bench.left.iter().filter(|left| left.leave > 40 * SECOND).collect();
        let wait = late.iter().map(|left| left.leave - left.arrival).max().unwrap();
        assert!(wait < 100_000_000, "{wait}");
        let both = [1, 2].map(|flow| late.iter().filter(|left| left.flow == flow).count());
        assert!(both.iter().all(|&count| count > late.len() / 10), "{both:?}");
    }
}
