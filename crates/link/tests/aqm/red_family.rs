//! RED and its descendants on a link.

use super::bench::{Bench, ECT_0, MS, NOT_ECT, SECOND, Steady, send};
use std::collections::BTreeMap;

/// Packets of each flow sent and received.
fn fates(bench: &mut Bench, flows: &mut [Steady], until: u64) -> BTreeMap<u16, (u64, u64)> {
    let sent: Vec<_> = flows.iter().map(|flow| (flow.flow, flow.next)).collect();
    send(bench, flows, until);
    bench.advance(until + 10 * SECOND);
    let mut fates = BTreeMap::new();
    for ((flow, from), now) in sent.into_iter().zip(flows.iter()) {
        let got = bench.left.iter().filter(|left| left.flow == flow).count() as u64;
        fates.insert(flow, ((now.next - from) / now.gap, got));
    }
    fates
}

/// Half as much again as the link can send: a third must go. Gaps uniform on 1 … 1/p_b are (1/p_b + 1)/2
/// long, so that p_b = 0.2, which is at 15 + (0.2 − 0.1)/0.9 · 15 = 16.7 packets. Marks do not help against
/// this flow, and the queue grows until all is dropped, at 30.
#[test]
fn red_holds_the_queue() {
    for (marks, field, packets) in [("no", NOT_ECT, 16.7), ("yes", ECT_0, 30.0)] {
        let mut bench = Bench::new("red", &[("ecn", marks)], "10 Mbit/s");
        send(&mut bench, &mut [Steady::new(1, field, 1000, 15_000_000, 0)], 20 * SECOND);
        let stats = bench.stats(20 * SECOND);
        assert_eq!(stats.dropped(), bench.dropped(20 * SECOND, "aqm"));
        assert_eq!(stats.marked_packets > 10_000, marks == "yes", "{stats:?}");
        let late: Vec<_> = bench.left.iter().filter(|left| left.arrival > 5 * SECOND).collect();
        let sum: u64 = late.iter().map(|left| left.leave - left.arrival).sum();
        // A packet takes 0.8 ms, and finds on average half of the one being sent.
        let mean = sum as f64 / late.len() as f64 / 800_000.0 - 0.5;
        assert!((mean - packets).abs() < 1.0, "ecn {marks}: {mean} packets");
    }
}

/// Twice the rate, half of it In: within the link's rate In loses nothing, while Out loses the excess.
#[test]
fn rio_drops_out_before_in() {
    for (given, field) in [(&[][..], 10 << 2), (&[("in", "ef")], 46 << 2)] {
        let mut bench = Bench::new("rio", given, "10 Mbit/s");
        let mut flows = [
            Steady::new(1, field, 1000, 8_000_000, 0),
            Steady::new(2, 12 << 2, 1000, 6_000_000, 0),
            Steady::new(3, 0, 1000, 6_000_000, 0),
        ];
        let fates = fates(&mut bench, &mut flows, 10 * SECOND);
        assert_eq!(fates[&1].0, fates[&1].1, "In loses nothing: {fates:?}");
        let (sent, got) = (fates[&2].0 + fates[&3].0, fates[&2].1 + fates[&3].1);
        let share = got as f64 / sent as f64;
        assert!((share - 2.0 / 12.0).abs() < 0.01, "Out gets what is left: {share}");
    }
    // When In alone exceeds the rate, it is dropped too.
    let mut bench = Bench::new("rio", &[], "10 Mbit/s");
    let fates = fates(&mut bench, &mut [Steady::new(1, 10 << 2, 1000, 12_000_000, 0)], 10 * SECOND);
    assert!(fates[&1].1 < fates[&1].0 * 9 / 10, "{fates:?}");
}

