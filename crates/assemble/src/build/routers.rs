//! Routers of a plan as the engine's nodes, and the joints between their ports.

use super::router_changes::{add_route, change_route};
use super::shards::Shards;
use crate::BuildError;
use longwire_block::Node;
use longwire_engine::{InnerPorts, NodeEvent, NodeRef, WorkerSetup};
use longwire_router::{ControlPort, Forwarders, InterfaceAddress, Meter, NeighbourLimits, RouterConfig};
use longwire_scenario::{Plan, Router};
use longwire_units::Nanos;
use std::any::Any;
use std::net::IpAddr;
use std::sync::Arc;

/// Builds the router with that index, with its initial configuration.
pub(super) fn router(plan: &Plan, index: u32) -> Result<longwire_router::Router, BuildError> {
    let written = &plan.routers[index as usize];
    let broken = |why: String| BuildError::Router { name: written.name.to_string(), why };
    let stations = known_neighbours(plan, written);
    let mut limits = NeighbourLimits::default();
    limits.neighbours = limits.neighbours.max(stations.len() * 4);
    let config = RouterConfig {
        ports: written.ports.iter().map(port).collect(),
        neighbours: limits,
        police: written.police,
        admission: written.admission.clone(),
        sharing: written.sharing.clone(),
        control: written.ports.iter().filter_map(control).collect(),
        seed: plan.seed ^ u64::from(index) << 32,
        ..RouterConfig::default()
    };
    let mut router = longwire_router::Router::new(config).map_err(|error| broken(error.to_string()))?;
    for route in &written.routes {
        add_route(&mut router, route).map_err(|error| broken(error.to_string()))?;
    }
    let own = plan.forwarders.iter().filter(|planned| planned.router == index);
    for planned in own {
        let prepared = planned.request.prepare(&written.admission.prices, plan.seed);
        let forwarder = prepared.map_err(|error| broken(error.to_string()))?;
        router.install(forwarder).map_err(|error| broken(error.to_string()))?;
    }
    for (port, address, mac) in stations {
        // A neighbour without room is resolved when needed.
        router.set_neighbour(port, address, mac);
    }
    Ok(router)
}

/// Makes routers with shared processors measure packet costs, which a run on the machine's clock needs before
/// it starts.
///
/// # Errors
/// A router's processors can't be threads: rings are too long, or no thread is available.
pub fn measure_processors(
    plan: &Plan,
    built: &mut super::BuiltEngine,
    meter: Meter,
) -> Result<(), BuildError> {
    for (index, written) in plan.routers.iter().enumerate() {
        if let Some(router) = built.router_mut(index) {
            let broken = |why: String| BuildError::Router { name: written.name.to_string(), why };
            router.measure_processors(meter).map_err(|error| broken(error.to_string()))?;
        }
    }
    Ok(())
}

impl super::BuiltEngine {
    /// The programs currently installed on each router, by its place in the plan.
    pub fn programs(&self) -> Vec<Option<Arc<Forwarders>>> {
        let table = |&NodeRef { worker, place }: &NodeRef| {
            let node: &dyn Node = &**self.setup.workers[worker as usize].nodes.get(place as usize)?;
            let router: &longwire_router::Router = (node as &dyn Any).downcast_ref()?;
            Some(router.forwarders())
        };
        self.routers.iter().map(table).collect()
    }
}

/// Gives the workers the changes of routers.
pub(super) fn give_events(plan: &Plan, refs: &[NodeRef], workers: &mut [WorkerSetup]) {
    for event in &plan.router_events {
        let NodeRef { worker, place } = refs[event.router as usize];
        let (changes, weight) = (event.changes.clone(), event.weight.clone());
        let act = move |node: &mut dyn Node, _: Nanos| {
            let node: &mut dyn Any = node;
            let router = node.downcast_mut::<longwire_router::Router>().ok_or("it is not a router")?;
            // A refused part does not prevent the others.
            let mut refused: Vec<String> =
                changes.iter().filter_map(|change| change_route(router, change).err()).collect();
            if let Some((flow, weight)) = &weight {
                refused.extend(router.set_flow_weight(flow, *weight).err().map(|error| error.to_string()));
            }
            match refused.len() {
                0 => Ok(()),
                all if all == changes.len() + usize::from(weight.is_some()) => Err(refused.join("; ")),
                _ => Err(format!("{} (all else of it was)", refused.join("; "))),
            }
        };
        workers[worker as usize].agenda.nodes.push(NodeEvent {
            time: event.time,
            node: place as usize,
            name: format!("router \"{}\"", plan.routers[event.router as usize].name).into(),
            act: Arc::new(act),
        });
    }
}

