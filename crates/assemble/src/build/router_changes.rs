//! Changes of a router between two batches of packets: routes and flow weights.

use longwire_router::prefix::{Address, Prefix};
use longwire_router::{RouteError, Router};
use longwire_scenario::{Network, RouteChange, RouterRoute};
use longwire_sched::Weight;
use std::net::IpAddr;

/// Makes all changes of a router's routes, in order, and sets these weights of flows that share its
/// processors; or does nothing.
///
/// # Errors
/// A table is full, or there is no such route to remove, or no such flow.
pub fn change_router(
    router: &mut Router,
    routes: &[RouteChange],
    weights: &[(Box<str>, Weight)],
) -> Result<(), String> {
    // A single change is atomic by itself: only several need to be undone.
    let before = (routes.len() + weights.len() > 1).then(|| Before::of(router, routes, weights));
    let done = routes.iter().try_for_each(|change| change_route(router, change));
    let done = done.and_then(|()| {
        let mut each = weights.iter();
        each.try_for_each(|(flow, weight)| router.set_flow_weight(flow, *weight))
            .map_err(|error| error.to_string())
    });
    if let (Err(_), Some(before)) = (&done, before) {
        before.restore(router);
    }
    done
}

/// Changes a route of a router.
pub(super) fn change_route(router: &mut Router, change: &RouteChange) -> Result<(), String> {
    match change {
        RouteChange::Add(route) => add_route(router, route).map_err(|error| error.to_string()),
        RouteChange::Remove(to) => match withdraw(router, *to)? {
            true => Ok(()),
            false => Err(format!("there is no route to {to}")),
        },
        RouteChange::RemoveDefault => {
            let [v4, v6] = Network::EVERYTHING.map(|all| withdraw(router, all));
            if v4? | v6? { Ok(()) } else { Err("there is no default route".into()) }
        }
    }
}

/// The previous state, for undoing several changes.
struct Before {
    /// The networks concerned, and the previous routes to them.
    networks: Vec<Network>,
    routes: Vec<RouterRoute>,
    weights: Vec<(Box<str>, Weight)>,
}

impl Before {
    fn of(router: &Router, routes: &[RouteChange], weights: &[(Box<str>, Weight)]) -> Self {
        let concerned = |change: &RouteChange| match change {
            RouteChange::Add(route) => vec![route.to],
            RouteChange::Remove(to) => vec![*to],
            RouteChange::RemoveDefault => Network::EVERYTHING.to_vec(),
        };
        let mut networks: Vec<Network> = routes.iter().flat_map(concerned).collect();
        networks.sort_unstable_by_key(|net| (net.address, net.prefix));
        networks.dedup();
        let v4 = router.routes_v4().map(|(to, way)| (IpAddr::V4(to.address().into()), to.bits(), way));
        let v6 = router.routes_v6().map(|(to, way)| (IpAddr::V6(to.address().into()), to.bits(), way));
        let known =
            v4.chain(v6).map(|(address, prefix, way)| RouterRoute { to: Network { address, prefix }, way });
        let routes = known.filter(|route| networks.contains(&route.to)).take(networks.len()).collect();
        let flows = router.processors().map(|all| all.flows).unwrap_or_default();
        let weight = |(name, _): &(Box<str>, Weight)| {
            let flow = flows.iter().find(|flow| *flow.flow == **name)?;
            Some((name.clone(), Weight::new(flow.weight.into()).ok()?))
        };
        Self { networks, routes, weights: weights.iter().filter_map(weight).collect() }
    }

    /// Restores the previous state, for which there was room.
    fn restore(&self, router: &mut Router) {
        for &to in &self.networks {
            // Routes that were not changed can fail to be restored, and need not be.
            let _ = match self.routes.iter().find(|route| route.to == to) {
                Some(route) => add_route(router, route).map_err(|error| error.to_string()),
                None => withdraw(router, to).map(drop),
            };
        }
        for (flow, weight) in &self.weights {
            let _ = router.set_flow_weight(flow, *weight);
        }
    }
}

pub(super) fn add_route(router: &mut Router, route: &RouterRoute) -> Result<(), RouteError> {
    let (Network { address, prefix: length }, way) = (route.to, route.way.clone());
    match address {
        IpAddr::V4(address) => router.add_route_v4(prefix(address.to_bits(), length), way),
        IpAddr::V6(address) => router.add_route_v6(prefix(address.to_bits(), length), way),
    }
}

