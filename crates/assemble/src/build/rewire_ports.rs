//! Ports that join a running engine and leave it: those of hosts and routers, and those that the scenario
//! declares. Likewise traffic sources.

use super::layout::{CantRewire, Layout};
use longwire_engine::{
    GONE_PORT, InnerPort, Part, PartSource, PortLocation, PortSetup, SourceRef, SourceSetup,
};
use longwire_scenario::{Plan, Port};
use std::collections::{HashMap, HashSet};

/// Where a new port goes.
pub(super) struct PortPlacement {
    pub worker: u32,
    pub place: u16,
    pub slot: u32,
    pub node: u32,
}

/// What ports that come and go mean for workers.
pub(super) struct ChangedPorts {
    /// Places of those that join.
    pub joining: Vec<u16>,
    /// Places of those that leave.
    pub leaving: Vec<u16>,
    /// In place of those that leave: the worker, and the index there.
    pub closed: Vec<(u32, u32, PortSetup)>,
    /// Of those that join, in the same order.
    pub placements: Vec<PortPlacement>,
}

/// Places of ports that `plan` has, and `other` has not, or attached to something else.
fn ports_not_in(plan: &Plan, other: &Plan) -> Vec<u16> {
    let is_in_both = |at: usize, port: &Port| {
        other.ports.get(at).is_some_and(|known| is_same((plan, port), (other, known)))
    };
    let there = plan.ports.iter().enumerate().filter(|(_, port)| !port.is_vacant());
    there.filter(|(at, port)| !is_in_both(*at, port)).map(|(at, _)| at as u16).collect()
}

/// Whether two ports of one name are the same port. Settings that can't change have been compared.
fn is_same((plan, port): (&Plan, &Port), (other, known): (&Plan, &Port)) -> bool {
    let control = |plan: &Plan, port: &Port| {
        port.attachment.control().map(|end| plan.routers[end.router as usize].name.clone())
    };
    let kind = |port: &Port| {
        let Port { attachment, .. } = port;
        (attachment.host().is_some(), attachment.driven().is_some(), attachment.far().is_some())
    };
    !known.is_vacant() && kind(port) == kind(known) && control(plan, port) == control(other, known)
}

fn ports_at<'p>(plan: &'p Plan, places: &'p [u16]) -> impl Iterator<Item = &'p Port> {
    places.iter().map(|&place| &plan.ports[usize::from(place)])
}

/// Checks whether ports can change as they do.
pub(super) fn check_ports(old: &Plan, new: &Plan) -> Result<(), CantRewire> {
    let refused = |why: String| Err(CantRewire(why));
    let (joining, leaving) = (ports_not_in(new, old), ports_not_in(old, new));
    let mut changing = ports_at(new, &joining).chain(ports_at(old, &leaving));
    if let Some(port) = changing.find(|port| port.queues > 1) {
        return refused(format!(
            "port \"{}\" has several queues, at several workers: write queues = 1, or start it again",
            port.name
        ));
    }
    let stays = |port: &&Port| {
        let router = port.router.map(|router| &new.routers[router as usize].name);
        router.is_some_and(|name| old.routers.iter().any(|router| router.name == *name))
    };
    if let Some(port) = ports_at(new, &joining).find(stays) {
        return refused(format!(
            "\"{}\" is a port of a router that stays, and would be attached to something else: remove the \
             router with it, and then add both",
            port.name
        ));
    }
    Ok(())
}

