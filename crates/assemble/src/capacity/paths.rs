//! Paths of packets from port to port: by rules, through routers, from traffic sources, and straight across a
//! bridge.

use longwire_scenario::{End, Owners, Plan, Route, Source};
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;

/// Limits on the ports from which paths through routers are searched, and on the number of these paths.
const MOST_STARTS: usize = 100;
const MOST_PATHS: usize = 100_000;

/// A path of packets.
#[derive(Debug, Clone, Copy)]
pub(super) struct Path<'a> {
    /// Input and output port, if known.
    pub from: Option<u16>,
    pub to: Option<u16>,
    /// The links on it, in order.
    pub links: &'a [u32],
    /// The segments that decide about its packets, in order; empty if only that of `from` does.
    pub segments: &'a [u32],
    /// Packets per second, if a source defines them.
    pub offered: Option<u64>,
    /// Bytes of each packet, if a source defines them.
    pub bytes: Option<u64>,
}

/// A path that no single rule contains.
#[derive(Debug, Clone, PartialEq, Eq)]
struct OwnedPath {
    from: u16,
    to: u16,
    links: Box<[u32]>,
    segments: Box<[u32]>,
    offered: Option<u64>,
    bytes: Option<u64>,
}

/// All paths of a plan.
pub(super) struct Paths<'p> {
    plan: &'p Plan,
    /// What is behind ports.
    owners: Owners,
    owned: Vec<OwnedPath>,
    /// Whether some paths through routers were skipped.
    pub some_left_out: bool,
}

impl<'p> Paths<'p> {
    pub(super) fn of(plan: &'p Plan) -> Self {
        let graph = Graph::of(plan);
        let owners = Owners::of(&plan.ports);
        let mut paths = Self { plan, owners, owned: Vec::new(), some_left_out: false };
        paths.join_sources(&graph);
        if !plan.routers.is_empty() {
            paths.join_routers(&graph);
        }
        paths.join_neighbours(&graph);
        paths
    }

