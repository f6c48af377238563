//! Changing from one plan to another while the engine runs: links, ports, nodes and traffic sources that join
//! and leave, and the new map.

use super::fixed::{FixedDifference, fixed_differences, is_at_start};
use super::layout::{CantRewire, Layout};
use super::levels::in_line;
use super::rewire_ports::{ChangedPorts, PortPlacement, changed_ports, changed_sources, check_ports};
use super::rewire_segments::{ChangedSegments, changed_segments};
use super::{Levels, LevelsError, Shards, links_of, map_over, routers};
use crate::BuildError;
use longwire_block::path::LinkRef;
use longwire_block::{JoiningSource, Node, Port};
use longwire_engine::{InnerPorts, Map, NodeRef, Part, PortSetup, Rewiring};
use longwire_link::Joining;
use longwire_router::{Meter, Router};
use longwire_scenario::Plan;
use longwire_units::Nanos;
use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

/// A change from one plan to another.
pub struct PlanChange {
    /// The engine's part.
    pub rewiring: Rewiring,
    /// The layout afterwards.
    pub layout: Layout,
    /// Places in the new plan of links that join.
    pub added: Vec<u32>,
    /// Places in the old plan of links that leave.
    pub removed: Vec<u32>,
    /// Places of ports that are new, in the order in which [`PlanChange::give_ports`] takes them.
    pub new_ports: Vec<u16>,
    /// Places of ports that are gone.
    pub old_ports: Vec<u16>,
    /// Places in the new plan of routers that are new, in the order of the plan.
    pub new_routers: Vec<u32>,
    /// Places in the new plan of traffic sources that are new.
    pub new_sources: Vec<u32>,
    /// Where new ports go.
    placements: Vec<PortPlacement>,
}

impl PlanChange {
    /// Gives the new ports, in the order of `new_ports`.
    pub fn give_ports(&mut self, ports: Vec<Box<dyn Port>>) {
        for (PortPlacement { worker, place, slot, node }, port) in self.placements.drain(..).zip(ports) {
            let part = &mut self.rewiring.parts[worker as usize];
            part.ports.push((slot, PortSetup { place, node: node as usize, port }));
        }
        for part in &mut self.rewiring.parts {
            part.ports.sort_by_key(|(slot, _)| *slot);
        }
    }

    /// Gives new sources, by their places in the new plan, what their ports add. Those that are not given
    /// send nothing.
    pub fn give_sources(&mut self, sources: Vec<(u32, JoiningSource)>) {
        for (place, flow) in sources {
            let at = self.layout.sources[place as usize];
            let own = &mut self.rewiring.parts[at.worker as usize].sources;
            if let Some((_, source)) = own.iter_mut().find(|(index, _)| *index == at.place) {
                source.flow = Some(flow);
            }
        }
    }

    /// Sets up the levels above each new router in real time, in the order of `plan`, the new plan, as
    /// [`BuiltEngine::raise`](super::BuiltEngine::raise) does.
    ///
    /// # Errors
    /// The machine's refusal.
    pub fn raise(
        &mut self,
        plan: &Plan,
        socket: impl Fn(&longwire_scenario::Router) -> PathBuf,
    ) -> Result<Vec<Levels>, LevelsError> {
        let mut all = Vec::with_capacity(self.new_routers.len());
        for (index, router) in self.each_new_router(plan) {
            let (levels, punt) = Levels::above(plan, index, socket(&plan.routers[index]))?;
            router.set_levels(punt);
            all.push((index, levels));
        }
        all.sort_by_key(|(index, _)| *index);
        Ok(all.into_iter().map(|(_, levels)| levels).collect())
    }

    /// Sets up the levels above each new router in virtual time.
    ///
    /// # Errors
    /// A control process is requested.
    pub fn raise_in_line(&mut self, plan: &Plan) -> Result<(), LevelsError> {
        for (index, router) in self.each_new_router(plan) {
            if let Some(punt) = in_line(plan, index)? {
                router.set_levels(punt);
            }
        }
        Ok(())
    }

    /// Makes new routers with shared processors measure packet costs.
    ///
    /// # Errors
    /// A router's processors can't be threads.
    pub fn measure_processors(&mut self, plan: &Plan, meter: Meter) -> Result<(), BuildError> {
        for (index, router) in self.each_new_router(plan) {
            let name = plan.routers[index].name.to_string();
            let broken = |why: String| BuildError::Router { name, why };
            router.measure_processors(meter).map_err(|error| broken(error.to_string()))?;
        }
        Ok(())
    }

