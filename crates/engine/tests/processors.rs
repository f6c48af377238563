//! A router in an engine whose processors are threads: nothing is lost, every flow is in order, and programs
//! are installed and removed.
#![forbid(unsafe_code)]

mod support;

use longwire_block::{Port, Stamp};
use longwire_engine::{NodeRef, Run, Setup, Wait, clock};
use longwire_packet::{CountingAllocator, allocations};
use longwire_port::driver::memory::{Facts, FarEnd, MemoryPort};
use longwire_program::{Program, assemble};
use longwire_router::{
    Fid, FlowFields, Forwarder, Installation, InterfaceAddress, Meter, Rings, Router, RouterConfig,
    RouterPort, RouterPrices, SharingConfig,
};
use longwire_sched::{PerByte, Settings};
use longwire_units::Nanos;
use longwire_wire::{Ipv4Header, ethernet_header};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use support::TestBed;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const BED: TestBed =
    TestBed { links: &[], routes: &[], workers: 1, pool_bytes: 8 << 20, lead: Nanos::from_millis(1) };
const ROUTER: NodeRef = NodeRef { worker: 0, place: 0 };
/// Longest wait for threads, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(120);
const METER: Meter = Meter { cycles: clock::cycles, per_microsecond: 1000, now: longwire_clock::monotonic };

/// A program that counts its packets.
const COUNT: &str = "r1 = 4\n call 65536\n r1 = 1\n lock *(u32 *)(r0 + 0) += w1\n r0 = 2\n exit";

fn prepared(code: &str, threads: u32) -> Forwarder {
    let program = Program::new("test", assemble(code).unwrap(), []);
    let installation = Installation { threads, ..Installation::default() };
    Forwarder::prepare(program, installation, &RouterPrices::default(), 1).unwrap()
}

/// A router with two ports and `processors` processors, which knows 10.0.1.9 behind the second.
fn router(processors: u32) -> Router {
    measured(processors, METER)
}

fn measured(processors: u32, meter: Meter) -> Router {
    let port = |place: u8| RouterPort {
        place: place.into(),
        mac: [2, 0, 0, 0, 0xff, place],
        mtu: 1500,
        v4: vec![InterfaceAddress { address: 0x0a00_0001 | u32::from(place) << 8, len: 24 }],
        v6: vec![],
    };
    let settings =
        Settings { processors, port: PerByte::of_ns(0), charged: PerByte::of_ns(0), ..Settings::default() };
    let sharing = SharingConfig {
        scheduler: "gmr3".into(),
        settings,
        fields: FlowFields::default(),
        flows: Vec::new(),
        cycles: None,
        rings: Rings { requests: 2, ..Rings::default() },
    };
    let config =
        RouterConfig { ports: (0..2).map(port).collect(), sharing: Some(sharing), ..RouterConfig::default() };
    let mut router = Router::new(config).unwrap();
    assert!(router.set_neighbour(1, [10, 0, 1, 9].into(), [2, 0, 0, 0, 0, 1]));
    router.measure_processors(meter).unwrap();
    router
}

fn setup(router: Router, wait: Wait, in_turn: bool) -> (Setup, Vec<FarEnd>) {
    let pair = |name| MemoryPort::pair(name, Stamp::Poll, 4096, 1 << 22);
    let (ports, ends): (Vec<_>, Vec<_>) = ["p0", "p1"].map(pair).into_iter().unzip();
    let ports = ports.into_iter().map(|port| Box::new(port) as Box<dyn Port>).collect();
    let mut setup = BED.setup(ports);
    setup.wait = wait;
    setup.workers[0].nodes[0] = Box::new(router);
    if in_turn {
        setup.workers[0].flat = false;
        (0..2).for_each(|port| setup.map.inner_ports.take_turns(port, true));
    }
    (setup, ends)
}

/// A UDP frame of the flow with this source port, with its number at the end.
fn udp(source_port: u16, number: u32) -> Vec<u8> {
    let header = Ipv4Header {
        source: 0x0a00_0009,
        destination: 0x0a00_0109,
        protocol: 17,
        ttl: 64,
        traffic_class: 0,
        id: 0,
        payload_len: 12,
    };
    let ethernet = ethernet_header([2, 0, 0, 0, 0xff, 0], [2, 0, 0, 0, 0, 9], 0x0800);
    let ports = [source_port.to_be_bytes(), 9u16.to_be_bytes(), 12u16.to_be_bytes(), [0; 2]].concat();
    [&ethernet[..], &header.bytes(), &ports, &number.to_be_bytes()].concat()
}

/// Traffic of three flows through a run.
struct Traffic {
    ends: Vec<FarEnd>,
    sent: [u32; 3],
    came: [u32; 3],
    begin: Instant,
}

impl Traffic {
    fn new(ends: Vec<FarEnd>) -> Self {
        Self { ends, sent: [0; 3], came: [0; 3], begin: Instant::now() }
    }

    /// Sends `more` frames, never more at once than may wait, and receives the output: each flow in order,
    /// without a gap.
    fn go_on(&mut self, more: u32) {
        for _ in 0..more {
            let flow = (self.sent.iter().sum::<u32>() % 3) as usize;
            let mut open = true;
            while open || self.underway() > 200 {
                if open && self.ends[0].push_with(&udp(flow as u16, self.sent[flow]), Facts::default()) {
                    self.sent[flow] += 1;
                    open = false;
                }
                self.take();
            }
        }
    }

    fn drain(&mut self) {
        while self.underway() > 0 {
            self.take();
            std::thread::yield_now();
        }
    }

