//! Builds an engine, ready to start, from a plan.

mod assign;
mod cut;
mod fixed;
mod layout;
mod levels;
mod rewire;
mod rewire_ports;
mod rewire_segments;
mod router_changes;
mod routers;
mod shards;
mod spread;
mod steps;

use assign::Assigned;
pub use fixed::{FixedDifference, are_joined_alike, fixed_differences, is_at_start};
pub use layout::{CantRewire, Layout};
use layout::{Indices, Slots};
pub use levels::{Levels, LevelsError};
use longwire_block::Port;
use longwire_block::change::Blocks;
use longwire_block::path::{Fork, LinkRef, NOWHERE, Paths, PortPath};
pub use longwire_engine::TO_THE_END;
use longwire_engine::{
    Agenda, Changes, Event, InnerPorts, Map, MediumRef, NodeRef, Observer, PortLocation, RingKind, Setup,
    SourceRef, SourceSetup, SteeredPaths, Tolerance, WorkerSetup,
};
use longwire_link::classify::Classifier;
use longwire_link::{GONE, LinkConfig, Links};
use longwire_packet::{Pool, PoolError};
use longwire_scenario::{AddressRule, BetweenWorkers, Plan, Route, Source, Wait, with_defaults};
pub use rewire::{PlanChange, rewire, rewirings};
pub use router_changes::change_router;
pub use routers::{known_neighbours, measure_processors};
pub(crate) use shards::Shards;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use thiserror::Error;

/// An engine built from a plan.
pub struct BuiltEngine {
    /// The input of [`Setup::start`] or [`Setup::simulate`].
    pub setup: Setup,
    /// The engine's references to links and other state that rewiring needs.
    pub layout: Layout,
    /// The engine's reference to each router.
    pub routers: Vec<NodeRef>,
    /// The engine's reference to each medium.
    pub media: Vec<MediumRef>,
}