    /// The new routers with their places in the new plan.
    fn each_new_router<'r>(&'r mut self, plan: &'r Plan) -> impl Iterator<Item = (usize, &'r mut Router)> {
        let places = self.layout.routers(plan);
        let indices = self.new_routers.clone();
        let parts = (0..).zip(&mut self.rewiring.parts);
        let nodes = parts.flat_map(|(worker, part)| part.nodes.iter_mut().map(move |node| (worker, node)));
        nodes.filter_map(move |(worker, (place, node))| {
            let at = NodeRef { worker, place: *place };
            let index = *indices.iter().find(|&&index| places[index as usize] == at)? as usize;
            let node: &mut dyn Node = &mut **node;
            Some((index, (node as &mut dyn Any).downcast_mut()?))
        })
    }
}

/// Compares the plan `old`, laid out as `layout`, with `new`. Links with the same name and ends are kept with
/// their current settings; removed ones drop what they hold, unless `drained`.
///
/// # Errors
/// If the plans differ in something that can't change while packets flow.
pub fn rewire(old: &Plan, layout: &Layout, new: &Plan, drained: bool) -> Result<PlanChange, CantRewire> {
    let (before, shards) = (Shards::of(old), Shards::of(new));
    check(old, new, (&before, &shards))?;
    let mut next = Layout { flat: layout.flat && shards.flat, ..layout.clone() };
    let (kept, removed) = kept(old, layout, new);
    let added: Vec<u32> = (0..).zip(&kept).filter(|(_, link)| link.is_none()).map(|(at, _)| at).collect();
    check_events(new, &added)?;
    check_media(old, &removed)?;
    let segments = changed_segments(old, new, &shards, &mut next)?;
    check_router_events(new, &segments.new_routers)?;
    let ports = changed_ports(old, new, &mut next);
    let sources = changed_sources(old, new, &ports.joining, &mut next)?;
    let places = next.take_links(&kept, &shards.link_workers)?;
    let leaving: Vec<LinkRef> = removed.iter().map(|&place| layout.links[place as usize]).collect();
    let map = map_over(new, &mut next, Some((old, layout)), routers::inner_ports(new, &shards));
    let several = next.workers.len() > 1;
    let map_before =
        several.then(|| map_before((old, layout), &map, &ports, routers::inner_ports(new, &shards)));
    if let Some(map_before) = &map_before {
        next.paths = map_before.paths.clone();
    }
    let map = Map { paths: next.paths.clone(), ..map };
    let leaves = Leaving { links: &leaving, drained };
    let parts = (0..).zip(places);
    let parts = parts.map(|own| part((new, &shards), &mut next, own, &added, &leaves));
    let mut parts: Vec<Part> = parts.collect();
    for (part, slots) in parts.iter_mut().zip(&layout.slots) {
        part.ports_before = slots.count;
    }
    let ChangedPorts { joining, leaving, closed, placements } = ports;
    let ChangedSegments { fresh, new_routers, retiring, moves, in_turn, acts } = segments;
    parts[0].in_turn = in_turn;
    for (node, fresh) in fresh {
        parts[node.worker as usize].nodes.push((node.place, fresh));
    }
    for (node, stand_in) in retiring {
        parts[node.worker as usize].retiring.push((node.place, stand_in));
    }
    for (slot, node) in moves {
        parts[node.worker as usize].moves.push((slot, node.place));
    }
    for (worker, slot, port) in closed {
        parts[worker as usize].ports.push((slot, port));
    }
    for (node, act) in acts {
        parts[node.worker as usize].acts.push((node.place, act));
    }
    sources.give(new, &next, &mut parts);
    let rewiring = Rewiring { map, before: map_before, parts };
    Ok(PlanChange {
        rewiring,
        layout: next,
        added,
        removed,
        new_ports: joining,
        old_ports: leaving,
        new_routers,
        new_sources: sources.joining,
        placements,
    })
}

/// The map of the plan `old` with the paths of the `map` after it, and where ports that join will be. Those
/// that leave are where they were: where packets to them are dropped then, another port may still be.
fn map_before(
    (old, layout): (&Plan, &Layout),
    map: &Map,
    ports: &ChangedPorts,
    inner_ports: InnerPorts,
) -> Map {
    let (paths, mut port_locations) = (map.paths.clone(), map.port_locations.clone());
    for place in ports.leaving.iter().filter(|place| ports.joining.binary_search(place).is_err()) {
        let place = usize::from(*place);
        port_locations[place] = layout.port_locations[place];
    }
    let mut with = Layout { paths, port_locations, ..layout.clone() };
    map_over(old, &mut with, Some((old, layout)), inner_ports)
}

/// Links that leave.
struct Leaving<'l> {
    links: &'l [LinkRef],
    /// Whether they send what they hold.
    drained: bool,
}

