//! The checked plan: everything a run needs to know, with every reference resolved to a place.
//!
//! Only [`crate::parse`] makes one: indices are in range, names are unique within their kind, routes join up.

use crate::address::{Mac, Network};
pub use crate::attachment::{Attachment, ControlEnd, Driven};
use crate::event::Event;
use crate::finding::Finding;
use crate::forwarder_plan::PlannedForwarder;
use crate::places::Places;
pub use crate::plan_routes::{Route, Routes};
use crate::router_plan::{Router, RouterEvent};
pub use crate::settings::{BridgeSettings, EngineSettings, Fidelity, LARGEST_POOL};
pub use crate::source::Source;
use crate::words::Routing;
use longwire_block::change::Blocks;
use longwire_block::flow::Aim;
use longwire_block::{Dice, Spec, Value, Values};
use longwire_drivers::{Backend, Driver, HostDriver};
use longwire_link::medium_rate;
use longwire_link::transmit::Transmit;
use longwire_units::{Nanos, Rate};
use std::collections::HashMap;
use std::net::IpAddr;
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
    /// How ways across bridges were found.
    pub routing: Routing,
    /// How the engine runs.
    pub engine: EngineSettings,
    /// When a run is faithful.
    pub fidelity: Fidelity,
    /// Hosts, in the file's order.
    pub hosts: Vec<Host>,
    /// Ports; a port's place is its index. First those of the hosts, then those that the file declares.
    pub ports: Vec<Port>,
    /// Bridges, in the file's order; one named `bridge` if the file declares none.
    pub bridges: Vec<Bridge>,
    /// Routers, in the file's order.
    pub routers: Vec<Router>,
    /// Programs that routers have from the start, in the file's order.
    pub forwarders: Vec<PlannedForwarder>,
    /// What decides as one: groups of bridges that links join, each of which learns addresses as one bridge;
    /// then routers.
    pub segments: Vec<Segment>,
    /// Blocks of links; many links share one.
    pub profiles: Vec<Profile>,
    /// Links; a link's place is its index. A duplex link is two, forward first.
    pub links: Vec<Link>,
    /// Media that links share.
    pub media: Vec<Medium>,
    /// Routes of more than one link, and of none.
    pub routes: Routes,
    /// What decides first: routes by source and destination address. Each pair occurs once.
    pub address_rules: Vec<AddressRule>,
    /// What decides next: routes by port. Pairs that are not listed cross unimpaired. Ascending by (in, out).
    pub pair_rules: Vec<PairRule>,
    /// Where filters send packets instead.
    pub steers: Vec<Steer>,
    /// Where routers' programs send packets instead.
    pub link_requests: Vec<LinkRequest>,
    /// Traffic sources.
    pub sources: Vec<Source>,
    /// What changes while the run goes on, in the file's order.
    pub events: Vec<Event>,
    /// What changes in routers while the run goes on, in the file's order.
    pub router_events: Vec<RouterEvent>,
    /// By a changing link's place: the delays it ever has.
    pub changing_delays: HashMap<u32, Delays>,
    /// Who may read and change settings by frames, if anybody may.
    pub nesp: Option<crate::nesp_plan::Nesp>,
    /// Warnings: allowed, but probably mistakes.
    pub notes: Vec<Finding>,
}

/// A test host: a network namespace with one interface, wired to a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// Its name.
    pub name: Box<str>,
    /// Place of its port.
    pub port: u16,
    /// How Longwire holds its end of the wire.
    pub driver: HostDriver,
    /// Addresses of its interface, with the prefix of the network that is on the link.
    pub addresses: Vec<Network>,
    /// Hardware address of its interface.
    pub mac: Mac,
    /// Longest IP packet its interface sends, 68 to 65535 bytes.
    pub mtu: u32,
    /// Default gateways, at most one of each family.
    pub gateways: Vec<IpAddr>,
    /// Further routes.
    pub routes: Vec<HostRoute>,
}

/// A route in a host's table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRoute {
    /// The destination.
    pub to: Network,
    /// The neighbour that knows the way.
    pub via: IpAddr,
}

