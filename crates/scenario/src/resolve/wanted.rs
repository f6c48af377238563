//! Changes as the file asks for them, and what is made of them.

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

/// The effects of events.
#[derive(Default)]
pub(super) struct ResolvedEvents {
    /// The events in the file's order.
    pub(super) events: Vec<Event>,
    /// By a changing link's place: the delays it ever has.
    pub(super) delays: HashMap<u32, Delays>,
}

/// What else than links can change, and what sources are among.
pub(super) type Others<'o> = (&'o [Source], &'o [Medium], Places<'o>);

/// The object of an event.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    Links,
    Sources,
    Media,
}

/// An event as the file asks for it.
pub(super) struct Wanted<'f> {
    pub(super) entry: Entry<'f>,
    pub(super) written: &'f At,
    pub(super) time: Nanos,
    pub(super) repeat: Option<Repeat>,
    pub(super) ramp: Option<Ramp>,
    pub(super) places: Vec<u32>,
    pub(super) whose: Whose,
    pub(super) texts: Vec<BlockText>,
    /// What its links are read with, each once.
    pub(super) planned: Vec<Blocks>,
}

impl Whose {
    /// One of them.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Links => "link",
            Self::Sources => "source",
            Self::Media => "medium",
        }
    }
}

/// The places of the first source and of the first medium.
pub(super) fn firsts(links: &Links, sources: &[Source]) -> (u32, u32) {
    let first = links.links.len() as u32;
    (first, first + sources.len() as u32)
}

/// How errors call a parameter. Sources and media have their parameters as keys.
pub(super) fn key_of(spec: &Spec, at: usize, whose: Whose) -> String {
    if whose != Whose::Links {
        spec.params[at].name.into()
    } else if at == 0 {
        spec.key.into()
    } else {
        format!("{}.{}", spec.key, spec.params[at].name)
    }
}
