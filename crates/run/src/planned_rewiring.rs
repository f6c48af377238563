//! What brings a running instance to another plan: checked, and not begun.

use longwire_assemble::{CantRewire, Layout, PlanChange, is_at_start, rewire};
use longwire_block::change::set_block;
use longwire_control::{RewireResponse, RewiredObject, SetError};
use longwire_drivers::{HostDriver, Wire};
use longwire_scenario::library::Direction;
use longwire_scenario::{Plan, RouteChange, Router, RouterEvent, with_defaults};
use longwire_units::Nanos;
use std::collections::HashSet;
use std::sync::Arc;

/// A change that has taken effect.
pub(crate) struct AppliedChange<T> {
    /// What was changed.
    pub(crate) done: T,
    /// What failed afterwards, if anything did.
    pub(crate) fault: Option<SetError>,
}

/// See the module.
pub(crate) struct PlannedRewiring {
    /// The plan that runs.
    pub(crate) old: Arc<Plan>,
    /// The plan afterwards.
    pub(crate) new: Arc<Plan>,
    /// The engine's part.
    pub(crate) made: PlanChange,
}

impl PlannedRewiring {
    /// What brings an engine that runs `old`, laid out like `layout`, to the plan `new`. What removed links
    /// hold is dropped, unless they are `drained`.
    ///
    /// # Errors
    /// If the plans differ in what can't change while it runs.
    pub(crate) fn new(
        old: &Arc<Plan>,
        layout: &Layout,
        new: &Plan,
        drained: bool,
    ) -> Result<Self, CantRewire> {
        let mut new = as_running(old, new.clone());
        begin_as_events_say(old, &mut new);
        begin_routers_as_events_say(old, &mut new);
        let made = rewire(old, layout, &new, drained)?;
        Ok(Self { old: Arc::clone(old), new: Arc::new(new), made })
    }

    /// Whether it changes nothing but the text.
    pub(crate) fn is_empty(&self) -> bool {
        let done = self.objects();
        done.added.is_empty() && done.removed.is_empty()
    }

    /// The objects that are new, and those that are gone.
    pub(crate) fn objects(&self) -> RewireResponse {
        objects_between(&self.old, &self.new)
    }
}

/// The objects of `new` that `old` has not, and the other way. A link with other ends is another link; what
/// was a host and is a port is both.
pub(crate) fn objects_between(old: &Plan, new: &Plan) -> RewireResponse {
    let objects = |kind: &str, names: Vec<&str>| -> Vec<RewiredObject> {
        names.into_iter().map(|name| RewiredObject { kind: kind.into(), name: name.into() }).collect()
    };
    let hosts = |plan, other| objects("host", hosts_not_in(plan, other));
    let ports = |plan, other| objects("port", ports_not_in(plan, other));
    let bridges = |plan, other| objects("bridge", bridges_not_in(plan, other));
    let routers = |plan, other| {
        let names = routers_not_in(plan, other).map(|(_, name)| name);
        objects("router", names.collect())
    };
    let links = |plan, other| objects("link", links_not_in(plan, other));
    let sources = |plan, other| objects("source", sources_not_in(plan, other));
    // Each after what it needs.
    let there = |plan, other| {
        let [bridges, hosts, ports] = [bridges(plan, other), hosts(plan, other), ports(plan, other)];
        [bridges, hosts, ports, routers(plan, other), links(plan, other), sources(plan, other)]
    };
    let mut gone = there(old, new);
    gone.reverse();
    RewireResponse { added: there(new, old).concat(), removed: gone.concat() }
}

fn sources_not_in<'p>(plan: &'p Plan, other: &Plan) -> Vec<&'p str> {
    let known: HashSet<&str> = other.sources.iter().map(|source| &*source.name).collect();
    plan.sources.iter().map(|source| &*source.name).filter(|name| !known.contains(name)).collect()
}

fn hosts_not_in<'p>(plan: &'p Plan, other: &Plan) -> Vec<&'p str> {
    let known: HashSet<&str> = other.hosts.iter().map(|host| &*host.name).collect();
    plan.hosts.iter().map(|host| &*host.name).filter(|name| !known.contains(name)).collect()
}

fn ports_not_in<'p>(plan: &'p Plan, other: &Plan) -> Vec<&'p str> {
    let known: HashSet<&str> = declared(other).collect();
    declared(plan).filter(|name| !known.contains(name)).collect()
}

