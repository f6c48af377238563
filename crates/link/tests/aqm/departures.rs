//! Time limits and delay controllers where packets leave more slowly than their bits are sent.

use super::bench::{Bench, ECT_0, MS, NOT_ECT, SECOND, Steady, send};

/// One packet per slot, slots 10 ms apart, 500 packets of 1000 bytes at once: 50 ms release 5 of them,
/// whatever the rate in a slot, and whichever unit limits the slot.
#[test]
fn a_limit_in_time_counts_slots() {
    for rate in ["unlimited", "1 Gbit/s"] {
        for slot in [("packets", "1"), ("bytes", "1000"), ("bytes", "1")] {
            let slots = [("rate", rate), ("min", "10 ms"), slot];
            let mut bench = Bench::with(("slotted", &slots), ("tail-drop", &[("limit", "50 ms")]));
            for _ in 0..500 {
                bench.arrive(0, 1, NOT_ECT, 1000);
            }
            bench.advance(10 * SECOND);
            let left: Vec<u64> = bench.left.iter().map(|left| left.leave).collect();
            // At 1 Gbit/s a packet takes 8 us, and the next slot opens 10 ms after its end: the fifth would
            // leave at 50.040 ms.
            let wanted: &[u64] = match rate {
                "unlimited" => &[10_000_000, 20_000_000, 30_000_000, 40_000_000, 50_000_000],
                _ => &[10_008_000, 20_016_000, 30_024_000, 40_032_000],
            };
            assert_eq!(left, wanted, "{rate} {slot:?}");
            assert_eq!(bench.dropped(10 * SECOND, "queue-full"), 500 - wanted.len() as u64);
        }
    }
}

/// Slots of 2 packets, from 5 to 15 ms apart: 10 ms on average, whatever this run draws. The limit is 30 ms,
/// so 6 packets of any size fit.
#[test]
fn a_limit_in_time_takes_the_mean_distance() {
    let slots = [("min", "5 ms"), ("max", "15 ms"), ("packets", "2")];
    for bytes in [64, 1000, 1518] {
        let mut bench = Bench::with(("slotted", &slots), ("tail-drop", &[("limit", "30 ms")]));
        for _ in 0..50 {
            bench.arrive(0, 1, NOT_ECT, bytes);
        }
        assert_eq!(bench.stats(0).queued_packets, 6, "{bytes}");
    }
}

/// Packets that come 25 % faster than slots release them: PIE keeps the delay between half its target, below
/// which nothing is dropped, and twice it, and a fifth is lost.
#[test]
fn pie_steers_slots_to_its_target() {
    let slots = [("min", "1 ms"), ("packets", "1")];
    let mut bench = Bench::with(("slotted", &slots), ("pie", &[("limit", "unlimited")]));
    let mut flow = [Steady::new(1, NOT_ECT, 1000, 10_000_000, 0)];
    send(&mut bench, &mut flow, 20 * SECOND);
    bench.left.clear();
    let before = bench.dropped(20 * SECOND, "aqm");
    send(&mut bench, &mut flow, 60 * SECOND);
    let share = (bench.dropped(60 * SECOND, "aqm") - before) as f64 / (40.0 * 10_000_000.0 / 8000.0);
    assert!((share - 0.2).abs() < 0.005, "{share}");
    let wait: u64 = bench.left.iter().map(|left| left.leave - left.arrival).sum();
    let mean = wait as f64 / bench.left.len() as f64 / MS as f64;
    assert!((7.5..30.0).contains(&mean), "{mean} ms");
}

/// ARED's weight is 1 − e^(−1/C), for C mean packets per second: with slots, those that the slots allow. Both
/// links send 1000 bytes every 10 ms, so both select alike: their dice and their averages are the same.
#[test]
fn ared_takes_slots_for_a_rate() {
    let queue = ("ared", &[("limit", "1000 packets"), ("mean-packet", "1000 B")][..]);
    let mut slotted = Bench::with(("slotted", &[("min", "10 ms"), ("packets", "1")]), queue);
    let mut constant = Bench::with(("constant", &[("rate", "800 kbit/s")]), queue);
    for bench in [&mut slotted, &mut constant] {
        send(bench, &mut [Steady::new(1, ECT_0, 1000, 1_000_000, 0)], 30 * SECOND);
    }
    let numbers = |bench: &Bench| bench.left.iter().map(|left| left.number).collect::<Vec<_>>();
    assert_eq!(numbers(&slotted), numbers(&constant));
    assert!(slotted.dropped(30 * SECOND, "aqm") > 300);
}
