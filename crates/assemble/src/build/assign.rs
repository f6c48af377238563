//! Assignment of ports and their nodes to workers.

use super::shards::Shards;
use super::{BuildError, routers};
use longwire_block::{Node, Port};
use longwire_engine::{NodeRef, PortLocation, PortSetup, WorkerSetup};
use longwire_router::Bridge;
use longwire_scenario::{Plan, Segment};
use std::cmp::Reverse;

/// Assigns each segment, with its node and ports, to a worker, or to one for each queue of its ports. Returns
/// the homes of ports and the references to routers.
pub(super) fn assign_ports(
    plan: &Plan,
    ports: Vec<Box<dyn Port>>,
    shards: &Shards,
    workers: &mut [WorkerSetup],
) -> Result<Assigned, BuildError> {
    let mut queues = by_place(plan, ports)?;
    let mut routers = Vec::with_capacity(plan.routers.len());
    // By segment and queue: the node's index at its worker.
    let mut nodes: Vec<Vec<usize>> = Vec::with_capacity(plan.segments.len());
    for (index, segment) in plan.segments.iter().enumerate() {
        let first = shards.segment_workers[index] as usize;
        let count = segment.ports.first().map_or(1, |&place| queues[usize::from(place)].len());
        let mut places = Vec::with_capacity(count);
        for (number, worker) in workers.iter_mut().enumerate().skip(first).take(count) {
            let place = worker.nodes.len();
            places.push(place);
            let node: Box<dyn Node> = if let Some(router) = segment.router {
                // Routers are in the plan's order.
                routers.push(NodeRef { worker: number as u32, place: place as u32 });
                Box::new(routers::router(plan, router)?)
            } else {
                Box::new(bridge(plan, index as u32, segment))
            };
            worker.nodes.push(node);
        }
        nodes.push(places);
    }
    // Ports with most queues first, so that each has the same slot at all of its workers.
    let mut order: Vec<usize> = (0..queues.len()).collect();
    order.sort_by_key(|&place| Reverse(queues[place].len()));
    let mut port_locations = vec![PortLocation::single(0, 0); queues.len()];
    for place in order {
        let segment = plan.ports[place].segment as usize;
        let first = shards.segment_workers[segment];
        let slot = workers[first as usize].ports.len() as u32;
        let queues = std::mem::take(&mut queues[place]);
        port_locations[place] = PortLocation { worker: first, slot, queues: queues.len() as u32 };
        for ((port, &node), worker) in queues.into_iter().zip(&nodes[segment]).zip(first..) {
            let ports = &mut workers[worker as usize].ports;
            debug_assert_eq!(ports.len() as u32, slot, "a port has one slot at all of its workers");
            ports.push(PortSetup { place: place as u16, node, port });
        }
    }
    let first = |places: &Vec<usize>| places.first().map_or(0, |&place| place as u32);
    let nodes = shards.segment_workers.iter().zip(&nodes);
    let nodes = nodes.map(|(&worker, places)| NodeRef { worker, place: first(places) }).collect();
    Ok(Assigned { port_locations, routers, nodes })
}

/// The homes of ports and nodes.
pub(super) struct Assigned {
    pub port_locations: Vec<PortLocation>,
    pub routers: Vec<NodeRef>,
    /// By a segment's index: its node at its worker, or the first of several.
    pub nodes: Vec<NodeRef>,
}

/// The queues of each of the plan's ports.
fn by_place(plan: &Plan, ports: Vec<Box<dyn Port>>) -> Result<Vec<Vec<Box<dyn Port>>>, BuildError> {
    let (got, wanted) = (ports.len(), plan.queue_places().count());
    let mut queues: Vec<Vec<Box<dyn Port>>> = plan.ports.iter().map(|_| Vec::new()).collect();
    if got == plan.ports.len() {
        queues.iter_mut().zip(ports).for_each(|(queues, port)| queues.push(port));
    } else if got == wanted {
        plan.queue_places().zip(ports).for_each(|(place, port)| queues[usize::from(place)].push(port));
    } else {
        return Err(BuildError::Ports { got, wanted });
    }
    Ok(queues)
}

/// The bridge of a segment.
pub(super) fn bridge(plan: &Plan, index: u32, segment: &Segment) -> Bridge {
    let mut bridge = Bridge::new(segment.ports.clone(), segment.ageing, segment.table as usize);
    let declared = |bridge: &u32| plan.bridges[*bridge as usize].declared;
    if segment.wire || segment.ports.len() == 2 && !segment.bridges.iter().any(declared) {
        bridge = bridge.as_cable();
    }
    if segment.wire || plan.segment_queues(index) > 1 {
        return bridge.as_relay();
    }
    // The far end of a traffic source sends nothing to learn from; a host is learnt from its frames, but only
    // after its first frame has been flooded.
    let hosts =
        segment.ports.iter().filter(|&&place| plan.ports[usize::from(place)].attachment.host().is_some());
    hosts.for_each(|&place| bridge.expect(plan.ports[usize::from(place)].mac.0, place));
    for (place, mac) in routers::near(plan, &segment.ports) {
        bridge.expect(mac, place);
    }
    let is_here = |place: u16| segment.ports.binary_search(&place).is_ok();
    let mut sources = plan.sources.iter().filter(|source| is_here(source.out_port)).peekable();
    let sends = sources.peek().is_some();
    for source in sources {
        bridge.expect(plan.ports[source.out_port as usize].mac.0, source.out_port);
    }
    // An event can direct a source to any of them.
    for &place in segment.ports.iter().filter(|_| sends) {
        let port = &plan.ports[usize::from(place)];
        if port.attachment.far().is_none() {
            bridge.expect(port.mac.0, place);
        }
    }
    bridge
}
