//! Opens the ports of a plan.

use crate::control_planes::open_port;
use crate::port_files::{Captures, PortFiles};
use crate::replay_port::{PortWatch, ReplayPort, StartTime};
use crate::test_hosts::TestHosts;
use anyhow::{Context, bail, ensure};
use longwire_assemble::{PlanChange, port_workers};
use longwire_block::{JoiningSource, Port};
use longwire_clock::realtime;
use longwire_drivers::{Driver, Netns, Wire};
use longwire_engine::InnerPort;
use longwire_port::driver::pcap::{PcapPlan, PcapPort};
use longwire_port::driver::source::{Flow, JoiningFlow, SourcePort};
use longwire_port::driver::{HostEnd, Open, PortRequest, fault_in, opener};
use longwire_port::interface::namespace;
use longwire_scenario::{DriverSettings, Plan, Source};
use longwire_units::Nanos;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Open ports in the plan's order.
pub struct OpenPorts {
    /// Ports for the engine: in real time one per queue.
    pub ports: Vec<Box<dyn Port>>,
    /// Handles to ports without an interface.
    pub watches: PortWatches,
}

/// Handles to the ports of a run that have no interface.
#[derive(Debug, Clone)]
pub struct PortWatches {
    /// By place in the plan.
    pub by_place: Vec<Option<PortWatch>>,
    /// The clock of captures and sources.
    pub(crate) origin: Origin,
    /// The files that the run writes until it ends, whichever ports leave it.
    pub(crate) written: Arc<[PathBuf]>,
}

impl PortWatches {
    /// The port at a place.
    pub(crate) fn get(&self, place: u16) -> Option<&PortWatch> {
        self.by_place.get(usize::from(place))?.as_ref()
    }

    /// Distinguishes as many flows at all ports from now on.
    pub(crate) fn widen(&self, flows: u16) {
        self.by_place.iter().flatten().for_each(|watch| watch.tally().widen(flows));
    }

    /// The files that the run reads, and those that it writes.
    fn files(&self) -> (Vec<&Path>, Vec<&Path>) {
        let of_ports = || self.by_place.iter().flatten().map(PortWatch::files);
        let sent = of_ports().filter_map(|files| files.output.as_deref());
        let written = sent.chain(self.written.iter().map(PathBuf::as_path)).collect();
        (of_ports().filter_map(|files| files.input.as_deref()).collect(), written)
    }

    /// What the ports of new sources add, with the places of these in the plan. At ports with an interface,
    /// programs behind it send instead.
    ///
    /// # Errors
    /// If a source is invalid, or the frames of its port come from a capture.
    pub(crate) fn joining_sources(
        &self,
        plan: &Plan,
        made: &PlanChange,
    ) -> anyhow::Result<Vec<(u32, JoiningSource)>> {
        let mut all = Vec::with_capacity(made.new_sources.len());
        for &place in &made.new_sources {
            let source = &plan.sources[place as usize];
            let Some(port) = self.get(source.in_port) else { continue };
            let name = &plan.ports[usize::from(source.in_port)].name;
            ensure!(
                port.takes_sources(),
                "port \"{name}\" has an input, beside which the traffic source \"{}\" can't send",
                source.name
            );
            let flow = JoiningFlow::new(name, &flow(plan, source)?, plan.seed)
                .with_context(|| format!("the traffic source \"{}\"", source.name))?;
            all.push((place, Box::new(flow) as JoiningSource));
        }
        Ok(all)
    }

    /// Forgets the ports at the places `gone`, and takes those that are new.
    pub(crate) fn follow(&mut self, gone: &[u16], new: &[(u16, PortWatch)]) {
        for &place in gone {
            if let Some(watch) = self.by_place.get_mut(usize::from(place)) {
                *watch = None;
            }
        }
        for (place, watch) in new {
            let place = usize::from(*place);
            self.by_place.resize(self.by_place.len().max(place + 1), None);
            self.by_place[place] = Some(watch.clone());
        }
    }
}

/// Ports that are added to a run, in the order in which they are wanted.
#[derive(Default)]
pub(crate) struct AddedPorts {
    pub(crate) ports: Vec<Box<dyn Port>>,
    /// Handles to those without an interface, with their places.
    pub(crate) watches: Vec<(u16, PortWatch)>,
}

/// Ports of the process itself, opened by whoever holds their far sides; the plan's ports have their names.
#[derive(Default)]
pub struct OwnPorts(pub Vec<Box<dyn Port>>);

impl OwnPorts {
    fn take(&mut self, name: &str) -> Option<Box<dyn Port>> {
        let at = self.0.iter().position(|port| port.name() == name)?;
        Some(self.0.swap_remove(at))
    }
}

