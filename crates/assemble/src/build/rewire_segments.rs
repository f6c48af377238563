//! Bridges that join a running engine, leave it, are joined by links and parted: which node each segment of
//! the next plan has, and what these are told.

use super::assign;
use super::layout::{CantRewire, Layout};
use super::shards::Shards;
use longwire_block::Node;
use longwire_engine::{AtNode, NodeRef};
use longwire_router::Bridge;
use longwire_scenario::{Plan, Segment};
use std::any::Any;

/// What changed segments mean for the worker.
#[derive(Default)]
pub(super) struct ChangedSegments {
    /// Nodes that join, by the index at the worker.
    pub fresh: Vec<(u32, Box<dyn Node>)>,
    /// Ports that belong to another node: the index of each, and that of its node.
    pub moves: Vec<(u32, u32)>,
    pub acts: Vec<(NodeRef, AtNode)>,
}

/// By a new segment's index: the old segment whose node it takes over. A router's is the router's; bridges
/// take the one with which they share most ports, or a bridge.
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
            Some(router) => other.router == Some(router),
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
/// If bridges change where several workers have them, or one would begin or cease to decide in turn.
pub(super) fn changed_segments(
    old: &Plan,
    new: &Plan,
    (before, after): (&Shards, &Shards),
    layout: &mut Layout,
) -> Result<ChangedSegments, CantRewire> {
    let mut changed = ChangedSegments::default();
    let there = std::mem::take(&mut layout.nodes);
    let kept = successors(old, new);
    let mut orphans: Vec<u32> = Vec::new();
    for (at, node) in there.iter().enumerate().filter(|(at, _)| !kept.contains(&Some(*at))) {
        if before.in_turn[at] {
            return Err(in_turn());
        }
        orphans.push(node.place);
    }
    for (index, (segment, kept)) in new.segments.iter().zip(&kept).enumerate() {
        let fresh = || -> Box<dyn Node> { Box::new(assign::bridge(new, index as u32, segment)) };
        if kept.is_some_and(|at| before.in_turn[at]) != after.in_turn[index] {
            return Err(in_turn());
        }
        let Some(kept) = *kept else {
            let place = orphans.pop().or_else(|| layout.free_nodes.pop()).unwrap_or_else(|| {
                layout.node_count += 1;
                layout.node_count - 1
            });
            changed.fresh.push((place, fresh()));
            layout.nodes.push(NodeRef { worker: 0, place });
            continue;
        };
        layout.nodes.push(there[kept]);
        if segment.router.is_none() {
            changed.acts.extend(bridge_act((old, kept), (new, index), there[kept]));
        }
    }
    layout.free_nodes.extend(orphans);
    for (place, port) in new.ports.iter().enumerate().filter(|(_, port)| !port.is_vacant()) {
        let Some(was) = old.ports.get(place).filter(|port| !port.is_vacant()) else { continue };
        let (from, to) = (there[was.segment as usize], layout.nodes[port.segment as usize]);
        if from.place != to.place {
            changed.moves.push((layout.port_locations[place].slot, to.place));
        }
    }
    let several = layout.workers.len() > 1;
    if several && !(changed.fresh.is_empty() && changed.moves.is_empty() && layout.nodes == there) {
        return Err(CantRewire(
            "bridges come and go, are joined and parted at one worker only: write workers = 1, or start it \
             again"
                .into(),
        ));
    }
    Ok(changed)
}

fn in_turn() -> CantRewire {
    let why =
        "with it bridges or routers would decide about each packet in turn, or cease to: start it again";
    CantRewire(why.into())
}

/// What a bridge is told that goes on, if anything is new for it.
fn bridge_act(
    (old, before): (&Plan, usize),
    (new, after): (&Plan, usize),
    node: NodeRef,
) -> Option<(NodeRef, AtNode)> {
    let (was, is) = (&old.segments[before], &new.segments[after]);
    let kind = |plan: &Plan, segment: &Segment| {
        let declared = segment.bridges.iter().any(|&bridge| plan.bridges[bridge as usize].declared);
        (segment.ageing, segment.table, segment.wire, declared)
    };
    let same_kind = kind(old, was) == kind(new, is);
    if was.ports == is.ports && same_kind {
        return None;
    }
    let mut fresh = assign::bridge(new, after as u32, is);
    let stays = |place: &u16| is.ports.binary_search(place).is_ok();
    // What it knows of stations behind ports that are no longer its own must not be used.
    let forgets = !same_kind || !was.ports.iter().all(stays);
    let joined = is.ports.iter().filter(|place| was.ports.binary_search(place).is_err());
    let joined = joined.map(|&place| (&new.ports[usize::from(place)], place));
    let hosts = joined.filter(|(port, _)| port.attachment.host().is_some());
    let hosts: Vec<_> = hosts.map(|(port, place)| (port.mac.0, place)).collect();
    let act: AtNode = Box::new(move |node, _| {
        let node: &mut dyn Any = node;
        let Some(bridge) = node.downcast_mut::<Bridge>() else { return };
        if forgets {
            std::mem::swap(bridge, &mut fresh);
        } else {
            bridge.exchange_ports(&mut fresh);
            hosts.iter().for_each(|(mac, port)| bridge.expect(*mac, *port));
        }
    });
    Some((node, act))
}
