//! Nodes and cables of container labs as a scenario: a node with one cable is a host, one with several a
//! bridge.

use super::sheet::{Host, Link, Sheet, Taken, host_address};
use super::stage::Stage;
use super::{ImportError, Notes, Result};
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
    pub(super) fn sheet(self, title: &str, notes: &mut Notes) -> Result<Sheet> {
        let Self { nodes, cables } = self;
        let ends = cables.iter().map(|cable| cable.ends).collect();
        let graph = Graph::of(nodes.iter().map(|node| node.bridge).collect(), ends);
        let mut taken = Taken::default();
        let names: Vec<String> =
            nodes.iter().map(|node| taken.fresh_cleaned(&node.name, LONGEST_NODE)).collect();
        let mut sheet = Sheet::new(title);
        sheet.bridges = graph.inner().map(|at| names[at].clone()).collect();
        let routers = graph.inner().map(|at| &nodes[at]).filter(|node| !node.bridge);
        if let Some(all) = listed(&routers.map(|node| &*node.name).collect::<Vec<_>>()) {
            let why = "nodes with several links are bridges here, and all hosts are in one subnet; packets \
                take the path with the least delay";
            notes.add(0, &all, why);
        }
        for at in graph.unlinked() {
            notes.add(0, &nodes[at].name, "it has no link, and is left out");
            debug_assert!(!sheet.bridges.contains(&names[at]));
        }
        let hosts = hosts(&nodes, &graph, notes)?;
        let pairs = graph.pairs();
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
        let (parts, has_loop) = graph.parts();
        sheet.shortest = has_loop;
        let places: Vec<usize> = hosts.iter().map(|(node, _)| *node).collect();
        sheet.shown = shown(parts, &places)
            .map(|(one, other)| (sheet.hosts[one].name.clone(), sheet.hosts[other].name.clone()));
        let mut taken = Taken::default();
        for Cable { ends: (one, other), there, back } in cables {
            let wanted = format!("{}--{}", names[one], names[other]);
            let name = taken.fresh_cleaned(&wanted, LONGEST_LINK);
            sheet.links.push(Link::duplex(name, &names[one], &names[other], there, back));
        }
        Ok(sheet)
    }
}

/// The hosts with their nodes; a host added beside a node that is a bridge has that node's number twice.
fn hosts(nodes: &[Node], graph: &Graph, notes: &mut Notes) -> Result<Vec<(usize, Option<usize>)>> {
    let mut hosts: Vec<(usize, Option<usize>)> = graph.leaves().map(|node| (node, None)).collect();
    if hosts.len() < 2 {
        notes.add(0, "nodes", "too few have one link only: every other one also gets a host of its own");
        let others = graph.inner().filter(|&node| !nodes[node].bridge);
        hosts.extend(others.map(|node| (node, Some(node))));
    }
    ImportError::if_above(hosts.len(), MOST_HOSTS, 0, "hosts", "import a part of it")?;
    Ok(hosts)
}

/// Names for a note; none if there are none.
pub(super) fn listed(names: &[&str]) -> Option<String> {
    let first = names.first()?;
    Some(if names.len() > 8 { format!("{first} and others") } else { names.join(", ") })
}

/// Nodes and the links between them, by number.
pub(super) struct Graph {
    /// Whether a node is a bridge even with one link.
    is_bridge: Vec<bool>,
    degrees: Vec<usize>,
    ends: Vec<(usize, usize)>,
}

impl Graph {
    pub(super) fn of(is_bridge: Vec<bool>, ends: Vec<(usize, usize)>) -> Self {
        let mut degrees = vec![0; is_bridge.len()];
        for &(one, other) in &ends {
            degrees[one] += 1;
            degrees[other] += 1;
        }
        Self { is_bridge, degrees, ends }
    }

    fn is_leaf(&self, node: usize) -> bool {
        !self.is_bridge[node] && self.degrees[node] == 1
    }

    /// The nodes with one link, which are hosts.
    pub(super) fn leaves(&self) -> impl Iterator<Item = usize> {
        (0..self.degrees.len()).filter(|node| self.is_leaf(*node))
    }

    /// The others with links, which are bridges.
    pub(super) fn inner(&self) -> impl Iterator<Item = usize> {
        (0..self.degrees.len()).filter(|node| self.degrees[*node] > 0 && !self.is_leaf(*node))
    }

    /// The nodes without a link.
    pub(super) fn unlinked(&self) -> impl Iterator<Item = usize> {
        (0..self.degrees.len()).filter(|node| self.degrees[*node] == 0)
    }

    /// Hosts with only a link between them.
    pub(super) fn pairs(&self) -> Vec<[usize; 2]> {
        let pairs = self.ends.iter().map(|&(one, other)| [one, other]);
        pairs.filter(|pair| pair.iter().all(|node| self.is_leaf(*node))).collect()
    }

    /// The nodes joined by links, and whether links form a loop.
    pub(super) fn parts(&self) -> (DisjointSets, bool) {
        let (mut parts, mut has_loop) = (DisjointSets::new(self.degrees.len()), false);
        for &(one, other) in &self.ends {
            has_loop |= !parts.union(one, other);
        }
        (parts, has_loop)
    }
}

/// Two connected hosts by index, from their nodes: the first, and the last that it reaches.
pub(super) fn shown(mut parts: DisjointSets, nodes: &[usize]) -> Option<(usize, usize)> {
    let part_of: Vec<usize> = nodes.iter().map(|node| parts.find(*node)).collect();
    (0..nodes.len()).find_map(|one| {
        let other = (one + 1..nodes.len()).rev().find(|&other| part_of[other] == part_of[one])?;
        Some((one, other))
    })
}
