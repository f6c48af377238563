//! Objects that workers change: links, sources and media. Where they are and what they are made of is kept
//! alike for all; how their settings are written is what differs (`Words`).

use super::settings::{Pair, ramp_of, refusal};
use longwire_block::change::{Blocks, Edit, Ramp};
use longwire_control::{Kind, SetError, Settable, fits};
use longwire_engine::{Change, Remote, Target};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How objects of a kind are set.
pub trait Words: Debug {
    /// The kind.
    const KIND: Kind;

    /// The change that `pairs` mean for an object.
    ///
    /// # Errors
    /// If a setting can't be that.
    fn edits(&self, object: &Now<'_>, pairs: &[&Pair]) -> Result<Vec<Edit>, SetError>;

    /// The settings of an object made of these, as text in the form in which they are set.
    fn settings(&self, blocks: &Blocks) -> BTreeMap<String, String>;

    /// Settings that a change may name.
    fn settable(&self) -> Vec<Settable>;

    /// Checks edits that come from another scenario for an object that was read with `planned`.
    ///
    /// # Errors
    /// If it can't be changed so while it runs.
    fn check(&self, _place: u32, _planned: &Blocks, _edits: &[Edit]) -> Result<(), SetError> {
        Ok(())
    }

    /// Notes that somebody makes an object of these.
    fn note(&self, _place: u32, _blocks: &Blocks) {}
}

/// An object that is to be changed.
#[derive(Debug)]
pub struct Now<'a> {
    /// Its place in the plan.
    pub place: u32,
    /// Its name.
    pub name: &'a str,
    /// Its blocks at the start.
    pub planned: &'a Blocks,
    /// Its current blocks.
    pub blocks: &'a Blocks,
}

/// Most objects that one name may mean: all of them change between two batches of packets.
const MOST_MEANT: usize = 10_000;

/// The objects of a kind. What a million links are made of is kept once for each profile, and for those that
/// were changed.
#[derive(Debug)]
pub struct Changing<W> {
    words: W,
    /// By place in the plan.
    names: Arc<[String]>,
    /// Places in the order of the names.
    by_name: Vec<u32>,
    /// Where the engine has them; empty where there is none.
    targets: Vec<Target>,
    /// What they were made of at the start, each once, and which of these is whose.
    planned: Vec<Arc<Blocks>>,
    planned_of: Vec<u32>,
    changed: Mutex<HashMap<u32, Arc<Blocks>>>,
}

impl<W: Words> Changing<W> {
    /// Objects with these names, which are made of what `planned_of` says of each and the engine finds at
    /// `targets`; without these they can be shown, but not changed.
    pub(super) fn made(
        words: W,
        names: Vec<String>,
        targets: Vec<Target>,
        (planned, planned_of): (Vec<Blocks>, Vec<u32>),
    ) -> Self {
        let mut by_name: Vec<u32> = (0..names.len() as u32).collect();
        by_name.sort_unstable_by_key(|&place| &names[place as usize]);
        let planned = planned.into_iter().map(Arc::new).collect();
        let changed = Mutex::default();
        Self { words, names: names.into(), by_name, targets, planned, planned_of, changed }
    }

    /// These objects with what is known of those of the same name `before`, but for the `fresh` ones.
    pub(super) fn after(self, before: &Self, fresh: &HashSet<u32>) -> Self {
        let stay = (0..self.names.len() as u32).filter(|place| !fresh.contains(place));
        // Of a million links most share what they are made of.
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

    /// Where the engine has them.
    pub(super) fn targets(&self) -> &[Target] {
        &self.targets
    }

    /// How they are set.
    pub const fn words(&self) -> &W {
        &self.words
    }

    /// The names, by place in the plan.
    pub fn names(&self) -> Arc<[String]> {
        Arc::clone(&self.names)
    }

    /// The place in the plan of the object called `name`.
    pub fn place(&self, name: &str) -> Option<u32> {
        let found = self.by_name.binary_search_by(|&place| self.names[place as usize].as_str().cmp(name));
        found.ok().map(|at| self.by_name[at])
    }

    /// The places in the plan of what `name` means: an object, both directions of a duplex link, or all that
    /// fit a pattern such as `dsl*`.
    ///
    /// # Errors
    /// If it means nothing, or too many.
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
            if name.contains('*') { fitting().take(MOST_MEANT + 1).collect() } else { Vec::new() };
        match found.len() {
            0 => Err(SetError::Unknown { kind: W::KIND, name: name.into() }),
            1..=MOST_MEANT => Ok(found),
            _ => Err(SetError::Refused(format!(
                "\"{name}\" means more than {MOST_MEANT} objects: write a pattern that fits fewer"
            ))),
        }
    }

