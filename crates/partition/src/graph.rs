//! The scenario as a graph for cutting: hosts, ports, bridges and routers, joined by cables, which can be
//! cut, or by what can't.

use crate::machines::Underlay;
use crate::sections::{Sections, is_kept};
use longwire_scenario::{End, Event, Plan, Port, Routing};
use longwire_units::Nanos;
use std::collections::{BTreeMap, HashMap, HashSet};

/// The key of a link's MTU.
const MTU: &str = "mtu";

/// Links between two ends, in both directions: from the lower to the higher, and back.
type Groups = BTreeMap<[End; 2], [Vec<u32>; 2]>;

/// Two vertices that must be on one machine.
#[derive(Debug, Clone)]
pub(crate) struct Join {
    pub(crate) vertices: [usize; 2],
    /// Why, as a clause.
    pub(crate) why: String,
    /// The link whose delay is too short, if that is why.
    pub(crate) short: Option<u32>,
}

/// A pair of links between two vertices, which may be on two machines.
#[derive(Debug, Clone)]
pub(crate) struct Cable {
    pub(crate) ends: [End; 2],
    pub(crate) vertices: [usize; 2],
    /// Places of the links: from the first end to the second, and back.
    pub(crate) links: [u32; 2],
    /// The lesser of their least delays, and whose it is.
    pub(crate) delay: Nanos,
    pub(crate) least: u32,
}

/// See the module.
pub(crate) struct Graph<'p> {
    plan: &'p Plan,
    pub(crate) joins: Vec<Join>,
    pub(crate) cables: Vec<Cable>,
}

impl<'p> Graph<'p> {
    /// The graph; a link that is too short for the `best` network between two machines is never cut.
    pub(crate) fn of(plan: &'p Plan, sections: &Sections, best: Underlay) -> Self {
        let mut graph = Self { plan, joins: Vec::new(), cables: Vec::new() };
        let groups = graph.groups();
        graph.attach(&groups);
        let reasons = Reasons::of(plan, sections, &groups, best);
        for (ends, links) in &groups {
            let vertices = ends.map(|end| graph.end_vertex(end));
            if vertices[0] == vertices[1] {
                continue;
            }
            match graph.refusal(*ends, links, &reasons) {
                Some((why, short)) => graph.joins.push(Join { vertices, why, short }),
                None => {
                    let links = [links[0][0], links[1][0]];
                    let (delay, least) = lesser_delay(plan, links);
                    graph.cables.push(Cable { ends: *ends, vertices, links, delay, least });
                }
            }
        }
        graph.join_by_name(sections);
        graph.join_sources();
        graph
    }

    /// How many vertices there could be; some numbers are not used.
    pub(crate) fn size(&self) -> usize {
        self.plan.ports.len() + self.plan.bridges.len() + self.plan.routers.len()
    }

    pub(crate) fn bridge_vertex(&self, bridge: u32) -> usize {
        self.plan.ports.len() + bridge as usize
    }

    pub(crate) fn router_vertex(&self, router: u32) -> usize {
        self.plan.ports.len() + self.plan.bridges.len() + router as usize
    }

    /// The vertex of a port: its own, or the router's whose port it is.
    pub(crate) fn port_vertex(&self, place: u16) -> usize {
        let port = &self.plan.ports[usize::from(place)];
        if let Some(end) = port.attachment.control() {
            return self.router_vertex(end.router);
        }
        let far = port.attachment.far().filter(|_| port.router.is_none());
        let own = far.map_or(port, |far| &self.plan.ports[usize::from(far)]);
        match own.router {
            Some(router) if !port.attachment.is_outer() => self.router_vertex(router),
            _ => usize::from(place),
        }
    }

    pub(crate) fn end_vertex(&self, end: End) -> usize {
        match end {
            End::Bridge(bridge) => self.bridge_vertex(bridge),
            End::Port(place) => self.port_vertex(place),
        }
    }

