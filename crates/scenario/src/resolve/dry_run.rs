//! A dry run of the events before the run, in order of time: it shows the blocks that each event will meet.

use super::delays::delays;
use super::links::Links;
use super::media::medium_edit;
use super::{Entry, Resolver};
use crate::contradictions::contradictions;
use crate::event::{Event, ObjectKind};
use crate::file::{At, BlockText};
use crate::link_edit::{unplanned_target, with_defaults};
use crate::plan::{Delays, Medium, Places, Source};
use crate::plan_links::block;
use crate::source::{SourceSite, source_edits};
use longwire_block::change::{Blocks, Edit, Ramp, Repeat, set_block};
use longwire_block::{Spec, Value};
use longwire_units::Nanos;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

/// Repetitions of an event that are tried.
const REPEATS: u64 = 16;
/// Most changes that are tried in all.
const MOST_CHANGES: usize = 1_000_000;

/// The resolved events.
#[derive(Default)]
pub(super) struct ResolvedEvents {
    /// The events in the file's order.
    pub(super) events: Vec<Event>,
    /// By the place of a link that changes: all its delays combined.
    pub(super) delays: HashMap<u32, Delays>,
}

/// The sources and media that can change, and the plan's nodes.
pub(super) type Objects<'o> = (&'o [Source], &'o [Medium], Places<'o>);

/// An event as requested in the file.
pub(super) struct EventRequest<'f> {
    pub(super) entry: Entry<'f>,
    pub(super) written: &'f At,
    pub(super) time: Nanos,
    pub(super) repeat: Option<Repeat>,
    pub(super) ramp: Option<Ramp>,
    /// The places of its objects, ascending.
    pub(super) places: Vec<u32>,
    pub(super) object: ObjectKind,
    pub(super) texts: Vec<BlockText>,
    /// The initial blocks of its links, each once.
    pub(super) planned: Vec<Blocks>,
}

/// A parameter's key in errors: sources and media have their parameters as keys.
pub(super) fn key_of(spec: &Spec, at: usize, object: ObjectKind) -> String {
    if object != ObjectKind::Links {
        spec.params[at].name.into()
    } else if at == 0 {
        spec.key.into()
    } else {
        format!("{}.{}", spec.key, spec.params[at].name)
    }
}

/// Blocks of objects with the same history, and ramps in progress.
#[derive(Clone)]
struct ObjectState {
    blocks: Blocks,
    ramps: Vec<ActiveRamp>,
}

/// A ramp in progress, of one parameter.
#[derive(Clone)]
struct ActiveRamp {
    spec: &'static Spec,
    at: usize,
    begin: Nanos,
    end: Nanos,
}

impl ActiveRamp {
    /// Whether `edit` changes the same parameter.
    fn meets(&self, edit: &Edit) -> bool {
        let whole = self.spec.kind != edit.spec.kind;
        self.spec.key == edit.spec.key && (whole || edit.given.iter().any(|(at, _)| *at == self.at))
    }
}

/// The state of the dry run.
pub(super) struct DryRun<'w, 'd, 'f> {
    resolver: &'w mut Resolver<'d, 'f>,
    states: Vec<ObjectState>,
    /// The state's index, by place.
    now: Vec<u32>,
    /// The places of the first source and medium, and each source's surroundings.
    first_source: u32,
    first_medium: u32,
    sites: Vec<SourceSite<'w>>,
    delays: HashMap<u32, Delays>,
    budget: usize,
}

/// By state: the next state, and the edits that lead to it.
type Transitions = HashMap<u32, (u32, Arc<[Edit]>)>;

impl<'w, 'd, 'f> DryRun<'w, 'd, 'f> {
    pub(super) fn new(
        resolver: &'w mut Resolver<'d, 'f>,
        links: &Links,
        (sources, media, places): Objects<'w>,
    ) -> Self {
        let state = |blocks| ObjectState { blocks, ramps: Vec::new() };
        let mut states: Vec<ObjectState> =
            links.profiles.iter().map(|p| state(with_defaults(&p.blocks, resolver.registry))).collect();
        let mut now: Vec<u32> = links.links.iter().map(|link| link.profile).collect();
        now.extend((states.len() as u32..).take(sources.len() + media.len()));
        states.extend(sources.iter().map(|source| state(source.blocks(places.ports))));
        states.extend(media.iter().map(|medium| state(medium.blocks())));
        let first_source = links.links.len() as u32;
        let first_medium = first_source + sources.len() as u32;
        let sites = sources.iter().map(|source| SourceSite::of(source, places)).collect();
        let (delays, budget) = (HashMap::new(), MOST_CHANGES);
        Self { resolver, states, now, first_source, first_medium, sites, delays, budget }
    }

    /// Tries all events, by time and then in the file's order.
    pub(super) fn all(mut self, wanted: &[EventRequest<'_>]) -> ResolvedEvents {
        let first = |(order, event): (usize, &EventRequest<'_>)| Reverse((event.time, order, 1u64));
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
                return ResolvedEvents::default();
            }
            if let Some(Repeat { every, times: most }) = event.repeat
                && times < most.unwrap_or(u64::MAX).min(REPEATS)
                && self.budget > 0
            {
                queue.push(Reverse((time + every, order, times + 1)));
            }
        }
        ResolvedEvents { events: made.into_iter().flatten().collect(), delays: self.delays }
    }

