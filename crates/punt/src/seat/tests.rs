//! Seats with both sides in one thread: the process is whatever the test writes into the memory.

use super::*;
use crate::layout::{DOWN_HEAD, ENDED, MAX_FRAME, Sizes};
use crate::ring::{Reader, Writer};
use crate::shared::Memory;
use crate::wire::{Bell, Status};
use longwire_block::Outbox;
use proptest::prelude::*;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;

const PORTS: &[u16] = &[0, 3, 7];
const MS: u64 = 1_000_000;

/// A seat, what its node has, and the other side.
struct Bench {
    seat: Seat,
    pool: Pool,
    out: Outbox,
    passed: Vec<Handle>,
    common: Common,
    memory: Arc<Memory>,
    up: Reader,
    down: Writer,
    status: Arc<Status>,
    /// Its other end, which has to be open.
    _socket: UnixStream,
}

/// What came back.
#[derive(Debug, Default, PartialEq, Eq)]
struct Back {
    passed: Vec<Vec<u8>>,
    /// Where to, and the bytes.
    sent: Vec<(u16, Vec<u8>)>,
    dropped: usize,
}

impl Bench {
    fn new(limits: Limits, rate: u64) -> Self {
        let sizes = Sizes::at_least(0, 0);
        let memory = Arc::new(Memory::create(sizes.words()).unwrap());
        let (here, there) = UnixStream::pair().unwrap();
        let status = Arc::new(Status::default());
        let bell = Bell::Socket(Arc::new(here));
        let wire = Wire::new(Arc::clone(&memory), sizes, bell, Arc::clone(&status), false);
        let mut seat = Seat::new("test", limits);
        seat.attach(Attach { seat: 0, wire, promised: rate, share: 0 });
        seat.set_rate(rate);
        Self {
            seat,
            pool: Pool::new(4 << 20).unwrap(),
            out: Outbox::default(),
            passed: Vec::with_capacity(longwire_block::OUTBOX),
            common: Common(Allowance::UNBOUNDED),
            up: Reader::new(Arc::clone(&memory), sizes.up_place()),
            down: Writer::new(Arc::clone(&memory), sizes.down_place()),
            memory,
            status,
            _socket: there,
        }
    }

    fn offer(&mut self, at: u64, frame: &[u8]) -> Result<(), Refused> {
        let handle = self.pool.insert(frame).unwrap();
        self.pool.meta_mut(handle).arrival = at;
        let class = Class { fid: 9, class: 2, flow: 77, network: 14, transport: 34 };
        let offered = self.seat.offer(&self.pool, handle, &class, &mut self.common);
        if offered.is_err() {
            self.pool.free(handle);
        }
        self.seat.publish(Nanos(at));
        offered
    }

    fn collect(&mut self, at: u64) -> Back {
        let Self { seat, pool, out, passed, common, .. } = self;
        let rewritten = &mut Vec::new();
        seat.collect(&mut Way {
            pool,
            out,
            passed,
            rewritten,
            ports: PORTS,
            now: Nanos(at),
            made: 0,
            common,
        });
        let mut back = Back::default();
        for handle in passed.drain(..) {
            assert_eq!(pool.meta(handle).arrival, at);
            back.passed.push(pool.data(handle).to_vec());
            pool.free(handle);
        }
        for &(handle, port) in out.packets() {
            match port {
                port if PORTS.contains(&port) => back.sent.push((port, pool.data(handle).to_vec())),
                port => {
                    let by_verdict = longwire_block::REFUSED + DropReason::Service as u16;
                    let unanswered = longwire_block::REFUSED + DropReason::LevelLate as u16;
                    assert!([by_verdict, unanswered].contains(&port), "{port}");
                    assert!(port == by_verdict || seat.limits.drops);
                    back.dropped += 1;
                }
            }
            pool.free(handle);
        }
        out.clear();
        assert_eq!(pool.live(), seat.kept());
        back
    }

    /// What the other side is told next.
    fn told(&mut self) -> Option<(Opening, Facts, Vec<u8>)> {
        let available = self.up.available().unwrap();
        if available == 0 {
            return None;
        }
        let line = self.up.line(0);
        let opening = Opening::read(line[0]);
        assert!(opening.can_be(available));
        let mut bytes = vec![0; opening.bytes as usize];
        self.up.bytes(1, &mut bytes);
        self.up.advance(opening.lines.into());
        self.up.release();
        Some((opening, Facts::read(&line), bytes))
    }

