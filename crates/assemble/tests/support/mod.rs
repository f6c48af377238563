//! Code shared by tests of scenarios: ports, frames, and traced runs in virtual time.
#![allow(unused, reason = "each test program includes this module and uses its own part")]

use longwire_assemble::{build, rewirings};
use longwire_block::{Port, Stamp};
use longwire_engine::{Observer, Report};
use longwire_packet::{Meta, PacketEvent};
use longwire_port::driver::memory::{FarEnd, MemoryPort};
use longwire_port::driver::source::{Flow, SourcePort};
use longwire_scenario::{Plan, Source};
use longwire_units::Nanos;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

/// A section of a port with the address 10.0.0.`number`; `more` are further keys.
pub fn port(name: &str, driver: &str, number: usize, more: &str) -> String {
    format!(
        "[[port]]\nname = \"{name}\"\ndriver = \"{driver}\"\naddresses = [\"10.0.0.{number}/32\"]\n{more}\n"
    )
}

/// A bridge, b, with two ports in memory, p0 and p1.
pub fn two_ports() -> String {
    let ports = [0, 1].map(|at| port(&format!("p{at}"), "memory", at + 1, "bridge = \"b\""));
    format!("[[bridge]]\nname = \"b\"\n{}", ports.concat())
}

/// A packet that enters a link, at its arrival, or leaves by a port.
pub struct PacketView<'a> {
    pub left: bool,
    pub time: u64,
    pub meta: &'a Meta,
    pub frame: &'a [u8],
}

/// What a test notes of a packet, if anything.
pub type Look<T> = fn(&PacketView<'_>) -> Option<T>;

/// The tracer: records in the order in which they were made.
pub struct Trace<T> {
    look: Look<T>,
    seen: Arc<Mutex<Vec<T>>>,
}

impl<T: Send + 'static> Trace<T> {
    pub fn of(look: Look<T>) -> Self {
        Self { look, seen: Arc::default() }
    }

    /// A worker's part of the tracer.
    pub fn observer(&self) -> Option<Box<dyn Observer>> {
        Some(Box::new(Self { look: self.look, seen: Arc::clone(&self.seen) }))
    }

    pub fn take(&self) -> Vec<T> {
        std::mem::take(&mut *self.seen.lock().unwrap())
    }

    fn note(&self, view: &PacketView<'_>) {
        if let Some(noted) = (self.look)(view) {
            self.seen.lock().unwrap().push(noted);
        }
    }
}

impl<T: Send + 'static> Observer for Trace<T> {
    fn see(&mut self, event: PacketEvent, view: &longwire_engine::PacketView<'_>) {
        let (meta, frame) = (view.meta, view.frame);
        match event {
            PacketEvent::Arrived { .. } => {
                self.note(&PacketView { left: false, time: meta.arrival, meta, frame });
            }
            PacketEvent::Departed => self.note(&PacketView { left: true, time: meta.leave(), meta, frame }),
            _ => {}
        }
    }
}

/// Runs a plan in virtual time, without an error and with every packet accounted for.
pub fn simulate<T: Send + 'static>(
    plan: &Plan,
    ports: Vec<Box<dyn Port>>,
    until: Nanos,
    look: Look<T>,
) -> (Vec<T>, Report) {
    let trace = Trace::of(look);
    let built = build(plan, ports, |_| trace.observer()).unwrap();
    let made = rewirings(plan, &built.layout).unwrap_or_else(|error| panic!("{error}"));
    let rewirings = plan.stages.iter().zip(made).map(|(stage, mut made)| {
        let port = || MemoryPort::pair("new", Stamp::Source, 1 << 10, 1 << 20).0;
        made.give_ports(made.new_ports.iter().map(|_| Box::new(port()) as Box<dyn Port>).collect());
        (stage.time, made.rewiring)
    });
    let rewirings = rewirings.collect();
    let report = built.setup.simulate_rewired(until, rewirings);
    assert!(report.errors.is_empty(), "{:?}", report.errors);
    assert!(report.is_conserved(), "{report:?}");
    (trace.take(), report)
}

/// Runs a plan with its sources in virtual time; returns the counters, errors included.
pub fn count(plan: &Plan, until: Nanos) -> Report {
    let report = build(plan, source_ports(plan), |_| None).unwrap().setup.simulate(until);
    assert!(report.is_conserved(), "{report:?}");
    report
}

/// The plan's sources at their input ports.
pub fn source_ports(plan: &Plan) -> Vec<Box<dyn Port>> {
    let flow = |(id, source): (usize, &Source)| Flow {
        name: source.name.to_string(),
        id: id as u16,
        destination_mac: source.mac.0,
        source_mac: plan.ports[usize::from(source.in_port)].mac.0,
        source: SocketAddr::new(source.source, 9),
        destination: SocketAddr::new(source.destination, 9),
        model: source.model(),
        start: source.start,
        until: source.duration.map_or(Nanos::NEVER, |duration| source.start + duration),
        count: source.count.unwrap_or(u64::MAX),
        up: source.up,
    };
    let open = |(place, port): (usize, &longwire_scenario::Port)| {
        let own = plan.sources.iter().enumerate().filter(|(_, source)| usize::from(source.in_port) == place);
        let flows: Vec<_> = own.map(flow).collect();
        let port = SourcePort::new(&port.name, &flows, plan.sources.len() as u16, plan.seed).unwrap();
        Box::new(port) as Box<dyn Port>
    };
    plan.ports.iter().enumerate().map(open).collect()
}

/// Rings in memory at all ports, and their far ends.
pub fn memory_ports(plan: &Plan, stamp: Stamp) -> (Vec<Box<dyn Port>>, Vec<FarEnd>) {
    let pair = |port: &longwire_scenario::Port| {
        let (port, end) = MemoryPort::pair(&port.name, stamp, 1 << 14, 16 << 20);
        (Box::new(port) as Box<dyn Port>, end)
    };
    plan.ports.iter().map(pair).unzip()
}

/// An IPv4 packet of UDP in a frame of `len` bytes, from one of the plan's ports to another: of 10.0.0.1 and
/// so on.
pub fn frame(plan: &Plan, from: usize, to: usize, len: usize) -> Vec<u8> {
    let mut frame = vec![0; len];
    frame[..6].copy_from_slice(&plan.ports[to].mac.0);
    frame[6..12].copy_from_slice(&plan.ports[from].mac.0);
    frame[12..15].copy_from_slice(&[8, 0, 0x45]);
    frame[16..18].copy_from_slice(&(len as u16 - 14).to_be_bytes());
    frame[22..24].copy_from_slice(&[64, 17]);
    frame[26..30].copy_from_slice(&[10, 0, 0, from as u8 + 1]);
    frame[30..34].copy_from_slice(&[10, 0, 0, to as u8 + 1]);
    frame
}
