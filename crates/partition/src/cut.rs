//! The cut: which node is on which machine, what is cut, and the parts.

use crate::balance::{Edge, Problem, balance};
use crate::clusters::{Clusters, chain};
use crate::graph::{Cable, Graph, arithmetic, varies};
use crate::machines::Machines;
use crate::parts;
use crate::result::{Cut, Joined, Node, Partition, PartitionError, Share};
use crate::sections::{Sections, is_kept};
use longwire_assemble::{PlaceWork, WHOLE, place_work};
use longwire_prices::EnginePrices;
use longwire_scenario::{Plan, Wait};
use longwire_units::{Bytes, Nanos};
use std::collections::HashMap;

/// Assumed packets a second on paths without a bound.
const UNBOUNDED: u64 = 100_000;
/// Bytes that a tunnel adds to a frame, with the headers of UDP and IPv4.
const TUNNEL_BYTES: u64 = 68;
/// Picoseconds of a second, divided by a whole core in millionths.
const PER_MILLIONTH: u128 = 1_000_000;

/// Cuts `plan` for `machines`, if links are full of frames of that length.
///
/// # Errors
/// If it can't have parts at all; that it does not fit is a problem of the result.
pub fn partition(plan: &Plan, machines: &Machines, frame: Bytes) -> Result<Partition, PartitionError> {
    let sections = Sections::of(plan).map_err(PartitionError::Unsupported)?;
    if let Some(what) = sections.unsupported() {
        return Err(PartitionError::Unsupported(what.into()));
    }
    let (one, other) = machines.nearest();
    let graph = Graph::of(plan, &sections, machines.underlay(one, other));
    let clusters = Clusters::of(&graph);
    let mut cutter = Cutter::new((plan, machines, frame), &graph, clusters);
    let fixed = cutter.fixed()?;
    let problem = cutter.problem(fixed);
    let placed = balance(&problem);
    cutter.judge(&problem, &placed);
    let mut partition = cutter.result(&problem, &placed)?;
    if partition.problems.is_empty() {
        let places = cutter.clusters.of_vertex.iter().map(|cluster| cluster.map(|cluster| placed[cluster]));
        let places: Vec<Option<usize>> = places.collect();
        let cables: Vec<&Cable> = cutter.cut_cables(&placed).collect();
        partition.parts = parts::write((plan, machines), &sections, &graph, (&places, &cables))?;
    }
    Ok(partition)
}

struct Cutter<'a> {
    plan: &'a Plan,
    machines: &'a Machines,
    frame: Bytes,
    graph: &'a Graph<'a>,
    clusters: Clusters,
    /// By machine: its kind. Machines with the same prices are of one kind.
    kinds: Vec<usize>,
    /// By kind.
    prices: Vec<&'a EnginePrices>,
    /// By kind.
    work: Vec<PlaceWork>,
    problems: Vec<String>,
}

impl<'a> Cutter<'a> {
    fn new(
        (plan, machines, frame): (&'a Plan, &'a Machines, Bytes),
        graph: &'a Graph<'a>,
        clusters: Clusters,
    ) -> Self {
        let mut kinds = Vec::new();
        let mut prices: Vec<&'a EnginePrices> = Vec::new();
        for machine in &machines.list {
            let own = &machine.prices.engine;
            let known = prices.iter().position(|other| *other == own);
            kinds.push(known.unwrap_or(prices.len()));
            if known.is_none() {
                prices.push(own);
            }
        }
        let work = prices.iter().map(|prices| place_work(plan, prices, frame, UNBOUNDED)).collect();
        Self { plan, machines, frame, graph, clusters, kinds, prices, work, problems: Vec::new() }
    }

    fn cores(&self, machine: usize) -> u32 {
        self.machines.list[machine].cores.unwrap_or(self.plan.engine.workers)
    }

