//! The network described by an ns script, and its conversion to a scenario.
//!
//! A node with one link becomes a host, one with several a bridge; a LAN becomes a bridge too, with cables to
//! its nodes.

use super::ns_queue::{Dialect, Queue};
use super::quantity::{Share, rate_text};
use super::sheet::{Event, Host, Link, Sheet, Taken, host_address, name_of};
use super::stage::{Stage, block};
use super::wiring::{Graph, listed, shown};
use super::{ImportError, Notes, Result};
use longwire_scenario::quoted;
use longwire_units::Nanos;
use std::collections::{BTreeMap, BTreeSet};

/// Most hosts.
const MOST_HOSTS: usize = 60_000;
/// Longest names, without a number behind them.
const LONGEST_NAME: usize = 50;

/// A rate without limit.
const UNLIMITED: &str = "unlimited";

/// Nodes, links and their changes.
#[derive(Debug, Default)]
pub(super) struct Topology {
    pub(super) nodes: Vec<Node>,
    pub(super) edges: Vec<Edge>,
    pub(super) changes: Vec<Change>,
    /// The dialect of the script.
    pub(super) dialect: Dialect,
}

/// A node, or a LAN.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) name: Option<String>,
    /// The script's variable that holds it.
    pub(super) variable: Option<String>,
    pub(super) lan: bool,
}

/// A link between two nodes, or a node's cable to a LAN.
#[derive(Debug)]
pub(super) struct Edge {
    pub(super) line: usize,
    pub(super) name: Option<String>,
    pub(super) ends: (usize, usize),
    pub(super) duplex: bool,
    pub(super) there: Direction,
    pub(super) back: Direction,
}

/// One direction of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Direction {
    pub(super) rate: u64,
    pub(super) delay: Nanos,
    pub(super) loss: Share,
    /// Whether packets are lost after the queue instead of before it.
    pub(super) loss_behind: bool,
    pub(super) queue: Queue,
}

/// One direction of an edge: the edge's number, and whether it is the forward direction.
pub(super) type Half = (usize, bool);

/// A setting of a direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Setting {
    Rate(u64),
    Delay(Nanos),
    Loss(Share),
    Up(bool),
}

/// A change of a link at a time.
#[derive(Debug, Clone)]
pub(super) struct Change {
    pub(super) time: Nanos,
    /// Period, and number of repetitions, if limited.
    pub(super) every: Option<(Nanos, Option<u64>)>,
    pub(super) edge: usize,
    /// Which directions: there, back.
    pub(super) directions: [bool; 2],
    /// Keys and their values as TOML.
    pub(super) settings: Vec<(&'static str, String)>,
}

impl Topology {
    /// The scenario.
    pub(super) fn sheet(&self, notes: &mut Notes) -> Result<Sheet> {
        let graph = self.graph();
        let mut names = self.names();
        let mut sheet = Sheet::new(self.dialect.title());
        let leaves: Vec<usize> = graph.leaves().collect();
        let inner: Vec<usize> = graph.inner().collect();
        for node in graph.unlinked() {
            notes.add(0, &names.nodes[node], "it has no link, and is left out");
        }
        self.explain(&inner, &names, notes);
        sheet.bridges = inner.iter().map(|node| names.nodes[*node].clone()).collect();
        let mut hosts: Vec<(String, Option<String>)> =
            leaves.iter().map(|node| (names.nodes[*node].clone(), None)).collect();
        // The node of each host.
        let mut places = leaves.clone();
        if leaves.len() < 2 {
            for node in inner.iter().filter(|node| !self.nodes[**node].lan) {
                let bridge = names.nodes[*node].clone();
                hosts.push((names.fresh(&format!("{bridge}-host")), Some(bridge)));
                places.push(*node);
            }
            notes.add(0, "nodes", "too few have one link only: every other node also gets a host of its own");
        }
        pairs(&graph, &leaves, &mut names, &mut sheet, &mut hosts);
        ImportError::if_above(hosts.len(), MOST_HOSTS, 0, "hosts", "import a part of the script")?;
        for (at, (name, bridge)) in hosts.iter().enumerate() {
            let address = host_address(at + 1, hosts.len());
            sheet.hosts.push(Host { name: name.clone(), address, bridge: bridge.clone() });
        }
        let (parts, has_loop) = graph.parts();
        sheet.shown =
            shown(parts, &places).map(|(one, other)| (hosts[one].0.clone(), hosts[other].0.clone()));
        sheet.shortest = has_loop;
        if has_loop {
            let why = "where there are several paths, packets take the one with the least delay here, with \
                the fewest links there";
            notes.add(0, "routing", why);
        }
        self.links(&mut names, &mut sheet, notes)?;
        Ok(sheet)
    }

