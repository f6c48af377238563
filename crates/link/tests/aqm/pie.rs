//! PIE (RFC 8033): bursts pass, overload is dropped, and an idle link resets the probability.

use super::bench::{Bench, ECT_0, MS, NOT_ECT, SECOND, Steady, send};

/// Three times the rate, after a quiet second, for 130 ms: nothing is dropped, as the allowance of 150 ms
/// ends with an update that comes up to 15 ms earlier. For 600 ms: there are drops.
#[test]
fn bursts_pass_for_their_allowance() {
    for (length, passes) in [(130, true), (600, false)] {
        let mut bench = Bench::new("pie", &[("limit", "unlimited")], "10 Mbit/s");
        send(&mut bench, &mut [Steady::new(1, NOT_ECT, 1000, 1_000_000, 0)], SECOND);
        let burst = SECOND + length * MS;
        send(&mut bench, &mut [Steady::new(1, NOT_ECT, 1000, 30_000_000, SECOND)], burst);
        assert_eq!(bench.dropped(burst, "aqm") == 0, passes, "{length} ms");
    }
}

/// Packets that arrive 25 % too fast for 20 s lose a fifth in the end, and the delay is between half the
/// target, below which nothing is dropped, and twice it. Then the link is idle, and a minute later nothing is
/// dropped any more.
#[test]
fn steers_to_the_target_and_forgets() {
    let mut bench = Bench::new("pie", &[("limit", "unlimited")], "10 Mbit/s");
    let mut flow = [Steady::new(1, NOT_ECT, 1000, 12_500_000, 0)];
    send(&mut bench, &mut flow, 20 * SECOND);
    bench.left.clear();
    let before = bench.dropped(20 * SECOND, "aqm");
    send(&mut bench, &mut flow, 60 * SECOND);
    let dropped = bench.dropped(60 * SECOND, "aqm") - before;
    let share = dropped as f64 / (40.0 * 12_500_000.0 / 8000.0);
    assert!((share - 0.2).abs() < 0.005, "{share}");
    let wait: u64 = bench.left.iter().map(|left| left.leave - left.arrival).sum();
    let mean = wait as f64 / bench.left.len() as f64 / MS as f64;
    assert!((7.5..30.0).contains(&mean), "{mean} ms");
    let before = bench.dropped(60 * SECOND, "aqm");
    send(&mut bench, &mut [Steady::new(1, NOT_ECT, 1000, 30_000_000, 120 * SECOND)], 120 * SECOND + 100 * MS);
    assert_eq!(bench.dropped(121 * SECOND, "aqm"), before);
}

/// Unresponsive ECN-capable packets are marked, until the probability reaches 10 % and they are dropped.
#[test]
fn marks_only_below_a_tenth() {
    let mut bench = Bench::new("pie", &[("limit", "unlimited"), ("ecn", "yes")], "10 Mbit/s");
    let mut flow = [Steady::new(1, ECT_0, 1000, 15_000_000, 0)];
    let (mut at, mut marked) = (0, 0);
    while bench.dropped(at, "aqm") == 0 {
        at += 10 * MS;
        assert!(at < 5 * SECOND, "nothing is dropped");
        marked = bench.stats(at).marked_packets;
        send(&mut bench, &mut flow, at);
    }
    assert!(marked > 3, "{marked}");
    // A third must be lost, so that the probability stays far above 10 %.
    let both = |bench: &mut Bench, at| (bench.stats(at).marked_packets, bench.dropped(at, "aqm"));
    send(&mut bench, &mut flow, 10 * SECOND);
    let (marked, dropped) = both(&mut bench, 10 * SECOND);
    send(&mut bench, &mut flow, 15 * SECOND);
    let (more, lost) = both(&mut bench, 15 * SECOND);
    assert_eq!(more, marked);
    assert!(lost > dropped + 2500, "{lost} {dropped}");
}
