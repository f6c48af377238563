//! Objects of a running instance as NESP names them, and changes of several at one instant.

use crate::instance::RunningInstance;
use crate::live::Pair;
use longwire_control::{Instance, SetError};
use longwire_nesp::Kind;
use longwire_units::Nanos;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Settings of one object, to be changed.
#[derive(Debug)]
pub struct ObjectChange {
    /// What it is.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// Settings and their new values.
    pub pairs: Vec<Pair>,
}

impl RunningInstance {
    /// The names of all objects of a kind, in the order of the plan.
    pub fn object_names(&self, kind: Kind) -> Arc<[String]> {
        match kind {
            Kind::Link => self.links().names(),
            Kind::Source => self.source_names(),
            Kind::Medium => self.medium_names(),
            Kind::Router => self.routers().names().into(),
            Kind::Program => self.routers().program_names(self.remote()).into(),
        }
    }

    /// An object's settings as of now; none if there is no such object.
    ///
    /// # Errors
    /// If the name means several programs, or a router does not answer.
    pub fn object_settings(
        &self,
        kind: Kind,
        name: &str,
    ) -> Result<Option<BTreeMap<String, String>>, SetError> {
        Ok(match kind {
            Kind::Link => self.links().place(name).map(|place| {
                self.links().look(self.remote(), place);
                self.links().settings(place)
            }),
            Kind::Source => self.source(name).map(|source| source.settings),
            Kind::Medium => self.medium(name).map(|medium| medium.settings),
            Kind::Router => self.routers().settings(self.remote(), name)?,
            Kind::Program => self.routers().program_settings(self.remote(), name)?,
        })
    }

    /// Changes one object, at once, as `longwire ctl` does: a link, source or medium also by a ramp.
    ///
    /// # Errors
    /// If there is no such object, or it can't be; nothing has changed then.
    pub fn set_object(&self, change: &ObjectChange) -> Result<(), SetError> {
        match change.kind {
            Kind::Link => self.set_link(&change.name, &change.pairs).map(drop),
            Kind::Source => self.set_source(&change.name, &change.pairs).map(drop),
            Kind::Medium => self.set_medium(&change.name, &change.pairs).map(drop),
            Kind::Router => self.routers().set_router(self.remote(), &change.name, &change.pairs),
            Kind::Program => self.routers().set_program(self.remote(), &change.name, &change.pairs),
        }
    }

    /// Makes all changes of links, sources and media at one instant, at the time `at` of the engine's clock or at once, and answers the
    /// instant.
    ///
    /// # Errors
    /// If one of them can't be made, or is one of a router, which are made one by one; nothing has changed then.
    pub fn set_together(&self, changes: &[ObjectChange], at: Option<Nanos>) -> Result<Nanos, SetError> {
        let each = changes.iter().map(|ObjectChange { kind, name, pairs }| match kind {
            Kind::Link => self.links().together(self.remote(), name, pairs),
            Kind::Source => self.sources().together(self.remote(), name, pairs).map(|change| vec![change]),
            Kind::Medium => self.media().together(self.remote(), name, pairs).map(|change| vec![change]),
            Kind::Router | Kind::Program => {
                Err(SetError::Refused("routers and programs are changed one by one".into()))
            }
        });
        let together = each.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect();
        let made = self.remote().change_together(together, at);
        made.map_err(|error| crate::live::refusal(error, None))
    }
}
