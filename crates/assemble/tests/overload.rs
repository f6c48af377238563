//! A run that is not faithful says so, and names the cause.

use crate::support::two_ports;
use longwire_assemble::build;
use longwire_block::{DropReason, Port, PortError, PortStats, Stamp};
use longwire_engine::{Fidelity, Observer, PacketView, Report};
use longwire_packet::{Batch, PacketEvent, Pool};
use longwire_port::driver::memory::{FarEnd, MemoryPort};
use longwire_scenario::{Plan, plan_of};
use longwire_units::Nanos;
use std::time::{Duration, Instant};

fn plan(link: &str, engine: &str) -> Plan {
    let text = format!(
        r#"{}
[[link]]
name = "l"
between = ["p0", "p1"]
{link}
[engine]
wait = "spin"
{engine}
"#,
        two_ports()
    );
    plan_of(&text)
}

/// Works for a while.
fn labour(time: Nanos) {
    let begun = longwire_clock::monotonic();
    while longwire_clock::monotonic().since(begun) < time {
        std::hint::spin_loop();
    }
}

/// An observer that is slow for every packet.
struct Slow(Nanos);

impl Observer for Slow {
    fn see(&mut self, event: PacketEvent, _: &PacketView<'_>) {
        if matches!(event, PacketEvent::Arrived { .. }) {
            labour(self.0);
        }
    }
}

/// A port that is polled slowly: frames wait in it.
struct SlowToLook {
    port: MemoryPort,
    takes: Nanos,
}

impl Port for SlowToLook {
    fn name(&self) -> &str {
        self.port.name()
    }

    fn describe(&self) -> String {
        self.port.describe()
    }

    fn stamp(&self) -> Stamp {
        self.port.stamp()
    }

    fn receive(&mut self, pool: &mut Pool, now: Nanos, batch: &mut Batch) -> Result<(), PortError> {
        labour(self.takes);
        self.port.receive(pool, now, batch)
    }

    fn transmit(&mut self, pool: &mut Pool, batch: &Batch) -> Result<(), PortError> {
        self.port.transmit(pool, batch)
    }

    fn stats(&self) -> PortStats {
        self.port.stats()
    }
}

/// Traffic of a test, and its obstacles.
struct Load {
    frames: u32,
    every: Duration,
    observer: Option<Nanos>,
    look: Nanos,
}

/// Frames from the first port to the second.
fn frame(plan: &Plan) -> Vec<u8> {
    crate::support::frame(plan, 0, 1, 1000)
}

fn pair(plan: &Plan, place: usize) -> (MemoryPort, FarEnd) {
    MemoryPort::pair(&plan.ports[place].name, Stamp::Poll, 1 << 14, 32 << 20)
}

/// Runs until every frame has been sent or dropped.
fn run(plan: &Plan, load: &Load) -> Report {
    let ((port, mut wire), (other, mut sink)) = (pair(plan, 0), pair(plan, 1));
    // The second port's station is learnt first, so that nothing is flooded.
    assert!(sink.push(&crate::support::frame(plan, 1, 0, 1000)));
    let ports = vec![Box::new(SlowToLook { port, takes: load.look }) as Box<dyn Port>, Box::new(other)];
    let observer = |_| load.observer.map(|time| Box::new(Slow(time)) as Box<dyn Observer>);
    let run = build(plan, ports, observer).unwrap().setup.start();
    let (frame, begun) = (frame(plan), Instant::now());
    for number in 0..load.frames {
        while begun.elapsed() < load.every * number {
            std::hint::spin_loop();
        }
        assert!(wire.push(&frame));
    }
    let remote = run.remote();
    loop {
        let report = remote.report(longwire_assemble::tolerance(plan)).unwrap();
        let kept = report.links.iter().map(|link| &link.stats);
        let kept: u64 = kept.map(|stats| stats.queued_packets + stats.travelling_packets).sum();
        let seen: u64 = report.ports.iter().map(|port| port.stats.in_frames + port.stats.in_pool_full).sum();
        if seen > u64::from(load.frames) && kept == 0 {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "the run does not come to rest: {report:?}");
    }
    let report = run.stop();
    assert!(report.is_conserved(), "{report:?}");
    report
}

