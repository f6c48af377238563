//! Assignment of links and segments to workers where packets pass several of them: the less they cross
//! between workers the better, and over links of long delay if they do.

use super::cut::Graph;
use super::steps::{SHORT, Turns, groups};
use longwire_scenario::{Plan, Route};
use longwire_units::{DisjointSets, Nanos};

/// Least delays between workers to be tried, the longest first. Simulated runs advance in windows of that
/// delay, and none is longer than the first.
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
const RECEIVE: u64 = 4;
const PASS: u64 = 2;
const SEND: u64 = 3;

/// Links and segments with their work, and how many packets pass from one to the next, if each of the plan's
/// routes is used alike. Segments are numbered after the links.
struct Traffic {
    work: Vec<u64>,
    steps: Vec<(u32, u32, u64)>,
}

impl Traffic {
    fn of(plan: &Plan) -> Self {
        let links = plan.links.len() as u32;
        // Those without traffic are shared out too.
        let mut traffic = Self { work: vec![1; plan.links.len() + plan.segments.len()], steps: Vec::new() };
        let node = |place: u16| links + plan.ports[usize::from(place)].segment;
        for rule in &plan.pair_rules {
            let far = plan.ports[usize::from(rule.out_port)].attachment.far();
            let ends = (Some(node(rule.in_port)), Some(node(far.unwrap_or(rule.out_port))));
            traffic.count(plan, &rule.route, ends);
        }
        for rule in &plan.address_rules {
            traffic.count(plan, &rule.route, (None, None));
        }
        traffic.steps.sort_unstable();
        traffic.steps.dedup_by(|next, first| {
            let same = (first.0, first.1) == (next.0, next.1);
            first.2 += if same { next.2 } else { 0 };
            same
        });
        traffic
    }

    /// Counts a route between two segments, if they are known.
    fn count(&mut self, plan: &Plan, route: &Route, (from, to): (Option<u32>, Option<u32>)) {
        if !route.exists() {
            return;
        }
        let links = plan.routes.links(route);
        let places = || from.into_iter().chain(links.iter().copied()).chain(to);
        links.iter().for_each(|&link| self.work[link as usize] += PASS);
        from.into_iter().for_each(|node| self.work[node as usize] += RECEIVE);
        to.into_iter().for_each(|node| self.work[node as usize] += SEND);
        self.steps.extend(places().zip(places().skip(1)).map(|(one, next)| (one, next, 1)));
    }
}

/// The workers of links, and of segments after them: about the same work for each, and few packets between
/// them. Links of short delay stay with the next ones as long as that leaves enough to choose from.
pub(super) fn spread(plan: &Plan, steps: &[(u32, u32)], turns: &Turns) -> Vec<u32> {
    let traffic = Traffic::of(plan);
    let share = traffic.work.iter().sum::<u64>() / u64::from(plan.engine.workers);
    let joined = |lead: Nanos| Clusters::of(groups(plan, steps, turns, lead), &traffic, plan.links.len());
    let small = |clusters: &Clusters| clusters.most <= share / 2;
    let longer = LEADS.iter().map(|&lead| joined(lead)).filter(small);
    let cut = |clusters: Clusters| clusters.cut(&traffic, plan.engine.workers);
    let mut even = longer.map(cut).filter(|(heaviest, _)| *heaviest <= share + share / 16);
    let (_, workers) = even.next().unwrap_or_else(|| cut(joined(SHORT)));
    workers
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
    use super::super::steps::{crossing, steps};
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
        for workers in [2, 3] {
            let plan = ring(40, workers);
            let (steps, turns) = (steps(&plan), Turns::of(&plan));
            let found = spread(&plan, &steps, &turns);
            let (links, segments) = found.split_at(plan.links.len());
            let (_, lead) = crossing(&plan, (&steps, &turns), links, segments);
            assert_eq!(lead, Nanos::from_millis(20), "{workers} workers");
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
        // pass two links.
        assert_eq!(traffic.work[..2], [1; 2]);
        assert_eq!(traffic.work[2..6], [1 + 2 * PASS; 4]);
        assert_eq!(traffic.work[6..], [1 + 6 * (RECEIVE + SEND)]);
        assert_eq!(traffic.steps.iter().map(|step| step.2).sum::<u64>(), 4 * 2 + 2 * 3);
    }
}
