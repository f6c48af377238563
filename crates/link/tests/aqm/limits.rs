//! The limit holds in every discipline, whatever its other drops.

use super::bench::{Bench, ECT_0, ECT_1, MS, NOT_ECT, Steady, send};

const KINDS: [&str; 12] = [
    "tail-drop",
    "head-drop",
    "red",
    "ared",
    "rio",
    "fred",
    "sred",
    "codel",
    "fq-codel",
    "pie",
    "fq-pie",
    "dualpi2",
];

/// Three flows send six times the rate; the limit is 20 packets of 1000 bytes, as many bytes, or 16 ms of 10
/// Mbit/s. No discipline drops early in the first 10 ms, so that the limit is reached, and afterwards the
/// link keeps sending.
#[test]
fn the_limit_holds() {
    for kind in KINDS {
        for limit in ["20 packets", "20 kB", "16 ms"] {
            let mut bench = Bench::new(kind, &[("limit", limit)], "10 Mbit/s");
            let mut flows: Vec<_> = [NOT_ECT, ECT_0, ECT_1]
                .into_iter()
                .zip(1..)
                .map(|(field, flow)| Steady::new(flow, field, 1000, 20_000_000, 0))
                .collect();
            let mut most = 0;
            for tenth in 1..5000 {
                let now = tenth * MS / 10;
                send(&mut bench, &mut flows, now);
                most = most.max(bench.stats(now).queued_packets);
            }
            // FRED lets each of the three have 5 packets.
            let wanted = if kind == "fred" { 14..=20 } else { 20..=20 };
            assert!(wanted.contains(&most), "{kind} {limit}: {most}");
            assert!((620..=625).contains(&bench.left.len()), "{kind} {limit}: {}", bench.left.len());
        }
    }
}
