//! Processes that are late, leave, or write invalid data.

use super::*;

#[test]
fn what_is_not_answered_in_time_is_passed_and_silence_ends() {
    let mut bench = Bench::new(Limits::default(), 1_000_000);
    bench.offer(MS, &frame(60)).unwrap();
    bench.offer(2 * MS, &frame(61)).unwrap();
    assert_eq!(bench.collect(21 * MS - 1), Back::default());
    assert_eq!(bench.collect(21 * MS).passed, [frame(60)]);
    bench.answer(0, Verdict::Drop);
    bench.answer(1, Verdict::Drop);
    assert_eq!(bench.collect(21 * MS), Back { dropped: 1, ..Back::default() }, "the first is too late");
    assert_eq!((bench.attachment.counts.late, bench.attachment.counts.faults), (1, 0), "which is no fault");
    bench.answer(1, Verdict::Drop);
    bench.collect(21 * MS);
    assert_eq!(
        (bench.attachment.counts.late, bench.attachment.counts.faults),
        (1, 1),
        "the other was answered"
    );
    // One packet every 100 ms, none answered: cut off after more than a second.
    for tenth in 1..=12 {
        bench.offer(tenth * 100 * MS, &frame(60)).unwrap();
        bench.collect(tenth * 100 * MS + 50 * MS);
        let has_ended = !bench.attachment.is_taken();
        assert_eq!(has_ended, tenth * 100 + 50 > 1100, "at {tenth}50 ms");
        if has_ended {
            break;
        }
    }
    assert_eq!(bench.attachment.counts.last_cut, Some(CutReason::Stalled));
    assert_eq!(bench.offer(2000 * MS, &frame(60)), Err(OfferError::Gone));
}

#[test]
fn who_answers_late_is_not_cut_off_and_who_says_more_than_that_is() {
    let mut bench = Bench::new(Limits { faults: 10, ..Limits::default() }, 1_000_000);
    // 100 packets every 50 ms for ten seconds, all answered 30 ms later, which is 10 ms too late: 2000 a
    // second.
    let mut next = 0;
    for round in 0..200 {
        let at = round * 50 * MS;
        (0..100).for_each(|_| bench.offer(at, &frame(60)).unwrap());
        assert_eq!(bench.collect(at + 20 * MS).passed.len(), 100);
        for _ in 0..100 {
            // For half of them it requests bytes first.
            if next % 2 == 0 {
                bench.say(down::FETCH, [next, 0, 5 << 32], &[]);
            }
            bench.answer(next, Verdict::Drop);
            next += 1;
        }
        while bench.told().is_some() {}
        assert_eq!(bench.collect(at + 30 * MS), Back::default());
        while bench.told().is_some() {}
    }
    let Counts { verdicts, late, faults, cut, .. } = bench.attachment.counts;
    assert_eq!((verdicts, late, faults, cut), (0, 20_000, 0, 0));
    // Three late packets allow three answers about packets that have been up, but not about others; the
    // twenty-first fault is one too many.
    (0..3).for_each(|_| bench.offer(20_000 * MS, &frame(60)).unwrap());
    bench.collect(20_020 * MS);
    for (token, faults) in [(next + 3, 1), (0, 1), (next, 1), (next, 1), (next + 1, 2), (next + 2, 3)] {
        bench.answer(token, Verdict::Drop);
        bench.collect(20_020 * MS);
        assert_eq!(
            (bench.attachment.counts.faults, bench.attachment.counts.cut),
            (faults, 0),
            "token {token}"
        );
    }
    (0..18).for_each(|_| bench.answer(next, Verdict::Drop));
    bench.collect(20_020 * MS);
    assert_eq!(
        (bench.attachment.counts.faults, bench.attachment.counts.last_cut),
        (21, Some(CutReason::Flood))
    );
}

#[test]
fn packets_given_back_are_late_and_no_fault() {
    let mut bench = Bench::new(Limits { patience: Nanos(100 * MS), ..Limits::default() }, 1_000_000);
    for round in 0..20 {
        let (at, token) = (round * 60 * MS, 2 * round);
        (0..2).for_each(|_| bench.offer(at, &frame(60)).unwrap());
        // One in time, one after it was taken back: both are activity.
        bench.say(down::RETURN, [token, 0, 0], &[]);
        assert_eq!(bench.collect(at + 15 * MS).passed.len(), 1);
        assert_eq!(bench.collect(at + 20 * MS).passed.len(), 1);
        bench.say(down::RETURN, [token + 1, 0, 0], &[]);
        assert_eq!(bench.collect(at + 30 * MS), Back::default());
        let Counts { verdicts, late, faults, cut, .. } = bench.attachment.counts;
        assert_eq!((verdicts, late, faults, cut), (0, 2 * round + 2, 0, 0));
    }
    bench.say(down::RETURN, [0, 0, 0], &[]);
    bench.collect(1200 * MS);
    assert_eq!(bench.attachment.counts.faults, 1, "there is none any more");
}

