//! Sections to plan: names to places, texts to values, links to routes.

mod amounts;
mod blocks;
mod delays;
mod dry_run;
mod events;
mod forwarders;
mod graph;
mod levels;
mod links;
mod media;
mod nodes;
mod paths;
mod port_queues;
mod processors;
mod router_events;
mod router_ports;
mod routers;
mod routes;
mod rules;
mod settings;
mod sources;
mod steers;
mod warnings;

pub(crate) use events::{LeftOut, RunSoFar, StageRequest};
pub use media::medium_edit;

use crate::edit::removable;
use crate::file::File;
use crate::finding::{Findings, did_you_mean};
use crate::plan::{End, Medium, Plan, Routes};
use crate::row::Repeated;
use crate::settings::{RepeatSettings, ScenarioSettings};
use crate::template;
use crate::written::{Name, Term, Written};
use events::GoneName;
use graph::Graph;
use links::Links;
use longwire_block::Spec;
use longwire_units::Nanos;
use nodes::{KeptPlaces, Nodes};
use paths::Topology;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Display;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a file describes.
pub(crate) struct Resolved {
    pub(crate) plan: Plan,
    /// What is added and removed while it runs.
    pub(crate) stages: Vec<StageRequest>,
    /// What is left out of events.
    pub(crate) left_out: Vec<LeftOut>,
}

