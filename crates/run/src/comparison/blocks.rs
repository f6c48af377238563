//! Compares objects by their blocks: the edits that lead from one to the other.

use crate::objects::changing::{AnyObjects, PlannedChange, edited};
use crate::objects::settings::Settings;
use longwire_assemble::is_at_start;
use longwire_block::change::{Blocks, Edit};
use longwire_block::{Value, Values};
use longwire_control::{Kind, SettingDifference};
use longwire_engine::{Change, are_alike};
use longwire_link::without;
use longwire_scenario::Plan;
use longwire_units::Nanos;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// The edits that give an object the blocks of another with its name.
#[derive(Debug)]
pub(super) struct ObjectEdits {
    pub(super) name: String,
    pub(super) settings: Vec<SettingDifference>,
    /// The change, if the object is running.
    pub(super) planned: Option<PlannedChange>,
    /// Why the change is impossible.
    pub(super) refused: Option<String>,
}

/// Blocks that later events of the running scenario have changed: their objects and keys.
#[derive(Debug, Default)]
pub(super) struct ChangedLater {
    changed: HashSet<(Kind, u32, &'static str)>,
    /// Places in the plan of the events that are still to come, the last one first.
    to_come: Vec<usize>,
}

impl ChangedLater {
    /// None at the start of `plan`.
    pub(super) fn none(plan: &Plan) -> Self {
        let later = plan.events.iter().enumerate().filter(|(_, event)| !is_at_start(event));
        let mut to_come: Vec<usize> = later.map(|(place, _)| place).collect();
        to_come.sort_by_key(|&place| std::cmp::Reverse(plan.events[place].time));
        Self { changed: HashSet::new(), to_come }
    }

    /// The blocks that events of `plan` have changed by `elapsed` after its start.
    pub(super) fn by(plan: &Plan, elapsed: Nanos) -> Self {
        let mut kept = Self::none(plan);
        kept.go_on(plan, elapsed);
        kept
    }

    /// Adds the blocks that events of the same plan have changed since, by `elapsed`.
    pub(super) fn go_on(&mut self, plan: &Plan, elapsed: Nanos) {
        while let Some(event) = self.to_come.last().map(|&place| &plan.events[place])
            && event.time <= elapsed
        {
            let all =
                [(Kind::Link, &event.links), (Kind::Source, &event.sources), (Kind::Medium, &event.media)];
            for (kind, places) in all {
                let keys =
                    places.iter().flat_map(|place| event.edits.iter().map(|e| (kind, *place, e.spec.key)));
                self.changed.extend(keys);
            }
            self.to_come.pop();
        }
    }

    fn has(&self, kind: Kind, place: u32, key: &'static str) -> bool {
        self.changed.contains(&(kind, place, key))
    }
}

/// The blocks that objects have at the start of a scenario, by place, where they are not the planned ones.
pub(super) type StartBlocks = HashMap<u32, Arc<Blocks>>;

/// An object that is not set as at the start of a scenario.
#[derive(Debug)]
pub(super) struct ChangedObject {
    /// Its place in the plan.
    pub(super) place: u32,
    /// The keys of the blocks that differ.
    pub(super) keys: Vec<&'static str>,
}

impl AnyObjects {
    /// Records the result of `edits` on the object at this place.
    pub(crate) fn edit_known(&self, place: u32, edits: &[Edit]) {
        self.note(place, Nanos::ZERO, Arc::new(edited(&self.known(place), edits)));
    }

    /// The blocks that these objects have at `start`, where they differ from the planned ones.
    pub(super) fn start_blocks(&self, start: &Self) -> StartBlocks {
        // Most of a million links share their blocks.
        let (names, mut alike) = (self.names(), HashMap::new());
        let each = (0u32..).zip(&*names).filter_map(|(place, name)| {
            let (planned, then) = (self.planned_at(place), start.known(start.place(name)?));
            let both = (Arc::as_ptr(&planned), Arc::as_ptr(&then));
            let alike = *alike.entry(both).or_insert_with(|| are_alike(&planned, &then));
            (!alike).then_some((place, then))
        });
        each.collect()
    }

    /// The places of the objects that may not be set as at the start: no others have ever been changed.
    pub(super) fn perhaps_changed(&self, start: &StartBlocks) -> Vec<u32> {
        let all: BTreeSet<u32> = self.changed_places().into_iter().chain(start.keys().copied()).collect();
        all.into_iter().collect()
    }

