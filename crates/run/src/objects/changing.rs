//! Objects that workers change: links, sources and media. They differ only in how their settings are written
//! (`ObjectKind`).

use super::settings::{SettingPair, ramp_of, refusal};
use longwire_block::change::{Blocks, Edit, Ramp};
use longwire_control::{Kind, SetError, Settable, fits, is_pattern};
use longwire_engine::{Change, Remote, Target};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A kind of object, with the syntax of its settings.
pub trait ObjectKind: Debug {
    /// The kind.
    const KIND: Kind;

    /// The edits that `pairs` mean for an object.
    ///
    /// # Errors
    /// If a setting is invalid.
    fn edits(&self, object: &CurrentObject<'_>, pairs: &[&SettingPair]) -> Result<Vec<Edit>, SetError>;

    /// The settings of an object with these blocks, as text that can be set.
    fn settings(&self, blocks: &Blocks) -> BTreeMap<String, String>;

    /// Settings that a change may name.
    fn settable(&self) -> Vec<Settable>;

    /// Checks edits of a running object whose blocks were `planned` at the start.
    ///
    /// # Errors
    /// If this change is impossible in a run.
    fn check(&self, _place: u32, _planned: &Blocks, _edits: &[Edit]) -> Result<(), SetError> {
        Ok(())
    }

    /// Called when an object gets these blocks.
    fn note(&self, _place: u32, _blocks: &Blocks) {}
}

/// An object to be changed.
#[derive(Debug)]
pub struct CurrentObject<'a> {
    /// Its place in the plan.
    pub place: u32,
    /// Its name.
    pub name: &'a str,
    /// Its current blocks.
    pub blocks: &'a Blocks,
}

/// Most objects that a name may match: all of them change between two batches of packets.
const MOST_MEANT: usize = 10_000;

/// The objects of a kind. Blocks are stored once per profile, and for each changed object.
#[derive(Debug)]
pub struct LiveObjects<W> {
    kind: W,
    /// By place in the plan.
    names: Arc<[String]>,
    /// Places in the order of the names.
    by_name: Vec<u32>,
    /// The engine's references; empty if the objects don't run.
    targets: Vec<Target>,
    /// Distinct blocks at the start, and the index of each object's.
    planned: Vec<Arc<Blocks>>,
    planned_of: Vec<u32>,
    changed: Mutex<HashMap<u32, Arc<Blocks>>>,
    /// How often blocks have changed.
    change_count: AtomicU64,
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
        let (changed, change_count) = (Mutex::default(), AtomicU64::new(0));
        Self { kind, names: names.into(), by_name, targets, planned, planned_of, changed, change_count }
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
        self.note(stay.into_iter());
        self
    }

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
        if let Some(place) = self.place(name) {
            return Ok(vec![place]);
        }
        let direction = |which| self.place(&format!("{name}.{which}"));
        if let (Kind::Link, Some(forward), Some(backward)) =
            (W::KIND, direction("forward"), direction("backward"))
        {
            return Ok(vec![forward, backward]);
        }
        let fitting =
            || (0u32..).zip(&*self.names).filter(|(_, known)| fits(known, name)).map(|(place, _)| place);
        let found: Vec<u32> =
            if is_pattern(name) { fitting().take(MOST_MEANT + 1).collect() } else { Vec::new() };
        match found.len() {
            0 => Err(SetError::Unknown { kind: W::KIND, name: name.into() }),
            1..=MOST_MEANT => Ok(found),
            _ => Err(SetError::Refused(format!(
                "\"{name}\" matches more than {MOST_MEANT} objects: write a narrower pattern"
            ))),
        }
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
    pub fn settings(&self, place: u32) -> BTreeMap<String, String> {
        self.kind.settings(&self.known(place))
    }

    /// Reads an object's current blocks from its worker: a scheduled change may have happened.
    pub fn look(&self, remote: &Remote, place: u32) {
        let target = self.target(place);
        if let Some(Ok(Some(now))) = target.map(|target| remote.made_of(target)) {
            self.note(std::iter::once((place, now)));
        }
    }

    /// Records objects' current blocks.
    pub fn note(&self, now: impl Iterator<Item = (u32, Arc<Blocks>)>) {
        let mut changed = self.lock();
        for (place, now) in now {
            let old = changed.insert(place, Arc::clone(&now));
            if !old.is_some_and(|old| Arc::ptr_eq(&old, &now)) {
                self.change_count.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// How often blocks have changed, as far as is known.
    pub(crate) fn change_count(&self) -> u64 {
        // Who has seen a change has had the lock after it.
        let _changed = self.lock();
        self.change_count.load(Ordering::Relaxed)
    }

    /// The changes that `pairs` of setting and text mean for the objects that `name` matches, checked against
    /// their current blocks. The pairs `ramp` and `ramp.step` turn the others into a ramp.
    ///
    /// # Errors
    /// If there is no such object, it does not run, or a setting is invalid.
    pub fn changes(
        &self,
        remote: &Remote,
        name: &str,
        pairs: &[SettingPair],
    ) -> Result<Vec<PlannedChange>, SetError> {
        let meant = self.meant(name)?;
        let (ramp, pairs) = ramp_of(pairs)?;
        meant.into_iter().map(|place| self.change(remote, place, ramp, &pairs)).collect()
    }

    fn change(
        &self,
        remote: &Remote,
        place: u32,
        ramp: Option<Ramp>,
        pairs: &[&SettingPair],
    ) -> Result<PlannedChange, SetError> {
        let target = self.target(place);
        let target = target.ok_or_else(|| SetError::Unavailable("the run has ended".into()))?;
        let now = remote.made_of(target).map_err(|error| refusal(error, ramp))?;
        let now = now.unwrap_or_else(|| self.known(place));
        let planned = self.planned_at(place);
        let name = &self.names[place as usize];
        let edits = self.kind.edits(&CurrentObject { place, name, blocks: &now }, pairs)?;
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

    /// Records that the engine has made a change that results in these blocks.
    pub(super) fn taken(&self, remote: &Remote, place: u32, made: &Blocks) {
        self.kind.note(place, made);
        self.look(remote, place);
    }

    /// The last known blocks of the object.
    pub(crate) fn known(&self, place: u32) -> Arc<Blocks> {
        let changed = self.lock().get(&place).map(Arc::clone);
        changed.unwrap_or_else(|| self.planned_at(place))
    }

    /// The data are consistent even if a holder of the lock panicked.
    fn lock(&self) -> MutexGuard<'_, HashMap<u32, Arc<Blocks>>> {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether two objects are made of the same.
fn are_alike(one: &Blocks, other: &Blocks) -> bool {
    let same = |at: usize| one[at].0.is(other[at].0) && one[at].1 == other[at].1;
    one.len() == other.len() && (0..one.len()).all(same)
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
