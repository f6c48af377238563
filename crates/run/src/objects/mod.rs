//! The objects of a running instance, by kind and name: shown, and changed together at one instant. Scenario
//! events, `longwire ctl`, the API and NESP address them alike.

pub mod changing;
pub mod links;
pub mod media;
pub(crate) mod router_settings;
pub mod routers;
pub(crate) mod settings;
pub mod sources;

use crate::programs::change::ProgramChange;
use crate::threads::lock;
use changing::{AnyObjects, PlannedChange};
use links::LiveLinks;
use longwire_assemble::{Layout, is_at_start};
use longwire_block::path::LinkRef;
use longwire_clock::monotonic;
use longwire_control::{Kind, Made, Saver, Saving, SetError, Settable};
use longwire_engine::{Bases, MediumRef, Remote, SourceRef};
use longwire_scenario::{Plan, Port};
use longwire_units::Nanos;
use media::LiveMedia;
use routers::LiveRouters;
use settings::{SettingPair, Settings, ramp_of, refusal};
use sources::LiveSources;
use std::collections::HashSet;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};

/// A change, for logs and for saving the state of a run.
#[derive(Debug)]
pub struct ChangeNotice {
    /// What was changed.
    pub what: NoticedChange,
    /// Receives the outcome of saving it, for which the answer to the change waits.
    pub saver: Saver,
}

/// What was changed.
#[derive(Debug)]
pub enum NoticedChange {
    /// Settings of objects.
    Set {
        /// The settings of each.
        changes: Vec<ObjectChange>,
        /// When they have these values, on the engine's clock: at the end of a ramp.
        reached: Nanos,
    },
    /// A scenario was applied, or objects were added and removed.
    Applied {
        /// Number of changed objects.
        changed: usize,
        /// The scenario that was asked for, if it was applied whole.
        scenario: Option<String>,
    },
    /// Programs of a router, which are not saved.
    Program(ProgramChange),
    /// Nothing: an event of the scenario could not add or remove its objects.
    Failed {
        /// Why, with the event's time.
        error: String,
    },
}

/// Changed settings of one object.
#[derive(Debug, Clone)]
pub struct ObjectChange {
    /// Its kind.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// Settings and their new values.
    pub pairs: Vec<SettingPair>,
}

/// Records what the events at the start of `plan` make of its objects: others see no change in it, and a
/// state that is saved before anybody has looked at an object contains it.
pub(crate) fn note_start(plan: &Plan, [links, sources, media]: [&AnyObjects; 3]) {
    for event in plan.events.iter().filter(|event| is_at_start(event)) {
        for (objects, places) in [(links, &event.links), (sources, &event.sources), (media, &event.media)] {
            places.iter().for_each(|&place| objects.edit_known(place, &event.edits));
        }
    }
}

/// The objects of a run.
#[derive(Debug)]
pub struct Objects {
    plan: Arc<Plan>,
    /// The links.
    pub links: LiveLinks,
    /// The traffic sources.
    pub sources: LiveSources,
    /// The shared media.
    pub media: Arc<LiveMedia>,
    /// The routers, their flows and their programs.
    pub routers: Arc<LiveRouters>,
    /// Held during a change, so that changes take effect in the order in which they are recorded.
    changing: Arc<Mutex<()>>,
    /// Receives changes.
    told: Option<Sender<ChangeNotice>>,
}

impl Objects {
    /// The objects of `plan` with the engine's references, and a receiver of changes.
    pub(crate) fn new(
        plan: &Arc<Plan>,
        (layout, media): (&Layout, &[MediumRef]),
        routers: LiveRouters,
        told: Option<Sender<ChangeNotice>>,
    ) -> Self {
        let links = LiveLinks::new(plan, &layout.links);
        let sources = LiveSources::new(plan, &layout.sources);
        let media = Arc::new(LiveMedia::new(plan, media));
        note_start(plan, [&links, &sources, &*media]);
        let (plan, routers, changing) = (Arc::clone(plan), Arc::new(routers), Arc::default());
        Self { plan, links, sources, media, routers, changing, told }
    }

    /// Reports a change to the receiver, if there is one; the result is the saving of it.
    pub(crate) fn tell(&self, what: impl FnOnce() -> NoticedChange) -> Saving {
        let Some(told) = &self.told else { return Saving::default() };
        let (saver, saving) = Saver::begin();
        // If the receiver is gone, so is the saver then.
        let _ = told.send(ChangeNotice { what: what(), saver });
        saving
    }

