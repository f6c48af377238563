//! Threads as processors of a real run. Where the order matters, processors are held at a barrier and
//! released one by one.

use crate::programs::{COUNT, prepared, program};
use crate::rig::{Rig, SECOND, Seen};
use crate::sharing::{flow, rig, sharing, stats, udp};
use longwire_block::{DropReason, Node};
use longwire_program::{MapKind, MapSpec, Program, assemble};
use longwire_router::{Fid, FlowKey, Installation, Key, Meter, SharingConfig};
use longwire_units::Nanos;
use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

/// Most polls for the work of threads: minutes, however busy the machine is.
const PATIENCE: u32 = 200_000_000;

thread_local! {
    static CYCLES: Cell<u64> = const { Cell::new(0) };
    static NOW: Cell<u64> = const { Cell::new(SECOND) };
}

/// 3000 cycles between two readings of one thread.
fn cycles() -> u64 {
    CYCLES.set(CYCLES.get() + 3000);
    CYCLES.get()
}

/// 1 µs between two readings.
fn now() -> Nanos {
    NOW.set(NOW.get() + 1000);
    Nanos(NOW.get())
}

/// A machine of 2 GHz on which each packet takes 3000 cycles.
pub const METER: Meter = Meter { cycles, per_microsecond: 2000, now };

/// Several processors with rings of this depth; named flows have only measured costs.
pub fn several(scheduler: &str, processors: u32, requests: usize) -> SharingConfig {
    let mut own = sharing(scheduler);
    (own.settings.processors, own.rings.requests) = (processors, requests);
    own
}

pub fn measured(own: SharingConfig, meter: Meter) -> Rig {
    let mut rig = rig(own);
    rig.router.measure_processors(meter).unwrap();
    rig
}

fn general(threads: u32) -> Installation {
    Installation { name: "general".into(), threads, ..Installation::default() }
}

fn install(rig: &mut Rig, code: &str) -> Fid {
    rig.router.install(prepared(program("test", code), general(3))).unwrap()
}

/// A frame of the flow with this source port, marked at its end.
fn marked(source_port: u16, mark: u8) -> Vec<u8> {
    let mut frame = udp(source_port);
    // No UDP checksum.
    (frame[40], frame[41], frame[99]) = (0, 0, mark);
    frame
}

/// Advances the time once.
fn tick(rig: &mut Rig) -> Vec<Seen> {
    rig.tick(Nanos(NOW.get() + 1))
}

/// Advances the time until the condition holds.
pub fn until(rig: &mut Rig, is_so: impl Fn(&Rig, &[Seen]) -> bool) -> Vec<Seen> {
    let (mut looks, mut seen) = (0, Vec::new());
    while !is_so(rig, &seen) {
        looks += 1;
        assert!(looks < PATIENCE, "{seen:?} {:?}", stats(rig));
        seen.extend(tick(rig));
        std::thread::yield_now();
    }
    seen
}

fn drain(rig: &mut Rig) -> Vec<Seen> {
    until(rig, |rig, _| rig.router.kept() == 0)
}

fn marks(seen: &[Seen]) -> Vec<u8> {
    seen.iter().filter(|seen| **seen != Seen::Kept).map(|seen| seen.out().1[99]).collect()
}

/// Processors wait here before each packet until released, by number.
struct Barrier {
    open: Mutex<[u32; 4]>,
    changed: Condvar,
}

impl Barrier {
    const fn new() -> Self {
        Self { open: Mutex::new([0; 4]), changed: Condvar::new() }
    }

    /// Lets a processor read its counter twice for each of this many packets.
    fn open(&self, processor: usize, packets: u32) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open[processor] = open[processor].saturating_add(2 * packets);
        self.changed.notify_all();
    }

    fn pass(&self) -> u64 {
        let name = std::thread::current().name().unwrap_or_default().to_owned();
        if let Some(number) = name.strip_prefix("longwire-cpu") {
            let number: usize = number.parse().unwrap();
            let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            let mut open = self.changed.wait_while(open, |open| open[number] == 0).unwrap();
            open[number] -= 1;
        }
        cycles()
    }
}

