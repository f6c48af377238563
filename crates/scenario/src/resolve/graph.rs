//! The graph of bridges and links: ports of bridges, segments, loops, shortest paths.

use super::links::Links;
use super::nodes::Nodes;
use super::{Entry, Resolver, some};
use crate::file::File;
use crate::plan::{End, Port, Segment};
use crate::settings::Routing;
use longwire_units::{DisjointSets, Nanos};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet, VecDeque};

/// A step from one bridge to another.
#[derive(Clone, Copy)]
struct Edge {
    to: u32,
    delay: u64,
    /// The link; none where only links chosen by addresses join the bridges: other packets cross unimpaired.
    link: Option<u32>,
}

/// The links as a graph.
pub(super) struct Graph {
    pub(super) routing: Routing,
    pub(super) segments: Vec<Segment>,
    /// By bridge: its segment, and its index there.
    places: Vec<(u32, u32)>,
    edges: Vec<Vec<Edge>>,
    /// The link from each port to its bridge, if there is one.
    pub(super) up: Vec<Option<u32>>,
    /// The link from its bridge to each port, if there is one.
    pub(super) down: Vec<Option<u32>>,
    /// Links from port to port.
    pub(super) direct: HashMap<(u16, u16), u32>,
}

/// Shortest paths from one bridge to all others of its segment.
pub(super) struct Tree {
    start: u32,
    /// By index in the segment: the bridge before, and the link from there.
    before: Vec<Option<(u32, Option<u32>)>>,
}

impl Graph {
    /// Shortest paths from `start` by delay, then number of links, then place of the links (Dijkstra).
    pub(super) fn tree(&self, start: u32) -> Tree {
        let (segment, _) = self.places[start as usize];
        let count = self.segments[segment as usize].bridges.len();
        let index = |bridge: u32| self.places[bridge as usize].1 as usize;
        let mut best = vec![(u64::MAX, u32::MAX); count];
        let mut before = vec![None; count];
        let mut heap = BinaryHeap::from([Reverse((0u64, 0u32, start))]);
        best[index(start)] = (0, 0);
        while let Some(Reverse((delay, hops, at))) = heap.pop() {
            if (delay, hops) > best[index(at)] {
                continue;
            }
            for edge in &self.edges[at as usize] {
                let there = (delay.saturating_add(edge.delay), hops + u32::from(edge.link.is_some()));
                if there < best[index(edge.to)] {
                    best[index(edge.to)] = there;
                    before[index(edge.to)] = Some((at, edge.link));
                    heap.push(Reverse((there.0, there.1, edge.to)));
                }
            }
        }
        Tree { start, before }
    }

    /// The links on a tree's path to `bridge`; none if there is no path.
    pub(super) fn path(&self, tree: &Tree, bridge: u32) -> Option<Vec<u32>> {
        let place = |bridge: u32| self.places[bridge as usize];
        if place(bridge).0 != place(tree.start).0 {
            return None;
        }
        let mut links = Vec::new();
        let mut at = bridge;
        while at != tree.start {
            let (before, link) = tree.before[place(at).1 as usize]?;
            links.extend(link);
            at = before;
        }
        links.reverse();
        Some(links)
    }
}

impl Resolver<'_, '_> {
    pub(super) fn graph(
        &mut self,
        file: &File,
        nodes: &mut Nodes,
        links: &Links,
        routing: Routing,
    ) -> Option<Graph> {
        self.attach_ports(nodes, links)?;
        let groups = self.join(nodes, links, routing)?;
        let segments = self.segments(nodes, groups, file);
        let mut places = vec![(0, 0); nodes.bridges.len()];
        for (number, segment) in (0..).zip(&segments) {
            for (index, &bridge) in (0..).zip(&segment.bridges) {
                places[bridge as usize] = (number, index);
            }
        }
        let mut graph = Graph {
            routing,
            segments,
            places,
            edges: vec![Vec::new(); nodes.bridges.len()],
            up: vec![None; nodes.ports.len()],
            down: vec![None; nodes.ports.len()],
            direct: HashMap::new(),
        };
        self.place_links(nodes, links, &mut graph);
        (!self.findings.failed()).then_some(graph)
    }