    /// The links that end at a node or LAN: of a LAN, all its cables.
    pub(super) fn edges_of(&self, node: usize) -> impl Iterator<Item = usize> {
        self.edges.iter().enumerate().filter(move |(_, edge)| edge.ends.1 == node).map(|(at, _)| at)
    }

    /// Nodes and links, of which two simplex ones between the same two are one.
    fn graph(&self) -> Graph {
        let mut simplex = BTreeSet::new();
        let is_first = |edge: &&Edge| {
            let (one, other) = edge.ends;
            edge.duplex || simplex.insert((one.min(other), one.max(other)))
        };
        let ends = self.edges.iter().filter(is_first).map(|edge| edge.ends).collect();
        Graph::of(self.nodes.iter().map(|node| node.lan).collect(), ends)
    }

    fn names(&self) -> Names {
        let mut names = Names::default();
        for (at, node) in self.nodes.iter().enumerate() {
            let name =
                node.name.clone().unwrap_or_else(|| format!("{}{at}", if node.lan { "lan" } else { "node" }));
            let name = names.fresh(&name_of(&name));
            names.nodes.push(name);
        }
        names
    }

    fn explain(&self, inner: &[usize], names: &Names, notes: &mut Notes) {
        let routers: Vec<&str> =
            inner.iter().filter(|node| !self.nodes[**node].lan).map(|node| &*names.nodes[*node]).collect();
        if let Some(all) = listed(&routers) {
            let why = "nodes with several links are bridges here, and all hosts are in one subnet: packets \
                take the same links";
            notes.add(0, &all, why);
        }
    }

    fn links(&self, names: &mut Names, sheet: &mut Sheet, notes: &mut Notes) -> Result<()> {
        let mut switched = BTreeSet::new();
        for change in &self.changes {
            if change.settings.iter().any(|(key, _)| *key == "state") {
                switched.insert(change.edge);
            }
        }
        let mut link_names = BTreeMap::new();
        for (at, edge) in self.edges.iter().enumerate() {
            let ends = (names.nodes[edge.ends.0].clone(), names.nodes[edge.ends.1].clone());
            let wanted = edge.name.as_deref().map_or_else(|| format!("{}-{}", ends.0, ends.1), name_of);
            let name = names.links.fresh(cut(&wanted));
            link_names.insert(at, name.clone());
            let mut stage = |direction: &Direction| {
                direction.stage(edge.line, switched.contains(&at), self.dialect, notes)
            };
            let mut link = Link::simplex(name, &ends.0, &ends.1, stage(&edge.there)?);
            if edge.duplex {
                link.duplex = true;
                if edge.there != edge.back {
                    link.forward = std::mem::take(&mut link.stage);
                    link.backward = stage(&edge.back)?;
                }
            }
            sheet.links.push(link);
        }
        self.events(&link_names, sheet);
        Ok(())
    }