    /// Passes each path to `show`.
    pub(super) fn each(&self, mut show: impl FnMut(&Path<'_>)) {
        let plan = self.plan;
        for rule in plan.address_rules.iter().filter(|rule| rule.route.exists()) {
            let links = plan.routes.links(&rule.route);
            let ends = self.ends_by_address(links, (rule.source, rule.destination));
            if ends.0.is_none_or(|from| plan.receives_from_outside(from)) && !links.is_empty() {
                show(&Path::of_rule(ends, links));
            }
        }
        for rule in plan.pair_rules.iter().filter(|rule| rule.route.exists()) {
            let links = plan.routes.links(&rule.route);
            let ends = (rule.in_port, rule.out_port);
            if is_outer(plan, ends.0)
                && is_outer(plan, ends.1)
                && plan.receives_from_outside(ends.0)
                && !links.is_empty()
            {
                show(&Path::of_rule((Some(ends.0), Some(ends.1)), links));
            }
        }
        for path in &self.owned {
            show(&Path {
                from: Some(path.from),
                to: Some(path.to),
                links: &path.links,
                segments: &path.segments,
                offered: path.offered,
                bytes: path.bytes,
            });
        }
    }

    /// The ports of a path selected by addresses: where its links begin and end, else where the addresses
    /// are.
    fn ends_by_address(&self, links: &[u32], addresses: (IpAddr, IpAddr)) -> (Option<u16>, Option<u16>) {
        let end = |end: Option<End>, address: IpAddr| match end {
            Some(End::Port(place)) => Some(place),
            _ => self.owners.port(address),
        };
        let link = |place: Option<&u32>| place.map(|&place| &self.plan.links[place as usize]);
        (
            end(link(links.first()).map(|link| link.from), addresses.0),
            end(link(links.last()).map(|link| link.to), addresses.1),
        )
    }

    /// Adds the paths of sources.
    fn join_sources(&mut self, graph: &Graph<'_>) {
        let plan = self.plan;
        // In real time, packets from all other ports are sent by programs there.
        let run = |source: &&Source| !plan.receives_from_outside(source.in_port);
        if !plan.sources.iter().any(|source| run(&source)) {
            return;
        }
        let rules = plan.address_rules.iter().map(|rule| ((rule.source, rule.destination), rule.route));
        let by_address: HashMap<(IpAddr, IpAddr), Route> = rules.collect();
        let mut from_port: HashMap<u16, Vec<OwnedPath>> = HashMap::new();
        for source in plan.sources.iter().filter(run) {
            let (offered, bytes) = (source.packets_per_second(), Some(u64::from(source.size())));
            let own = by_address.get(&(source.source, source.destination)).filter(|route| route.exists());
            if let Some(route) = own {
                let (from, to) = (source.in_port, source.out_port);
                let links = plan.routes.links(route).into();
                self.owned.push(OwnedPath { from, to, links, segments: [].into(), offered, bytes });
                continue;
            }
            let paths = from_port.entry(source.in_port).or_insert_with(|| graph.from(source.in_port));
            if let Some(path) = paths.iter().find(|path| path.to == source.out_port) {
                self.owned.push(OwnedPath { offered, bytes, ..path.clone() });
            }
        }
    }

    /// Adds the paths between ports of different segments.
    fn join_routers(&mut self, graph: &Graph<'_>) {
        let plan = self.plan;
        let outer = || (0..plan.ports.len() as u16).filter(|&place| is_outer(plan, place));
        let starts: Vec<u16> = outer().filter(|&place| plan.receives_from_outside(place)).collect();
        self.some_left_out = starts.len() > MOST_STARTS;
        for start in starts.into_iter().take(MOST_STARTS) {
            let room = MOST_PATHS.saturating_sub(self.owned.len());
            let through = graph
                .from(start)
                .into_iter()
                .filter(|path| path.segments.len() > 1 || graph.is_router(path.segments.first().copied()));
            let before = self.owned.len();
            self.owned.extend(through.take(room));
            self.some_left_out |= self.owned.len() - before == room;
        }
    }

    /// Adds direct paths from ports without another path to the next port of their segment.
    fn join_neighbours(&mut self, graph: &Graph<'_>) {
        let mut met = vec![false; self.plan.ports.len()];
        self.each(|path| path.from.iter().chain(&path.to).for_each(|&place| met[usize::from(place)] = true));
        for ports in &graph.outer {
            for (at, &from) in ports.iter().enumerate() {
                let to = ports[(at + 1) % ports.len()];
                let straight = self.plan.pair_route(from, to).is_some_and(<[u32]>::is_empty);
                if met[usize::from(from)] || to == from || !straight || !self.plan.receives_from_outside(from)
                {
                    continue;
                }
                let (links, segments) = ([].into(), [self.plan.ports[usize::from(from)].segment].into());
                self.owned.push(OwnedPath { from, to, links, segments, offered: None, bytes: None });
            }
        }
    }
}

impl<'a> Path<'a> {
    fn of_rule((from, to): (Option<u16>, Option<u16>), links: &'a [u32]) -> Self {
        Self { from, to, links, segments: &[], offered: None, bytes: None }
    }
}

/// Whether packets enter or leave the engine at this port.
fn is_outer(plan: &Plan, place: u16) -> bool {
    plan.ports[usize::from(place)].attachment.is_outer()
}

/// The ports of each segment: those between nodes with their far ports, and outer ones.
struct Graph<'p> {
    plan: &'p Plan,
    inner: Vec<Vec<(u16, u16)>>,
    outer: Vec<Vec<u16>>,
}

impl<'p> Graph<'p> {
    fn of(plan: &'p Plan) -> Self {
        let mut graph = Self {
            plan,
            inner: vec![Vec::new(); plan.segments.len()],
            outer: vec![Vec::new(); plan.segments.len()],
        };
        for (place, port) in plan.ports.iter().enumerate() {
            let segment = port.segment as usize;
            if let Some(far) = port.attachment.far() {
                graph.inner[segment].push((place as u16, far));
            } else if port.attachment.is_outer() {
                graph.outer[segment].push(place as u16);
            }
        }
        graph
    }

    fn is_router(&self, segment: Option<u32>) -> bool {
        segment.is_some_and(|segment| self.plan.segments[segment as usize].router.is_some())
    }

