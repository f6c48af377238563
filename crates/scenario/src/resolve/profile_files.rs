//! The key `profile`: settings of links where their own keys give none.

use super::{Entry, Resolver};
use crate::direction::Direction;
use crate::file::{BlockText, ProfileFile};
use crate::finding::{ScenarioError, suggestion};
use crate::library::{self, SHIPPED, ShippedProfile};
use crate::read::BESIDE_RATE;
use crate::written::{Text, Written};
use longwire_settings::plain_file::text_of;
use std::collections::HashMap;
use std::collections::hash_map::Entry as Place;
use std::rc::Rc;

/// Longest file of a profile in bytes.
const LONGEST: u64 = 1 << 20;

/// Profiles read so far; none where that failed.
pub(super) type ProfileCache = HashMap<String, Option<Rc<ProfileFile>>>;

impl Resolver<'_, '_> {
    /// The texts of the profile named by `written`, for one direction of a link. None after an error.
    pub(super) fn profile_texts(
        &mut self,
        entry: &Entry<'_>,
        written: &Written<Text>,
        back: bool,
        cache: &mut ProfileCache,
    ) -> Option<Vec<BlockText>> {
        let text = self.term(entry, "profile", written)?.0;
        let (name, selected) = Direction::split(&text);
        let direction = selected.unwrap_or(if back { Direction::Backward } else { Direction::Forward });
        let named = match cache.entry(name.to_owned()) {
            Place::Occupied(known) => known.get().clone(),
            Place::Vacant(place) => {
                place.insert(self.read_profile_file(entry, written, name).map(Rc::new)).clone()
            }
        }?;
        let mut blocks = named.direction(direction);
        for block in &mut blocks {
            // Places in the profile are not in the scenario: errors point at the profile's name.
            block.span = written.span.clone();
            block.kind.iter_mut().for_each(|(_, span)| *span = written.span.clone());
            block.params.iter_mut().for_each(|(_, _, span)| *span = written.span.clone());
        }
        Some(blocks)
    }

    /// Finds a shipped profile, or reads a file.
    fn read_profile_file(
        &mut self,
        entry: &Entry<'_>,
        written: &Written<Text>,
        name: &str,
    ) -> Option<ProfileFile> {
        let read = if let Some(shipped) = ShippedProfile::named(name) {
            library::read(name, shipped.text, self.registry)
        } else if name.ends_with(".toml") || name.contains('/') {
            match text_of(&self.folder.join(name), LONGEST) {
                Ok(text) => library::read(name, &text, self.registry),
                Err(why) => {
                    let what = format!("\"{}\" can't be read: {why}", name.escape_debug());
                    let fix = "name a file with a profile, from the scenario's folder, or one that longwire \
                        profiles lists";
                    return self.refuse(&written.span, entry, "profile", what, fix);
                }
            }
        } else {
            let known = || SHIPPED.iter().map(|shipped| shipped.name);
            let list = known().collect::<Vec<_>>().join(", ");
            let fix = match suggestion(name, known()) {
                Some(near) => format!("did you mean \"{near}\"? There are {list}"),
                None => format!("there are {list}; or name a file of your own, as in \"my.toml\""),
            };
            let what = format!("there is no profile \"{}\"", name.escape_debug());
            return self.refuse(&written.span, entry, "profile", what, fix);
        };
        read.map_err(|error| self.report(entry, written, &error)).ok()
    }

    /// Reports a profile's errors where the scenario names it.
    fn report(&mut self, entry: &Entry<'_>, written: &Written<Text>, error: &ScenarioError) {
        for finding in &error.findings {
            let what = format!(
                "{}:{}:{}: {}: {}",
                finding.file, finding.line, finding.column, finding.field, finding.what
            );
            self.error(&written.span, entry, "profile", what, finding.fix.clone());
        }
    }
}

/// A profile's texts, overridden by those of the link.
pub(super) fn merged<'b>(named: &'b [BlockText], own: Vec<&'b BlockText>) -> Vec<&'b BlockText> {
    let within_rate = |key: &str| {
        let rates = own.iter().filter(|block| block.key == "rate");
        BESIDE_RATE.contains(&key)
            && rates.flat_map(|rate| &rate.params).any(|(name, ..)| name.as_deref() == Some(key))
    };
    let replaced =
        |block: &BlockText| own.iter().any(|other| other.key == block.key) || within_rate(&block.key);
    let mut all: Vec<&BlockText> = named.iter().filter(|block| !replaced(block)).collect();
    all.extend(own);
    all
}
