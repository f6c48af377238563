//! Bridges and routers that join a running engine and leave it, and bridges that are joined by links and
//! parted: which node each segment of the next plan has, and what these are told.

use super::layout::{CantRewire, Layout};
use super::shards::Shards;
use super::{assign, routers};
use longwire_block::Node;
use longwire_engine::{AtNode, InTurn, NodeRef, RetiredNode};
use longwire_router::{Bridge, Router};
use longwire_scenario::{Plan, Segment};
use std::any::Any;
use std::collections::HashMap;
use std::sync::atomic::Ordering;

/// What changed segments mean for workers.
#[derive(Default)]
pub(super) struct ChangedSegments {
    /// Nodes that join.
    pub fresh: Vec<(NodeRef, Box<dyn Node>)>,
    /// Routers among them, by place in the new plan.
    pub new_routers: Vec<u32>,
    /// Routers that leave, and what takes their places.
    pub retiring: Vec<(NodeRef, Box<RetiredNode>)>,
    /// Ports that belong to another node of their worker: the index of each, and the node.
    pub moves: Vec<(u32, NodeRef)>,
    /// The nodes that decide in turn from then on, with one worker.
    pub in_turn: Option<InTurn>,
    pub acts: Vec<(NodeRef, AtNode)>,
}

/// By a new segment's index: the old segment whose node it takes over. A router takes that of its name,
/// bridges the one with which they share most ports, or a bridge.
fn successors(old: &Plan, new: &Plan) -> Vec<Option<usize>> {
    let mut taken = vec![false; old.segments.len()];
    let mut all = Vec::with_capacity(new.segments.len());
    for segment in &new.segments {
        let shared = |other: &Segment| {
            let ports = other.ports.iter().filter(|port| segment.ports.binary_search(port).is_ok()).count();
            let bridges = other.bridges.iter().filter(|&&bridge| {
                let name = &old.bridges[bridge as usize].name;
                segment.bridges.iter().any(|&bridge| new.bridges[bridge as usize].name == *name)
            });
            (ports, bridges.count())
        };
        let is_it = |other: &Segment| match segment.router {
            Some(router) => {
                let known = other.router.map(|known| &old.routers[known as usize].name);
                known == Some(&new.routers[router as usize].name)
            }
            None => other.router.is_none() && shared(other) != (0, 0),
        };
        let found = old.segments.iter().enumerate().filter(|(at, other)| !taken[*at] && is_it(other));
        // Of equal ones the first.
        let found = found.rev().max_by_key(|(_, other)| shared(other)).map(|(at, _)| at);
        if let Some(at) = found {
            taken[at] = true;
        }
        all.push(found);
    }
    all
}

/// The nodes of the new plan's segments, put down in the `layout`, and what changes for ports that stay.
///
/// # Errors
/// If ports would move to another worker, or a router can't be made.
pub(super) fn changed_segments(
    old: &Plan,
    new: &Plan,
    shards: &Shards,
    layout: &mut Layout,
) -> Result<ChangedSegments, CantRewire> {
    let mut changed = ChangedSegments::default();
    let there = std::mem::take(&mut layout.nodes);
    let several = layout.workers.len() > 1;
    let kept = successors(old, new);
    layout.free_retired_nodes();
    let mut orphans: Vec<NodeRef> = Vec::new();
    for (at, &node) in there.iter().enumerate().filter(|(at, _)| !kept.contains(&Some(*at))) {
        if old.segments[at].router.is_none() {
            orphans.push(node);
            continue;
        }
        let (stand_in, gone) = RetiredNode::new();
        changed.retiring.push((node, stand_in));
        layout.retired.push((node, gone));
    }
    if !several {
        layout.free_nodes.append(&mut orphans);
    }
    for (index, (segment, kept)) in new.segments.iter().zip(&kept).enumerate() {
        let Some(kept) = *kept else {
            let stays =
                |place: &&u16| old.ports.get(usize::from(**place)).is_some_and(|port| !port.is_vacant());
            let first = segment.ports.iter().find(stays);
            let own = first.map(|&place| layout.port_locations[usize::from(place)].worker);
            let at = layout.take_node(own.unwrap_or(shards.segment_workers[index]));
            changed.fresh.push((at, node(new, index, segment)?));
            changed.new_routers.extend(segment.router);
            layout.nodes.push(at);
            continue;
        };
        layout.nodes.push(there[kept]);
        let act = match (old.segments[kept].router, segment.router) {
            (Some(was), Some(is)) => router_act((old, was), (new, is)),
            _ => bridge_act((old, kept), (new, index)),
        };
        changed.acts.extend(act.map(|act| (there[kept], act)));
    }
    // With several workers ports still use these when the new nodes are there already.
    layout.free_nodes.extend(orphans);
    changed.moves = moves((old, &there), new, layout)?;
    if !several {
        let decide = shards.in_turn.iter().zip(&layout.nodes).filter(|(in_turn, _)| **in_turn);
        let places = decide.map(|(_, node)| node.place as usize);
        changed.in_turn = Some(InTurn::new(layout.node_counts[0] as usize, places));
    }
    Ok(changed)
}

