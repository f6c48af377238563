//! Assignment of links to workers.

use longwire_block::Spec;
use longwire_scenario::{End, Mapping, Plan, Route};
use longwire_units::Nanos;
use std::ops::Range;

/// A link with less delay than this shares a worker with the links after it: simulated runs advance in
/// windows of the least delay between workers, and shorter ones would cost more than they gain.
const SHORT: Nanos = Nanos::from_micros(50);

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
        let mut crossing = vec![false; plan.links.len()];
        let mut lead = Nanos::NEVER;
        for &(from, to) in &steps {
            if link_workers[from as usize] != link_workers[to as usize] {
                crossing[from as usize] = true;
                lead = lead.min(plan.least_delay(from as usize));
            }
        }
        for &(from, to) in &turns.comes {
            if link_workers[from as usize] != segment_workers[to as usize] {
                crossing[from as usize] = true;
                lead = lead.min(plan.least_delay(from as usize));
            }
        }
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

/// Segments that decide in turn, and how packets come to them and leave them.
struct Turns {
    /// By index: whether it decides in turn.
    segments: Vec<bool>,
    /// Links that packets enter after a segment's decision.
    goes: Vec<(u32, u32)>,
    /// Links that lead to a node's own port, and the far port's segment.
    comes: Vec<(u32, u32)>,
    /// Pairs of segments that packets cross immediately.
    at_once: Vec<(u32, u32)>,
}

impl Turns {
    fn of(plan: &Plan) -> Self {
        let answers = may_answer(plan);
        let mut segments: Vec<bool> =
            plan.segments.iter().map(|segment| segment.router.is_some() && answers).collect();
        let far = |place: u16| plan.ports[usize::from(place)].attachment.far();
        let segment = |place: u16| plan.ports[usize::from(place)].segment;
        let inner: Vec<u16> = (0..plan.ports.len() as u16).filter(|place| far(*place).is_some()).collect();
        inner.iter().for_each(|place| segments[segment(*place) as usize] = true);
        let (mut goes, mut comes) = (Vec::new(), Vec::new());
        for rule in plan.pair_rules.iter().filter(|rule| rule.route.exists()) {
            let links = plan.routes.links(&rule.route);
            let from = segment(rule.in_port);
            if let (Some(first), true) = (links.first(), segments[from as usize]) {
                goes.push((*first, from));
            }
            if let (Some(last), Some(far)) = (links.last(), far(rule.out_port)) {
                comes.push((*last, segment(far)));
            }
        }
        // Addresses do not identify the node.
        let routed = || (0..segments.len() as u32).filter(|index| segments[*index as usize]);
        let routes = plan.address_rules.iter().map(|rule| rule.route).filter(|route| route.exists());
        for route in routes {
            let first = plan.routes.links(&route).first().copied();
            goes.extend(first.into_iter().flat_map(|first| routed().map(move |index| (first, index))));
        }
        // A packet that a program sends into another link enters it from the same node, and goes on to the
        // same place.
        for list in [&mut goes, &mut comes] {
            let beside: Vec<_> = plan
                .link_requests
                .iter()
                .flat_map(|request| {
                    list.iter()
                        .filter(move |(link, _)| *link == request.link)
                        .map(move |(_, at)| (request.target, *at))
                })
                .collect();
            list.extend(beside);
        }
        let at_once = inner.iter().filter(|place| {
            let over = plan.pair_route(**place, **place);
            over.is_none_or(<[u32]>::is_empty)
        });
        let at_once = at_once.filter_map(|place| Some((segment(*place), segment(far(*place)?)))).collect();
        for list in [&mut goes, &mut comes] {
            list.sort_unstable();
            list.dedup();
        }
        Self { segments, goes, comes, at_once }
    }
}

/// Whether a link may reply that a packet was too big: the router that sent it must see the reply.
fn may_answer(plan: &Plan) -> bool {
    let answers = |spec: &Spec| (spec.key, spec.kind) == ("mtu", "too-big");
    let own = plan.profiles.iter().flat_map(|profile| &profile.blocks).any(|(spec, _)| answers(spec));
    own || plan.events.iter().flat_map(|event| &*event.edits).any(|edit| answers(edit.spec))
}

