//! Section `[[at]]` for traffic sources.

use super::{Entry, Resolver};
use crate::file::BlockText;
use crate::finding::suggestion;
use crate::plan::Source;
use crate::source_edit::{SourceFault, SourceSite, source_edits};
use crate::written::{Name, Written};
use longwire_block::change::{Blocks, Edit};

impl Resolver<'_, '_> {
    /// The place of the source of this name.
    pub(super) fn source_place(
        &mut self,
        entry: &Entry<'_>,
        written: &Written<Name>,
        sources: &[Source],
    ) -> Option<u32> {
        let name = self.term(entry, "source", written)?.0;
        if let Some(place) = sources.iter().position(|source| source.name == name) {
            return Some(place as u32);
        }
        let known = || sources.iter().map(|source| &*source.name);
        let fix = match suggestion(&name, known()) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None if sources.is_empty() => "add a [[source]]".into(),
            None => format!("there are {}", super::some(&known().collect::<Vec<_>>())),
        };
        self.error(&written.span, entry, "source", format!("there is no source \"{name}\""), fix);
        None
    }

    /// The edits that a text makes on a source with the blocks `now`, at `site`. None after an error.
    pub(super) fn source_edits(
        &mut self,
        entry: &Entry<'_>,
        text: &BlockText,
        now: &Blocks,
        site: &SourceSite<'_>,
    ) -> Option<Vec<Edit>> {
        let mut pairs = Vec::new();
        for (key, value, span) in &text.params {
            let key = key.as_deref()?;
            pairs.push((key, self.expanded(entry, key, value, span)?));
        }
        let pairs: Vec<_> = pairs.iter().map(|(key, value)| (*key, value.as_str())).collect();
        match source_edits(now, &pairs, site, &self.folder) {
            Ok(edits) => Some(edits),
            Err(SourceFault { key, what, fix }) => {
                let at = text.params.iter().find(|(name, ..)| name.as_ref() == Some(&key));
                self.error(at.map_or(&text.span, |(.., span)| span), entry, &key, what, fix);
                None
            }
        }
    }
}
