//! Objects that workers change: links, sources and media. They differ only in how their settings are written
//! (`ObjectKind`).

use super::settings::{SettingPair, Settings, ramp_of};
use crate::threads::lock;
use longwire_block::change::{Blocks, Edit, Ramp, set_block};
use longwire_clock::monotonic;
use longwire_control::{Kind, SetError, Settable, fits, is_pattern};
use longwire_engine::{Change, Remote, RemoteError, Target, are_alike};
use longwire_units::Nanos;
use std::collections::{HashMap, HashSet};
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

/// A kind of object, with the syntax of its settings.
pub trait ObjectKind: Debug + Send + Sync {
    /// The kind.
    fn kind(&self) -> Kind;

    /// The edits that `pairs` mean for an object.
    ///
    /// # Errors
    /// If settings are invalid: all of them.
    fn edits(&self, object: &CurrentObject<'_>, pairs: &[&SettingPair]) -> Result<Vec<Edit>, SetError>;

    /// The settings of an object with these blocks, as text that can be set.
    fn settings(&self, blocks: &Blocks) -> Settings;

    /// Settings that a change may name.
    fn settable(&self) -> Vec<Settable>;

    /// Checks edits of a running object whose blocks were `planned` at the start.
    ///
    /// # Errors
    /// If this change is impossible in a run.
    fn check(&self, _place: u32, _planned: &Blocks, _edits: &[Edit]) -> Result<(), SetError> {
        Ok(())
    }
}

/// An object to be changed.
#[derive(Debug)]
pub struct CurrentObject<'a> {
    /// Its place in the plan.
    pub place: u32,
    /// Its current blocks.
    pub blocks: &'a Blocks,
}

/// Most objects that a name may match: all of them change between two batches of packets.
const MOST_MEANT: usize = 10_000;

/// The objects of a kind. Blocks are stored once per profile, and for each changed object.
#[derive(Debug)]
pub struct LiveObjects<W: ?Sized> {
    /// By place in the plan.
    names: Arc<[String]>,
    /// Places in the order of the names.
    by_name: Vec<u32>,
    /// The engine's references; empty if the objects don't run.
    targets: Vec<Target>,
    /// Distinct blocks at the start, and the index of each object's.
    planned: Vec<Arc<Blocks>>,
    planned_of: Vec<u32>,
    changed: Mutex<ChangedObjects>,
    kind: W,
}

/// Objects of any of the kinds.
pub type AnyObjects = LiveObjects<dyn ObjectKind>;

/// What is known of changed objects.
#[derive(Debug, Default)]
struct ChangedObjects {
    /// The last known blocks by place, with the time since which an object has them.
    blocks: HashMap<u32, (Nanos, Arc<Blocks>)>,
    /// How often blocks have changed.
    changes: u64,
}

impl ChangedObjects {
    fn note(&mut self, place: u32, since: Nanos, blocks: Arc<Blocks>) {
        let is_same = self.blocks.get(&place).is_some_and(|(_, known)| Arc::ptr_eq(known, &blocks));
        self.changes += u64::from(!is_same);
        self.blocks.insert(place, (since, blocks));
    }
}

impl<W: ObjectKind> LiveObjects<W> {
    /// Creates objects; `planned_of` holds the index of each object's blocks, `targets` the engine's
    /// references. Without these, objects can be shown but not changed.
    pub(super) fn made(
        kind: W,
        names: Vec<String>,
        targets: Vec<Target>,
        (planned, planned_of): (Vec<Blocks>, Vec<u32>),
    ) -> Self {
        let mut by_name: Vec<u32> = (0..names.len() as u32).collect();
        by_name.sort_unstable_by_key(|&place| &names[place as usize]);
        let planned = planned.into_iter().map(Arc::new).collect();
        Self { names: names.into(), by_name, targets, planned, planned_of, changed: Mutex::default(), kind }
    }

    /// These objects with the known blocks of those of the same names in `before`, except for `fresh` ones.
    pub(super) fn after(self, before: &Self, fresh: &HashSet<u32>) -> Self {
        let stay = (0..self.names.len() as u32).filter(|place| !fresh.contains(place));
        // Most of a million links share their blocks.
        let mut same = HashMap::new();
        let stay = stay.filter_map(|place| {
            let known = before.known(before.place(&self.names[place as usize])?);
            let planned = self.planned_at(place);
            let both = (Arc::as_ptr(&known), Arc::as_ptr(&planned));
            let same = *same.entry(both).or_insert_with(|| are_alike(&known, &planned));
            (!same).then_some((place, known))
        });
        let stay: Vec<_> = stay.collect();
        self.note_read(Nanos::ZERO, stay);
        self
    }
}

