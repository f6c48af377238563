//! Section `[[source]]`: traffic of runs in virtual time.

use super::nodes::Nodes;
use super::{Desk, Entry};
use crate::file::{self, File};
use crate::plan::{Pace, Source};
use crate::written::{Name, Written};
use longwire_units::{Bytes, Nanos, Rate};
use std::collections::HashSet;
use std::net::IpAddr;

/// Ethernet, IPv6 and UDP headers fit even into the shortest frame.
const SIZES: std::ops::RangeInclusive<Bytes> = Bytes(62)..=Bytes(65_549);

impl Desk<'_, '_> {
    pub(super) fn sources(&mut self, file: &File, nodes: &Nodes) -> Vec<Source> {
        let mut sources = Vec::new();
        let mut names = HashSet::new();
        for written in &file.source {
            let ends = format!("{}-{}", written.from.text, written.to.text);
            let name = written.name.as_ref().map_or(ends.as_str(), |name| &name.text);
            let entry = Entry { section: "source", name: Some(name), n: None };
            for n in self.numbers(&entry, written.count.as_ref(), written.first.as_ref()) {
                let Some(source) = self.source(&Entry { n, ..entry }, written, name, nodes) else { break };
                if !names.insert(source.name.clone()) {
                    let what = format!("there are two sources named \"{}\"", source.name);
                    self.error(&written.from.span, &entry, "name", what, "give each a name of its own");
                    break;
                }
                sources.push(source);
            }
        }
        sources
    }

    /// None after an error.
    fn source(
        &mut self,
        entry: &Entry<'_>,
        written: &file::Source,
        name: &str,
        nodes: &Nodes,
    ) -> Option<Source> {
        let name = Written::new(written.from.span.clone(), name.into());
        let name = self.term::<Name>(entry, "name", written.name.as_ref().unwrap_or(&name));
        let (from, to) = (self.port(entry, "from", &written.from), self.port(entry, "to", &written.to));
        let (in_port, out_port) = (from?, to?);
        let [ingress, egress] = [in_port, out_port].map(|place| &nodes.ports[usize::from(place)]);
        if in_port == out_port || ingress.segment != egress.segment {
            let what = format!("nothing leads from \"{}\" to \"{}\"", ingress.name, egress.name);
            self.error(
                &written.to.span,
                entry,
                "to",
                what,
                "name two hosts or ports that bridges and links join",
            );
            return None;
        }
        let (source, destination) = self.addresses(entry, written, (in_port, out_port), nodes)?;
        let size = self.term_in(entry, "size", written.size.as_ref(), Bytes(1000), SIZES);
        let pace = self.pace(entry, written);
        let start = self.term_or(entry, "start", written.start.as_ref(), Nanos::ZERO);
        let count = match &written.packets {
            Some(packets) => Some(self.whole_or(entry, "packets", Some(packets), 0, 1..=u64::MAX)?),
            None => None,
        };
        let duration = match &written.duration {
            Some(duration) => Some(self.term(entry, "for", duration)?),
            None => None,
        };
        Some(Source {
            name: name?.0,
            in_port,
            out_port,
            source,
            destination,
            size: size?.0 as u32,
            pace: pace?,
            poisson: written.poisson.unwrap_or(false),
            start: start?,
            count,
            duration,
        })
    }

    /// The addresses: those given, else the first of each side that are of one family.
    fn addresses(
        &mut self,
        entry: &Entry<'_>,
        written: &file::Source,
        (from, to): (u16, u16),
        nodes: &Nodes,
    ) -> Option<(IpAddr, IpAddr)> {
        let given = |desk: &mut Self, key, text: &Option<Written<IpAddr>>| match text {
            Some(text) => desk.term(entry, key, text).map(Some),
            None => Some(None),
        };
        let source = given(self, "source", &written.source)?;
        let destination = given(self, "destination", &written.destination)?;
        let own = |place: u16, given: Option<IpAddr>| match given {
            Some(address) => vec![address],
            None => nodes.ports[usize::from(place)].addresses.iter().map(|net| net.address).collect(),
        };
        let (sources, destinations) = (own(from, source), own(to, destination));
        for (key, list, span) in
            [("source", &sources, &written.from.span), ("destination", &destinations, &written.to.span)]
        {
            if list.is_empty() {
                let mend = format!("add {key} = \"10.0.0.1\", or addresses to the port");
                self.error(span, entry, key, "the port has no address to take", mend);
                return None;
            }
        }
        let family = |source: &IpAddr| destinations.iter().find(|to| to.is_ipv4() == source.is_ipv4());
        let pair = sources.iter().find_map(|source| Some((*source, *family(source)?)));
        if pair.is_none() {
            let what = "source and destination are of different families";
            self.error(&written.to.span, entry, "destination", what, "give two IPv4 or two IPv6 addresses");
        }
        pair
    }

    fn pace(&mut self, entry: &Entry<'_>, written: &file::Source) -> Option<Pace> {
        match (&written.rate, &written.interval) {
            (Some(text), None) => {
                let rate: Rate = self.term(entry, "rate", text)?;
                if rate == Rate::UNLIMITED || rate == Rate::STALLED {
                    self.error(
                        &text.span,
                        entry,
                        "rate",
                        format!("a source can't send at {rate}"),
                        "write \"10 Mbit/s\"",
                    );
                    return None;
                }
                Some(Pace::Rate(rate))
            }
            (None, Some(text)) => {
                let interval: Nanos = self.term(entry, "interval", text)?;
                if interval == Nanos::ZERO {
                    self.error(
                        &text.span,
                        entry,
                        "interval",
                        "frames can't come at once",
                        "write \"1 ms\", say",
                    );
                    return None;
                }
                Some(Pace::Interval(interval))
            }
            _ => {
                let what = "a source has either a rate or an interval";
                self.error(
                    &written.from.span,
                    entry,
                    "rate",
                    what,
                    "write rate = \"10 Mbit/s\" or interval = \"1 ms\"",
                );
                None
            }
        }
    }
}