/// The plan that `file` describes, complete only if `findings` has no error in the end. Ports have the places
/// that they have in the `run` that is brought to it, if there is one.
pub(crate) fn resolve(
    (file, run): (&File, Option<RunSoFar<'_>>),
    name: &str,
    registry: &[&'static Spec],
    findings: &mut Findings<'_>,
) -> Option<Resolved> {
    let mut resolver = Resolver::new(registry, findings, name, (file, run));
    let (engine, fidelity) = (resolver.engine(file), resolver.fidelity(file));
    let whole: Option<ScenarioSettings> = resolver.row(&Entry::root(), &file.whole);
    resolver.amounts(file)?;
    let mut nodes = resolver.nodes(file, run.map(|run| KeptPlaces::of(run.plan)).unwrap_or_default());
    let mut links = resolver.links(file);
    let steers = resolver.steers(&mut links);
    let Some((media, graph)) = resolver.joined(file, &mut nodes, &mut links, whole.as_ref()) else {
        // Their own mistakes are reported, too.
        resolver.sources(file, &mut nodes);
        return None;
    };
    let (link_requests, owners) = (resolver.choices(&mut nodes, &links), resolver.owners(&nodes));
    let given = resolver.paths(file, Topology { nodes: &nodes, links: &links, graph: &graph }, &owners);
    let sources = resolver.sources(file, &mut nodes);
    let forwarders = resolver.forwarders(file, &nodes.routers);
    let resolved_events = resolver.events(file, &links, (&sources, &media, nodes.places()));
    let (router_events, stages) = (resolver.router_events(file, &nodes.routers), resolver.stages(file));
    if resolver.findings.failed() {
        return None;
    }
    let (mut routes, known) = (Routes::default(), Topology { nodes: &nodes, links: &links, graph: &graph });
    let pair_rules = resolver.pair_rules(&nodes, &graph, &given, &mut routes)?;
    let address_rules = resolver.address_rules(known, &given, &owners, &mut routes);
    if resolver.findings.failed() {
        return None;
    }
    let plan = Plan {
        file: name.into(),
        text: Arc::default(),
        seed: whole?.seed,
        routing: graph.routing,
        engine: engine?,
        fidelity: fidelity?,
        hosts: nodes.hosts,
        ports: nodes.ports,
        bridges: nodes.bridges,
        routers: nodes.routers,
        forwarders,
        segments: graph.segments,
        profiles: links.profiles,
        links: links.links,
        media,
        routes,
        address_rules,
        pair_rules,
        sources,
        source_numbers: nodes.kept.source_numbers,
        silent_ports: Vec::new(),
        steers,
        link_requests,
        events: resolved_events.events,
        router_events,
        stages: Vec::new(),
        read_at: run.map_or(Nanos::ZERO, |run| run.elapsed),
        changing_delays: resolved_events.delays,
        nesp: resolver.nesp(file),
        notes: Vec::new(),
    };
    resolver.warnings(&plan, &links.spans, &nodes.spans);
    resolver.queues(file, &plan, &nodes.queue_spans);
    Some(Resolved { plan, stages, left_out: resolver.left_out })
}

/// The state shared by all steps.
struct Resolver<'d, 'f> {
    registry: &'d [&'static Spec],
    findings: &'d mut Findings<'f>,
    /// Hosts, ports and bridges by name: one namespace.
    nodes: HashMap<Box<str>, End>,
    /// Routers by name, in the same namespace.
    routers: HashMap<Box<str>, u32>,
    /// Whether it is known where nodes and links lead.
    is_joined: bool,
    /// Whether an entry with an error left nodes unmade: a name that is not known may be theirs.
    some_unmade: bool,
    /// The scenario's folder, to which file names are relative.
    folder: PathBuf,
    /// The run that is brought to the scenario, if there is one.
    run: Option<RunSoFar<'d>>,
    /// The objects named in the current entry of `[[at]]` that are gone.
    gone: Vec<GoneName>,
    /// What is left out of entries of `[[at]]`.
    left_out: Vec<LeftOut>,
    /// The names of what entries of `[[at]]` add.
    added_later: Vec<String>,
}

impl<'d, 'f> Resolver<'d, 'f> {
    /// A resolver of the scenario file `name`, to which a `run` is brought, if there is one.
    fn new(
        registry: &'d [&'static Spec],
        findings: &'d mut Findings<'f>,
        name: &str,
        (file, run): (&File, Option<RunSoFar<'d>>),
    ) -> Self {
        let folder = Path::new(name).parent().map(Path::to_path_buf).unwrap_or_default();
        let added = file.at.iter().filter_map(|at| at.add.as_ref());
        Self {
            registry,
            findings,
            nodes: HashMap::new(),
            routers: HashMap::new(),
            is_joined: false,
            some_unmade: false,
            folder,
            run,
            gone: Vec::new(),
            left_out: Vec::new(),
            added_later: added.flat_map(|added| removable(&added.text)).collect(),
        }
    }
}

impl Resolver<'_, '_> {
    /// Joins nodes and links; the media, and the graph. None after an error, also before.
    fn joined(
        &mut self,
        file: &File,
        nodes: &mut Nodes,
        links: &mut Links,
        whole: Option<&ScenarioSettings>,
    ) -> Option<(Vec<Medium>, Graph)> {
        let has_failed = self.findings.failed();
        let media = self.media(file);
        if has_failed {
            return None;
        }
        self.join_routers(file, nodes, links)?;
        let media = self.media_of_links(file, media, links);
        let graph = self.graph(file, nodes, links, whole?.routing)?;
        routers::give_gateways(nodes);
        self.is_joined = true;
        Some((media, graph))
    }

    fn error(
        &mut self,
        span: &Range<usize>,
        entry: &Entry<'_>,
        key: &str,
        what: impl Into<String>,
        fix: impl Into<String>,
    ) {
        self.findings.error(span.clone(), &entry.field(key), what.into(), fix);
    }

    /// Reports an error and returns none.
    fn refuse<T>(
        &mut self,
        span: &Range<usize>,
        entry: &Entry<'_>,
        key: &str,
        what: impl Into<String>,
        fix: impl Into<String>,
    ) -> Option<T> {
        self.error(span, entry, key, what, fix);
        None
    }

    /// What was read; none after an error, which is reported.
    fn accept<T>(
        &mut self,
        span: &Range<usize>,
        entry: &Entry<'_>,
        key: &str,
        read: Result<T, impl Display>,
    ) -> Option<T> {
        read.map_err(|what| self.error(span, entry, key, what.to_string(), "")).ok()
    }

    /// A text with its template expanded. None after an error.
    fn expanded<'t>(
        &mut self,
        entry: &Entry<'_>,
        key: &str,
        text: &'t str,
        span: &Range<usize>,
    ) -> Option<Cow<'t, str>> {
        self.accept(span, entry, key, template::expand(text, entry.n))
    }

    /// Reads a value after expanding its template. None after an error.
    fn term<T: Term>(&mut self, entry: &Entry<'_>, key: &str, written: &Written<T>) -> Option<T> {
        let text = self.expanded(entry, key, &written.text, &written.span)?;
        self.accept(&written.span, entry, key, T::read(&text))
    }

    /// Reads a value, if one is written. None after an error.
    fn optional<T: Term>(
        &mut self,
        entry: &Entry<'_>,
        key: &str,
        written: Option<&Written<T>>,
    ) -> Option<Option<T>> {
        match written {
            Some(written) => self.term(entry, key, written).map(Some),
            None => Some(None),
        }
    }

    /// The numbers of an entry's repetitions: a single `None` without a count.
    fn numbers<T>(
        &mut self,
        entry: &Entry<'_>,
        written: &Repeated<T>,
    ) -> Box<dyn Iterator<Item = Option<u64>>> {
        let repeats = written.repeats();
        if let (None, Some(first)) = (repeats.span("count"), repeats.span("first")) {
            let what = "first has no meaning without count";
            self.error(first, entry, "first", what, "add one such as count = 10");
        }
        match self.row(entry, repeats) {
            Some(RepeatSettings { count: None, .. }) => Box::new(std::iter::once(None)),
            Some(RepeatSettings { count: Some(count), first }) => Box::new((first..first + count).map(Some)),
            None => Box::new(std::iter::empty()),
        }
    }

    /// The end of this name.
    fn end(&mut self, entry: &Entry<'_>, key: &str, written: &Written<Name>) -> Option<End> {
        let text = template::expand(&written.text, entry.n);
        if let Some(end) = text.as_ref().ok().and_then(|text| self.nodes.get(text.as_ref())) {
            return Some(*end);
        }
        let name = self.term(entry, key, written)?;
        if self.routers.contains_key(&name.0) {
            let what = format!("\"{}\" is a router, and links are joined to its ports", name.0);
            let fix = "name one of its own ports: one that is neither a host nor a declared port";
            return self.refuse(&written.span, entry, key, what, fix);
        }
        if self.some_unmade {
            return None;
        }
        let mut known: Vec<&str> = self.nodes.keys().map(AsRef::as_ref).collect();
        known.sort_unstable();
        let declare = "declare it as [[host]], [[port]] or [[bridge]]";
        let fix = did_you_mean(&name.0, known.iter().copied()).unwrap_or_else(|| match &known[..] {
            [] => declare.into(),
            _ => format!("there are {}; or {declare}", some(&known)),
        });
        let what = format!("there is no host, port or bridge \"{}\"", name.0);
        self.refuse(&written.span, entry, key, what, fix)
    }

    /// The place of the object with this name among those with `names`. None after an error.
    fn place_named<'n>(
        &mut self,
        entry: &Entry<'_>,
        key: &str,
        written: &Written<Name>,
        names: impl Iterator<Item = &'n str> + Clone,
    ) -> Option<u32> {
        let name = self.term(entry, key, written)?.0;
        let place = names.clone().position(|other| *other == *name);
        place
            .map(|place| place as u32)
            .or_else(|| self.no_such(entry, (&written.span, key), &name, &names.collect::<Vec<_>>()))
    }

    /// The router of this name. None after an error.
    fn router_named(&mut self, entry: &Entry<'_>, written: &Written<Name>) -> Option<u32> {
        let name = self.term(entry, "router", written)?.0;
        self.routers.get(&name).copied().or_else(|| {
            let mut known: Vec<Box<str>> = self.routers.keys().cloned().collect();
            known.sort_unstable();
            self.no_such(entry, (&written.span, "router"), &name, &known)
        })
    }

    /// Reports that none of the `known` objects has this name.
    fn no_such<T>(
        &mut self,
        entry: &Entry<'_>,
        (span, key): (&Range<usize>, &str),
        name: &str,
        known: &[impl AsRef<str>],
    ) -> Option<T> {
        if entry.section == "at" && self.is_added_later(name) {
            let what = format!("\"{name}\" is added while it runs, and events are planned before");
            let fix = "give it these settings where it is added, or change it with longwire ctl set";
            return self.refuse(span, entry, key, what, fix);
        }
        let known: Vec<&str> = known.iter().map(AsRef::as_ref).collect();
        let fix = hint(name, &known, &format!("declare it as [[{key}]]"));
        self.refuse(span, entry, key, format!("there is no {key} \"{name}\""), fix)
    }

    /// Whether an entry of `[[at]]` adds the object of this name, or the link of this direction.
    fn is_added_later(&self, name: &str) -> bool {
        let directions = ["", ".forward", ".backward"];
        let mut rests = self.added_later.iter().filter_map(|added| name.strip_prefix(&**added));
        rests.any(|rest| directions.contains(&rest))
    }

    /// The host or port of this name.
    fn port(&mut self, entry: &Entry<'_>, key: &str, written: &Written<Name>) -> Option<u16> {
        match self.end(entry, key, written)? {
            End::Port(place) => Some(place),
            End::Bridge(_) => {
                let what = format!("\"{}\" is a bridge; a host or a port is needed here", written.text);
                self.refuse(&written.span, entry, key, what, "name a host or a port")
            }
        }
    }
}

