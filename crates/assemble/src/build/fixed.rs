//! What can't change while a scenario runs, compared: objects that neither join nor leave, settings that are
//! fixed, and those of the engine.

use longwire_scenario::{Event, ForwarderRequest, Plan, Router, RouterPort};
use longwire_units::Nanos;
use std::cell::LazyCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Debug;

const AGAIN: &str = "start the instance again";

/// A difference that can't be removed while packets flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FixedDifference {
    /// What differs.
    pub what: String,
    /// Why it can't change, and what to do.
    pub reason: String,
}

/// Whether an event describes the start.
pub fn is_at_start(event: &Event) -> bool {
    event.time == Nanos::ZERO && event.repeat.is_none() && event.ramp.is_none()
}

/// Whether two plans have the same links between the same ends, the same hosts, ports, bridges, routers and
/// sources, and the same paths.
pub fn are_joined_alike(now: &Plan, wanted: &Plan) -> bool {
    links(now).eq(links(wanted))
        && outer_ports(now).eq(outer_ports(wanted))
        && routers(now).eq(routers(wanted))
        && sources(now).eq(sources(wanted))
        && now.bridges == wanted.bridges
        && paths(now) == paths(wanted)
}

/// The names of links and their ends.
fn links(plan: &Plan) -> impl Iterator<Item = (&str, [&str; 2])> {
    plan.links.iter().map(move |link| (&*link.name, plan.ends_of(link)))
}

/// The names of hosts and declared ports, by place, and whether each is a host.
fn outer_ports(plan: &Plan) -> impl Iterator<Item = (usize, &str, bool)> {
    let outer = plan.ports.iter().enumerate().filter(|(_, port)| port.attachment.is_outer());
    outer.map(|(place, port)| (place, &*port.name, port.attachment.host().is_some()))
}

/// The names of traffic sources.
fn sources(plan: &Plan) -> impl Iterator<Item = &str> {
    plan.sources.iter().map(|source| &*source.name)
}

/// The names of routers, and the bridges of their ports.
fn routers(plan: &Plan) -> impl Iterator<Item = (&str, Vec<&str>)> {
    let bridge = move |port: &RouterPort| {
        let far = plan.ports[usize::from(port.place)].attachment.far()?;
        let bridge = plan.bridges.get(plan.ports[usize::from(far)].bridge as usize)?;
        Some(&*bridge.name)
    };
    plan.routers.iter().map(move |router| (&*router.name, router.ports.iter().filter_map(bridge).collect()))
}

/// The differences of two plans that remain when links, hosts, ports, routers and sources have joined and
/// left, and settings have changed.
pub fn fixed_differences(now: &Plan, wanted: &Plan) -> Vec<FixedDifference> {
    let mut all = Vec::new();
    let mut single = |what: &str, differs: bool| {
        if differs {
            let reason = format!("it is fixed when the instance starts: {AGAIN}");
            all.push(FixedDifference { what: what.into(), reason });
        }
    };
    single("seed", now.seed != wanted.seed);
    single("routing", now.routing != wanted.routing);
    single("[engine]", text(&now.engine) != text(&wanted.engine));
    single("[fidelity]", text(&now.fidelity) != text(&wanted.fidelity));
    single("[nesp]", text(&now.nesp) != text(&wanted.nesp));
    let forwarders = |plan, other| text(&forwarders_beside(plan, other));
    single("[[forwarder]]", forwarders(now, wanted) != forwarders(wanted, now));
    single("[[at]]", events(now, wanted) != events(wanted, now));
    for (kind, list) in LISTS {
        compare(kind, &list(now), &list(wanted), &mut all);
    }
    all.extend(histograms(now, wanted));
    let stay = now.routers.iter().filter_map(|router| Some((router, called(wanted, &router.name)?)));
    let other_links = stay.filter(|(router, then)| router.links != then.links);
    all.extend(other_links.map(|(router, _)| FixedDifference {
        what: format!("router \"{}\"", router.name),
        reason: format!("other links would begin at its ports, which its programs name by number: {AGAIN}"),
    }));
    all
}

/// The links that stay, and record a histogram in one of the plans only.
fn histograms(now: &Plan, wanted: &Plan) -> Option<FixedDifference> {
    let known: HashMap<&str, usize> = now.links.iter().map(|link| &*link.name).zip(0..).collect();
    let differs = |place: &usize| {
        known.get(&*wanted.links[*place].name).is_some_and(|&there| {
            now.profile(there).histogram != wanted.profile(*place).histogram
                && now.ends_of(&now.links[there]) == wanted.ends_of(&wanted.links[*place])
        })
    };
    let mut differ = (0..wanted.links.len()).filter(differs);
    let name = &wanted.links[differ.next()?].name;
    let what = match differ.count() {
        0 => format!("link \"{name}\""),
        more => format!("link \"{name}\" and {more} more"),
    };
    let reason = "whether it records a histogram is fixed: remove it, and then add it".into();
    Some(FixedDifference { what, reason })
}

