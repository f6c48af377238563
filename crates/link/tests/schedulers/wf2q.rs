//! WF²Q+ compared with generalized processor sharing and the bounds of Bennett & Zhang, in integers.

use super::bench::{BYTE, Bench, LONGEST, Left, SECOND};
use longwire_block::Dice;

const WEIGHTS: [u64; 5] = [1, 2, 3, 7, 50];

fn classes() -> String {
    let class = |(n, weight)| format!("c{n} weight {weight} limit unlimited if udp src port {n}\n");
    let all: String = WEIGHTS.iter().enumerate().map(class).collect();
    format!("{all}other weight 1")
}

/// The sum of all weights, including that of the class for others.
fn sum() -> u64 {
    WEIGHTS.iter().sum::<u64>() + 1
}

/// All classes always have packets. GPS then gives class i the fraction w/Σw of every byte: WF²Q+ is never
/// ahead by more than a packet of its own, nor behind by more than a longest packet.
#[test]
fn backlogged_classes_keep_to_their_gps_share_within_a_packet() {
    let mut bench = Bench::new("wf2q+", &[("classes", &classes())], "");
    let mut dice = Dice::named(1, "wf2q");
    let sum = sum() as i64;
    let weights = [1i64, 2, 3, 7, 50, 1];
    for _ in 0..1500 {
        for (flow, &weight) in weights.iter().enumerate() {
            for _ in 0..weight.min(20) {
                bench.arrive(0, flow as u16, 64 + dice.below(LONGEST - 63));
            }
        }
    }
    bench.advance(10 * SECOND);
    let mut served = [0i64; 6];
    let mut total = 0i64;
    for left in &bench.left {
        served[usize::from(left.flow)] += left.bytes as i64;
        total += left.bytes as i64;
        for (flow, &weight) in weights.iter().enumerate() {
            let ahead = served[flow] * sum - total * weight;
            let bound = LONGEST as i64 * (sum - weight);
            assert!(ahead <= bound, "class {flow} is ahead by {} of {sum}: {left:?}", ahead);
            assert!(
                -ahead <= LONGEST as i64 * sum,
                "class {flow} is behind by {} of {sum}: {left:?}",
                -ahead
            );
        }
    }
    assert!(total > 9_990_000, "the link was busy: {total}");
}

/// The paper's worst-case fair index, for classes that come and go: a packet leaves by a + Q(a)/r + (L +
/// (Lmax - L)·r/R)/r, where Q(a) is the remaining backlog of its class, itself included, and r = R·w/Σw.
#[test]
fn no_packet_waits_longer_than_its_own_class_accounts_for() {
    for seed in 0..8 {
        let mut bench = Bench::new("wf2q+", &[("classes", &classes())], "");
        let mut dice = Dice::named(seed, "wfi");
        let mut at = 0;
        // Class n has packets of up to this length.
        let longest = [1518, 200, 1000, 64, 900];
        for _ in 0..6000 {
            let flow = dice.below(WEIGHTS.len() as u64) as usize;
            for _ in 0..=dice.below(4) {
                bench.arrive(at, flow as u16, 64 + dice.below(longest[flow] - 63));
            }
            at += dice.below(2_100_000);
        }
        bench.advance(u64::MAX - 1);
        let mut tightest = u64::MAX;
        for (flow, &weight) in WEIGHTS.iter().enumerate() {
            let own: Vec<Left> =
                bench.left.iter().filter(|left| usize::from(left.flow) == flow).copied().collect();
            for (n, packet) in own.iter().enumerate() {
                let left_of =
                    |other: &Left| (other.leave.saturating_sub(packet.arrival)).min(other.bytes * BYTE);
                let unsent = own[..=n].iter().rev().map(left_of).take_while(|&left| left > 0);
                let queue: u64 = unsent.sum();
                let alpha = longest[flow] * sum() + (LONGEST - longest[flow]) * weight;
                let (took, bound) = ((packet.leave - packet.arrival) * weight, queue * sum() + alpha * BYTE);
                assert!(took <= bound, "seed {seed} class {flow}: {took} {bound} {packet:?}");
                tightest = tightest.min((bound - took) / weight);
            }
        }
        assert!(tightest < 2 * LONGEST * BYTE, "the bound is nearly reached: {tightest} ns");
    }
}