#[test]
fn who_leaves_or_writes_nonsense_is_cut_off_and_nothing_is_lost() {
    type Deed = fn(&mut Bench);
    let deeds: [(Deed, CutReason); 6] = [
        (|bench| bench.status.leave(CutReason::Left), CutReason::Left),
        (|bench| bench.memory.words()[DOWN_HEAD].store(u64::MAX, Ordering::Relaxed), CutReason::Broken),
        (|bench| bench.say(99, [0; 3], &[]), CutReason::Broken),
        (
            |bench| {
                bench.down.line(0, &[u64::MAX; 8]);
                bench.down.advance(1);
                bench.down.publish();
            },
            CutReason::Broken,
        ),
        (|bench| (0..250).for_each(|_| bench.answer(1 << 40, Verdict::Drop)), CutReason::Flood),
        (
            |bench| (0..250).for_each(|_| bench.say(down::NEW, [0, send(9).word(), 0], &[0; 60])),
            CutReason::Flood,
        ),
    ];
    for (at, (deed, why)) in deeds.into_iter().enumerate() {
        let limits = Limits { faults: 100, ..Limits::default() };
        let mut bench = Bench::new(limits, 1_000_000);
        (0..100).for_each(|n| bench.offer(n, &frame(60)).unwrap());
        deed(&mut bench);
        let mut passed = bench.collect(MS).passed.len();
        passed += bench.collect(MS).passed.len();
        assert_eq!((passed, bench.attachment.counts.last_cut), (100, Some(why)), "deed {at}");
        assert_eq!((bench.attachment.kept(), bench.status.cut()), (0, Some(why)));
        assert_eq!(bench.memory.words()[ENDED].load(Ordering::Relaxed), why as u64 + 1);
    }
}

#[test]
fn a_successor_does_not_speak_about_its_forerunners_packets() {
    let mut bench = Bench::new(Limits::default(), 1_000_000);
    bench.offer(5, &frame(60)).unwrap();
    let mut other = Bench::new(Limits::default(), 1_000_000);
    let wire = other.attachment.wire.take().unwrap();
    bench.attachment.attach(Attach { attachment: 0, wire, promised: 10, share: 0 });
    bench.attachment.set_rate(1_000_000);
    bench.down = other.down;
    bench.offer(6, &frame(61)).unwrap();
    bench.answer(0, Verdict::Drop);
    bench.answer(1, Verdict::Drop);
    let back = bench.collect(MS);
    assert_eq!((back.dropped, back.passed), (1, vec![frame(60)]));
    assert_eq!((bench.attachment.counts.returned, bench.attachment.counts.came), (1, 2));
}

/// Number of writes: the index jumps alone lead far beyond the ring's end, so that the final check always
/// finds a fault, however the threads are interleaved.
const SCRIBBLES: usize = 100_000;

/// Hostile writes from another thread, at any moment: checked values are the ones used.
#[test]
fn words_that_change_while_they_are_read_do_no_harm() {
    let limits = Limits { packets: 64, faults: 1_000_000, ..Limits::default() };
    std::thread::scope(|scope| {
        for round in 0..20u64 {
            let mut bench = Bench::new(limits, 1_000_000);
            let memory = Arc::clone(&bench.memory);
            let scribbler = scope.spawn(move || scribble(&memory, round));
            let mut now = MS;
            while !scribbler.is_finished() {
                // There may be no room.
                let _ = bench.offer(now, &frame(60 + now as usize / 1000 % 1000));
                bench.collect(now);
                now += 1000;
            }
            scribbler.join().unwrap();
            bench.collect(now);
            assert!(bench.attachment.counts.cut > 0, "round {round}: it was noticed");
            bench.attachment.cut(CutReason::Stopped);
            bench.collect(now);
            assert_eq!(bench.pool.live(), 0);
        }
    });
}