fn verdict(report: &Report) -> &Fidelity {
    report.fidelity.as_ref().unwrap()
}

/// Whether one of the causes contains `what`.
fn names(report: &Report, what: &str) -> bool {
    verdict(report).causes.iter().any(|cause| cause.contains(what))
}

#[test]
fn a_worker_with_more_to_do_than_it_can_is_overloaded_not_paused() {
    // 3 µs of work per packet, and packets that arrive faster: a batch of 64 takes 200 µs, and each should
    // leave after 10.
    let load = Load {
        frames: 8000,
        every: Duration::from_micros(1),
        observer: Some(Nanos::from_micros(3)),
        look: Nanos::ZERO,
    };
    let report = run(&plan("delay = \"10 us\"", ""), &load);
    assert!(!verdict(&report).faithful && names(&report, "overloaded"), "{:?}", verdict(&report));
}

#[test]
fn a_full_pool_is_named() {
    // 2000 frames of 1000 bytes, all in flight at once, need twice the megabyte.
    let load = Load { frames: 2000, every: Duration::from_micros(10), observer: None, look: Nanos::ZERO };
    let report = run(&plan("delay = \"300 ms\"", "pool = \"1 MiB\""), &load);
    assert!(!verdict(&report).faithful && names(&report, "engine.pool"), "{:?}", verdict(&report));
    let lost: u64 = report.ports.iter().map(|port| port.stats.in_pool_full).sum();
    assert!(lost > 500, "{lost} of 2000 lost");
    // Packets that the port refused are counted as received and dropped.
    assert_eq!((report.flow.dropped(DropReason::PoolFull), report.flow.taken), (lost, 2001));
}

/// A driver's ring may hold frames from before the run, with their old stamps.
#[test]
fn frames_older_than_the_run_are_not_late() {
    let plan = plan("", "");
    let pair = |place: usize| MemoryPort::pair(&plan.ports[place].name, Stamp::Kernel, 64, 1 << 20);
    let ((port, mut wire), (other, mut sink)) = (pair(0), pair(1));
    // At least minutes old: this clock started with the machine.
    let old = Nanos(1);
    assert!((0..5).all(|_| wire.push_at(old, &frame(&plan))));
    let ports = vec![Box::new(port) as Box<dyn Port>, Box::new(other)];
    let run = build(&plan, ports, |_| None).unwrap().setup.start();
    let begun = Instant::now();
    let mut came = 0;
    while came < 5 {
        came += usize::from(sink.take().is_some());
        assert!(begun.elapsed() < Duration::from_secs(20), "{came} of 5 frames came");
    }
    let report = run.stop();
    let latest = verdict(&report).lateness.all.max;
    assert!(latest.as_duration() <= begun.elapsed() + Duration::from_secs(1), "{latest} late");
}

#[test]
fn an_input_that_is_looked_at_too_seldom_is_named() {
    let load = Load {
        frames: 1000,
        every: Duration::from_micros(100),
        observer: None,
        look: Nanos::from_micros(400),
    };
    let report = run(&plan("delay = \"1 ms\"", ""), &load);
    assert!(!verdict(&report).faithful && names(&report, "the input stalled"), "{:?}", verdict(&report));
}

#[test]
fn nothing_is_wrong_where_there_is_little_to_do() {
    let load = Load { frames: 200, every: Duration::from_micros(500), observer: None, look: Nanos::ZERO };
    let report = run(&plan("delay = \"1 ms\"", "\n[fidelity]\nwithin = \"1 s\""), &load);
    assert!(verdict(&report).faithful, "{:?}", verdict(&report));
}
