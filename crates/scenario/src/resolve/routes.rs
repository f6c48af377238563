//! Routes of `[[router]]`, from the scenario and from a file of routes.

use super::{Entry, Resolver};
use crate::address::Network;
use crate::file_router::RouterRoute as WrittenEntry;
use crate::router_plan::{Router, RouterRoute, WrittenHop, WrittenRoute};
use crate::settings::HopSettings;
use crate::written::{Name, Text, Written};
use longwire_settings::plain_file::text_of;
use std::borrow::Cow;
use std::collections::HashSet;
use std::net::IpAddr;
use std::ops::Range;

/// Longest file of routes in bytes.
const LONGEST_ROUTES: u64 = 256 << 20;

impl Resolver<'_, '_> {
    /// A route of `routes`; `known` networks have one already. None after an error.
    pub(super) fn router_route(
        &mut self,
        entry: &Entry<'_>,
        written: &WrittenEntry,
        router: &Router,
        known: &mut HashSet<Network>,
    ) -> Option<RouterRoute> {
        let to = self.term(entry, "routes.to", &written.to)?;
        let mut hops = Vec::new();
        if written.via.is_some() || written.port.is_some() {
            if !written.next_hops.is_empty() {
                let what = "it has next-hops, and via or port beside them";
                let fix = "name all next hops in next-hops";
                return self.refuse(&written.to.span, entry, "routes", what, fix);
            }
            hops.push(self.next_hop(entry, (&written.via, &written.port), 1, router)?);
        }
        for hop in &written.next_hops {
            let HopSettings { weight } = self.subtable(entry, "routes", Some(hop))?;
            hops.push(self.next_hop(entry, (&hop.via, &hop.port), weight, router)?);
        }
        let to = to.by(hops.iter().filter_map(|hop| hop.via));
        let route = WrittenRoute { to, hops, discard: written.discard.unwrap_or(false) };
        let read = route.check().and_then(|()| router.route(&route));
        let twice = || format!("there is a route to {to} already: keep one of the two");
        let read = read.and_then(|route| if known.insert(to) { Ok(route) } else { Err(twice()) });
        let route = self.accept(&written.to.span, entry, "routes", read)?;
        self.note_unforwarded(entry, ("routes", &written.to.span), to);
        Some(route)
    }

    fn next_hop<'r>(
        &mut self,
        entry: &Entry<'_>,
        (via, port): (&Option<Written<IpAddr>>, &Option<Written<Name>>),
        weight: u16,
        router: &'r Router,
    ) -> Option<WrittenHop<'r>> {
        let via = self.optional(entry, "routes.via", via.as_ref())?;
        let port = match port {
            Some(port) => Some(&*self.own_port(entry, "routes.port", port, router)?.name),
            None => None,
        };
        Some(WrittenHop { via, port, weight })
    }

    /// Warns about a route that is never used.
    pub(super) fn note_unforwarded(
        &mut self,
        entry: &Entry<'_>,
        (key, span): (&str, &Range<usize>),
        to: Network,
    ) {
        if let Some(what) = to.unused_route() {
            self.findings.note(span.clone(), &entry.field(key), what, "leave it out");
        }
    }

    /// The routes of a file, one per line; empty lines and comments (#) are skipped.
    pub(super) fn routes_file(
        &mut self,
        entry: &Entry<'_>,
        written: &Written<Text>,
        router: &Router,
        known: &mut HashSet<Network>,
    ) -> Option<Vec<RouterRoute>> {
        let Text(name) = self.term(entry, "routes-file", written)?;
        let text = match text_of(&self.folder.join(&name), LONGEST_ROUTES) {
            Ok(text) => text,
            Err(error) => {
                let fix = "name a file with a route on each line, as \"ip route\" prints them";
                return self.refuse(&written.span, entry, "routes-file", format!("{name}: {error}"), fix);
            }
        };
        let mut routes = Vec::new();
        let mut unused = None;
        for (line, text) in joined(&text) {
            let route = WrittenRoute::read(&text).and_then(|route| router.route(&route));
            if let Ok(route) = &route
                && let Some(what) = route.to.unused_route()
            {
                unused.get_or_insert((line, what, 0)).2 += 1;
            }
            match route {
                // Of routes with several metrics, the first is the best.
                Ok(route) if known.insert(route.to) => routes.push(route),
                Ok(_) => {}
                Err(what) => {
                    let what = format!("{name}:{line}: {what}");
                    return self.refuse(&written.span, entry, "routes-file", what, "");
                }
            }
        }
        // One warning for all: "ip route" prints a route to fe80::/64 for each interface.
        if let Some((line, what, count)) = unused {
            let what = format!("{name}:{line}: {what}");
            let fix = match count {
                1 => "leave it out".to_owned(),
                _ => format!("leave it out, and {} more", count - 1),
            };
            self.findings.note(written.span.clone(), &entry.field("routes-file"), what, fix);
        }
        Some(routes)
    }
}

/// The lines with routes, with their numbers. "nexthop" lines continue the line before.
fn joined(text: &str) -> Vec<(usize, Cow<'_, str>)> {
    let mut lines: Vec<(usize, Cow<'_, str>)> = Vec::new();
    for (line, text) in text.lines().enumerate().map(|(line, text)| (line + 1, text.trim())) {
        match lines.last_mut() {
            _ if text.is_empty() || text.starts_with('#') => {}
            Some((_, before)) if text.starts_with("nexthop ") => {
                let before = before.to_mut();
                before.push(' ');
                before.push_str(text);
            }
            _ => lines.push((line, text.into())),
        }
    }
    lines
}
