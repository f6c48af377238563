//! Keys `profile`: what links are like where their own keys say nothing.

use super::{Entry, Resolver};
use crate::file::{BlockText, Named};
use crate::finding::{ScenarioError, suggestion};
use crate::library::{self, SHIPPED, Shipped, Way};
use crate::read::BESIDE_RATE;
use crate::written::{Text, Written};
use std::collections::HashMap;
use std::collections::hash_map::Entry as Place;
use std::fs::File;
use std::io::Read;
use std::rc::Rc;

/// Longest file of a profile in bytes.
const LONGEST: u64 = 1 << 20;

/// Profiles that have been read; none where that failed.
pub(super) type Shelf = HashMap<String, Option<Rc<Named>>>;

impl Resolver<'_, '_> {
    /// What the profile says that is `written`, for the links' way forward or back. None after an error.
    pub(super) fn named(
        &mut self,
        entry: &Entry<'_>,
        written: &Written<Text>,
        back: bool,
        shelf: &mut Shelf,
    ) -> Option<Vec<BlockText>> {
        let text = self.term(entry, "profile", written)?.0;
        let ways = [Way::Forward, Way::Backward];
        let (name, way) = ways
            .into_iter()
            .find_map(|way| Some((text.strip_suffix(way.suffix())?.to_owned(), way)))
            .unwrap_or((text, ways[usize::from(back)]));
        let named = match shelf.entry(name.clone()) {
            Place::Occupied(known) => known.get().clone(),
            Place::Vacant(place) => place.insert(self.read_named(entry, written, &name).map(Rc::new)).clone(),
        }?;
        let mut blocks = named.way(way);
        for block in &mut blocks {
            // Places in the profile are none in the scenario: errors point at the profile's name.
            block.span = written.span.clone();
            block.kind.iter_mut().for_each(|(_, span)| *span = written.span.clone());
            block.params.iter_mut().for_each(|(_, _, span)| *span = written.span.clone());
        }
        Some(blocks)
    }

    /// Finds a profile by its name, or reads the file.
    fn read_named(&mut self, entry: &Entry<'_>, written: &Written<Text>, name: &str) -> Option<Named> {
        let read = if let Some(shipped) = Shipped::named(name) {
            library::read(name, shipped.text, self.registry)
        } else if name.ends_with(".toml") || name.contains('/') {
            match read_file(&self.folder.join(name)) {
                Ok(text) => library::read(name, &text, self.registry),
                Err(why) => {
                    let what = format!("\"{}\" can't be read: {why}", name.escape_debug());
                    let fix = "name a file with a profile, from the scenario's folder, or one that longwire \
                        profiles lists";
                    self.error(&written.span, entry, "profile", what, fix);
                    return None;
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
            self.error(&written.span, entry, "profile", what, fix);
            return None;
        };
        read.map_err(|error| self.blame(entry, written, &error)).ok()
    }

    /// Tells what is wrong with a profile's file where the scenario names it.
    fn blame(&mut self, entry: &Entry<'_>, written: &Written<Text>, error: &ScenarioError) {
        for finding in &error.findings {
            let what = format!(
                "{}:{}:{}: {}: {}",
                finding.file, finding.line, finding.column, finding.field, finding.what
            );
            self.error(&written.span, entry, "profile", what, finding.fix.clone());
        }
    }
}

/// A profile's texts with those of the link in place of theirs.
pub(super) fn beneath<'b>(named: &'b [BlockText], own: Vec<&'b BlockText>) -> Vec<&'b BlockText> {
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

fn read_file(path: &std::path::Path) -> std::io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(LONGEST).read_to_string(&mut text)?;
    Ok(text)
}