/// Where packets come in and go out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// Its name: the host's, if it belongs to one.
    pub name: Box<str>,
    /// The attachment on the other side.
    pub attachment: Attachment,
    /// Addresses behind it: the host's own, or what the file says lies there.
    pub addresses: Vec<Network>,
    /// Hardware address of what is behind it: the host's, or the one traffic sources use.
    pub mac: Mac,
    /// Index of its bridge, or [`Port::NO_BRIDGE`] if it is a router's.
    pub bridge: u32,
    /// Index of its segment.
    pub segment: u32,
    /// Index of its router, if it is one's.
    pub router: Option<u32>,
    /// How many workers receive and transmit by it in real time, from the first worker on, each by a queue of
    /// its own: 1 to 64.
    pub queues: u16,
}

impl Port {
    /// The index of no bridge.
    pub const NO_BRIDGE: u32 = u32::MAX;

    /// A router's own port, whose far side is not known yet.
    pub(crate) fn inner(name: Box<str>, place: u16) -> Self {
        Self {
            name,
            attachment: Attachment::Inner { far: place },
            addresses: Vec::new(),
            mac: Mac::of_port(place),
            bridge: Self::NO_BRIDGE,
            segment: 0,
            router: None,
            queues: 1,
        }
    }

    /// Attaches it to the port with the place `far`, which leads to another node.
    pub(crate) fn lead_to(&mut self, far: u16) {
        self.attachment = Attachment::Inner { far };
    }
}

/// A bridge of the scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bridge {
    /// Its name.
    pub name: Box<str>,
    /// How long an address is remembered that sends nothing.
    pub ageing: Nanos,
    /// How many addresses are remembered, at most.
    pub table: u32,
    /// Places of its ports, ascending.
    pub ports: Vec<u16>,
    /// Index of its segment.
    pub segment: u32,
    /// Whether the file has it. Hosts and ports that name none share one that nobody has asked for.
    pub declared: bool,
}

/// Bridges joined by links: the engine's node, which learns and floods over all their ports at once. Or a
/// router.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Index of the router that it is, if it is one; it has no bridges then.
    pub router: Option<u32>,
    /// Indices of its bridges, ascending.
    pub bridges: Vec<u32>,
    /// Places of their ports, ascending.
    pub ports: Vec<u16>,
    /// The shortest ageing time of its bridges.
    pub ageing: Nanos,
    /// The largest table of its bridges.
    pub table: u32,
}

/// The blocks of a link.
#[derive(Debug, Clone)]
pub struct Profile {
    /// Blocks that the file names, one a key at most; the others have their defaults.
    pub blocks: Vec<(&'static Spec, Values)>,
    /// Whether such a link keeps a histogram of lateness.
    pub histogram: bool,
    /// How long packets travel.
    pub delays: Delays,
}

/// How long packets travel on a link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Delays {
    /// The least time from being sent to leaving.
    pub least: Nanos,
    /// The mean delay: of jitter the configured one, of a trace that of its entries over their time.
    pub mean: Nanos,
    /// How long the link holds a packet that travels longest, and its copies, on average over how often there
    /// are any.
    pub held: Nanos,
    /// Whether it does so before the queue: as many packets as come, not as many as are sent.
    pub before_queue: bool,
}

impl Profile {
    /// The first parameter of the block for `key`, if the file names one.
    pub fn value(&self, key: &str) -> Option<Value> {
        self.blocks.iter().find(|(spec, _)| spec.key == key).map(|(_, values)| values.at(0))
    }

    /// How fast such a link sends: at the first, and of a trace in the mean.
    pub fn rate(&self) -> Rate {
        self.sender().map_or(Rate::UNLIMITED, |sender| sender.rate())
    }

    /// What it sends with, if the file names something.
    pub fn sender(&self) -> Option<Transmit> {
        let (spec, values) = self.blocks.iter().find(|(spec, _)| spec.key == "rate")?;
        Transmit::build(spec, values, || Dice::named(0, ""))
    }
}

/// A simplex link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Its name; those of a duplex link's halves end in `.forward` and `.backward`.
    pub name: Box<str>,
    /// Index of what it is made of.
    pub profile: u32,
    /// Its start.
    pub from: End,
    /// Its end.
    pub to: End,
}

/// A link that packets take instead of another when a filter there says so. Both begin and end at the same
/// places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Steer {
    /// Place of the link with the filter.
    pub link: u32,
    /// Which of its filter's targets it is.
    pub number: u8,
    /// Place of the link that they take instead.
    pub target: u32,
}

