//! Section `[[at]]`: changes while the run goes on. The events are carried out once in the mind, in the order of their
//! times, so that what each of them finds is known before the run. Sources have the places after those of the links.

use super::blocks::{bare, least_delay};
use super::links::Links;
use super::{Desk, Entry};
use crate::event::{Event, block_meant, param_meant, with_defaults};
use crate::file::{At, BlockText, File};
use crate::finding::suggestion;
use crate::plan::Source;
use crate::steering::unplanned_target;
use crate::written::{Name, Written};
use longwire_block::{Param, Spec, Value, Values};
use longwire_engine::{Blocks, Edit, Ramp, Repeat, set_block};
use longwire_units::{Bytes, Nanos};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

/// Most events, after templates.
const MOST_EVENTS: usize = 100_000;
/// How often an event that comes again is looked at ahead of the run.
const FORESEEN: u64 = 16;
/// How many changes of links are looked at in all.
const MOST_FORESEEN: usize = 1_000_000;

/// What the events do.
#[derive(Default)]
pub(super) struct Foretold {
    /// The events in the file's order.
    pub(super) events: Vec<Event>,
    /// By a changing link's place: the least delay it ever has.
    pub(super) least_delays: HashMap<u32, Nanos>,
}

/// An event as the file asks for it.
struct Wanted<'f> {
    entry: Entry<'f>,
    written: &'f At,
    time: Nanos,
    repeat: Option<Repeat>,
    ramp: Option<Ramp>,
    places: Vec<u32>,
    /// Whether these are sources.
    of_sources: bool,
    texts: Vec<BlockText>,
    /// What its links are read with, each once.
    planned: Vec<Blocks>,
}

/// What links with the same history are made of at a time, and which ramps go on.
#[derive(Clone)]
struct State {
    blocks: Blocks,
    ramps: Vec<Climb>,
}

/// A ramp of one parameter that goes on.
#[derive(Clone)]
struct Climb {
    spec: &'static Spec,
    at: usize,
    begin: Nanos,
    end: Nanos,
}

impl Desk<'_, '_> {
    pub(super) fn events(&mut self, file: &File, links: &Links, sources: &[Source]) -> Foretold {
        let mut wanted = Vec::new();
        for written in file.at.iter().filter(|at| at.router.is_none()) {
            let entry = Entry { section: "at", name: Some(&written.time.text), n: None };
            for n in self.numbers(&entry, written.count.as_ref(), written.first.as_ref()) {
                let entry = Entry { n, ..entry };
                if wanted.len() == MOST_EVENTS {
                    let what = format!("there are more than {MOST_EVENTS} events");
                    self.error(&written.span, &entry, "", what, "use every and times, or a ramp");
                    return Foretold::default();
                }
                let Some(event) = self.wanted(entry, written, links, sources) else { break };
                wanted.push(event);
            }
        }
        if self.findings.failed() || wanted.is_empty() {
            return Foretold::default();
        }
        Foresight::new(self, links, sources).all(&wanted)
    }

