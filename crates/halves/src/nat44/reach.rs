//! Whether packets to external addresses reach the router, according to its routes.

use super::network::Network4;
use crate::session::RouterSession;
use longwire_report::output;
use longwire_scenario::Network;
use serde_json::json;
use std::net::{IpAddr, Ipv4Addr};

/// Addresses that are not routed to the router, for a common reason.
#[derive(Debug, PartialEq, Eq)]
struct UnreachableAddresses {
    first: Ipv4Addr,
    count: usize,
    why: String,
}

/// An IPv4 route with its target; none for the router itself.
struct Route<'t> {
    to: Network,
    away: Option<RouteTarget<'t>>,
}

/// Targets of a route other than the router.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RouteTarget<'t> {
    Broadcast,
    /// To the hosts behind a port.
    Behind(&'t str),
    /// Other targets, as written.
    Others(&'t str),
}

/// Warns about external addresses that are not routed to the router: on standard error, and as events with
/// --json.
///
/// # Errors
/// If the instance does not answer.
pub(super) fn warn(session: &RouterSession, external: &Network4, json: bool) -> anyhow::Result<()> {
    let page = session.routes()?;
    let router = session.router();
    let astray = if page.more {
        let why = format!("{router} has more routes than can be checked: packets to it may not arrive");
        vec![UnreachableAddresses { first: external.first(), count: external.addresses().len(), why }]
    } else {
        astray(&page.routes, &external.addresses(), router)
    };
    for UnreachableAddresses { first, count, why } in astray {
        let others =
            if count > 1 { format!(" and {} others of its network", count - 1) } else { String::new() };
        output::note(&format!("warning: --external {first}{others}: {why}"));
        if json {
            let event =
                json!({ "event": "astray", "external": first.to_string(), "addresses": count, "why": why });
            output::print(&event.to_string())?;
        }
    }
    Ok(())
}

/// The addresses that the routes don't deliver to the router itself, in order.
fn astray(routes: &[String], addresses: &[Ipv4Addr], router: &str) -> Vec<UnreachableAddresses> {
    let mut routes: Vec<Route<'_>> = routes.iter().filter_map(|text| Route::read(text)).collect();
    // Longest prefix first: the first that contains an address is its route.
    routes.sort_by_key(|route| std::cmp::Reverse(route.to.prefix));
    let mut found: Vec<(Option<RouteTarget<'_>>, Ipv4Addr, usize)> = Vec::new();
    for &address in addresses {
        let route = routes.iter().find(|route| route.has(address));
        let away = match route.map(|route| route.away) {
            Some(None) => continue,
            away => away.flatten(),
        };
        match found.iter_mut().find(|(known, ..)| *known == away) {
            Some((.., count)) => *count += 1,
            None => found.push((away, address, 1)),
        }
    }
    let told = |(away, first, count)| UnreachableAddresses { first, count, why: why(away, router) };
    found.into_iter().map(told).collect()
}

/// Why an address is not routed to the router.
fn why(away: Option<RouteTarget<'_>>, router: &str) -> String {
    match away {
        None => format!(
            "it is no address of {router}, which has no route to it: others have to route it there; with a \
             route blackhole for it, packets without a binding end there"
        ),
        Some(RouteTarget::Broadcast) => {
            format!("{router} uses it as a broadcast address, which no host can have")
        }
        Some(RouteTarget::Behind(port)) => format!(
            "it is no address of {router}, which expects a host with it behind {port}: nobody answers for it \
             there, and nothing comes back; give {router} this address, or name one that it has"
        ),
        Some(RouteTarget::Others(route)) => {
            format!("it is no address of {router}, which forwards packets without a binding by {route}")
        }
    }
}

impl<'t> Route<'t> {
    /// Parses a listed route; none if it is not IPv4.
    fn read(text: &'t str) -> Option<Self> {
        let (first, rest) = text.split_once(' ')?;
        let (to, away) = match first {
            "local" | "blackhole" => (rest, None),
            "broadcast" => (rest, Some(RouteTarget::Broadcast)),
            _ => match rest.strip_prefix("dev ") {
                Some(port) => (first, Some(RouteTarget::Behind(port))),
                None => (first, Some(RouteTarget::Others(text))),
            },
        };
        let to: Network = to.parse().ok()?;
        to.address.is_ipv4().then_some(Self { to, away })
    }

    fn has(&self, address: Ipv4Addr) -> bool {
        let masked = |address: IpAddr| Network { address, prefix: self.to.prefix }.masked().address;
        masked(address.into()) == masked(self.to.address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_lead_elsewhere_are_told_of_together() {
        let routes = [
            "0.0.0.0/0 via 10.0.2.254 dev b",
            "10.0.1.0/24 dev a",
            "10.0.2.0/24 dev b",
            "local 10.0.2.1/32",
            "broadcast 10.0.2.255/32",
            "blackhole 192.0.2.0/28",
            "198.51.100.0/24 nexthop via 10.0.2.9 dev b weight 1 nexthop via 10.0.2.8 dev b weight 1",
            "fd00::/64 dev a",
        ]
        .map(str::to_owned);
        let told = |routes: &[String], external: &str| {
            let told = astray(routes, &Network4::external(external).unwrap().addresses(), "r1");
            told.into_iter().map(|it| (it.first.to_string(), it.count, it.why)).collect::<Vec<_>>()
        };
        for here in ["10.0.2.1", "192.0.2.0/28", "192.0.2.3"] {
            assert_eq!(told(&routes, here), [], "{here}");
        }
        for (external, wanted) in [
            ("10.0.2.7", "which expects a host with it behind b: nobody answers"),
            ("10.0.2.255", "uses it as a broadcast address"),
            ("203.0.113.7", "forwards packets without a binding by 0.0.0.0/0 via 10.0.2.254 dev b"),
            ("198.51.100.3", "by 198.51.100.0/24 nexthop via 10.0.2.9 dev b weight 1 nexthop"),
        ] {
            let [(first, 1, why)] = &told(&routes, external)[..] else { panic!("{external}") };
            assert!(first == external && why.contains(wanted), "{why}");
        }
        let none = told(&routes[1..], "203.0.113.0/28");
        let [(first, 16, why)] = &none[..] else { panic!("{none:?}") };
        assert!(first == "203.0.113.0" && why.contains("has no route to it"), "{why}");
        // Addresses before the router's own, and after.
        let some: Vec<_> =
            told(&routes, "10.0.2.0/29").into_iter().map(|(first, count, _)| (first, count)).collect();
        assert_eq!(some, [("10.0.2.0".to_owned(), 7)]);
    }
}
