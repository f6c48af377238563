//! Compares routes of routers and weights of their flows.

use super::Running;
use super::blocks::settings_between;
use crate::objects::ObjectChange;
use crate::objects::router_settings::{ROUTE, route_setting};
use crate::objects::settings::Settings;
use longwire_control::{Kind, ObjectDifference, SetError};
use longwire_scenario::{Plan, RouteChange, Router, RouterEvent};
use longwire_units::Nanos;
use std::collections::HashSet;

/// The target state of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Toward {
    Scenario,
    /// The running instance.
    Now,
}

/// A change of a router's routes, or of a flow's weight.
#[derive(Debug)]
pub(super) struct RouterChange {
    pub(super) shown: ObjectDifference,
    pub(super) change: ObjectChange,
}

/// The value that removes a route.
pub(super) const NONE: &str = "none";

impl Running<'_> {
    /// The changes between the running routers at these places and those of the same names at a start.
    ///
    /// # Errors
    /// If a router does not answer.
    pub(super) fn router_changes(
        &self,
        start: RoutersAtStart<'_>,
        places: impl IntoIterator<Item = u32>,
        toward: Toward,
    ) -> Result<Vec<RouterChange>, SetError> {
        let mut all = Vec::new();
        for place in places {
            let Some(router) = self.state.plan.routers.get(place as usize) else { continue };
            let Some(there) = start.place(&router.name) else { continue };
            let kept = ChangedLater::by(&self.state.plan, place, self.elapsed);
            // Routes of a router with a control plane come from that.
            if !router.control {
                let routers = &self.state.objects.routers;
                let mut now = routers.settings_among(self.remote, place as usize, usize::MAX)?;
                let mut then = start.routes(there);
                let own = own_networks(router);
                now.retain(|key, way| own.get(key) != Some(way) && !kept.has_route(key));
                then.retain(|key, _| !kept.has_route(key));
                all.extend(changed((Kind::Router, router.name.to_string()), now, then, toward));
            }
            for flow in router.sharing.iter().flat_map(|sharing| &sharing.flows) {
                let name = format!("{}/{}", router.name, flow.name);
                let Some(weight) = start.weight(there, &flow.name) else { continue };
                if kept.weights.contains(&flow.name) {
                    continue;
                }
                let (now, _) = self.state.objects.routers.flow(self.remote, &name)?;
                let then = Settings::from([("weight".to_owned(), weight)]);
                all.extend(changed((Kind::Flow, name), now, then, toward));
            }
        }
        Ok(all)
    }
}

/// The change from `now` to `then`, or the reverse.
fn changed(
    (kind, name): (Kind, String),
    now: Settings,
    then: Settings,
    toward: Toward,
) -> Option<RouterChange> {
    let settings = match toward {
        Toward::Scenario => settings_between(&now, &then),
        Toward::Now => settings_between(&then, &now),
    };
    if settings.is_empty() {
        return None;
    }
    let value = |wanted: &Option<String>| wanted.clone().unwrap_or_else(|| NONE.into());
    let pairs = settings.iter().map(|setting| (setting.key.clone(), value(&setting.wanted))).collect();
    let change = ObjectChange { kind, name: name.clone(), pairs };
    Some(RouterChange { shown: ObjectDifference { kind, name, settings }, change })
}

/// Settings of a router that later events of the running scenario have changed.
struct ChangedLater {
    networks: HashSet<String>,
    weights: HashSet<Box<str>>,
}

impl ChangedLater {
    fn by(plan: &Plan, router: u32, elapsed: Nanos) -> Self {
        let past = |event: &&RouterEvent| {
            event.router == router && event.time > Nanos::ZERO && event.time <= elapsed
        };
        let (mut networks, mut weights) = (HashSet::new(), HashSet::new());
        for event in plan.router_events.iter().filter(past) {
            weights.extend(event.weight.iter().map(|(flow, _)| flow.clone()));
            for change in &event.changes {
                match change {
                    RouteChange::Add(route) => drop(networks.insert(route.to.to_string())),
                    RouteChange::Remove(to) => drop(networks.insert(to.to_string())),
                    RouteChange::RemoveDefault => networks.extend(DEFAULTS.map(String::from)),
                }
            }
        }
        Self { networks, weights }
    }

    fn has_route(&self, key: &str) -> bool {
        key.strip_prefix(ROUTE).is_some_and(|network| self.networks.contains(network))
    }
}

const DEFAULTS: [&str; 2] = ["0.0.0.0/0", "::/0"];

/// The implicit routes to a router's own networks, as its settings.
fn own_networks(router: &Router) -> Settings {
    let each = router.ports.iter().flat_map(|port| {
        let networks = port.addresses.iter().map(|network| network.masked());
        networks.map(|network| (format!("{ROUTE}{network}"), format!("dev {}", port.name)))
    });
    each.collect()
}

/// The routers of a scenario, with what changes them at its start.
#[derive(Debug, Clone, Copy)]
pub(super) struct RoutersAtStart<'s> {
    pub(super) routers: &'s [Router],
    pub(super) events: &'s [RouterEvent],
}

impl<'s> RoutersAtStart<'s> {
    /// Those of a plan.
    pub(super) fn of(plan: &'s Plan) -> Self {
        Self { routers: &plan.routers, events: &plan.router_events }
    }

    /// The place of the router `name`.
    fn place(self, name: &str) -> Option<usize> {
        self.routers.iter().position(|router| *router.name == *name)
    }

    /// The routes of the router at this place, as its settings.
    fn routes(self, place: usize) -> Settings {
        let router = &self.routers[place];
        let setting = |route| route_setting(router, route);
        let mut routes: Settings = router.routes.iter().filter_map(setting).collect();
        for change in self.at_start(place).flat_map(|event| &event.changes) {
            match change {
                RouteChange::Add(route) => routes.extend(setting(route)),
                RouteChange::Remove(to) => drop(routes.remove(&format!("{ROUTE}{to}"))),
                RouteChange::RemoveDefault => {
                    DEFAULTS.iter().for_each(|to| drop(routes.remove(&format!("{ROUTE}{to}"))));
                }
            }
        }
        routes
    }

    /// The weight of a flow of the router at this place, if there is such a flow.
    fn weight(self, place: usize, flow: &str) -> Option<String> {
        let mut flows = self.routers[place].sharing.iter().flat_map(|sharing| &sharing.flows);
        let planned = flows.find(|known| *known.name == *flow)?.weight;
        let changed = self.at_start(place).filter_map(|event| event.weight.as_ref());
        let changed = changed.filter(|(known, _)| **known == *flow).last().map(|(_, weight)| *weight);
        Some(changed.unwrap_or(planned).number().to_string())
    }

    fn at_start(self, place: usize) -> impl Iterator<Item = &'s RouterEvent> {
        let of_router =
            move |event: &&RouterEvent| event.router as usize == place && event.time == Nanos::ZERO;
        self.events.iter().filter(of_router)
    }
}