fn bridges_not_in<'p>(plan: &'p Plan, other: &Plan) -> Vec<&'p str> {
    let declared = |plan: &'p Plan| plan.bridges.iter().filter(|bridge| bridge.declared);
    let is_there = |name: &str| other.bridges.iter().any(|known| known.declared && *known.name == *name);
    declared(plan).map(|bridge| &*bridge.name).filter(|name| !is_there(name)).collect()
}

/// Places and names of routers that `plan` has, and `other` has not.
fn routers_not_in<'p>(plan: &'p Plan, other: &'p Plan) -> impl Iterator<Item = (usize, &'p str)> {
    let all = plan.routers.iter().map(|router| &*router.name).enumerate();
    all.filter(move |(_, name)| !other.routers.iter().any(|known| *known.name == **name))
}

/// The names of declared ports.
fn declared(plan: &Plan) -> impl Iterator<Item = &str> {
    let ports = plan.ports.iter().filter(|port| port.attachment.driven().is_some());
    ports.map(|port| &*port.name)
}

fn links_not_in<'p>(plan: &'p Plan, other: &Plan) -> Vec<&'p str> {
    let known: HashSet<_> = (0..other.links.len()).map(|place| with_ends(other, place)).collect();
    let places = (0..plan.links.len()).filter(|&place| !known.contains(&with_ends(plan, place)));
    places.map(|place| &*plan.links[place].name).collect()
}

/// A link's name, and those of its ends.
fn with_ends(plan: &Plan, place: usize) -> [&str; 3] {
    let link = &plan.links[place];
    [&link.name, plan.end_name(link.from), plan.end_name(link.to)]
}

/// The plan with values chosen at the start of the run: memory, how hosts are wired and leave their networks,
/// and which links are a command's way up.
fn as_running(running: &Plan, mut plan: Plan) -> Plan {
    plan.engine = running.engine.clone();
    let up = running.links.iter().filter(|link| link.direction == Direction::Backward);
    let up: HashSet<&str> = up.map(|link| &*link.name).collect();
    for link in plan.links.iter_mut().filter(|link| up.contains(&*link.name)) {
        link.direction = Direction::Backward;
    }
    for host in &mut plan.hosts {
        match running.hosts.iter().find(|known| known.name == host.name) {
            Some(known) => {
                host.driver = known.driver;
                // Its default routes were set when it was made.
                host.gateways.clone_from(&known.gateways);
            }
            None if host.driver.wire == Wire::Tap && !longwire_lab::abilities().tap.available => {
                host.driver = HostDriver::VETH;
            }
            None => {}
        }
    }
    plan
}

/// Makes new links of what the scenario's events at time 0 leave: these come before the first packet.
fn begin_as_events_say(old: &Plan, new: &mut Plan) {
    let events: Vec<_> = new.events.iter().filter(|event| is_at_start(event)).cloned().collect();
    if events.iter().all(|event| event.links.is_empty()) {
        return;
    }
    let fresh: HashSet<Box<str>> = links_not_in(new, old).into_iter().map(Box::from).collect();
    let registry = longwire_link::registry();
    for event in &events {
        for &place in &*event.links {
            if !fresh.contains(&new.links[place as usize].name) {
                continue;
            }
            let mut profile = new.profile(place as usize).clone();
            profile.blocks = with_defaults(&profile.blocks, &registry);
            for edit in &*event.edits {
                if let Some((spec, values)) = edit.apply(&profile.blocks) {
                    set_block(&mut profile.blocks, spec, values);
                }
            }
            new.links[place as usize].profile = new.profiles.len() as u32;
            new.profiles.push(profile);
        }
    }
}

/// Makes new routers of what the scenario's events at time 0 leave.
fn begin_routers_as_events_say(old: &Plan, new: &mut Plan) {
    let fresh: Vec<usize> = routers_not_in(new, old).map(|(place, _)| place).collect();
    let events = new.router_events.iter().filter(|event| event.time == Nanos::ZERO);
    let events: Vec<_> = events.filter(|event| fresh.contains(&(event.router as usize))).cloned().collect();
    for RouterEvent { router, changes, weight, .. } in events {
        let Router { routes, sharing, .. } = &mut new.routers[router as usize];
        for change in &changes {
            match change {
                RouteChange::Add(route) => {
                    routes.retain(|known| known.to != route.to);
                    routes.push(route.clone());
                }
                RouteChange::Remove(to) => routes.retain(|known| known.to != *to),
                RouteChange::RemoveDefault => routes.retain(|known| known.to.prefix > 0),
            }
        }
        let mut flows = sharing.iter_mut().flat_map(|sharing| &mut sharing.flows);
        if let Some((name, weight)) = weight
            && let Some(flow) = flows.find(|flow| flow.name == name)
        {
            flow.weight = weight;
        }
    }
}