    /// By cluster: the machine where it must be.
    fn fixed(&mut self) -> Result<Vec<Option<usize>>, PartitionError> {
        let mut by_name: HashMap<&str, Vec<usize>> = HashMap::new();
        for (vertex, _, name) in self.graph.vertices() {
            by_name.entry(name).or_default().push(vertex);
        }
        let mut fixed: Vec<Option<(usize, usize)>> = vec![None; self.clusters.count];
        for (place, machine) in self.machines.list.iter().enumerate() {
            for name in &machine.nodes {
                let unknown =
                    || PartitionError::UnknownNode { machine: machine.name.clone(), name: name.clone() };
                for &vertex in by_name.get(name.as_str()).ok_or_else(unknown)? {
                    let Some(cluster) = self.clusters.of_vertex[vertex] else { continue };
                    match fixed[cluster] {
                        Some((other, before)) if other != place => {
                            let joins = chain(self.graph, before, vertex);
                            let why = joins.iter().map(|join| &*join.why).collect::<Vec<_>>().join("; ");
                            let there = &self.machines.list[other].name;
                            self.problems.push(format!(
                                "{name} is to be on {}, but what it can't be separated from is to be on \
                                 {there}: {why}; put them together",
                                machine.name
                            ));
                        }
                        _ => fixed[cluster] = Some((place, vertex)),
                    }
                }
            }
        }
        Ok(fixed.into_iter().map(|fixed| fixed.map(|(place, _)| place)).collect())
    }

    /// The cluster of a vertex; the joint of two ports is with the first of them.
    fn cluster(&self, vertex: usize) -> Option<usize> {
        self.clusters.of_vertex[vertex]
    }

    fn problem(&self, fixed: Vec<Option<usize>>) -> Problem {
        let count = self.machines.list.len();
        let needed = |one: usize, other: usize| {
            if one == other { Nanos::ZERO } else { self.machines.underlay(one, other).needed() }
        };
        let edge = |cable: &Cable| {
            let clusters = cable.vertices.map(|vertex| self.cluster(vertex));
            let [Some(one), Some(other)] = clusters else { return None };
            (one != other).then(|| Edge {
                clusters: [one, other],
                packets: cable.links.map(|link| self.packets(link)),
                delay: cable.delay,
            })
        };
        Problem {
            cores: (0..count).map(|machine| self.cores(machine).into()).collect(),
            kinds: self.kinds.clone(),
            work: self.work.iter().map(|work| self.cluster_work(work)).collect(),
            tunnels: self.prices.iter().map(|prices| self.tunnel_prices(prices)).collect(),
            needed: (0..count).map(|one| (0..count).map(|other| needed(one, other)).collect()).collect(),
            edges: self.graph.cables.iter().filter_map(edge).collect(),
            fixed,
        }
    }

    /// The work for a packet that a tunnel's end sends, and for one that it receives.
    fn tunnel_prices(&self, prices: &EnginePrices) -> [u128; 2] {
        ["transmit", "receive"].map(|what| {
            let byte = prices.price(&format!("tunnel-{what}-byte"));
            u128::from(prices.price(&format!("tunnel-{what}")) + self.frame.0 * byte)
        })
    }

    fn packets(&self, link: u32) -> u64 {
        self.work[0].links[link as usize].packets
    }

    /// By cluster: work on machines of a kind.
    fn cluster_work(&self, work: &PlaceWork) -> Vec<u128> {
        let plan = self.plan;
        let mut sums = vec![0u128; self.clusters.count];
        let mut add = |vertex: usize, more: u128| {
            if let Some(cluster) = self.clusters.of_vertex[vertex] {
                sums[cluster] += more;
            }
        };
        for (place, more) in (0u16..).zip(&work.ports) {
            add(self.graph.port_vertex(place), *more);
        }
        for (segment, more) in plan.segments.iter().zip(&work.segments) {
            match (segment.router, segment.bridges.first(), segment.ports.first()) {
                (Some(router), ..) => add(self.graph.router_vertex(router), *more),
                (None, Some(bridge), _) if self.cluster(self.graph.bridge_vertex(*bridge)).is_some() => {
                    add(self.graph.bridge_vertex(*bridge), *more);
                }
                (None, _, Some(port)) => add(self.graph.port_vertex(*port), *more),
                _ => {}
            }
        }
        for (link, at) in plan.links.iter().zip(&work.links) {
            add(self.graph.end_vertex(link.to), at.work);
        }
        sums
    }

    fn cut_cables<'s>(&'s self, placed: &'s [usize]) -> impl Iterator<Item = &'s Cable> {
        self.graph.cables.iter().filter(move |cable| {
            let [one, other] =
                cable.vertices.map(|vertex| self.cluster(vertex).map(|cluster| placed[cluster]));
            one != other
        })
    }