    /// The objects that are not set as at the start, as far as is known, in the order of the plan.
    pub(super) fn changed_since(&self, start: &StartBlocks, kept: &ChangedLater) -> Vec<ChangedObject> {
        // Most changed objects have been changed alike.
        let mut found = HashMap::new();
        let each = self.perhaps_changed(start).into_iter().filter_map(|place| {
            let now = self.known(place);
            let then = start.get(&place).map_or_else(|| self.planned_at(place), Arc::clone);
            let both = (Arc::as_ptr(&then), Arc::as_ptr(&now));
            // Both stay while their addresses are compared.
            let (keys, ..) = found.entry(both).or_insert_with(|| {
                let edits = edits_between(&then, &now);
                (edits.iter().map(|edit| edit.spec.key).collect::<Vec<_>>(), then, now)
            });
            let own = keys.iter().copied().filter(|key| !kept.has(self.kind().kind(), place, key));
            let keys: Vec<_> = own.collect();
            (!keys.is_empty()).then_some(ChangedObject { place, keys })
        });
        each.collect()
    }

    /// The edits that give each object the blocks of the one with its name in `wanted`, where they differ.
    /// Objects that exist in only one of them are skipped, and blocks that events of the running scenario
    /// have changed.
    pub(super) fn edits_to(&self, wanted: &Self, kept: &ChangedLater) -> Vec<ObjectEdits> {
        // Most of a million links share their blocks.
        let mut same = HashMap::new();
        let mut all = Vec::new();
        for (place, name) in (0u32..).zip(&*self.names()) {
            let Some(there) = wanted.place(name) else { continue };
            let (now, then) = (self.known(place), wanted.known(there));
            let both = (Arc::as_ptr(&now), Arc::as_ptr(&then));
            if *same.entry(both).or_insert_with(|| edits_between(&now, &then).is_empty()) {
                continue;
            }
            let mut edits = edits_between(&now, &then);
            edits.retain(|edit| !kept.has(self.kind().kind(), place, edit.spec.key));
            if !edits.is_empty() {
                all.push(self.object_edits(place, &now, edits));
            }
        }
        all
    }

    fn object_edits(&self, place: u32, now: &Arc<Blocks>, edits: Vec<Edit>) -> ObjectEdits {
        let planned = self.planned_at(place);
        let refused = self.kind().check(place, &planned, &edits).err().map(|error| error.to_string());
        let settings =
            settings_between(&self.kind().settings(now), &self.kind().settings(&edited(now, &edits)));
        let target = self.target(place);
        let changed = edits.iter().filter_map(|edit| edit.apply(now)).collect();
        let planned = target.map(|target| PlannedChange {
            place,
            change: Change { target, base: Arc::clone(now), edits, ramp: None },
            made: changed,
        });
        let name = self.names()[place as usize].clone();
        ObjectEdits { name, settings, planned, refused }
    }
}

fn edits_between(now: &Blocks, then: &Blocks) -> Vec<Edit> {
    let mut edits = Vec::new();
    for (spec, values) in then {
        let own = now.iter().find(|(other, _)| other.is(spec)).map(|(_, values)| values);
        let differs = |at: usize, value: &Value| own.is_none_or(|own| own.at(at) != *value);
        let each = values.as_slice().iter().cloned().enumerate();
        let given: Vec<_> = each.filter(|(at, value)| differs(*at, value)).collect();
        if !given.is_empty() || own.is_none() {
            edits.push(Edit { spec, given, fresh: Some(values.clone()) });
        }
    }
    for (spec, _) in now.iter().filter(|(spec, _)| then.iter().all(|(other, _)| other.key != spec.key)) {
        edits.extend(without(spec.key).map(|spec| Edit {
            spec,
            given: Vec::new(),
            fresh: Some(Values::made(Vec::new())),
        }));
    }
    edits
}

/// The settings that differ between two objects.
pub(super) fn settings_between(now: &Settings, then: &Settings) -> Vec<SettingDifference> {
    let mut keys: Vec<_> = now.keys().chain(then.keys()).collect();
    keys.sort();
    keys.dedup();
    let each = keys.into_iter().map(|key| SettingDifference {
        key: key.clone(),
        now: now.get(key).cloned(),
        wanted: then.get(key).cloned(),
    });
    each.filter(|setting| setting.now != setting.wanted).collect()
}
