//! Changes as requested in the file, and as resolved.

use super::Entry;
use super::links::Links;
use crate::event::Event;
use crate::file::{At, BlockText};
use crate::places::Places;
use crate::plan::{Delays, Medium, Source};
use longwire_block::Spec;
use longwire_block::change::{Blocks, Ramp, Repeat};
use longwire_units::Nanos;
use std::collections::HashMap;

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

/// The kind of object that an event changes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ObjectKind {
    Links,
    Sources,
    Media,
}

/// An event as requested in the file.
pub(super) struct EventRequest<'f> {
    pub(super) entry: Entry<'f>,
    pub(super) written: &'f At,
    pub(super) time: Nanos,
    pub(super) repeat: Option<Repeat>,
    pub(super) ramp: Option<Ramp>,
    pub(super) places: Vec<u32>,
    pub(super) object: ObjectKind,
    pub(super) texts: Vec<BlockText>,
    /// The initial blocks of its links, each once.
    pub(super) planned: Vec<Blocks>,
}

impl ObjectKind {
    /// The word for one object.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Links => "link",
            Self::Sources => "source",
            Self::Media => "medium",
        }
    }
}

/// The places of the first source and of the first medium.
pub(super) fn first_places(links: &Links, sources: &[Source]) -> (u32, u32) {
    let first = links.links.len() as u32;
    (first, first + sources.len() as u32)
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
