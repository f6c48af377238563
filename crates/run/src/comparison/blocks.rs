//! Compares objects by their blocks: the edits that lead from one to the other.

use crate::objects::changing::{LiveObjects, ObjectKind, PlannedChange};
use longwire_assemble::is_at_start;
use longwire_block::change::{Blocks, Edit, set_block};
use longwire_block::{Value, Values};
use longwire_control::{Kind, SettingDifference};
use longwire_engine::Change;
use longwire_link::without;
use longwire_scenario::Plan;
use longwire_units::Nanos;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// The edits that give an object the blocks of another with its name.
#[derive(Debug)]
pub(super) struct ObjectEdits {
    pub(super) name: String,
    pub(super) settings: Vec<SettingDifference>,
    /// The keys of the blocks that differ.
    pub(super) keys: Vec<&'static str>,
    /// The change, if the object is running.
    pub(super) planned: Option<PlannedChange>,
    /// Why the change is impossible.
    pub(super) refused: Option<String>,
}

/// Blocks that later events of the running scenario have changed: their objects and keys.
#[derive(Debug, Default)]
pub(super) struct ChangedLater(HashSet<(Kind, u32, &'static str)>);

impl ChangedLater {
    /// The blocks that events of `plan` have changed by `elapsed` after its start.
    pub(super) fn by(plan: &Plan, elapsed: Nanos) -> Self {
        let mut kept = HashSet::new();
        for event in plan.events.iter().filter(|event| !is_at_start(event) && event.time <= elapsed) {
            let all =
                [(Kind::Link, &event.links), (Kind::Source, &event.sources), (Kind::Medium, &event.media)];
            for (kind, places) in all {
                let keys =
                    places.iter().flat_map(|place| event.edits.iter().map(|e| (kind, *place, e.spec.key)));
                kept.extend(keys);
            }
        }
        Self(kept)
    }

    fn has(&self, kind: Kind, place: u32, key: &'static str) -> bool {
        self.0.contains(&(kind, place, key))
    }
}

impl<W: ObjectKind> LiveObjects<W> {
    /// Records the result of `edits` on the object at this place.
    pub(super) fn edit_known(&self, place: u32, edits: &[Edit]) {
        let mut blocks = (*self.known(place)).clone();
        for edit in edits {
            if let Some((spec, values)) = edit.apply(&blocks) {
                set_block(&mut blocks, spec, values);
            }
        }
        self.note(place, Nanos::ZERO, Arc::new(blocks));
    }

    /// The edits that give each object the blocks of the one with its name in `wanted`, where they differ.
    /// Objects that exist in only one of them are skipped.
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
            edits.retain(|edit| {
                !kept.has(W::KIND, place, edit.spec.key) && !kept.has(W::KIND, there, edit.spec.key)
            });
            if !edits.is_empty() {
                all.push(self.object_edits(place, &now, edits));
            }
        }
        all
    }

    fn object_edits(&self, place: u32, now: &Arc<Blocks>, edits: Vec<Edit>) -> ObjectEdits {
        let mut made = (**now).clone();
        for edit in &edits {
            if let Some((spec, values)) = edit.apply(&made) {
                set_block(&mut made, spec, values);
            }
        }
        let planned = self.planned_at(place);
        let refused = self.kind().check(place, &planned, &edits).err().map(|error| error.to_string());
        let settings = settings_between(&self.kind().settings(now), &self.kind().settings(&made));
        let target = self.target(place);
        let keys = edits.iter().map(|edit| edit.spec.key).collect();
        let changed = edits.iter().filter_map(|edit| edit.apply(now)).collect();
        let planned = target.map(|target| PlannedChange {
            place,
            change: Change { target, base: Arc::clone(now), edits, ramp: None },
            made: changed,
        });
        let name = self.names()[place as usize].clone();
        ObjectEdits { name, settings, keys, planned, refused }
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
pub(super) fn settings_between(
    now: &BTreeMap<String, String>,
    then: &BTreeMap<String, String>,
) -> Vec<SettingDifference> {
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