    /// Tries an event for the first time: its meaning depends on the objects' blocks. None after an error.
    fn first(&mut self, event: &EventRequest<'_>) -> Option<Vec<Event>> {
        let (mut known, mut noted) = (Transitions::new(), Vec::new());
        let mut groups: Vec<(Arc<[Edit]>, Vec<u32>)> = Vec::new();
        let first = self.first_of(event.object);
        for &place in &event.places {
            let before = self.now[(first + place) as usize];
            let (after, edits) = match known.get(&before) {
                Some((after, edits)) => (*after, Arc::clone(edits)),
                None => {
                    let edits = self.edits_for(event, place, before)?;
                    let alike = groups.iter().map(|(other, _)| other).find(|other| same(other, &edits));
                    let edits = alike.map_or(edits, Arc::clone);
                    let after = self.after(event, before, &edits, event.time)?;
                    self.note_contradictions(event, (before, after), &mut noted);
                    (after, edits)
                }
            };
            known.insert(before, (after, Arc::clone(&edits)));
            match groups.iter_mut().find(|(other, _)| Arc::ptr_eq(other, &edits)) {
                Some((_, places)) => places.push(place),
                None => groups.push((edits, vec![place])),
            }
            self.step(first + place, before, after);
        }
        let EventRequest { time, repeat, ramp, object, .. } = *event;
        let made = |(edits, places): (_, Vec<u32>)| {
            let [mut links, mut sources, mut media]: [Arc<[u32]>; 3] = Default::default();
            *(match object {
                ObjectKind::Links => &mut links,
                ObjectKind::Sources => &mut sources,
                ObjectKind::Media => &mut media,
            }) = places.into();
            Event { time, repeat, ramp, links, sources, media, edits }
        };
        Some(groups.into_iter().map(made).collect())
    }

    /// Notes parameters that contradict each other from an event on, each text once.
    fn note_contradictions(
        &mut self,
        event: &EventRequest<'_>,
        (before, after): (u32, u32),
        noted: &mut Vec<String>,
    ) {
        let of = |state: u32| contradictions(&self.states[state as usize].blocks);
        let known = of(before);
        for found in of(after).into_iter().filter(|found| !known.contains(found)) {
            let what = format!("the link from {} on: {}", event.time, found.what);
            if !noted.contains(&what) {
                let (span, field) = (event.written.span.clone(), event.entry.field(""));
                self.resolver.findings.note(span, &field, what.clone(), found.fix);
                noted.push(what);
            }
        }
    }

    /// The place of the first object of a kind.
    const fn first_of(&self, object: ObjectKind) -> u32 {
        match object {
            ObjectKind::Links => 0,
            ObjectKind::Sources => self.first_source,
            ObjectKind::Media => self.first_medium,
        }
    }

    /// The edits of an event's texts for an object in a state. None after an error.
    fn edits_for(&mut self, event: &EventRequest<'_>, place: u32, state: u32) -> Option<Arc<[Edit]>> {
        let blocks = &self.states[state as usize].blocks;
        let mut edits = Some(Vec::new());
        for text in &event.texts {
            let more = match event.object {
                ObjectKind::Links => self.resolver.edit(&event.entry, text, blocks).map(|edit| vec![edit]),
                ObjectKind::Media => self.resolver.keyed_edits(&event.entry, text, |pairs, _| {
                    medium_edit(blocks, pairs).map(|edit| vec![edit])
                }),
                ObjectKind::Sources => self.resolver.keyed_edits(&event.entry, text, |pairs, folder| {
                    source_edits(blocks, pairs, &self.sites[place as usize], folder)
                }),
            };
            // The texts behind a mistake are read for theirs.
            edits = edits.zip(more).map(|(edits, more)| [edits, more].concat());
        }
        Some(edits?.into())
    }