/// Releases all at the end of a test; the rig would wait for its processors.
struct AllGo(&'static Barrier);

impl Drop for AllGo {
    fn drop(&mut self) {
        (0..4).for_each(|processor| self.0.open(processor, 1 << 30));
    }
}

/// A meter with its own barrier.
macro_rules! barrier {
    () => {{
        static BARRIER: Barrier = Barrier::new();
        let meter = Meter { cycles: || BARRIER.pass(), ..METER };
        (&BARRIER, meter)
    }};
}

#[test]
fn packets_of_a_flow_leave_in_order_whoever_is_quicker() {
    let (barrier, meter) = barrier!();
    let mut rig = measured(several("drfq", 2, 1), meter);
    let _all_go = AllGo(barrier);
    install(&mut rig, COUNT);
    let frames: Vec<_> = (1..=4).map(|mark| (SECOND, 1, marked(1, mark))).collect();
    rig.batch(&frames);
    assert_eq!(tick(&mut rig), []);
    // Two each: one in hand, one in the ring. The second processor has finished packets 2 and 4.
    barrier.open(1, 2);
    let cost = 2 * 1500;
    let seen = until(&mut rig, |rig, _| flow(rig, "heavy").processor_ns == cost);
    assert_eq!((seen, rig.router.kept()), (vec![], 4));
    barrier.open(0, 1);
    let seen = until(&mut rig, |_, seen| !seen.is_empty());
    assert_eq!(marks(&seen), [1, 2]);
    barrier.open(0, 1);
    assert_eq!(marks(&drain(&mut rig)), [3, 4]);
    let heavy = flow(&rig, "heavy");
    assert_eq!((heavy.out_packets, heavy.processor_ns, heavy.inside), (4, 2 * cost, 0));
}

#[test]
fn flows_do_not_wait_for_one_another() {
    let (barrier, meter) = barrier!();
    let mut rig = measured(several("fifo", 2, 1), meter);
    let _all_go = AllGo(barrier);
    install(&mut rig, COUNT);
    rig.batch(&[(SECOND, 1, marked(1, 1)), (SECOND, 1, marked(2, 2))]);
    tick(&mut rig);
    barrier.open(1, 1);
    assert_eq!(marks(&until(&mut rig, |_, seen| !seen.is_empty())), [2]);
    barrier.open(0, 1);
    assert_eq!(marks(&drain(&mut rig)), [1]);
}

/// Both have finished nine packets, each of a flow of its own, when the worker looks.
#[test]
fn a_busy_processor_does_not_keep_the_packets_of_another_waiting() {
    let (barrier, meter) = barrier!();
    let mut rig = measured(several("fifo", 2, 8), meter);
    let _all_go = AllGo(barrier);
    let fid = install(&mut rig, COUNT);
    let frames: Vec<_> = (0..18u8).map(|mark| (SECOND, 1, marked(1 + u16::from(mark % 2), mark))).collect();
    rig.batch(&frames);
    assert_eq!(tick(&mut rig), []);
    (0..2).for_each(|processor| barrier.open(processor, 9));
    let forwarder = rig.router.forwarders().forwarder(fid).cloned().unwrap();
    let mut looks = 0;
    while forwarder.stats().packets < 18 {
        looks += 1;
        assert!(looks < PATIENCE);
        std::thread::yield_now();
    }
    let marks = marks(&tick(&mut rig));
    assert_eq!(marks[..4], [0, 1, 2, 3], "{marks:?}");
}

#[test]
fn full_rings_keep_the_scheduler_from_being_asked() {
    for (processors, requests) in [(2, 1), (2, 3), (4, 2)] {
        let (barrier, meter) = barrier!();
        let mut own = several("fifo", processors, requests);
        own.settings.flow_limit = 20;
        let mut rig = measured(own, meter);
        let all_go = AllGo(barrier);
        install(&mut rig, COUNT);
        let with_processors = processors * (requests as u32 + 1);
        let frames: Vec<_> = (0..20).map(|mark| (SECOND, 1, marked(1, mark))).collect();
        rig.batch(&frames);
        assert_eq!(tick(&mut rig), []);
        assert_eq!(stats(&rig).waiting, u64::from(20 - with_processors));
        // As many as have left the queue fit it; one more does not.
        let frames: Vec<_> =
            (0..=with_processors as u8).map(|more| (SECOND, 1, marked(1, 20 + more))).collect();
        let seen = rig.batch(&frames);
        assert_eq!(seen.iter().filter(|seen| **seen == Seen::Dropped(DropReason::FlowFull)).count(), 1);
        assert_eq!((rig.router.kept(), stats(&rig).waiting), (20 + u64::from(with_processors), 20));
        drop(all_go);
        assert_eq!(marks(&drain(&mut rig)), (0..20 + with_processors as u8).collect::<Vec<_>>());
        // What is open stays open: the next round needs a closed barrier.
        *barrier.open.lock().unwrap() = [0; 4];
    }
}

#[test]
fn a_packet_meets_the_programs_that_were_there_when_it_was_granted() {
    let (barrier, meter) = barrier!();
    let mut rig = measured(several("fifo", 2, 1), meter);
    let all_go = AllGo(barrier);
    let count = install(&mut rig, COUNT);
    let counter = rig.router.forwarders().forwarder(count).cloned().unwrap();
    let frames: Vec<_> = (1..=6).map(|mark| (SECOND, 1, marked(1, mark))).collect();
    rig.batch(&frames);
    // Four are granted, of which two wait in rings; two are not.
    tick(&mut rig);
    let old = rig.router.forwarders();
    let dropping = prepared(program("drop", "r0 = 1\n exit"), general(3));
    let (_, new) = old.without(count).unwrap().with(dropping).unwrap();
    rig.router.replace_forwarders(&old, new).unwrap();
    assert!(rig.router.data(count).is_none());
    drop(all_go);
    let (dropped, out): (Vec<_>, Vec<_>) =
        drain(&mut rig).into_iter().partition(|seen| *seen == Seen::Dropped(DropReason::Program));
    assert_eq!((marks(&out), dropped.len()), (vec![1, 2, 3, 4], 2));
    assert_eq!((counter.stats().packets, counter.state().get()), (4, 4u32.to_le_bytes().to_vec()));
    let all = flow(&rig, "heavy");
    assert_eq!((all.out_packets, all.consumed, all.abandoned), (4, 2, 0));
}

#[test]
fn replaced_programs_are_let_go() {
    let (barrier, meter) = barrier!();
    let mut rig = measured(several("fifo", 2, 1), meter);
    let _all_go = AllGo(barrier);
    install(&mut rig, COUNT);
    let old = std::sync::Arc::downgrade(&rig.router.forwarders());
    // Each processor has two buffers: with the programs of the first round, and those of the second.
    for round in 0..2 {
        let frames: Vec<_> = (1..=4).map(|mark| (SECOND, 1, marked(1, mark))).collect();
        rig.batch(&frames);
        tick(&mut rig);
        (0..2).for_each(|processor| barrier.open(processor, 2));
        assert_eq!(marks(&drain(&mut rig)), [1, 2, 3, 4]);
        if round == 0 {
            install(&mut rig, COUNT);
            assert!(old.upgrade().is_some(), "buffers have it");
        }
    }
    // A thread releases it just after it has returned the packet.
    let mut looks = 0;
    while old.upgrade().is_some() {
        looks += 1;
        assert!(looks < PATIENCE);
        std::thread::yield_now();
    }
}

#[test]
fn what_programs_do_is_the_same_on_threads() {
    let moving =
        |offset: i32, helper: u32, code: u32| format!("r2 = {offset}\n call {helper}\n r0 = {code}\n exit");
    // Even ports: dropped. Others: the last byte of the destination changes, so that it is classified again.
    let write = "r2 = *(u32 *)(r1 + 0)
        r3 = *(u32 *)(r1 + 4)
        r4 = r2
        r4 += 40
        if r4 > r3 goto out
        r5 = 3
        *(u8 *)(r2 + 32) = r5
        r5 = *(u16 *)(r2 + 24)
        r5 -= 256
        *(u16 *)(r2 + 24) = r5
        out: r0 = 2
        exit";
    let codes: Vec<String> = vec![
        "r0 = 2\n exit".into(),
        "r0 = 3\n exit".into(),
        "r1 = 3\n r2 = 0\n call 23\n exit".into(),
        "r0 = 1\n exit".into(),
        "r0 = 0\n exit".into(),
        "r1 = 9\n r2 = 0\n call 23\n exit".into(),
        write.into(),
        moving(-20, 44, 3),
        moving(8, 44, 2),
        moving(-8, 65, 3),
        moving(100, 65, 3),
        moving(-250, 44, 2),
    ];
    for first in &codes {
        for second in &codes {
            let run = |processors: u32| {
                let mut rig = measured(several("fifo", processors, 1), METER);
                let fids = [first, second].map(|code| install(&mut rig, code));
                let frames: Vec<_> = (1..=3).map(|mark| (SECOND, 1, marked(1, mark))).collect();
                rig.batch(&frames);
                // A packet that is replaced ends on its return, unless it is dropped anyway.
                let mut seen = drain(&mut rig);
                seen.retain(|seen| *seen != Seen::Consumed);
                let counted = fids.map(|fid| rig.router.forwarders().forwarder(fid).unwrap().stats());
                let stats = rig.router.stats();
                (seen, counted, stats.forwarded, stats.dropped, stats.made - stats.consumed)
            };
            assert_eq!(run(1), run(2), "{first} then {second}");
        }
    }
}

#[test]
fn state_is_read_and_written_between_packets() {
    // Increments the first word, works for long, and increments the second.
    let code = format!(
        "r6 = r1\n r1 = 16\n call 65536\n r1 = 1\n lock *(u64 *)(r0 + 0) += r1\n {} lock *(u64 *)(r0 + 8) += \
         r1\n r0 = 2\n exit",
        "r3 = *(u64 *)(r0 + 0)\n".repeat(2000)
    );
    for processors in [2, 4] {
        let mut rig = measured(several("drfq", processors, 2), METER);
        let installation = Installation { state: Some(16), ..general(processors + 1) };
        let fid = rig.router.install(prepared(program("both", &code), installation)).unwrap();
        let halves = |rig: &Rig| {
            let data = rig.router.data(fid).unwrap();
            [0, 8].map(|at| u64::from_le_bytes(data[at..at + 8].try_into().unwrap()))
        };
        let (mut sent, mut out, mut before) = (0, 0, 0);
        for round in 0..400u64 {
            let frames: Vec<_> = (0..8).map(|mark| (SECOND, 1, marked(1 + mark % 3, 0))).collect();
            sent += frames.len();
            out +=
                rig.batch(&frames).iter().filter(|seen| **seen != Seen::Kept).count() + tick(&mut rig).len();
            let [first, second] = halves(&rig);
            assert!(first == second && first >= before, "{first} {second} in round {round}");
            before = first;
            if round % 10 == 9 {
                before = round << 32;
                assert!(rig.router.set_data(fid, &[before.to_le_bytes(), before.to_le_bytes()].concat()));
            }
        }
        out += drain(&mut rig).len();
        assert_eq!(sent, out);
        let [first, second] = halves(&rig);
        assert_eq!(first, second);
    }
}

#[test]
fn each_processor_has_values_of_its_own_in_maps_for_each() {
    const OWN: &str = "*(u32 *)(r10 - 4) = 0
        r1 = map[0] ll
        r2 = r10
        r2 += -4
        call map_lookup_elem
        if r0 == 0 goto out
        r1 = *(u64 *)(r0 + 0)
        r1 += 1
        *(u64 *)(r0 + 0) = r1
        out: r0 = 2
        exit";
    let (barrier, meter) = barrier!();
    let own = several("drfq", 2, 1);
    let threads = own.threads();
    let mut rig = measured(own, meter);
    let all_go = AllGo(barrier);
    let spec = MapSpec::new("own", MapKind::PerCpuArray, 4, 8, 1);
    let program = Program::new("own", assemble(OWN).unwrap(), [spec]);
    let fid = rig.router.install(prepared(program, general(threads))).unwrap();
    // Two packets for each processor, and one other than IP for the worker.
    let frames: Vec<_> = (1..=4).map(|mark| (SECOND, 1, marked(1, mark))).collect();
    rig.batch(&frames);
    tick(&mut rig);
    let mut other = marked(1, 5);
    other[12..14].copy_from_slice(&[0x08, 0x06]);
    rig.send(SECOND, 1, &other);
    drop(all_go);
    assert_eq!(marks(&drain(&mut rig)), [1, 2, 3, 4]);
    let forwarder = rig.router.forwarders().forwarder(fid).cloned().unwrap();
    let map = forwarder.maps().named("own").unwrap();
    let values = (0..map.copies()).map(|copy| map.get(&[0; 4], copy).unwrap()[0]);
    assert_eq!(values.collect::<Vec<_>>(), [1, 2, 2]);
}

#[test]
fn counters_add_up_and_every_flow_is_in_order() {
    for processors in [2u32, 4] {
        let mut own = several("drfq", processors, 4);
        (own.settings.flow_limit, own.settings.packets) = (4096, 4096);
        let mut rig = measured(own, METER);
        let fid = install(&mut rig, COUNT);
        let ports = [1u16, 2, 3, 4, 5];
        let (mut seen, mut sent) = (Vec::new(), 0u32);
        for round in 0..60u8 {
            let frames: Vec<_> = (0..50).map(|n| (SECOND, 1, marked(ports[n % 5], round))).collect();
            sent += 50;
            rig.batch(&frames);
            seen.extend(tick(&mut rig));
        }
        seen.extend(drain(&mut rig));
        let forwarder = rig.router.forwarders().forwarder(fid).cloned().unwrap();
        assert_eq!((forwarder.stats().packets, forwarder.stats().passed), (sent.into(), sent.into()));
        assert_eq!(rig.router.data(fid), Some(sent.to_le_bytes().to_vec()));
        for port in ports {
            let own: Vec<_> =
                seen.iter().filter(|seen| seen.out().1[34..36] == port.to_be_bytes()).cloned().collect();
            let marks = marks(&own);
            assert!(marks.len() == 600 && marks.is_sorted(), "{port}: {marks:?}");
        }
        let all = stats(&rig).all;
        assert_eq!((all.in_packets, all.out_packets, all.inside), (sent.into(), sent.into(), 0));
        assert_eq!(all.processor_ns, u64::from(sent) * 1500);
    }
}

#[test]
fn what_breaks_on_a_processor_is_one_packet() {
    static LOOKS: AtomicU32 = AtomicU32::new(0);
    fn breaks() -> u64 {
        let is_processor = std::thread::current().name().is_some_and(|name| name.starts_with("longwire-cpu"));
        // The second packet of all, before its programs.
        assert!(!is_processor || LOOKS.fetch_add(1, Ordering::Relaxed) != 2, "on purpose");
        cycles()
    }
    let mut rig = measured(several("fifo", 2, 1), Meter { cycles: breaks, ..METER });
    install(&mut rig, COUNT);
    for mark in 1..=4 {
        rig.batch(&[(SECOND, 1, marked(1, mark))]);
        let seen = drain(&mut rig);
        if mark == 2 {
            assert_eq!(seen, [Seen::Dropped(DropReason::Aborted)]);
        } else {
            assert_eq!(marks(&seen), [mark]);
        }
    }
    let heavy = flow(&rig, "heavy");
    assert_eq!((heavy.out_packets, heavy.abandoned, heavy.inside), (3, 1, 0));
}

#[test]
fn without_programs_the_worker_does_it_and_what_is_kept_at_the_end_is_accounted_for() {
    let (barrier, meter) = barrier!();
    let mut rig = measured(several("gmr3", 2, 1), meter);
    let all_go = AllGo(barrier);
    rig.batch(&[(SECOND, 1, marked(1, 1)), (SECOND, 1, marked(2, 2))]);
    // No processor has started them: all wait at the barrier.
    let mut seen = marks(&drain(&mut rig));
    seen.sort_unstable();
    assert_eq!(seen, [1, 2]);
    assert!(stats(&rig).measured && stats(&rig).processors == 2);
    // One flow has a program; the other's packets overtake those that wait for it.
    let key = FlowKey { source_port: Some(1), ..FlowKey::default() };
    let installation = Installation { key: Key::Flow(key), ..general(3) };
    rig.router.install(prepared(program("own", COUNT), installation)).unwrap();
    rig.batch(&[(SECOND, 1, marked(1, 3)), (SECOND, 1, marked(2, 4))]);
    assert_eq!(marks(&until(&mut rig, |_, seen| !seen.is_empty())), [4]);
    // A packet at a processor is kept, also when the router is dropped.
    assert_eq!((rig.router.kept(), rig.pool.live()), (1, 1));
    drop(all_go);
    drop(rig.router);
    assert_eq!(rig.pool.live(), 1);
}

#[test]
fn what_a_program_takes_on_a_processor_is_noted() {
    let mut rig = measured(several("drfq", 2, 1), METER);
    let fid = install(&mut rig, COUNT);
    rig.batch(&(0..40).map(|n| (SECOND, 1, marked(1, n))).collect::<Vec<_>>());
    drain(&mut rig);
    // The first packet of each processor that had one: 3000 cycles at 2 GHz.
    let cost = rig.router.forwarders().forwarder(fid).unwrap().measured().unwrap();
    assert!((1..=2).contains(&cost.samples), "{cost:?}");
    assert_eq!((cost.mean, cost.most), (1_500_000, 1_500_000));
}
