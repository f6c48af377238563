//! Blocks of links, from the texts of registry keys, and with the key `profile` from those of a profile where
//! their own keys give none.

use super::delays::delays;
use super::{Entry, Resolver};
use crate::file::{BlockText, ProfileFile};
use crate::finding::{ScenarioError, suggestion};
use crate::library::{self, SHIPPED, ShippedProfile};
use crate::link_edit::{BlockPatch, FaultPlace, LinkFault, link_edit};
use crate::plan::Profile;
use crate::plan_links::Direction;
use crate::read::BESIDE_RATE;
use crate::source::KeyFault;
use crate::written::{Text, Written};
use longwire_block::change::{Blocks, Edit};
use longwire_block::{Spec, Values};
use longwire_settings::plain_file::text_of;
use std::collections::HashMap;
use std::collections::hash_map::Entry as Place;
use std::path::Path;
use std::rc::Rc;

/// Longest file of a profile in bytes.
const LONGEST: u64 = 1 << 20;

/// Distinct profiles so far.
#[derive(Default)]
pub(super) struct Profiles {
    pub(super) list: Vec<Profile>,
    index: HashMap<String, u32>,
    /// Profiles that links name, read so far; none where that failed.
    files: HashMap<String, Option<Rc<ProfileFile>>>,
}

impl Resolver<'_, '_> {
    /// The profile of these texts. None after an error.
    pub(super) fn profile(
        &mut self,
        entry: &Entry<'_>,
        texts: &[&BlockText],
        histogram: bool,
        profiles: &mut Profiles,
    ) -> Option<u32> {
        let signature = self.signature(entry, texts, histogram)?;
        if let Some(known) = profiles.index.get(&signature) {
            return Some(*known);
        }
        let texts = self.beside_merged(entry, texts)?;
        // Each is read, so that all errors are reported.
        let read: Vec<_> = texts.iter().map(|text| self.block(entry, text)).collect();
        let mut blocks = read.into_iter().collect::<Option<Vec<_>>>()?;
        // A block that does nothing is the same as none.
        blocks.retain(|(spec, _)| !spec.params.is_empty());
        let place = |spec: &Spec| self.registry.iter().position(|other| other.key == spec.key);
        blocks.sort_by_key(|(spec, _)| place(spec));
        let delays = delays(&blocks);
        let number = profiles.list.len() as u32;
        profiles.list.push(Profile { blocks, histogram, delays });
        profiles.index.insert(signature, number);
        Some(number)
    }

    /// The expanded texts as a key: links that agree in it share a profile.
    fn signature(&mut self, entry: &Entry<'_>, texts: &[&BlockText], histogram: bool) -> Option<String> {
        let mut signature = String::from(if histogram { "h" } else { "-" });
        for block in texts {
            signature.push('\n');
            signature.push_str(&block.key);
            if let Some((kind, _)) = &block.kind {
                signature.push(' ');
                signature.push_str(kind);
            }
            for (name, text, span) in &block.params {
                signature.push('\t');
                signature.push_str(name.as_deref().unwrap_or_default());
                signature.push('\t');
                signature.push_str(&self.expanded(entry, &block.key, text, span)?);
            }
        }
        Some(signature)
    }

    /// The texts, with `framing` and `overhead` moved into the rate's block.
    pub(super) fn beside_merged(
        &mut self,
        entry: &Entry<'_>,
        texts: &[&BlockText],
    ) -> Option<Vec<BlockText>> {
        let (beside, mut blocks): (Vec<&BlockText>, Vec<&BlockText>) =
            texts.iter().copied().partition(|block| BESIDE_RATE.contains(&block.key.as_str()));
        if beside.is_empty() {
            return Some(blocks.into_iter().cloned().collect());
        }
        let at = blocks.iter().position(|block| block.key == "rate");
        let mut rate = at.map(|at| blocks.remove(at).clone()).unwrap_or_else(|| BlockText {
            key: "rate".into(),
            kind: None,
            params: Vec::new(),
            span: beside[0].span.clone(),
        });
        for block in beside {
            let [(None, text, span)] = &block.params[..] else {
                let fix = format!("write {} = \"…\" with one value", block.key);
                return self.refuse(&block.span, entry, &block.key, "a table is not allowed here", fix);
            };
            if rate.params.iter().any(|(name, ..)| name.as_ref() == Some(&block.key)) {
                let what = format!("{} is set here and in rate", block.key);
                return self.refuse(span, entry, &block.key, what, "remove one of the two");
            }
            rate.params.push((Some(block.key.clone()), text.clone(), span.clone()));
        }
        let mut merged: Vec<BlockText> = blocks.into_iter().cloned().collect();
        merged.push(rate);
        Some(merged)
    }