/// Ports that lead to other nodes, and ports whose nodes decide in turn.
pub(super) fn inner_ports(plan: &Plan, shards: &Shards) -> InnerPorts {
    let mut inner_ports = InnerPorts::default();
    for (place, port) in plan.ports.iter().enumerate() {
        if let Some(far) = port.attachment.far() {
            inner_ports.join(place as u16, far);
        }
        if shards.in_turn[port.segment as usize] {
            inner_ports.take_turns(place as u16, port.router.is_some());
        }
    }
    inner_ports
}

/// The hardware addresses of routers behind ports of a bridge.
pub(super) fn near(plan: &Plan, ports: &[u16]) -> Vec<(u16, [u8; 6])> {
    let router = |&place: &u16| {
        let far = plan.ports[usize::from(place)].attachment.far()?;
        let router = &plan.routers[plan.ports[usize::from(far)].router? as usize];
        let port = router.ports.iter().find(|port| port.place == far)?;
        Some((place, port.mac.0))
    };
    ports.iter().filter_map(router).collect()
}

fn port(port: &longwire_scenario::RouterPort) -> longwire_router::RouterPort {
    let (mut v4, mut v6) = (Vec::new(), Vec::new());
    for net in &port.addresses {
        match net.address {
            IpAddr::V4(address) => v4.push(InterfaceAddress { address: address.into(), len: net.prefix }),
            IpAddr::V6(address) => v6.push(InterfaceAddress { address: address.into(), len: net.prefix }),
        }
    }
    longwire_router::RouterPort { place: port.place, mac: port.mac.0, mtu: port.mtu, v4, v6 }
}

fn control(port: &longwire_scenario::RouterPort) -> Option<ControlPort> {
    Some(ControlPort { port: port.place, control: port.control? })
}

/// Neighbours that a router need not resolve, by place of its port: those in the file, the plan's stations at
/// its ports, and the ends of traffic sources there, which never answer.
pub fn known_neighbours(plan: &Plan, router: &Router) -> Vec<(u16, IpAddr, [u8; 6])> {
    let mut known: Vec<(u16, IpAddr, [u8; 6])> = Vec::new();
    for port in &router.ports {
        match plan.ports[usize::from(port.place)].attachment.far() {
            Some(far) if plan.ports[usize::from(far)].router.is_some() => {
                known.extend(of_routers(plan, far).map(|(address, mac)| (port.place, address, mac)));
            }
            Some(far) => {
                let segment = &plan.segments[plan.ports[usize::from(far)].segment as usize];
                for &other in segment.ports.iter().filter(|other| **other != far) {
                    let there = match plan.ports[usize::from(other)].attachment.far() {
                        Some(far) => of_routers(plan, far).collect(),
                        None => of_port(plan, other),
                    };
                    known.extend(there.into_iter().map(|(address, mac)| (port.place, address, mac)));
                }
            }
            None => {
                let there = of_port(plan, port.place).into_iter();
                known.extend(there.map(|(address, mac)| (port.place, address, mac)));
            }
        }
    }
    // Entries from the file come last and win.
    known.extend(router.neighbours.iter().map(|one| (one.port, one.address, one.mac.0)));
    known
}

/// The addresses of the router's port with this place.
fn of_routers(plan: &Plan, place: u16) -> impl Iterator<Item = (IpAddr, [u8; 6])> {
    let router = plan.ports[usize::from(place)].router.map(|router| &plan.routers[router as usize]);
    let port = router.and_then(|router| router.ports.iter().find(|port| port.place == place));
    port.into_iter().flat_map(|port| port.addresses.iter().map(|net| (net.address, port.mac.0)))
}

/// The known individual addresses behind a port of the plan.
fn of_port(plan: &Plan, place: u16) -> Vec<(IpAddr, [u8; 6])> {
    let port = &plan.ports[usize::from(place)];
    let mut addresses = Vec::new();
    if let Some(host) = plan.host_at(port) {
        addresses.extend(host.addresses.iter().map(|net| net.address));
    }
    for source in &plan.sources {
        addresses.extend((source.in_port == place).then_some(source.source));
        addresses.extend((source.out_port == place).then_some(source.destination));
    }
    addresses.into_iter().map(|address| (address, port.mac.0)).collect()
}
