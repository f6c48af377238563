//! The routers of a run by name, with their current routes and changes of them.

use crate::programs::leases::Leases;
use crate::programs::rows::InstalledPrograms;
use longwire_assemble::Levels;
use longwire_control::{Kind, RoutePage, SetError};
use longwire_engine::{NodeRef, Remote, RemoteError};
use longwire_router::prefix::Prefix;
use longwire_router::{RouteHops, Router};
use longwire_scenario::{Network, Plan, RouterRoute};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most routes shown at once: listing more would delay packets.
const MOST_SHOWN: usize = 2000;

/// The routers of a run.
#[derive(Debug)]
pub struct LiveRouters {
    plan: Arc<Plan>,
    refs: Vec<NodeRef>,
    levels: Vec<Mutex<Levels>>,
    leases: Leases,
}

impl LiveRouters {
    /// The routers of `plan`, with the engine's references and the levels above each router, if any.
    pub fn new(plan: Arc<Plan>, refs: Vec<NodeRef>, levels: Vec<Levels>) -> Self {
        Self { plan, refs, levels: levels.into_iter().map(Mutex::new).collect(), leases: Leases::default() }
    }

    /// The names of the routers, by place in the plan.
    pub fn names(&self) -> Vec<String> {
        self.plan.routers.iter().map(|router| router.name.to_string()).collect()
    }

    /// A router's routes, including those to its own networks: IPv4 first, each in order.
    ///
    /// # Errors
    /// If there is no such router, or it does not answer.
    pub fn routes(&self, remote: &Remote, name: &str) -> Result<RoutePage, SetError> {
        let place = self.place(name)?;
        let list = self.known_routes(remote, place)?;
        let router = &self.plan.routers[place];
        let routes = list.iter().take(MOST_SHOWN).map(|route| router.written(route)).collect();
        Ok(RoutePage { routes, more: list.len() > MOST_SHOWN })
    }

    /// Up to one more route than are shown of a router.
    pub(crate) fn known_routes(&self, remote: &Remote, place: usize) -> Result<Vec<RouterRoute>, SetError> {
        let list = remote.at_node(self.refs[place], |router: &mut Router, _| {
            let v4 = router.routes_v4().map(|(to, way)| route(v4(to), way));
            let v6 = router.routes_v6().map(|(to, way)| route(v6(to), way));
            v4.take(MOST_SHOWN + 1).chain(v6.take(MOST_SHOWN + 1)).take(MOST_SHOWN + 1).collect()
        });
        list.map_err(|error| gone(&error))
    }

    /// Checks that a router's routes may be changed here.
    ///
    /// # Errors
    /// If it follows its control plane.
    pub(crate) fn check_has_routes(&self, place: usize) -> Result<(), SetError> {
        let router = &self.plan.routers[place];
        if !router.control {
            return Ok(());
        }
        let name = &router.name;
        Err(SetError::Value {
            key: "route".into(),
            reason: format!(
                "router \"{name}\" follows its control plane: change the route there, with longwire lab exec \
                 LAB {name} -- ip route …"
            ),
        })
    }

    /// The programs of each router, by its place in the plan.
    pub fn programs(&self, remote: &Remote) -> InstalledPrograms {
        let table = |&node| remote.at_node(node, |router: &mut Router, _| router.forwarders()).ok();
        self.refs.iter().map(table).collect()
    }

    /// The leases of their programs.
    pub const fn leases(&self) -> &Leases {
        &self.leases
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The engine's reference to a router.
    pub(crate) fn node(&self, place: usize) -> NodeRef {
        self.refs[place]
    }

    /// The levels above a router, if the run has any. No holder of the lock panics.
    pub(crate) fn levels(&self, place: usize) -> Option<MutexGuard<'_, Levels>> {
        Some(self.levels.get(place)?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The place in the plan of the router `name`.
    pub(crate) fn place(&self, name: &str) -> Result<usize, SetError> {
        let place = self.plan.routers.iter().position(|router| &*router.name == name);
        place.ok_or_else(|| SetError::Unknown { kind: Kind::Router, name: name.into() })
    }
}

/// The error for a run that does not answer.
pub(crate) fn gone(error: &RemoteError) -> SetError {
    SetError::Unavailable(error.to_string())
}

fn v4(to: Prefix<u32>) -> (IpAddr, u8) {
    (IpAddr::V4(to.address().into()), to.bits())
}

fn v6(to: Prefix<u128>) -> (IpAddr, u8) {
    (IpAddr::V6(to.address().into()), to.bits())
}

const fn route((address, prefix): (IpAddr, u8), way: RouteHops) -> RouterRoute {
    RouterRoute { to: Network { address, prefix }, way }
}