/// Writes nearly valid records all over the downward ring, and moves its index by jumps.
fn scribble(memory: &Memory, seed: u64) {
    let mut dice = seed;
    let mut roll = || {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        dice >> 33
    };
    let sizes = RingSizes::at_least(0, 0);
    let first = sizes.down_place().first;
    for _ in 0..SCRIBBLES {
        let line = first + (roll() % 4096) as usize * 8;
        let lines = if roll() % 3 == 0 { roll() % 40 } else { 1 };
        memory.words()[line]
            .store((1 + roll() % 4) | (lines << 16) | ((lines.max(1) - 1) << 38), Ordering::Relaxed);
        memory.words()[line + 1].store(roll() % 3000, Ordering::Relaxed);
        memory.words()[line + 2].store((roll() % 3) | (3 << 16) | (0xffff << 32), Ordering::Relaxed);
        memory.words()[line + 3].store((roll() % 100) | ((roll() % 2000) << 32), Ordering::Relaxed);
        if roll() % 8 == 0 {
            memory.words()[DOWN_HEAD].fetch_add(roll() % 64, Ordering::Relaxed);
        }
        if roll() % 4096 == 0 {
            memory.words()[(roll() % 512) as usize].store(roll(), Ordering::Relaxed);
        }
    }
}

/// Actions of a hostile process between two polls.
#[derive(Debug, Clone)]
enum Deed {
    /// Writes a word anywhere.
    Word(usize, u64),
    /// Writes a valid or invalid record with a token.
    Record(u16, u64, u64, u64, usize),
    /// Writes an arbitrary line where the next record begins.
    Line([u64; 8]),
    /// Reads what went up.
    Read,
    /// Time passes.
    Wait(u64),
}

fn deed() -> impl Strategy<Value = Deed> {
    let word = prop_oneof![any::<u64>(), 0..5000u64, (0..64u32).prop_map(|bit| 1 << bit)];
    let verdict = prop_oneof![Just(0u64), Just(1), Just(2 | 3 << 16 | 0xffff << 32), any::<u64>()];
    prop_oneof![
        1 => (0..20_000usize, word).prop_map(|(at, word)| Deed::Word(at, word)),
        8 => (0..6u16, 0..100u64, verdict, any::<u64>(), 0..3000usize)
            .prop_map(|(kind, token, verdict, range, bytes)| Deed::Record(kind, token, verdict, range,
                bytes)),
        1 => any::<[u64; 8]>().prop_map(Deed::Line),
        4 => Just(Deed::Read),
        4 => (0..5 * MS).prop_map(Deed::Wait),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Whatever it writes, wherever: nothing panics, no packet is lost or comes back twice, and the node's
    /// count is correct.
    #[test]
    fn a_hostile_process_loses_its_place_and_nothing_else(deeds in proptest::collection::vec(deed(),
        1..200)) {
        let mut bench = Bench::new(Limits { packets: 64, ..Limits::default() }, 1_000_000);
        let (mut now, mut went, mut came) = (MS, 0, 0);
        for deed in deeds {
            went += u64::from(bench.offer(now, &frame(60 + now as usize % 1000)).is_ok());
            match deed {
                Deed::Word(at, word) => bench.memory.words()[at % bench.memory.words().len()].store(word,
                    Ordering::Relaxed),
                Deed::Record(kind, token, verdict, range, bytes) => {
                    if bench.down.has_room(100).unwrap_or(false) {
                        bench.say(kind, [token, verdict, range], &frame(bytes));
                    }
                }
                Deed::Line(line) => {
                    bench.down.line(0, &line);
                    bench.memory.words()[DOWN_HEAD].fetch_add(3, Ordering::Relaxed);
                }
                Deed::Read => {
                    while let Ok(lines @ 1..) = bench.up.available() {
                        bench.up.advance(lines);
                        bench.up.release();
                    }
                }
                Deed::Wait(time) => now += time,
            }
            let made = bench.attachment.counts.made;
            let back = bench.collect(now);
            let left = back.passed.len() + back.sent.len() + back.dropped;
            came += left as u64 - (bench.attachment.counts.made - made);
            prop_assert_eq!(bench.attachment.kept(), went - came);
        }
        bench.attachment.cut(CutReason::Stopped);
        let rest = bench.collect(now).passed.len() as u64;
        prop_assert_eq!((bench.pool.live(), went), (0, came + rest));
        let Counts { up, verdicts, late, returned, .. } = bench.attachment.counts;
        prop_assert_eq!(up, verdicts + late + returned);
    }
}