    /// Finds what does not work.
    fn judge(&mut self, problem: &Problem, placed: &[usize]) {
        let names = |machine: usize| &self.machines.list[machine].name;
        let mut problems = Vec::new();
        for cable in self.cut_cables(placed) {
            let [Some(one), Some(other)] = cable.vertices.map(|vertex| self.cluster(vertex)) else {
                continue;
            };
            let (one, other) = (placed[one], placed[other]);
            let underlay = self.machines.underlay(one, other);
            if cable.delay < underlay.needed() {
                problems.push(format!(
                    "the link {} would be cut between {} and {}: {}; raise its delay to {} or more, or put \
                     its ends together with nodes",
                    self.plan.links[cable.least as usize].name,
                    names(one),
                    names(other),
                    arithmetic(cable.delay, underlay),
                    underlay.needed()
                ));
            }
        }
        if self.clusters.count < self.machines.list.len() {
            problems.push(self.too_few());
        }
        for (machine, load) in self.loads(problem, placed).into_iter().enumerate() {
            let cores = self.cores(machine);
            let ppm = load.0 / PER_MILLIONTH;
            // A load that was assumed is no reason to refuse.
            if ppm > u128::from(cores) * 1_000_000 && !self.work[0].unbounded {
                problems.push(format!(
                    "the machine {} would need {}.{:02} cores and has {cores}: add a machine, or cores",
                    names(machine),
                    ppm / 1_000_000,
                    ppm % 1_000_000 / 10_000
                ));
            }
        }
        self.problems.append(&mut problems);
    }

    /// Why there are fewer clusters than machines.
    fn too_few(&self) -> String {
        let (count, machines) = (self.clusters.count, self.machines.list.len());
        let what = match count {
            1 => format!("nothing can be cut, and there are {machines} machines"),
            _ => format!("only {count} groups can be separated, and there are {machines} machines"),
        };
        let short = self.graph.joins.iter().filter_map(|join| Some((join, join.short?)));
        let longest = short.filter(|(_, link)| !varies(self.plan, *link));
        let longest = longest.max_by_key(|(_, link)| self.plan.shortest_delay(*link as usize));
        let (one, other) = self.machines.nearest();
        let needed = self.machines.underlay(one, other).needed();
        match longest {
            Some((join, _)) => {
                format!("{what}. The nearest to it is {}; raise the delay to {needed} or more", join.why)
            }
            None => format!("{what}: give some link a delay of {needed} or more in both directions"),
        }
    }

    /// By machine: work with tunnels, and that of tunnels.
    fn loads(&self, problem: &Problem, placed: &[usize]) -> Vec<(u128, u128)> {
        let mut loads = vec![(0u128, 0u128); self.machines.list.len()];
        for (cluster, &machine) in placed.iter().enumerate() {
            loads[machine].0 += problem.work_of(machine, cluster);
        }
        for edge in &problem.edges {
            let [one, other] = edge.clusters.map(|cluster| placed[cluster]);
            if one != other {
                for (machine, side) in [(one, 0), (other, 1)] {
                    let work = problem.tunnel_work(machine, edge, side);
                    loads[machine].0 += work;
                    loads[machine].1 += work;
                }
            }
        }
        loads
    }

    fn result(&self, problem: &Problem, placed: &[usize]) -> Result<Partition, PartitionError> {
        let vertices = self.graph.vertices();
        let mut why: HashMap<usize, &str> = HashMap::new();
        for join in &self.graph.joins {
            join.vertices.iter().for_each(|vertex| {
                why.entry(*vertex).or_insert(&join.why);
            });
        }
        let named: HashMap<usize, &str> = vertices.iter().map(|(vertex, _, name)| (*vertex, *name)).collect();
        let node = |&(vertex, kind, name): &(usize, &'static str, &str)| {
            let machine = placed[self.cluster(vertex)?];
            let wanted = self.machines.list[machine].nodes.iter().any(|node| node == name);
            let why = if wanted {
                "nodes of the machine names it"
            } else {
                why.get(&vertex).copied().unwrap_or("load")
            };
            Some(Node { kind, name: name.into(), machine, why: why.into() })
        };
        let nodes: Vec<Node> = vertices.iter().filter_map(node).collect();
        let loads = self.loads(problem, placed);
        let share = |(place, (load, tunnels)): (usize, (u128, u128))| {
            let (load_ppm, cores) = ((load / PER_MILLIONTH) as u64, self.cores(place));
            let all = u64::from(cores) * WHOLE;
            Share {
                name: self.machines.list[place].name.clone(),
                cores,
                load_ppm,
                tunnels_ppm: (tunnels / PER_MILLIONTH) as u64,
                taken_ppm: if self.plan.engine.wait == Wait::Spin { all } else { load_ppm.min(all) },
                nodes: nodes.iter().filter(|node| node.machine == place).count(),
            }
        };
        let machines = loads.into_iter().enumerate().map(share).collect();
        let joined = self.graph.joins.iter().map(|join| Joined {
            nodes: join.vertices.map(|vertex| named.get(&vertex).copied().unwrap_or_default().to_owned()),
            why: join.why.clone(),
            short_link: join.short.map(|link| self.plan.links[link as usize].name.to_string()),
        });
        Ok(Partition {
            machines,
            cuts: self.cuts(placed)?,
            joined: joined.collect(),
            problems: self.problems.clone(),
            unbounded: self.work[0].unbounded,
            left_out: self.left_out(),
            parts: Vec::new(),
            nodes,
        })
    }