    /// These objects in another plan, with its routers and the engine's references to its links and sources,
    /// of which the `fresh` ones were added.
    pub(crate) fn moved_to(
        &self,
        plan: &Arc<Plan>,
        (refs, fresh): (&[LinkRef], &HashSet<u32>),
        sources: (&[SourceRef], &HashSet<u32>),
        routers: LiveRouters,
    ) -> Self {
        Self {
            plan: Arc::clone(plan),
            links: LiveLinks::new(plan, refs).after(&self.links, fresh),
            sources: self.sources.in_plan(plan, sources),
            media: Arc::clone(&self.media),
            routers: Arc::new(routers),
            changing: Arc::clone(&self.changing),
            told: self.told.clone(),
        }
    }

    /// The links, the sources and the media.
    pub(crate) fn in_engine(&self) -> [&AnyObjects; 3] {
        [&self.links, &self.sources, &*self.media]
    }

    /// The objects of this kind, if workers change them.
    fn of_kind(&self, kind: Kind) -> Option<&AnyObjects> {
        self.in_engine().into_iter().find(|objects| objects.kind().kind() == kind)
    }

    /// The names of all objects of a kind, in the order of the plan.
    pub fn names(&self, remote: &Remote, kind: Kind) -> Arc<[String]> {
        match kind {
            Kind::Link | Kind::Source | Kind::Medium => {
                self.of_kind(kind).map(AnyObjects::names).unwrap_or_default()
            }
            Kind::Port => {
                let ports = self.plan.ports.iter().filter(|port| !port.is_vacant());
                ports.map(|port| port.name.to_string()).collect()
            }
            Kind::Router => self.plan.routers.iter().map(|router| router.name.to_string()).collect(),
            Kind::Flow => self.routers.flow_names().into(),
            Kind::Forwarder => self.routers.program_names(remote).into(),
        }
    }

    /// The number of objects of a kind.
    pub fn count(&self, remote: &Remote, kind: Kind) -> usize {
        match kind {
            Kind::Port => self.plan.ports.iter().filter(|port| !port.is_vacant()).count(),
            Kind::Router => self.plan.routers.len(),
            _ => self.names(remote, kind).len(),
        }
    }

    /// The names of the objects that `name` matches, unless it is the name of one: the directions of a duplex
    /// link, or the matches of a pattern.
    ///
    /// # Errors
    /// If it matches none, or too many.
    pub fn members(&self, kind: Kind, name: &str) -> Result<Option<Vec<String>>, SetError> {
        self.of_kind(kind).map_or(Ok(None), |objects| objects.members(name))
    }