    /// The names of the objects that `name` means, if it is not the name of one of them.
    ///
    /// # Errors
    /// As [`Changing::meant`].
    pub(super) fn members(&self, name: &str) -> Result<Option<Vec<String>>, SetError> {
        if self.place(name).is_some() {
            return Ok(None);
        }
        let member = |place: u32| self.names[place as usize].clone();
        Ok(Some(self.meant(name)?.into_iter().map(member).collect()))
    }

    /// The settings of the object at this place, as far as is known without asking: see [`Changing::look`].
    pub fn settings(&self, place: u32) -> BTreeMap<String, String> {
        self.words.settings(&self.known(place))
    }

    /// Looks what an object is made of now: a change may have come at its time.
    pub fn look(&self, remote: &Remote, place: u32) {
        let target = self.target(place);
        if let Some(Ok(Some(now))) = target.map(|target| remote.made_of(target)) {
            self.lock().insert(place, now);
        }
    }

    /// Notes what objects are made of now.
    pub fn note(&self, now: impl Iterator<Item = (u32, Arc<Blocks>)>) {
        self.lock().extend(now);
    }

    /// What `pairs` of setting and text mean for what is called `name`, checked against what it is made of
    /// now. The pairs `ramp` and `ramp.step` make a ramp of the others, which takes so long.
    ///
    /// # Errors
    /// If there is no such object, it is not run, or a setting can't be that.
    pub fn changes(&self, remote: &Remote, name: &str, pairs: &[Pair]) -> Result<Vec<Planned>, SetError> {
        let meant = self.meant(name)?;
        let (ramp, pairs) = ramp_of(pairs)?;
        meant.into_iter().map(|place| self.change(remote, place, ramp, &pairs)).collect()
    }

    fn change(
        &self,
        remote: &Remote,
        place: u32,
        ramp: Option<Ramp>,
        pairs: &[&Pair],
    ) -> Result<Planned, SetError> {
        let target = self.target(place);
        let target = target.ok_or_else(|| SetError::Unavailable("the run has ended".into()))?;
        let now = remote.made_of(target).map_err(|error| refusal(error, ramp))?;
        let now = now.unwrap_or_else(|| self.known(place));
        let planned = self.planned_at(place);
        let name = &self.names[place as usize];
        let edits = self.words.edits(&Now { place, name, planned: &planned, blocks: &now }, pairs)?;
        // A ramp ends at a value.
        let taken_away = |edit: &&Edit| edit.spec.params.is_empty() && edit.replaces(&now);
        if let (Some(_), Some(edit)) = (ramp, edits.iter().find(taken_away)) {
            let reason = "a ramp can't take it away; ramp to a value, such as 0 %, and take it away then, \
                without ramp";
            return Err(SetError::Value { key: edit.spec.key.into(), reason: reason.into() });
        }
        let made: Blocks = edits.iter().filter_map(|edit| edit.apply(&now)).collect();
        Ok(Planned { place, change: Change { target, base: now, edits, ramp }, made })
    }

    /// The blocks at the start of the object at this place.
    pub(crate) fn planned_at(&self, place: u32) -> Arc<Blocks> {
        Arc::clone(&self.planned[self.planned_of[place as usize] as usize])
    }

    /// Where the engine has the object at this place, if it runs.
    pub(crate) fn target(&self, place: u32) -> Option<Target> {
        self.targets.get(place as usize).copied()
    }

    /// Notes that the engine has taken a change in which makes an object of these blocks.
    pub(super) fn taken(&self, remote: &Remote, place: u32, made: &Blocks) {
        self.words.note(place, made);
        self.look(remote, place);
    }

    /// The blocks of the object at this place, as far as they are known.
    pub(crate) fn known(&self, place: u32) -> Arc<Blocks> {
        let changed = self.lock().get(&place).map(Arc::clone);
        changed.unwrap_or_else(|| self.planned_at(place))
    }

    /// The notes are consistent even if a holder of the lock panicked.
    fn lock(&self) -> MutexGuard<'_, HashMap<u32, Arc<Blocks>>> {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether two objects are made of the same.
fn are_alike(one: &Blocks, other: &Blocks) -> bool {
    let same = |at: usize| one[at].0.is(other[at].0) && one[at].1 == other[at].1;
    one.len() == other.len() && (0..one.len()).all(same)
}

/// A change that was checked.
#[derive(Debug)]
pub struct Planned {
    /// Of the object at this place in the plan.
    pub place: u32,
    /// The engine's commands.
    pub change: Change,
    /// The blocks that it makes.
    pub made: Blocks,
}
