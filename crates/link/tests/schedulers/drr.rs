//! Deficit round robin: the paper's bound on unfairness.

use super::bench::{Bench, LONGEST, SECOND};
use longwire_block::Dice;

/// The paper's bound: in any interval in which two flows are backlogged, their service differs by at most
/// 2·Max + Q for equal quanta.
#[test]
fn flows_differ_by_less_than_the_bound() {
    for quantum in [300, 1518, 5000] {
        let given = [("limit", "unlimited"), ("flows", "65536"), ("quantum", &format!("{quantum} B"))];
        let mut bench = Bench::new("drr", &given, "");
        let mut dice = Dice::named(quantum, "drr");
        let flows = [1, 2, 3, 4];
        // One flow has long packets, one short ones, the others all lengths.
        for _ in 0..900 {
            bench.arrive(0, 1, 1400 + dice.below(LONGEST - 1399));
            bench.arrive(0, 2, 64 + dice.below(40));
        }
        bench.fill(0, &flows[..2], 900, &mut dice);
        bench.fill(0, &flows[2..], 2000, &mut dice);
        bench.advance(SECOND);
        for (i, &a) in flows.iter().enumerate() {
            for &b in &flows[i + 1..] {
                let (mut difference, mut least, mut most) = (0i64, 0i64, 0i64);
                for left in &bench.left {
                    difference += match left.flow {
                        flow if flow == a => left.bytes as i64,
                        flow if flow == b => -(left.bytes as i64),
                        _ => 0,
                    };
                    (least, most) = (least.min(difference), most.max(difference));
                }
                let bound = (2 * LONGEST + quantum) as i64;
                assert!(most - least <= bound, "{quantum}: {a} {b} {least} {most}");
            }
        }
        assert!(bench.bytes(2, 0, SECOND) > 200_000, "all were backlogged for the whole second");
    }
}

/// Packets of 900 bytes at a quantum of 600: none in a flow's first turn, one in its second (1200 − 900 = 300
/// are left), one in its third.
#[test]
fn what_is_left_over_counts() {
    let given = [("flows", "65536"), ("quantum", "600 B")];
    let mut bench = Bench::new("drr", &given, "");
    bench.arrive(0, 9, 1000);
    for _ in 0..3 {
        bench.arrive(0, 1, 900);
        bench.arrive(0, 2, 300);
        bench.arrive(0, 2, 300);
    }
    bench.advance(SECOND);
    let order: Vec<u16> = bench.left.iter().map(|left| left.flow).collect();
    // Round 1: flow 1 has 600, flow 2 sends two. Round 2: 1200 and 600; round 3: 900 and 600; then flow 1 is
    // alone.
    assert_eq!(order, [9, 2, 2, 1, 2, 2, 1, 2, 2, 1]);
}

/// The largest flow makes room.
#[test]
fn the_longest_flow_loses() {
    let given = [("limit", "20 packets"), ("flows", "65536")];
    let mut bench = Bench::new("drr", &given, "");
    for n in 0..1000 {
        bench.arrive(n * 1_000_000, 1, 1000);
        bench.arrive(n * 1_000_000, 1, 1000);
        if n % 5 == 0 {
            bench.arrive(n * 1_000_000, 2, 1000);
        }
    }
    bench.advance(2 * SECOND);
    assert_eq!(bench.bytes(2, 0, 2 * SECOND), 200_000);
    assert_eq!(bench.stats(2 * SECOND).drops, [("queue-full", 2200 - bench.left.len() as u64)]);
    assert!(bench.left.len() < 1050);
}