    /// Reads the current settings of links, sources or media from their workers: scheduled changes may have
    /// happened.
    pub fn look<'n>(&self, remote: &Remote, kind: Kind, names: impl IntoIterator<Item = &'n str>) {
        if let Some(objects) = self.of_kind(kind) {
            objects.look(remote, names.into_iter().flat_map(|name| objects.meant(name)).flatten());
        }
    }

    /// An object's settings, as text that can be set: of links, sources and media as last known, see
    /// [`Objects::look`]. A duplex link is not an object here, but each direction is.
    ///
    /// # Errors
    /// If there is no such object, the name matches several programs, or a router does not answer.
    pub fn settings(&self, remote: &Remote, kind: Kind, name: &str) -> Result<Settings, SetError> {
        let none = || SetError::Unknown { kind, name: name.into() };
        Ok(match kind {
            Kind::Link | Kind::Source | Kind::Medium => {
                let objects = self.of_kind(kind).ok_or_else(none)?;
                objects.settings(objects.place(name).ok_or_else(none)?)
            }
            Kind::Port => {
                let named = |port: &&Port| &*port.name == name && !port.is_vacant();
                let port = self.plan.ports.iter().find(named).ok_or_else(none)?;
                Settings::from([("queues".into(), port.queues.to_string())])
            }
            Kind::Router => self.routers.settings(remote, name)?,
            Kind::Flow => self.routers.flow(remote, name)?.0,
            Kind::Forwarder => self.routers.program_settings(remote, name)?.ok_or_else(none)?,
        })
    }

    /// Settings that a change of an object may name.
    pub fn settable(&self, kind: Kind) -> Vec<Settable> {
        match kind {
            Kind::Router => router_settings::of_routers(),
            Kind::Flow => router_settings::of_flows(),
            Kind::Forwarder => router_settings::of_forwarders(),
            _ => self.of_kind(kind).map(|objects| objects.kind().settable()).unwrap_or_default(),
        }
    }

    /// Makes all changes at one instant, at the time `at` on the engine's clock or at once, and returns that
    /// instant. Links, sources and media can be combined, as can a router and its flows; a forwarder can't be
    /// combined.
    ///
    /// # Errors
    /// If one of them is impossible; then nothing has changed.
    pub fn set(
        &self,
        remote: &Remote,
        changes: &[ObjectChange],
        at: Option<Nanos>,
    ) -> Result<Made<Nanos>, SetError> {
        let instant = self.set_alone(remote, changes, at)?;
        let what = || {
            let ramps = changes.iter().filter_map(|change| ramp_of(&change.pairs).ok()?.0);
            let over = ramps.map(|ramp| ramp.over).max().unwrap_or_default();
            NoticedChange::Set { changes: changes.to_vec(), reached: instant + over }
        };
        Ok(Made::new(instant, self.tell(what)))
    }

    fn set_alone(
        &self,
        remote: &Remote,
        changes: &[ObjectChange],
        at: Option<Nanos>,
    ) -> Result<Nanos, SetError> {
        let _alone = lock(&self.changing);
        if changes.iter().all(|change| self.of_kind(change.kind).is_some()) {
            return self.set_in_engine(remote, changes, at);
        }
        let now = monotonic();
        let of_router = |change: &ObjectChange| matches!(change.kind, Kind::Router | Kind::Flow);
        match changes {
            _ if at.is_some() => {
                Err(SetError::Refused("routers, flows and forwarders change at once: give no time".into()))
            }
            [ObjectChange { kind: Kind::Forwarder, name, pairs }] => {
                self.routers.set_program(remote, name, pairs).map(|()| now)
            }
            [ObjectChange { kind: Kind::Port, name, pairs }] => {
                let settings = self.settings(remote, Kind::Port, name)?;
                let Some((key, _)) = pairs.first() else { return Ok(now) };
                let key = key.clone();
                if settings.contains_key(&key) {
                    let reason = "it can't change while it runs: change the scenario and start again";
                    return Err(SetError::Value { key, reason: reason.into() });
                }
                Err(SetError::UnknownKey { kind: Kind::Port, key, known: settings.into_keys().collect() })
            }
            _ if changes.iter().all(of_router) => self.routers.set(remote, changes).map(|()| now),
            _ => Err(SetError::Refused(
                "links, sources and media change together, as do a router and its flows; others one by one"
                    .into(),
            )),
        }
    }

    /// Makes changes by what is known of the objects; if they have changed meanwhile, by what is read then.
    fn set_in_engine(
        &self,
        remote: &Remote,
        changes: &[ObjectChange],
        at: Option<Nanos>,
    ) -> Result<Nanos, SetError> {
        match self.planned(changes) {
            Ok(planned) => {
                if let Some(instant) = self.make_alone(remote, planned, at, Bases::Current)? {
                    return Ok(instant);
                }
            }
            // It may be right now.
            Err(_) => {
                changes.iter().for_each(|change| self.look(remote, change.kind, [change.name.as_str()]));
            }
        }
        let made = self.make_alone(remote, self.planned(changes)?, at, Bases::Any)?;
        Ok(made.unwrap_or_default())
    }

    fn planned(&self, changes: &[ObjectChange]) -> Result<Vec<(Kind, PlannedChange)>, SetError> {
        let mut all = Vec::new();
        for ObjectChange { kind, name, pairs } in changes {
            let planned = self.of_kind(*kind).map(|objects| objects.changes(name, pairs)).transpose()?;
            all.extend(planned.into_iter().flatten().map(|planned| (*kind, planned)));
        }
        Ok(all)
    }

    /// Makes checked changes of links, sources and media at one instant.
    ///
    /// # Errors
    /// If one of them is impossible; then nothing has changed.
    pub(crate) fn make(&self, remote: &Remote, changes: Vec<(Kind, PlannedChange)>) -> Result<(), SetError> {
        let _alone = lock(&self.changing);
        self.make_alone(remote, changes, None, Bases::Any).map(drop)
    }

    /// Makes changes, and records the objects' blocks. Nothing is made, and the result is none, if the blocks
    /// are not as the `bases` must be.
    fn make_alone(
        &self,
        remote: &Remote,
        changes: Vec<(Kind, PlannedChange)>,
        at: Option<Nanos>,
        bases: Bases,
    ) -> Result<Option<Nanos>, SetError> {
        let (mut all, mut noted, mut ramp) = (Vec::new(), Vec::new(), None);
        for (kind, PlannedChange { place, change, made }) in changes {
            ramp = ramp.or(change.ramp);
            all.push(change);
            noted.push((kind, place, made));
        }
        let asked = monotonic();
        let changed = remote.change(all, at, bases).map_err(|error| refusal(error, ramp))?;
        // Several workers make changes a little later, after all have received them.
        let since = changed.instant.filter(|_| at.is_none() && ramp.is_none()).map(|at| at.max(monotonic()));
        for ((kind, place, made), blocks) in noted.into_iter().zip(changed.blocks) {
            if let Some(objects) = self.of_kind(kind) {
                objects.note_change((asked, since), place, (blocks, &made));
            }
            if changed.instant.is_some() && kind == Kind::Source {
                self.sources.kind().aim(place, &made);
            }
        }
        Ok(changed.instant)
    }
}