    fn say(&mut self, kind: u16, words: [u64; 3], bytes: &[u8]) {
        let opening = Opening::new(kind, bytes.len());
        assert!(self.down.has_room(opening.lines.into()).unwrap());
        self.down.line(0, &[opening.word(), words[0], words[1], words[2], 0, 0, 0, 0]);
        self.down.bytes(1, bytes);
        self.down.advance(opening.lines.into());
        self.down.publish();
    }

    fn answer(&mut self, token: u64, verdict: Verdict) {
        self.say(down::VERDICT, [token, verdict.word(), 0], &[]);
    }
}

fn frame(len: usize) -> Vec<u8> {
    (0..len).map(|n| n as u8).collect()
}

const fn send(port: u16) -> Verdict {
    Verdict::Send { port, band: None }
}

#[test]
fn what_is_not_to_go_on_without_an_answer_is_dropped() {
    let limits = Limits { drops: true, answer_within: Nanos(30 * MS), ..Limits::default() };
    let mut bench = Bench::new(limits, 1_000_000);
    bench.offer(0, &frame(60)).unwrap();
    bench.offer(1, &frame(60)).unwrap();
    bench.answer(1, Verdict::Pass);
    let passed = Back { passed: vec![frame(60)], ..Back::default() };
    assert_eq!(bench.collect(30 * MS - 1), passed);
    let dropped = || Back { dropped: 1, ..Back::default() };
    assert_eq!(bench.collect(30 * MS), dropped(), "late");
    bench.offer(31 * MS, &frame(60)).unwrap();
    bench.seat.cut(Cut::Left);
    assert_eq!(bench.collect(32 * MS), dropped(), "who had it is gone");
    assert_eq!(bench.offer(33 * MS, &frame(60)), Err(Refused::Absent), "nobody is there");
    let Counts { late, returned, absent, .. } = bench.seat.counts;
    assert_eq!((late, returned, absent), (1, 1, 1));
}

#[test]
fn packets_go_up_with_what_is_known_and_come_back() {
    let mut bench = Bench::new(Limits::default(), 1_000_000);
    for (at, len) in [(5, 60), (6, 200), (7, 64), (8, 64)] {
        bench.offer(at, &frame(len)).unwrap();
    }
    let (opening, facts, bytes) = bench.told().unwrap();
    let class = Class { fid: 9, class: 2, flow: 77, network: 14, transport: 34 };
    let first = Facts { token: 0, time: 5, expires: 5 + 20 * MS, in_port: 0, len: 60, segments: 1, class };
    assert_eq!((opening, facts, bytes), (Opening::new(up::PACKET, 60), first, frame(60)));
    let (_, facts, bytes) = bench.told().unwrap();
    assert_eq!((facts.token, facts.len, bytes), (1, 200, frame(64)), "the first 64 bytes");

    bench.answer(2, send(7));
    bench.answer(1, Verdict::Drop);
    bench.say(down::VERDICT, [0, Verdict::Pass.word(), 0], &[0xee; 3]);
    let mut changed = frame(60);
    changed[..3].fill(0xee);
    let back = Back { passed: vec![changed], sent: vec![(7, frame(64))], dropped: 1 };
    assert_eq!(bench.collect(MS), back);
    assert_eq!((bench.seat.kept(), bench.seat.counts.verdicts, bench.seat.counts.faults), (1, 3, 0));
}

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
        let (opening, _, bytes) = bench.told().unwrap();
        assert_eq!((opening.kind, bytes), (up::BODY, frame(1500)[given].to_vec()), "{count} from {from}");
    }
    assert_eq!((bench.seat.counts.bodies, bench.seat.counts.faults), (4, 0));
    // Beyond the end, and of a packet that is not up: an empty answer, and a fault.
    for (token, from) in [(0, 1501), (1, 0)] {
        bench.say(down::FETCH, [token, 0, from | 5 << 32], &[]);
        bench.collect(MS);
        assert!(bench.told().unwrap().2.is_empty());
    }
    assert_eq!((bench.seat.counts.bodiless, bench.seat.counts.faults), (2, 2));
}

