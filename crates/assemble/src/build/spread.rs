//! Assignment of links and segments to workers where packets pass several of them: the less they cross
//! between workers the better, and over links of long delay if they do.

use super::cut::Graph;
use super::steps::{SHORT, Turns, crossing, groups};
use longwire_scenario::{Plan, Route};
use longwire_units::{DisjointSets, Nanos};
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

/// Least delays between workers to be tried, the longest first. Simulated runs advance in windows of at least
/// that delay, and none is longer than the first.
const LEADS: [Nanos; 7] = [
    Nanos::from_millis(10),
    Nanos::from_millis(5),
    Nanos::from_millis(2),
    Nanos::from_millis(1),
    Nanos::from_micros(500),
    Nanos::from_micros(200),
    Nanos::from_micros(100),
];

/// What a packet costs, measured with frames of 1000 bytes: to be received by a port and decided about, on a
/// link, and to be sent by a port.
const RECEIVE: u64 = 5;
const PASS: u64 = 2;
const SEND: u64 = 5;
/// What it costs to hand a packet over, and workers to meet, in nanoseconds of processor time. They wait for
/// each other then: their work in a window differs by about the root of its packets' steps.
const CROSS: u64 = 400;
const MEET: u64 = 5000;
const WAIT: u64 = 200;
/// Assumed packets a second of a port, or of a source without a rate, if nothing is known.
const ASSUMED: u64 = 10_000;

/// Packets a second on the routes of a plan: what its sources send; other ports send as much as one with
/// sources does, in the mean, and use each of their routes alike.
struct Offered {
    /// Of sources, by input and output port.
    by_ports: HashMap<(u16, u16), u64>,
    /// Of sources whose packets a rule selects by their addresses.
    by_addresses: HashMap<(IpAddr, IpAddr), u64>,
    /// By port: what it sends on a route of no source.
    unknown: Vec<u64>,
    /// What a rule selects by addresses of no source.
    unknown_by_addresses: u64,
}

impl Offered {
    fn of(plan: &Plan) -> Self {
        let rules = plan.address_rules.iter();
        let selected: HashSet<_> = rules.map(|rule| (rule.source, rule.destination)).collect();
        let (mut by_ports, mut by_addresses) = (HashMap::new(), HashMap::new());
        let (mut total, mut with_sources) = (0, HashSet::new());
        for source in &plan.sources {
            let packets = source.packets_per_second().unwrap_or(ASSUMED);
            let addresses = (source.source, source.destination);
            *if selected.contains(&addresses) {
                by_addresses.entry(addresses).or_default()
            } else {
                by_ports.entry((source.in_port, source.out_port)).or_default()
            } += packets;
            total += packets;
            with_sources.insert(source.in_port);
        }
        let usual = total.checked_div(with_sources.len() as u64).unwrap_or(ASSUMED);
        let mut routes = vec![0; plan.ports.len()];
        let existing = plan.pair_rules.iter().filter(|rule| rule.route.exists());
        existing.for_each(|rule| routes[usize::from(rule.in_port)] += 1);
        let unknown = (0u16..).zip(routes).map(|(place, routes): (u16, u64)| {
            let is_known = with_sources.contains(&place) || !plan.receives_from_outside(place);
            if is_known { 0 } else { (usual / routes.max(1)).max(1) }
        });
        let unknown_by_addresses = (usual / (selected.len() as u64).max(1)).max(1);
        Self { by_ports, by_addresses, unknown: unknown.collect(), unknown_by_addresses }
    }

    fn of_ports(&self, in_port: u16, out_port: u16) -> u64 {
        let known = self.by_ports.get(&(in_port, out_port)).copied();
        known.unwrap_or(self.unknown[usize::from(in_port)])
    }

    fn of_addresses(&self, addresses: (IpAddr, IpAddr)) -> u64 {
        self.by_addresses.get(&addresses).copied().unwrap_or(self.unknown_by_addresses)
    }
}

/// Links and segments with their work, and how many packets pass from one to the next. Segments are numbered
/// after the links.
struct Traffic {
    work: Vec<u64>,
    steps: Vec<(u32, u32, u64)>,
}

impl Traffic {
    fn of(plan: &Plan) -> Self {
        let (links, offered) = (plan.links.len() as u32, Offered::of(plan));
        // Those without traffic are shared out too.
        let mut traffic = Self { work: vec![1; plan.links.len() + plan.segments.len()], steps: Vec::new() };
        let node = |place: u16| links + plan.ports[usize::from(place)].segment;
        for rule in &plan.pair_rules {
            let far = plan.ports[usize::from(rule.out_port)].attachment.far();
            let ends = (Some(node(rule.in_port)), Some(node(far.unwrap_or(rule.out_port))));
            traffic.count(plan, (&rule.route, offered.of_ports(rule.in_port, rule.out_port)), ends);
        }
        for rule in &plan.address_rules {
            let packets = offered.of_addresses((rule.source, rule.destination));
            traffic.count(plan, (&rule.route, packets), (None, None));
        }
        traffic.steps.sort_unstable();
        traffic.steps.dedup_by(|next, first| {
            let same = (first.0, first.1) == (next.0, next.1);
            first.2 += if same { next.2 } else { 0 };
            same
        });
        traffic
    }