/// An engine that can't be built.
#[derive(Debug, Error)]
pub enum BuildError {
    /// Not enough memory.
    #[error("engine.pool: {0}")]
    Pool(#[from] PoolError),
    /// A router's configuration is impossible.
    #[error("router \"{name}\": {why}")]
    Router {
        /// Its name.
        name: String,
        /// Why not.
        why: String,
    },
    /// The number of ports does not match the plan.
    #[error("{got} ports were opened for the plan's {wanted}")]
    Ports {
        /// Number opened.
        got: usize,
        /// Number in the plan.
        wanted: usize,
    },
}

/// Builds an engine from `plan` and its opened ports in the plan's order: one for each, or, in real time, one
/// for each queue (see [`Plan::queue_places`]). `observer` makes an observer for each worker.
///
/// # Errors
/// If there is not enough memory for the packet pools, or the number of ports does not match.
pub fn build(
    plan: &Plan,
    ports: Vec<Box<dyn Port>>,
    mut observer: impl FnMut(u32) -> Option<Box<dyn Observer>>,
) -> Result<BuiltEngine, BuildError> {
    let shards = Shards::of(plan);
    let mut workers = Vec::with_capacity(plan.engine.workers as usize);
    let mut links = Vec::with_capacity(plan.links.len());
    for worker in 0..plan.engine.workers {
        let (own, crossing) = worker_links(plan, &shards, worker);
        workers.push(WorkerSetup {
            cpu: plan.engine.cpus.get(worker as usize).map(|&cpu| cpu as usize),
            flat: shards.flat,
            crossing,
            observer: observer(worker),
            ..WorkerSetup::new(Pool::growing(plan.engine.pool.0)?, own)
        });
    }
    let mut next = vec![0; workers.len()];
    for &worker in &shards.link_workers {
        links.push(LinkRef::new(worker, next[worker as usize]));
        next[worker as usize] += 1;
    }
    let Assigned { port_locations, routers, nodes } =
        assign::assign_ports(plan, ports, &shards, &mut workers)?;
    let sources = assign_sources(plan, &port_locations, &mut workers);
    let media = place_media(plan, &shards, &workers);
    give_agendas(plan, (&links, &sources, &media), &mut workers);
    routers::give_events(plan, &routers, &mut workers);
    let indices = |worker: &WorkerSetup| {
        let (count, room) = (worker.links.len(), worker.links.slots());
        let is_spare = |link: &u32| worker.links.place(*link) == GONE;
        // The first is taken first.
        let free = (0..count as u32).rev().filter(is_spare).collect();
        Indices { count: count as u32, free, room, grows: room == count }
    };
    let slots = |worker: &WorkerSetup| Slots { count: worker.ports.len() as u32, ..Slots::default() };
    let mut layout = Layout {
        links,
        port_locations,
        paths: Paths::default(),
        floods: HashMap::new(),
        workers: workers.iter().map(indices).collect(),
        flat: shards.flat,
        nodes,
        node_counts: workers.iter().map(|worker| worker.nodes.len() as u32).collect(),
        free_nodes: Vec::new(),
        retired: Vec::new(),
        slots: workers.iter().map(slots).collect(),
        sources,
        source_counts: workers.iter().map(|worker| worker.agenda.source_setups.len() as u32).collect(),
        free_sources: Vec::new(),
    };
    let map = map_over(plan, &mut layout, None, routers::inner_ports(plan, &shards));
    let wait = wait_of(plan.engine.wait);
    let between = match plan.engine.between {
        BetweenWorkers::Private => RingKind::Private,
        BetweenWorkers::Shared => RingKind::Shared,
    };
    let setup = Setup { workers, map, tolerance: tolerance(plan), wait, between, lead: shards.lead };
    Ok(BuiltEngine { setup, layout, routers, media })
}

/// How the engine waits.
fn wait_of(wait: Wait) -> longwire_engine::Wait {
    match wait {
        Wait::Spin => longwire_engine::Wait::Spin,
        Wait::SleepThenSpin => longwire_engine::Wait::SleepThenSpin,
        Wait::Sleep => longwire_engine::Wait::Sleep,
    }
}

/// The plan's fidelity limits.
pub fn tolerance(plan: &Plan) -> Tolerance {
    let share_ppm = (plan.fidelity.share.as_f64() * 1e6).round() as u32;
    Tolerance { within: plan.fidelity.within, share_ppm, tick: plan.engine.tick }
}

/// Links for which a worker with media has room, to join while it runs.
const SPARE_BESIDE_MEDIA: usize = 64;

/// The links of one worker, and which of them lead to another worker's.
fn worker_links(plan: &Plan, shards: &Shards, worker: u32) -> (Links, Vec<bool>) {
    let own = (0..plan.links.len() as u32).filter(|&place| shards.link_workers[place as usize] == worker);
    let own: Vec<u32> = own.collect();
    let mut links = links_of(plan, &own);
    let mut crossing = match plan.engine.workers {
        1 => Vec::new(),
        _ => own.iter().map(|&place| shards.crossing[place as usize]).collect(),
    };
    // Media have the numbers behind the links: these can't become more.
    if plan.media.iter().any(|medium| medium.links.iter().any(|link| own.binary_search(link).is_ok())) {
        let spare = LinkConfig::new(Vec::new(), false);
        for _ in 0..SPARE_BESIDE_MEDIA {
            links.add(GONE, "", &spare);
        }
        if !crossing.is_empty() {
            crossing.resize(links.len(), false);
        }
    }
    for medium in &plan.media {
        // All of its links belong to one worker.
        let local = |place: &u32| {
            let at = own.binary_search(place).ok()?;
            Some((at as u32, &*plan.links[*place as usize].name))
        };
        let stations: Vec<_> = medium.links.iter().filter_map(local).collect();
        if !stations.is_empty() {
            links.add_medium(&medium.name, (medium.spec, &medium.values), &stations);
        }
    }
    (links, crossing)
}

/// The links at these places.
fn links_of(plan: &Plan, places: &[u32]) -> Links {
    // By profile: the configuration, and the first link that has it.
    let mut known: HashMap<u32, (LinkConfig, u32)> = HashMap::new();
    let mut links = Links::with_capacity(places.len(), plan.seed, plan.engine.train_spread);
    for &place in places {
        let link = &plan.links[place as usize];
        if let Some((config, like)) = known.get(&link.profile) {
            links.add_alike(place, &link.name, *like, config);
            continue;
        }
        let profile = &plan.profiles[link.profile as usize];
        let config = LinkConfig::new(profile.blocks.clone(), profile.histogram);
        let number = links.add(place, &link.name, &config);
        known.insert(link.profile, (config, number));
    }
    links
}

/// Registers the sources at each worker's ports.
fn assign_sources(
    plan: &Plan,
    port_locations: &[PortLocation],
    workers: &mut [WorkerSetup],
) -> Vec<SourceRef> {
    let setup = |source: &Source| {
        let PortLocation { worker, slot, .. } = port_locations[usize::from(source.in_port)];
        let setups = &mut workers[worker as usize].agenda.source_setups;
        setups.push(SourceSetup { port: slot, name: source.name.clone() });
        SourceRef { worker, place: setups.len() as u32 - 1 }
    };
    plan.sources.iter().map(setup).collect()
}

/// The engine's reference to each medium, whose links all belong to one worker.
fn place_media(plan: &Plan, shards: &Shards, workers: &[WorkerSetup]) -> Vec<MediumRef> {
    let mut next: Vec<u32> = workers.iter().map(|worker| worker.links.len() as u32).collect();
    let place = |medium: &longwire_scenario::Medium| {
        let worker = medium.links.first().map_or(0, |&link| shards.link_workers[link as usize]);
        let place = next[worker as usize];
        next[worker as usize] += 1;
        MediumRef { worker, place }
    };
    plan.media.iter().map(place).collect()
}

/// Distributes the events to the workers of their links, sources and media.
fn give_agendas(
    plan: &Plan,
    (links, sources, media): (&[LinkRef], &[SourceRef], &[MediumRef]),
    workers: &mut [WorkerSetup],
) {
    let registry = longwire_link::registry();
    let mut made_of: HashMap<u32, Arc<Blocks>> = HashMap::new();
    for event in &plan.events {
        let of_links = event.links.iter().map(|&place| {
            let link = links[place as usize];
            (link.worker(), link.local(), place as usize)
        });
        give(
            event,
            of_links,
            workers,
            |agenda| &mut agenda.links,
            |place| {
                let profile = plan.links[place].profile;
                let made = || Arc::new(with_defaults(&plan.profiles[profile as usize].blocks, &registry));
                Arc::clone(made_of.entry(profile).or_insert_with(made))
            },
        );
        let of_sources = event.sources.iter().map(|&place| {
            let SourceRef { worker, place: number } = sources[place as usize];
            (worker, number, place as usize)
        });
        let made = |place: usize| Arc::new(plan.sources[place].blocks(&plan.ports));
        give(event, of_sources, workers, |agenda| &mut agenda.sources, made);
        let of_media = event.media.iter().map(|&place| {
            let MediumRef { worker, place: number } = media[place as usize];
            (worker, number, place as usize)
        });
        give(
            event,
            of_media,
            workers,
            |agenda| &mut agenda.links,
            |place| Arc::new(plan.media[place].blocks()),
        );
    }
}

/// Gives each worker the part of an event that concerns its `objects`: of each its worker, its number there
/// and its place in the plan. `made` gives the blocks with which the object at a place starts.
fn give(
    event: &longwire_scenario::Event,
    objects: impl Iterator<Item = (u32, u32, usize)>,
    workers: &mut [WorkerSetup],
    of: impl Fn(&mut Agenda) -> &mut Changes,
    mut made: impl FnMut(usize) -> Arc<Blocks>,
) {
    let mut own: Vec<Vec<u32>> = vec![Vec::new(); workers.len()];
    for (worker, number, place) in objects {
        own[worker as usize].push(number);
        let changes = of(&mut workers[worker as usize].agenda);
        changes.made_of.entry(number).or_insert_with(|| made(place));
    }
    for (worker, places) in workers.iter_mut().zip(own).filter(|(_, places)| !places.is_empty()) {
        of(&mut worker.agenda).events.push(Event {
            time: event.time,
            repeat: event.repeat,
            ramp: event.ramp,
            places: places.into(),
            edits: Arc::clone(&event.edits),
        });
    }
}

/// By port: its worker, or the first of several.
pub fn port_workers(plan: &Plan) -> Vec<u32> {
    let shards = Shards::of(plan);
    plan.ports.iter().map(|port| shards.segment_workers[port.segment as usize]).collect()
}

/// Converts the plan's rules to the workers' tables. Paths are added to those of the `layout`, and kept
/// there; what floods as it did `before` keeps its trees.
fn map_over(
    plan: &Plan,
    layout: &mut Layout,
    before: Option<(&Plan, &Layout)>,
    inner_ports: InnerPorts,
) -> Map {
    let Layout { links, port_locations, paths, floods: trees, .. } = layout;
    let there = paths.whole();
    let mut known: HashMap<Route, u32> = HashMap::new();
    let mut path_of = |route: Route| {
        if !route.exists() {
            return NOWHERE;
        }
        match plan.routes.links(&route) {
            [only] => paths.add(&[links[*only as usize]]),
            many => *known.entry(route).or_insert_with(|| {
                let hops: Vec<LinkRef> = many.iter().map(|&link| links[link as usize]).collect();
                there.get(&hops).copied().unwrap_or_else(|| paths.add(&hops))
            }),
        }
    };
    let (mut v4, mut v6) = (Vec::new(), Vec::new());
    for &AddressRule { source, destination, route } in &plan.address_rules {
        let path = path_of(route);
        match (source, destination) {
            (IpAddr::V4(from), IpAddr::V4(to)) => v4.push(((from.to_bits(), to.to_bits()), path)),
            (IpAddr::V6(from), IpAddr::V6(to)) => v6.push(((from.to_bits(), to.to_bits()), path)),
            // Both addresses of a pair have the same family.
            _ => {}
        }
    }
    let pairs: Vec<_> =
        plan.pair_rules.iter().map(|rule| ((rule.in_port, rule.out_port), path_of(rule.route))).collect();
    *trees = floods(plan, links, before, paths);
    // Filters also see packets that programs have sent to their links.
    let requested = plan.link_requests.iter().map(|request| (request.link, request.number, request.target));
    let requested = instead(requested, links, paths);
    let steered = plan.steers.iter().map(|steer| (steer.link, steer.number.into(), steer.target));
    let steered = instead(steered, links, paths);
    Map {
        classifier: Classifier::new(&v4, &v6, &pairs),
        paths: paths.clone(),
        port_locations: port_locations.clone(),
        floods: trees.clone(),
        steered,
        requested,
        inner_ports,
    }
}

/// The trees of flooded packets, by their input port: the paths from there to all other ports of its bridges.
fn floods(
    plan: &Plan,
    links: &[LinkRef],
    before: Option<(&Plan, &Layout)>,
    paths: &mut Paths,
) -> HashMap<u16, Fork> {
    let mut floods = HashMap::new();
    for segment in plan.segments.iter().filter(|segment| segment.router.is_none()) {
        // Fewer than two paths share no link.
        for &from in segment.ports.iter().filter(|&&from| plan.pair_rules_from(from).len() > 1) {
            let lists = flood_lists(plan, &segment.ports, from, links);
            let same = before.and_then(|(plan, layout)| {
                let tree = layout.floods.get(&from)?;
                let was = plan.ports.get(usize::from(from))?.segment;
                if plan.segments[was as usize].ports != segment.ports {
                    return None;
                }
                (flood_lists(plan, &segment.ports, from, &layout.links) == lists).then_some(*tree)
            });
            let ways: Vec<PortPath<'_>> = lists.iter().map(|(to, list)| (*to, list.as_deref())).collect();
            if let Some(fork) = same.or_else(|| paths.add_tree(&ways)) {
                floods.insert(from, fork);
            }
        }
    }
    floods
}

/// The links from one port to each of the others; none if there is no path.
fn flood_lists(plan: &Plan, ports: &[u16], from: u16, links: &[LinkRef]) -> Vec<(u16, Option<Vec<LinkRef>>)> {
    let over = |route: &[u32]| route.iter().map(|&link| links[link as usize]).collect::<Vec<_>>();
    let others = ports.iter().filter(|&&to| to != from);
    others.map(|&to| (to, plan.pair_route(from, to).map(over))).collect()
}

/// The paths of packets sent to other links, by link, the other link's number, and the other link: the rest
/// of each route with the other link in place of the first.
fn instead(
    others: impl Iterator<Item = (u32, u16, u32)> + Clone,
    links: &[LinkRef],
    paths: &mut Paths,
) -> SteeredPaths {
    let mut steered = SteeredPaths::default();
    let of = |place: u32| links[place as usize];
    let existing: Vec<Vec<u32>> = others.clone().map(|(link, ..)| paths.before(of(link))).collect();
    for ((link, number, target), existing) in others.zip(existing) {
        let one = paths.add(&[of(link)]);
        steered.add(one, number, paths.add(&[of(target)]));
        for path in existing {
            steered.add(path, number, paths.add_instead(path, of(target)));
        }
    }
    steered
}