    /// Names of the sources that no part has.
    fn left_out(&self) -> Vec<String> {
        let sources = self.plan.sources.iter().filter(|source| !is_kept(self.plan, source));
        sources.map(|source| source.name.to_string()).collect()
    }

    fn cuts(&self, placed: &[usize]) -> Result<Vec<Cut>, PartitionError> {
        let first = self.machines.first_port;
        let cables: Vec<&Cable> = self.cut_cables(placed).collect();
        if cables.len() > usize::from(u16::MAX - first) + 1 {
            return Err(PartitionError::Ports { cuts: cables.len(), first });
        }
        let cut = |(number, cable): (usize, &&Cable)| {
            let machines =
                cable.vertices.map(|vertex| self.cluster(vertex).map_or(0, |cluster| placed[cluster]));
            let packets_per_second = cable.links.map(|link| self.packets(link));
            let bits = |packets: u64| packets.saturating_mul((self.frame.0 + TUNNEL_BYTES) * 8);
            Cut {
                links: cable.links.map(|link| self.plan.links[link as usize].name.to_string()),
                machines,
                delay: cable.delay,
                underlay: self.machines.underlay(machines[0], machines[1]),
                packets_per_second,
                tunnel_bit_per_second: packets_per_second.map(bits),
                udp_port: first + number as u16,
            }
        };
        Ok(cables.iter().enumerate().map(cut).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_scenario::plan_of;

    /// A thousand pairs of hosts, each with a bridge between them, on 300 machines of which two are near each
    /// other: only between these the cables can be cut.
    #[test]
    fn cables_and_machines_are_not_multiplied() {
        let host = |name: &str, first: u32| {
            format!(
                "[[host]]\nname = \"{name}{{n}}\"\ncount = 1000\naddress = \"{{10.{first}.0.0 + n}}/8\"\n\
                 [[link]]\nname = \"{name}-cable{{n}}\"\ncount = 1000\n\
                 between = [\"{name}{{n}}\", \"net{{n}}\"]\nrate = \"10 Mbit/s\"\ndelay = \"1 ms\"\n"
            )
        };
        let bridges = "[[bridge]]\nname = \"net{n}\"\ncount = 1000\n";
        let plan = plan_of(&format!("{bridges}{}{}", host("a", 1), host("b", 2)));
        let mut machines = "latency = \"5 ms\"\nclock-error = \"30 us\"\nkey = \"k\"\n".to_owned();
        for number in 0..300 {
            let address = format!("192.0.{}.{}", number / 200, number % 200 + 1);
            machines += &format!("[[machine]]\nname = \"m{number}\"\naddress = \"{address}\"\n");
        }
        machines += "[[between]]\nmachines = [\"m0\", \"m1\"]\nlatency = \"100 us\"\n";
        let machines = Machines::read("m.toml", &machines).unwrap();
        let sections = Sections::of(&plan).unwrap();
        let (one, other) = machines.nearest();
        let graph = Graph::of(&plan, &sections, machines.underlay(one, other));
        let cutter = Cutter::new((&plan, &machines, Bytes(1514)), &graph, Clusters::of(&graph));
        let problem = cutter.problem(vec![None; cutter.clusters.count]);
        assert_eq!((problem.edges.len(), cutter.clusters.count), (2000, 3000));
        assert_eq!((problem.work.len(), problem.kinds.len()), (1, 300), "all have the same prices");
        let needed = [problem.needed[0][1], problem.needed[1][0], problem.needed[0][2], problem.needed[2][2]];
        assert_eq!(needed, [130, 130, 5030, 0].map(Nanos::from_micros));
        assert!(problem.edges.iter().all(|edge| edge.delay == Nanos::from_millis(1)));
    }
}
