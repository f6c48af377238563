//! Routes of all port pairs, and of address pairs that choose links and paths.

use super::graph::{Graph, Tree};
use super::nodes::Nodes;
use super::paths::{DeclaredPaths, Topology};
use super::{Entry, Resolver};
use crate::plan::{AddressRule, End, Link, Owners, PairRule, Port, Route, Routes, Segment};
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::ops::Range;

/// Most pairs of ports, and of addresses, with a route of their own.
const MOST_PAIRS: usize = 1 << 24;
/// Most links in the table, over all routes.
const MOST_LISTED: usize = 1 << 27;
/// Most trees that are kept: with very many bridges, each takes a megabyte.
const MOST_TREES: usize = 256;

impl Resolver<'_, '_> {
    /// The rules by port, ascending. None after an error.
    pub(super) fn pair_rules(
        &mut self,
        nodes: &Nodes,
        graph: &Graph,
        given: &DeclaredPaths,
        routes: &mut Routes,
    ) -> Option<Vec<PairRule>> {
        let mut rules = Vec::new();
        let special = special(graph, given, routes);
        let bare =
            |port: &u16| graph.up[usize::from(*port)].is_none() && graph.down[usize::from(*port)].is_none();
        let plain = |segment: &Segment| {
            segment.router.is_some() || segment.bridges.len() == 1 && segment.ports.iter().all(bare)
        };
        let plain: Vec<bool> = graph.segments.iter().map(plain).collect();
        for (number, segment) in graph.segments.iter().enumerate().filter(|(number, _)| !plain[*number]) {
            if self.pairs_of(segment, nodes, graph, &special, routes, &mut rules).is_none() {
                let what = format!("more than {MOST_PAIRS} pairs of ports have links between them");
                let fix = "use fewer ports: let several addresses share one, and choose links by match";
                let first = nodes.spans[usize::from(graph.segments[number].ports[0])].clone();
                return self.refuse(&first, &Entry::root(), "", what, fix);
            }
        }
        for ((in_port, out_port), route) in special {
            if plain[nodes.ports[usize::from(in_port)].segment as usize] && !routes.links(&route).is_empty() {
                rules.push(PairRule { in_port, out_port, route });
            }
        }
        self.out_of_routers(nodes, graph, routes, &mut rules)?;
        rules.sort_unstable_by_key(|rule: &PairRule| (rule.in_port, rule.out_port));
        Some(rules)
    }

    /// The rules of a segment with links or several bridges. None if there are too many.
    fn pairs_of(
        &mut self,
        segment: &Segment,
        nodes: &Nodes,
        graph: &Graph,
        special: &HashMap<(u16, u16), Route>,
        routes: &mut Routes,
        rules: &mut Vec<PairRule>,
    ) -> Option<()> {
        let (mut first_unreachable, mut unreachable) = (None, 0);
        let manned =
            || segment.bridges.iter().copied().filter(|b| !nodes.bridges[*b as usize].ports.is_empty());
        for here in manned() {
            let tree = graph.tree(here);
            for there in manned() {
                let core = graph.path(&tree, there);
                let shared = core.as_ref().filter(|core| !core.is_empty()).map(|core| routes.add(core));
                for &in_port in &nodes.bridges[here as usize].ports {
                    for &out_port in nodes.bridges[there as usize].ports.iter().filter(|out| **out != in_port)
                    {
                        if rules.len() >= MOST_PAIRS || routes.listed() >= MOST_LISTED {
                            return None;
                        }
                        let ends = (graph.up[usize::from(in_port)], graph.down[usize::from(out_port)]);
                        let route = match (special.get(&(in_port, out_port)), &core, ends) {
                            (Some(route), ..) if routes.links(route).is_empty() => None,
                            (Some(route), ..) => Some(*route),
                            (None, None, _) => {
                                first_unreachable.get_or_insert((in_port, out_port));
                                unreachable += 1;
                                Some(Route::NONE)
                            }
                            (None, Some(_), (None, None)) => shared,
                            (None, Some(core), (up, down)) => {
                                let whole: Vec<u32> = up.iter().chain(core).chain(&down).copied().collect();
                                Some(routes.add(&whole))
                            }
                        };
                        rules.extend(route.map(|route| PairRule { in_port, out_port, route }));
                    }
                }
            }
        }
        if let Some(first) = first_unreachable {
            self.report_unreachable(first, unreachable, nodes);
        }
        Some(())
    }

