//! Section `[[at]]` for traffic sources.

use super::{Entry, Resolver};
use crate::file::BlockText;
use crate::source_edit::{SourceFault, SourceSite, source_edits};
use longwire_block::change::{Blocks, Edit};

impl Resolver<'_, '_> {
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
            Err(faults) => {
                for SourceFault { key, what, fix } in faults {
                    let at = text.params.iter().find(|(name, ..)| name.as_ref() == Some(&key));
                    self.error(at.map_or(&text.span, |(.., span)| span), entry, &key, what, fix);
                }
                None
            }
        }
    }
}