/// A link that packets take instead of another when a router's program says so. Both begin and end at the
/// same places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkRequest {
    /// Place of the link that they would take.
    pub link: u32,
    /// The other's number among those that programs may name.
    pub number: u16,
    /// Place of the link that they take instead.
    pub target: u32,
}

/// What several links share: each is a station of it.
#[derive(Debug, Clone)]
pub struct Medium {
    /// Its name.
    pub name: Box<str>,
    /// Its kind: one of [`longwire_link::MEDIA`].
    pub spec: &'static Spec,
    /// Its settings.
    pub values: Values,
    /// Places of its links, ascending.
    pub links: Vec<u32>,
}

impl Medium {
    /// What it is made of, as its changes take it.
    pub fn blocks(&self) -> Blocks {
        vec![(self.spec, self.values.clone())]
    }
}

/// An end of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum End {
    /// A bridge, by index.
    Bridge(u32),
    /// A port (a host's, too), by place.
    Port(u16),
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
    /// Place of the port they come in by.
    pub in_port: u16,
    /// Place of the port they are bound for.
    pub out_port: u16,
    /// The links they take, or [`Route::NONE`].
    pub route: Route,
}

impl Plan {
    /// Whether a run in real time needs a lab: for hosts, or for routers' control planes.
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

    /// The driver of a port, its host's too; none for a router's own and its control plane's.
    pub fn driver_of(&self, port: &Port) -> Option<&'static Driver> {
        let own = port.attachment.driven().map(|driven| driven.driver);
        own.or_else(|| self.host_at(port).map(|host| host.driver.driver))
    }

    /// Whether a port has an interface in real time.
    pub fn has_interface(&self, port: &Port) -> bool {
        self.driver_of(port).is_some_and(|driver| driver.backend == Backend::Interface)
    }

    /// The links that packets take from one port to another when no address rule applies; `Some(&[])` if they
    /// cross unimpaired, `None` if there is no way.
    pub fn pair_route(&self, in_port: u16, out_port: u16) -> Option<&[u32]> {
        match self.pair_rules.binary_search_by_key(&(in_port, out_port), |rule| (rule.in_port, rule.out_port))
        {
            Ok(index) if !self.pair_rules[index].route.exists() => None,
            Ok(index) => Some(self.routes.links(&self.pair_rules[index].route)),
            Err(_) => Some(&[]),
        }
    }

    /// The rules for what comes in by a port, by the port that it goes out by.
    pub fn pair_rules_from(&self, in_port: u16) -> &[PairRule] {
        let first = self.pair_rules.partition_point(|rule| rule.in_port < in_port);
        let end = self.pair_rules.partition_point(|rule| rule.in_port <= in_port);
        &self.pair_rules[first..end]
    }

    /// What the link at `place` is made of.
    ///
    /// # Panics
    /// If there is no such link.
    pub fn profile(&self, place: usize) -> &Profile {
        &self.profiles[self.links[place].profile as usize]
    }

    /// How fast the link at `place` sends: as its medium does, or at its own rate.
    ///
    /// # Panics
    /// If there is no such link.
    pub fn rate(&self, place: usize) -> Rate {
        let medium = self.media.iter().find(|medium| medium.links.binary_search(&(place as u32)).is_ok());
        medium.map_or_else(|| self.profile(place).rate(), |medium| medium_rate(&medium.values))
    }

    /// Its ports, hosts and routers.
    pub fn places(&self) -> Places<'_> {
        Places { ports: &self.ports, hosts: &self.hosts, routers: &self.routers }
    }

    /// The ports that the source at `place` is ever bound for: at its start, and by the scenario's changes.
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

    /// The least time that a packet ever needs for the link at `place`, from its arrival to its leaving.
    ///
    /// # Panics
    /// If there is no such link.
    pub fn least_delay(&self, place: usize) -> Nanos {
        let changed = self.changing_delays.get(&(place as u32));
        changed.map_or(self.profile(place).delays.least, |delays| delays.least)
    }

    /// The name of an end of a link.
    ///
    /// # Panics
    /// If it is none of this plan's.
    pub fn end_name(&self, end: End) -> &str {
        match end {
            End::Bridge(index) => &self.bridges[index as usize].name,
            End::Port(place) => &self.ports[place as usize].name,
        }
    }
}