impl<W: ObjectKind + ?Sized> LiveObjects<W> {
    /// Their kind.
    pub const fn kind(&self) -> &W {
        &self.kind
    }

    /// The names, by place in the plan.
    pub fn names(&self) -> Arc<[String]> {
        Arc::clone(&self.names)
    }

    /// The place in the plan of the object `name`.
    pub fn place(&self, name: &str) -> Option<u32> {
        let found = self.by_name.binary_search_by(|&place| self.names[place as usize].as_str().cmp(name));
        found.ok().map(|at| self.by_name[at])
    }

    /// The places in the plan that `name` matches: an object, both directions of a duplex link, or all that
    /// match a pattern such as `dsl*` or `dsl?`.
    ///
    /// # Errors
    /// If it matches none, or too many.
    pub fn meant(&self, name: &str) -> Result<Vec<u32>, SetError> {
        let (found, more) = self.matching(name, MOST_MEANT);
        match found.len() + more {
            0 => Err(SetError::Unknown { kind: self.kind.kind(), name: name.into() }),
            1..=MOST_MEANT => Ok(found),
            _ => Err(SetError::Refused(format!(
                "\"{name}\" matches more than {MOST_MEANT} objects: write a narrower pattern"
            ))),
        }
    }

    /// At most `most` of the places that `name` matches, and the number of the others.
    pub fn matching(&self, name: &str, most: usize) -> (Vec<u32>, usize) {
        let direction = |which| self.place(&format!("{name}.{which}"));
        let mut found: Vec<u32> = match (self.kind.kind(), direction("forward"), direction("backward")) {
            _ if is_pattern(name) => {
                let mut fitting = (0..).zip(&*self.names).filter(|(_, known)| fits(known, name));
                let first = fitting.by_ref().take(most).map(|(place, _)| place).collect();
                return (first, fitting.count());
            }
            (Kind::Link, Some(forward), Some(backward)) if self.place(name).is_none() => {
                vec![forward, backward]
            }
            _ => self.place(name).into_iter().collect(),
        };
        let more = found.len().saturating_sub(most);
        found.truncate(most);
        (found, more)
    }

    /// The names of the objects that `name` matches, unless it is the name of one.
    ///
    /// # Errors
    /// As [`LiveObjects::meant`].
    pub(super) fn members(&self, name: &str) -> Result<Option<Vec<String>>, SetError> {
        if self.place(name).is_some() {
            return Ok(None);
        }
        let member = |place: u32| self.names[place as usize].clone();
        Ok(Some(self.meant(name)?.into_iter().map(member).collect()))
    }

    /// The settings of an object as last known; see [`LiveObjects::look`].
    pub fn settings(&self, place: u32) -> Settings {
        self.kind.settings(&self.known(place))
    }

    /// Reads objects' current blocks from their workers: scheduled changes may have happened.
    ///
    /// # Errors
    /// If a worker has ended or does not answer.
    pub(crate) fn read(
        &self,
        remote: &Remote,
        places: impl IntoIterator<Item = u32>,
    ) -> Result<(), RemoteError> {
        let known = places.into_iter().filter_map(|place| Some((place, self.target(place)?)));
        let (places, targets): (Vec<_>, Vec<_>) = known.unzip();
        let asked = monotonic();
        let now = remote.made_of(&targets)?;
        self.note_read(asked, places.into_iter().zip(now).filter_map(|(place, now)| Some((place, now?))));
        Ok(())
    }

    /// Reads objects' current blocks, if the run has not ended.
    pub fn look(&self, remote: &Remote, places: impl IntoIterator<Item = u32>) {
        // What was known last is shown.
        let _ = self.read(remote, places);
    }

    /// Records objects' blocks, read after the time `asked`. Those of objects that have changed meanwhile, or
    /// are about to, may be older than what is known.
    pub(super) fn note_read(&self, asked: Nanos, read: impl IntoIterator<Item = (u32, Arc<Blocks>)>) {
        let mut changed = lock(&self.changed);
        for (place, blocks) in read {
            if changed.blocks.get(&place).is_none_or(|(since, _)| *since <= asked) {
                changed.note(place, asked, blocks);
            }
        }
    }