/// The ports that stay and belong to another node.
///
/// # Errors
/// If one is at another worker than that node, or at several.
fn moves(
    (old, there): (&Plan, &[NodeRef]),
    new: &Plan,
    layout: &Layout,
) -> Result<Vec<(u32, NodeRef)>, CantRewire> {
    let mut moves = Vec::new();
    for (place, port) in new.ports.iter().enumerate().filter(|(_, port)| !port.is_vacant()) {
        let Some(was) = old.ports.get(place).filter(|port| !port.is_vacant()) else { continue };
        let (from, to) = (there[was.segment as usize], layout.nodes[port.segment as usize]);
        if from == to {
            continue;
        }
        let home = layout.port_locations[place];
        if home.worker != to.worker || home.queues > 1 {
            return Err(CantRewire(format!(
                "\"{}\" would be at the same bridge or router as ports of another worker: write workers = 1, \
                 or start it again",
                port.name
            )));
        }
        moves.push((home.slot, to));
    }
    Ok(moves)
}

/// The node of a segment that joins.
fn node(plan: &Plan, index: usize, segment: &Segment) -> Result<Box<dyn Node>, CantRewire> {
    let Some(router) = segment.router else {
        return Ok(Box::new(assign::bridge(plan, index as u32, segment)));
    };
    let made = routers::router(plan, router).map_err(|error| CantRewire(error.to_string()))?;
    Ok(Box::new(made))
}

impl Layout {
    /// Makes places of routers that have given up all that they kept usable again.
    fn free_retired_nodes(&mut self) {
        let left = self.retired.extract_if(.., |(_, gone)| gone.load(Ordering::Acquire));
        self.free_nodes.extend(left.map(|(node, _)| node));
    }

    /// A place at a worker for a node that joins: of those to be used again first.
    fn take_node(&mut self, worker: u32) -> NodeRef {
        if let Some(at) = self.free_nodes.iter().rposition(|node| node.worker == worker) {
            return self.free_nodes.remove(at);
        }
        let count = &mut self.node_counts[worker as usize];
        *count += 1;
        NodeRef { worker, place: *count - 1 }
    }
}

/// What a router is told that goes on, if other stations are near it.
fn router_act((old, before): (&Plan, u32), (new, after): (&Plan, u32)) -> Option<AtNode> {
    let stations = |plan: &Plan, router: u32| -> HashMap<_, _> {
        let all = routers::known_neighbours(plan, &plan.routers[router as usize]).into_iter();
        all.map(|(port, address, mac)| ((port, address), mac)).collect()
    };
    let (was, is) = (stations(old, before), stations(new, after));
    let mut gone: Vec<_> = was.keys().filter(|at| !is.contains_key(*at)).copied().collect();
    let mut fresh: Vec<_> = is.into_iter().filter(|(at, mac)| was.get(at) != Some(mac)).collect();
    if gone.is_empty() && fresh.is_empty() {
        return None;
    }
    gone.sort_unstable();
    fresh.sort_unstable();
    Some(Box::new(move |node, _| {
        let node: &mut dyn Any = node;
        let Some(router) = node.downcast_mut::<Router>() else { return };
        // One that packets wait for, or for which there is no room, is resolved.
        gone.iter().for_each(|(port, address)| _ = router.forget_neighbour(*port, *address));
        fresh.iter().for_each(|((port, address), mac)| _ = router.set_neighbour(*port, *address, *mac));
    }))
}

/// What a bridge is told that goes on, if anything is new for it.
fn bridge_act((old, before): (&Plan, usize), (new, after): (&Plan, usize)) -> Option<AtNode> {
    let (was, is) = (&old.segments[before], &new.segments[after]);
    // An event or a request can direct a source to any port; its far end sends nothing to learn from.
    let is_new = |name: &str| !old.sources.iter().any(|source| *source.name == *name);
    let mut ends = new.sources.iter().filter(|source| is.ports.binary_search(&source.out_port).is_ok());
    let has_new_source = ends.any(|source| is_new(&source.name));
    let kind = |plan: &Plan, segment: &Segment| {
        let declared = segment.bridges.iter().any(|&bridge| plan.bridges[bridge as usize].declared);
        (segment.ageing, segment.table, segment.wire, declared)
    };
    let same_kind = kind(old, was) == kind(new, is);
    if was.ports == is.ports && same_kind && !has_new_source {
        return None;
    }
    let mut fresh = assign::bridge(new, after as u32, is);
    let stays = |place: &u16| is.ports.binary_search(place).is_ok();
    // What it knows of stations behind ports that are no longer its own must not be used.
    let forgets = !same_kind || !was.ports.iter().all(stays);
    let joined = is.ports.iter().filter(|place| was.ports.binary_search(place).is_err());
    let joined = joined.map(|&place| (&new.ports[usize::from(place)], place));
    let hosts = joined.filter(|(port, _)| port.attachment.host().is_some());
    let mut known: Vec<_> = hosts.map(|(port, place)| (place, port.mac.0)).collect();
    known.extend(routers::near(new, &is.ports));
    let of_sources = is.ports.iter().filter(|_| has_new_source);
    let of_sources = of_sources.map(|&place| (&new.ports[usize::from(place)], place));
    let of_sources = of_sources.filter(|(port, _)| port.attachment.far().is_none());
    known.extend(of_sources.map(|(port, place)| (place, port.mac.0)));
    Some(Box::new(move |node, _| {
        let node: &mut dyn Any = node;
        let Some(bridge) = node.downcast_mut::<Bridge>() else { return };
        if forgets {
            std::mem::swap(bridge, &mut fresh);
        } else {
            bridge.exchange_ports(&mut fresh);
            known.iter().for_each(|(port, mac)| bridge.expect(*mac, *port));
        }
    }))
}
