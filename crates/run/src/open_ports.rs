//! Opens the ports of a plan.

use crate::control_planes::open_port;
use crate::port_files::{Captures, PortFiles};
use crate::replay_port::{Beginning, ReplayPort, Watch};
use crate::test_hosts::TestHosts;
use anyhow::{Context, bail, ensure};
use longwire_assemble::port_workers;
use longwire_block::Port;
use longwire_engine::InnerPort;
use longwire_port::driver::af_packet::{AfPacket, AfPacketOptions};
use longwire_port::driver::af_xdp::{AfXdpPlan, AfXdpPort, FarEnd};
use longwire_port::driver::pcap::{PcapPlan, PcapPort};
use longwire_port::driver::reopening::Reopening;
use longwire_port::driver::source::{Flow, SourcePort};
use longwire_port::driver::tap::{Tap, TapOptions};
use longwire_scenario::{Attachment, HostDriver, Plan, Source};
use longwire_units::Nanos;
use std::net::SocketAddr;

/// Ports, opened, in the plan's order.
pub struct OpenPorts {
    /// Ports for the engine: in real time one for each queue.
    pub ports: Vec<Box<dyn Port>>,
    /// What is left of those without an interface, by place in the plan.
    pub watches: Vec<Option<Watch>>,
}

/// The clock of captures and sources.
#[derive(Debug, Clone)]
struct Origin {
    /// The absolute time (since 1970) of the beginning.
    epoch: Nanos,
    beginning: Beginning,
}

/// Destination port of traffic sources' datagrams: the discard service (RFC 863).
const TO_PORT: u16 = 9;
/// Their first source port; others follow: dynamic ports (RFC 6335).
const FROM_PORT: u16 = 49_152;

/// Opens every port without an interface, for a run in virtual time: captures and traffic sources as named,
/// and sinks.
///
/// # Errors
/// A file that can't be used, or a source that can't be.
pub fn open_virtual(plan: &Plan, files: &PortFiles) -> anyhow::Result<OpenPorts> {
    let origin = Origin { epoch: files.epoch.unwrap_or_default(), beginning: Beginning::at_zero() };
    let flows = flows(plan)?;
    let mut open = OpenPorts { ports: Vec::new(), watches: Vec::new() };
    if let Some(router) = plan.control_planes().next() {
        bail!(
            "router \"{}\" has a control plane, whose programs have no part in virtual time: run it without \
             --virtual, or take control-plane away and give the router its routes",
            router.name
        );
    }
    for (place, captures) in files.captures.iter().enumerate() {
        if let Attachment::Inner { .. } = plan.ports[place].attachment {
            open.watches.push(None);
            open.ports.push(Box::new(InnerPort::new(&plan.ports[place].name)));
            continue;
        }
        let port = open_replay(plan, place, captures, &flows, &origin)?;
        open.watches.push(Some(port.watch()));
        open.ports.push(Box::new(port));
    }
    Ok(open)
}