    /// The rules between routers: packets that leave by a router's own port take the link there, including
    /// those that the router makes. None if there are too many.
    fn out_of_routers(
        &mut self,
        nodes: &Nodes,
        graph: &Graph,
        routes: &mut Routes,
        rules: &mut Vec<PairRule>,
    ) -> Option<()> {
        for router in &nodes.routers {
            for out_port in router.ports.iter().map(|port| port.place) {
                let Some(link) =
                    graph.down[usize::from(out_port)].filter(|_| nodes.is_inner_of_router(out_port))
                else {
                    continue;
                };
                if rules.len() + router.ports.len() > MOST_PAIRS {
                    let what = format!("more than {MOST_PAIRS} pairs of ports have links between them");
                    let span = nodes.spans[usize::from(out_port)].clone();
                    let fix = "use more routers with fewer ports each";
                    return self.refuse(&span, &Entry::root(), "", what, fix);
                }
                let route = routes.add(&[link]);
                let pair = |in_port| PairRule { in_port, out_port, route };
                rules.extend(router.ports.iter().map(|port| pair(port.place)));
            }
        }
        Some(())
    }

    /// Warns about the first of `count` pairs of ports without a path.
    fn report_unreachable(&mut self, (from, to): (u16, u16), count: usize, nodes: &Nodes) {
        let [from, to] = [from, to].map(usize::from);
        let others = match count {
            1 => String::new(),
            more => format!(" (nor do {} other pairs)", more - 1),
        };
        let what = format!(
            "there is no path from here to \"{}\"{others}: such packets are dropped",
            nodes.ports[to].name
        );
        let port = &nodes.ports[from];
        let field = Entry { section: port.section(), name: Some(&port.name), n: None }.field("");
        let fix = "add a link for that direction, or use between";
        self.findings.note(nodes.spans[from].clone(), &field, what, fix);
    }

    /// The rules by address: those of the file, and those of hosts with a link or path between them.
    pub(super) fn address_rules(
        &mut self,
        known: Topology<'_>,
        given: &DeclaredPaths,
        owners: &Owners,
        routes: &mut Routes,
    ) -> Vec<AddressRule> {
        let mut rules: Vec<AddressRule> = Vec::with_capacity(known.links.matches.len());
        let mut spans: Vec<Range<usize>> = Vec::with_capacity(known.links.matches.len());
        let mut trees: HashMap<u32, Tree> = HashMap::new();
        for (links, (source, destination, span)) in &given.by_addresses {
            rules.push(AddressRule { source: *source, destination: *destination, route: routes.add(links) });
            spans.push(span.clone());
        }
        for (place, (source, destination, span)) in &known.links.matches {
            let link = &known.links.links[*place as usize];
            let ends = (owners.port(*source), owners.port(*destination));
            if !self.belongs(link, (*source, *destination), ends, known, span) && self.findings.full() {
                break;
            }
            let way = around(link, *place, ends, known, &mut trees);
            let Some(way) = way else {
                let entry = Entry { section: "link", name: Some(&link.name), n: None };
                let what = format!("no links lead from {source} over this one to {destination}");
                self.error(span, &entry, "match", what, "add the links that are missing");
                break;
            };
            rules.push(AddressRule { source: *source, destination: *destination, route: routes.add(&way) });
            spans.push(span.clone());
        }
        self.report_duplicates(&rules, &spans);
        if known.nodes.own_ports.is_empty() {
            self.add_hosts(known, given, routes, &mut rules);
        }
        rules
    }

    /// Whether the addresses are behind the link's ends, as far as known.
    fn belongs(
        &mut self,
        link: &Link,
        addresses: (IpAddr, IpAddr),
        ends: (Option<u16>, Option<u16>),
        known: Topology<'_>,
        span: &Range<usize>,
    ) -> bool {
        let entry = Entry { section: "link", name: Some(&link.name), n: None };
        let sides = [(addresses.0, ends.0, link.from, "begins"), (addresses.1, ends.1, link.to, "ends")];
        sides.into_iter().all(|(address, owner, end, verb)| {
            let (Some(owner), End::Port(port)) = (owner, end) else { return true };
            self.lies_behind((&entry, span), address, (owner, port), verb, known.nodes).is_some()
        })
    }