    /// Tries an event again at `time`. None after an error.
    fn again(&mut self, event: &EventRequest<'_>, made: &[Event], time: Nanos) -> Option<()> {
        for part in made {
            let mut known: HashMap<u32, u32> = HashMap::new();
            let first = self.first_of(event.object);
            let places = part.links.iter().chain(&*part.sources).chain(&*part.media);
            for place in places.map(|place| first + place) {
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

    /// The state after `edits`. None after an error.
    fn after(&mut self, event: &EventRequest<'_>, before: u32, edits: &[Edit], time: Nanos) -> Option<u32> {
        let mut state = self.states[before as usize].clone();
        state.ramps.retain(|ramp| ramp.end > time);
        for edit in edits {
            let span = event.texts.iter().find(|text| text.key == edit.spec.key).map(|text| &text.span);
            let span = span.unwrap_or(&event.written.span);
            if let Some((key, what, fix)) = self.fault(&state, edit, event, time) {
                self.resolver.error(span, &event.entry, &key, what, fix);
                return None;
            }
            if let Some(ramp) = event.ramp {
                let ramp = |(at, _): &(usize, Value)| ActiveRamp {
                    spec: edit.spec,
                    at: *at,
                    begin: time,
                    end: time + ramp.over,
                };
                state.ramps.extend(edit.given.iter().map(ramp));
            }
            if let Some((spec, values)) = edit.apply(&state.blocks) {
                set_block(&mut state.blocks, spec, values);
            }
        }
        self.states.push(state);
        Some(self.states.len() as u32 - 1)
    }

    /// Why `edit` is impossible in `state`: the key, fault and fix.
    fn fault(
        &self,
        state: &ObjectState,
        edit: &Edit,
        event: &EventRequest<'_>,
        time: Nanos,
    ) -> Option<(String, String, String)> {
        let Some(ramp) = state.ramps.iter().find(|ramp| ramp.meets(edit)) else {
            let key = if event.object == ObjectKind::Sources { "model" } else { edit.spec.key };
            return self.mismatch(state, edit, event, time).map(|(what, fix)| (key.into(), what, fix));
        };
        let key = key_of(ramp.spec, ramp.at, event.object);
        let what = format!("at {time} the ramp that began at {} is still changing {key}", ramp.begin);
        Some((key, what, format!("begin at {} or later, or make that ramp shorter", ramp.end)))
    }

    /// Why `edit` does not fit `state`: fault and fix.
    fn mismatch(
        &self,
        state: &ObjectState,
        edit: &Edit,
        event: &EventRequest<'_>,
        time: Nanos,
    ) -> Option<(String, String)> {
        let (ramp, object) = (event.ramp, event.object);
        let (owner, key) =
            (object.word(), if object == ObjectKind::Sources { "model" } else { edit.spec.key });
        if let Some(target) = event.planned.iter().find_map(|planned| unplanned_target(planned, edit)) {
            let what = format!("its filter steers to \"{target}\", where the link's own filter does not");
            let fix = "paths are planned before the run: steer to the same links, in the same order, in the \
                link itself";
            return Some((what, fix.into()));
        }
        if edit.apply(&state.blocks).is_none() {
            let what =
                format!("at {time} the {owner} has a {key} of another kind, and this one is incomplete");
            return Some((what, "name the kind, and give all its required settings".into()));
        }
        if ramp.is_none() || edit.begins(&state.blocks).is_some() {
            return None;
        }
        if edit.spec.params.is_empty() {
            let fix = self.fix_of_removal(state, key);
            return Some((format!("a ramp can't remove {key}"), fix));
        }
        if edit.replaces(&state.blocks) {
            let what = format!("a ramp can't lead to a {key} of another kind ({})", edit.spec.kind);
            return Some((what, "set the kind by an entry of its own, then ramp its values".into()));
        }
        let Some(values) = edit.of_same_kind(&state.blocks) else {
            let what = format!("the {owner} has no {key} that a ramp could begin with");
            return Some((what, format!("give the {owner} a {key}, or set one before")));
        };
        let alone = |(at, to): &&(usize, Value)| {
            let given = vec![(*at, to.clone())];
            Edit { spec: edit.spec, given, fresh: None }.begins(&state.blocks).is_none()
        };
        let (at, to) = edit.given.iter().find(alone)?;
        let kind = edit.spec.params[*at].kind;
        let (from, to) = (values.at(*at).print(kind), to.print(kind));
        let what = format!("{} has no ramp from \"{from}\" to \"{to}\"", key_of(edit.spec, *at, object));
        let fix = "rates but \"unlimited\", times, probabilities and numbers have; set others without a ramp";
        Some((what, fix.into()))
    }

    /// The fix for a ramp that would remove a block.
    fn fix_of_removal(&self, state: &ObjectState, key: &str) -> String {
        let first = self.resolver.registry.iter().find(|spec| spec.key == key);
        let share = block(&state.blocks, key).zip(first).is_some_and(|((spec, values), first)| {
            let at = spec.place(first.params[0].name);
            at.is_some_and(|at| matches!(values.at(at), Value::Probability(_)))
        });
        if share {
            return format!(
                "ramp to {key} = \"0 %\", and write {key} = [] without ramp in an entry for when that has \
                 ended"
            );
        }
        format!("write {key} = [] without ramp, in an entry of its own")
    }

    /// Moves a place to its next state.
    fn step(&mut self, place: u32, before: u32, after: u32) {
        self.now[place as usize] = after;
        if place >= self.first_source {
            return;
        }
        let of = |state: u32| delays(&self.states[state as usize].blocks);
        let both = of(before).or(of(after));
        self.delays.entry(place).and_modify(|known| *known = known.or(both)).or_insert(both);
    }
}

/// Whether two lists of edits are equal.
fn same(one: &[Edit], other: &[Edit]) -> bool {
    let alike =
        |(a, b): (&Edit, &Edit)| (a.spec.key, a.spec.kind, &a.given) == (b.spec.key, b.spec.kind, &b.given);
    one.len() == other.len() && one.iter().zip(other).all(alike)
}
