//! Section `[[at]]`: changes during the run, and what is added and removed. In the scenario of a run, objects
//! that are gone are left out of entries that are over, and refused in others.

use super::dry_run::{DryRun, EventRequest, Objects, ResolvedEvents};
use super::links::Links;
use super::{Entry, Resolver};
use crate::event::{ObjectKind, over};
use crate::file::{At, File};
use crate::plan::{Plan, Source};
use crate::settings::AtSettings;
use crate::written::{Name, Written};
use longwire_block::change::{Ramp, Repeat};
use longwire_units::Nanos;
use std::collections::BTreeSet;
use std::ops::Range;

/// Most events, after templates.
const MOST_EVENTS: usize = 100_000;
/// Most steps of an event's ramps, over all its links.
const MOST_STEPS: u64 = 1_000_000;
/// Least time between events for long: carrying one out takes some 10 µs.
const LEAST_EVERY: Nanos = Nanos::from_millis(1);
/// Most events that may follow each other more closely.
const MOST_CLOSE: u64 = 1000;

/// A run that is brought to the scenario.
#[derive(Clone, Copy)]
pub(crate) struct RunSoFar<'p> {
    /// Its scenario before.
    pub(crate) plan: &'p Plan,
    /// Time since its start.
    pub(crate) elapsed: Nanos,
}

/// The name of an object that is gone, and its place in the file.
pub(super) struct GoneName {
    span: Range<usize>,
    name: Box<str>,
}

/// What is left out of an entry.
pub(crate) struct LeftOut {
    /// The entry's place in the file.
    pub(crate) span: Range<usize>,
    /// Its index among the entries.
    pub(crate) index: usize,
    /// The places of names; none if all of the entry is left out.
    pub(crate) names: Vec<Range<usize>>,
}

/// The request of an entry.
pub(crate) struct StageRequest {
    /// Its place in the file.
    pub(crate) span: Range<usize>,
    pub(crate) time: Nanos,
    /// Sections to add.
    pub(crate) add: String,
    /// Names to remove.
    pub(crate) remove: Vec<String>,
    pub(crate) drain: bool,
}

/// Whether an entry adds or removes objects.
fn rewires(written: &At) -> bool {
    written.add.is_some() || written.remove.is_some()
}