/// Opens every port for a run in real time: interfaces, the wires of `hosts`, captures that are replayed and
/// traffic sources, both from the start of the engine on.
///
/// # Errors
/// An interface or a file that can't be used, or a source that can't be; each says what to do.
pub fn open_real(
    plan: &Plan,
    mut hosts: Option<&mut TestHosts>,
    files: &PortFiles,
) -> anyhow::Result<OpenPorts> {
    let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let now = Nanos(u64::try_from(since_1970.as_nanos()).unwrap_or(u64::MAX));
    let origin = Origin { epoch: files.epoch.unwrap_or(now), beginning: Beginning::default() };
    let flows = flows(plan)?;
    let mut ports: Vec<Vec<Box<dyn Port>>> = plan.ports.iter().map(|_| Vec::new()).collect();
    let mut watches: Vec<Option<Watch>> = vec![None; plan.ports.len()];
    for (place, port) in plan.ports.iter().enumerate() {
        let name = &port.name;
        ports[place] = match &port.attachment {
            Attachment::Host(host) => open_host(plan, *host, hosts.as_deref_mut())?.into_iter().collect(),
            Attachment::Interface { xdp: true, .. } => Vec::new(),
            Attachment::Inner { .. } => vec![Box::new(InnerPort::new(name))],
            Attachment::Control { router, port } => {
                let lab = hosts.as_deref().context("the routers' namespaces are not up")?.lab();
                vec![Box::new(open_port(lab, name, &plan.routers[*router as usize], *port)?)]
            }
            Attachment::Interface { interface, .. } => {
                let (name, interface, queues) = (name.to_string(), interface.to_string(), port.queues);
                let open =
                    move || AfPacket::open_queues(&name, &interface, &AfPacketOptions::default(), queues);
                boxed(Reopening::queues(open()?, move || open().ok()))
            }
            Attachment::Tap { interface } => {
                let options = TapOptions { up: true, ..TapOptions::default() };
                boxed(Tap::reopening(name, interface, &options, port.queues)?)
            }
            Attachment::Pcap { .. } | Attachment::Memory | Attachment::Source => {
                let port = open_replay(plan, place, &files.captures[place], &flows, &origin)?;
                watches[place] = Some(port.watch());
                vec![Box::new(port)]
            }
        };
    }
    open_xdp(plan, hosts.as_deref(), &mut ports)?;
    let opened: Vec<_> = ports.into_iter().flatten().collect();
    ensure!(opened.len() == plan.queue_places().count(), "a port could not be opened by any driver");
    Ok(OpenPorts { ports: opened, watches })
}

/// The queues of a port as the engine takes them.
fn boxed(queues: Vec<Reopening>) -> Vec<Box<dyn Port>> {
    queues.into_iter().map(|port| Box::new(port) as Box<dyn Port>).collect()
}

/// Opens the wire of a host; none if that is for [`open_xdp`].
fn open_host(plan: &Plan, host: u32, hosts: Option<&mut TestHosts>) -> anyhow::Result<Option<Box<dyn Port>>> {
    let hosts = hosts.context("the scenario's hosts are not up")?;
    let host = &plan.hosts[host as usize];
    match host.driver {
        HostDriver::Tap => {
            let options = TapOptions { mac: Some(host.mac.0), mtu: host.mtu, ..TapOptions::default() };
            // The pattern leaves the number to the kernel: names of hosts can be longer than those of
            // interfaces.
            let tap = hosts.lab().in_core(|| Tap::create(&host.name, "tap%d", &options))??;
            hosts.adopt(&host.name, tap.interface_name())?;
            Ok(Some(Box::new(tap)))
        }
        HostDriver::AfPacket => {
            let interface = wire_of(hosts, &host.name)?;
            let options = AfPacketOptions::default();
            let port = hosts.lab().in_core(|| AfPacket::open(&host.name, &interface, &options))??;
            Ok(Some(Box::new(port)))
        }
        HostDriver::AfXdp => Ok(None),
    }
}

fn wire_of(hosts: &TestHosts, host: &str) -> anyhow::Result<String> {
    let port = hosts.lab().host(host)?.port().map(str::to_owned);
    port.with_context(|| format!("host \"{host}\" has no wire: it was made for another driver"))
}

/// AF_XDP ports of one worker in one namespace.
struct XdpGroup {
    worker: usize,
    of_hosts: bool,
    places: Vec<usize>,
    plans: Vec<AfXdpPlan>,
}

