//! The control planes of a run's routers: namespaces of the lab with an interface for each port, mirrored
//! into the routers' tables.

use crate::carriers::{CarrierCounts, CarrierWatch, Wire, Wires};
use anyhow::Context;
use longwire_block::path::LinkRef;
use longwire_engine::{NodeRef, Remote};
use longwire_lab::{Cidr, HostSpec, KernelTraffic, Lab, LabError, Wiring};
use longwire_mirror::{
    Carriers, Change, Destination, HopSpec, Mirror, MirrorStats, Pair, PortSpec, RouteSpec, Target,
    configure, routes_of,
};
use longwire_port::driver::tap::{Tap, TapOptions};
use longwire_report::Row;
use longwire_router::{Member, RouteHops, Router as Node};
use longwire_scenario::{Network, Plan, Router, RouterRoute, gateway_of};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The lab's specification of a router's namespace.
///
/// # Errors
/// If an address is invalid.
pub fn host_spec(router: &Router) -> Result<HostSpec, LabError> {
    let addresses = router.ports.iter().flat_map(|port| &port.addresses).map(cidr);
    Ok(HostSpec {
        name: router.name.to_string(),
        addresses: addresses.collect::<Result<_, _>>()?,
        mac: None,
        mtu: 1500,
        gateways: Vec::new(),
        routes: Vec::new(),
        wiring: Wiring::Own,
        kernel_traffic: KernelTraffic::Usual,
    })
}

/// Creates the interface for a router's port, in the router's namespace.
///
/// # Errors
/// If there is no such namespace, or the kernel refuses.
pub fn open_port(lab: &Lab, name: &str, router: &Router, port: u32) -> anyhow::Result<Tap> {
    let port = &router.ports[port as usize];
    let options = TapOptions { mac: Some(port.mac.0), mtu: port.mtu, ..TapOptions::default() };
    let made = lab.host(&router.name)?.run(|| Tap::create(name, &port.name, &options))?;
    made.with_context(|| format!("the control plane of router \"{}\"", router.name))
}

/// The control planes of a run; none if its routers have none.
#[derive(Debug, Default)]
pub struct ControlPlanes {
    planes: Vec<MirroredRouter>,
    /// The thread that follows the state of links.
    carriers: Mutex<Option<CarrierWatch>>,
}

#[derive(Debug)]
struct MirroredRouter {
    name: String,
    /// The mirror while it runs, and its final statistics.
    mirror: Mutex<(Option<Mirror>, MirrorStats)>,
    carriers: Arc<CarrierCounts>,
}

impl ControlPlanes {
    /// Sets addresses and routes in the namespaces of the plan's routers, and begins to mirror them into the
    /// routers at `refs`. From then on interfaces have a carrier while the links of their ports, at `links`,
    /// are up.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn start(
        plan: &Plan,
        lab: Option<&Lab>,
        remote: &Remote,
        (refs, links): (&[NodeRef], &[LinkRef]),
    ) -> anyhow::Result<Self> {
        let (mut planes, mut all) = (Vec::new(), Vec::new());
        for (router, &node) in plan.routers.iter().zip(refs).filter(|(router, _)| router.control) {
            let host = lab.context("the routers' namespaces are not up")?.host(&router.name)?;
            let (ports, routes) = specs(router)?;
            let indices = host.run(|| configure(&ports, &routes))?;
            let indices =
                indices.with_context(|| format!("the control plane of router \"{}\"", router.name))?;
            let places = router.ports.iter().map(|port| port.place);
            let pairs: Vec<_> =
                indices.into_iter().zip(places).map(|(index, port)| Pair { index, port }).collect();
            let target = RemoteRouter { remote: remote.clone(), node };
            let mirror = Mirror::start(host.namespace(), &pairs, Box::new(target))?;
            let mirror = Mutex::new((Some(mirror), MirrorStats::default()));
            let counts = Arc::<CarrierCounts>::default();
            let wires = pairs.iter().filter_map(|pair| Wire::of(plan, pair.port, pair.index)).collect();
            let carriers = Carriers::of(host.namespace())?;
            all.push(Wires { carriers, wires, counts: Arc::clone(&counts) });
            planes.push(MirroredRouter { name: router.name.to_string(), mirror, carriers: counts });
        }
        let carriers = Mutex::new(CarrierWatch::start(all, links, remote.clone()));
        Ok(Self { planes, carriers })
    }

    /// Stops mirroring. Statistics remain available.
    pub fn end(&self) {
        *self.carriers.lock().unwrap_or_else(PoisonError::into_inner) = None;
        for plane in &self.planes {
            let mut mirror = plane.mirror.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(ended) = mirror.0.take() {
                mirror.1 = ended.stats();
            }
        }
    }

    /// A row for each: the router's routes, and their changes.
    pub fn rows(&self) -> Vec<Row> {
        let row = |plane: &MirroredRouter| {
            let mirror = plane.mirror.lock().unwrap_or_else(PoisonError::into_inner);
            let stats = mirror.0.as_ref().map_or(mirror.1, Mirror::stats);
            let row = Row::new(&*plane.name, "routes").measured(stats.routes);
            let row = row.extra("kind", "control-plane");
            let counted = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
            let row = stats.rows().into_iter().fold(row, |row, (name, value)| row.extra(name, value));
            row.extra("carrier-changes", counted(&plane.carriers.changes))
                .extra("carrier-refused", counted(&plane.carriers.refused))
        };
        self.planes.iter().map(row).collect()
    }
}

/// A router of a running engine.
struct RemoteRouter {
    remote: Remote,
    node: NodeRef,
}

impl Target for RemoteRouter {
    fn routes(&mut self) -> Option<Vec<(Destination, RouteHops)>> {
        self.remote.at_node(self.node, |router: &mut Node, _| routes_of(router)).ok()
    }

    fn apply(&mut self, changes: Vec<Change>) -> Option<Vec<bool>> {
        let act = move |router: &mut Node, now| {
            changes.into_iter().map(|change| change.carry_out(router, now)).collect()
        };
        self.remote.at_node(self.node, act).ok()
    }
}

fn specs(router: &Router) -> Result<(Vec<PortSpec>, Vec<RouteSpec>), LabError> {
    let port = |port: &longwire_scenario::RouterPort| {
        let addresses = port.addresses.iter().map(cidr).collect::<Result<_, _>>()?;
        Ok(PortSpec { name: port.name.to_string(), addresses })
    };
    let ports = router.ports.iter().map(port).collect::<Result<_, LabError>>()?;
    let routes = router.routes.iter().map(|route| route_spec(router, route)).collect::<Result<_, _>>()?;
    Ok((ports, routes))
}

fn route_spec(router: &Router, route: &RouterRoute) -> Result<RouteSpec, LabError> {
    let spec = |Member { hop, weight }: Member| {
        let port = router.ports.iter().find(|port| Some(port.place) == hop.port())?;
        Some(HopSpec { via: gateway_of(hop), port: port.name.to_string(), weight })
    };
    let hops = match &route.way {
        RouteHops::One(hop) => spec(Member { hop: *hop, weight: 1 }).into_iter().collect(),
        RouteHops::Several(group) => group.members().iter().copied().filter_map(spec).collect(),
    };
    Ok(RouteSpec { to: cidr(&route.to)?, hops })
}

fn cidr(network: &Network) -> Result<Cidr, LabError> {
    Cidr::new(network.address, network.prefix)
}
