//! Links that filters steer packets to; such paths are planned before the run.

use longwire_block::change::{Blocks, Edit};
use longwire_block::{Settings, Values};
use longwire_link::filter::rules::RulesSettings;

/// The links that the filter among `blocks` names, each once, in order.
pub(crate) fn targets(blocks: &Blocks) -> Vec<String> {
    let filter = blocks.iter().find(|(spec, _)| (spec.key, spec.kind) == ("filter", "rules"));
    filter.map(|(_, values)| names(values)).unwrap_or_default()
}

/// The first link that an edit's filter steers to without a planned path, for a link whose scenario had the
/// blocks `planned`: targets must be the scenario's, at the same index.
pub fn unplanned_target(planned: &Blocks, edit: &Edit) -> Option<String> {
    if (edit.spec.key, edit.spec.kind) != ("filter", "rules") {
        return None;
    }
    let known = targets(planned);
    let named = edit.fresh.as_ref().map(names).unwrap_or_default();
    let mut each = named.into_iter().enumerate();
    each.find(|(place, name)| known.get(*place) != Some(name)).map(|(_, name)| name)
}

fn names(values: &Values) -> Vec<String> {
    RulesSettings::of(values).rules.targets().map(String::from).collect()
}