/// The keys of an entry that belong to changes of links, sources and media.
pub(super) fn keys_of_changes(written: &At) -> impl Iterator<Item = &str> {
    let objects = written.objects().map(|(object, _)| object.word());
    let times = ["ramp", "step", "every", "times"].into_iter().filter(move |key| written.span(key).is_some());
    objects.chain(times).chain(written.blocks.iter().map(|block| &*block.key))
}

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
    pub(super) fn events(&mut self, file: &File, links: &Links, others: Objects<'_>) -> ResolvedEvents {
        let mut wanted = Vec::new();
        let entries = file.at.iter().enumerate();
        for (index, written) in entries.filter(|(_, at)| at.router.is_none() && !rewires(at)) {
            let mut named = 0;
            let entry = Entry { section: "at", name: written.text("time"), n: None };
            for n in self.numbers(&entry, written) {
                let entry = Entry { n, ..entry };
                if wanted.len() == MOST_EVENTS {
                    let what = format!("there are more than {MOST_EVENTS} events");
                    self.error(&written.span, &entry, "", what, "use every and times, or a ramp");
                    return ResolvedEvents::default();
                }
                let Some(event) = self.wanted(entry, written, links, others) else { break };
                wanted.extend(event);
                named += written.objects().map(|(_, names)| names.0.len()).sum::<usize>();
            }
            self.leave_out((index, written), named);
        }
        if self.findings.failed() || wanted.is_empty() {
            return ResolvedEvents::default();
        }
        DryRun::new(self, links, others).all(&wanted)
    }

    /// The request of one entry; none if its objects are gone, and it is over. None after an error.
    fn wanted<'f>(
        &mut self,
        entry: Entry<'f>,
        written: &'f At,
        links: &Links,
        others: Objects<'_>,
    ) -> Option<Option<EventRequest<'f>>> {
        let settings: Option<AtSettings> = self.row(&entry, written);
        let repeat = settings.as_ref().and_then(|settings| self.repeat(&entry, written, settings));
        let gone_before = self.gone.len();
        let (object, mut places) = self.changing(&entry, written, links, others)?;
        if self.gone.len() > gone_before {
            let AtSettings { time, ramp, .. } = *settings.as_ref()?;
            self.check_over(&entry, object.word(), over(time, repeat?, ramp))?;
            if places.is_empty() {
                return Some(None);
            }
        }
        let texts = self.beside_merged(&entry, &written.blocks.iter().collect::<Vec<_>>())?;
        if texts.is_empty() {
            let fix = format!("add settings of a {}, such as rate = \"1 Mbit/s\"", object.word());
            return self.refuse(&written.span, &entry, "", "nothing changes", fix);
        }
        let of_links = if object == ObjectKind::Links { &places[..] } else { &[] };
        self.no_station(&entry, &texts, (of_links, links))?;
        places.sort_unstable();
        places.dedup();
        let settings = settings?;
        let ramp = self.ramp(&entry, (written, &settings), places.len() as u64)?;
        let has_filter = texts.iter().any(|text| text.key == "filter");
        let profiles = places.iter().filter(|_| has_filter);
        let profiles: BTreeSet<u32> = profiles.map(|&place| links.links[place as usize].profile).collect();
        let planned = profiles.iter().map(|&profile| links.profiles[profile as usize].blocks.clone());
        let planned = planned.collect();
        let (time, repeat) = (settings.time, repeat?);
        Some(Some(EventRequest { entry, written, time, repeat, ramp, places, object, texts, planned }))
    }

    /// The kind of object that an entry changes, and the places.
    fn changing(
        &mut self,
        entry: &Entry<'_>,
        written: &At,
        links: &Links,
        (sources, media, _): Objects<'_>,
    ) -> Option<(ObjectKind, Vec<u32>)> {
        let given: Vec<_> = written.objects().collect();
        if let [_, (second, names), ..] = given[..] {
            let span = names.0.first().map_or(&written.span, |name| &name.span);
            let words: Vec<_> = given.iter().map(|(object, _)| format!("{}s", object.word())).collect();
            let what = format!("it names {}", words.join(" and "));
            return self.refuse(span, entry, second.word(), what, "write an entry for each");
        }
        let Some(&(object, names)) = given.first().filter(|(_, names)| !names.0.is_empty()) else {
            // For keys of routers, an error was reported.
            if only_of_routers(written).is_none() {
                let fix =
                    "add link = \"…\", source = \"…\" or medium = \"…\" with a name, or a list of names";
                self.error(&written.span, entry, "link", "it names no link, no source and no medium", fix);
            }
            return None;
        };
        let mut places = Vec::new();
        for name in &names.0 {
            match object {
                ObjectKind::Links => places.extend(self.link_places(entry, name, links)?),
                ObjectKind::Sources => places.extend(self.source_place(entry, name, sources)?),
                ObjectKind::Media => {
                    let names = media.iter().map(|own| &*own.name);
                    places.push(self.place_named(entry, "medium", name, names)?);
                }
            }
        }
        Some((object, places))
    }

    /// The place of a source among others; none if it is gone. None after an error.
    fn source_place(
        &mut self,
        entry: &Entry<'_>,
        written: &Written<Name>,
        sources: &[Source],
    ) -> Option<Option<u32>> {
        let name = self.term(entry, "source", written)?.0;
        let is_it = |source: &Source| *source.name == *name;
        let was_there = |plan: &Plan| plan.sources.iter().any(is_it);
        if !sources.iter().any(is_it) && self.is_gone(written, &name, was_there) {
            return Some(None);
        }
        self.place_named(entry, "source", written, sources.iter().map(|own| &*own.name)).map(Some)
    }

    /// The place of a link, or both of a duplex link; none if it is gone. None after an error.
    fn link_places(&mut self, entry: &Entry<'_>, written: &Written<Name>, links: &Links) -> Option<Vec<u32>> {
        let name = self.term(entry, "link", written)?.0;
        if let Some(&place) = links.names.get(&name) {
            return Some(vec![place]);
        }
        let way = |suffix: &str| links.names.get(format!("{name}{suffix}").as_str()).copied();
        if let (Some(forward), Some(backward)) = (way(".forward"), way(".backward")) {
            return Some(vec![forward, backward]);
        }
        let is_it = |link: &str| link == &*name || link.strip_suffix(".forward") == Some(&*name);
        if self.is_gone(written, &name, |plan| plan.links.iter().any(|link| is_it(&link.name))) {
            return Some(Vec::new());
        }
        let known: Vec<&str> = links.links.iter().map(|link| &*link.name).collect();
        self.no_such(entry, (&written.span, "link"), &name, &known)
    }

    /// The repetition, if any. None after an error.
    pub(super) fn repeat(
        &mut self,
        entry: &Entry<'_>,
        written: &At,
        settings: &AtSettings,
    ) -> Option<Option<Repeat>> {
        let (Some(every), Some(span)) = (settings.every, written.span("every")) else {
            if let Some(span) = written.span("times") {
                let fix = "add one such as every = \"10 s\"";
                return self.refuse(span, entry, "times", "times has no meaning without every", fix);
            }
            return Some(None);
        };
        let times = settings.times;
        if every < LEAST_EVERY && times.is_none_or(|times| times > MOST_CLOSE) {
            let what = format!("changes {every} apart leave no time for packets");
            let fix = format!("write every = \"{LEAST_EVERY}\" or more; a trace can change faster");
            return self.refuse(span, entry, "every", what, fix);
        }
        Some(Some(Repeat { every, times }))
    }

    /// The ramp, if any. None after an error.
    pub(super) fn ramp(
        &mut self,
        entry: &Entry<'_>,
        (written, settings): (&At, &AtSettings),
        links: u64,
    ) -> Option<Option<Ramp>> {
        let (Some(over), Some(span)) = (settings.ramp, written.span("ramp")) else {
            if let Some(span) = written.span("step") {
                let fix = "add one such as ramp = \"5 s\"";
                return self.refuse(span, entry, "step", "step has no meaning without ramp", fix);
            }
            return Some(None);
        };
        let mut ramp = Ramp::new(over);
        ramp.step = settings.step.unwrap_or(ramp.step);
        if ramp.steps().saturating_mul(links) > MOST_STEPS {
            let most = (MOST_STEPS / links).max(1);
            let what = format!("{} steps, {links} times, are more than {MOST_STEPS}", ramp.steps());
            let least = Nanos(ramp.over.0.div_ceil(most));
            let (span, fix) = match (written.span("step"), links > MOST_STEPS) {
                (Some(step), false) => (step, format!("write step = \"{least}\" or more")),
                (None, false) => (span, format!("add step = \"{least}\" or more")),
                _ => (span, "name fewer links or sources".into()),
            };
            return self.refuse(span, entry, "ramp", what, fix);
        }
        Some(Some(ramp))
    }

    /// Additions and removals by time.
    pub(super) fn stages(&mut self, file: &File) -> Vec<StageRequest> {
        for written in file.at.iter().filter(|at| !rewires(at)) {
            if let Some(span) = written.span("drain") {
                let entry = Entry { section: "at", name: written.text("time"), n: None };
                let what = "drain has no meaning without remove";
                self.error(span, &entry, "drain", what, "leave it out, or name the links to remove");
            }
        }
        let entries = file.at.iter().filter(|at| rewires(at));
        let mut stages: Vec<_> = entries.filter_map(|written| self.stage(written)).collect();
        stages.sort_by_key(|stage| stage.time);
        stages
    }

    /// A request. None after an error.
    fn stage(&mut self, written: &At) -> Option<StageRequest> {
        let entry = Entry { section: "at", name: written.text("time"), n: None };
        let others = written.router.is_some() || keys_of_changes(written).next().is_some();
        if others || ["count", "first"].iter().any(|key| written.repeats().span(key).is_some()) {
            let what = "it adds or removes something, which stands alone and happens once";
            let fix = "write an entry for each time, and others for what else changes";
            return self.refuse(&written.span, &entry, "", what, fix);
        }
        let AtSettings { time, drain, .. } = self.row(&entry, written)?;
        let names = written.remove.iter().flat_map(|names| &names.0);
        let remove = names.map(|name| Some(self.term(&entry, "remove", name)?.0.into_string()));
        let remove: Vec<String> = remove.collect::<Option<_>>()?;
        let add = written.add.as_ref().map(|text| text.text.clone()).unwrap_or_default();
        Some(StageRequest { span: written.span.clone(), time, add, remove, drain })
    }

    /// Whether the run had the object of a name that is not in the scenario; notes it then, for
    /// [`Resolver::leave_out`].
    pub(super) fn is_gone(
        &mut self,
        written: &Written<Name>,
        name: &str,
        was_there: impl FnOnce(&Plan) -> bool,
    ) -> bool {
        let is_gone = self.run.is_some_and(|run| was_there(run.plan));
        if is_gone {
            self.gone.push(GoneName { span: written.span.clone(), name: name.into() });
        }
        is_gone
    }

    /// Checks that an event whose object is gone is `over` by now. None after an error.
    pub(super) fn check_over(&mut self, entry: &Entry<'_>, key: &str, over: Nanos) -> Option<()> {
        let GoneName { span, name } = self.gone.last()?;
        if self.run.is_some_and(|run| over <= run.elapsed) {
            return Some(());
        }
        let what = format!("it changes \"{name}\", which would not be there any more");
        let fix = format!("take that event away first, or remove \"{name}\" when it is over");
        let span = span.clone();
        self.refuse(&span, entry, key, what, fix)
    }

    /// Whether the router of an event is gone; the event is over then. None after an error.
    pub(super) fn is_without_router(&mut self, entry: &Entry<'_>, written: &At) -> Option<bool> {
        let named = written.router.as_ref()?;
        let name = self.term(entry, "router", named)?.0;
        let was_there = |plan: &Plan| plan.routers.iter().any(|router| *router.name == *name);
        if self.routers.contains_key(&name) || !self.is_gone(named, &name, was_there) {
            return Some(false);
        }
        let settings: AtSettings = self.row(entry, written)?;
        self.check_over(entry, "router", settings.time)?;
        Some(true)
    }

    /// Notes what is left out of an entry, which has named this many objects, those of each event counted.
    pub(super) fn leave_out(&mut self, (index, written): (usize, &At), named: usize) {
        let gone = std::mem::take(&mut self.gone);
        let Some(first) = gone.first().filter(|_| !self.findings.failed()) else { return };
        let is_whole = gone.len() == named;
        if !is_whole && written.repeats().span("count").is_some() {
            let entry = Entry { section: "at", name: written.text("time"), n: None };
            let what = format!("\"{}\" is one of several that an entry with a count changes", first.name);
            let fix = "write an entry for each, and apply that";
            return self.error(&first.span, &entry, "", what, fix);
        }
        let names = if is_whole { Vec::new() } else { gone.into_iter().map(|gone| gone.span).collect() };
        self.left_out.push(LeftOut { span: written.span.clone(), index, names });
    }
}
