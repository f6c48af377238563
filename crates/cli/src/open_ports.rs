//! Opens the ports of a plan.

use crate::port_files::{Captures, PortFiles};
use crate::replay_port::{ReplayPort, Watch};
use anyhow::Context;
use longwire_block::Port;
use longwire_port::driver::pcap::{PcapPlan, PcapPort};
use longwire_port::driver::source::{Flow, Interval, Pacing, SourcePort};
use longwire_scenario::{Attachment, End, Pace, Plan, Source};
use longwire_units::Nanos;
use std::net::SocketAddr;

/// Ports, opened, in the plan's order.
pub struct OpenPorts {
    /// What the engine is given.
    pub ports: Vec<Box<dyn Port>>,
    /// What is left of those without an interface, by place in the plan.
    pub watches: Vec<Option<Watch>>,
}

/// Where the times of captures and sources stand on the engine's clock.
#[derive(Debug, Clone, Copy)]
pub struct Origin {
    /// The absolute time (since 1970) of the engine's time 0.
    pub epoch: Nanos,
    /// The engine's time at which the scenario begins: a source's start counts from it.
    pub begin: Nanos,
}

/// Where datagrams of traffic sources go: the discard service (RFC 863).
const TO_PORT: u16 = 9;
/// Where they come from, and up: ports for any use (RFC 6335).
const FROM_PORT: u16 = 49_152;

/// Opens every port without an interface, for a run in virtual time: captures and traffic sources as named, and sinks.
///
/// # Errors
/// A file that can't be used, or a source that can't be.
pub fn open_virtual(plan: &Plan, files: &PortFiles) -> anyhow::Result<OpenPorts> {
    let origin = Origin { epoch: files.epoch.unwrap_or_default(), begin: Nanos::ZERO };
    let flows = flows(plan, origin)?;
    let mut open = OpenPorts { ports: Vec::new(), watches: Vec::new() };
    for (place, captures) in files.captures.iter().enumerate() {
        let port = open_replay(plan, place, captures, &flows, origin)?;
        open.watches.push(Some(port.watch()));
        open.ports.push(Box::new(port));
    }
    Ok(open)
}

fn open_replay(
    plan: &Plan,
    place: usize,
    captures: &Captures,
    flows: &[(u16, Flow)],
    origin: Origin,
) -> anyhow::Result<ReplayPort> {
    let name = &plan.ports[place].name;
    let begins_here = flows.iter().filter(|(port, _)| usize::from(*port) == place);
    let own: Vec<Flow> = begins_here.map(|(_, flow)| flow.clone()).collect();
    let source = SourcePort::new(name, &own, flows.len() as u16, plan.seed)
        .with_context(|| format!("the traffic sources of port \"{name}\""))?;
    let Captures { input, interface, output } = captures.clone();
    let (reads, writes) = (input.is_some(), output.is_some());
    let capture = if reads || writes {
        let mtu = mtu_behind(plan, place);
        Some(PcapPort::open(name, &PcapPlan { input, interface, output, epoch: origin.epoch, mtu })?)
    } else {
        None
    };
    Ok(ReplayPort::new(source, capture, reads, writes))
}

/// The longest IP packet that can have come in by a port: the host's MTU, or the largest of the links that begin there,
/// if they have one.
fn mtu_behind(plan: &Plan, place: usize) -> Option<u32> {
    if let Attachment::Host(host) = plan.ports[place].attachment {
        return Some(plan.hosts[host as usize].mtu);
    }
    let mut most = None;
    for (index, link) in plan.links.iter().enumerate() {
        if link.from != End::Port(place as u16) {
            continue;
        }
        let (_, values) = plan.profile(index).blocks.iter().find(|(spec, _)| spec.key == "mtu")?;
        match values.at(0) {
            longwire_block::Value::Integer(mtu) => most = most.max(u32::try_from(mtu).ok()),
            _ => return None,
        }
    }
    most
}

/// The plan's sources as flows, each with the place of the port it begins at.
fn flows(plan: &Plan, origin: Origin) -> anyhow::Result<Vec<(u16, Flow)>> {
    anyhow::ensure!(
        plan.sources.len() < usize::from(u16::MAX),
        "{} traffic sources are too many: at most {} can be told apart",
        plan.sources.len(),
        u16::MAX - 1
    );
    let each = plan.sources.iter().enumerate();
    each.map(|(id, source)| Ok((source.in_port, flow(plan, id as u16, source, origin)?))).collect()
}

fn flow(plan: &Plan, id: u16, source: &Source, origin: Origin) -> anyhow::Result<Flow> {
    let interval = match source.pace {
        Pace::Rate(rate) => Interval::at_rate(rate, source.size.into()),
        Pace::Interval(time) => Interval::of(time),
    };
    let interval = interval.with_context(|| {
        format!(
            "source \"{}\" needs a pace: a rate above 0 that is not unlimited, or an interval",
            source.name
        )
    })?;
    let start = origin.begin + source.start;
    Ok(Flow {
        id,
        destination_mac: plan.ports[usize::from(source.out_port)].mac.0,
        source_mac: plan.ports[usize::from(source.in_port)].mac.0,
        source: SocketAddr::new(source.source, FROM_PORT + id % (u16::MAX - FROM_PORT)),
        destination: SocketAddr::new(source.destination, TO_PORT),
        frame_bytes: source.size as usize,
        pacing: if source.poisson { Pacing::Poisson(interval) } else { Pacing::Constant(interval) },
        start,
        until: source.duration.map_or(Nanos::NEVER, |time| start + time),
        count: source.count.unwrap_or(u64::MAX),
    })
}
