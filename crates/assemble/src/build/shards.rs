//! Assignment of links to workers.

use super::spread::spread;
use super::steps::{SHORT, Turns, crossing, groups, steps};
use longwire_scenario::{End, Mapping, Plan};
use longwire_units::Nanos;
use std::ops::Range;

/// The distribution of links over the workers.
pub(crate) struct Shards {
    /// By link: its worker.
    pub link_workers: Vec<u32>,
    /// By link: whether its packets go on to another worker's link.
    pub crossing: Vec<bool>,
    /// The lowest delay of those; never if there are none.
    pub lead: Nanos,
    /// Whether links need not be served in exact order: no route is longer than one link, no medium is
    /// shared, and no node decides in turn.
    pub flat: bool,
    /// By segment: its (first) worker, and whether it decides in turn.
    pub segment_workers: Vec<u32>,
    pub in_turn: Vec<bool>,
}

impl Shards {
    pub(crate) fn of(plan: &Plan) -> Self {
        let steps = steps(plan);
        let turns = Turns::of(plan);
        let (link_workers, segment_workers) = assign(plan, &steps, &turns);
        let (crossing, lead) = crossing(plan, (&steps, &turns), &link_workers, &segment_workers);
        let flat = steps.is_empty() && plan.media.is_empty() && plan.steers.is_empty();
        let in_turn = turns.segments;
        Self {
            link_workers,
            crossing,
            lead,
            flat: flat && !in_turn.contains(&true),
            segment_workers,
            in_turn,
        }
    }
}

/// The workers for segments, with their ports, and those for links: all for both, or in a pipeline disjoint
/// ranges. One pipeline worker in three has links, or more if there are not enough segments for the others.
fn stages(plan: &Plan) -> (Range<u32>, Range<u32>) {
    let workers = plan.engine.workers;
    if plan.engine.mapping != Mapping::Pipeline {
        return (0..workers, 0..workers);
    }
    let links = (workers / 3).max(1);
    let ports = (workers - links).min(plan.segments.len() as u32).max(1);
    (0..ports, ports..workers)
}

/// By link: the segment from whose ports packets enter it first.
fn entrances(plan: &Plan) -> Vec<Option<u32>> {
    let mut entrances = vec![None; plan.links.len()];
    for rule in plan.pair_rules.iter().filter(|rule| rule.route.exists()) {
        if let Some(&first) = plan.routes.links(&rule.route).first() {
            entrances[first as usize].get_or_insert(plan.ports[usize::from(rule.in_port)].segment);
        }
    }
    // Links selected by addresses are spread over all workers, unless their node is at several.
    for (link, entrance) in plan.links.iter().zip(&mut entrances).filter(|(_, known)| known.is_none()) {
        let segment = match link.from {
            End::Port(place) => plan.ports[usize::from(place)].segment,
            End::Bridge(bridge) => plan.bridges[bridge as usize].segment,
        };
        *entrance = (plan.segment_queues(segment) > 1).then_some(segment);
    }
    entrances
}

/// Whether packets pass several links or nodes, any of which may be at any worker.
fn crosses(plan: &Plan, steps: &[(u32, u32)], turns: &Turns) -> bool {
    let several = !steps.is_empty() || turns.segments.contains(&true);
    let alone = (0..plan.segments.len() as u32).all(|segment| plan.segment_queues(segment) == 1);
    several && alone && plan.engine.mapping != Mapping::Pipeline
}

/// Assigns groups of links that must share a worker. If packets pass several, [`spread`] cuts
/// the graph. Otherwise, in the plan's order, each group goes to the worker from
/// whose ports packets enter it, unless that has more than its share of the links, else to the worker with
/// the fewest.
fn assign(plan: &Plan, steps: &[(u32, u32)], turns: &Turns) -> (Vec<u32>, Vec<u32>) {
    let (links, segments) = (plan.links.len() as u32, plan.segments.len() as u32);
    if plan.engine.workers == 1 {
        return (vec![0; links as usize], vec![0; segments as usize]);
    }
    if crosses(plan, steps, turns) {
        let mut link_workers = spread(plan, steps, turns);
        let segment_workers = link_workers.split_off(links as usize);
        return (link_workers, segment_workers);
    }
    let mut groups = groups(plan, steps, turns, SHORT);
    let (with_ports, with_links) = stages(plan);
    let entrances = entrances(plan);
    let deciding = turns.segments.iter().filter(|decides| **decides).count() as u32;
    let share = (links + deciding).div_ceil(with_links.len() as u32);
    let mut load = vec![0; plan.engine.workers as usize];
    let mut worker_of = vec![u32::MAX; (links + segments) as usize];
    // A group with a segment that decides in turn is placed among the workers for segments.
    for segment in (links..links + segments).filter(|&node| turns.segments[(node - links) as usize]) {
        let group = groups.find(segment as usize);
        if worker_of[group] == u32::MAX {
            worker_of[group] = lightest(&load, &with_ports);
        }
        load[worker_of[group] as usize] += 1;
    }
    let home = |segment: u32| match plan.segment_queues(segment) {
        1 => with_ports.start + segment % with_ports.len() as u32,
        _ => 0,
    };
    for link in 0..links {
        let group = groups.find(link as usize);
        if worker_of[group] == u32::MAX {
            // Where several workers receive, their links are distributed among them.
            let home = entrances[link as usize].map(|segment| {
                let first = home(segment);
                lightest(&load, &(first..first + u32::from(plan.segment_queues(segment))))
            });
            let home = home.filter(|at| with_links.contains(at) && load[*at as usize] < share);
            worker_of[group] = home.unwrap_or_else(|| lightest(&load, &with_links));
        }
        worker_of[link as usize] = worker_of[group];
        load[worker_of[group] as usize] += 1;
    }
    for segment in 0..segments {
        let node = (links + segment) as usize;
        let decides = turns.segments[segment as usize];
        worker_of[node] = if decides { worker_of[groups.find(node)] } else { home(segment) };
    }
    let segment_workers = worker_of.split_off(links as usize);
    (worker_of, segment_workers)
}