/// Opens the AF_XDP ports: those of one worker in one namespace share their memory.
fn open_xdp(plan: &Plan, hosts: Option<&TestHosts>, ports: &mut [Vec<Box<dyn Port>>]) -> anyhow::Result<()> {
    let workers = port_workers(plan);
    let mut groups: Vec<XdpGroup> = Vec::new();
    for (place, port) in plan.ports.iter().enumerate() {
        let (interface, of_hosts) = match &port.attachment {
            Attachment::Host(host) if plan.hosts[*host as usize].driver == HostDriver::AfXdp => {
                (wire_of(hosts.context("the scenario's hosts are not up")?, &port.name)?, true)
            }
            Attachment::Interface { xdp: true, interface } if port.queues > 1 => {
                let (name, interface, queues) = (port.name.to_string(), interface.clone(), port.queues);
                let open = move || {
                    let plan = AfXdpPlan { name: name.clone(), queues, ..AfXdpPlan::on(&interface) };
                    AfXdpPort::open_all(vec![plan])
                };
                ports[place] = boxed(Reopening::queues(open()?, move || open().ok()));
                continue;
            }
            Attachment::Interface { xdp: true, interface } => (interface.clone(), false),
            _ => continue,
        };
        let mut wanted = AfXdpPlan { name: port.name.to_string(), ..AfXdpPlan::on(&interface) };
        if of_hosts {
            // The lab has turned the offloads of its hosts off.
            wanted.far_end = FarEnd::Trusted;
        }
        let worker = workers[place] as usize;
        match groups.iter_mut().find(|group| (group.worker, group.of_hosts) == (worker, of_hosts)) {
            Some(group) => {
                group.places.push(place);
                group.plans.push(wanted);
            }
            None => groups.push(XdpGroup { worker, of_hosts, places: vec![place], plans: vec![wanted] }),
        }
    }
    for XdpGroup { of_hosts, places, plans, .. } in groups {
        let again: Vec<_> = plans.iter().map(|plan| (plan.name.clone(), plan.interface.clone())).collect();
        let opened = match hosts.filter(|_| of_hosts) {
            Some(hosts) => hosts.lab().in_core(|| AfXdpPort::open_all(plans))??,
            None => AfXdpPort::open_all(plans)?,
        };
        for ((place, port), (name, interface)) in places.into_iter().zip(opened).zip(again) {
            let port = Box::new(port);
            ports[place] = vec![if of_hosts {
                port
            } else {
                // On memory of its own: the others' goes on without it.
                let open = move || {
                    let plan = AfXdpPlan { name: name.clone(), ..AfXdpPlan::on(&interface) };
                    Some(Box::new(AfXdpPort::open(plan).ok()?) as Box<dyn Port>)
                };
                Box::new(Reopening::new(port, open))
            }];
        }
    }
    Ok(())
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
    let source = SourcePort::new(name, &own, flows.len() as u16, plan.seed)
        .with_context(|| format!("the traffic sources of port \"{name}\""))?;
    let Captures { input, interface, output } = captures.clone();
    let (reads, writes) = (input.is_some(), output.is_some());
    let capture = if reads || writes {
        let mtu = mtu_behind(plan, place);
        let plan = PcapPlan { input, interface, output, epoch: origin.epoch, mtu };
        Some((PcapPort::open(name, &plan)?, reads, writes))
    } else {
        None
    };
    Ok(ReplayPort::new(source, !own.is_empty(), capture, origin.beginning.clone()))
}

/// The longest IP packet that can have come in by a port: a host's MTU. What links do with longer ones is
/// their business.
fn mtu_behind(plan: &Plan, place: usize) -> Option<u32> {
    match plan.ports[place].attachment {
        Attachment::Host(host) => Some(plan.hosts[host as usize].mtu),
        _ => None,
    }
}

/// The plan's sources as flows, each with the place of the port it begins at.
fn flows(plan: &Plan) -> anyhow::Result<Vec<(u16, Flow)>> {
    anyhow::ensure!(
        plan.sources.len() < usize::from(u16::MAX),
        "{} traffic sources are too many: at most {} can be distinguished",
        plan.sources.len(),
        u16::MAX - 1
    );
    let each = plan.sources.iter().enumerate();
    Ok(each.map(|(id, source)| (source.in_port, flow(plan, id as u16, source))).collect())
}

fn flow(plan: &Plan, id: u16, source: &Source) -> Flow {
    let start = source.start;
    Flow {
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
    }
}