    /// The edits that a text makes on a source or a medium, whose parameters are keys. None after an error.
    pub(super) fn keyed_edits(
        &mut self,
        entry: &Entry<'_>,
        text: &BlockText,
        edits: impl FnOnce(&[(&str, &str)], &Path) -> Result<Vec<Edit>, Vec<KeyFault>>,
    ) -> Option<Vec<Edit>> {
        let mut pairs = Vec::new();
        for (key, value, span) in &text.params {
            let key = key.as_deref()?;
            pairs.push((key, self.expanded(entry, key, value, span)?));
        }
        let pairs: Vec<_> = pairs.iter().map(|(key, value)| (*key, &**value)).collect();
        let faults = match edits(&pairs, &self.folder) {
            Ok(edits) => return Some(edits),
            Err(faults) => faults,
        };
        for KeyFault { key, what, fix } in faults {
            let at = text.params.iter().find(|(name, ..)| name.as_ref() == Some(&key));
            self.error(at.map_or(&text.span, |(.., span)| span), entry, &key, what, fix);
        }
        None
    }

    /// The block of a text: its edit of a link without blocks. None after an error.
    fn block(&mut self, entry: &Entry<'_>, text: &BlockText) -> Option<(&'static Spec, Values)> {
        let edit = self.edit(entry, text, &Blocks::new())?;
        Some((edit.spec, edit.fresh?))
    }

    /// The edit that a text makes on a link with the blocks `now`. None after an error.
    pub(super) fn edit(&mut self, entry: &Entry<'_>, text: &BlockText, now: &Blocks) -> Option<Edit> {
        let mut texts = Vec::new();
        for (name, value, span) in &text.params {
            texts.push((name.as_deref(), self.expanded(entry, &text.key, value, span)?));
        }
        let params: Vec<_> = texts.iter().map(|(name, text)| (*name, &**text)).collect();
        let kind = text.kind.as_ref().map(|(kind, _)| kind.as_str());
        let patch = BlockPatch { key: &text.key, kind, params: &params };
        let faults = match link_edit(self.registry, now, patch, &self.folder) {
            Ok(edit) => return Some(edit),
            Err(faults) => faults,
        };
        for LinkFault { place, what, fix } in faults {
            let (span, key) = match place {
                FaultPlace::Kind => (text.kind.as_ref().map(|(_, span)| span), format!("{}.kind", text.key)),
                FaultPlace::Param(number, key, None) => (Some(&text.params[number].2), key.into()),
                FaultPlace::Param(number, key, Some(name)) => {
                    (Some(&text.params[number].2), format!("{key}.{name}"))
                }
                FaultPlace::Whole => (None, text.key.clone()),
            };
            self.error(span.unwrap_or(&text.span), entry, &key, what, fix);
        }
        None
    }

    /// The texts of the profile named by `written`, for one direction of a link. None after an error.
    pub(super) fn profile_texts(
        &mut self,
        entry: &Entry<'_>,
        written: &Written<Text>,
        back: bool,
        profiles: &mut Profiles,
    ) -> Option<Vec<BlockText>> {
        let text = self.term(entry, "profile", written)?.0;
        let (name, selected) = Direction::split(&text);
        let direction = selected.unwrap_or(if back { Direction::Backward } else { Direction::Forward });
        let named = match profiles.files.entry(name.to_owned()) {
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
