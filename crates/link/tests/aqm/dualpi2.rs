//! DualPI2 (RFC 9332): effects of overload on each queue.

use super::bench::{Bench, ECT_0, ECT_1, MS, NOT_ECT, SECOND, Steady, send};

fn bytes(bench: &Bench, flow: u16, from: u64) -> f64 {
    let of = bench.left.iter().filter(|left| left.flow == flow && left.leave > from);
    of.map(|left| left.bytes).sum::<u64>() as f64
}

/// An unresponsive low-latency flow takes all it can; the classic queue keeps its tenth of the 10 Mbit/s, or
/// the configured share.
#[test]
fn the_classic_queue_is_protected() {
    for (protection, part) in [("10 %", 0.1), ("30 %", 0.3)] {
        // Too many of both, and nothing is dropped.
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

/// Three packets at once, the first of which is sent at once: low latency precedes classic. The classic
/// queue's credit is forgotten while the link is idle, so that the next three are treated the same.
#[test]
fn an_idle_link_forgets_the_credit() {
    let mut bench = Bench::new("dualpi2", &[], "10 Mbit/s");
    for at in [MS, 100 * MS] {
        for (flow, field) in [(3, NOT_ECT), (2, NOT_ECT), (1, ECT_1)] {
            bench.arrive(at, flow, field, 1000);
        }
    }
    bench.advance(SECOND);
    let flows: Vec<_> = bench.left.iter().map(|left| left.flow).collect();
    assert_eq!(flows, [3, 1, 2, 3, 1, 2]);
}

/// With a coupling of a half coupled marking never exceeds 50 %, but with a target of zero and without
/// decrease p' reaches 1 in its second update and stays there: then no classic packet passes, ECN-capable or
/// not, and every second low-latency one is marked.
#[test]
fn overload_without_coupled_overload_drops_classic_packets() {
    let given = [("coupling", "0.5"), ("target", "0 ms"), ("alpha", "100"), ("beta", "0")];
    let mut bench = Bench::new("dualpi2", &given, "10 Mbit/s");
    let mut flows = [Steady::new(1, ECT_1, 1000, 1_000_000, 0), Steady::new(2, ECT_0, 1000, 20_000_000, 0)];
    send(&mut bench, &mut flows, 10 * SECOND);
    let late: Vec<_> = bench.left.iter().filter(|left| left.arrival > 100 * MS).collect();
    assert!(late.len() > 1200 && late.iter().all(|left| left.flow == 1), "{}", late.len());
    assert!(late.windows(2).all(|two| two[0].marked != two[1].marked));
}

/// With a single low-latency flow that is slightly too fast, every packet is marked from the step on, and
/// none below.
#[test]
fn the_step_marks() {
    let given = [("alpha", "0"), ("beta", "0"), ("step", "5 ms")];
    let mut bench = Bench::new("dualpi2", &given, "10 Mbit/s");
    send(&mut bench, &mut [Steady::new(1, ECT_1, 1000, 11_000_000, 0)], SECOND);
    assert!(bench.left.len() > 1000);
    for left in &bench.left {
        // 0.8 ms of that is its own transmission.
        let waited = left.leave - left.arrival - 800_000;
        assert_eq!(left.marked, waited >= 5_000_000, "{waited}");
    }
}

/// Two unresponsive flows with twice the link's rate: p' rises until overload, and both are dropped,
/// ECN-capable or not, so that the delay is about the target.
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