/// The clock of captures and sources.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    /// The absolute time (since 1970) of the start.
    epoch: Nanos,
    start_time: StartTime,
}

/// Destination port of traffic sources' datagrams: the discard service (RFC 863).
const TO_PORT: u16 = 9;
/// First of their source ports: dynamic ports (RFC 6335).
const FROM_PORT: u16 = 49_152;

/// Opens every port without an interface, for a run in virtual time: captures and traffic sources as named,
/// and sinks.
///
/// # Errors
/// A file is unusable, or a source is invalid.
pub fn open_virtual(plan: &Plan, files: &PortFiles) -> anyhow::Result<OpenPorts> {
    let origin = Origin { epoch: files.epoch.unwrap_or_default(), start_time: StartTime::at_zero() };
    let flows = flows(plan)?;
    let (mut ports, mut watches): (Vec<Box<dyn Port>>, _) = (Vec::new(), Vec::new());
    refuse_control_planes(plan)?;
    for (place, captures) in files.captures.iter().enumerate() {
        if !plan.ports[place].attachment.is_outer() {
            watches.push(None);
            ports.push(Box::new(InnerPort::new(&plan.ports[place].name)));
            continue;
        }
        let port = open_replay(plan, place, captures, &flows, &origin)?;
        watches.push(Some(port.watch()));
        ports.push(Box::new(port));
    }
    let watches = PortWatches { by_place: watches, origin, written: Arc::default() };
    Ok(OpenPorts { ports, watches })
}

/// Checks that no router has a control plane, in virtual time.
///
/// # Errors
/// One has.
pub(crate) fn refuse_control_planes(plan: &Plan) -> anyhow::Result<()> {
    if let Some(router) = plan.control_planes().next() {
        bail!(
            "router \"{}\" has a control plane, whose programs have no part in virtual time: run it without \
             --virtual, or take control-plane away and give the router its routes",
            router.name
        );
    }
    Ok(())
}

/// Opens every port for a run in real time: interfaces, the wires of `hosts`, and replayed captures and
/// traffic sources, both from the start of the engine on. Those of
/// `own` are open already.
///
/// # Errors
/// An interface or file is unusable, or a source is invalid; each error says what to do.
pub fn open_real(
    plan: &Plan,
    mut hosts: Option<&mut TestHosts>,
    files: &PortFiles,
    mut own: OwnPorts,
) -> anyhow::Result<OpenPorts> {
    let origin = Origin { epoch: files.epoch.unwrap_or_else(realtime), start_time: StartTime::default() };
    let flows = flows(plan)?;
    let mut ports: Vec<Vec<Box<dyn Port>>> = plan.ports.iter().map(|_| Vec::new()).collect();
    let mut watches: Vec<Option<PortWatch>> = vec![None; plan.ports.len()];
    for (place, port) in plan.ports.iter().enumerate() {
        if plan.leads_outside(port) {
            continue;
        }
        let name = &port.name;
        ports[place] = vec![if let Some(port) = own.take(name) {
            port
        } else if port.attachment.is_outer() {
            let port = open_replay(plan, place, &files.captures[place], &flows, &origin)?;
            watches[place] = Some(port.watch());
            Box::new(port)
        } else if let Some(end) = port.attachment.control() {
            let lab = hosts.as_deref().context("the routers' namespaces are not up")?.lab();
            Box::new(open_port(lab, name, &plan.routers[end.router as usize], end.port)?)
        } else {
            Box::new(InnerPort::new(name))
        }];
    }
    for group in groups(plan) {
        group.open(plan, hosts.as_deref_mut(), &mut ports)?;
    }
    let opened: Vec<_> = ports.into_iter().flatten().collect();
    ensure!(opened.len() == plan.queue_places().count(), "no driver could open a port");
    let watches = PortWatches { by_place: watches, origin, written: Arc::default() };
    Ok(OpenPorts { ports: opened, watches })
}