/// The example of Bennett & Zhang's WF²Q (1996): a class of half the rate with eleven packets, ten with a
/// twentieth and one each. Weighted fair queueing would send ten of the first back to back; here it never
/// sends two.
#[test]
fn a_heavy_class_does_not_run_ahead() {
    let one: String = (1..=10).map(|n| format!("c{n} weight 1 if udp src port {n}\n")).collect();
    let mut bench = Bench::new("wf2q+", &[("classes", &format!("{one}big weight 10"))], "");
    for _ in 0..11 {
        bench.arrive(0, 100, 1000);
    }
    for n in 1..=10 {
        bench.arrive(0, n, 1000);
    }
    bench.advance(SECOND);
    let order: Vec<bool> = bench.left.iter().map(|left| left.flow == 100).collect();
    let wanted: Vec<bool> = (0..21).map(|n| n % 2 == 0).collect();
    assert_eq!(order, wanted);
}

/// Unused bandwidth is shared by the weights of the others, and the link is never idle.
#[test]
fn what_is_not_used_is_shared() {
    let text = "a weight 1 limit unlimited if udp src port 1\nb weight 3 limit unlimited if udp src port 2\n\
        c weight 6";
    let mut bench = Bench::new("wf2q+", &[("classes", text)], "");
    for _ in 0..2000 {
        bench.arrive(0, 1, 500);
        bench.arrive(0, 2, 1000);
    }
    bench.advance(SECOND);
    let (a, b) = (bench.bytes(1, 0, SECOND), bench.bytes(2, 0, SECOND));
    assert_eq!(a + b, 1_000_000);
    assert!((3 * a).abs_diff(b) <= 3 * 1000, "{a} {b}");
}

/// Bands select classes by number; a limit belongs to its class, and includes the packet being sent.
#[test]
fn bands_conditions_and_limits() {
    let text = "a weight 1 limit 2 packets\nb weight 1 limit 3 packets if udp src port 2 and less 500\n\
        c weight 1 limit 1500 B";
    let mut bench =
        Bench::new("wf2q+", &[("classes", text)], "band 2 if udp src port 3\nband 7 if udp src port 4");
    for _ in 0..5 {
        bench.arrive(0, 1, 1000);
        bench.arrive(0, 2, 400);
        bench.arrive(0, 3, 600);
        bench.arrive(0, 4, 100);
        bench.arrive(0, 2, 604);
    }
    bench.advance(SECOND);
    let of = |flow, bytes| bench.left.iter().filter(|left| (left.flow, left.bytes) == (flow, bytes)).count();
    // a gets the first two of flows 1, 4 and the longer ones of 2; c takes 1200 of its 1500 bytes.
    assert_eq!([of(1, 1000), of(4, 100), of(2, 604), of(2, 400), of(3, 600)], [1, 1, 0, 3, 2]);
}

/// Waiting packets are reassigned by the new conditions; none is lost, and the new weights apply.
#[test]
fn classes_change_while_packets_wait() {
    for kind in ["wf2q+", "hfsc"] {
        let text = |line: &str| match kind {
            "hfsc" => line.replace("weight 1", "ls 1 Mbit/s").replace("weight 9", "ls 9 Mbit/s"),
            _ => line.to_owned(),
        };
        let old = text("a weight 1 if udp src port 1\nb weight 1 if udp src port 2\nc weight 1");
        let mut bench = Bench::new(kind, &[("classes", &old)], "");
        for _ in 0..100 {
            for flow in [1, 2, 3] {
                bench.arrive(0, flow, 1000);
            }
        }
        // Flow 2 now belongs to x. a is the last, and has most of them.
        let new = text("x weight 1\na weight 9 if udp src port 1");
        bench.change(30_500_000, kind, &[("classes", &new)]);
        assert_eq!(bench.stats(30_500_000).queued_packets, 270, "{kind}");
        bench.advance(SECOND);
        let early = |flow| bench.bytes(flow, 31_000_000, 101_000_000) / 1000;
        assert!(early(1).abs_diff(63) <= 1 && (early(2) + early(3)).abs_diff(7) <= 1, "{kind}: {}", early(1));
        assert_eq!(bench.left.len(), 300, "{kind}");
        let order = bench.left.iter().filter(|left| left.flow == 1).count();
        assert_eq!(order, 100, "{kind}");
    }
}