    /// Kind and name of each vertex that is used, with its number.
    pub(crate) fn vertices(&self) -> Vec<(usize, &'static str, &'p str)> {
        let plan = self.plan;
        let ports = plan.ports.iter().enumerate().filter(|(_, port)| port.attachment.is_outer());
        let ports = ports.map(|(place, port)| {
            let kind = if port.attachment.host().is_some() { "host" } else { "port" };
            (place, kind, &*port.name)
        });
        let linked: HashSet<End> = plan.links.iter().flat_map(|link| [link.from, link.to]).collect();
        let used = |index: u32, ports: &[u16]| !ports.is_empty() || linked.contains(&End::Bridge(index));
        let bridges = (0u32..).zip(&plan.bridges).filter(|(index, bridge)| used(*index, &bridge.ports));
        let bridges = bridges.filter(|(index, _)| !self.is_wire(*index));
        let bridges = bridges.map(|(index, bridge)| (self.bridge_vertex(index), "bridge", &*bridge.name));
        let routers = (0u32..).zip(&plan.routers);
        let routers = routers.map(|(index, router)| (self.router_vertex(index), "router", &*router.name));
        ports.chain(bridges).chain(routers).collect()
    }

    /// Whether a bridge is nothing but the joint of two ports.
    fn is_wire(&self, bridge: u32) -> bool {
        let bridge = &self.plan.bridges[bridge as usize];
        !bridge.declared && bridge.ports.len() == 2
    }

    fn groups(&self) -> Groups {
        let mut groups = Groups::new();
        for (place, link) in (0u32..).zip(&self.plan.links) {
            let back = usize::from(link.from > link.to);
            groups.entry([link.from.min(link.to), link.from.max(link.to)]).or_default()[back].push(place);
        }
        groups
    }

    /// Joins ports to routers, and to bridges that they reach without a link.
    fn attach(&mut self, groups: &Groups) {
        let plan = self.plan;
        let name = |place: u16| &plan.ports[usize::from(place)].name;
        for (place, port) in (0u16..).zip(&plan.ports) {
            if let (true, Some(router)) = (port.attachment.is_outer(), port.router) {
                let why =
                    format!("{} is a port of the router {}", port.name, plan.routers[router as usize].name);
                self.join([usize::from(place), self.router_vertex(router)], why);
            }
            if port.is_vacant() || port.bridge == Port::NO_BRIDGE {
                continue;
            }
            let vertex = self.port_vertex(place);
            let bridge = &plan.bridges[port.bridge as usize];
            if self.is_wire(port.bridge) {
                let (one, other) = (bridge.ports[0], bridge.ports[1]);
                if place == one && !groups.contains_key(&[End::Port(one), End::Port(other)]) {
                    let why = format!("no link is between {} and {}", name(one), name(other));
                    self.join([vertex, self.port_vertex(other)], why);
                }
            } else if !groups.contains_key(&[End::Bridge(port.bridge), End::Port(place)]) {
                let why = format!("{} is on the bridge {} without a link", port.name, bridge.name);
                self.join([vertex, self.bridge_vertex(port.bridge)], why);
            }
        }
    }

    fn join(&mut self, vertices: [usize; 2], why: String) {
        self.joins.push(Join { vertices, why, short: None });
    }

    /// Joins what paths and media name.
    fn join_by_name(&mut self, sections: &Sections) {
        let plan = self.plan;
        let outer = (0u16..).zip(&plan.ports).filter(|(_, port)| port.attachment.is_outer());
        let ports: HashMap<&str, usize> =
            outer.map(|(place, port)| (&*port.name, self.port_vertex(place))).collect();
        for (from, to) in sections.path_ends() {
            if let (Some(from), Some(to)) = (ports.get(from), ports.get(to)) {
                self.join([*from, *to], "an explicit [[path]] joins them".into());
            }
        }
        for medium in &plan.media {
            let ends = medium.links.iter().flat_map(|link| {
                let link = &plan.links[*link as usize];
                [link.from, link.to]
            });
            let vertices: Vec<usize> = ends.map(|end| self.end_vertex(end)).collect();
            for pair in vertices.windows(2).filter(|pair| pair[0] != pair[1]) {
                self.join([pair[0], pair[1]], format!("the medium {} is shared by them", medium.name));
            }
        }
    }