    fn underway(&self) -> u32 {
        self.sent.iter().sum::<u32>() - self.came.iter().sum::<u32>()
    }

    fn take(&mut self) {
        assert!(self.begin.elapsed() < PATIENCE, "{:?} sent, {:?} came", self.sent, self.came);
        while let Some(frame) = self.ends[1].take() {
            let flow = usize::from(frame.bytes[35]);
            let number = u32::from_be_bytes(frame.bytes[42..46].try_into().unwrap());
            assert_eq!(number, self.came[flow], "flow {flow} is out of order, or has a gap");
            self.came[flow] += 1;
        }
    }
}

fn at<T: Send + 'static>(run: &Run, act: impl FnOnce(&mut Router) -> T + Send + 'static) -> T {
    run.remote().at_node(ROUTER, move |router: &mut Router, _| act(router)).unwrap()
}

fn count_of(run: &Run, fid: Fid) -> u32 {
    let data = at(run, move |router| router.data(fid)).unwrap();
    u32::from_le_bytes(data.try_into().unwrap())
}

#[test]
fn nothing_is_lost_while_programs_come_and_go() {
    for (processors, wait, in_turn) in
        [(2, Wait::SleepThenSpin, false), (4, Wait::Sleep, false), (2, Wait::Sleep, true)]
    {
        let mut router = router(processors);
        let counter = router.install(prepared(COUNT, processors + 1)).unwrap();
        let (setup, ends) = setup(router, wait, in_turn);
        let run = setup.start();
        let mut traffic = Traffic::new(ends);
        for round in 0..40 {
            traffic.go_on(50);
            let before = at(&run, |router| router.forwarders());
            let table = match before.all().last() {
                Some(last) if round % 2 == 1 => before.without(last.fid()).unwrap(),
                _ => before.with(prepared(COUNT, processors + 1)).unwrap().1,
            };
            let old = at(&run, move |router| router.replace_forwarders(&before, table));
            assert!(old.is_ok(), "nobody else changes it");
            let counted = count_of(&run, counter);
            assert!((traffic.came.iter().sum()..=traffic.sent.iter().sum()).contains(&counted), "{counted}");
        }
        traffic.drain();
        assert_eq!((count_of(&run, counter), traffic.sent.iter().sum()), (2000, 2000));
        let processed = at(&run, |router| router.processors()).unwrap();
        assert!(processed.measured && processed.processors == processors);
        assert_eq!((processed.all.out_packets, processed.all.inside), (2000, 0));
        let report = run.stop();
        assert!(report.is_conserved() && report.errors.is_empty(), "{report:?}");
        assert_eq!((report.flow.taken, report.flow.sent, report.flow.kept), (2000, 2000, 0));
    }
}

#[test]
fn a_run_that_is_stopped_accounts_for_what_is_with_its_processors() {
    // About 40 µs per packet.
    let begin = "r3 = *(u32 *)(r1 + 12)\n";
    let long = format!("{begin}{} r0 = 2\n exit", "r3 |= 1\n r3 *= 7\n".repeat(20_000));
    let mut router = router(2);
    router.install(prepared(&long, 3)).unwrap();
    let (setup, mut ends) = setup(router, Wait::Spin, false);
    let run = setup.start();
    for number in 0..300 {
        while !ends[0].push_with(&udp(1, number), Facts::default()) {
            std::thread::yield_now();
        }
    }
    let begin = Instant::now();
    while ends[1].take().is_none() {
        assert!(begin.elapsed() < PATIENCE);
        std::thread::yield_now();
    }
    let report = run.stop();
    assert!(report.is_conserved() && report.errors.is_empty(), "{report:?}");
}

#[test]
fn nothing_is_allocated_on_the_way_to_processors_and_back() {
    const NEVER: u64 = u64::MAX;
    /// Allocations of the worker and both processors since the run is under way, as of the last check.
    static SEEN: [AtomicU64; 3] = [const { AtomicU64::new(NEVER) }; 3];
    static MORE: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];
    static LOOKS: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];
    static UNDER_WAY: AtomicBool = AtomicBool::new(false);
    fn look() {
        let place = match std::thread::current().name() {
            Some("longwire-cpu0") => 1,
            Some("longwire-cpu1") => 2,
            _ => 0,
        };
        let under_way = UNDER_WAY.load(Ordering::Acquire);
        let all = allocations();
        let before = SEEN[place].swap(all, Ordering::Relaxed);
        if under_way {
            MORE[place].fetch_add(if before == NEVER { 0 } else { all - before }, Ordering::Relaxed);
            LOOKS[place].fetch_add(1, Ordering::Relaxed);
        }
    }
    fn cycles() -> u64 {
        look();
        clock::cycles()
    }
    fn now() -> Nanos {
        look();
        longwire_clock::monotonic()
    }
    let mut router = measured(2, Meter { cycles, now, ..METER });
    router.install(prepared(COUNT, 3)).unwrap();
    let (setup, ends) = setup(router, Wait::SleepThenSpin, false);
    let run = setup.start();
    let mut traffic = Traffic::new(ends);
    traffic.go_on(600);
    traffic.drain();
    UNDER_WAY.store(true, Ordering::Release);
    traffic.go_on(3000);
    traffic.drain();
    UNDER_WAY.store(false, Ordering::Release);
    let [more, looks] = [&MORE, &LOOKS].map(|all| all.each_ref().map(|one| one.load(Ordering::Relaxed)));
    assert!(looks[0] > 0 && looks[1] + looks[2] >= 6000, "{looks:?}");
    assert_eq!(more, [0, 0, 0]);
    assert!(run.stop().is_conserved());
}