    /// Counts the packets of a route between two segments, if they are known.
    fn count(
        &mut self,
        plan: &Plan,
        (route, packets): (&Route, u64),
        (from, to): (Option<u32>, Option<u32>),
    ) {
        if packets == 0 || !route.exists() {
            return;
        }
        let links = plan.routes.links(route);
        let places = || from.into_iter().chain(links.iter().copied()).chain(to);
        links.iter().for_each(|&link| self.work[link as usize] += PASS * packets);
        from.into_iter().for_each(|node| self.work[node as usize] += RECEIVE * packets);
        to.into_iter().for_each(|node| self.work[node as usize] += SEND * packets);
        self.steps.extend(places().zip(places().skip(1)).map(|(one, next)| (one, next, packets)));
    }

    /// What it costs to cross between these workers, in nanoseconds of processor time a second: packets, and
    /// meetings after windows of simulated time, of which none is held without packets.
    fn cost(&self, workers: &[u32], lead: Nanos) -> u64 {
        let crosses = |step: &&(u32, u32, u64)| workers[step.0 as usize] != workers[step.1 as usize];
        let crossing: u64 = self.steps.iter().filter(crosses).map(|step| step.2).sum();
        let passing: u64 = self.steps.iter().map(|step| step.2).sum();
        let windows = (1_000_000_000 / lead.min(LEADS[0]).0.max(1)).clamp(1, passing.max(1));
        crossing * CROSS + windows * (MEET + WAIT * (passing / windows).isqrt())
    }
}

/// The workers of links, and of segments after them: about the same work for each, and few packets between
/// them, over links of long delay. Links of short delay stay with the next ones if that leaves enough to
/// choose from and costs less than shorter windows.
pub(super) fn spread(plan: &Plan, steps: &[(u32, u32)], turns: &Turns) -> Vec<u32> {
    let traffic = Traffic::of(plan);
    let share = traffic.work.iter().sum::<u64>() / u64::from(plan.engine.workers);
    let joined = |lead: Nanos| Clusters::of(groups(plan, steps, turns, lead), &traffic, plan.links.len());
    let cut = |clusters: Clusters| clusters.cut(&traffic, plan.engine.workers);
    let mut clusters: Vec<_> = LEADS.iter().map(|&lead| joined(lead)).collect();
    clusters.retain(|clusters| clusters.most <= share / 2);
    clusters.dedup_by(|next, first| next.numbers == first.numbers);
    let even = clusters.into_iter().map(cut).filter(|(heaviest, _)| *heaviest <= share + share / 16);
    let cost = |workers: &Vec<u32>| {
        let (links, segments) = workers.split_at(plan.links.len());
        let (_, lead) = crossing(plan, (steps, turns), links, segments);
        traffic.cost(workers, lead)
    };
    let cheapest = even.map(|(_, workers)| workers).min_by_key(cost);
    cheapest.unwrap_or_else(|| cut(joined(SHORT)).1)
}

/// Links and segments that share a worker.
struct Clusters {
    /// By link and segment: the number of its cluster.
    numbers: Vec<u32>,
    work: Vec<u64>,
    /// Most work of a cluster that has a link.
    most: u64,
}

impl Clusters {
    fn of(mut groups: DisjointSets, traffic: &Traffic, links: usize) -> Self {
        let (mut numbers, mut work) = (Vec::with_capacity(traffic.work.len()), Vec::new());
        for (place, own) in traffic.work.iter().enumerate() {
            let first = groups.find(place);
            let number = if first == place { work.len() as u32 } else { numbers[first] };
            if first == place {
                work.push(0);
            }
            work[number as usize] += own;
            numbers.push(number);
        }
        let most = numbers[..links].iter().map(|&number| work[number as usize]).max().unwrap_or(0);
        Self { numbers, work, most }
    }

    /// The most work of a part, and the part of each link and segment.
    fn cut(self, traffic: &Traffic, count: u32) -> (u64, Vec<u32>) {
        let Self { numbers, work, .. } = self;
        let number = |place: u32| numbers[place as usize];
        let joins = traffic.steps.iter().map(|&(one, next, passing)| (number(one), number(next), passing));
        let graph = Graph::new(work, &joins.collect::<Vec<_>>());
        let parts = graph.parts(count);
        let places: Vec<u32> = numbers.iter().map(|&number| parts[number as usize]).collect();
        let mut loads = vec![0; count as usize];
        places.iter().zip(&traffic.work).for_each(|(&part, work)| loads[part as usize] += work);
        (loads.into_iter().max().unwrap_or(0), places)
    }
}