/// Opens ports that were added to a run in real time, in this order; `staying` are the others. Their sources
/// are added by [`PortWatches::joining_sources`].
///
/// # Errors
/// An interface or a file is unusable.
pub(crate) fn open_added(
    plan: &Plan,
    places: &[u16],
    mut hosts: Option<&mut TestHosts>,
    staying: &PortWatches,
) -> anyhow::Result<AddedPorts> {
    let mut ports: Vec<Vec<Box<dyn Port>>> = plan.ports.iter().map(|_| Vec::new()).collect();
    let mut watches = Vec::new();
    let is_replayed = |place: &u16| {
        let port = &plan.ports[usize::from(*place)];
        port.attachment.is_outer() && !plan.leads_outside(port)
    };
    let replayed: Vec<u16> = places.iter().copied().filter(is_replayed).collect();
    let (read, written) = staying.files();
    let files = match &replayed[..] {
        [] => None,
        replayed => Some(PortFiles::of_added(plan, replayed, (&read, &written))?),
    };
    // Captures begin when they join. Others have the clock of the run, so that delays are measured from port
    // to port.
    let epoch = files.as_ref().and_then(|files| files.epoch).unwrap_or_else(realtime);
    let of_captures = Origin { epoch, start_time: StartTime::default() };
    for &at in places {
        let place = usize::from(at);
        let port = &plan.ports[place];
        if let Some(end) = port.attachment.control() {
            let lab = hosts.as_deref().context("the routers' namespaces are not up")?.lab();
            let tap = open_port(lab, &port.name, &plan.routers[end.router as usize], end.port)?;
            ports[place] = vec![Box::new(tap)];
        } else if plan.leads_outside(port) {
            let group = Group::of(plan, place, 0).context("a port with an interface has a driver")?;
            group.open(plan, hosts.as_deref_mut(), &mut ports)?;
        } else if let Some(files) = files.as_ref().filter(|_| port.attachment.is_outer()) {
            let captures = &files.captures[place];
            let origin = if captures.input.is_some() { &of_captures } else { &staying.origin };
            let port = open_replay(plan, place, captures, &[], origin)?;
            watches.push((at, port.watch()));
            ports[place] = vec![Box::new(port)];
        } else {
            ports[place] = vec![Box::new(InnerPort::new(&port.name))];
        }
    }
    let opened: Vec<_> = places.iter().filter_map(|&place| ports[usize::from(place)].pop()).collect();
    ensure!(opened.len() == places.len(), "its driver could not open a port");
    Ok(AddedPorts { ports: opened, watches })
}

/// Ports that were added to a run in virtual time: they receive, and send what sources are added, or are a
/// router's own.
///
/// # Errors
/// If a port is to read or write a capture.
pub(crate) fn open_sinks(plan: &Plan, places: &[u16], origin: &Origin) -> anyhow::Result<AddedPorts> {
    let mut added = AddedPorts::default();
    for &place in places {
        let at = usize::from(place);
        if plan.ports[at].attachment.far().is_some() {
            added.ports.push(Box::new(InnerPort::new(&plan.ports[at].name)));
            continue;
        }
        let captures = Captures::of_scenario(&plan.ports[at]);
        ensure!(
            captures.input.is_none() && captures.output.is_none(),
            "port \"{}\" would read or write a capture, which begins with the run in virtual time: have it \
             in the scenario from the start",
            plan.ports[at].name
        );
        let port = open_replay(plan, at, &captures, &[], origin)?;
        added.watches.push((place, port.watch()));
        added.ports.push(Box::new(port));
    }
    Ok(added)
}

/// Ports that a driver opens together: those of one worker in one namespace may share memory.
struct Group {
    driver: &'static Driver,
    worker: u32,
    of_hosts: bool,
    /// The namespace, for ports that are not of hosts.
    netns: Netns,
    /// Places in the plan.
    places: Vec<usize>,
}

fn groups(plan: &Plan) -> Vec<Group> {
    let workers = port_workers(plan);
    let mut groups: Vec<Group> = Vec::new();
    for place in (0..plan.ports.len()).filter(|&place| plan.leads_outside(&plan.ports[place])) {
        let Some(own) = Group::of(plan, place, workers[place]) else { continue };
        let alike = |group: &&mut Group| {
            group.driver == own.driver
                && (group.worker, group.of_hosts) == (own.worker, own.of_hosts)
                && group.netns == own.netns
        };
        match groups.iter_mut().find(alike) {
            Some(group) => group.places.push(place),
            None => groups.push(own),
        }
    }
    groups
}

impl Group {
    /// One port on this worker; none if it has no driver.
    fn of(plan: &Plan, place: usize, worker: u32) -> Option<Self> {
        let port = &plan.ports[place];
        let (driver, of_hosts) = (plan.driver_of(port)?, port.attachment.host().is_some());
        let netns = port.attachment.driven().map(DriverSettings::netns).unwrap_or_default();
        Some(Self { driver, worker, of_hosts, netns, places: vec![place] })
    }

    fn open(
        &self,
        plan: &Plan,
        hosts: Option<&mut TestHosts>,
        ports: &mut [Vec<Box<dyn Port>>],
    ) -> anyhow::Result<()> {
        let opener = opener(self.driver);
        let opener =
            opener.with_context(|| format!("no opener for ports of the driver {}", self.driver.word()))?;
        if self.of_hosts {
            return self.open_hosts(plan, opener, hosts.context("the scenario's hosts are not up")?, ports);
        }
        let own = self.places.iter().filter_map(|&place| {
            let port = &plan.ports[place];
            let driven = port.attachment.driven()?;
            Some((port, driven, driven.interface().unwrap_or_default()))
        });
        let own: Vec<_> = own.collect();
        let wanted = own.iter().map(|(port, driven, interface)| PortRequest {
            name: &port.name,
            interface,
            netns: &self.netns,
            queues: port.queues,
            values: &driven.values,
        });
        let wanted: Vec<_> = wanted.collect();
        let opened = namespace::visit(&self.netns, || opener.ports(&wanted))?;
        let opened = opened.map_err(|fault| anyhow::Error::from_boxed(fault_in(&self.netns, fault)))?;
        for (&place, queues) in self.places.iter().zip(opened) {
            ports[place] = queues;
        }
        Ok(())
    }

