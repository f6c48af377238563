//! Nodes and cables of container labs as a scenario: a node with one cable is a host, one with several a
//! bridge.

use super::sheet::{Host, Link, Sheet, Taken, host_address};
use super::stage::Stage;
use super::{ImportError, Notes};
use longwire_units::DisjointSets;
use std::collections::HashMap;

/// Most hosts.
const MOST_HOSTS: usize = 10_000;
/// Longest names of nodes and links.
const LONGEST_NODE: usize = 26;
const LONGEST_LINK: usize = 58;

/// A node.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) name: String,
    /// Whether it is a bridge even with one cable.
    pub(super) bridge: bool,
}

/// A cable between two nodes, by number, with the impairments of each direction.
#[derive(Debug)]
pub(super) struct Cable {
    pub(super) ends: (usize, usize),
    pub(super) there: Stage,
    pub(super) back: Stage,
}

/// The nodes and cables of a lab.
#[derive(Debug, Default)]
pub(super) struct Wiring {
    pub(super) nodes: Vec<Node>,
    pub(super) cables: Vec<Cable>,
}

impl Wiring {
    /// The scenario. A node with several cables that is not a bridge in the file gets a note.
    pub(super) fn sheet(self, title: &str, notes: &mut Notes) -> Result<Sheet, ImportError> {
        let Self { nodes, cables } = self;
        let mut degrees = vec![0_usize; nodes.len()];
        cables
            .iter()
            .for_each(|cable| [cable.ends.0, cable.ends.1].into_iter().for_each(|n| degrees[n] += 1));
        let is_host = |node: usize| !nodes[node].bridge && degrees[node] == 1;
        let mut taken = Taken::default();
        let names: Vec<String> =
            nodes.iter().map(|node| taken.fresh_cleaned(&node.name, LONGEST_NODE)).collect();
        let mut sheet = Sheet::new(title);
        let mut routers = Vec::new();
        for (at, node) in nodes.iter().enumerate().filter(|(at, _)| degrees[*at] > 0 && !is_host(*at)) {
            sheet.bridges.push(names[at].clone());
            if !node.bridge {
                routers.push(&*node.name);
            }
        }
        if let [first, ..] = routers[..] {
            let all = if routers.len() > 8 { format!("{first} and others") } else { routers.join(", ") };
            let why = "nodes with several links are bridges here, and all hosts are in one subnet; packets \
                take the path with the least delay";
            notes.add(0, &all, why);
        }
        for (at, node) in nodes.iter().enumerate().filter(|(at, _)| degrees[*at] == 0) {
            notes.add(0, &node.name, "it has no link, and is left out");
            debug_assert!(!sheet.bridges.contains(&names[at]));
        }
        let hosts = hosts(&nodes, (&degrees, &is_host), notes)?;
        let pairs = pairs(&cables, &is_host);
        // Two hosts with only a cable between them need a bridge of their own where there are others.
        let mut nets: HashMap<usize, String> = HashMap::new();
        if !sheet.bridges.is_empty() || pairs.len() > 1 {
            for pair in pairs {
                let net = taken.fresh_cleaned(&format!("{}-net", names[pair[0]]), LONGEST_NODE + 4);
                nets.extend(pair.map(|node| (node, net.clone())));
                sheet.bridges.push(net);
            }
        }
        for (number, (node, own)) in hosts.iter().enumerate() {
            let name = match own {
                Some(_) => taken.fresh_cleaned(&format!("{}-host", names[*node]), LONGEST_NODE),
                None => names[*node].clone(),
            };
            let bridge = own.map(|at| names[at].clone()).or_else(|| nets.get(node).cloned());
            sheet.hosts.push(Host { name, address: host_address(number + 1, hosts.len()), bridge });
        }
        let (parts, has_loop) = parts(nodes.len(), &cables);
        sheet.shortest = has_loop;
        let places: Vec<usize> = hosts.iter().map(|(node, _)| *node).collect();
        sheet.shown = shown(parts, &places)
            .map(|(one, other)| (sheet.hosts[one].name.clone(), sheet.hosts[other].name.clone()));
        let mut taken = Taken::default();
        for Cable { ends: (one, other), there, back } in cables {
            let wanted = format!("{}--{}", names[one], names[other]);
            let name = taken.fresh_cleaned(&wanted, LONGEST_LINK);
            let mut link = Link::simplex(name, &names[one], &names[other], there);
            link.duplex = true;
            if back != link.stage {
                (link.forward, link.backward) = (std::mem::take(&mut link.stage), back);
            }
            sheet.links.push(link);
        }
        Ok(sheet)
    }
}

/// The hosts with their nodes; a host added beside a node that is a bridge has that node's number twice.
fn hosts(
    nodes: &[Node],
    (degrees, is_host): (&[usize], &impl Fn(usize) -> bool),
    notes: &mut Notes,
) -> Result<Vec<(usize, Option<usize>)>, ImportError> {
    let own = (0..nodes.len()).filter(|&node| is_host(node));
    let mut hosts: Vec<(usize, Option<usize>)> = own.map(|node| (node, None)).collect();
    if hosts.len() < 2 {
        notes.add(0, "nodes", "too few have one link only: every other one also gets a host of its own");
        let others = (0..nodes.len()).filter(|&n| !is_host(n) && !nodes[n].bridge && degrees[n] > 0);
        hosts.extend(others.map(|node| (node, Some(node))));
    }
    if hosts.len() > MOST_HOSTS {
        let what = format!("there are more than {MOST_HOSTS} hosts");
        return Err(ImportError::new(0, what, "import a part of it"));
    }
    Ok(hosts)
}

/// Hosts with only a cable between them.
fn pairs(cables: &[Cable], is_host: &impl Fn(usize) -> bool) -> Vec<[usize; 2]> {
    let ends = cables.iter().map(|cable| cable.ends);
    ends.filter(|&(one, other)| is_host(one) && is_host(other)).map(|(one, other)| [one, other]).collect()
}

/// The nodes joined by cables, and whether cables form a loop.
fn parts(nodes: usize, cables: &[Cable]) -> (DisjointSets, bool) {
    let (mut parts, mut has_loop) = (DisjointSets::new(nodes), false);
    for Cable { ends: (one, other), .. } in cables {
        has_loop |= !parts.union(*one, *other);
    }
    (parts, has_loop)
}

/// Two connected hosts by index, from their nodes: the first, and the last that it reaches.
pub(super) fn shown(mut parts: DisjointSets, nodes: &[usize]) -> Option<(usize, usize)> {
    let part_of: Vec<usize> = nodes.iter().map(|node| parts.find(*node)).collect();
    (0..nodes.len()).find_map(|one| {
        let other = (one + 1..nodes.len()).rev().find(|&other| part_of[other] == part_of[one])?;
        Some((one, other))
    })
}
