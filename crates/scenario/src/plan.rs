//! The checked plan: everything a run needs, with every reference resolved to an index ("place").
//!
//! Only [`crate::parse`] makes one: indices are in range, names are unique within their kind, routes are
//! connected.

use crate::event::Event;
use crate::finding::Finding;
use crate::forwarder_plan::PlannedForwarder;
pub use crate::plan_links::{Delays, Link, LinkRequest, Medium, Profile, Route, Routes, Steer};
pub use crate::plan_nodes::{
    Attachment, Bridge, ControlEnd, DriverSettings, End, Host, HostRoute, Owners, Places, Port, PortSide,
    Segment,
};
use crate::router_plan::{Router, RouterEvent};
pub use crate::settings::{BridgeSettings, EngineSettings, Fidelity, LARGEST_POOL};
use crate::settings::{NespAllow, Routing};
pub use crate::source::Source;
use longwire_block::Value;
use longwire_block::flow::Aim;
use longwire_drivers::{Backend, Driver};
use longwire_units::Nanos;
use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A scenario after all checks.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The file it was read from, as errors name it.
    pub file: String,
    /// Its text.
    pub text: Arc<str>,
    /// The seed of every block's dice. Default 1.
    pub seed: u64,
    /// How paths across bridges were found.
    pub routing: Routing,
    /// How the engine runs.
    pub engine: EngineSettings,
    /// When a run is faithful.
    pub fidelity: Fidelity,
    /// Hosts, in the file's order.
    pub hosts: Vec<Host>,
    /// Ports; a port's place is its index. Those of hosts come first, then declared ones.
    pub ports: Vec<Port>,
    /// Bridges, in the file's order; one named `bridge` if the file declares none.
    pub bridges: Vec<Bridge>,
    /// Routers, in the file's order.
    pub routers: Vec<Router>,
    /// Programs installed on routers at the start, in the file's order.
    pub forwarders: Vec<PlannedForwarder>,
    /// Nodes of the engine: groups of bridges joined by links, each learning as one bridge, then routers.
    pub segments: Vec<Segment>,
    /// Blocks of links; links may share one.
    pub profiles: Vec<Profile>,
    /// Links; a link's place is its index. A duplex link is two, forward first.
    pub links: Vec<Link>,
    /// Shared media.
    pub media: Vec<Medium>,
    /// Routes of several links, and of none.
    pub routes: Routes,
    /// Routes by source and destination address, which take precedence. Each pair occurs once.
    pub address_rules: Vec<AddressRule>,
    /// Routes by port; pairs that are not listed cross unimpaired. Ascending by (in, out).
    pub pair_rules: Vec<PairRule>,
    /// Links that filters may steer packets to.
    pub steers: Vec<Steer>,
    /// Links that routers' programs may choose.
    pub link_requests: Vec<LinkRequest>,
    /// Traffic sources.
    pub sources: Vec<Source>,
    /// How many numbers sources of the run have had so far.
    pub source_numbers: u16,
    /// Names of ports at which no source begins; see [`Plan::silence`].
    pub silent_ports: Vec<Box<str>>,
    /// Changes during the run, in the file's order.
    pub events: Vec<Event>,
    /// Changes of routers during the run, in the file's order.
    pub router_events: Vec<RouterEvent>,
    /// Additions and removals during the run, by time.
    pub stages: Vec<Stage>,
    /// How long the run had lasted that was brought to it: events that were over by then are history.
    pub read_at: Nanos,
    /// By the place of a link that changes: all its delays combined.
    pub changing_delays: HashMap<u32, Delays>,
    /// Access to settings by frames, if enabled.
    pub nesp: Option<Nesp>,
    /// Warnings: valid, but probably mistakes.
    pub notes: Vec<Finding>,
}

/// An addition or removal at a time of the run, and the plan from then on.
#[derive(Debug, Clone)]
pub struct Stage {
    /// Time from the start of the run.
    pub time: Nanos,
    /// Sections to add.
    pub add: String,
    /// Names of removed objects.
    pub remove: Vec<String>,
    /// Whether removed links first send what they hold.
    pub drain: bool,
    /// The plan afterwards, provided that nothing else was added or removed.
    pub plan: Arc<Plan>,
}

/// A route by addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressRule {
    /// Source address of the packets.
    pub source: IpAddr,
    /// Destination address, of the same family.
    pub destination: IpAddr,
    /// The links they take.
    pub route: Route,
}