/// The ports that join and leave. The nodes of the new plan are known.
pub(super) fn changed_ports(old: &Plan, new: &Plan, layout: &mut Layout) -> ChangedPorts {
    let (joining, leaving) = (ports_not_in(new, old), ports_not_in(old, new));
    let mut changed = ChangedPorts { joining, leaving, closed: Vec::new(), placements: Vec::new() };
    let mut free: Vec<(u32, u32)> = Vec::new();
    for &place in &changed.leaving {
        let PortLocation { worker, slot, .. } = layout.port_locations[usize::from(place)];
        let port = Box::new(InnerPort::removed());
        // It receives nothing that a node would decide about.
        changed.closed.push((worker, slot, PortSetup { place: GONE_PORT, node: 0, port }));
        let gone = *layout.slots[worker as usize].gone.get_or_insert(slot);
        if gone != slot {
            free.push((worker, slot));
        }
        layout.port_locations[usize::from(place)].slot = gone;
    }
    for &place in &changed.joining {
        let node = layout.nodes[new.ports[usize::from(place)].segment as usize];
        let slot = layout.slots[node.worker as usize].take();
        let home = PortLocation::single(node.worker, slot);
        let at = usize::from(place);
        layout.port_locations.resize(layout.port_locations.len().max(at + 1), home);
        layout.port_locations[at] = home;
        changed.placements.push(PortPlacement { worker: node.worker, place, slot, node: node.place });
    }
    // Other ports may have these indices from the next time on.
    free.into_iter().for_each(|(worker, slot)| layout.slots[worker as usize].free.push(slot));
    changed
}

/// What sources that come and go mean for workers.
pub(super) struct ChangedSources {
    /// Places in the new plan of those that join.
    pub joining: Vec<u32>,
    /// Those that leave.
    pub leaving: Vec<SourceRef>,
}

/// The sources of the new plan, put down in the `layout`, where its ports are already. A source of a port
/// that begins anew does so, too.
///
/// # Errors
/// If an event would change one that joins.
pub(super) fn changed_sources(
    old: &Plan,
    new: &Plan,
    new_ports: &[u16],
    layout: &mut Layout,
) -> Result<ChangedSources, CantRewire> {
    let there = std::mem::take(&mut layout.sources);
    let known: HashMap<&str, SourceRef> =
        old.sources.iter().map(|source| &*source.name).zip(there.iter().copied()).collect();
    let new_ports: HashSet<u16> = new_ports.iter().copied().collect();
    let mut stay = HashSet::new();
    let mut joining = Vec::new();
    for (place, source) in (0..).zip(&new.sources) {
        let before = known.get(&*source.name).filter(|_| !new_ports.contains(&source.in_port));
        if let Some(&before) = before {
            stay.insert(&*source.name);
            layout.sources.push(before);
            continue;
        }
        let worker = layout.port_locations[usize::from(source.in_port)].worker;
        let at = layout.take_source(worker);
        layout.sources.push(at);
        joining.push(place);
    }
    check_events(new, &joining)?;
    let leave = old.sources.iter().zip(&there).filter(|(source, _)| !stay.contains(&*source.name));
    let leaving: Vec<SourceRef> = leave.map(|(_, at)| *at).collect();
    // Others may have these indices from the next time on.
    layout.free_sources.extend(&leaving);
    Ok(ChangedSources { joining, leaving })
}

impl ChangedSources {
    /// Gives each worker its part; `layout` is that of the new plan.
    pub fn give(&self, new: &Plan, layout: &Layout, parts: &mut [Part]) {
        for &place in &self.joining {
            let (source, at) = (&new.sources[place as usize], layout.sources[place as usize]);
            let port = layout.port_locations[usize::from(source.in_port)].slot;
            let setup = SourceSetup { port, name: source.name.clone() };
            parts[at.worker as usize].sources.push((at.place, PartSource { setup, flow: None }));
        }
        for source in &self.leaving {
            parts[source.worker as usize].sources_leaving.push(source.place);
        }
        for part in parts {
            part.sources.sort_by_key(|(index, _)| *index);
        }
    }
}

impl Layout {
    /// An index at a worker for a source that joins: of those to be used again first.
    fn take_source(&mut self, worker: u32) -> SourceRef {
        if let Some(at) = self.free_sources.iter().rposition(|source| source.worker == worker) {
            return self.free_sources.remove(at);
        }
        let count = &mut self.source_counts[worker as usize];
        *count += 1;
        SourceRef { worker, place: *count - 1 }
    }
}

/// Refuses sources that events would change: events were planned without them.
fn check_events(new: &Plan, joining: &[u32]) -> Result<(), CantRewire> {
    let mut named = new.events.iter().flat_map(|event| &*event.sources);
    named.find(|place| joining.contains(place)).map_or(Ok(()), |&place| {
        Err(CantRewire::planned_without("source", &new.sources[place as usize].name))
    })
}