    /// Finds each port's bridge: the one it names, that of its link, or the only one.
    fn attach_ports(&mut self, nodes: &mut Nodes, links: &Links) -> Option<()> {
        let mut linked: Vec<Option<u32>> = vec![None; nodes.ports.len()];
        for (place, link) in links.links.iter().enumerate() {
            let (port, bridge) = match (link.from, link.to) {
                (End::Port(port), End::Bridge(bridge)) | (End::Bridge(bridge), End::Port(port)) => {
                    (port, bridge)
                }
                _ => continue,
            };
            let known = &mut linked[usize::from(port)];
            let wanted_bridge = nodes.wanted_bridges[usize::from(port)].as_ref().map(|(bridge, _)| *bridge);
            let other = wanted_bridge.or(*known).filter(|other| *other != bridge);
            *known = Some(bridge);
            if let Some(other) = other {
                let [name, here, there] = [
                    &nodes.ports[usize::from(port)].name,
                    &nodes.bridges[bridge as usize].name,
                    &nodes.bridges[other as usize].name,
                ];
                let what = format!(
                    "it joins \"{name}\" to the bridge \"{here}\", but \"{name}\" is attached to \"{there}\""
                );
                let fix =
                    "a host or port has one cable: link the bridges with each other, or correct the bridge";
                self.at_link(links, (place as u32, ""), what, fix);
            }
        }
        for (place, port) in nodes.ports.iter_mut().enumerate() {
            if port.router.is_some() || port.is_vacant() {
                port.bridge = Port::NO_BRIDGE;
                continue;
            }
            let only = (nodes.bridges.len() == 1).then_some(0);
            match nodes.wanted_bridges[place].as_ref().map(|(bridge, _)| *bridge).or(linked[place]).or(only) {
                Some(bridge) => {
                    port.bridge = bridge;
                    nodes.bridges[bridge as usize].ports.push(place as u16);
                }
                None => {
                    let entry = Entry { section: port.section(), name: Some(&port.name), n: None };
                    let known: Vec<&str> = nodes.bridges.iter().map(|bridge| &*bridge.name).collect();
                    let what = format!("it names no bridge; there are {}", some(&known));
                    let fix = format!("add bridge = \"{}\"", known[0]);
                    self.error(&nodes.spans[place], &entry, "", what, fix);
                }
            }
        }
        (!self.findings.failed()).then_some(())
    }

    /// Joins bridges by links into groups. A loop is an error unless routing allows it.
    fn join(&mut self, nodes: &Nodes, links: &Links, routing: Routing) -> Option<DisjointSets> {
        let count = nodes.bridges.len();
        let mut groups = DisjointSets::new(count);
        let mut cables: Vec<Vec<u32>> = vec![Vec::new(); count];
        // By pair of bridges: links not chosen by addresses, from the lower to the higher, and back.
        let mut pairs: HashMap<(u32, u32), [u32; 2]> = HashMap::new();
        for (place, link) in links.links.iter().enumerate() {
            let (End::Bridge(from), End::Bridge(to)) = (link.from, link.to) else { continue };
            let known = pairs.entry((from.min(to), from.max(to)));
            let fresh = matches!(known, std::collections::hash_map::Entry::Vacant(_));
            let way = &mut known.or_default()[usize::from(from > to)];
            *way += u32::from(!links.matched[place]);
            let double = *way > 1 && !links.matched[place];
            let closes = double || (fresh && !groups.union(from as usize, to as usize));
            if closes && routing == Routing::Tree {
                let round = if double { vec![from, to] } else { ring(&cables, from, to) };
                self.report_loop(nodes, links, place as u32, &round);
                return None;
            }
            if fresh {
                cables[from as usize].push(to);
                cables[to as usize].push(from);
            }
        }
        Some(groups)
    }

    fn report_loop(&mut self, nodes: &Nodes, links: &Links, place: u32, round: &[u32]) {
        let mut names: Vec<&str> =
            round.iter().map(|bridge| &*nodes.bridges[*bridge as usize].name).collect();
        names.push(names[0]);
        let way = if names.len() > 12 {
            format!("{} – … – {}", names[..6].join(" – "), names[names.len() - 5..].join(" – "))
        } else {
            names.join(" – ")
        };
        let what = format!("it closes a loop of bridges: {way}; a learning bridge would flood it for ever");
        let fix = "remove a link, or write routing = \"shortest-delay\" at the top of the file";
        self.at_link(links, (place, ""), what, fix);
    }

    fn segments(&mut self, nodes: &mut Nodes, mut groups: DisjointSets, file: &File) -> Vec<Segment> {
        let mut numbers: HashMap<usize, usize> = HashMap::new();
        let mut segments: Vec<Segment> = Vec::new();
        for (index, bridge) in nodes.bridges.iter_mut().enumerate() {
            let number = *numbers.entry(groups.find(index)).or_insert(segments.len());
            if number == segments.len() {
                let (ageing, table, wire) = (bridge.ageing, bridge.table, false);
                let (bridges, ports) = (Vec::new(), Vec::new());
                segments.push(Segment { router: None, bridges, ports, ageing, table, wire });
            }
            let segment = &mut segments[number];
            if bridge.ageing != segment.ageing {
                let span = file.bridge.first().map_or(0..0, |first| first.name.span.clone());
                let what =
                    "bridges that links join learn as one, but their ageing differs: the shortest applies";
                self.findings.note(span, "bridge", what.into(), "give them the same ageing");
            }
            bridge.segment = number as u32;
            segment.bridges.push(index as u32);
            segment.ports.extend(&bridge.ports);
            segment.ageing = segment.ageing.min(bridge.ageing);
            segment.table = segment.table.max(bridge.table);
        }
        for router in &mut nodes.routers {
            let number = segments.len();
            router.segment = number as u32;
            let ports = router.ports.iter().map(|port| port.place).collect();
            let router = nodes.ports[usize::from(router.ports[0].place)].router;
            let (bridges, ageing, table) = (Vec::new(), Nanos::NEVER, 0);
            segments.push(Segment { router, bridges, ports, ageing, table, wire: false });
        }
        for port in nodes.ports.iter_mut().filter(|port| !port.is_vacant()) {
            port.segment = match port.router {
                Some(router) => nodes.routers[router as usize].segment,
                None => nodes.bridges[port.bridge as usize].segment,
            };
        }
        for segment in &mut segments {
            segment.ports.sort_unstable();
            segment.wire = self.is_wire(segment, nodes, file);
        }
        segments
    }