    /// Reports address pairs with several routes.
    fn report_duplicates(&mut self, rules: &[AddressRule], spans: &[Range<usize>]) {
        let key = |index: &u32| {
            let rule = &rules[*index as usize];
            (rule.source, rule.destination)
        };
        let mut order: Vec<u32> = (0..rules.len() as u32).collect();
        order.sort_unstable_by_key(|index| (key(index), *index));
        for pair in order.windows(2).filter(|pair| key(&pair[0]) == key(&pair[1])) {
            if self.findings.full() {
                return;
            }
            let (source, destination) = key(&pair[0]);
            let what = format!("packets from {source} to {destination} have a link or a path already");
            self.error(&spans[pair[1] as usize], &Entry::root(), "match", what, "keep one of the two");
        }
    }

    /// Adds host pairs with a link or path of their own: a rule for each pair of their addresses.
    fn add_hosts(
        &mut self,
        known: Topology<'_>,
        given: &DeclaredPaths,
        routes: &mut Routes,
        rules: &mut Vec<AddressRule>,
    ) {
        let direct = known.graph.direct.iter().filter(|(pair, _)| !given.by_ports.contains_key(pair));
        let mut pairs: Vec<((u16, u16), Vec<u32>)> =
            direct.map(|(pair, link)| (*pair, vec![*link])).collect();
        pairs.extend(given.by_ports.iter().map(|(pair, links)| (*pair, links.clone())));
        pairs.sort_unstable();
        let own = rules.iter().filter(|_| !pairs.is_empty());
        let taken: HashSet<(IpAddr, IpAddr)> = own.map(|rule| (rule.source, rule.destination)).collect();
        let host = |port: u16| match known.nodes.ports[usize::from(port)].attachment.host() {
            Some(index) => &known.nodes.hosts[index as usize].addresses[..],
            None => &[],
        };
        for ((from, to), links) in pairs {
            let of_family = |is_v4: bool| {
                let all = host(to).iter().map(|net| net.address);
                all.filter(|address| address.is_ipv4() == is_v4).collect::<Vec<_>>()
            };
            let (v4, v6) = (of_family(true), of_family(false));
            let near = |source: IpAddr| if source.is_ipv4() { &v4 } else { &v6 };
            let sources = || host(from).iter().map(|net| net.address);
            if rules.len() + sources().map(|source| near(source).len()).sum::<usize>() > MOST_PAIRS {
                let what = format!("more than {MOST_PAIRS} pairs of addresses have links between them");
                let fix = "give the hosts fewer addresses, or let links join them to a bridge";
                return self.error(&known.nodes.spans[usize::from(from)], &Entry::root(), "", what, fix);
            }
            let mut route = None;
            for source in sources() {
                for &destination in near(source).iter().filter(|to| !taken.contains(&(source, **to))) {
                    let route = *route.get_or_insert_with(|| routes.add(&links));
                    rules.push(AddressRule { source, destination, route });
                }
            }
        }
    }
}

/// Port pairs with a link or path of their own.
fn special(graph: &Graph, given: &DeclaredPaths, routes: &mut Routes) -> HashMap<(u16, u16), Route> {
    let direct = graph.direct.iter().map(|(pair, link)| (*pair, std::slice::from_ref(link)));
    let mut all: Vec<((u16, u16), &[u32])> =
        direct.chain(given.by_ports.iter().map(|(p, l)| (*p, &l[..]))).collect();
    // In order, so that the table of routes is deterministic. If a pair has both, the path comes second and
    // stays.
    all.sort_by_key(|(pair, _)| *pair);
    all.into_iter().map(|(pair, links)| (pair, routes.add(links))).collect()
}

/// The whole path of packets for which a link is chosen: to the link, over it, and on. None if there is none.
fn around(
    link: &Link,
    place: u32,
    (source, destination): (Option<u16>, Option<u16>),
    known: Topology<'_>,
    trees: &mut HashMap<u32, Tree>,
) -> Option<Vec<u32>> {
    let Topology { nodes, graph, .. } = known;
    let mut between = |from: u32, to: u32| {
        // A router's port is on no bridge.
        if [from, to].contains(&Port::NO_BRIDGE) {
            return None;
        }
        if trees.len() == MOST_TREES && !trees.contains_key(&from) {
            trees.clear();
        }
        graph.path(trees.entry(from).or_insert_with(|| graph.tree(from)), to)
    };
    let mut way = Vec::new();
    if let (End::Bridge(begin), Some(port)) = (link.from, source) {
        way.extend(graph.up[usize::from(port)]);
        way.extend(between(nodes.ports[usize::from(port)].bridge, begin)?);
    }
    way.push(place);
    if let (End::Bridge(end), Some(port)) = (link.to, destination) {
        way.extend(between(end, nodes.ports[usize::from(port)].bridge)?);
        way.extend(graph.down[usize::from(port)]);
    }
    Some(way)
}