#[test]
fn a_body_waits_for_room() {
    let mut bench = Bench::new(Limits::default(), 1_000_000);
    bench.offer(5, &frame(MAX_FRAME)).unwrap();
    bench.told().unwrap();
    // The ring has 4096 lines, of which each body takes 1025. One is copied in one go.
    for _ in 0..5 {
        bench.say(down::FETCH, [0, 0, u64::from(MAX_FRAME as u32) << 32], &[]);
    }
    bench.answer(0, send(3));
    // (whether the other side reads one first, bodies given, packets sent): what was said after a fetch waits for it.
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
        assert_eq!((bench.seat.counts.bodies, back.sent.len()), (bodies, sent), "round {round}");
    }
    assert_eq!((bench.seat.counts.bodiless, bench.seat.counts.faults, bench.seat.kept()), (0, 0, 0));
}

#[test]
fn who_asks_for_bodies_and_reads_none_is_cut_off() {
    let mut bench = Bench::new(Limits::default(), 1_000_000);
    // Even if no packet is up: each of these is an empty body, one of 4096 lines, and a fault, of which 1000 a second are forgiven.
    for at in 0..120 {
        for _ in 0..40 {
            bench.say(down::FETCH, [7, 0, 0], &[]);
        }
        bench.collect(at * 100 * MS);
        if !bench.seat.is_taken() {
            break;
        }
    }
    assert_eq!(bench.seat.counts.last_cut, Some(Cut::Stalled));
}

#[test]
fn new_packets_go_out_of_the_nodes_ports_only() {
    let mut bench = Bench::new(Limits::default(), 1000);
    // (port, bytes, whether it is sent)
    for (port, len, is_sent) in
        [(3, 64, true), (4, 64, false), (0xffff, 64, false), (3, 13, false), (3, MAX_FRAME, true)]
    {
        bench.say(down::NEW, [0, send(port).word(), 0], &frame(len));
        let sent = if is_sent { vec![(port, frame(len))] } else { vec![] };
        assert_eq!(bench.collect(MS).sent, sent, "{len} bytes to {port}");
    }
    assert_eq!((bench.seat.counts.made, bench.seat.counts.faults), (2, 3));
    // 1000 a second and 126 at once were promised; two are gone.
    for _ in 0..200 {
        bench.say(down::NEW, [0, send(3).word(), 0], &frame(60));
    }
    assert_eq!(bench.collect(MS).sent.len(), 124);
    assert_eq!(bench.seat.counts.unmade, 76);
}

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
    assert_eq!((bench.seat.counts.late, bench.seat.counts.faults), (1, 0), "which is no fault");
    bench.answer(1, Verdict::Drop);
    bench.collect(21 * MS);
    assert_eq!((bench.seat.counts.late, bench.seat.counts.faults), (1, 1), "the other was answered");
    // One packet every 100 ms, none answered: cut off after more than a second.
    for tenth in 1..=12 {
        bench.offer(tenth * 100 * MS, &frame(60)).unwrap();
        bench.collect(tenth * 100 * MS + 50 * MS);
        let has_ended = !bench.seat.is_taken();
        assert_eq!(has_ended, tenth * 100 + 50 > 1100, "at {tenth}50 ms");
        if has_ended {
            break;
        }
    }
    assert_eq!(bench.seat.counts.last_cut, Some(Cut::Stalled));
    assert_eq!(bench.offer(2000 * MS, &frame(60)), Err(Refused::Gone));
}