/// One flow sends twice the rate, nine send a packet every 50 ms. Under RED the nine lose in the same
/// proportion; FRED protects them and limits the first to its share of the queue.
#[test]
fn fred_protects_the_fragile_and_bounds_the_greedy() {
    let run = |kind: &str| {
        let mut bench = Bench::new(kind, &[("min", "10"), ("max", "20")], "10 Mbit/s");
        let mut flows: Vec<_> = (1..10).map(|n| Steady::new(n, NOT_ECT, 1000, 160_000, 0)).collect();
        flows.push(Steady::new(10, NOT_ECT, 1000, 20_000_000, 0));
        let fates = fates(&mut bench, &mut flows, 20 * SECOND);
        let (sent, got) = (1..10).map(|n| fates[&n]).fold((0, 0), |(s, g), (sent, got)| (s + sent, g + got));
        let longest = bench.left.iter().map(|left| left.leave - left.arrival).max().unwrap();
        (1.0 - got as f64 / sent as f64, longest)
    };
    let (red, _) = run("red");
    let (fred, longest) = run("fred");
    assert!(red > 0.2, "RED: {red}");
    assert_eq!(fred, 0.0, "FRED");
    // At most ten of the greedy flow's packets wait, and one of each other.
    assert!(longest <= 19 * 800_000, "{longest}");
}

/// Thirty flows send three packets each at once, far more than `max`: each gets two, and loses the third.
#[test]
fn fred_gives_each_of_many_flows_two_packets() {
    let given = [("min", "2"), ("max", "4"), ("weight", "1"), ("flows", "65536")];
    let mut bench = Bench::new("fred", &given, "10 Mbit/s");
    for _ in 0..3 {
        for flow in 1..=30 {
            bench.arrive(MS, flow, NOT_ECT, 1000);
        }
    }
    assert_eq!((bench.stats(MS).queued_packets, bench.dropped(MS, "aqm")), (60, 30));
}

/// Above a third of its limit SRED drops with 15 % if flows are many, and with far less for a few.
#[test]
fn sred_drops_by_the_number_of_flows() {
    let mut shares = Vec::new();
    for flows in [4u16, 1000] {
        let mut bench = Bench::new("sred", &[("limit", "90 packets")], "10 Mbit/s");
        // 8 % more than the link sends: without early drops the queue is full.
        let rate = 10_800_000 / u64::from(flows);
        let mut flows: Vec<_> = (1..=flows).map(|n| Steady::new(n, NOT_ECT, 1000, rate, 0)).collect();
        send(&mut bench, &mut flows, 40 * SECOND);
        let (aqm, full) = (bench.dropped(40 * SECOND, "aqm"), bench.dropped(40 * SECOND, "queue-full"));
        shares.push(aqm as f64 / (aqm + full) as f64);
    }
    assert!(shares[0] < 0.2 && shares[1] > 0.95, "few flows fill the queue, many are held below: {shares:?}");
}

/// Head drop: with room for ten, a burst of thirty leaves the first, which is being sent, and the last nine.
#[test]
fn head_drop_keeps_the_newest() {
    for (limit, kept) in [("10 packets", 9), ("10 kB", 9), ("8 ms", 9), ("1 packets", 0)] {
        let mut bench = Bench::new("head-drop", &[("limit", limit)], "10 Mbit/s");
        for _ in 0..30 {
            bench.arrive(MS, 1, NOT_ECT, 1000);
        }
        bench.advance(SECOND);
        let numbers: Vec<_> = bench.left.iter().map(|left| left.number).collect();
        let wanted: Vec<_> = std::iter::once(0).chain(30 - kept..30).collect();
        assert_eq!(numbers, wanted, "{limit}");
        assert_eq!(bench.dropped(SECOND, "queue-full"), 29 - kept);
    }
    for (limit, left) in [("0 packets", 0), ("999 B", 0), ("1 ns", 1)] {
        let mut bench = Bench::new("head-drop", &[("limit", limit)], "10 Mbit/s");
        bench.arrive(MS, 1, NOT_ECT, 1000);
        bench.advance(SECOND);
        assert_eq!(bench.left.len(), left, "{limit}");
    }
}
