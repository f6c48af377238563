//! Fair queueing (RFC 8290): equal shares, no delay for sparse flows, and losses for the largest flows.

use super::bench::{Bench, ECT_0, MS, NOT_ECT, SECOND, Steady, send};
use std::collections::BTreeMap;

const KINDS: [&str; 2] = ["fq-codel", "fq-pie"];

/// Bytes that each flow got through.
fn bytes(bench: &Bench) -> BTreeMap<u16, u64> {
    let mut bytes = BTreeMap::new();
    bench.left.iter().for_each(|left| *bytes.entry(left.flow).or_default() += left.bytes);
    bytes
}

/// Jain's index: 1 if all are equal.
fn jain(shares: &BTreeMap<u16, u64>) -> f64 {
    let sum: f64 = shares.values().map(|&bytes| bytes as f64).sum();
    let squares: f64 = shares.values().map(|&bytes| (bytes as f64).powi(2)).sum();
    sum * sum / (shares.len() as f64 * squares)
}

/// Eight flows of one to eight times 1.5 Mbit/s, in packets of 300 to 1350 bytes, on 10 Mbit/s.
#[test]
fn flows_get_equal_shares() {
    for kind in KINDS {
        let mut bench = Bench::new(kind, &[], "10 Mbit/s");
        let flow = |n: u16| Steady::new(n, NOT_ECT, 150 + 150 * u64::from(n), 1_500_000 * u64::from(n), 0);
        let mut flows: Vec<_> = (1..=8).map(flow).collect();
        send(&mut bench, &mut flows, 20 * SECOND);
        let shares = bytes(&bench);
        assert_eq!(shares.len(), 8);
        assert!(jain(&shares) > 0.99, "{kind}: {shares:?}");
        let total: u64 = shares.values().sum();
        assert!(total > 20 * 10_000_000 / 8 * 99 / 100, "{kind}: the link was busy");
    }
}

/// Four flows fill the link; a fifth sends 200 bytes every 20 ms, and waits at most for the packet being
/// sent.
#[test]
fn sparse_flows_do_not_wait() {
    for kind in KINDS {
        let mut bench = Bench::new(kind, &[], "10 Mbit/s");
        let mut flows: Vec<_> = (1..=4).map(|n| Steady::new(n, NOT_ECT, 1500, 5_000_000, 0)).collect();
        flows.push(Steady::new(9, NOT_ECT, 200, 80_000, 100 * MS));
        send(&mut bench, &mut flows, 10 * SECOND);
        let waits: Vec<_> =
            bench.left.iter().filter(|left| left.flow == 9).map(|left| left.leave - left.arrival).collect();
        assert!(waits.len() >= 494, "{kind}: {}", waits.len());
        // 1500 bytes take 1.2 ms, 200 take 0.16 ms.
        let most = *waits.iter().max().unwrap();
        assert!(most <= 1_200_000 + 160_000, "{kind}: {most}");
        let others = bench.left.iter().filter(|left| left.flow != 9 && left.arrival > 5 * SECOND);
        assert!(others.clone().any(|left| left.leave - left.arrival > 10 * MS), "{kind}: the others wait");
    }
}

/// With room for 60 kB, the flow with four times the rate loses packets; one within its share loses none.
#[test]
fn the_longest_queue_makes_room() {
    for kind in KINDS {
        for limit in
            [[("memory", "60 kB"), ("limit", "unlimited")], [("memory", "1 GB"), ("limit", "60 packets")]]
        {
            let never = [("target", "10 s")];
            let given: Vec<_> = limit.into_iter().chain(never).collect();
            let mut bench = Bench::new(kind, &given, "10 Mbit/s");
            let mut flows =
                [Steady::new(1, NOT_ECT, 1000, 40_000_000, 0), Steady::new(2, NOT_ECT, 1000, 4_000_000, 0)];
            send(&mut bench, &mut flows, 5 * SECOND);
            assert!(bench.dropped(5 * SECOND, "queue-full") > 10_000, "{kind}");
            assert_eq!(bench.dropped(5 * SECOND, "aqm"), 0, "{kind}");
            let polite = bytes(&bench)[&2] / 1000;
            // 2500 were sent; the last of them may still wait.
            assert!((2490..=2500).contains(&polite), "{kind}: {polite}");
        }
    }
}

/// At 500 kbit/s 1500 bytes take 24 ms. Flow 1's first packet has waited that long when it is sent, above the
/// target of 15 ms; its second is dropped when the tenth of the others, which have 1000 bytes each, finds no
/// room. Then the flow is empty, and its probability stays zero.
#[test]
fn a_flow_that_lost_its_last_packet_does_not_wait() {
    let given = [("limit", "12 kB"), ("flows", "65536")];
    let mut bench = Bench::new("fq-pie", &given, "500 kbit/s");
    for flow in [99, 1, 1] {
        bench.arrive(0, flow, NOT_ECT, 1500);
    }
    for flow in 2..12 {
        bench.arrive(25 * MS, flow, NOT_ECT, 1000);
    }
    assert_eq!(bench.dropped(25 * MS, "queue-full"), 1);
    for _ in 0..10 {
        bench.arrive(100 * SECOND, 1, NOT_ECT, 1000);
    }
    bench.advance(101 * SECOND);
    assert_eq!(bench.dropped(101 * SECOND, "aqm"), 0);
    assert_eq!(bench.left.iter().filter(|left| left.flow == 1).count(), 11);
}

/// FQ-CoDel marks by default; FQ-PIE does if configured, before it drops.
#[test]
fn capable_flows_are_marked() {
    for (kind, given) in [("fq-codel", &[][..]), ("fq-pie", &[("ecn", "yes")])] {
        let mut bench = Bench::new(kind, given, "10 Mbit/s");
        let mut flow = [Steady::new(1, ECT_0, 1000, 10_500_000, 0)];
        let mut at = 0;
        while bench.stats(at).marked_packets < 5 {
            at += 10 * MS;
            assert!(at < 5 * SECOND, "{kind}: nothing is marked");
            send(&mut bench, &mut flow, at);
        }
        assert_eq!(bench.dropped(at, "aqm"), 0, "{kind}");
        bench.advance(2 * at);
        assert!(bench.left.iter().filter(|left| left.marked).count() >= 5, "{kind}");
    }
}
