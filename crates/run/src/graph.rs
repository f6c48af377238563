//! The graph of a plan for the dashboard.

use longwire_control::{Topology, TopologyLink, TopologyNode};
use longwire_scenario::{End, Plan};
use std::collections::BTreeSet;

/// Most listed links.
const MOST_LINKS: usize = 10_000;

/// The graph of `plan`. A router is one node with all its ports; an implicit bridge is not a node.
pub(crate) fn graph(plan: &Plan) -> Topology {
    let first = plan.links.len().min(MOST_LINKS);
    drawn(plan, (0..first).collect(), |_, _| true)
}

/// What the links at these places of `plan` join.
pub(crate) fn joined(plan: &Plan, places: Vec<usize>) -> Topology {
    drawn(plan, places, |ends, node| ends.contains(node))
}

/// The graph of some links, and of the nodes that are shown: by the names of the links' ends and its own.
fn drawn(plan: &Plan, places: Vec<usize>, is_shown: fn(&BTreeSet<&str>, &str) -> bool) -> Topology {
    let node = |place: u16| node_of(plan, place);
    let end = |end: End| match end {
        End::Port(place) => node(place),
        End::Bridge(index) => plan.bridges[index as usize].name.to_string(),
    };
    let more = places.len() < plan.links.len();
    let links = places.into_iter().map(|place| &plan.links[place]);
    let links: Vec<TopologyLink> = links
        .map(|link| TopologyLink { name: link.name.to_string(), from: end(link.from), to: end(link.to) })
        .collect();
    let ends: BTreeSet<&str> = links.iter().flat_map(|link| [link.from.as_str(), link.to.as_str()]).collect();
    let shown = |bridge: u32| {
        plan.bridges.get(bridge as usize).filter(|bridge| bridge.declared || ends.contains(&*bridge.name))
    };
    let mut wires = BTreeSet::new();
    let joined: BTreeSet<_> = links.iter().map(|link| (link.from.clone(), link.to.clone())).collect();
    for (place, port) in (0u16..).zip(&plan.ports).filter(|(_, port)| port.attachment.control().is_none()) {
        let own = node(place);
        if !is_shown(&ends, &own) {
            continue;
        }
        let bridge = shown(port.bridge).map(|bridge| bridge.name.to_string());
        let router = port.router.map(|router| plan.routers[router as usize].name.to_string());
        let far = port.attachment.far().map(node);
        let others = [bridge, router, far].into_iter().flatten();
        for other in others.filter(|other| *other != own && is_shown(&ends, other)) {
            let pair = if own < other { (own.clone(), other) } else { (other, own.clone()) };
            let has_link = joined.contains(&pair) || joined.contains(&(pair.1.clone(), pair.0.clone()));
            if !has_link {
                wires.insert(pair);
            }
        }
    }
    let hosts = plan.hosts.iter().map(|host| (&host.name, "host", &host.addresses[..]));
    let ports = plan.ports.iter().filter(|port| port.attachment.driven().is_some());
    let ports = ports.map(|port| (&port.name, "port", &port.addresses[..]));
    let bridges = (0u32..).zip(&plan.bridges).filter(|(index, _)| shown(*index).is_some());
    let bridges = bridges.map(|(_, bridge)| (&bridge.name, "bridge", &[][..]));
    let routers = plan.routers.iter().map(|router| (&router.name, "router", &[][..]));
    let nodes = hosts.chain(ports).chain(bridges).chain(routers);
    let nodes =
        nodes.filter(|(name, ..)| is_shown(&ends, name)).map(|(name, kind, addresses)| TopologyNode {
            name: name.to_string(),
            kind: kind.into(),
            addresses: addresses.iter().map(ToString::to_string).collect(),
        });
    let nodes = nodes.collect();
    Topology { nodes, links, wires: wires.into_iter().collect(), more }
}

/// The name of a port's node: the port itself if it leads outside, else its router, or the one behind it on a
/// bridge.
fn node_of(plan: &Plan, place: u16) -> String {
    let port = &plan.ports[usize::from(place)];
    let Some(far) = port.attachment.far() else { return port.name.to_string() };
    let router = port.router.or(plan.ports[usize::from(far)].router);
    router.map_or(&port.name, |router| &plan.routers[router as usize].name).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Topology {
        graph(&longwire_scenario::parse("test.toml", text).unwrap())
    }

    #[test]
    fn hosts_are_joined_by_links() {
        let graph = of("
            [[host]]
            name = 'a'
            address = ['10.0.0.1/24']
            [[host]]
            name = 'b'
            address = ['10.0.0.2/24']
            [[link]]
            name = 'up'
            between = ['a', 'b']
        ");
        let nodes: Vec<_> = graph.nodes.iter().map(|node| (node.name.as_str(), node.kind.as_str())).collect();
        assert_eq!(nodes, [("a", "host"), ("b", "host")]);
        assert_eq!(graph.nodes[0].addresses, ["10.0.0.1/24"]);
        let links: Vec<_> = graph.links.iter().map(|link| (&*link.name, &*link.from, &*link.to)).collect();
        assert_eq!(links, [("up.forward", "a", "b"), ("up.backward", "b", "a")]);
        assert!(graph.wires.is_empty() && !graph.more);
    }

    #[test]
    fn of_some_links_there_is_what_they_join() {
        let text = "
            [[host]]
            name = 'h{n}'
            count = 3
            address = ['{10.0.0.0 + n}/24']
            [[link]]
            name = 'one'
            between = ['h1', 'h2']
            [[link]]
            name = 'two'
            between = ['h2', 'h3']
        ";
        let part = joined(&longwire_scenario::parse("test.toml", text).unwrap(), vec![3, 2]);
        let names: Vec<_> = part.links.iter().map(|link| link.name.as_str()).collect();
        assert_eq!(names, ["two.backward", "two.forward"]);
        let nodes: Vec<_> = part.nodes.iter().map(|node| node.name.as_str()).collect();
        assert_eq!((nodes, part.more), (vec!["h2", "h3"], true));
        assert!(!of(text).more);
    }

    #[test]
    fn routers_are_one_node_each_and_wired_to_what_has_no_link() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/router.toml");
        let graph = graph(&longwire_scenario::load(std::path::Path::new(file)).unwrap());
        let of = |kind: &str| {
            let nodes = graph.nodes.iter().filter(|node| node.kind == kind);
            nodes.map(|node| node.name.as_str()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            ["host", "port", "bridge", "router"].map(of),
            ["a c b", "", "lan", "west east south"].map(String::from)
        );
        let wires: Vec<_> = graph.wires.iter().map(|(one, other)| format!("{one}-{other}")).collect();
        for wire in ["a-lan", "c-lan", "b-east", "lan-west"] {
            assert!(wires.contains(&wire.to_string()), "{wire}: {wires:?}");
        }
        let names: Vec<_> = graph.nodes.iter().map(|node| &node.name).collect();
        for link in &graph.links {
            assert!(names.contains(&&link.from) && names.contains(&&link.to), "{link:?}");
            assert!(!graph.wires.contains(&(link.from.clone(), link.to.clone())), "{link:?}");
        }
    }
}
