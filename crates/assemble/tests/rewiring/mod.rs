//! A running engine is brought from one scenario to the next while packets flow: links and ports join and
//! leave, and every packet is accounted for.

mod links;
mod nodes;
mod routers;
mod stages;

use crate::support::{frame, memory_ports};
use longwire_assemble::{BuiltEngine, Layout, build, rewire};
use longwire_block::{Port, Stamp};
use longwire_engine::{FlowStats, Remote, Report, Run};
use longwire_port::driver::memory::{FarEnd, MemoryPort};
use longwire_scenario::{Plan, parse_after, plan_of};
use longwire_units::Nanos;

const PORTS: [&str; 4] = ["a", "b", "c", "d"];

/// A scenario of these links on one bridge.
fn scenario(engine: &str, links: &[String]) -> Plan {
    among(&PORTS, engine, links)
}

/// A scenario of these ports and links on one bridge.
fn among(ports: &[&str], engine: &str, links: &[String]) -> Plan {
    let port = |name: &str| format!("[[port]]\nname = \"{name}\"\ndriver = \"memory\"\n");
    let ports: String = ports.iter().map(|name| port(name)).collect();
    plan_of(&format!("[engine]\npool = \"64 MB\"\n{engine}\n{ports}{}", links.concat()))
}

fn link(name: &str, from: &str, to: &str, keys: &str) -> String {
    format!("[[link]]\nname = \"{name}\"\nfrom = \"{from}\"\nto = \"{to}\"\n{keys}\n")
}

/// A packet from a port to an address, by way of a station.
fn routed(plan: &Plan, from: usize, mac: [u8; 6], to: [u8; 4]) -> Vec<u8> {
    let mut frame = frame(plan, from, 0, 100);
    frame[..6].copy_from_slice(&mac);
    frame[30..34].copy_from_slice(&to);
    let checksum = longwire_wire::checksum::Sum::ZERO.bytes(&frame[14..34]).checksum();
    frame[24..26].copy_from_slice(&checksum.to_be_bytes());
    frame
}

/// A running engine and its plan.
struct Net {
    run: Run,
    remote: Remote,
    /// By a port's place; none where a port has left.
    ends: Vec<Option<FarEnd>>,
    pushed: u64,
    plan: Plan,
    layout: Layout,
}

impl Net {
    fn start(plan: Plan) -> Self {
        let (ports, ends) = memory_ports(&plan, Stamp::Poll);
        let BuiltEngine { setup, layout, .. } = build(&plan, ports, |_| None).unwrap();
        let run = setup.start();
        let ends = ends.into_iter().map(Some).collect();
        let mut net = Self { remote: run.remote(), run, ends, pushed: 0, plan, layout };
        // Each station tells the bridge where it is.
        let count = net.ends.len();
        (0..count).for_each(|from| net.send(from, (from + 1) % count, 60));
        net.settle();
        net
    }

    fn send(&mut self, from: usize, to: usize, len: usize) {
        self.push(from, &frame(&self.plan, from, to, len));
    }

    fn push(&mut self, from: usize, frame: &[u8]) {
        let end = self.ends[from].as_mut().expect("a port that is there");
        assert!(end.push(frame), "the ring is full");
        self.pushed += 1;
    }

    fn report(&self) -> Report {
        self.remote.report(longwire_engine::Tolerance::default()).unwrap()
    }

    /// Waits until all that was sent has arrived, and nothing is on its way to another worker.
    fn settle(&mut self) -> Report {
        loop {
            let report = self.report();
            let FlowStats { taken, handed_over, received, .. } = report.flow;
            if (taken, received) == (self.pushed, handed_over) {
                return report;
            }
            std::thread::yield_now();
        }
    }

    fn bring(&mut self, plan: Plan, drained: bool) -> (Vec<u32>, Vec<u32>) {
        let plan = parse_after(&self.plan, &plan.text, Nanos::ZERO).unwrap();
        let mut made =
            rewire(&self.plan, &self.layout, &plan, drained).unwrap_or_else(|error| panic!("{error}"));
        self.ends.resize_with(plan.ports.len(), || None);
        let (ports, ends): (Vec<Box<dyn Port>>, Vec<_>) = made
            .new_ports
            .iter()
            .map(|&place| {
                let name = &plan.ports[usize::from(place)].name;
                let (port, end) = MemoryPort::pair(name, Stamp::Poll, 1 << 14, 16 << 20);
                (Box::new(port) as Box<dyn Port>, (place, end))
            })
            .unzip();
        made.old_ports.iter().for_each(|&place| self.ends[usize::from(place)] = None);
        ends.into_iter().for_each(|(place, end)| self.ends[usize::from(place)] = Some(end));
        made.give_ports(ports);
        self.remote.rewire(made.rewiring).unwrap();
        (self.plan, self.layout) = (plan, made.layout);
        (made.added, made.removed)
    }

    fn taken(&mut self, port: usize) -> usize {
        let end = self.ends[port].as_mut();
        end.map_or(0, |end| std::iter::from_fn(|| end.take()).count())
    }

    /// How many frames of this length to a port's own station have come there.
    fn taken_of(&mut self, port: usize, len: usize) -> usize {
        let own = self.plan.ports[port].mac.0;
        let Some(end) = self.ends[port].as_mut() else { return 0 };
        let frames = std::iter::from_fn(|| end.take());
        frames.filter(|frame| frame.bytes.len() == len && frame.bytes[..6] == own).count()
    }

    /// Places of the ports that are there.
    fn there(&self) -> Vec<usize> {
        (0..self.ends.len()).filter(|&place| self.ends[place].is_some()).collect()
    }
}

fn of<'r>(net: &Net, report: &'r Report, name: &str) -> &'r longwire_link::LinkStats {
    let place = net.plan.links.iter().position(|link| &*link.name == name).unwrap() as u32;
    &report.links.iter().find(|link| link.place == place).unwrap().stats
}