#[test]
fn who_answers_late_is_not_cut_off_and_who_says_more_than_that_is() {
    let mut bench = Bench::new(Limits { faults: 10, ..Limits::default() }, 1_000_000);
    // 100 packets every 50 ms for ten seconds, all answered 30 ms later, which is 10 ms too late: 2000 a second.
    let mut next = 0;
    for round in 0..200 {
        let at = round * 50 * MS;
        (0..100).for_each(|_| bench.offer(at, &frame(60)).unwrap());
        assert_eq!(bench.collect(at + 20 * MS).passed.len(), 100);
        for _ in 0..100 {
            // Half of them it asks for bytes first.
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
    let Counts { verdicts, late, faults, cut, .. } = bench.seat.counts;
    assert_eq!((verdicts, late, faults, cut), (0, 20_000, 0, 0));
    // Three that are late allow for three answers about packets that have been up, not for others; the twenty-first fault is one too many.
    (0..3).for_each(|_| bench.offer(20_000 * MS, &frame(60)).unwrap());
    bench.collect(20_020 * MS);
    for (token, faults) in [(next + 3, 1), (0, 1), (next, 1), (next, 1), (next + 1, 2), (next + 2, 3)] {
        bench.answer(token, Verdict::Drop);
        bench.collect(20_020 * MS);
        assert_eq!((bench.seat.counts.faults, bench.seat.counts.cut), (faults, 0), "token {token}");
    }
    (0..18).for_each(|_| bench.answer(next, Verdict::Drop));
    bench.collect(20_020 * MS);
    assert_eq!((bench.seat.counts.faults, bench.seat.counts.last_cut), (21, Some(Cut::Flood)));
}

#[test]
fn packets_given_back_are_late_and_no_fault() {
    let mut bench = Bench::new(Limits { patience: Nanos(100 * MS), ..Limits::default() }, 1_000_000);
    for round in 0..20 {
        let (at, token) = (round * 60 * MS, 2 * round);
        (0..2).for_each(|_| bench.offer(at, &frame(60)).unwrap());
        // One in time, one when it has been taken back already: either is a word, and nobody is silent.
        bench.say(down::RETURN, [token, 0, 0], &[]);
        assert_eq!(bench.collect(at + 15 * MS).passed.len(), 1);
        assert_eq!(bench.collect(at + 20 * MS).passed.len(), 1);
        bench.say(down::RETURN, [token + 1, 0, 0], &[]);
        assert_eq!(bench.collect(at + 30 * MS), Back::default());
        let Counts { verdicts, late, faults, cut, .. } = bench.seat.counts;
        assert_eq!((verdicts, late, faults, cut), (0, 2 * round + 2, 0, 0));
    }
    bench.say(down::RETURN, [0, 0, 0], &[]);
    bench.collect(1200 * MS);
    assert_eq!(bench.seat.counts.faults, 1, "there is none any more");
}

#[test]
fn full_and_beyond_the_promise_are_refused() {
    let limits = Limits { packets: 16, ..Limits::default() };
    let mut bench = Bench::new(limits, 1_000_000);
    (0..16).for_each(|n| bench.offer(n, &frame(60)).unwrap());
    assert_eq!(bench.offer(20, &frame(60)), Err(Refused::Full));
    // The oldest holds back those after it.
    (1..16).for_each(|token| bench.answer(token, Verdict::Drop));
    assert_eq!(bench.collect(MS).dropped, 15);
    assert_eq!(bench.offer(MS, &frame(60)), Err(Refused::Full));
    bench.answer(0, Verdict::Drop);
    bench.collect(MS);
    assert_eq!(bench.offer(MS, &frame(60)), Ok(()));
    assert_eq!((bench.seat.counts.full, bench.seat.counts.over_rate), (2, 0));

    let mut bench = Bench::new(Limits::default(), 8);
    let offered: Vec<_> = (0..4).map(|_| bench.offer(MS, &frame(60)).is_ok()).collect();
    assert_eq!((offered, bench.seat.counts.over_rate), (vec![true, true, false, false], 2));
}

/// A thousandth of the worker's time is set aside: 10 us at once, 50 trips, and 5 a millisecond.
#[test]
fn packets_go_up_as_far_as_time_is_set_aside() {
    let mut bench = Bench::new(Limits::default(), 1_000_000_000);
    bench.common = Common(Allowance::new(1_000_000));
    let up = (0..200).filter(|_| bench.offer(MS, &frame(60)).is_ok()).count();
    assert_eq!((up, bench.seat.counts.over_time, bench.seat.counts.worker_ns), (50, 150, 50 * TRIP));
    assert!(bench.seat.refuses(&mut bench.common, Nanos(MS)));
    assert_eq!((bench.seat.counts.over_time, bench.seat.counts.over_rate), (151, 0));
    let up = (0..200).filter(|_| bench.offer(2 * MS, &frame(60)).is_ok()).count();
    assert_eq!(up, 5);
    // Answers are paid for: they come back though no time is left.
    for token in 0..55 {
        bench.answer(token, Verdict::Pass);
    }
    assert_eq!((bench.collect(2 * MS).passed.len(), bench.seat.counts.worker_ns), (55, 55 * TRIP));
    // What the seat was promised of it is its own.
    bench.seat.time = Allowance::new(1_000_000);
    let up = (0..200).filter(|_| bench.offer(2 * MS, &frame(60)).is_ok()).count();
    assert_eq!(up, 50);
}

/// Bodies and new packets wait for time, and so does what was said after them; bytes are paid for.
#[test]
fn what_is_asked_for_waits_for_time() {
    let limits = Limits { answer_within: Nanos(200 * MS), ..Limits::default() };
    let mut bench = Bench::new(limits, 1_000_000);
    bench.common = Common(Allowance::new(1_000_000));
    bench.offer(MS, &frame(1500)).unwrap();
    bench.told().unwrap();
    for _ in 0..100 {
        bench.say(down::FETCH, [0, 0, 1500 << 32], &[]);
    }
    bench.answer(0, Verdict::Pass);
    // A trip for the packet; then 200 and 23 times 5 ns for each body, until 10 us are used up.
    assert!(bench.collect(MS).passed.is_empty());
    let each = TRIP + 23 * crate::allowance::COPIED_LINE;
    let bodies = (10_000 - TRIP).div_ceil(each);
    assert_eq!((bench.seat.counts.bodies, bench.seat.counts.worker_ns), (bodies, TRIP + bodies * each));
    let mut now = MS;
    while bench.seat.counts.verdicts == 0 && now < 100 * MS {
        while bench.told().is_some() {}
        now += 100_000;
        bench.collect(now);
    }
    // The last 68 bodies take about 21 ms at a thousandth of the time.
    assert_eq!(bench.seat.counts.bodies, 100);
    let used = TRIP + 100 * each;
    assert_eq!(bench.seat.counts.worker_ns, used);
    assert!(
        (used - 10_000) * 1000 <= now - MS + each * 1000 && now - MS <= (used - 10_000) * 1000 + 200_000,
        "{now}"
    );
    // New packets, too.
    bench.say(down::NEW, [0, send(3).word(), 0], &frame(60));
    assert!(bench.collect(now).sent.is_empty());
    let sent = bench.collect(now + MS).sent;
    assert_eq!(sent.len(), 1);
    assert_eq!((bench.seat.counts.made, bench.seat.counts.worker_ns), (1, used + TRIP));
}

#[test]
fn who_leaves_or_writes_nonsense_is_cut_off_and_nothing_is_lost() {
    type Deed = fn(&mut Bench);
    let deeds: [(Deed, Cut); 6] = [
        (|bench| bench.status.leave(Cut::Left), Cut::Left),
        (|bench| bench.memory.words()[DOWN_HEAD].store(u64::MAX, Ordering::Relaxed), Cut::Broken),
        (|bench| bench.say(99, [0; 3], &[]), Cut::Broken),
        (
            |bench| {
                bench.down.line(0, &[u64::MAX; 8]);
                bench.down.advance(1);
                bench.down.publish();
            },
            Cut::Broken,
        ),
        (|bench| (0..250).for_each(|_| bench.answer(1 << 40, Verdict::Drop)), Cut::Flood),
        (|bench| (0..250).for_each(|_| bench.say(down::NEW, [0, send(9).word(), 0], &[0; 60])), Cut::Flood),
    ];
    for (at, (deed, why)) in deeds.into_iter().enumerate() {
        let limits = Limits { faults: 100, ..Limits::default() };
        let mut bench = Bench::new(limits, 1_000_000);
        (0..100).for_each(|n| bench.offer(n, &frame(60)).unwrap());
        deed(&mut bench);
        let mut passed = bench.collect(MS).passed.len();
        passed += bench.collect(MS).passed.len();
        assert_eq!((passed, bench.seat.counts.last_cut), (100, Some(why)), "deed {at}");
        assert_eq!((bench.seat.kept(), bench.status.cut()), (0, Some(why)));
        assert_eq!(bench.memory.words()[ENDED].load(Ordering::Relaxed), why as u64 + 1);
    }
}

#[test]
fn a_successor_does_not_speak_about_its_forerunners_packets() {
    let mut bench = Bench::new(Limits::default(), 1_000_000);
    bench.offer(5, &frame(60)).unwrap();
    let mut other = Bench::new(Limits::default(), 1_000_000);
    let wire = other.seat.wire.take().unwrap();
    bench.seat.attach(Attach { seat: 0, wire, promised: 10, share: 0 });
    bench.seat.set_rate(1_000_000);
    bench.down = other.down;
    bench.offer(6, &frame(61)).unwrap();
    bench.answer(0, Verdict::Drop);
    bench.answer(1, Verdict::Drop);
    let back = bench.collect(MS);
    assert_eq!((back.dropped, back.passed), (1, vec![frame(60)]));
    assert_eq!((bench.seat.counts.returned, bench.seat.counts.came), (1, 2));
}

#[test]
fn who_sleeps_is_woken_once_a_batch_and_not_too_often() {
    let mut bench = Bench::new(Limits::default(), 1_000_000);
    bench.memory.words()[crate::layout::ASLEEP].store(1, Ordering::Relaxed);
    // One each microsecond: sixteen at once, then one each 100 µs.
    for n in 0..200u64 {
        bench.offer(n * 1000, &frame(60)).unwrap();
    }
    assert_eq!(bench.seat.counts.wakes, 16 + 1);
    // What was owed is made good, when it may be and it still sleeps.
    bench.collect(400_000);
    assert_eq!(bench.seat.counts.wakes, 18);
    bench.collect(900_000);
    assert_eq!(bench.seat.counts.wakes, 18);
}

/// How often the scribbler writes: its leaps of the index alone lead far beyond the ring's end, so that whoever looks at
/// last has something to notice, however the two threads took turns.
const SCRIBBLES: usize = 100_000;

/// The same hostility from another thread, at any moment: what is checked is what is used.
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
            assert!(bench.seat.counts.cut > 0, "round {round}: it was noticed");
            bench.seat.cut(Cut::Stopped);
            bench.collect(now);
            assert_eq!(bench.pool.live(), 0);
        }
    });
}