/// All pairs of links that packets pass one after the other.
fn steps(plan: &Plan) -> Vec<(u32, u32)> {
    let routes = plan.address_rules.iter().map(|rule| rule.route);
    let mut routes: Vec<Route> = routes.chain(plan.pair_rules.iter().map(|rule| rule.route)).collect();
    routes.retain(|route| route.exists() && plan.routes.links(route).len() > 1);
    let pairs = routes.iter().flat_map(|route| plan.routes.links(route).windows(2).map(|w| (w[0], w[1])));
    let mut steps: Vec<_> = pairs.collect();
    // A packet sent to another link continues from there on the same route.
    for (link, instead) in beside(plan) {
        let on: Vec<_> = steps.iter().filter(|step| step.0 == link).map(|step| (instead, step.1)).collect();
        steps.extend(on);
    }
    steps.sort_unstable();
    steps.dedup();
    steps
}

/// Links with the links to which programs or filters send their packets.
fn beside(plan: &Plan) -> impl Iterator<Item = (u32, u32)> {
    let requested = plan.link_requests.iter().map(|request| (request.link, request.target));
    requested.chain(plan.steers.iter().map(|steer| (steer.link, steer.target)))
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

/// Assigns groups of links that must share a worker. In the plan's order, each group goes to the worker from
/// whose ports packets enter it, unless that has more than its share of the links, else to the worker with
/// the fewest.
fn assign(plan: &Plan, steps: &[(u32, u32)], turns: &Turns) -> (Vec<u32>, Vec<u32>) {
    let (links, segments) = (plan.links.len() as u32, plan.segments.len() as u32);
    if plan.engine.workers == 1 {
        return (vec![0; links as usize], vec![0; segments as usize]);
    }
    let mut parent = groups(plan, steps, turns);
    let (with_ports, with_links) = stages(plan);
    let entrances = entrances(plan);
    let deciding = turns.segments.iter().filter(|decides| **decides).count() as u32;
    let share = (links + deciding).div_ceil(with_links.len() as u32);
    let mut load = vec![0; plan.engine.workers as usize];
    let mut worker_of = vec![u32::MAX; parent.len()];
    // A group with a segment that decides in turn is placed among the workers for segments.
    for segment in (links..links + segments).filter(|&node| turns.segments[(node - links) as usize]) {
        let group = root(&mut parent, segment) as usize;
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
        let group = root(&mut parent, link) as usize;
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
        worker_of[node] =
            if decides { worker_of[root(&mut parent, node as u32) as usize] } else { home(segment) };
    }
    let segment_workers = worker_of.split_off(links as usize);
    (worker_of, segment_workers)
}

/// The first of the least loaded workers.
fn lightest(load: &[u32], of: &Range<u32>) -> u32 {
    of.clone().min_by_key(|&worker| load[worker as usize]).unwrap_or(of.start)
}

/// Links, and after them segments, that must share a worker: for each place another member of its group, or
/// itself.
fn groups(plan: &Plan, steps: &[(u32, u32)], turns: &Turns) -> Vec<u32> {
    let (links, segments) = (plan.links.len() as u32, plan.segments.len() as u32);
    let mut parent: Vec<u32> = (0..links + segments).collect();
    let short = |&&(from, _): &&(u32, u32)| plan.least_delay(from as usize) < SHORT;
    let near = turns.goes.iter().chain(turns.comes.iter().filter(short));
    let near = near.map(|&(link, segment)| (link, links + segment));
    let at_once = turns.at_once.iter().map(|&(from, to)| (links + from, links + to));
    // A packet that a filter sends to another link arrives there immediately; one that a program sends comes
    // from the same nodes.
    let steps = steps.iter().filter(short).copied().chain(beside(plan));
    let media = plan.media.iter().flat_map(|medium| medium.links.windows(2).map(|pair| (pair[0], pair[1])));
    for (one, other) in near.chain(at_once).chain(steps).chain(media) {
        let (a, b) = (root(&mut parent, one), root(&mut parent, other));
        parent[a.max(b) as usize] = a.min(b);
    }
    parent
}

/// The root of the group, with path halving.
fn root(parent: &mut [u32], mut link: u32) -> u32 {
    while parent[link as usize] != link {
        parent[link as usize] = parent[parent[link as usize] as usize];
        link = parent[link as usize];
    }
    link
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two workers: "in" and "out" go to the first, "up" and its steering target "sky" to the second. Packets
    /// steered to "sky" continue to "out" like those over "up".
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
        assert_eq!(shards.link_workers, [0, 1, 1, 0]);
        assert_eq!(shards.crossing, [true, true, true, false]);
        assert_eq!(shards.lead, Nanos::from_millis(2));
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