/// The router of this name.
fn called<'p>(plan: &'p Plan, name: &str) -> Option<&'p Router> {
    plan.routers.iter().find(|router| *router.name == *name)
}

/// The programs of a plan at routers that the `other` has too, with the names of these.
fn forwarders_beside<'p>(plan: &'p Plan, other: &Plan) -> Vec<(&'p str, &'p ForwarderRequest)> {
    let all = plan.forwarders.iter();
    let all = all.map(|planned| (&*plan.routers[planned.router as usize].name, &planned.request));
    all.filter(|(name, _)| called(other, name).is_some()).collect()
}

/// The objects of a section by name, each with its fixed part.
type List = fn(&Plan) -> Vec<(String, String)>;

const LISTS: [(&str, List); 5] = [
    ("host", |plan| {
        let of = |host: &longwire_scenario::Host| {
            let gateways = &host.gateways[..host.own_gateways];
            let fixed = (&host.addresses, host.mac, host.mtu, gateways, &host.routes, &host.driver);
            (host.name.to_string(), text(&fixed))
        };
        plan.hosts.iter().map(of).collect()
    }),
    ("port", |plan| {
        let files = plan.ports.iter().filter(|port| port.attachment.driven().is_some());
        let of = |port: &longwire_scenario::Port| {
            (port.name.to_string(), text(&(&port.attachment, &port.addresses, port.mac, port.queues)))
        };
        files.map(of).collect()
    }),
    ("router", |plan| {
        plan.routers.iter().map(|router| (router.name.to_string(), text(&fixed(router)))).collect()
    }),
    ("medium", |plan| {
        let links = |medium: &longwire_scenario::Medium| {
            let names = medium.links.iter().map(|&place| &plan.links[place as usize].name);
            text(&(medium.spec.kind, names.collect::<Vec<_>>()))
        };
        plan.media.iter().map(|medium| (medium.name.to_string(), links(medium))).collect()
    }),
    ("source", |plan| {
        let of = |source: &longwire_scenario::Source| {
            let from = &plan.ports[usize::from(source.in_port)].name;
            (source.name.to_string(), text(&(from, source.source, source.start)))
        };
        plan.sources.iter().map(of).collect()
    }),
];

/// A router without its changeable part, and without the links at its ports.
fn fixed(router: &Router) -> Router {
    let mut router = Router { segment: 0, links: Vec::new(), not_in_real_time: None, ..router.clone() };
    if !router.control {
        router.routes.clear();
    }
    let flows = router.sharing.iter_mut().flat_map(|sharing| &mut sharing.flows);
    flows.for_each(|flow| flow.weight = longwire_sched::Weight::ONE);
    router
}

/// Objects of a kind that differ; hosts, ports, routers and sources may be in one of the plans only.
fn compare(
    kind: &str,
    now: &[(String, String)],
    wanted: &[(String, String)],
    all: &mut Vec<FixedDifference>,
) {
    let by_name = |list: &[(String, String)]| list.iter().cloned().collect::<BTreeMap<_, _>>();
    let (there, then) = (by_name(now), by_name(wanted));
    let comes_and_goes = ["host", "port", "router", "source"].contains(&kind);
    let mut refuse = |name: &String, reason: String| {
        all.push(FixedDifference { what: format!("{kind} \"{name}\""), reason });
    };
    for (name, fixed) in now {
        match then.get(name) {
            None if comes_and_goes => {}
            None => refuse(name, format!("it is not in the scenario any more: {AGAIN}")),
            Some(other) if other == fixed => {}
            Some(_) if comes_and_goes => {
                let reason = "its addresses or other fixed settings differ: remove it, and then add it";
                refuse(name, reason.into());
            }
            Some(_) => refuse(name, format!("its kind or its stations differ: {AGAIN}")),
        }
    }
    for (name, _) in wanted.iter().filter(|(name, _)| !comes_and_goes && !there.contains_key(name)) {
        refuse(name, format!("it is new: {AGAIN}"));
    }
}