    /// Records the blocks of an object, as an answer to a change has them: it was asked for at a time, and
    /// has `made` some of them since another.
    pub(super) fn note_change(
        &self,
        (asked, since): (Nanos, Option<Nanos>),
        place: u32,
        (blocks, made): (Arc<Blocks>, &Blocks),
    ) {
        match since {
            Some(since) => self.note(place, since, after(blocks, made)),
            None => self.note_read(asked, [(place, blocks)]),
        }
    }

    /// Records the blocks that an object has since this time.
    pub fn note(&self, place: u32, since: Nanos, blocks: Arc<Blocks>) {
        lock(&self.changed).note(place, since, blocks);
    }

    /// The places of the objects that have ever been changed, as far as is known.
    pub(crate) fn changed_places(&self) -> Vec<u32> {
        lock(&self.changed).blocks.keys().copied().collect()
    }

    /// How often blocks have changed, as far as is known.
    pub(crate) fn change_count(&self) -> u64 {
        lock(&self.changed).changes
    }

    /// The changes that `pairs` of setting and text mean for the objects that `name` matches, checked against
    /// their last known blocks. The pairs `ramp` and `ramp.step` turn the others into a ramp.
    ///
    /// # Errors
    /// If there is no such object, it does not run, or a setting is invalid.
    pub fn changes(&self, name: &str, pairs: &[SettingPair]) -> Result<Vec<PlannedChange>, SetError> {
        let meant = self.meant(name)?;
        let (ramp, pairs) = ramp_of(pairs)?;
        meant.into_iter().map(|place| self.change(place, ramp, &pairs)).collect()
    }

    fn change(
        &self,
        place: u32,
        ramp: Option<Ramp>,
        pairs: &[&SettingPair],
    ) -> Result<PlannedChange, SetError> {
        let target = self.target(place);
        let target = target.ok_or_else(|| SetError::Unavailable("the run has ended".into()))?;
        let now = self.known(place);
        let planned = self.planned_at(place);
        let edits = self.kind.edits(&CurrentObject { place, blocks: &now }, pairs)?;
        self.kind.check(place, &planned, &edits)?;
        // A ramp must end at a value.
        let taken_away = |edit: &&Edit| edit.spec.params.is_empty() && edit.replaces(&now);
        if let (Some(_), Some(edit)) = (ramp, edits.iter().find(taken_away)) {
            let reason = "a ramp can't take it away; ramp to a value, such as 0 %, and take it away then, \
                without ramp";
            return Err(SetError::Value { key: edit.spec.key.into(), reason: reason.into() });
        }
        let made: Blocks = edits.iter().filter_map(|edit| edit.apply(&now)).collect();
        Ok(PlannedChange { place, change: Change { target, base: now, edits, ramp }, made })
    }

    /// The object's blocks at the start.
    pub(crate) fn planned_at(&self, place: u32) -> Arc<Blocks> {
        Arc::clone(&self.planned[self.planned_of[place as usize] as usize])
    }

    /// The engine's reference to the object, if it runs.
    pub(crate) fn target(&self, place: u32) -> Option<Target> {
        self.targets.get(place as usize).copied()
    }

    /// The last known blocks of the object.
    pub(crate) fn known(&self, place: u32) -> Arc<Blocks> {
        let changed = lock(&self.changed).blocks.get(&place).map(|(_, blocks)| Arc::clone(blocks));
        changed.unwrap_or_else(|| self.planned_at(place))
    }
}

/// These blocks after edits.
pub(crate) fn edited<'e>(blocks: &Blocks, edits: impl IntoIterator<Item = &'e Edit>) -> Blocks {
    let mut edited = blocks.clone();
    for edit in edits {
        if let Some((spec, values)) = edit.apply(&edited) {
            set_block(&mut edited, spec, values);
        }
    }
    edited
}

/// An object's blocks after a change.
fn after(blocks: Arc<Blocks>, made: &Blocks) -> Arc<Blocks> {
    let mut changed = Blocks::clone(&blocks);
    made.iter().for_each(|(spec, values)| set_block(&mut changed, spec, values.clone()));
    if are_alike(&blocks, &changed) { blocks } else { Arc::new(changed) }
}

/// A checked change.
#[derive(Debug)]
pub struct PlannedChange {
    /// Place in the plan of its object.
    pub place: u32,
    /// The engine's change.
    pub change: Change,
    /// The resulting blocks.
    pub made: Blocks,
}