    /// The paths with the fewest segments from a port to all others that it reaches.
    fn from(&self, start: u16) -> Vec<OwnedPath> {
        let segment_of = |place: u16| self.plan.ports[usize::from(place)].segment;
        let mut seen = vec![false; self.plan.segments.len()];
        let mut paths = Vec::new();
        seen[segment_of(start) as usize] = true;
        let mut waiting = VecDeque::from([(start, Vec::<u32>::new(), vec![segment_of(start)])]);
        while let Some((entry, links, segments)) = waiting.pop_front() {
            let at = segment_of(entry) as usize;
            let on = |out: u16| {
                let more = self.plan.pair_route(entry, out)?;
                Some([&links[..], more].concat())
            };
            for &to in self.outer[at].iter().filter(|&&to| to != start) {
                if let Some(links) = on(to) {
                    let (links, segments) = (links.into(), segments.clone().into());
                    paths.push(OwnedPath { from: start, to, links, segments, offered: None, bytes: None });
                }
            }
            for &(out, far) in self.inner[at].iter().filter(|(out, _)| *out != entry) {
                let next = segment_of(far);
                if seen[next as usize] {
                    continue;
                }
                if let Some(links) = on(out) {
                    seen[next as usize] = true;
                    waiting.push_back((far, links, [&segments[..], &[next]].concat()));
                }
            }
        }
        paths
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PORTS: &str =
        "[[port]]\nname = \"a\"\ndriver = \"memory\"\n[[port]]\nname = \"b\"\ndriver = \"memory\"\n";

    /// From, to, links, number of segments, and offered packet rate.
    type OfferedPath = (u16, u16, Vec<u32>, usize, Option<u64>);

    fn paths(text: &str) -> Vec<OfferedPath> {
        let plan = longwire_scenario::plan_of(text);
        let mut found = Vec::new();
        Paths::of(&plan).each(|path| {
            let (from, to) = (path.from.unwrap(), path.to.unwrap());
            found.push((from, to, path.links.to_vec(), path.segments.len(), path.offered));
        });
        found
    }

    #[test]
    fn rules_are_paths_and_other_packets_cross_directly() {
        let link = "[[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"1 Mbit/s\"\n";
        assert_eq!(paths(&format!("{PORTS}{link}")), [(0, 1, vec![0], 0, None)]);
        assert_eq!(paths(PORTS), [(0, 1, vec![], 1, None), (1, 0, vec![], 1, None)]);
    }

    /// 8 kbit/s of 100 bytes are ten packets a second; nothing comes in the other direction.
    #[test]
    fn sources_say_what_comes_from_their_ports() {
        let text = PORTS.replace("memory", "source")
            + "[[link]]\nbetween = [\"a\", \"b\"]\n\
               [[source]]\nname = \"s\"\nfrom = \"a\"\nto = \"b\"\nsize = \"100 B\"\nrate = \"8 kbit/s\"\n\
               [[source]]\nname = \"t\"\nfrom = \"a\"\nto = \"b\"\nsize = \"100 B\"\ninterval = \"1 ms\"\n";
        let text = text.replace(
            "driver = \"source\"\n[[port]]",
            "driver = \"source\"\naddresses = \"10.0.0.1\"\n[[port]]",
        );
        let text = text.replacen(
            "driver = \"source\"\n[[link]]",
            "driver = \"source\"\naddresses = \"10.0.0.2\"\n[[link]]",
            1,
        );
        assert_eq!(paths(&text), [(0, 1, vec![0], 1, Some(10)), (0, 1, vec![0], 1, Some(1000))]);
    }

    /// a on r1, r2 on b, a link between them: two routers decide.
    #[test]
    fn paths_through_routers_are_joined() {
        let port = |name: &str, address: &str| format!("{{ port = \"{name}\", addresses = \"{address}\" }}");
        let text = format!(
            "{PORTS}[[router]]\nname = \"r1\"\nports = [{}, {}]\n[[router]]\nname = \"r2\"\n\
             ports = [{}, {}]\n\
             [[link]]\nbetween = [\"r1-east\", \"r2-west\"]\n",
            port("a", "10.1.0.1/24"),
            port("r1-east", "10.9.0.1/30"),
            port("r2-west", "10.9.0.2/30"),
            port("b", "10.2.0.1/24"),
        );
        assert_eq!(paths(&text), [(0, 1, vec![0], 2, None), (1, 0, vec![1], 2, None)]);
    }
}