    /// The changes in time order: consecutive changes of a link at one time are one event.
    fn events(&self, link_names: &BTreeMap<usize, String>, sheet: &mut Sheet) {
        let mut changes: Vec<&Change> = self.changes.iter().collect();
        changes.sort_by_key(|change| change.time);
        let mut last: BTreeMap<String, usize> = BTreeMap::new();
        for change in changes {
            let duplex = self.edges[change.edge].duplex;
            let directions: &[(usize, &str)] =
                if duplex { &[(0, ".forward"), (1, ".backward")] } else { &[(0, "")] };
            for (_, suffix) in directions.iter().filter(|(direction, _)| change.directions[*direction]) {
                let link = format!("{}{suffix}", link_names[&change.edge]);
                let (time, every, settings) = (change.time, change.every, change.settings.clone());
                let before = last.get(&link).map(|at| &mut sheet.events[*at]);
                if let Some(event) = before.filter(|event| (event.time, event.every) == (time, every)) {
                    let again = |key: &str| settings.iter().any(|(other, _)| *other == key);
                    event.settings.retain(|(key, _)| !again(key));
                    event.settings.extend(settings);
                    continue;
                }
                last.insert(link.clone(), sheet.events.len());
                sheet.events.push(Event { time, every, link, settings });
            }
        }
    }
}

/// Two hosts with only a link between them share a bridge, if there are other bridges. The first hosts are
/// the leaves, in their order.
fn pairs(
    graph: &Graph,
    leaves: &[usize],
    names: &mut Names,
    sheet: &mut Sheet,
    hosts: &mut [(String, Option<String>)],
) {
    let alone = graph.pairs();
    if sheet.bridges.is_empty() && alone.len() == 1 {
        return;
    }
    for pair in alone.into_iter().map(|pair| pair.map(|node| leaves.partition_point(|leaf| *leaf < node))) {
        let bridge = names.fresh(&format!("{}-{}-net", hosts[pair[0]].0, hosts[pair[1]].0));
        for place in pair {
            hosts[place].1 = Some(bridge.clone());
        }
        sheet.bridges.push(bridge);
    }
}

impl Direction {
    fn stage(&self, line: usize, switched: bool, dialect: Dialect, notes: &mut Notes) -> Result<Stage> {
        let mut stage = Stage::default();
        if switched {
            stage.set("state", "up");
        }
        // Without a rate a link is unlimited.
        let rate = written_rate(line, self.rate, dialect, notes)?;
        if rate != UNLIMITED {
            stage.set("rate", &rate);
        }
        if self.delay > Nanos::ZERO {
            stage.set("delay", &self.delay.to_string());
        }
        if self.loss > Share::ZERO {
            stage.settings.push(("loss".into(), self.loss_text()));
        }
        self.queue.write(line, dialect, (self.rate, self.delay), &mut stage, notes);
        Ok(stage)
    }

    /// Sets its rate, delay or loss; being up is none of these.
    pub(super) fn apply(&mut self, setting: Setting) {
        match setting {
            Setting::Rate(rate) => self.rate = rate,
            Setting::Delay(delay) => self.delay = delay,
            Setting::Loss(loss) => self.loss = loss,
            Setting::Up(_) => {}
        }
    }

    /// The loss as TOML.
    pub(super) fn loss_text(&self) -> String {
        if self.loss_behind {
            return block("independent", &[("probability", self.loss.text()), ("where", "wire".to_owned())]);
        }
        quoted(&self.loss.text())
    }
}

/// A rate in scenario syntax. Zero means no limit in dummynet, which Emulab uses; in ns-2 a packet would then
/// take for ever (delay.h, `txtime`).
pub(super) fn written_rate(line: usize, rate: u64, dialect: Dialect, notes: &mut Notes) -> Result<String> {
    if rate > 0 {
        return rate_text(line, rate);
    }
    let (text, why) = match dialect {
        Dialect::Emulab => {
            (UNLIMITED, "dummynet, and so Emulab, sends without a limit then, and so does the link here")
        }
        Dialect::Ns2 => (
            "0",
            "in ns-2 the next packet takes for ever, and what waits behind it, too; here packets wait, and \
             go on when there is a rate again",
        ),
    };
    notes.add(line, "a bandwidth of 0", why);
    Ok(text.into())
}

/// Names that are taken.
#[derive(Default)]
struct Names {
    nodes: Vec<String>,
    taken: Taken,
    links: Taken,
}

impl Names {
    fn fresh(&mut self, wanted: &str) -> String {
        self.taken.fresh(cut(wanted))
    }
}

/// The beginning of a name.
fn cut(name: &str) -> &str {
    name.char_indices().nth(LONGEST_NAME).map_or(name, |(end, _)| &name[..end])
}
