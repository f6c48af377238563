//! How much the entries of a file make with their counts, checked before anything is made.

use super::{Entry, Resolver};
use crate::file::File;
use crate::plan::Route;
use crate::row::Repeated;
use crate::written::{Name, Term, Whole, Written};
use std::ops::Range;

/// The most that entries of a section may make.
struct Most {
    section: &'static str,
    /// What they make, in words.
    what: &'static str,
    number: u64,
    fix: &'static str,
}

const LINKS: Most = Most {
    section: "link",
    what: "links",
    number: Route::MAX_LINKS as u64,
    fix: "make fewer; a duplex link (between) is two",
};
/// The numbers that sources have in their packets are below this.
const SOURCES: Most = Most {
    section: "source",
    what: "traffic sources",
    number: u16::MAX as u64,
    fix: "make fewer that send more: packets of each have a number of their own",
};
/// Limits of what lists contain, each entry's count included.
const LISTED: u64 = 1 << 24;
const ADDRESSES: &str = "addresses, gateways and routes";
const HOSTS: Most =
    Most { section: "host", what: ADDRESSES, number: LISTED, fix: "make fewer, or give each fewer" };
const PORTS: Most = Most { section: "port", ..HOSTS };
const ROUTERS: Most = Most {
    section: "router",
    what: "ports, routes, neighbours and flows",
    number: LISTED,
    fix: "make fewer, or name a routes-file",
};
const MATCHES: Most = Most {
    section: "link",
    what: "address pairs in match",
    number: LISTED,
    fix: "write a pair in one entry of a count only",
};
const PATHS: Most =
    Most { section: "path", what: "paths", number: LISTED, fix: "let the routing find most of them" };
const PATH_LINKS: Most = Most { what: "links in paths", number: 1 << 27, ..PATHS };
const EVENTS: Most = Most {
    section: "at",
    what: "names and routes in events",
    number: LISTED,
    fix: "name fewer, or repeat an event by every and times",
};

/// What an entry makes.
struct Amount<'f> {
    name: Option<&'f str>,
    span: &'f Range<usize>,
    number: u64,
}

impl<'f> Amount<'f> {
    /// That of an entry which makes `each` with every repetition; `place` is its own, if it has no count.
    fn of<T>(
        written: &'f Repeated<T>,
        (name, place): (Option<&'f str>, &'f Range<usize>),
        each: usize,
    ) -> Self {
        let repeats = written.repeats();
        let count = repeats.text("count").and_then(|count| Whole::read(count).ok());
        // One that is below 0 is reported when it is read, and takes nothing from the others.
        let count = count.map_or(1, |Whole(count)| u64::try_from(count.max(0)).unwrap_or(u64::MAX));
        let number = count.saturating_mul(each as u64);
        Self { name, span: repeats.span("count").unwrap_or(place), number }
    }
}

/// An entry's name, and its place.
fn named(name: &Written<Name>) -> (Option<&str>, &Range<usize>) {
    (Some(&name.text), &name.span)
}

impl Resolver<'_, '_> {
    /// Checks what the file makes. None after an error.
    pub(super) fn amounts(&mut self, file: &File) -> Option<()> {
        let hosts = file.host.iter().map(|host| {
            let lists = host.address.0.len() + host.gateway.0.len() + host.routes.len();
            Amount::of(host, named(&host.name), lists)
        });
        self.amount(&HOSTS, hosts)?;
        let ports = file.port.iter().map(|port| Amount::of(port, named(&port.name), port.addresses.0.len()));
        self.amount(&PORTS, ports)?;
        let routers = file.router.iter().map(|router| {
            let lists = router.ports.len() + router.routes.len() + router.neighbours.len();
            Amount::of(router, named(&router.name), lists + router.flows.len())
        });
        self.amount(&ROUTERS, routers)?;
        for (most, is_match) in [(&LINKS, false), (&MATCHES, true)] {
            let links = file.link.iter().map(|link| {
                let name = link.name.as_ref().map(|name| &*name.text);
                let directions = if link.between.is_some() { 2 } else { 1 };
                let each = if is_match { link.matches.len() } else { 1 };
                Amount::of(link, (name, &link.span), directions * each)
            });
            self.amount(most, links)?;
        }
        for (most, is_link) in [(&PATHS, false), (&PATH_LINKS, true)] {
            let paths = file.path.iter().map(|path| {
                let each = if is_link { path.links.0.len() } else { 1 };
                Amount::of(path, (None, &path.from.span), each * path.matches.len().max(1))
            });
            self.amount(most, paths)?;
        }
        let sources = file.source.iter().map(|source| {
            let name = source.name.as_ref().map(|name| &*name.text);
            Amount::of(source, (name, &source.from.span), 1)
        });
        self.amount(&SOURCES, sources)?;
        let events = file.at.iter().map(|at| {
            let objects: usize = at.objects().map(|(_, names)| names.0.len()).sum();
            let routes = at.add_route.0.len() + at.remove_route.0.len();
            Amount::of(at, (at.text("time"), &at.span), objects + routes)
        });
        self.amount(&EVENTS, events)
    }

    /// Checks that all of these together are at most as many as there can be. None after an error.
    fn amount<'f>(&mut self, most: &Most, all: impl Iterator<Item = Amount<'f>>) -> Option<()> {
        let Most { section, what, number: limit, fix } = *most;
        let mut sum = 0u64;
        for Amount { name, span, number } in all {
            sum = sum.saturating_add(number);
            if sum > limit {
                let what = format!("with these there are {sum} {what}, and {limit} is the limit");
                return self.refuse(span, &Entry { section, name, n: None }, "count", what, fix);
            }
        }
        Some(())
    }
}