/// A worker's part: its links, by index their `places` in the new plan, of which some are `added`.
fn part(
    (new, shards): (&Plan, &Shards),
    layout: &mut Layout,
    (worker, places): (u32, Vec<u32>),
    added: &[u32],
    leaving: &Leaving<'_>,
) -> Part {
    let several = layout.workers.len() > 1;
    let indices = &mut layout.workers[worker as usize];
    let longer = places.len() > indices.room;
    if longer {
        indices.room = Joining::room_for(places.len());
    }
    let gone = leaving.links.iter().filter(|link| link.worker() == worker);
    let gone: Vec<u32> = gone.map(|link| link.local()).collect();
    // No packet can be under way to them.
    if layout.flat && !several && !leaving.drained {
        indices.free.extend(&gone);
    }
    let own = |&place: &u32| layout.links[place as usize].worker() == worker;
    let own: Vec<u32> = added.iter().copied().filter(own).collect();
    let slots = own.iter().map(|&place| layout.links[place as usize].local()).collect();
    Part {
        joining: Some(Joining::new(links_of(new, &own), slots, places, longer)),
        wheel: longer.then_some(indices.room),
        leaving: gone,
        drained: leaving.drained,
        exact: !shards.flat,
        ..Part::default()
    }
}

/// What each stage of the plan adds and removes in virtual time, laid out at the start like `layout`.
///
/// # Errors
/// If that can't be made while packets flow.
pub fn rewirings(plan: &Plan, layout: &Layout) -> Result<Vec<PlanChange>, CantRewire> {
    if plan.engine.workers > 1 && !plan.stages.is_empty() {
        let why = "with several workers nothing is added and removed in virtual time: write workers = 1";
        return Err(CantRewire(why.into()));
    }
    let (mut now, mut layout) = (plan, layout.clone());
    let mut all = Vec::with_capacity(plan.stages.len());
    for stage in &plan.stages {
        let made = rewire(now, &layout, &stage.plan, stage.drain)
            .map_err(|error| CantRewire(format!("[[at]] {}: {error}", stage.time)))?;
        (now, layout) = (&stage.plan, made.layout.clone());
        all.push(made);
    }
    Ok(all)
}

/// By a link's place in the new plan: the engine's, if it was there before; and the places in the old plan of
/// those that are not there any more.
fn kept(old: &Plan, layout: &Layout, new: &Plan) -> (Vec<Option<LinkRef>>, Vec<u32>) {
    let names: HashMap<&str, u32> = old.links.iter().map(|link| &*link.name).zip(0..).collect();
    let mut stay = HashSet::new();
    let kept = new.links.iter().map(|link| {
        let &place = names.get(&*link.name)?;
        let before = &old.links[place as usize];
        if old.ends_of(before) != new.ends_of(link) {
            return None;
        }
        stay.insert(place);
        Some(layout.links[place as usize])
    });
    let kept = kept.collect();
    (kept, (0..old.links.len() as u32).filter(|place| !stay.contains(place)).collect())
}

/// Checks what must be equal in both plans, and what the new one must not have.
fn check(old: &Plan, new: &Plan, (before, after): (&Shards, &Shards)) -> Result<(), CantRewire> {
    let refused = |why: String| Err(CantRewire(why));
    if let Some(FixedDifference { what, reason }) = fixed_differences(old, new).into_iter().next() {
        return refused(format!("{what}: {reason}"));
    }
    check_ports(old, new)?;
    let several = old.engine.workers > 1;
    if several && (has_fixed_workers(old, before) || has_fixed_workers(new, after)) {
        return refused(
            "with several workers, links keep these where filters or programs send packets to other links, \
             links share a medium, or nodes decide in turn: write workers = 1, or start it again"
                .into(),
        );
    }
    Ok(())
}

/// Whether some links must share a worker with others, or with a node, in real time.
fn has_fixed_workers(plan: &Plan, shards: &Shards) -> bool {
    let beside = !plan.steers.is_empty() || !plan.link_requests.is_empty();
    beside || !plan.media.is_empty() || shards.in_turn.contains(&true)
}

/// The stations of media stay. Both plans have the same by name.
fn check_media(old: &Plan, removed: &[u32]) -> Result<(), CantRewire> {
    let mut stations = old.media.iter().flat_map(|medium| &medium.links);
    let gone = stations.find(|place| removed.contains(place));
    gone.map_or(Ok(()), |&place| {
        let name = &old.links[place as usize].name;
        Err(CantRewire(format!(
            "link \"{name}\" is a station of a shared medium, whose stations are fixed: start it again"
        )))
    })
}

/// Refuses links that events would change: events were planned without them.
fn check_events(new: &Plan, added: &[u32]) -> Result<(), CantRewire> {
    let later = new.events.iter().filter(|event| !is_at_start(event));
    let named = later.flat_map(|event| &*event.links).find(|place| added.contains(place));
    named.map_or(Ok(()), |&place| Err(CantRewire::planned_without("link", &new.links[place as usize].name)))
}

/// Refuses routers that events would have changed, or would change.
fn check_router_events(new: &Plan, added: &[u32]) -> Result<(), CantRewire> {
    let mut later = new.router_events.iter().filter(|event| event.time > Nanos::ZERO);
    later.find(|event| added.contains(&event.router)).map_or(Ok(()), |event| {
        Err(CantRewire::planned_without("router", &new.routers[event.router as usize].name))
    })
}
