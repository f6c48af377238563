//! Entries of `[[at]]` that change routes of routers.

use super::{Desk, Entry, some};
use crate::file::{At, File};
use crate::finding::suggestion;
use crate::router_plan::{RouteChange, Router, RouterEvent, WrittenRoute};
use crate::written::{Text, Written};
use std::ops::Range;

/// Most events of routers, after templates.
const MOST_EVENTS: usize = 1_000_000;

impl Desk<'_, '_> {
    /// The changes of routes, in the file's order.
    pub(super) fn router_events(&mut self, file: &File, routers: &[Router]) -> Vec<RouterEvent> {
        let mut events = Vec::new();
        for written in file.at.iter().filter(|at| at.router.is_some()) {
            let entry = Entry { section: "at", name: Some(&written.time.text), n: None };
            for n in self.numbers(&entry, written.count.as_ref(), written.first.as_ref()) {
                let entry = Entry { n, ..entry };
                if events.len() == MOST_EVENTS {
                    let what = format!("there are more than {MOST_EVENTS} events of routers");
                    self.error(&written.span, &entry, "", what, "make fewer");
                    return events;
                }
                let Some(event) = self.router_event(&entry, written, routers) else { break };
                events.push(event);
            }
        }
        events
    }

    /// None after an error.
    fn router_event(&mut self, entry: &Entry<'_>, written: &At, routers: &[Router]) -> Option<RouterEvent> {
        let time = self.term(entry, "time", &written.time)?;
        let name = written.router.as_ref()?;
        let text = self.term(entry, "router", name)?.0;
        let Some(&router) = self.routers.get(&text) else {
            let known: Vec<&str> = routers.iter().map(|router| &*router.name).collect();
            let mend = match suggestion(&text, known.iter().copied()) {
                Some(near) => format!("did you mean \"{near}\"?"),
                None if known.is_empty() => "declare it as [[router]]".into(),
                None => format!("there are {}", some(&known)),
            };
            self.error(&name.span, entry, "router", format!("there is no router \"{text}\""), mend);
            return None;
        };
        let others = [
            ("link", written.link.is_some()),
            ("source", written.source.is_some()),
            ("medium", written.medium.is_some()),
            ("ramp", written.ramp.is_some()),
            ("every", written.every.is_some()),
            ("times", written.times.is_some()),
        ];
        let other = others.iter().find(|(_, given)| *given).map(|(key, _)| *key);
        if let Some(key) = other.or_else(|| written.blocks.first().map(|block| &*block.key)) {
            let what = format!("{key} does not go with router");
            let mend = "a router's routes change at once and once: write an entry for each change";
            self.error(&written.span, entry, key, what, mend);
            return None;
        }
        let known = &routers[router as usize];
        if known.control {
            let what = format!("router \"{text}\" follows its control plane, which decides about its routes");
            let mend = "take the entry away, or control-plane from the router";
            self.error(&name.span, entry, "router", what, mend);
            return None;
        }
        let mut changes = Vec::new();
        for text in &written.remove_route.0 {
            let to = self.term(entry, "remove-route", text)?.masked();
            changes.push(RouteChange::Remove(to));
        }
        for text in &written.add_route.0 {
            changes.push(RouteChange::Add(self.route_to_add(entry, text, known)?));
        }
        if changes.is_empty() {
            let mend = "add add-route = \"10.1.0.0/16 via 10.0.0.2\" or remove-route = \"10.1.0.0/16\"";
            self.error(&written.span, entry, "", "nothing changes", mend);
            return None;
        }
        Some(RouterEvent { time, router, changes })
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
        read.map_err(|what| self.error(span, entry, "add-route", what, "")).ok()
    }
}
