//! Ports that join a running engine and leave it: those of hosts, and those that the scenario declares.

use super::layout::{CantRewire, Layout};
use longwire_engine::{GONE_PORT, InnerPort, PortLocation, PortSetup};
use longwire_scenario::{Plan, Port};

/// A port that is wanted, and where it goes.
pub(super) struct Wanted {
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
    pub wanted: Vec<Wanted>,
}

/// Places of ports that `plan` has, and `other` has not.
fn ports_not_in(plan: &Plan, other: &Plan) -> Vec<u16> {
    let is_there = |plan: &Plan, at: usize| plan.ports.get(at).is_some_and(|port| !port.is_vacant());
    let places = (0..plan.ports.len()).filter(|&at| is_there(plan, at) && !is_there(other, at));
    places.map(|at| at as u16).collect()
}

fn ports_at<'p>(plan: &'p Plan, places: &'p [u16]) -> impl Iterator<Item = &'p Port> {
    places.iter().map(|&place| &plan.ports[usize::from(place)])
}

/// Checks whether ports can change as they do.
pub(super) fn check_ports(old: &Plan, new: &Plan) -> Result<(), CantRewire> {
    let refused = |why: String| Err(CantRewire(why));
    let (joining, leaving) = (ports_not_in(new, old), ports_not_in(old, new));
    let mut changing = ports_at(new, &joining).chain(ports_at(old, &leaving));
    if let Some(port) = changing.find(|port| port.router.is_some() || !port.attachment.is_outer()) {
        return refused(format!(
            "\"{}\" is a router's port, which is fixed when the instance starts: start it again",
            port.name
        ));
    }
    let mut changing = ports_at(new, &joining).chain(ports_at(old, &leaving));
    if let Some(port) = changing.find(|port| port.queues > 1) {
        return refused(format!(
            "port \"{}\" has several queues, at several workers: write queues = 1, or start it again",
            port.name
        ));
    }
    Ok(())
}

/// The ports that join and leave. The nodes of the new plan are known.
pub(super) fn changed_ports(old: &Plan, new: &Plan, layout: &mut Layout) -> ChangedPorts {
    let (joining, leaving) = (ports_not_in(new, old), ports_not_in(old, new));
    let mut changed = ChangedPorts { joining, leaving, closed: Vec::new(), wanted: Vec::new() };
    for &place in &changed.joining {
        let node = layout.nodes[new.ports[usize::from(place)].segment as usize];
        let slot = layout.slots[node.worker as usize].take();
        let home = PortLocation::single(node.worker, slot);
        let at = usize::from(place);
        layout.port_locations.resize(layout.port_locations.len().max(at + 1), home);
        layout.port_locations[at] = home;
        changed.wanted.push(Wanted { worker: node.worker, place, slot, node: node.place });
    }
    for &place in &changed.leaving {
        let PortLocation { worker, slot, .. } = layout.port_locations[usize::from(place)];
        let port = Box::new(InnerPort::removed());
        // It receives nothing that a node would decide about.
        changed.closed.push((worker, slot, PortSetup { place: GONE_PORT, node: 0, port }));
        let slots = &mut layout.slots[worker as usize];
        let gone = *slots.gone.get_or_insert(slot);
        if gone != slot {
            // Another port may have this index from the next time on.
            slots.free.push(slot);
        }
        layout.port_locations[usize::from(place)].slot = gone;
    }
    changed
}
