//! The events are carried out once in the mind, in the order of their times, so that what each of them finds
//! is known before the run.

use super::Resolver;
use super::delays::delays;
use super::links::Links;
use super::wanted::{Others, ResolvedEvents, Wanted, Whose, firsts, key_of};
use crate::event::Event;
use crate::meant::with_defaults;
use crate::plan::Delays;
use crate::source_edit::SourceSite;
use crate::steering::unplanned_target;
use longwire_block::change::{Blocks, Edit, Repeat, set_block};
use longwire_block::{Spec, Value};
use longwire_units::Nanos;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

/// How often an event that comes again is looked at ahead of the run.
const FORESEEN: u64 = 16;
/// How many changes of links are looked at in all.
const MOST_FORESEEN: usize = 1_000_000;

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

impl Climb {
    /// Whether `edit` changes what it is changing.
    fn meets(&self, edit: &Edit) -> bool {
        let whole = self.spec.kind != edit.spec.kind;
        self.spec.key == edit.spec.key && (whole || edit.given.iter().any(|(at, _)| *at == self.at))
    }
}

/// The events, carried out ahead of the run.
pub(super) struct Foresight<'w, 'd, 'f> {
    resolver: &'w mut Resolver<'d, 'f>,
    states: Vec<State>,
    /// By a place: its state.
    now: Vec<u32>,
    /// The places of the first source and of the first medium, and where each source is.
    first_source: u32,
    first_medium: u32,
    sites: Vec<SourceSite<'w>>,
    delays: HashMap<u32, Delays>,
    budget: usize,
}

/// What an event makes of a state: the next one, and by what.
type Known = HashMap<u32, (u32, Arc<[Edit]>)>;

impl<'w, 'd, 'f> Foresight<'w, 'd, 'f> {
    pub(super) fn new(
        resolver: &'w mut Resolver<'d, 'f>,
        links: &Links,
        (sources, media, places): Others<'w>,
    ) -> Self {
        let state = |blocks| State { blocks, ramps: Vec::new() };
        let mut states: Vec<State> =
            links.profiles.iter().map(|p| state(with_defaults(&p.blocks, resolver.registry))).collect();
        let mut now: Vec<u32> = links.links.iter().map(|link| link.profile).collect();
        now.extend((states.len() as u32..).take(sources.len() + media.len()));
        states.extend(sources.iter().map(|source| state(source.blocks(places.ports))));
        states.extend(media.iter().map(|medium| state(medium.blocks())));
        let (first_source, first_medium) = firsts(links, sources);
        let sites = sources.iter().map(|source| SourceSite::of(source, places)).collect();
        let (delays, budget) = (HashMap::new(), MOST_FORESEEN);
        Self { resolver, states, now, first_source, first_medium, sites, delays, budget }
    }

