//! What brings a running instance to another plan: checked, and not begun.

use crate::objects::changing::edited;
use longwire_assemble::{CantRewire, Layout, PlanChange, is_at_start, rewire};
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
}

/// The objects of `new` that `old` has not, and the other way. A link with other ends is another link; what
/// was a host and is a port is both.
pub(crate) fn objects_between(old: &Plan, new: &Plan) -> RewireResponse {
    let there = |plan: &Plan, other: &Plan| {
        KINDS.map(|(kind, named)| {
            let object = |name: &str| RewiredObject { kind: kind.into(), name: name.into() };
            not_in(named(plan), named(other)).map(object).collect::<Vec<_>>()
        })
    };
    let mut gone = there(old, new);
    gone.reverse();
    RewireResponse { added: there(new, old).concat(), removed: gone.concat() }
}

/// What distinguishes an object from others of its kind: its name, and those of a link's ends.
type Identity<'p> = [&'p str; 3];
type Identities = fn(&Plan) -> Vec<Identity<'_>>;

/// The kinds of objects, and those that a plan has, each after what it needs.
const KINDS: [(&str, Identities); 6] = [
    ("bridge", |plan| {
        let declared = plan.bridges.iter().filter(|bridge| bridge.declared);
        declared.map(|bridge| [&*bridge.name, "", ""]).collect()
    }),
    ("host", |plan| plan.hosts.iter().map(|host| [&*host.name, "", ""]).collect()),
    ("port", |plan| {
        let declared = plan.ports.iter().filter(|port| port.attachment.driven().is_some());
        declared.map(|port| [&*port.name, "", ""]).collect()
    }),
    ("router", |plan| plan.routers.iter().map(|router| [&*router.name, "", ""]).collect()),
    ("link", links),
    ("source", |plan| plan.sources.iter().map(|source| [&*source.name, "", ""]).collect()),
];

fn links(plan: &Plan) -> Vec<Identity<'_>> {
    plan.links.iter().map(|link| [&*link.name, plan.end_name(link.from), plan.end_name(link.to)]).collect()
}

/// The names of those objects that are not among the `others`.
fn not_in<'p>(all: Vec<Identity<'p>>, others: Vec<Identity<'p>>) -> impl Iterator<Item = &'p str> {
    let others: HashSet<_> = others.into_iter().collect();
    all.into_iter().filter(move |object| !others.contains(object)).map(|[name, ..]| name)
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
    let fresh: HashSet<Box<str>> = not_in(links(new), links(old)).map(Box::from).collect();
    let registry = longwire_link::registry();
    for event in &events {
        for &place in &*event.links {
            if !fresh.contains(&new.links[place as usize].name) {
                continue;
            }
            let mut profile = new.profile(place as usize).clone();
            profile.blocks = edited(&with_defaults(&profile.blocks, &registry), &*event.edits);
            new.links[place as usize].profile = new.profiles.len() as u32;
            new.profiles.push(profile);
        }
    }
}

/// Makes new routers of what the scenario's events at time 0 leave.
fn begin_routers_as_events_say(old: &Plan, new: &mut Plan) {
    let is_fresh = |router: &Router| !old.routers.iter().any(|known| known.name == router.name);
    let events = new.router_events.iter().filter(|event| event.time == Nanos::ZERO);
    let events = events.filter(|event| is_fresh(&new.routers[event.router as usize]));
    let events: Vec<_> = events.cloned().collect();
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
