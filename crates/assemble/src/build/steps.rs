//! How packets pass from link to link and from node to node, and which of them must share a worker.

use longwire_block::Spec;
use longwire_scenario::{Plan, Route};
use longwire_units::{DisjointSets, Nanos};

/// A link with less delay than this shares a worker with the links after it: simulated runs advance in
/// windows of the least delay between workers, and shorter ones would cost more than they gain.
pub(super) const SHORT: Nanos = Nanos::from_micros(50);

/// Segments that decide in turn, and how packets come to them and leave them.
pub(super) struct Turns {
    /// By index: whether it decides in turn.
    pub segments: Vec<bool>,
    /// Links that packets enter after a segment's decision.
    goes: Vec<(u32, u32)>,
    /// Links that lead to a node's own port, and the far port's segment.
    comes: Vec<(u32, u32)>,
    /// Pairs of segments that packets cross immediately.
    at_once: Vec<(u32, u32)>,
}

impl Turns {
    pub fn of(plan: &Plan) -> Self {
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
            let beside = plan.link_requests.iter().flat_map(|request| {
                let own = list.iter().filter(move |(link, _)| *link == request.link);
                own.map(move |(_, at)| (request.target, *at))
            });
            let beside: Vec<_> = beside.collect();
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
pub(super) fn steps(plan: &Plan) -> Vec<(u32, u32)> {
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

/// By link: whether its packets go on to another worker's link, or to its node in turn. Also the lowest delay
/// of those links.
pub(super) fn crossing(
    plan: &Plan,
    (steps, turns): (&[(u32, u32)], &Turns),
    links: &[u32],
    segments: &[u32],
) -> (Vec<bool>, Nanos) {
    let steps = steps.iter().map(|&(from, to)| (from, links[to as usize]));
    let comes = turns.comes.iter().map(|&(from, to)| (from, segments[to as usize]));
    let (mut crossing, mut lead) = (vec![false; links.len()], Nanos::NEVER);
    for (from, _) in steps.chain(comes).filter(|(from, worker)| links[*from as usize] != *worker) {
        crossing[from as usize] = true;
        lead = lead.min(plan.least_delay(from as usize));
    }
    (crossing, lead)
}

/// Links, and after them segments, that must share a worker if packets need at least the `shortest` time to
/// cross between two.
pub(super) fn groups(plan: &Plan, steps: &[(u32, u32)], turns: &Turns, shortest: Nanos) -> DisjointSets {
    let (links, segments) = (plan.links.len() as u32, plan.segments.len() as u32);
    let mut groups = DisjointSets::new((links + segments) as usize);
    let short = |&&(from, _): &&(u32, u32)| plan.least_delay(from as usize) < shortest;
    let near = turns.goes.iter().chain(turns.comes.iter().filter(short));
    let near = near.map(|&(link, segment)| (link, links + segment));
    let at_once = turns.at_once.iter().map(|&(from, to)| (links + from, links + to));
    // A packet that a filter sends to another link arrives there immediately; one that a program sends comes
    // from the same nodes.
    let steps = steps.iter().filter(short).copied().chain(beside(plan));
    let media = plan.media.iter().flat_map(|medium| medium.links.windows(2).map(|pair| (pair[0], pair[1])));
    for (one, other) in near.chain(at_once).chain(steps).chain(media) {
        groups.union(one as usize, other as usize);
    }
    groups
}