    /// Carries everything out, in the order of times and then of the file.
    pub(super) fn all(mut self, wanted: &[Wanted<'_>]) -> ResolvedEvents {
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
                return ResolvedEvents::default();
            }
            if let Some(Repeat { every, times: most }) = event.repeat
                && times < most.unwrap_or(u64::MAX).min(FORESEEN)
                && self.budget > 0
            {
                queue.push(Reverse((time + every, order, times + 1)));
            }
        }
        ResolvedEvents { events: made.into_iter().flatten().collect(), delays: self.delays }
    }

    /// Carries an event out for the first time: what is meant depends on what the links are made of. None
    /// after an error.
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
        let Wanted { time, repeat, ramp, whose, .. } = *event;
        let first = self.first_of(whose);
        let made = |(edits, mut places): (_, Vec<u32>)| {
            places.iter_mut().for_each(|place| *place -= first);
            let [mut links, mut sources, mut media]: [Arc<[u32]>; 3] = Default::default();
            *(match whose {
                Whose::Links => &mut links,
                Whose::Sources => &mut sources,
                Whose::Media => &mut media,
            }) = places.into();
            Event { time, repeat, ramp, links, sources, media, edits }
        };
        Some(groups.into_iter().map(made).collect())
    }

    /// The place of the first of them.
    const fn first_of(&self, whose: Whose) -> u32 {
        match whose {
            Whose::Links => 0,
            Whose::Sources => self.first_source,
            Whose::Media => self.first_medium,
        }
    }

    /// What an event's texts mean for a link or source in a state. None after an error.
    fn meant(&mut self, event: &Wanted<'_>, place: u32, state: u32) -> Option<Arc<[Edit]>> {
        let blocks = &self.states[state as usize].blocks;
        let mut edits = Vec::new();
        for text in &event.texts {
            match event.whose {
                Whose::Links => edits.push(self.resolver.edit(&event.entry, text, blocks)?),
                Whose::Media => edits.push(self.resolver.medium_edit(&event.entry, text, blocks)?),
                Whose::Sources => {
                    let site = &self.sites[(place - self.first_source) as usize];
                    edits.extend(self.resolver.source_edits(&event.entry, text, blocks, site)?);
                }
            }
        }
        Some(edits.into())
    }

    /// Carries an event out again at `time`. None after an error.
    fn again(&mut self, event: &Wanted<'_>, made: &[Event], time: Nanos) -> Option<()> {
        for part in made {
            let mut known: HashMap<u32, u32> = HashMap::new();
            let first = self.first_of(event.whose);
            for place in
                part.links.iter().chain(&*part.sources).chain(&*part.media).map(|place| first + place)
            {
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
            if let Some((key, what, fix)) = self.fault(&state, edit, event, time) {
                self.resolver.error(span, &event.entry, &key, what, fix);
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

    /// Why `edit` can't be carried out on a link in `state`: the key, what is wrong, and the fix.
    fn fault(
        &self,
        state: &State,
        edit: &Edit,
        event: &Wanted<'_>,
        time: Nanos,
    ) -> Option<(String, String, String)> {
        let Some(climb) = state.ramps.iter().find(|climb| climb.meets(edit)) else {
            let key = if event.whose == Whose::Sources { "model" } else { edit.spec.key };
            return self.misfit(state, edit, event, time).map(|(what, fix)| (key.into(), what, fix));
        };
        let key = key_of(climb.spec, climb.at, event.whose);
        let what = format!("at {time} the ramp that began at {} is still changing {key}", climb.begin);
        Some((key, what, format!("begin at {} or later, or make that ramp shorter", climb.end)))
    }

    /// Why `edit` does not fit a link in `state`: what is wrong, and the fix.
    fn misfit(
        &self,
        state: &State,
        edit: &Edit,
        event: &Wanted<'_>,
        time: Nanos,
    ) -> Option<(String, String)> {
        let (ramp, whose) = (event.ramp, event.whose);
        let (owner, key) = (whose.word(), if whose == Whose::Sources { "model" } else { edit.spec.key });
        if let Some(target) = event.planned.iter().find_map(|planned| unplanned_target(planned, edit)) {
            let what = format!("its filter steers to \"{target}\", where the link's own filter does not");
            let fix = "ways are planned before the run: steer to the same links, in the same order, in the \
                link itself";
            return Some((what, fix.into()));
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
        if edit.spec.params.is_empty() {
            let fix = self.fix_of_removal(state, key);
            return Some((format!("a ramp can't take {key} away"), fix));
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
        let what = format!("{} has no ramp from \"{from}\" to \"{to}\"", key_of(edit.spec, *at, whose));
        Some((
            what,
            "rates but \"unlimited\", times, probabilities and numbers have; set others at once".into(),
        ))
    }

    /// What to do instead of taking the link's block of a key away by a ramp.
    fn fix_of_removal(&self, state: &State, key: &str) -> String {
        let own = state.blocks.iter().find(|(spec, _)| spec.key == key);
        let first =
            self.resolver.registry.iter().find(|spec| spec.key == key).map(|spec| spec.params[0].name);
        let share = own.is_some_and(|(spec, values)| {
            let at = spec.params.iter().position(|param| Some(param.name) == first);
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

    /// Notes a change from one state to the next.
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

/// Whether two lists of edits are the same.
fn same(one: &[Edit], other: &[Edit]) -> bool {
    let alike =
        |(a, b): (&Edit, &Edit)| (a.spec.key, a.spec.kind, &a.given) == (b.spec.key, b.spec.kind, &b.given);
    one.len() == other.len() && one.iter().zip(other).all(alike)
}
