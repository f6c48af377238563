//! Checks of the number of ports' queues.

use super::{Entry, Resolver};
use crate::file::File;
use crate::plan::{Plan, Port, Segment};
use crate::settings::Mapping;
use longwire_units::counted;
use std::collections::HashMap;
use std::ops::Range;

impl Resolver<'_, '_> {
    /// Checks queues of ports and programs, which need the whole plan. `spans` has the places of ports' keys.
    pub(super) fn queues(&mut self, file: &File, plan: &Plan, spans: &HashMap<u16, Range<usize>>) {
        self.port_queues(plan, spans);
        self.queues_of_forwarders(file, plan);
    }

    /// Each queue has its own worker with its own node. That is exact only where a node decides by each frame
    /// alone: as a relay between two ports.
    fn port_queues(&mut self, plan: &Plan, spans: &HashMap<u16, Range<usize>>) {
        let mut several: Vec<_> =
            spans.iter().filter(|(place, _)| plan.ports[usize::from(**place)].queues > 1).collect();
        several.sort_unstable_by_key(|(place, _)| **place);
        for (&place, span) in several {
            let port = &plan.ports[usize::from(place)];
            let fault = no_workers(plan, port)
                .or_else(|| no_relay(plan, &plan.segments[port.segment as usize], place))
                .or_else(|| takes_settings(plan, place));
            if let Some((what, fix)) = fault {
                let entry = Entry { section: "port", name: Some(&port.name), n: None };
                self.error(span, &entry, "queues", what, fix);
            }
        }
    }
}

/// The fault and its fix.
type Fault = Option<(String, String)>;

/// The fault if there is not a worker for each queue.
fn no_workers(plan: &Plan, port: &Port) -> Fault {
    let (queues, workers) = (port.queues, plan.engine.workers);
    if u32::from(queues) > workers {
        let workers = counted(workers, "worker");
        let what = format!("each queue has a worker of its own, but [engine] has {workers}");
        return Some((what, format!("write workers = {queues} in [engine], or fewer queues")));
    }
    (plan.engine.mapping == Mapping::Pipeline).then(|| {
        let what =
            "workers of a pipeline that have links have no ports, so no packet could leave by their queues";
        (what.into(), "write mapping = \"parallel\" in [engine], or queues = 1".into())
    })
}

/// The fault if copies of the port's node can't replace a single one.
fn no_relay(plan: &Plan, segment: &Segment, place: u16) -> Fault {
    let port = &plan.ports[usize::from(place)];
    if let Some(router) = segment.router {
        let what = format!(
            "it is a port of the router \"{}\", which keeps state of all its packets and belongs to one \
             worker",
            plan.routers[router as usize].name
        );
        return Some((what, "write queues = 1, or put the port on a bridge with one other port".into()));
    }
    let others = segment.ports.iter().filter(|&&other| other != place);
    let others: Vec<&Port> = others.map(|&other| &plan.ports[usize::from(other)]).collect();
    match others[..] {
        [other] if other.queues == port.queues => None,
        [other] => {
            let what = format!(
                "the other port of its bridge, \"{}\", has {}, and each worker needs a queue of both",
                other.name, other.queues
            );
            Some((what, "give both ports as many queues".into()))
        }
        [] => {
            let what = "it is the only port of its bridge: nothing can cross";
            Some((what.into(), "put it and one other port with as many queues on a bridge".into()))
        }
        _ => {
            let what = format!(
                "its bridge has {} ports: where a frame goes depends on frames that other workers have seen; \
                 only between two ports each worker can decide alone",
                segment.ports.len()
            );
            Some((what, "write queues = 1, or put it and one other port on a bridge of their own".into()))
        }
    }
}

/// The fault if its frames may change settings: those of one session would reach several workers.
fn takes_settings(plan: &Plan, place: u16) -> Fault {
    let is_named = plan.nesp.as_ref().is_some_and(|nesp| nesp.ports.contains(&place));
    is_named.then(|| {
        let what = "[nesp] lets frames of this port change settings, and one worker has to see all of them";
        (what.into(), "write queues = 1, or name another port in [nesp]".into())
    })
}
