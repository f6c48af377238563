//! Requests for bodies of packets, and their cost.

use super::*;

#[test]
fn bodies_are_given_on_demand() {
    let mut bench = Bench::new(Limits::default(), 1_000_000);
    bench.offer(5, &frame(1500)).unwrap();
    bench.told().unwrap();
    // (from, count, bytes given)
    for (from, count, given) in
        [(64, 100, 64..164), (1400, 500, 1400..1500), (1500, 5, 1500..1500), (0, u32::MAX, 0..1500)]
    {
        bench.say(down::FETCH, [0, 0, from | u64::from(count) << 32], &[]);
        bench.collect(MS);
        let (opening, facts, bytes) = bench.told().unwrap();
        assert_eq!((opening.kind, bytes), (up::BODY, frame(1500)[given].to_vec()), "{count} from {from}");
        // Where a packet has its expiry, a body has what was requested.
        assert_eq!(facts.expires, from | u64::from(count) << 32);
    }
    assert_eq!((bench.attachment.counts.bodies, bench.attachment.counts.faults), (4, 0));
    // Beyond the end, and of a packet that is not up: an empty answer, and a fault.
    for (token, from) in [(0, 1501), (1, 0)] {
        bench.say(down::FETCH, [token, 0, from | 5 << 32], &[]);
        bench.collect(MS);
        assert!(bench.told().unwrap().2.is_empty());
    }
    assert_eq!((bench.attachment.counts.bodiless, bench.attachment.counts.faults), (2, 2));
}

#[test]
fn a_body_waits_for_room() {
    let mut bench = Bench::new(Limits::default(), 1_000_000);
    bench.offer(5, &frame(MAX_FRAME)).unwrap();
    bench.told().unwrap();
    // The ring has 4096 lines, of which each body takes 1025. One is copied per call.
    for _ in 0..5 {
        bench.say(down::FETCH, [0, 0, u64::from(MAX_FRAME as u32) << 32], &[]);
    }
    bench.answer(0, send(3));
    // (whether the other side reads one first, bodies delivered, packets sent): messages after a fetch wait
    // for it.
    let rounds = [
        (false, 1, 0),
        (false, 2, 0),
        (false, 3, 0),
        (false, 3, 0),
        (true, 4, 0),
        (false, 4, 0),
        (true, 5, 0),
        (false, 5, 1),
    ];
    for (round, (reads, bodies, sent)) in (1..).zip(rounds) {
        if reads {
            let (opening, _, bytes) = bench.told().unwrap();
            assert_eq!((opening.kind, bytes), (up::BODY, frame(MAX_FRAME)));
        }
        let back = bench.collect(round * MS);
        assert_eq!((bench.attachment.counts.bodies, back.sent.len()), (bodies, sent), "round {round}");
    }
    assert_eq!(
        (bench.attachment.counts.bodiless, bench.attachment.counts.faults, bench.attachment.kept()),
        (0, 0, 0)
    );
}

#[test]
fn who_asks_for_bodies_and_reads_none_is_cut_off() {
    let mut bench = Bench::new(Limits::default(), 1_000_000);
    // Even if no packet is up: each of these is an empty body, one of 4096 lines, and a fault, of which 1000
    // a second are tolerated.
    for at in 0..120 {
        for _ in 0..40 {
            bench.say(down::FETCH, [7, 0, 0], &[]);
        }
        bench.collect(at * 100 * MS);
        if !bench.attachment.is_taken() {
            break;
        }
    }
    assert_eq!(bench.attachment.counts.last_cut, Some(CutReason::Stalled));
}

/// A thousandth of the worker's time is set aside: 10 us at once, 25 trips, and 1 us per millisecond. Work
/// begun with a small balance is finished.
#[test]
fn packets_go_up_as_far_as_time_is_set_aside() {
    let mut bench = Bench::new(Limits::default(), 1_000_000_000);
    bench.common = SharedAllowance(Allowance::new(1_000_000));
    let up = (0..200).filter(|_| bench.offer(MS, &frame(60)).is_ok()).count();
    assert_eq!(
        (up, bench.attachment.counts.over_time, bench.attachment.counts.worker_ns),
        (25, 175, 25 * TRIP)
    );
    assert!(bench.attachment.refuses(&mut bench.common, Nanos(MS)));
    assert_eq!((bench.attachment.counts.over_time, bench.attachment.counts.over_rate), (176, 0));
    let up = (0..200).filter(|_| bench.offer(2 * MS, &frame(60)).is_ok()).count();
    assert_eq!(up, 3);
    // Verdicts are paid in advance: packets come back though no time is left.
    for token in 0..28 {
        bench.answer(token, Verdict::Pass);
    }
    assert_eq!((bench.collect(2 * MS).passed.len(), bench.attachment.counts.worker_ns), (28, 28 * TRIP));
    // A guarantee belongs to its attachment.
    bench.attachment.time = Allowance::new(1_000_000);
    let up = (0..200).filter(|_| bench.offer(2 * MS, &frame(60)).is_ok()).count();
    assert_eq!(up, 25);
}

/// Bodies and new packets wait for time, as do later messages; bytes are paid for.
#[test]
fn what_is_asked_for_waits_for_time() {
    let limits = Limits { answer_within: Nanos(200 * MS), ..Limits::default() };
    let mut bench = Bench::new(limits, 1_000_000);
    bench.common = SharedAllowance(Allowance::new(1_000_000));
    bench.offer(MS, &frame(1500)).unwrap();
    bench.told().unwrap();
    for _ in 0..100 {
        bench.say(down::FETCH, [0, 0, 1500 << 32], &[]);
    }
    bench.answer(0, Verdict::Pass);
    // A trip for the packet; then 400 and 23 times 5 ns for each body, until 10 us are used up.
    assert!(bench.collect(MS).passed.is_empty());
    let each = TRIP + 23 * crate::allowance::COPIED_LINE;
    let bodies = (10_000 - TRIP).div_ceil(each);
    assert_eq!(
        (bench.attachment.counts.bodies, bench.attachment.counts.worker_ns),
        (bodies, TRIP + bodies * each)
    );
    let mut now = MS;
    while bench.attachment.counts.verdicts == 0 && now < 100 * MS {
        while bench.told().is_some() {}
        now += 100_000;
        bench.collect(now);
    }
    // The last 81 bodies take about 42 ms at a thousandth of the time.
    assert_eq!(bench.attachment.counts.bodies, 100);
    let used = TRIP + 100 * each;
    assert_eq!(bench.attachment.counts.worker_ns, used);
    assert!(
        (used - 10_000) * 1000 <= now - MS + each * 1000 && now - MS <= (used - 10_000) * 1000 + 200_000,
        "{now}"
    );
    // New packets, too.
    bench.say(down::NEW, [0, send(3).word(), 0], &frame(60));
    assert!(bench.collect(now).sent.is_empty());
    let sent = bench.collect(now + MS).sent;
    assert_eq!(sent.len(), 1);
    assert_eq!((bench.attachment.counts.made, bench.attachment.counts.worker_ns), (1, used + TRIP));
}