    /// Opens the wires of hosts: ends of veth pairs together, devices in their host's namespace.
    fn open_hosts(
        &self,
        plan: &Plan,
        opener: &dyn Open,
        hosts: &mut TestHosts,
        ports: &mut [Vec<Box<dyn Port>>],
    ) -> anyhow::Result<()> {
        let (mut devices, mut wires) = (Vec::new(), Vec::new());
        for &place in &self.places {
            let Some(host) = plan.host_at(&plan.ports[place]) else { continue };
            let is_device = host.driver.wire == Wire::Tap;
            let interface = if is_device {
                hosts.lab().host(&host.name)?.interface().to_owned()
            } else {
                wire_of(hosts, &host.name)?
            };
            let end = HostEnd { name: &host.name, interface, mac: host.mac.0, mtu: host.mtu };
            if is_device { &mut devices } else { &mut wires }.push((place, end));
        }
        for (place, end) in devices {
            let host = hosts.lab().host(end.name)?;
            let made = host.run(|| opener.hosts(std::slice::from_ref(&end)))?;
            ports[place] = made.map_err(anyhow::Error::from_boxed)?;
            hosts.configure(end.name)?;
        }
        let (places, ends): (Vec<_>, Vec<_>) = wires.into_iter().unzip();
        let opened = hosts.lab().in_core(|| opener.hosts(&ends))?.map_err(anyhow::Error::from_boxed)?;
        for (place, port) in places.into_iter().zip(opened) {
            ports[place] = vec![port];
        }
        Ok(())
    }
}

fn wire_of(hosts: &TestHosts, host: &str) -> anyhow::Result<String> {
    let port = hosts.lab().host(host)?.port().map(str::to_owned);
    port.with_context(|| format!("host \"{host}\" has no wire: it was made for another driver"))
}

fn open_replay(
    plan: &Plan,
    place: usize,
    captures: &Captures,
    flows: &[(u16, Flow)],
    origin: &Origin,
) -> anyhow::Result<ReplayPort> {
    let name = &plan.ports[place].name;
    let begins_here = flows.iter().filter(|(port, _)| usize::from(*port) == place);
    let own: Vec<Flow> = begins_here.map(|(_, flow)| flow.clone()).collect();
    let source = SourcePort::new(name, &own, plan.source_numbers, plan.seed)
        .with_context(|| format!("the traffic sources of port \"{name}\""))?;
    let Captures { input, interface, output } = captures.clone();
    let capture = if input.is_some() || output.is_some() {
        // The longest IP packet that a port can have received: a host's MTU.
        let mtu = plan.host_at(&plan.ports[place]).map(|host| host.mtu);
        let plan = PcapPlan { input, interface, output, epoch: origin.epoch, mtu };
        Some((PcapPort::open(name, &plan)?, captures.clone()))
    } else {
        None
    };
    Ok(ReplayPort::new(source, !own.is_empty(), capture, origin.start_time.clone()))
}

/// The plan's sources as flows, each with the place of its first port.
fn flows(plan: &Plan) -> anyhow::Result<Vec<(u16, Flow)>> {
    plan.sources.iter().map(|source| Ok((source.in_port, flow(plan, source)?))).collect()
}

/// A source as a flow, whose times count from its beginning.
///
/// # Errors
/// If the run has had too many.
fn flow(plan: &Plan, source: &Source) -> anyhow::Result<Flow> {
    let (start, id) = (source.start, source.number);
    ensure!(
        id < u16::MAX,
        "there are more traffic sources than can be distinguished in a run: at most {}",
        u16::MAX
    );
    Ok(Flow {
        name: source.name.to_string(),
        id,
        destination_mac: source.mac.0,
        source_mac: plan.ports[usize::from(source.in_port)].mac.0,
        source: SocketAddr::new(source.source, FROM_PORT + id % (u16::MAX - FROM_PORT)),
        destination: SocketAddr::new(source.destination, TO_PORT),
        model: source.model(),
        start,
        until: source.duration.map_or(Nanos::NEVER, |time| start + time),
        count: source.count.unwrap_or(u64::MAX),
        up: source.up,
    })
}
