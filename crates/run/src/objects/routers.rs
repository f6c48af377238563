//! The routers of a run by name, with their current routes and changes of them.

use crate::programs::leases::{LeaseKey, Leases};
use crate::programs::rows::InstalledPrograms;
use crate::threads::lock;
use longwire_assemble::Levels;
use longwire_control::{Kind, RoutePage, SetError};
use longwire_engine::{NodeRef, Remote, RemoteError, clock};
use longwire_router::prefix::Prefix;
use longwire_router::{Meter, RouteHops, Router};
use longwire_scenario::{Network, Plan, RouterRoute};
use longwire_units::Nanos;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// Most routes shown at once: listing more would delay packets.
pub(super) const MOST_SHOWN: usize = 2000;

/// The routers of a run. Lists are by place in the plan.
#[derive(Debug)]
pub struct LiveRouters {
    pub(crate) plan: Arc<Plan>,
    /// The engine's references.
    pub(crate) refs: Vec<NodeRef>,
    levels: Vec<Arc<Mutex<Levels>>>,
    /// The leases of their programs.
    pub(crate) leases: Arc<Leases>,
    /// The number of each in leases, which no other router has had.
    numbers: Vec<usize>,
    /// The first number that none has had.
    next: usize,
    /// How often routes and flows have been changed by request.
    changes: AtomicU64,
    /// Those whose routes or flows may not be those of the plan: a request or an event at the start has
    /// changed them, or a rewiring the plan.
    changed: Mutex<BTreeSet<u32>>,
}

impl LiveRouters {
    /// The routers of `plan`, with the engine's references and the levels above each router, if any.
    pub fn new(plan: Arc<Plan>, refs: Vec<NodeRef>, levels: Vec<Levels>) -> Self {
        let next = plan.routers.len();
        let levels = levels.into_iter().map(|levels| Arc::new(Mutex::new(levels))).collect();
        let (leases, numbers, changes) = (Arc::default(), (0..next).collect(), AtomicU64::new(0));
        let at_start = plan.router_events.iter().filter(|event| event.time == Nanos::ZERO);
        let changed = Mutex::new(at_start.map(|event| event.router).collect());
        Self { plan, refs, levels, leases, numbers, next, changes, changed }
    }

    /// These routers in another plan, with the levels above those that are new in it, in order.
    pub(crate) fn in_plan(&self, plan: &Arc<Plan>, refs: Vec<NodeRef>, fresh: Vec<Levels>) -> Self {
        let mut fresh = fresh.into_iter().map(|levels| Arc::new(Mutex::new(levels)));
        let (mut levels, mut numbers, mut next) = (Vec::new(), Vec::new(), self.next);
        let (was_changed, mut changed) = (lock(&self.changed), BTreeSet::new());
        for (new, router) in (0u32..).zip(&plan.routers) {
            let place = self.plan.routers.iter().position(|known| known.name == router.name);
            let is_changed = |place: usize| {
                was_changed.contains(&(place as u32)) || self.plan.routers[place].routes != router.routes
            };
            if place.is_some_and(is_changed) {
                changed.insert(new);
            }
            numbers.push(place.map_or(next, |place| self.numbers[place]));
            next += usize::from(place.is_none());
            let known = place.and_then(|place| self.levels.get(place)).map(Arc::clone);
            levels.extend(known.or_else(|| fresh.next()));
        }
        self.leases.retain(|number| numbers.contains(&number));
        let (plan, leases) = (Arc::clone(plan), Arc::clone(&self.leases));
        let changed = Mutex::new(changed);
        Self { plan, refs, levels, leases, numbers, next, changes: AtomicU64::new(0), changed }
    }

    /// How often routes and flows have been changed by request.
    pub(crate) fn change_count(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    /// Notes a request that changes a router.
    pub(super) fn note_change(&self, place: usize) {
        self.changes.fetch_add(1, Ordering::Relaxed);
        lock(&self.changed).insert(place as u32);
    }

    /// The places of the routers whose routes or flows may not be those of the plan, ascending.
    pub(crate) fn perhaps_changed(&self) -> Vec<u32> {
        lock(&self.changed).iter().copied().collect()
    }

    /// A router's routes, including those to its own networks: IPv4 first, each in order.
    ///
    /// # Errors
    /// If there is no such router, or it does not answer.
    pub fn routes(&self, remote: &Remote, name: &str) -> Result<RoutePage, SetError> {
        let place = self.place(name)?;
        let list = self.known_routes(remote, place, MOST_SHOWN + 1)?;
        let router = &self.plan.routers[place];
        let routes = list.iter().take(MOST_SHOWN).map(|route| router.written(route)).collect();
        Ok(RoutePage { routes, more: list.len() > MOST_SHOWN })
    }

    /// Up to this many routes of a router.
    pub(crate) fn known_routes(
        &self,
        remote: &Remote,
        place: usize,
        most: usize,
    ) -> Result<Vec<RouterRoute>, SetError> {
        let list = remote.at_node(self.refs[place], move |router: &mut Router, _| {
            let v4 = router.routes_v4().map(|(to, way)| route(v4(to), way));
            let v6 = router.routes_v6().map(|(to, way)| route(v6(to), way));
            v4.chain(v6).take(most).collect()
        });
        list.map_err(gone)
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

    /// The key of the lease of a program.
    pub(crate) fn lease_key(&self, place: usize, fid: u32) -> LeaseKey {
        (self.numbers[place], fid)
    }

    /// The place in the plan of the router with a program that has a lease, while it is there.
    pub(crate) fn leaseholder(&self, (number, _): LeaseKey) -> Option<usize> {
        self.numbers.iter().position(|known| *known == number)
    }

    /// The levels above a router, if the run has any. No holder of the lock panics.
    pub(crate) fn levels(&self, place: usize) -> Option<MutexGuard<'_, Levels>> {
        self.levels.get(place).map(|levels| lock(levels))
    }

    /// The place in the plan of the router `name`.
    pub(crate) fn place(&self, name: &str) -> Result<usize, SetError> {
        let place = self.plan.routers.iter().position(|router| &*router.name == name);
        place.ok_or_else(|| SetError::Unknown { kind: Kind::Router, name: name.into() })
    }
}

/// How routers measure the processor time of packets.
pub(crate) fn meter() -> Meter {
    Meter {
        cycles: clock::cycles,
        per_microsecond: clock::cycles_per_microsecond(),
        now: longwire_clock::monotonic,
    }
}

/// The error for a run that does not answer.
pub(crate) fn gone(error: RemoteError) -> SetError {
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
