//! Entries of `[[at]]` that change routers' routes and flow weights.

use super::{Entry, Resolver, some};
use crate::file::{At, File};
use crate::finding::did_you_mean;
use crate::router_plan::{RouteChange, Router, RouterEvent, WrittenRoute};
use crate::settings::AtSettings;
use crate::written::{Name, Text, Written};
use longwire_sched::Weight;
use std::ops::Range;

/// Most events of routers, after templates.
const MOST_EVENTS: usize = 1_000_000;

/// The first key of an entry that only routers have, and its place.
pub(super) fn only_of_routers(written: &At) -> Option<(&'static str, &Range<usize>)> {
    let keys = [
        ("add-route", written.add_route.0.first().map(|text| &text.span)),
        ("remove-route", written.remove_route.0.first().map(|text| &text.span)),
        ("flow", written.flow.as_ref().map(|text| &text.span)),
        ("weight", written.span("weight")),
    ];
    keys.into_iter().find_map(|(key, span)| Some((key, span?)))
}

impl Resolver<'_, '_> {
    /// The changes of routers, in the file's order.
    pub(super) fn router_events(&mut self, file: &File, routers: &[Router]) -> Vec<RouterEvent> {
        let mut events = Vec::new();
        for written in file.at.iter().filter(|at| at.router.is_none()) {
            self.routers_alone(written, routers);
        }
        for (index, written) in file.at.iter().enumerate().filter(|(_, at)| at.router.is_some()) {
            let mut named = 0;
            let entry = Entry { section: "at", name: written.text("time"), n: None };
            for n in self.numbers(&entry, written) {
                let entry = Entry { n, ..entry };
                if events.len() == MOST_EVENTS {
                    let what = format!("there are more than {MOST_EVENTS} events of routers");
                    self.error(&written.span, &entry, "", what, "make fewer");
                    return events;
                }
                let Some(is_gone) = self.is_without_router(&entry, written) else { break };
                named += 1;
                if is_gone {
                    continue;
                }
                let Some(event) = self.router_event(&entry, written, routers) else { break };
                events.push(event);
            }
            self.leave_out((index, written), named);
        }
        events
    }

    /// Refuses keys of routers in an entry without a router.
    fn routers_alone(&mut self, written: &At, routers: &[Router]) {
        if let Some((key, span)) = only_of_routers(written) {
            let entry = Entry { section: "at", name: written.text("time"), n: None };
            let what = format!("{key} is about a router, and none is named");
            let known: Vec<&str> = routers.iter().map(|router| &*router.name).collect();
            let fix = match &known[..] {
                [] => "declare a [[router]] and name it, or leave it out".into(),
                [one] => format!("add router = \"{one}\", or leave it out"),
                _ => format!("add router = \"…\" (there are {}), or leave it out", some(&known)),
            };
            self.error(span, &entry, key, what, fix);
        }
    }

    /// An event. None after an error.
    fn router_event(&mut self, entry: &Entry<'_>, written: &At, routers: &[Router]) -> Option<RouterEvent> {
        let settings: AtSettings = self.row(entry, written)?;
        let name = written.router.as_ref()?;
        let router = self.router_named(entry, name)?;
        let others = [
            ("link", written.link.is_some()),
            ("source", written.source.is_some()),
            ("medium", written.medium.is_some()),
            ("ramp", settings.ramp.is_some()),
            ("step", settings.step.is_some()),
            ("every", settings.every.is_some()),
            ("times", settings.times.is_some()),
        ];
        let other = others.iter().find(|(_, given)| *given).map(|(key, _)| *key);
        if let Some(key) = other.or_else(|| written.blocks.first().map(|block| &*block.key)) {
            let what = format!("{key} does not go with router");
            let fix = "changes of a router have no ramp and no repetition: write an entry for each change";
            return self.refuse(&written.span, entry, key, what, fix);
        }
        let known = &routers[router as usize];
        let routes_change = !(written.add_route.0.is_empty() && written.remove_route.0.is_empty());
        if known.control && routes_change {
            let what = format!(
                "router \"{}\" follows its control plane, which decides about its routes",
                known.name
            );
            let fix = "remove the entry, or the router's control-plane";
            return self.refuse(&name.span, entry, "router", what, fix);
        }
        let mut changes = Vec::new();
        for text in &written.remove_route.0 {
            let to = self.term(entry, "remove-route", text)?;
            let removal = known.removal(to);
            changes
                .push(removal.map_err(|what| self.error(&text.span, entry, "remove-route", what, "")).ok()?);
        }
        for text in &written.add_route.0 {
            changes.push(RouteChange::Add(self.route_to_add(entry, text, known)?));
        }
        let weight = self.weight_to_give(entry, (written, settings.weight), known)?;
        if changes.is_empty() && weight.is_none() {
            let fix = "add add-route = \"10.1.0.0/16 via 10.0.0.2\", remove-route = \"10.1.0.0/16\", or flow \
                and weight";
            return self.refuse(&written.span, entry, "", "nothing changes", fix);
        }
        Some(RouterEvent { time: settings.time, router, changes, weight })
    }

    /// The new weight of a flow, if one is named. None after an error.
    fn weight_to_give(
        &mut self,
        entry: &Entry<'_>,
        (written, weight): (&At, Option<u16>),
        router: &Router,
    ) -> Option<Option<(Box<str>, Weight)>> {
        let (flow, weight) = match (&written.flow, weight) {
            (None, None) => return Some(None),
            (Some(flow), Some(weight)) => (flow, weight),
            (Some(flow), None) => {
                return self.refuse(&flow.span, entry, "flow", "its weight is missing", "add weight = 2");
            }
            (None, Some(_)) => {
                let what = "it does not say of which flow";
                return self.refuse(written.span("weight")?, entry, "weight", what, "add flow = \"…\"");
            }
        };
        let (Name(name), weight) = (self.term(entry, "flow", flow)?, Weight::new(weight.into()).ok()?);
        let flows = router.sharing.iter().flat_map(|sharing| &sharing.flows);
        let known: Vec<&str> = flows.map(|flow| &*flow.name).collect();
        if !known.contains(&&*name) {
            let fix = did_you_mean(&name, known.iter().copied()).unwrap_or_else(|| match &known[..] {
                [] => "name it in the router's flows, beside a scheduler".into(),
                _ => format!("there are {}", some(&known)),
            });
            let what = format!("router \"{}\" has no flow named \"{name}\"", router.name);
            return self.refuse(&flow.span, entry, "flow", what, fix);
        }
        Some(Some((name, weight)))
    }

    fn route_to_add(
        &mut self,
        entry: &Entry<'_>,
        written: &Written<Text>,
        router: &Router,
    ) -> Option<crate::RouterRoute> {
        let Text(text) = self.term(entry, "add-route", written)?;
        let read = WrittenRoute::read(&text).and_then(|route| router.route(&route));
        let span: &Range<usize> = &written.span;
        let route = read.map_err(|what| self.error(span, entry, "add-route", what, "")).ok()?;
        self.note_unforwarded(entry, ("add-route", span), route.to);
        Some(route)
    }
}