    /// Joins what the scenario's own traffic passes: a source counts what arrives.
    fn join_sources(&mut self) {
        let plan = self.plan;
        let segment = |place: u16| plan.ports[usize::from(place)].segment;
        for (place, source) in plan.sources.iter().enumerate().filter(|(_, source)| is_kept(plan, source)) {
            let why = format!("the traffic source {} sends over it", source.name);
            for aim in plan.aims(place) {
                self.join([self.port_vertex(source.in_port), self.port_vertex(aim)], why.clone());
                let by_address = plan
                    .address_rules
                    .iter()
                    .filter(|rule| (rule.source, rule.destination) == (source.source, source.destination))
                    .flat_map(|rule| plan.routes.links(&rule.route));
                let path =
                    plan.pair_route(source.in_port, aim).filter(|_| segment(source.in_port) == segment(aim));
                let vertices: Vec<[usize; 2]> = match path {
                    Some(links) => {
                        let links = links.iter().chain(by_address).map(|link| &plan.links[*link as usize]);
                        links.map(|link| [link.from, link.to].map(|end| self.end_vertex(end))).collect()
                    }
                    // Routers are on its path, and may change it.
                    None => self.cables.iter().map(|cable| cable.vertices).collect(),
                };
                vertices.into_iter().for_each(|vertices| self.join(vertices, why.clone()));
            }
        }
    }

    /// Why the links between two ends can't be cut, and the link that is too short, if that is why.
    fn refusal(
        &self,
        ends: [End; 2],
        links: &[Vec<u32>; 2],
        reasons: &Reasons<'_>,
    ) -> Option<(String, Option<u32>)> {
        let plan = self.plan;
        let name = |link: u32| &plan.links[link as usize].name;
        let [there, back] = [&links[0][..], &links[1][..]];
        let (&[there], &[back]) = (there, back) else {
            let [from, to] = ends.map(|end| plan.end_name(end));
            let why = match (there, back) {
                ([], _) => format!("packets from {from} to {to} take no link"),
                (_, []) => format!("packets from {to} to {from} take no link"),
                _ => format!("several links lead from {from} to {to}, or back"),
            };
            return Some((why, None));
        };
        if let [End::Port(one), End::Port(_)] = ends
            && let bridge = plan.ports[usize::from(one)].bridge
            && bridge != Port::NO_BRIDGE
            && !self.is_wire(bridge)
        {
            let bridge = &plan.bridges[bridge as usize].name;
            let why = format!("the link {} joins two of the ports of the bridge {bridge}", name(there));
            return Some((why, None));
        }
        let fixed = [there, back].into_iter().find_map(|link| {
            reasons.of_link(plan, link).map(|why| (format!("the link {}: {why}", name(link)), None))
        });
        fixed.or_else(|| {
            if reasons.loops.contains(&ends) {
                let why = format!("the link {} is part of a loop of bridges, or between two", name(there));
                return Some((why, None));
            }
            let (delay, least) = lesser_delay(plan, [there, back]);
            let best = reasons.best;
            (delay < best.needed()).then(|| {
                let varies = if varies(plan, least) { "its delay varies; at the least " } else { "" };
                let why = format!("the link {}: {varies}{}", name(least), arithmetic(delay, best));
                (why, Some(least))
            })
        })
    }
}

/// The lesser of the least delays of two links, and whose it is: the first one's if they are equal.
fn lesser_delay(plan: &Plan, links: [u32; 2]) -> (Nanos, u32) {
    let [there, back] = links.map(|link| (plan.shortest_delay(link as usize), link));
    if back.0 < there.0 { back } else { there }
}

/// Whether packets may be faster on a link than on average.
pub(crate) fn varies(plan: &Plan, link: u32) -> bool {
    plan.profile(link as usize).delays.mean > plan.shortest_delay(link as usize)
}

