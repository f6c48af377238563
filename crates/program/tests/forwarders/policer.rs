//! Policer.

use super::bench::InstalledForwarder;
use super::frames::*;
use longwire_program::Verdict;

const BILLION: u64 = 1_000_000_000;

/// This many bytes a second, and a burst of `burst` bytes.
fn limits(rate: u64, burst: u64) -> InstalledForwarder {
    let fill = (burst * BILLION).div_ceil(rate);
    InstalledForwarder::with(
        "policer",
        [rate, burst * BILLION, fill, 0, 0, 0].map(u64::to_le_bytes).as_flattened(),
    )
}

/// 1000 bytes a second, bursts of 200 bytes.
pub fn ready() -> InstalledForwarder {
    limits(1000, 200)
}

/// A frame of 100 bytes.
fn hundred() -> Vec<u8> {
    udp(v4(CLIENT, SERVER), [1, 2], &[0; 58])
}

#[test]
fn tokens_are_counted_to_the_nanosecond() {
    let mut policer = ready();
    let start = 5 * BILLION;
    let drop = Verdict::Drop(Some(0));
    // Nanoseconds from the first packet; a byte takes a millisecond.
    for (after, verdict) in [
        (0, Verdict::Pass),
        (0, Verdict::Pass),
        (0, drop),
        (99_999_999, drop),
        (100_000_000, Verdict::Pass),
        (100_000_000, drop),
        // An earlier packet of another worker returns no tokens.
        (50_000_000, drop),
        (150_000_000, drop),
        (200_000_000, Verdict::Pass),
        // The bucket holds two packets, after any pause.
        (1_000 * BILLION, Verdict::Pass),
        (1_000 * BILLION, Verdict::Pass),
        (1_000 * BILLION, drop),
        // And after 200 ms it is full.
        (1_000 * BILLION + 200_000_000, Verdict::Pass),
        (1_000 * BILLION + 200_000_000, Verdict::Pass),
        (1_000 * BILLION + 200_000_000, drop),
    ] {
        policer.bench.context.now = start + after;
        assert_eq!(policer.send(&hundred()).verdict, verdict, "{after}");
    }
    assert_eq!(policer.double(40), 7);
}

#[test]
fn the_rate_is_exact() {
    // A rate that divides nothing: after n packets, 7 ms apart, the passed bytes match the burst and the
    // time.
    let mut policer = limits(3333, 150);
    let mut passed = 0;
    for n in 0..10_000 {
        policer.bench.context.now = BILLION + n * 7_000_000;
        passed += u64::from(policer.send(&hundred()).verdict == Verdict::Pass);
        let worth = 150 * BILLION + n * 7_000_000 * 3333;
        assert_eq!(passed, worth / (100 * BILLION), "{n}");
    }
}

#[test]
fn great_rates_do_not_overflow() {
    // 400 Gbit/s, 50 bytes a nanosecond, with 2 GB of burst, and a century between two packets.
    let mut policer = limits(50_000_000_000, 2_000_000_000);
    for now in [2, BILLION, 100 * 365 * 86_400 * BILLION] {
        policer.bench.context.now = now;
        assert_eq!(policer.send(&hundred()).verdict, Verdict::Pass, "{now}");
    }
    assert_eq!(policer.double(24), 1_999_999_900 * BILLION);
}

#[test]
fn a_bucket_that_is_full_at_first() {
    // As set by the control half where time begins at 0.
    let mut policer = ready();
    let state = [1000, 200 * BILLION, BILLION / 5, 200 * BILLION, 0, 0].map(u64::to_le_bytes);
    policer.set(state.as_flattened());
    policer.bench.context.now = 0;
    let verdicts = [0; 3].map(|_| policer.send(&hundred()).verdict);
    assert_eq!(verdicts, [Verdict::Pass, Verdict::Pass, Verdict::Drop(Some(0))]);
}

#[test]
fn without_a_rate_all_passes() {
    let mut policer = InstalledForwarder::new("policer", 48);
    for _ in 0..10 {
        assert_eq!(policer.send(&hundred()).verdict, Verdict::Pass);
    }
    assert_eq!(policer.bench.state.get(), [0; 48]);
}
