//! Section `[[source]]`: traffic sources.

use super::nodes::Nodes;
use super::{Entry, Resolver};
use crate::file::{self, File};
use crate::plan::Source;
use crate::settings::SourceSettings;
use crate::source::{KeyFault, MODEL, course_value, model_edit, shortest_frame};
use crate::written::{Name, Written};
use longwire_block::change::{Blocks, Edit};
use longwire_block::flow::FLOW;
use longwire_block::{Spec, Value, Values};
use longwire_units::Nanos;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::ops::Range;

/// Distinct settings of sources so far: a capture is read once for all that replay it.
type ModelCache = HashMap<Vec<String>, (&'static Spec, Values)>;

/// The model that `poisson = true` means.
const POISSON: &str = "poisson";

/// The changeable settings of a source as written, templates expanded.
type Pairs<'w> = Vec<(&'static str, Cow<'w, str>, &'w Range<usize>)>;

/// How many frames a source sends, for how long, and whether from the start.
struct Sending {
    count: Option<u64>,
    duration: Option<Nanos>,
    up: bool,
}

impl Resolver<'_, '_> {
    pub(super) fn sources(&mut self, file: &File, nodes: &mut Nodes) -> Vec<Source> {
        let mut sources = Vec::new();
        let (mut names, mut known) = (HashSet::new(), ModelCache::new());
        for written in &file.source {
            let ends = format!("{}-{}", written.from.text, written.to.text);
            let name = written.name.as_ref().map_or(ends.as_str(), |name| &name.text);
            let entry = Entry { section: "source", name: Some(name), n: None };
            for n in self.numbers(&entry, written) {
                let Some(source) = self.source(&Entry { n, ..entry }, written, name, nodes, &mut known)
                else {
                    break;
                };
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

    /// A source. None after an error.
    fn source(
        &mut self,
        entry: &Entry<'_>,
        written: &file::Source,
        name: &str,
        nodes: &mut Nodes,
        known: &mut ModelCache,
    ) -> Option<Source> {
        let name = Written::new(written.from.span.clone(), name.into());
        let name = self.term::<Name>(entry, "name", written.name.as_ref().unwrap_or(&name));
        let (from, to) = (self.port(entry, "from", &written.from), self.port(entry, "to", &written.to));
        let (in_port, out_port) = (from?, to?);
        let [ingress, egress] = [in_port, out_port].map(|place| &nodes.ports[usize::from(place)]);
        let is_apart = self.is_joined && ingress.segment != egress.segment && nodes.routers.is_empty();
        if in_port == out_port || is_apart {
            let what = format!("nothing leads from \"{}\" to \"{}\"", ingress.name, egress.name);
            let fix = "name two hosts or ports that bridges and links join";
            return self.refuse(&written.to.span, entry, "to", what, fix);
        }
        let (source, destination) = self.addresses(entry, written, (in_port, out_port), nodes)?;
        let first_hop = || nodes.places().first_hop((in_port, out_port), destination);
        let mac = self.is_joined.then(first_hop).flatten();
        if mac.is_none() && self.is_joined {
            let what = "its first hop is not clear: there is no router, or there are several";
            let fix = "begin at a host with a gateway that is a router's address, or at a router's port";
            self.error(&written.from.span, entry, "from", what, fix);
        }
        let settings: SourceSettings = self.row(entry, written)?;
        let pairs = self.pairs(entry, written, settings.poisson)?;
        let fault = |resolver: &mut Self, KeyFault { key, what, fix }: KeyFault| {
            let given = pairs.iter().find(|(name, ..)| *name == key);
            resolver.error(given.map_or(&written.from.span, |(.., span)| span), entry, &key, what, fix);
        };
        let model = self.model(&pairs, source, known);
        let model = model.map_err(|faults| faults.into_iter().for_each(|error| fault(self, error)));
        let sending = Sending::of(&pairs, source).map_err(|error| fault(self, error));
        let ((spec, values), Sending { count, duration, up }) = (model.ok()?, sending.ok()?);
        let name = name?.0;
        Some(Source {
            number: nodes.kept.source_number(&name),
            name,
            in_port,
            out_port,
            source,
            destination,
            mac: mac?,
            spec,
            values,
            start: settings.start,
            count,
            duration,
            up,
        })
    }

    /// The addresses: as given, or the first of each side in a common family.
    fn addresses(
        &mut self,
        entry: &Entry<'_>,
        written: &file::Source,
        (from, to): (u16, u16),
        nodes: &Nodes,
    ) -> Option<(IpAddr, IpAddr)> {
        let source = self.optional(entry, "source", written.source.as_ref())?;
        let destination = self.optional(entry, "destination", written.destination.as_ref())?;
        let own = |place: u16, given: Option<IpAddr>| match given {
            Some(address) => vec![address],
            None => nodes.ports[usize::from(place)].addresses.iter().map(|net| net.address).collect(),
        };
        let (sources, destinations) = (own(from, source), own(to, destination));
        for (key, list, span) in
            [("source", &sources, &written.from.span), ("destination", &destinations, &written.to.span)]
        {
            if list.is_empty() && !self.is_joined {
                return None;
            }
            if list.is_empty() {
                let fix = format!("add {key} = \"10.0.0.1\", or addresses to the port");
                return self.refuse(span, entry, key, "the port has no address to take", fix);
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

    /// The changeable settings as written.
    fn pairs<'w>(
        &mut self,
        entry: &Entry<'_>,
        written: &'w file::Source,
        poisson: Option<bool>,
    ) -> Option<Pairs<'w>> {
        let mut pairs = Pairs::new();
        for (key, text, span) in &written.params {
            pairs.push((key, self.expanded(entry, key, text, span)?, span));
        }
        let named = pairs.iter().find(|(key, ..)| *key == MODEL);
        match (poisson, named) {
            (Some(true), None) => pairs.push((MODEL, POISSON.into(), &written.from.span)),
            (Some(poisson), Some((_, model, span))) if poisson != (model == POISSON) => {
                let what = format!("poisson contradicts model = \"{}\"", model.escape_debug());
                return self.refuse(span, entry, MODEL, what, "remove the key poisson");
            }
            _ => {}
        }
        Some(pairs)
    }

    /// The model and its settings.
    fn model(
        &self,
        pairs: &Pairs<'_>,
        source: IpAddr,
        known: &mut ModelCache,
    ) -> Result<(&'static Spec, Values), Vec<KeyFault>> {
        let of_model = |(key, ..): &&(&str, _, _)| FLOW.params.iter().all(|param| param.name != *key);
        let pairs: Vec<_> = pairs.iter().filter(of_model).map(|(key, text, _)| (*key, &**text)).collect();
        let shortest = shortest_frame(source);
        let texts = pairs.iter().flat_map(|(key, text)| [(*key).to_owned(), (*text).to_owned()]);
        let signature: Vec<String> = texts.chain([shortest.to_string()]).collect();
        if let Some(made) = known.get(&signature) {
            return Ok(made.clone());
        }
        let Edit { spec, fresh, .. } = model_edit(&Blocks::new(), &pairs, shortest, &self.folder)?;
        let made = (spec, fresh.expect("what is made of nothing is whole, or an error"));
        known.insert(signature, made.clone());
        Ok(made)
    }
}

impl Sending {
    fn of(pairs: &Pairs<'_>, source: IpAddr) -> Result<Self, KeyFault> {
        let mut sending = Self { count: None, duration: None, up: true };
        for (key, text, _) in pairs.iter().filter(|(key, ..)| ["packets", "for", "state"].contains(key)) {
            match course_value(key, text, source)? {
                // No limit.
                Value::Packets(u64::MAX) => {}
                Value::Packets(packets) => sending.count = Some(packets),
                Value::Waiting(time) => sending.duration = Some(time),
                state => sending.up = state == Value::Choice(0),
            }
        }
        Ok(sending)
    }
}