/// The comparison of a delay with what a cut needs.
pub(crate) fn arithmetic(delay: Nanos, underlay: Underlay) -> String {
    let sign = if delay < underlay.needed() { '<' } else { '≥' };
    format!("delay {delay} {sign} latency {} + clock error {}", underlay.latency, underlay.clock_error)
}

/// What is known about links that can't be cut.
struct Reasons<'s> {
    fixed: HashMap<String, &'static str>,
    choosing: HashSet<&'s str>,
    /// Links that a filter or program chooses, and those instead of which it does.
    chosen: HashSet<u32>,
    in_media: HashSet<u32>,
    /// Links that have an MTU, from the start or by an event.
    narrow: HashSet<u32>,
    /// Ends of links between bridges that are in loops.
    loops: HashSet<[End; 2]>,
    best: Underlay,
}

impl<'s> Reasons<'s> {
    fn of(plan: &Plan, sections: &'s Sections, groups: &Groups, best: Underlay) -> Self {
        let steered = plan.steers.iter().flat_map(|steer| [steer.link, steer.target]);
        let requested = plan.link_requests.iter().flat_map(|request| [request.link, request.target]);
        let has_mtu =
            |place: &u32| plan.profile(*place as usize).blocks.iter().any(|(spec, _)| spec.key == MTU);
        let sets_mtu = |event: &&Event| event.edits.iter().any(|edit| edit.spec.key == MTU);
        let later = plan.events.iter().filter(sets_mtu).flat_map(|event| event.links.iter().copied());
        Self {
            fixed: sections.fixed_links(),
            choosing: sections.choosing_routers(),
            chosen: steered.chain(requested).collect(),
            in_media: plan.media.iter().flat_map(|medium| &medium.links).copied().collect(),
            narrow: (0..plan.links.len() as u32).filter(has_mtu).chain(later).collect(),
            loops: if plan.routing == Routing::Tree { HashSet::new() } else { loops(groups) },
            best,
        }
    }

    /// Why a link can't be cut, apart from its delay and its ends.
    fn of_link(&self, plan: &Plan, place: u32) -> Option<String> {
        let link = &plan.links[place as usize];
        if let Some(why) = self.fixed.get(&*link.name) {
            return Some((*why).to_owned());
        }
        if self.chosen.contains(&place) {
            return Some("filters or programs choose between it and another".into());
        }
        if self.in_media.contains(&place) {
            return Some("it sends on a medium, which is at one place".into());
        }
        if self.narrow.contains(&place) {
            return Some("it answers its sender at once when a packet is too long (mtu)".into());
        }
        let End::Port(from) = link.from else { return None };
        let port = &plan.ports[usize::from(from)];
        let far = port.attachment.far().map(|far| &plan.ports[usize::from(far)]);
        let router =
            port.router.or_else(|| far?.router).map(|router| &*plan.routers[router as usize].name)?;
        self.choosing
            .contains(router)
            .then(|| format!("a program of the router {router} chooses its band or links"))
    }
}

/// The ends of links between bridges that remain when those to bridges with a single neighbour are taken
/// away, again and again: all that are in a loop, or between two loops.
fn loops(groups: &Groups) -> HashSet<[End; 2]> {
    let bridges = |ends: &&[End; 2]| matches!(ends, [End::Bridge(_), End::Bridge(_)]);
    let mut left: HashSet<[End; 2]> = groups.keys().filter(bridges).copied().collect();
    let mut at: HashMap<End, HashSet<[End; 2]>> = HashMap::new();
    for ends in &left {
        ends.iter().for_each(|end| {
            at.entry(*end).or_default().insert(*ends);
        });
    }
    let mut leaves: Vec<End> = at.iter().filter(|(_, edges)| edges.len() == 1).map(|(end, _)| *end).collect();
    while let Some(leaf) = leaves.pop() {
        let Some(edge) = at.get(&leaf).and_then(|edges| edges.iter().next().copied()) else { continue };
        left.remove(&edge);
        for end in edge {
            let edges = at.entry(end).or_default();
            edges.remove(&edge);
            if edges.len() == 1 {
                leaves.push(end);
            }
        }
    }
    left
}