/// An object made by an entry of the file, as errors call it.
#[derive(Clone, Copy)]
struct Entry<'e> {
    section: &'static str,
    name: Option<&'e str>,
    n: Option<u64>,
}

impl Entry<'_> {
    /// Keys outside of all sections.
    const fn root() -> Self {
        Self { section: "", name: None, n: None }
    }

    fn field(&self, key: &str) -> String {
        let mut field = String::from(self.section);
        if let Some(name) = self.name {
            let name = template::expand(name, self.n).unwrap_or(name.into());
            field += &format!(" \"{}\"", name.escape_debug());
        }
        match (field.is_empty(), key.is_empty()) {
            (true, _) => key.into(),
            (_, true) => field,
            _ => format!("{field}, {key}"),
        }
    }
}

/// The fix for an unknown name: the one of `known` that was probably meant, else all of them, or `none`.
fn hint(name: &str, known: &[&str], none: &str) -> String {
    did_you_mean(name, known.iter().copied()).unwrap_or_else(|| match known {
        [] => none.into(),
        _ => format!("there are {}", some(known)),
    })
}

/// A list of names, shortened.
fn some(names: &[&str]) -> String {
    const MOST: usize = 8;
    let list = names[..names.len().min(MOST)].join(", ");
    if names.len() > MOST { format!("{list} and {} more", names.len() - MOST) } else { list }
}
