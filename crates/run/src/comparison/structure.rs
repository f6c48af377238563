//! Compares what can't change in a run: which objects exist, how they are connected, and the engine's
//! settings.

use super::blocks::is_at_start;
use longwire_control::RefusedDifference;
use longwire_scenario::{Plan, Router};
use longwire_units::Nanos;
use std::collections::BTreeMap;
use std::fmt::Debug;

const AGAIN: &str = "start the instance again";

/// The differences between two plans that no change of settings removes.
pub(super) fn differences(now: &Plan, wanted: &Plan) -> Vec<RefusedDifference> {
    let mut all = Vec::new();
    let mut single = |what: &str, differs: bool| {
        if differs {
            let reason = format!("it is fixed when the instance starts: {AGAIN}");
            all.push(RefusedDifference { what: what.into(), reason });
        }
    };
    single("seed", now.seed != wanted.seed);
    single("routing", now.routing != wanted.routing);
    single("[engine]", text(&now.engine) != text(&wanted.engine));
    single("[fidelity]", text(&now.fidelity) != text(&wanted.fidelity));
    single("[nesp]", text(&now.nesp) != text(&wanted.nesp));
    single("[[forwarder]]", text(&now.forwarders) != text(&wanted.forwarders));
    single("[[at]]", events(now) != events(wanted));
    let before = all.len();
    for (kind, list) in LISTS {
        compare(kind, &list(now), &list(wanted), &mut all);
    }
    // If the objects are the same, so are their places, and paths can be compared.
    if all.len() == before && paths(now) != paths(wanted) {
        let reason = format!("paths are found before the run, and have changed: {AGAIN}");
        all.push(RefusedDifference { what: "[[path]]".into(), reason });
    }
    all
}

/// The objects of a section by name, each with its fixed part.
type List = fn(&Plan) -> Vec<(String, String)>;

const LISTS: [(&str, List); 7] = [
    ("host", |plan| {
        let of = |host: &longwire_scenario::Host| {
            let fixed = (&host.addresses, host.mac, host.mtu, &host.gateways, &host.routes, &host.driver);
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
    ("bridge", |plan| {
        let declared = plan.bridges.iter().filter(|bridge| bridge.declared);
        let of = |bridge: &longwire_scenario::Bridge| text(&(bridge.ageing, bridge.table, bridge.wire));
        declared.map(|bridge| (bridge.name.to_string(), of(bridge))).collect()
    }),
    ("router", |plan| {
        plan.routers.iter().map(|router| (router.name.to_string(), text(&fixed(router)))).collect()
    }),
    ("link", |plan| {
        let of = |link: &longwire_scenario::Link| {
            (link.name.to_string(), text(&[plan.end_name(link.from), plan.end_name(link.to)]))
        };
        plan.links.iter().map(of).collect()
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

/// A router without its changeable part.
fn fixed(router: &Router) -> Router {
    let mut router = router.clone();
    if !router.control {
        router.routes.clear();
    }
    let flows = router.sharing.iter_mut().flat_map(|sharing| &mut sharing.flows);
    flows.for_each(|flow| flow.weight = longwire_sched::Weight::ONE);
    router
}

fn compare(
    kind: &str,
    now: &[(String, String)],
    wanted: &[(String, String)],
    all: &mut Vec<RefusedDifference>,
) {
    let by_name = |list: &[(String, String)]| list.iter().cloned().collect::<BTreeMap<_, _>>();
    let (there, then) = (by_name(now), by_name(wanted));
    let mut refuse = |name: &String, reason: String| {
        all.push(RefusedDifference { what: format!("{kind} \"{name}\""), reason });
    };
    for (name, fixed) in now {
        match then.get(name) {
            None if kind == "link" => {
                refuse(name, "it is not in the scenario any more: remove it with longwire ctl remove".into());
            }
            None => refuse(name, format!("it is not in the scenario any more: {AGAIN}")),
            Some(other) if other != fixed => {
                refuse(name, format!("its ends, addresses or other fixed settings differ: {AGAIN}"));
            }
            Some(_) => {}
        }
    }
    for (name, _) in wanted.iter().filter(|(name, _)| !there.contains_key(name)) {
        let how = if kind == "link" { "add it with longwire ctl add" } else { AGAIN };
        refuse(name, format!("it is new: {how}"));
    }
}

/// The events after the start, in order.
fn events(plan: &Plan) -> Vec<(Nanos, String)> {
    let events = plan.events.iter().filter(|event| !is_at_start(event));
    let of_routers = plan.router_events.iter().filter(|event| event.time > Nanos::ZERO);
    let events = events.map(|event| (event.time, event.describe(plan)));
    events.chain(of_routers.map(|event| (event.time, event.describe(&plan.routers)))).collect()
}

fn paths(plan: &Plan) -> String {
    let Plan { routes, address_rules, pair_rules, steers, link_requests, .. } = plan;
    text(&(routes, address_rules, pair_rules, steers, link_requests))
}

fn text(value: &impl Debug) -> String {
    format!("{value:?}")
}