/// Writes records that are nearly right all over the ring that leads down, and moves its index by leaps.
fn scribble(memory: &Memory, seed: u64) {
    let mut dice = seed;
    let mut roll = || {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        dice >> 33
    };
    let sizes = Sizes::at_least(0, 0);
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

/// What a hostile process does between two looks.
#[derive(Debug, Clone)]
enum Deed {
    /// Writes a word anywhere.
    Word(usize, u64),
    /// Writes a record, right or wrong, with a token.
    Record(u16, u64, u64, u64, usize),
    /// Writes a line of anything where the next record begins.
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
            .prop_map(|(kind, token, verdict, range, bytes)| Deed::Record(kind, token, verdict, range, bytes)),
        1 => any::<[u64; 8]>().prop_map(Deed::Line),
        4 => Just(Deed::Read),
        4 => (0..5 * MS).prop_map(Deed::Wait),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Whatever it writes, wherever: nothing panics, no packet is lost or comes back twice, and what the node holds is what it says.
    #[test]
    fn a_hostile_process_loses_its_place_and_nothing_else(deeds in proptest::collection::vec(deed(), 1..200)) {
        let mut bench = Bench::new(Limits { packets: 64, ..Limits::default() }, 1_000_000);
        let (mut now, mut went, mut came) = (MS, 0, 0);
        for deed in deeds {
            went += u64::from(bench.offer(now, &frame(60 + now as usize % 1000)).is_ok());
            match deed {
                Deed::Word(at, word) => bench.memory.words()[at % bench.memory.words().len()].store(word, Ordering::Relaxed),
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
            let made = bench.seat.counts.made;
            let back = bench.collect(now);
            came += (back.passed.len() + back.sent.len() + back.dropped) as u64 - (bench.seat.counts.made - made);
            prop_assert_eq!(bench.seat.kept(), went - came);
        }
        bench.seat.cut(Cut::Stopped);
        let rest = bench.collect(now).passed.len() as u64;
        prop_assert_eq!((bench.pool.live(), went), (0, came + rest));
        let Counts { up, verdicts, late, returned, .. } = bench.seat.counts;
        prop_assert_eq!(up, verdicts + late + returned);
    }
}
