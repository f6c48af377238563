//! Section `[[source]]`: traffic that Longwire sends.

use super::blocks::bare;
use super::nodes::Nodes;
use super::{Desk, Entry};
use crate::file::{self, File};
use crate::plan::Source;
use crate::source_edit::{LONGEST_FRAME, SourceFault, shortest_frame};
use crate::words::{SourceModel, SourceState};
use crate::written::{Name, Term, Written};
use longwire_block::{Spec, SpecError, Values};
use longwire_random::process;
use longwire_units::{Bytes, Nanos, Rate};
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::ops::Range;

/// What sources are set to so far, each once: a capture is read once for all that replay it.
type Known = HashMap<Vec<String>, Values>;

/// How a source's packets come.
struct Chosen {
    spec: &'static Spec,
    values: Values,
    interval: Option<Nanos>,
}

/// A key of a model's, as it is written.
struct Given<'w> {
    key: &'static str,
    span: &'w Range<usize>,
    text: String,
}

impl Desk<'_, '_> {
    pub(super) fn sources(&mut self, file: &File, nodes: &Nodes) -> Vec<Source> {
        let mut sources = Vec::new();
        let (mut names, mut known) = (HashSet::new(), Known::new());
        for written in &file.source {
            let ends = format!("{}-{}", written.from.text, written.to.text);
            let name = written.name.as_ref().map_or(ends.as_str(), |name| &name.text);
            let entry = Entry { section: "source", name: Some(name), n: None };
            for n in self.numbers(&entry, written.count.as_ref(), written.first.as_ref()) {
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

    /// None after an error.
    fn source(
        &mut self,
        entry: &Entry<'_>,
        written: &file::Source,
        name: &str,
        nodes: &Nodes,
        known: &mut Known,
    ) -> Option<Source> {
        let name = Written::new(written.from.span.clone(), name.into());
        let name = self.term::<Name>(entry, "name", written.name.as_ref().unwrap_or(&name));
        let (from, to) = (self.port(entry, "from", &written.from), self.port(entry, "to", &written.to));
        let (in_port, out_port) = (from?, to?);
        let [ingress, egress] = [in_port, out_port].map(|place| &nodes.ports[usize::from(place)]);
        if in_port == out_port || (ingress.segment != egress.segment && nodes.routers.is_empty()) {
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
        let mac = nodes.places().first_hop((in_port, out_port), destination);
        if mac.is_none() {
            let what = "no router there, or several, could be the first on its way";
            let fix = "begin at a host with a gateway that is a router's address, or at a router's port";
            self.error(&written.from.span, entry, "from", what, fix);
        }
        let shortest = shortest_frame(source);
        let size = self.term_in(entry, "size", written.size.as_ref(), Bytes(1000), shortest..=LONGEST_FRAME);
        let chosen = self.chosen(entry, written, size?, known);
        let start = self.term_or(entry, "start", written.start.as_ref(), Nanos::ZERO);
        let count = match &written.packets {
            Some(packets) => Some(self.whole_or(entry, "packets", Some(packets), 0, 1..=u64::MAX)?),
            None => None,
        };
        let duration = match &written.duration {
            Some(duration) => Some(self.term(entry, "for", duration)?),
            None => None,
        };
        let state = self.term_or(entry, "state", written.state.as_ref(), SourceState::Up);
        let Chosen { spec, values, interval } = chosen?;
        Some(Source {
            name: name?.0,
            in_port,
            out_port,
            source,
            destination,
            mac: mac?,
            spec,
            values,
            interval,
            start: start?,
            count,
            duration,
            up: state? == SourceState::Up,
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
                let fix = format!("add {key} = \"10.0.0.1\", or addresses to the port");
                self.error(span, entry, key, "the port has no address to take", fix);
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

    /// The model and what it is set to.
    fn chosen(
        &mut self,
        entry: &Entry<'_>,
        written: &file::Source,
        size: Bytes,
        known: &mut Known,
    ) -> Option<Chosen> {
        let model = self.model(entry, written)?;
        let spec = process::spec(model.word())?;
        let mut given = self.given(entry, written)?;
        let interval = self.interval(entry, written, model)?;
        for Given { key, span, .. } in &given {
            if spec.params.iter().all(|param| param.name != *key) {
                let SourceFault { what, fix, .. } = SourceFault::no_such_key(spec.kind, key);
                self.error(span, entry, key, what, fix);
                return None;
            }
        }
        if let Some(interval) = interval {
            let rate = (size.0 * 8_000_000_000 / interval.0).clamp(Rate::MIN.0, Rate::MAX.0);
            given.push(Given { key: "rate", span: &written.from.span, text: Rate(rate).to_string() });
        }
        let signature = given.iter().flat_map(|given| [given.key.into(), given.text.clone()]);
        let signature: Vec<String> = std::iter::once(spec.kind.into()).chain(signature).collect();
        if let Some(values) = known.get(&signature) {
            return Some(Chosen { spec, values: values.clone(), interval });
        }
        let pairs: Vec<_> = given.iter().map(|given| (given.key, given.text.as_str())).collect();
        match Values::read_in(spec, &pairs, &self.folder) {
            Ok(values) => {
                known.insert(signature, values.clone());
                Some(Chosen { spec, values, interval })
            }
            Err(error) => {
                self.tell(entry, written, &given, &error);
                None
            }
        }
    }

    /// Says what is wrong with a model's key where the key stands.
    fn tell(&mut self, entry: &Entry<'_>, written: &file::Source, given: &[Given<'_>], error: &SpecError) {
        let (SpecError::Missing { name, .. }
        | SpecError::Unit { name, .. }
        | SpecError::Text { name, .. }
        | SpecError::Outside { name, .. }
        | SpecError::Range { name, .. }) = error
        else {
            return self.error(&written.from.span, entry, "model", error.to_string(), "");
        };
        let span =
            given.iter().find(|given| given.key == *name).map_or(&written.from.span, |given| given.span);
        match error {
            SpecError::Missing { kind, help, .. } => {
                let what = format!("the model {kind} needs it: {help}");
                self.error(span, entry, name, what, format!("add {name} = \"…\""));
            }
            other => self.error(span, entry, name, bare(other), ""),
        }
    }

    /// The model's keys that are written, their templates expanded.
    fn given<'w>(&mut self, entry: &Entry<'_>, written: &'w file::Source) -> Option<Vec<Given<'w>>> {
        let mut given = Vec::new();
        self.give(entry, "rate", written.rate.as_ref(), &mut given)?;
        self.give(entry, "rates", written.rates.as_ref(), &mut given)?;
        self.give(entry, "dwell", written.dwell.as_ref(), &mut given)?;
        self.give(entry, "on", written.on.as_ref(), &mut given)?;
        self.give(entry, "off", written.off.as_ref(), &mut given)?;
        self.give(entry, "shape", written.shape.as_ref(), &mut given)?;
        self.give(entry, "file", written.file.as_ref(), &mut given)?;
        self.give(entry, "speed", written.speed.as_ref(), &mut given)?;
        self.give(entry, "size", written.size.as_ref(), &mut given)?;
        if let (Some(text), Some(Given { span, .. })) = (&written.rate, given.first()) {
            let rate: Rate = self.term(entry, "rate", text)?;
            if let Some(SourceFault { what, fix, .. }) = SourceFault::of_rate(rate) {
                self.error(span, entry, "rate", what, fix);
                return None;
            }
        }
        Some(given)
    }

    fn give<'w, T: Term>(
        &mut self,
        entry: &Entry<'_>,
        key: &'static str,
        written: Option<&'w Written<T>>,
        given: &mut Vec<Given<'w>>,
    ) -> Option<()> {
        if let Some(written) = written {
            let text = self.expanded(entry, key, &written.text, &written.span)?;
            given.push(Given { key, span: &written.span, text });
        }
        Some(())
    }

    /// The model that is written, by its name or as `poisson = true`.
    fn model(&mut self, entry: &Entry<'_>, written: &file::Source) -> Option<SourceModel> {
        let plain = if written.poisson == Some(true) { SourceModel::Poisson } else { SourceModel::Cbr };
        let model = self.term_or(entry, "model", written.model.as_ref(), plain)?;
        let said = written.poisson.map(|poisson| poisson == (model == SourceModel::Poisson));
        if let (Some(text), Some(false)) = (&written.model, said) {
            let what = format!("poisson says otherwise than model = \"{model}\"");
            self.error(&text.span, entry, "model", what, "remove the key poisson");
            return None;
        }
        Some(model)
    }

    /// The interval, if one is written instead of the rate; none in all after an error.
    #[expect(clippy::option_option, reason = "the outer one is that of an error, as everywhere here")]
    fn interval(
        &mut self,
        entry: &Entry<'_>,
        written: &file::Source,
        model: SourceModel,
    ) -> Option<Option<Nanos>> {
        let Some(text) = &written.interval else {
            let paced = matches!(model, SourceModel::Cbr | SourceModel::Poisson);
            if paced && written.rate.is_none() {
                let what = "a source has either a rate or an interval";
                let fix = "write rate = \"10 Mbit/s\" or interval = \"1 ms\"";
                self.error(&written.from.span, entry, "rate", what, fix);
                return None;
            }
            return Some(None);
        };
        let (what, fix) = match model {
            SourceModel::Cbr | SourceModel::Poisson if written.rate.is_none() => {
                let interval: Nanos = self.term(entry, "interval", text)?;
                if (1..1 << 63).contains(&interval.0) {
                    return Some(Some(interval));
                }
                ("frames can't come at once".into(), "write \"1 ms\", say")
            }
            SourceModel::Cbr | SourceModel::Poisson => {
                ("a source has either a rate or an interval".into(), "remove one of the two")
            }
            other => (format!("the model {other} has no interval"), "remove it"),
        };
        self.error(&text.span, entry, "interval", what, fix);
        None
    }
}