    /// What one entry asks for. None after an error.
    fn wanted<'f>(
        &mut self,
        entry: Entry<'f>,
        written: &'f At,
        links: &Links,
        sources: &[Source],
    ) -> Option<Wanted<'f>> {
        let time = self.term(&entry, "time", &written.time);
        let repeat = self.repeat(&entry, written);
        let texts = self.beside_merged(&entry, &written.blocks.iter().collect::<Vec<_>>())?;
        if texts.is_empty() {
            let whose = if written.source.is_some() { "source" } else { "link" };
            let mend = format!("add what changes, as in a {whose}: rate = \"1 Mbit/s\", say");
            self.error(&written.span, &entry, "", "nothing changes", mend);
            return None;
        }
        let of_sources = written.source.is_some();
        let mut places = Vec::new();
        let named = match (&written.link, &written.source) {
            (Some(_), Some(named)) => {
                let span = named.0.first().map_or(&written.span, |name| &name.span);
                self.error(span, &entry, "source", "it names links and sources", "write an entry for each");
                return None;
            }
            (named, None) | (None, named) => named.as_ref().filter(|named| !named.0.is_empty()),
        };
        let Some(named) = named else {
            let mend = "add link = \"…\" or source = \"…\" with a name, or a list of names";
            self.error(&written.span, &entry, "link", "it names no link and no source", mend);
            return None;
        };
        for name in &named.0 {
            if of_sources {
                places.push(links.links.len() as u32 + self.source_place(&entry, name, sources)?);
            } else {
                places.extend(self.link_places(&entry, name, links)?);
            }
        }
        self.no_station(&entry, &texts, (&places, links))?;
        places.sort_unstable();
        places.dedup();
        let ramp = self.ramp(&entry, written, places.len() as u64)?;
        let mut profiles: Vec<u32> = match texts.iter().any(|text| text.key == "filter") {
            false => Vec::new(),
            true => places.iter().map(|&place| links.links[place as usize].profile).collect(),
        };
        profiles.sort_unstable();
        profiles.dedup();
        let planned =
            profiles.into_iter().map(|profile| links.profiles[profile as usize].blocks.clone()).collect();
        Some(Wanted {
            entry,
            written,
            time: time?,
            repeat: repeat?,
            ramp,
            places,
            of_sources,
            texts,
            planned,
        })
    }

    /// The places of the link, or of both directions of the duplex link, that a name means.
    fn link_places(&mut self, entry: &Entry<'_>, written: &Written<Name>, links: &Links) -> Option<Vec<u32>> {
        let name = self.term(entry, "link", written)?.0;
        if let Some(&place) = links.names.get(&name) {
            return Some(vec![place]);
        }
        let way = |suffix: &str| links.names.get(format!("{name}{suffix}").as_str()).copied();
        if let (Some(forward), Some(backward)) = (way(".forward"), way(".backward")) {
            return Some(vec![forward, backward]);
        }
        let known = || links.links.iter().map(|link| &*link.name);
        let mend = match suggestion(&name, known()) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None => format!("there are {}", super::some(&known().collect::<Vec<_>>())),
        };
        self.error(&written.span, entry, "link", format!("there is no link \"{name}\""), mend);
        None
    }

    /// What a text means for a link that is made of `now`. None after an error.
    fn edit(&mut self, entry: &Entry<'_>, text: &BlockText, now: &Blocks) -> Option<Edit> {
        let names: Vec<_> = text.params.iter().map(|(name, ..)| name.as_deref()).collect();
        let own = now.iter().map(|(spec, _)| *spec).find(|spec| spec.key == text.key);
        let spec = match &text.kind {
            Some(_) => self.spec(entry, text)?,
            None => block_meant(self.registry, own, &text.key, &names)?,
        };
        let (mut given, mut texts) = (Vec::new(), Vec::new());
        for (name, value, span) in &text.params {
            if let Some(name) = name {
                self.param(entry, spec, name, span)?;
            }
            let at = param_meant(self.registry, spec, name.as_deref())?;
            let value = self.expanded(entry, spec.key, value, span)?;
            match self.value(&spec.params[at], &value) {
                Ok(read) => given.push((at, read)),
                Err(what) => {
                    self.error(span, entry, &key_of(spec, at, false), what, "");
                    return None;
                }
            }
            texts.push((spec.params[at].name, value));
        }
        let pairs: Vec<_> = texts.iter().map(|(name, text)| (*name, text.as_str())).collect();
        let fresh = Values::read_in(spec, &pairs, &self.folder);
        let edit = Edit { spec, given, fresh: fresh.as_ref().ok().cloned() };
        if let (Err(error), None) = (fresh, edit.of_same_kind(now)) {
            let mend =
                format!("the link has no {} of this kind, so everything it needs has to be given", spec.key);
            self.error(&text.span, entry, spec.key, error.to_string(), mend);
            return None;
        }
        Some(edit)
    }

    fn value(&self, param: &Param, text: &str) -> Result<Value, String> {
        param.read_in(text, &self.folder).map_err(|error| bare(&error))
    }
}

/// How errors call a parameter. The one key of sources, `background`, is not written.
fn key_of(spec: &Spec, at: usize, of_sources: bool) -> String {
    if of_sources {
        spec.params[at].name.into()
    } else if at == 0 {
        spec.key.into()
    } else {
        format!("{}.{}", spec.key, spec.params[at].name)
    }
}

/// The events, carried out ahead of the run.
struct Foresight<'w, 'd, 'f> {
    desk: &'w mut Desk<'d, 'f>,
    states: Vec<State>,
    /// By a place: its state.
    now: Vec<u32>,
    /// The place of the first source, and the shortest frame of each.
    first_source: u32,
    shortest: Vec<Bytes>,
    delays: HashMap<u32, Nanos>,
    budget: usize,
}

/// What an event makes of a state: the next one, and by what.
type Known = HashMap<u32, (u32, Arc<[Edit]>)>;