/// A route by ports of one segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PairRule {
    /// Place of the input port.
    pub in_port: u16,
    /// Place of the output port.
    pub out_port: u16,
    /// The links they take, or [`Route::NONE`].
    pub route: Route,
}

impl Plan {
    /// The folder of its file: names of other files in it are relative to that.
    pub fn folder(&self) -> &Path {
        Path::new(&self.file).parent().unwrap_or(Path::new(""))
    }

    /// Whether a run in real time needs a lab: for hosts or control planes.
    pub fn has_lab(&self) -> bool {
        !self.hosts.is_empty() || self.control_planes().next().is_some()
    }

    /// The routers that have control planes.
    pub fn control_planes(&self) -> impl Iterator<Item = &Router> {
        self.routers.iter().filter(|router| router.control)
    }

    /// The host behind a port.
    pub fn host_at(&self, port: &Port) -> Option<&Host> {
        port.attachment.host().map(|host| &self.hosts[host as usize])
    }

    /// The driver of a port or its host; none for a router's own port or its control plane's.
    pub fn driver_of(&self, port: &Port) -> Option<&'static Driver> {
        let own = port.attachment.driven().map(|driven| driven.driver);
        own.or_else(|| self.host_at(port).map(|host| host.driver.driver))
    }

    /// Whether a port leads out of the process in real time: by an interface or a tunnel.
    pub fn leads_outside(&self, port: &Port) -> bool {
        self.driver_of(port).is_some_and(|driver| driver.backend.is_outside())
    }

    /// Whether this port may receive packets besides those of the scenario's sources.
    pub fn receives_from_outside(&self, place: u16) -> bool {
        let driver = self.driver_of(&self.ports[usize::from(place)]);
        driver.is_none_or(|driver| driver.backend != Backend::Sources)
    }

    /// The links from one port to another when no address rule applies; `Some(&[])` if packets cross
    /// unimpaired, `None` if there is no path.
    pub fn pair_route(&self, in_port: u16, out_port: u16) -> Option<&[u32]> {
        match self.pair_rules.binary_search_by_key(&(in_port, out_port), |rule| (rule.in_port, rule.out_port))
        {
            Ok(index) if !self.pair_rules[index].route.exists() => None,
            Ok(index) => Some(self.routes.links(&self.pair_rules[index].route)),
            Err(_) => Some(&[]),
        }
    }

    /// The rules of an input port, ascending by output port.
    pub fn pair_rules_from(&self, in_port: u16) -> &[PairRule] {
        let first = self.pair_rules.partition_point(|rule| rule.in_port < in_port);
        let end = self.pair_rules.partition_point(|rule| rule.in_port <= in_port);
        &self.pair_rules[first..end]
    }

    /// The blocks of the link at `place`.
    ///
    /// # Panics
    /// If there is no such link.
    pub fn profile(&self, place: usize) -> &Profile {
        &self.profiles[self.links[place].profile as usize]
    }

    /// Its ports, hosts and routers.
    pub fn places(&self) -> Places<'_> {
        Places { ports: &self.ports, hosts: &self.hosts, routers: &self.routers }
    }

    /// Takes away the traffic sources that begin at these ports, whose frames come from elsewhere: those that
    /// there are, and those that are added while it runs. Returns the former, as the name of each and its
    /// port's.
    pub fn silence(&mut self, ports: Vec<Box<str>>) -> Vec<(Box<str>, Box<str>)> {
        for stage in &mut self.stages {
            if !ports.is_empty() {
                Arc::make_mut(&mut stage.plan).silence(ports.clone());
            }
        }
        let (mut silent, mut kept, mut places) = (Vec::new(), Vec::new(), Vec::new());
        for source in std::mem::take(&mut self.sources) {
            let port = &self.ports[usize::from(source.in_port)].name;
            if ports.contains(port) {
                silent.push((source.name, port.clone()));
                places.push(None);
            } else {
                places.push(Some(kept.len() as u32));
                kept.push(source);
            }
        }
        for event in self.events.iter_mut().filter(|_| !silent.is_empty()) {
            event.sources = event.sources.iter().filter_map(|&place| places[place as usize]).collect();
        }
        (self.sources, self.silent_ports) = (kept, ports);
        silent
    }

    /// All destination ports of the source at `place`: at its start, and after events.
    ///
    /// # Panics
    /// If there is no such source.
    pub fn aims(&self, place: usize) -> Vec<u16> {
        let own = self.events.iter().filter(|event| event.sources.contains(&(place as u32)));
        let given = own.flat_map(|event| event.edits.iter().flat_map(|edit| &edit.given));
        let aims = given.filter_map(|(_, value)| match value {
            Value::Parsed(parsed) => parsed.value.downcast_ref::<Aim>().map(|aim| aim.port),
            _ => None,
        });
        std::iter::once(self.sources[place].out_port).chain(aims).collect()
    }

    /// The least time from a packet's arrival at the link at `place` to its departure, over the whole run.
    ///
    /// # Panics
    /// If there is no such link.
    pub fn least_delay(&self, place: usize) -> Nanos {
        self.delays(place).least
    }

    /// The shortest time from transmission on the link at `place` to departure, over the whole run. Unlike
    /// [`least_delay`](Self::least_delay) it is known for jitter; of a trace it is 0.
    ///
    /// # Panics
    /// If there is no such link.
    pub fn shortest_delay(&self, place: usize) -> Nanos {
        self.delays(place).shortest
    }

    /// The delays of the link at `place` over the whole run.
    fn delays(&self, place: usize) -> &Delays {
        self.changing_delays.get(&(place as u32)).unwrap_or(&self.profile(place).delays)
    }

    /// The name of an end of a link.
    ///
    /// # Panics
    /// If it is not of this plan.
    pub fn end_name(&self, end: End) -> &str {
        end.name(&self.bridges, &self.ports)
    }

    /// The names of a link's ends.
    ///
    /// # Panics
    /// If it is not of this plan.
    pub fn ends_of(&self, link: &Link) -> [&str; 2] {
        [link.from, link.to].map(|end| self.end_name(end))
    }

    /// In real time, the port's place for each queue of each port, in order.
    pub fn queue_places(&self) -> impl Iterator<Item = u16> {
        (0u16..).zip(&self.ports).flat_map(|(place, port)| (0..port.queues).map(move |_| place))
    }

    /// Number of workers that share this segment in real time, from the first: more than one if its ports
    /// have several queues.
    ///
    /// # Panics
    /// If there is no such segment.
    pub fn segment_queues(&self, segment: u32) -> u16 {
        let ports = &self.segments[segment as usize].ports;
        ports.first().map_or(1, |&place| self.ports[usize::from(place)].queues)
    }

    /// A warning about a queue chosen for packets of this router: no first link has several, or there is no
    /// link.
    pub fn one_queue(&self, router: u32) -> Option<String> {
        let mut links = self.first_links(router).peekable();
        let name = &self.routers[router as usize].name;
        if links.peek().is_none() {
            return Some(format!(
                "no link begins at \"{name}\": there is no queue to choose, and this has no effect; join \
                 a link to it with a queue of kind priority, wf2q+ or hfsc"
            ));
        }
        // Classes can be chosen from outside.
        let queue = |link: &Link| self.profiles[link.profile as usize].block("queue");
        if links.any(|link| queue(link).is_some_and(|(spec, _)| spec.place("classes").is_some())) {
            return None;
        }
        Some(format!(
            "no link that begins at \"{name}\" has more than one queue: this has no effect; give one a \
             queue of kind priority, wf2q+ or hfsc"
        ))
    }

    /// The links that begin at a router's ports, on either side, or at bridges attached to them.
    fn first_links(&self, router: u32) -> impl Iterator<Item = &Link> {
        let of_router = move |place: u16| self.ports[usize::from(place)].router == Some(router);
        let own = move |place: u16| {
            of_router(place) || self.ports[usize::from(place)].attachment.far().is_some_and(of_router)
        };
        let is_far = move |port: &&Port| port.attachment.far().is_some_and(of_router);
        let hung = self.ports.iter().filter(|port| port.router.is_none()).filter(is_far);
        let hung: HashSet<u32> = hung.map(|port| port.segment).collect();
        self.links.iter().filter(move |link| match (link.from, link.to) {
            (End::Port(place), _) => own(place),
            // It leads to the router.
            (End::Bridge(_), End::Port(place)) if own(place) => false,
            (End::Bridge(bridge), _) => hung.contains(&self.bridges[bridge as usize].segment),
        })
    }
}

/// Section `[nesp]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nesp {
    /// The file with the shared key; it was valid when the scenario was read.
    pub key_file: PathBuf,
    /// Places of the ports that allow it.
    pub ports: Vec<u16>,
    /// Address and port of NESP over UDP and IPv4, if enabled.
    pub udp: Option<(Ipv4Addr, u16)>,
    /// Address and port of NESP over UDP and IPv6, if enabled.
    pub udp6: Option<(Ipv6Addr, u16)>,
    /// The allowed operations.
    pub allow: NespAllow,
}
