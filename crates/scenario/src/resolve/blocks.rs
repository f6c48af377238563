//! Blocks of links, from the texts of registry keys.

use super::delays::delays;
use super::{Entry, Resolver};
use crate::file::BlockText;
use crate::link_edit::{BlockPatch, FaultPlace, LinkFault, link_edit};
use crate::plan::Profile;
use crate::read::BESIDE_RATE;
use crate::template;
use longwire_block::change::{Blocks, Edit};
use longwire_block::{Spec, Values};
use std::collections::HashMap;
use std::ops::Range;

/// Distinct profiles so far.
#[derive(Default)]
pub(super) struct Profiles {
    pub(super) list: Vec<Profile>,
    index: HashMap<String, u32>,
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

    pub(super) fn expanded(
        &mut self,
        entry: &Entry<'_>,
        key: &str,
        text: &str,
        span: &Range<usize>,
    ) -> Option<String> {
        match template::expand(text, entry.n) {
            Ok(text) => Some(text.into_owned()),
            Err(what) => self.refuse(span, entry, key, what, ""),
        }
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
        let params: Vec<_> = texts.iter().map(|(name, text)| (*name, text.as_str())).collect();
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
}
