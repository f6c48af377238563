//! Which worker owns which link.

use crate::plan::{Plan, Route, Steer};
use longwire_units::Nanos;

/// A link with less delay than this stays with the links its packets go on to: simulated runs advance in windows
/// of the least delay between workers, and shorter ones would cost more than they gain.
const SHORT: Nanos = Nanos::from_micros(50);

/// The links shared out over the workers.
pub(super) struct Shards {
    /// By a link's place in the plan: its worker.
    pub link_workers: Vec<u32>,
    /// By a link's place: whether packets go on from it to another worker's link.
    pub crossing: Vec<bool>,
    /// The least delay of those; never if there are none.
    pub lead: Nanos,
    /// Whether links need not be served in each other's order: no route is longer than one link, and no medium is shared.
    pub flat: bool,
}

impl Shards {
    pub(super) fn of(plan: &Plan) -> Self {
        let steps = steps(plan);
        let link_workers = assign(plan, &steps);
        let mut crossing = vec![false; plan.links.len()];
        let mut lead = Nanos::NEVER;
        for &(from, to) in &steps {
            if link_workers[from as usize] != link_workers[to as usize] {
                crossing[from as usize] = true;
                lead = lead.min(plan.least_delay(from as usize));
            }
        }
        Self {
            link_workers,
            crossing,
            lead,
            flat: steps.is_empty() && plan.media.is_empty() && plan.steers.is_empty(),
        }
    }
}

/// All pairs of links of which packets pass the second after the first.
fn steps(plan: &Plan) -> Vec<(u32, u32)> {
    let routes = plan.address_rules.iter().map(|rule| rule.route);
    let mut routes: Vec<Route> = routes.chain(plan.pair_rules.iter().map(|rule| rule.route)).collect();
    routes.retain(|route| route.exists() && plan.routes.links(route).len() > 1);
    let pairs = routes.iter().flat_map(|route| plan.routes.links(route).windows(2).map(|w| (w[0], w[1])));
    let mut steps: Vec<_> = pairs.collect();
    // What is steered to another link goes on from there as it would have.
    let goes_on = |steer: &Steer| {
        let (from, instead) = (steer.link, steer.target);
        steps.iter().filter(move |step| step.0 == from).map(move |step| (instead, step.1)).collect::<Vec<_>>()
    };
    let steered: Vec<_> = plan.steers.iter().flat_map(goes_on).collect();
    steps.extend(steered);
    steps.sort_unstable();
    steps.dedup();
    steps
}

/// Links that must share a worker form a group; groups go to workers in the plan's order, as evenly as they come.
fn assign(plan: &Plan, steps: &[(u32, u32)]) -> Vec<u32> {
    let workers = plan.engine.workers as usize;
    if workers == 1 {
        return vec![0; plan.links.len()];
    }
    let mut parent: Vec<u32> = (0..plan.links.len() as u32).collect();
    for &(from, to) in steps {
        if plan.least_delay(from as usize) < SHORT {
            let (a, b) = (root(&mut parent, from), root(&mut parent, to));
            parent[a.max(b) as usize] = a.min(b);
        }
    }
    // What a filter sends to another link arrives there at once.
    for steer in &plan.steers {
        let (a, b) = (root(&mut parent, steer.link), root(&mut parent, steer.target));
        parent[a.max(b) as usize] = a.min(b);
    }
    for medium in &plan.media {
        for pair in medium.links.windows(2) {
            let (a, b) = (root(&mut parent, pair[0]), root(&mut parent, pair[1]));
            parent[a.max(b) as usize] = a.min(b);
        }
    }
    let mut load = vec![0usize; workers];
    let mut worker_of = vec![u32::MAX; plan.links.len()];
    for link in 0..plan.links.len() as u32 {
        let group = root(&mut parent, link) as usize;
        if worker_of[group] == u32::MAX {
            let lightest = (0..workers).min_by_key(|&worker| load[worker]).unwrap_or(0);
            worker_of[group] = lightest as u32;
        }
        worker_of[link as usize] = worker_of[group];
        load[worker_of[group] as usize] += 1;
    }
    worker_of
}

/// The first link of the group, halving the way to it in passing.
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

    /// Two workers: "in" and "out" go to the first, "up" with "sky", to which it steers, to the second. What is steered to "sky" goes on
    /// to "out" as what goes over "up" does.
    #[test]
    fn steered_packets_cross_to_other_workers_too() {
        let text = "[engine]\nworkers = 2\n\
            [[port]]\nname = \"a\"\ndriver = \"memory\"\n[[port]]\nname = \"b\"\ndriver = \"memory\"\n\
            [[bridge]]\nname = \"x\"\n[[bridge]]\nname = \"y\"\n\
            [[link]]\nname = \"in\"\nfrom = \"a\"\nto = \"x\"\ndelay = \"4 ms\"\n\
            [[link]]\nname = \"up\"\nfrom = \"x\"\nto = \"y\"\ndelay = \"3 ms\"\nfilter = \"steer sky if udp\"\n\
            [[link]]\nname = \"sky\"\nfrom = \"x\"\nto = \"y\"\ndelay = \"2 ms\"\n\
            [[link]]\nname = \"out\"\nfrom = \"y\"\nto = \"b\"\ndelay = \"1 ms\"\n";
        let plan = crate::parse("shards.toml", text).unwrap_or_else(|error| panic!("{error}"));
        let shards = Shards::of(&plan);
        assert_eq!(shards.link_workers, [0, 1, 1, 0]);
        assert_eq!(shards.crossing, [true, true, true, false]);
        assert_eq!(shards.lead, Nanos::from_millis(2));
    }
}