/// The first of the least loaded workers.
fn lightest(load: &[u32], of: &Range<u32>) -> u32 {
    of.clone().min_by_key(|&worker| load[worker as usize]).unwrap_or(of.start)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With "in" and "out" at one worker, "up" and its steering target "sky" at another: packets steered to
    /// "sky" continue to "out" like those over "up".
    #[test]
    fn steered_packets_cross_to_other_workers_too() {
        let text = "[engine]\nworkers = 2\n\
            [[port]]\nname = \"a\"\ndriver = \"memory\"\n[[port]]\nname = \"b\"\ndriver = \"memory\"\n\
            [[bridge]]\nname = \"x\"\n[[bridge]]\nname = \"y\"\n\
            [[link]]\nname = \"in\"\nfrom = \"a\"\nto = \"x\"\ndelay = \"4 ms\"\n\
            [[link]]\nname = \"up\"\nfrom = \"x\"\nto = \"y\"\ndelay = \"3 ms\"\n\
            filter = \"steer sky if udp\"\n\
            [[link]]\nname = \"sky\"\nfrom = \"x\"\nto = \"y\"\ndelay = \"2 ms\"\n\
            [[link]]\nname = \"out\"\nfrom = \"y\"\nto = \"b\"\ndelay = \"1 ms\"\n";
        let plan = longwire_scenario::plan_of(text);
        let shards = Shards::of(&plan);
        assert_eq!(shards.link_workers[1], shards.link_workers[2]);
        let between = (&steps(&plan)[..], &Turns::of(&plan));
        let (crossing, lead) = crossing(&plan, between, &[0, 1, 1, 0], &shards.segment_workers);
        assert_eq!((crossing, lead), (vec![true, true, true, false], Nanos::from_millis(2)));
    }

    /// Workers of segments and of links: "a" and "b" share one bridge, with links both ways, "c" and "d"
    /// another.
    fn of_two_pairs(engine: &str) -> (Vec<u32>, Vec<u32>) {
        let mut text = format!("[engine]\n{engine}\n");
        for (port, bridge) in [("a", "x"), ("b", "x"), ("c", "y"), ("d", "y")] {
            text += &format!("[[port]]\nname = \"{port}\"\ndriver = \"memory\"\nbridge = \"{bridge}\"\n");
        }
        text += "[[bridge]]\nname = \"x\"\n[[bridge]]\nname = \"y\"\n";
        for (from, to) in [("a", "b"), ("b", "a"), ("c", "d"), ("d", "c")] {
            text += &format!("[[link]]\nname = \"{from}{to}\"\nfrom = \"{from}\"\nto = \"{to}\"\n");
        }
        let plan = longwire_scenario::plan_of(&text);
        let shards = Shards::of(&plan);
        (shards.segment_workers, shards.link_workers)
    }

    #[test]
    fn in_parallel_links_are_beside_the_ports_that_send_into_them() {
        assert_eq!(of_two_pairs("workers = 2"), (vec![0, 1], vec![0, 0, 1, 1]));
        // All workers get links, those without ports included.
        assert_eq!(of_two_pairs("workers = 4"), (vec![0, 1], vec![0, 1, 2, 3]));
    }

    #[test]
    fn links_between_ports_with_queues_are_dealt_over_their_workers() {
        let mut text =
            String::from("[engine]\nworkers = 3\n[[bridge]]\nname = \"x\"\n[[bridge]]\nname = \"y\"\n");
        for (name, queues) in [("a", 2), ("b", 2), ("c", 1), ("d", 1)] {
            let bridge = if queues == 2 { "x" } else { "y" };
            text += &format!(
                "[[port]]\nname = \"{name}\"\ndriver = \"tap\"\nqueues = {queues}\nbridge = \"{bridge}\"\n"
            );
        }
        for (from, to) in [("a", "b"), ("b", "a"), ("c", "d")] {
            text += &format!("[[link]]\nname = \"{from}{to}\"\nfrom = \"{from}\"\nto = \"{to}\"\n");
        }
        let plan = longwire_scenario::plan_of(&text);
        let shards = Shards::of(&plan);
        assert_eq!((shards.segment_workers, shards.link_workers), (vec![0, 1], vec![0, 1, 2]));
        assert_eq!(plan.queue_places().collect::<Vec<_>>(), [0, 0, 1, 1, 2, 3]);
    }

    #[test]
    fn in_a_pipeline_ports_and_links_are_apart() {
        let pipeline = |workers| of_two_pairs(&format!("workers = {workers}\nmapping = \"pipeline\""));
        assert_eq!(pipeline(2), (vec![0, 0], vec![1, 1, 1, 1]));
        assert_eq!(pipeline(3), (vec![0, 1], vec![2, 2, 2, 2]));
        assert_eq!(pipeline(4), (vec![0, 1], vec![2, 3, 2, 3]));
    }
}