/// Removes a route and returns whether there was one; a route to a port's network that it had replaced comes
/// back.
fn withdraw(router: &mut Router, to: Network) -> Result<bool, String> {
    let withdrawn = match to.address {
        IpAddr::V4(address) => router.withdraw_route_v4(prefix(address.to_bits(), to.prefix)),
        IpAddr::V6(address) => router.withdraw_route_v6(prefix(address.to_bits(), to.prefix)),
    };
    withdrawn.map_err(|error| error.to_string())
}

fn prefix<A: Address>(address: A, length: u8) -> Prefix<A> {
    Prefix::new(address, length).expect("a network's prefix is no longer than its address")
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_scenario::WrittenRoute;

    const SCENARIO: &str = r#"
        [[host]]
        name = "a"
        address = "10.0.1.9/24"
        [[host]]
        name = "b"
        address = "10.0.2.9/24"
        [[router]]
        name = "r"
        scheduler = "gmr3"
        ports = [{ port = "a", addresses = "10.0.1.1/24" }, { port = "b", addresses = "10.0.2.1/24" }]
        routes = [{ to = "10.8.0.0/16", via = "10.0.2.9" }, { to = "default", via = "10.0.1.9" }]
        flows = [{ name = "voice", key = { protocol = "udp" }, weight = 3 }]
    "#;

    /// The complete routing state of the router.
    fn known(plan: &longwire_scenario::Plan, router: &Router) -> Vec<String> {
        let routes = router.routes_v4().map(|(to, way)| {
            let to = Network { address: IpAddr::V4(to.address().into()), prefix: to.bits() };
            plan.routers[0].written(&RouterRoute { to, way })
        });
        let flows = router.processors().unwrap().flows;
        let weights = flows.iter().map(|flow| format!("{} weighs {}", flow.flow, flow.weight));
        routes.chain(weights).collect()
    }

    #[test]
    fn several_changes_are_made_or_none() {
        let plan = longwire_scenario::plan_of(SCENARIO);
        let mut router = super::super::routers::router(&plan, 0).unwrap();
        let add = |text: &str| {
            let route = WrittenRoute::read(text).unwrap();
            RouteChange::Add(plan.routers[0].route(&route).unwrap())
        };
        let remove = |text: &str| RouteChange::Remove(text.parse().unwrap());
        let weight = |flow: &str, weight| (Box::from(flow), Weight::new(weight).unwrap());
        let before = known(&plan, &router);
        assert!(before.contains(&"voice weighs 3".to_owned()), "{before:?}");
        // Replaced, new, removed, a port's own network elsewhere, no default; then an impossible one.
        let routes = [
            add("10.8.0.0/16 via 10.0.1.9"),
            add("10.9.0.0/16 via 10.0.1.9"),
            add("10.8.0.0/16 via 10.0.2.7"),
            add("10.0.2.0/24 via 10.0.1.9"),
            RouteChange::RemoveDefault,
        ];
        let wrong = [&routes[..], &[remove("10.7.0.0/16")]].concat();
        let refused = change_router(&mut router, &wrong, &[]).unwrap_err();
        assert_eq!(refused, "there is no route to 10.7.0.0/16");
        assert_eq!(known(&plan, &router), before);
        let refused = change_router(&mut router, &routes, &[weight("voice", 5), weight("noise", 2)]);
        assert!(refused.unwrap_err().contains("no flow named \"noise\"; there are voice"));
        assert_eq!(known(&plan, &router), before);
        change_router(&mut router, &routes, &[weight("voice", 5)]).unwrap();
        let after = known(&plan, &router);
        for wanted in [
            "10.8.0.0/16 via 10.0.2.7 dev b",
            "10.9.0.0/16 via 10.0.1.9 dev a",
            "10.0.2.0/24 via 10.0.1.9 dev a",
        ] {
            assert!(after.contains(&wanted.to_owned()), "{after:?}");
        }
        assert!(
            after.contains(&"voice weighs 5".to_owned())
                && !after.iter().any(|one| one.contains("0.0.0.0/0"))
        );
    }
}
