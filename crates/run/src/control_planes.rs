//! The control planes of a run's routers: namespaces of the lab with an interface for each port, mirrored
//! into the routers' tables.

use crate::carriers::{CarrierCounts, CarrierWatch, Wire, Wires, follow_links};
use crate::threads::lock;
use anyhow::Context;
use longwire_block::path::LinkRef;
use longwire_engine::{NodeRef, Remote};
use longwire_lab::{HostSpec, KernelTraffic, Lab, Wiring};
use longwire_mirror::{
    Carriers, Change, Destination, HopSpec, Mirror, MirrorStats, Pair, PortSpec, RouteSpec, Target,
    configure, routes_of,
};
use longwire_port::driver::tap::{Tap, TapOptions};
use longwire_report::Row;
use longwire_router::{Member, RouteHops, Router as Node};
use longwire_scenario::{Plan, Router, RouterRoute, gateway_of};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// The lab's specification of a router's namespace.
pub fn host_spec(router: &Router) -> HostSpec {
    HostSpec {
        name: router.name.to_string(),
        addresses: router.ports.iter().flat_map(|port| &port.addresses).copied().collect(),
        mac: None,
        mtu: 1500,
        gateways: Vec::new(),
        routes: Vec::new(),
        wiring: Wiring::Own,
        kernel_traffic: KernelTraffic::Usual,
    }
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

/// A control plane whose namespace is configured, and which is not mirrored yet.
#[derive(Debug)]
pub(crate) struct ConfiguredPlane {
    name: String,
    pairs: Vec<Pair>,
    carriers: Carriers,
}

impl ConfiguredPlane {
    /// Configures those of a plan, whose interfaces are open, before the engine starts: its ports would find
    /// them down.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn all_of(plan: &Plan, lab: Option<&Lab>) -> anyhow::Result<Vec<Self>> {
        let configured = |router| Self::of(router, lab.context("the routers' namespaces are not up")?);
        plan.control_planes().map(configured).collect()
    }

    /// Sets addresses and routes in the namespace of a router, whose interfaces are open.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn of(router: &Router, lab: &Lab) -> anyhow::Result<Self> {
        let host = lab.host(&router.name)?;
        let (ports, routes) = specs(router);
        let indices = host.run(|| configure(&ports, &routes))?;
        let indices = indices.with_context(|| format!("the control plane of router \"{}\"", router.name))?;
        let places = router.ports.iter().map(|port| port.place);
        let pairs = indices.into_iter().zip(places).map(|(index, port)| Pair { index, port }).collect();
        Ok(Self { name: router.name.to_string(), pairs, carriers: Carriers::of(host.namespace())? })
    }
}

/// The control planes of a run; none if its routers have none.
#[derive(Debug, Default)]
pub struct ControlPlanes {
    planes: Mutex<Vec<MirroredRouter>>,
    /// The thread that follows the state of links.
    carriers: Mutex<Option<CarrierWatch>>,
}

#[derive(Debug)]
struct MirroredRouter {
    name: String,
    /// The mirror while it runs.
    mirror: Option<Mirror>,
    /// Its statistics at the end.
    ended: MirrorStats,
    carriers: Arc<CarrierCounts>,
}

/// A running engine, with its references to the routers and links of a plan.
#[derive(Clone, Copy)]
pub(crate) struct MirroredEngine<'e> {
    pub(crate) remote: &'e Remote,
    pub(crate) routers: &'e [NodeRef],
    pub(crate) links: &'e [LinkRef],
}

impl ControlPlanes {
    /// Brings the control planes to a plan: ends those of routers that are gone, begins with those that are
    /// `joining`, whose namespaces are in the `lab`, and follows the links that there are now. From then on
    /// interfaces have a carrier while the links of their ports are up.
    ///
    /// # Errors
    /// A namespace can't be listened to.
    pub(crate) fn follow(
        &self,
        plan: &Plan,
        (lab, joining): (Option<&Lab>, Vec<ConfiguredPlane>),
        engine: MirroredEngine<'_>,
    ) -> anyhow::Result<()> {
        let mut planes = lock(&self.planes);
        let is_there = |name: &str| plan.control_planes().any(|router| *router.name == *name);
        if joining.is_empty() && planes.is_empty() {
            return Ok(());
        }
        let mut watch = lock(&self.carriers);
        let mut all = watch.take().and_then(CarrierWatch::end).unwrap_or_default();
        planes.retain(|plane| is_there(&plane.name));
        all.retain(|wires| is_there(&wires.router));
        all.iter_mut().for_each(|wires| wires.follow_plan(plan));
        let joined: anyhow::Result<()> = joining.into_iter().try_for_each(|joining| {
            let lab = lab.context("the routers' namespaces are not up")?;
            let (plane, wires) = joining.mirror(plan, lab, engine)?;
            planes.push(plane);
            all.push(wires);
            Ok(())
        });
        *watch = follow_links(all, engine.links, engine.remote.clone());
        joined
    }