impl<'w, 'd, 'f> Foresight<'w, 'd, 'f> {
    fn new(desk: &'w mut Desk<'d, 'f>, links: &Links, sources: &[Source]) -> Self {
        let state = |blocks| State { blocks, ramps: Vec::new() };
        let mut states: Vec<State> =
            links.profiles.iter().map(|p| state(with_defaults(&p.blocks, desk.registry))).collect();
        let mut now: Vec<u32> = links.links.iter().map(|link| link.profile).collect();
        now.extend((states.len() as u32..).take(sources.len()));
        states.extend(sources.iter().map(|source| state(source.blocks())));
        let (first_source, shortest) =
            (links.links.len() as u32, sources.iter().map(Source::shortest).collect());
        Self { desk, states, now, first_source, shortest, delays: HashMap::new(), budget: MOST_FORESEEN }
    }

    /// Carries everything out, in the order of times and then of the file.
    fn all(mut self, wanted: &[Wanted<'_>]) -> Foretold {
        let first = |(order, event): (usize, &Wanted<'_>)| Reverse((event.time, order, 1u64));
        let mut queue: BinaryHeap<_> = wanted.iter().enumerate().map(first).collect();
        let mut made: Vec<Vec<Event>> = wanted.iter().map(|_| Vec::new()).collect();
        while let Some(Reverse((time, order, times))) = queue.pop() {
            let event = &wanted[order];
            let done = if times == 1 {
                self.first(event).map(|events| made[order] = events)
            } else {
                self.again(event, &made[order], time)
            };
            if done.is_none() {
                return Foretold::default();
            }
            if let Some(Repeat { every, times: most }) = event.repeat
                && times < most.unwrap_or(u64::MAX).min(FORESEEN)
                && self.budget > 0
            {
                queue.push(Reverse((time + every, order, times + 1)));
            }
        }
        Foretold { events: made.into_iter().flatten().collect(), least_delays: self.delays }
    }

    /// Carries an event out for the first time: what is meant depends on what the links are made of. None after an error.
    fn first(&mut self, event: &Wanted<'_>) -> Option<Vec<Event>> {
        let mut known = Known::new();
        let mut groups: Vec<(Arc<[Edit]>, Vec<u32>)> = Vec::new();
        for &place in &event.places {
            let before = self.now[place as usize];
            let (after, edits) = match known.get(&before) {
                Some((after, edits)) => (*after, Arc::clone(edits)),
                None => {
                    let edits = self.meant(event, place, before)?;
                    let alike = groups.iter().map(|(other, _)| other).find(|other| same(other, &edits));
                    let edits = alike.map_or(edits, Arc::clone);
                    (self.after(event, before, &edits, event.time)?, edits)
                }
            };
            known.insert(before, (after, Arc::clone(&edits)));
            match groups.iter_mut().find(|(other, _)| Arc::ptr_eq(other, &edits)) {
                Some((_, places)) => places.push(place),
                None => groups.push((edits, vec![place])),
            }
            self.step(place, before, after);
        }
        let Wanted { time, repeat, ramp, of_sources, .. } = *event;
        let first_source = self.first_source;
        let made = |(edits, mut places): (_, Vec<u32>)| {
            let (mut links, mut sources) = Default::default();
            if of_sources {
                places.iter_mut().for_each(|place| *place -= first_source);
                sources = places.into();
            } else {
                links = places.into();
            }
            Event { time, repeat, ramp, links, sources, edits }
        };
        Some(groups.into_iter().map(made).collect())
    }

    /// What an event's texts mean for a link or source in a state. None after an error.
    fn meant(&mut self, event: &Wanted<'_>, place: u32, state: u32) -> Option<Arc<[Edit]>> {
        let blocks = &self.states[state as usize].blocks;
        let edit = |text| match event.of_sources {
            true => {
                let shortest = self.shortest[(place - self.first_source) as usize];
                self.desk.source_edit(&event.entry, text, blocks, shortest)
            }
            false => self.desk.edit(&event.entry, text, blocks),
        };
        event.texts.iter().map(edit).collect()
    }

    /// Carries an event out again at `time`. None after an error.
    fn again(&mut self, event: &Wanted<'_>, made: &[Event], time: Nanos) -> Option<()> {
        for part in made {
            let mut known: HashMap<u32, u32> = HashMap::new();
            let sources = part.sources.iter().map(|source| self.first_source + source);
            for place in part.links.iter().copied().chain(sources).collect::<Vec<_>>() {
                self.budget = self.budget.saturating_sub(1);
                let before = self.now[place as usize];
                let after = match known.get(&before) {
                    Some(&after) => after,
                    None => self.after(event, before, &part.edits, time)?,
                };
                known.insert(before, after);
                self.step(place, before, after);
            }
        }
        Some(())
    }

    /// The state that `edits` make of a state. None after an error.
    fn after(&mut self, event: &Wanted<'_>, before: u32, edits: &[Edit], time: Nanos) -> Option<u32> {
        let mut state = self.states[before as usize].clone();
        state.ramps.retain(|climb| climb.end > time);
        for edit in edits {
            let span = event.texts.iter().find(|text| text.key == edit.spec.key).map(|text| &text.span);
            let span = span.unwrap_or(&event.written.span);
            if let Some((what, mend)) = self.fault(&state, edit, event, time) {
                let key = if event.of_sources { "model" } else { edit.spec.key };
                self.desk.error(span, &event.entry, key, what, mend);
                return None;
            }
            if let Some(ramp) = event.ramp {
                let climb = |(at, _): &(usize, Value)| Climb {
                    spec: edit.spec,
                    at: *at,
                    begin: time,
                    end: time + ramp.over,
                };
                state.ramps.extend(edit.given.iter().map(climb));
            }
            if let Some((spec, values)) = edit.apply(&state.blocks) {
                set_block(&mut state.blocks, spec, values);
            }
        }
        self.states.push(state);
        Some(self.states.len() as u32 - 1)
    }

    /// Why `edit` can't be carried out on a link in `state`: what is wrong, and the mend.
    fn fault(&self, state: &State, edit: &Edit, event: &Wanted<'_>, time: Nanos) -> Option<(String, String)> {
        let (ramp, of_sources) = (event.ramp, event.of_sources);
        let (owner, key) = if of_sources { ("source", "model") } else { ("link", edit.spec.key) };
        let meets = |climb: &&Climb| {
            let whole = climb.spec.kind != edit.spec.kind;
            climb.spec.key == edit.spec.key && (whole || edit.given.iter().any(|(at, _)| *at == climb.at))
        };
        if let Some(climb) = state.ramps.iter().find(meets) {
            let what = format!(
                "at {time} the ramp that began at {} is still changing {}",
                climb.begin,
                key_of(climb.spec, climb.at, of_sources)
            );
            return Some((what, format!("begin at {} or later, or make that ramp shorter", climb.end)));
        }
        if let Some(target) = event.planned.iter().find_map(|planned| unplanned_target(planned, edit)) {
            let what = format!("its filter steers to \"{target}\", where the link's own filter does not");
            let mend = "ways are planned before the run: steer to the same links, in the same order, in the link itself";
            return Some((what, mend.into()));
        }
        if edit.apply(&state.blocks).is_none() {
            let what = format!(
                "at {time} the {owner} has a {key} of another kind, and this one is not wholly given"
            );
            return Some((what, "name the kind, and give everything that it needs".into()));
        }
        if ramp.is_none() || edit.begins(&state.blocks).is_some() {
            return None;
        }
        if edit.replaces(&state.blocks) {
            let what = format!("a ramp can't lead to a {key} of another kind ({})", edit.spec.kind);
            return Some((
                what,
                "set the kind at once by an entry of its own, and ramp its values then".into(),
            ));
        }
        let Some(values) = edit.of_same_kind(&state.blocks) else {
            let what = format!("the {owner} has no {key} that a ramp could begin with");
            return Some((what, format!("give the {owner} a {key}, or set one before")));
        };
        let alone = |(at, to): &&(usize, Value)| {
            Edit { spec: edit.spec, given: vec![(*at, to.clone())], fresh: None }
                .begins(&state.blocks)
                .is_none()
        };
        let (at, to) = edit.given.iter().find(alone)?;
        let kind = edit.spec.params[*at].kind;
        let (from, to) = (values.at(*at).print(kind), to.print(kind));
        let what = format!("{} has no ramp from \"{from}\" to \"{to}\"", key_of(edit.spec, *at, of_sources));
        Some((
            what,
            "rates but \"unlimited\", times, probabilities and numbers have; set others at once".into(),
        ))
    }

    /// Notes a change from one state to the next.
    fn step(&mut self, place: u32, before: u32, after: u32) {
        self.now[place as usize] = after;
        if place >= self.first_source {
            return;
        }
        let least = |state: u32| least_delay(&self.states[state as usize].blocks);
        let delay = least(before).min(least(after));
        self.delays.entry(place).and_modify(|known| *known = delay.min(*known)).or_insert(delay);
    }
}

/// Whether two lists of edits are the same.
fn same(one: &[Edit], other: &[Edit]) -> bool {
    let alike =
        |(a, b): (&Edit, &Edit)| (a.spec.key, a.spec.kind, &a.given) == (b.spec.key, b.spec.kind, &b.given);
    one.len() == other.len() && one.iter().zip(other).all(alike)
}