#[cfg(test)]
mod tests {
    use super::super::steps::steps;
    use super::*;
    use std::fmt::Write;

    /// A ring of bridges, each with a port, in which every fifth cable has a delay of 20 ms, and the others
    /// 1 ms.
    fn ring(bridges: usize, workers: u32) -> Plan {
        let mut text = format!("routing = \"shortest-delay\"\n[engine]\nworkers = {workers}\n");
        for at in 0..bridges {
            let delay = if at % 5 == 0 { 20 } else { 1 };
            let _ = write!(
                text,
                "[[bridge]]\nname = \"b{at}\"\n[[port]]\nname = \"p{at}\"\ndriver = \"memory\"\nbridge \
                 = \"b{at}\"\n[[link]]\nname = \"l{at}\"\nbetween = [\"b{at}\", \"b{}\"]\ndelay = \
                 \"{delay} ms\"\n",
                (at + 1) % bridges
            );
        }
        longwire_scenario::plan_of(&text)
    }

    #[test]
    fn long_delays_are_cut_and_the_work_is_even() {
        // Of three workers one has the ports, and each of the others a direction of the ring.
        for (workers, delay) in [(2, Nanos::from_millis(20)), (3, Nanos::NEVER)] {
            let plan = ring(40, workers);
            let (steps, turns) = (steps(&plan), Turns::of(&plan));
            let found = spread(&plan, &steps, &turns);
            let (links, segments) = found.split_at(plan.links.len());
            let (_, lead) = crossing(&plan, (&steps, &turns), links, segments);
            assert_eq!(lead, delay, "{workers} workers");
            let traffic = Traffic::of(&plan);
            let mut loads = vec![0; workers as usize];
            found.iter().zip(&traffic.work).for_each(|(&worker, work)| loads[worker as usize] += work);
            let share = traffic.work.iter().sum::<u64>() / u64::from(workers);
            assert!(loads.iter().all(|load| load.abs_diff(share) <= share / 8), "{loads:?}");
        }
    }

    #[test]
    fn routes_are_counted() {
        let plan = ring(3, 2);
        let traffic = Traffic::of(&plan);
        // The cable of 20 ms is not used, and each direction of the others by two routes. Two of six routes
        // pass two links. Each port has two.
        let each = ASSUMED / 2;
        assert_eq!(traffic.work[..2], [1; 2]);
        assert_eq!(traffic.work[2..6], [1 + 2 * PASS * each; 4]);
        assert_eq!(traffic.work[6..], [1 + 6 * (RECEIVE + SEND) * each]);
        assert_eq!(traffic.steps.iter().map(|step| step.2).sum::<u64>(), (4 * 2 + 2 * 3) * each);
    }

    /// Over one link pass 1000 and 200 packets a second, over the other none, and nothing comes from the
    /// port of no source.
    #[test]
    fn sources_say_what_they_send() {
        let mut text = String::from("routing = \"shortest-delay\"\n[[bridge]]\nname = \"x\"\n");
        for (at, name) in ["a", "b"].into_iter().enumerate() {
            let _ = write!(
                text,
                "[[port]]\nname = \"{name}\"\ndriver = \"source\"\naddresses = \"10.0.0.{at}\"\n\
                 bridge = \"x\"\n",
            );
        }
        text += "[[link]]\nbetween = [\"a\", \"b\"]\n";
        for (name, interval) in [("s", "1 ms"), ("t", "5 ms")] {
            let _ = write!(
                text,
                "[[source]]\nname = \"{name}\"\nfrom = \"a\"\nto = \"b\"\nsize = \"100 B\"\n\
                 interval = \"{interval}\"\n"
            );
        }
        let traffic = Traffic::of(&longwire_scenario::plan_of(&text));
        assert_eq!(traffic.work, [1 + 1200 * PASS, 1, 1 + 1200 * (RECEIVE + SEND)]);
        assert!(traffic.steps.iter().all(|step| step.2 == 1200), "{:?}", traffic.steps);
    }

    /// 10 000 packets a second between two workers: they meet after windows that the links' delays allow.
    #[test]
    fn packets_and_meetings_have_their_price() {
        let traffic = Traffic { work: vec![1; 3], steps: vec![(0, 1, 10_000), (1, 2, 5000)] };
        let cost = |workers: [u32; 3], lead| traffic.cost(&workers, lead);
        assert_eq!(cost([0, 1, 1], Nanos::from_millis(10)), 10_000 * CROSS + 100 * (MEET + 12 * WAIT));
        assert_eq!(cost([0, 0, 1], Nanos::from_millis(1)), 5000 * CROSS + 1000 * (MEET + 3 * WAIT));
        assert_eq!(cost([0, 0, 0], Nanos::NEVER), 100 * (MEET + 12 * WAIT));
    }
}