    /// Whether a segment is a wire; one without exactly two ends is an error.
    fn is_wire(&mut self, segment: &Segment, nodes: &Nodes, file: &File) -> bool {
        let bridges = segment.bridges.iter().map(|&bridge| &nodes.bridges[bridge as usize]);
        let Some(wire) = bridges.clone().find(|bridge| bridge.wire) else { return false };
        let what = match (bridges.count(), segment.ports.len()) {
            (1, 2) => return true,
            (1, ends) => format!("a wire has two ends, and {ends} hosts and ports are attached to this one"),
            _ => "a wire has two ends, and links join this one to other bridges".to_owned(),
        };
        let wires = || file.bridge.iter().filter(|written| written.span("wire").is_some());
        let own = wires().find(|written| *written.name.text == *wire.name);
        // A template's name differs from each bridge's.
        let written = own.or_else(|| wires().next());
        let nowhere = 0..0;
        let span = written.and_then(|written| written.span("wire")).unwrap_or(&nowhere);
        let entry = Entry { section: "bridge", name: Some(&wire.name), n: None };
        let fix = "attach two hosts or ports with bridge = \"…\", or leave wire out";
        self.error(span, &entry, "wire", what, fix);
        false
    }

    fn place_links(&mut self, nodes: &Nodes, links: &Links, graph: &mut Graph) {
        let mut free: Vec<(u32, u32)> = Vec::new();
        let mut joined: HashSet<(u32, u32)> = HashSet::new();
        for (place, link) in links.links.iter().enumerate() {
            let at = place as u32;
            if links.matched[place] {
                if let (End::Bridge(from), End::Bridge(to)) = (link.from, link.to) {
                    free.push((from, to));
                }
                continue;
            }
            let taken = match (link.from, link.to) {
                (End::Port(from), End::Port(_)) if nodes.is_inner_of_router(from) => {
                    graph.down[usize::from(from)].replace(at)
                }
                (End::Port(from), End::Port(to)) => {
                    if nodes.ports[usize::from(from)].segment != nodes.ports[usize::from(to)].segment {
                        let what = "its ends are on bridges that no link joins: no packet would take it";
                        let fix = "put both ends on one bridge, or link the bridges";
                        self.at_link(links, (at, ""), what, fix);
                    }
                    graph.direct.insert((from, to), at)
                }
                (End::Port(port), End::Bridge(_)) => graph.up[usize::from(port)].replace(at),
                (End::Bridge(_), End::Port(port)) => graph.down[usize::from(port)].replace(at),
                (End::Bridge(from), End::Bridge(to)) => {
                    let delay = links.profiles[link.profile as usize].delays.mean.0;
                    graph.edges[from as usize].push(Edge { to, delay, link: Some(at) });
                    joined.insert((from, to));
                    None
                }
            };
            if let Some(other) = taken {
                let what = format!("\"{}\" has the same ends", links.links[other as usize].name);
                let fix =
                    "say which packets take which, with match = [{ source = \"…\", destination = \"…\" }]";
                self.at_link(links, (at, ""), what, fix);
            }
        }
        for (from, to) in free {
            if joined.insert((from, to)) {
                graph.edges[from as usize].push(Edge { to, delay: 0, link: None });
            }
        }
    }

    /// Reports an error of the link at `place`.
    pub(super) fn at_link(
        &mut self,
        links: &Links,
        (place, key): (u32, &str),
        what: impl Into<String>,
        fix: impl Into<String>,
    ) {
        let name = &links.links[place as usize].name;
        let entry = Entry { section: "link", name: Some(name), n: None };
        self.error(&links.spans[place as usize], &entry, key, what, fix);
    }
}

/// The bridges on the path from `from` to `to` along `cables`, which is a tree.
fn ring(cables: &[Vec<u32>], from: u32, to: u32) -> Vec<u32> {
    let mut before: Vec<Option<u32>> = vec![None; cables.len()];
    let mut waiting = VecDeque::from([from]);
    while let Some(at) = waiting.pop_front() {
        for next in &cables[at as usize] {
            if *next != from && before[*next as usize].is_none() {
                before[*next as usize] = Some(at);
                waiting.push_back(*next);
            }
        }
    }
    let mut way = vec![to];
    while let Some(at) = before[way[way.len() - 1] as usize] {
        way.push(at);
    }
    way.reverse();
    way
}
