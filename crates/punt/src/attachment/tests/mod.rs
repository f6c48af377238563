//! Attachments with both sides in one thread: the test acts as the process by writing into the memory.

mod bodies;
mod faults;

use super::*;
use crate::layout::{DOWN_HEAD, ENDED, MAX_FRAME, RingSizes};
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

/// An attachment, its node's state, and the other side.
struct Bench {
    attachment: Attachment,
    pool: Pool,
    out: Outbox,
    passed: Vec<Handle>,
    common: SharedAllowance,
    memory: Arc<Memory>,
    up: Reader,
    down: Writer,
    status: Arc<Status>,
    /// Its other end, which must stay open.
    _socket: UnixStream,
}

/// Packets that came back.
#[derive(Debug, Default, PartialEq, Eq)]
struct Back {
    passed: Vec<Vec<u8>>,
    /// Output ports, and bytes.
    sent: Vec<(u16, Vec<u8>)>,
    dropped: usize,
}

impl Bench {
    fn new(limits: Limits, rate: u64) -> Self {
        let sizes = RingSizes::at_least(0, 0);
        let memory = Arc::new(Memory::create(sizes.words()).unwrap());
        let (here, there) = UnixStream::pair().unwrap();
        let status = Arc::new(Status::default());
        let bell = Bell::Socket(Arc::new(here));
        let wire = Wire::new(Arc::clone(&memory), sizes, bell, Arc::clone(&status), false);
        let mut attachment = Attachment::new("test", limits);
        attachment.attach(Attach { attachment: 0, wire, promised: rate, share: 0 });
        attachment.set_rate(rate);
        Self {
            attachment,
            pool: Pool::new(4 << 20).unwrap(),
            out: Outbox::default(),
            passed: Vec::with_capacity(longwire_block::OUTBOX),
            common: SharedAllowance(Allowance::UNBOUNDED),
            up: Reader::new(Arc::clone(&memory), sizes.up_place()),
            down: Writer::new(Arc::clone(&memory), sizes.down_place()),
            memory,
            status,
            _socket: there,
        }
    }

    fn offer(&mut self, at: u64, frame: &[u8]) -> Result<(), OfferError> {
        let handle = self.pool.insert(frame).unwrap();
        self.pool.meta_mut(handle).arrival = at;
        let class = Class { fid: 9, class: 2, flow: 77, network: 14, transport: 34 };
        let offered = self.attachment.offer(&self.pool, handle, &class, &mut self.common);
        if offered.is_err() {
            self.pool.free(handle);
        }
        self.attachment.publish(Nanos(at));
        offered
    }

    fn collect(&mut self, at: u64) -> Back {
        let Self { attachment, pool, out, passed, common, .. } = self;
        let rewritten = &mut Vec::new();
        attachment.collect(&mut ReturnPath {
            pool,
            out,
            passed,
            rewritten,
            ports: PORTS,
            down: &[],
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
                    assert!(port == by_verdict || attachment.limits.drops);
                    back.dropped += 1;
                }
            }
            pool.free(handle);
        }
        out.clear();
        assert_eq!(pool.live(), attachment.kept());
        back
    }

    /// The next record for the other side.
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
    bench.attachment.cut(CutReason::Left);
    assert_eq!(bench.collect(32 * MS), dropped(), "who had it is gone");
    assert_eq!(bench.offer(33 * MS, &frame(60)), Err(OfferError::Absent), "nobody is there");
    let Counts { late, returned, absent, .. } = bench.attachment.counts;
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
    assert_eq!(
        (bench.attachment.kept(), bench.attachment.counts.verdicts, bench.attachment.counts.faults),
        (1, 3, 0)
    );
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
    assert_eq!((bench.attachment.counts.made, bench.attachment.counts.faults), (2, 3));
    // 1000 a second and 126 at once were guaranteed; two are gone.
    for _ in 0..200 {
        bench.say(down::NEW, [0, send(3).word(), 0], &frame(60));
    }
    assert_eq!(bench.collect(MS).sent.len(), 124);
    assert_eq!(bench.attachment.counts.unmade, 76);
}

#[test]
fn full_and_beyond_the_promise_are_refused() {
    let limits = Limits { packets: 16, ..Limits::default() };
    let mut bench = Bench::new(limits, 1_000_000);
    (0..16).for_each(|n| bench.offer(n, &frame(60)).unwrap());
    assert_eq!(bench.offer(20, &frame(60)), Err(OfferError::Full));
    // The oldest blocks those after it.
    (1..16).for_each(|token| bench.answer(token, Verdict::Drop));
    assert_eq!(bench.collect(MS).dropped, 15);
    assert_eq!(bench.offer(MS, &frame(60)), Err(OfferError::Full));
    bench.answer(0, Verdict::Drop);
    bench.collect(MS);
    assert_eq!(bench.offer(MS, &frame(60)), Ok(()));
    assert_eq!((bench.attachment.counts.full, bench.attachment.counts.over_rate), (2, 0));

    let mut bench = Bench::new(Limits::default(), 8);
    let offered: Vec<_> = (0..4).map(|_| bench.offer(MS, &frame(60)).is_ok()).collect();
    assert_eq!((offered, bench.attachment.counts.over_rate), (vec![true, true, false, false], 2));
}

#[test]
fn who_sleeps_is_woken_once_a_batch_and_not_too_often() {
    let mut bench = Bench::new(Limits::default(), 1_000_000);
    bench.memory.words()[crate::layout::ASLEEP].store(1, Ordering::Relaxed);
    // One per microsecond: sixteen at once, then one every 100 µs.
    for n in 0..200u64 {
        bench.offer(n * 1000, &frame(60)).unwrap();
    }
    assert_eq!(bench.attachment.counts.wakes, 16 + 1);
    // The pending wake-up is sent once it is allowed and the process still sleeps.
    bench.collect(400_000);
    assert_eq!(bench.attachment.counts.wakes, 18);
    bench.collect(900_000);
    assert_eq!(bench.attachment.counts.wakes, 18);
}
