//! Disciplines of classes: each controls its own class only.

use super::bench::{Bench, MS, SECOND};
use longwire_block::Dice;

/// Two classes with half of the link each; the class of flow 0 has its own queue. Frames of 1000 bytes, 500 a
/// second per class.
fn classes(kind: &str, queue: &str) -> String {
    let setting = if kind == "hfsc" { "ls 1 Mbit/s" } else { "weight 1" };
    format!("a {setting} {queue} if udp src port 0\nb {setting} limit unlimited")
}

/// Mean wait in ms of a flow's packets between two times.
fn mean_wait(bench: &Bench, flow: u16, from: u64, to: u64) -> f64 {
    let within = bench.left.iter().filter(|left| left.flow == flow && left.leave > from && left.leave <= to);
    let waits: Vec<u64> = within.map(|left| left.leave - left.arrival).collect();
    waits.iter().sum::<u64>() as f64 / MS as f64 / waits.len() as f64
}

/// Flow 0 offers 10 % more than its share, flow 1 twice its share: CoDel and PIE keep the wait of flow 0
/// short, flow 1 waits as long as without them, and the shares do not change.
#[test]
fn a_discipline_holds_the_wait_of_its_class_alone() {
    for kind in ["wf2q+", "hfsc"] {
        let run = |queue: &str| {
            let mut bench = Bench::new(kind, &[("classes", &classes(kind, queue))], "");
            for packet in 0..10_000u64 {
                let at = packet * MS;
                if packet * 55 / 100 != (packet + 1) * 55 / 100 {
                    bench.arrive(at, 0, 1000);
                }
                bench.arrive(at + MS / 2, 1, 1000);
            }
            bench.advance(10 * SECOND);
            bench
        };
        let plain = run("limit unlimited");
        let others = mean_wait(&plain, 1, 5 * SECOND, 10 * SECOND);
        // 50 packets a second too many: at 7.5 s about 340 wait.
        assert!(mean_wait(&plain, 0, 5 * SECOND, 10 * SECOND) > 500.0 && others > 3000.0, "{kind}");
        for queue in ["queue codel", "queue pie target 5 ms", "queue red weight 0.05 limit 50 packets"] {
            let bench = run(queue);
            let wait = mean_wait(&bench, 0, 5 * SECOND, 10 * SECOND);
            assert!(wait < 60.0, "{kind}, {queue}: {wait} ms");
            let wait = mean_wait(&bench, 1, 5 * SECOND, 10 * SECOND);
            assert!((wait - others).abs() < 0.02 * others, "{kind}, {queue}: {wait} ms, not {others}");
            let bytes = bench.bytes(0, 5 * SECOND, 10 * SECOND) as f64;
            assert!(bytes > 0.95 * 2_500_000.0, "{kind}, {queue}: {bytes} bytes in its class");
        }
    }
}

/// A single class with an explicit first-in-first-out discipline behaves as without one.
#[test]
fn tail_drop_in_a_class_is_the_classs_own() {
    for (own, plain) in [
        ("queue tail-drop limit 7 packets", "limit 7 packets"),
        ("limit 9 kB queue tail-drop", "limit 9 kB"),
        ("queue tail-drop limit 5 ms", "limit 5 ms"),
        ("queue tail-drop", ""),
    ] {
        let run = |queue: &str| {
            let mut bench = Bench::new("wf2q+", &[("classes", &classes("wf2q+", queue))], "");
            let mut dice = Dice::named(3, "leaf");
            let mut at = 0;
            for _ in 0..5000 {
                at += dice.below(1_200_000);
                bench.arrive(at, dice.below(2) as u16, 64 + dice.below(1400));
            }
            bench.advance(100 * SECOND);
            let stats = bench.stats(100 * SECOND);
            (bench.left.iter().map(|left| (left.leave, left.flow, left.bytes)).collect::<Vec<_>>(), stats)
        };
        let (wanted, got) = (run(plain), run(own));
        assert!(got == wanted, "{own}: {:?} {:?}", got.1, wanted.1);
        assert!(plain.is_empty() || wanted.1.dropped() > 50, "{plain}: {:?}", wanted.1);
    }
}

/// Ten flows in a class with fair queueing, one of which sends ten times as much: each of the others gets all
/// it sends.
#[test]
fn a_class_can_keep_flows_apart() {
    let classes =
        "a weight 1 queue drr quantum 1000 B limit 100 packets if udp src portrange 0-9\nb weight 1";
    let mut bench = Bench::new("wf2q+", &[("classes", classes)], "");
    for round in 0..500u64 {
        let at = round * 20 * MS;
        for flow in 0..10 {
            for _ in 0..if flow == 0 { 10 } else { 1 } {
                bench.arrive(at, flow, 1000);
            }
        }
        // The other class has its half throughout.
        (0..10).for_each(|_| bench.arrive(at, 10, 1000));
    }
    bench.advance(10 * SECOND);
    for flow in 1..10 {
        assert!(bench.bytes(flow, 0, 10 * SECOND) >= 498_000, "{flow}");
    }
    assert!(bench.stats(10 * SECOND).dropped() > 1000);
}

/// Waiting packets stay in order when the class's discipline is added, removed, or changed.
#[test]
fn changes_lose_nothing() {
    let mut bench = Bench::new("wf2q+", &[("classes", "a weight 1")], "");
    for packet in 0..100u64 {
        bench.arrive(0, packet as u16, 100);
        if packet % 10 == 9 {
            let queue =
                ["queue codel", "queue fq-codel flows 1", "", "queue red min 1 max 2", "queue head-drop"];
            let classes = format!("a weight 1 {}", queue[packet as usize / 10 % queue.len()]);
            bench.change(0, "wf2q+", &[("classes", &classes)]);
        }
    }
    bench.advance(SECOND);
    let stats = bench.stats(SECOND);
    assert_eq!(stats.out_packets + stats.dropped(), 100);
    assert!(stats.dropped() < 20, "{stats:?}");
    assert!(bench.left.is_sorted_by_key(|left| left.flow));
}
