//! Entries of `[[at]]` that change routers' routes and flow weights.

use super::events::{keys_of_changes, only_of_routers};
use super::{Entry, Resolver, hint, some};
use crate::file::{At, File};
use crate::router_plan::{RouteChange, Router, RouterEvent, WrittenRoute};
use crate::settings::AtSettings;
use crate::written::{Name, Text, Written};
use longwire_sched::Weight;

/// Most events of routers, after templates.
const MOST_EVENTS: usize = 1_000_000;

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
        if let Some(key) = keys_of_changes(written).next() {
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
            changes.push(self.accept(&text.span, entry, "remove-route", known.removal(to))?);
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
            let fix = hint(&name, &known, "name it in the router's flows, beside a scheduler");
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
        let route = self.accept(&written.span, entry, "add-route", read)?;
        self.note_unforwarded(entry, ("add-route", &written.span), route.to);
        Some(route)
    }
}