    /// Stops mirroring. Statistics remain available.
    pub fn end(&self) {
        *lock(&self.carriers) = None;
        for plane in &mut *lock(&self.planes) {
            if let Some(ended) = plane.mirror.take() {
                plane.ended = ended.stats();
            }
        }
    }

    /// A row for each: the router's routes, and their changes.
    pub fn rows(&self) -> Vec<Row> {
        let row = |plane: &MirroredRouter| {
            let stats = plane.mirror.as_ref().map_or(plane.ended, Mirror::stats);
            let row = Row::new(&*plane.name, "routes").measured(stats.routes);
            let row = row.extra("kind", "control-plane");
            let counted = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
            let row = stats.rows().into_iter().fold(row, |row, (name, value)| row.extra(name, value));
            row.extra("carrier-changes", counted(&plane.carriers.changes))
                .extra("carrier-refused", counted(&plane.carriers.refused))
        };
        lock(&self.planes).iter().map(row).collect()
    }
}

impl ConfiguredPlane {
    /// Begins to mirror the namespace into its router.
    fn mirror(
        self,
        plan: &Plan,
        lab: &Lab,
        engine: MirroredEngine<'_>,
    ) -> anyhow::Result<(MirroredRouter, Wires)> {
        let Self { name, pairs, carriers } = self;
        let mut routers = plan.routers.iter().zip(engine.routers);
        let node = routers.find(|(router, _)| *router.name == *name).map(|(_, &node)| node);
        let node = node.with_context(|| format!("there is no router \"{name}\""))?;
        let target = RemoteRouter { remote: engine.remote.clone(), node };
        let mirror = Some(Mirror::start(lab.host(&name)?.namespace(), &pairs, Box::new(target))?);
        let counts = Arc::<CarrierCounts>::default();
        let wires = pairs.iter().filter_map(|pair| Wire::of(plan, pair.port, pair.index)).collect();
        let wires = Wires { router: name.clone(), carriers, wires, counts: Arc::clone(&counts) };
        Ok((MirroredRouter { name, mirror, ended: MirrorStats::default(), carriers: counts }, wires))
    }
}

/// A router of a running engine. A mirror has to know which of its changes were made, however late.
struct RemoteRouter {
    remote: Remote,
    node: NodeRef,
}

impl Target for RemoteRouter {
    fn routes(&mut self) -> Option<Vec<(Destination, RouteHops)>> {
        self.remote.at_node_surely(self.node, |router: &mut Node, _| routes_of(router)).ok()
    }

    fn apply(&mut self, changes: Vec<Change>) -> Option<Vec<bool>> {
        let act = move |router: &mut Node, now| {
            changes.into_iter().map(|change| change.carry_out(router, now)).collect()
        };
        self.remote.at_node_surely(self.node, act).ok()
    }
}

fn specs(router: &Router) -> (Vec<PortSpec>, Vec<RouteSpec>) {
    let port = |port: &longwire_scenario::RouterPort| PortSpec {
        name: port.name.to_string(),
        addresses: port.addresses.clone(),
    };
    let routes = router.routes.iter().map(|route| route_spec(router, route));
    (router.ports.iter().map(port).collect(), routes.collect())
}

fn route_spec(router: &Router, route: &RouterRoute) -> RouteSpec {
    let spec = |Member { hop, weight }: Member| {
        let port = router.ports.iter().find(|port| Some(port.place) == hop.port())?;
        Some(HopSpec { via: gateway_of(hop), port: port.name.to_string(), weight })
    };
    let hops = match &route.way {
        RouteHops::One(hop) => spec(Member { hop: *hop, weight: 1 }).into_iter().collect(),
        RouteHops::Several(group) => group.members().iter().copied().filter_map(spec).collect(),
    };
    RouteSpec { to: route.to, hops }
}