/// The events after the start, in order. Those that are over may have changed what `other` has no more.
fn events(plan: &Plan, other: &Plan) -> Vec<(Nanos, String)> {
    let since = plan.read_at.max(other.read_at);
    let left = LazyCell::new(|| Changeable::of(other));
    let of_objects = plan.events.iter().filter(|event| !is_at_start(event)).filter_map(|event| {
        let left = (event.over() <= since).then(|| left.among(event, plan));
        let event = left.unwrap_or_else(|| Some(event.clone()))?;
        Some((event.time, format!("{} of {:?}", event.describe(plan), objects(&event, plan))))
    });
    let of_routers = plan.router_events.iter().filter(|event| {
        let is_past = event.time <= since;
        let is_there = || called(other, &plan.routers[event.router as usize].name).is_some();
        event.time > Nanos::ZERO && (!is_past || is_there())
    });
    of_objects.chain(of_routers.map(|event| (event.time, event.describe(&plan.routers)))).collect()
}

/// The names of all that an event changes, of which its description has the first.
fn objects<'p>(event: &Event, plan: &'p Plan) -> Vec<&'p str> {
    let links = event.links.iter().map(|&place| &*plan.links[place as usize].name);
    let sources = event.sources.iter().map(|&place| &*plan.sources[place as usize].name);
    let media = event.media.iter().map(|&place| &*plan.media[place as usize].name);
    links.chain(sources).chain(media).collect()
}

/// The names of what events change in a plan, besides media, which stay.
struct Changeable<'p> {
    links: HashSet<&'p str>,
    sources: HashSet<&'p str>,
}

impl<'p> Changeable<'p> {
    fn of(plan: &'p Plan) -> Self {
        let links = plan.links.iter().map(|link| &*link.name).collect();
        Self { links, sources: sources(plan).collect() }
    }

    /// An event of `plan` that changes only these; none if it changes others alone.
    fn among(&self, event: &Event, plan: &Plan) -> Option<Event> {
        let links = event.links.iter().copied();
        let links = links.filter(|&place| self.links.contains(&*plan.links[place as usize].name)).collect();
        let sources = event.sources.iter().copied();
        let is_source = |place: &u32| self.sources.contains(&*plan.sources[*place as usize].name);
        let event = Event { links, sources: sources.filter(is_source).collect(), ..event.clone() };
        let is_any = !(event.links.is_empty() && event.sources.is_empty() && event.media.is_empty());
        is_any.then_some(event)
    }
}

fn paths(plan: &Plan) -> String {
    let Plan { routes, address_rules, pair_rules, steers, link_requests, .. } = plan;
    text(&(routes, address_rules, pair_rules, steers, link_requests))
}

fn text(value: &impl Debug) -> String {
    format!("{value:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histograms_of_links_that_stay_are_fixed() {
        let plan = |more: &str| {
            let port = |name: &str| format!("[[port]]\nname = \"{name}\"\ndriver = \"memory\"\n");
            let ports = ["a", "b", "c"].map(port).concat();
            longwire_scenario::plan_of(&format!("{ports}[[link]]\nname = \"up\"\n{more}"))
        };
        let before = plan("between = [\"a\", \"b\"]\n");
        let found = fixed_differences(&before, &plan("between = [\"a\", \"b\"]\nhistogram = true\n"));
        let what: Vec<_> = found.iter().map(|found| &*found.what).collect();
        assert_eq!(what, ["link \"up.forward\" and 1 more"]);
        // With other ends it is another link.
        assert_eq!(fixed_differences(&before, &plan("between = [\"a\", \"c\"]\nhistogram = true\n")), []);
    }

    /// Also behind those that its description names.
    #[test]
    fn events_differ_by_any_object() {
        let plan = |last: &str| {
            let host =
                |name: &str, n: u8| format!("[[host]]\nname = \"{name}\"\naddress = \"10.0.0.{n}/24\"\n");
            let sources = "[[source]]\nname = \"s{n}\"\ncount = 6\nfrom = \"a\"\nto = \"b\"\n\
                           rate = \"1 Mbit/s\"\n";
            let event = format!(
                "[[at]]\ntime = \"1 s\"\nsource = [\"s1\", \"s2\", \"s3\", \"s4\", \"{last}\"]\n\
                 rate = \"2 Mbit/s\"\n"
            );
            longwire_scenario::plan_of(&(host("a", 1) + &host("b", 2) + sources + &event))
        };
        let [one, other] = ["s5", "s6"].map(plan);
        assert_eq!(fixed_differences(&one, &one), []);
        let found = fixed_differences(&one, &other);
        assert_eq!(found.iter().map(|found| &*found.what).collect::<Vec<_>>(), ["[[at]]"]);
    }
}
