//! Descriptions of changes during a run.

use crate::event::Event;
use crate::plan::Plan;
use crate::source::{INTERVAL, is_interval};
use longwire_block::Spec;
use longwire_block::change::{Edit, Repeat};
use std::fmt::Write;

/// Most links, sources or media that a description names.
const MOST_NAMED: usize = 4;

impl Event {
    /// The objects that change, and how: `up.forward: rate 1 Mbit/s, over 5 s in 50 steps, every 10 s`.
    pub fn describe(&self, plan: &Plan) -> String {
        let links = self.links.iter().map(|&link| &*plan.links[link as usize].name);
        let sources = self.sources.iter().map(|&source| &*plan.sources[source as usize].name);
        let media = self.media.iter().map(|&medium| &*plan.media[medium as usize].name);
        let count = self.links.len() + self.sources.len() + self.media.len();
        let mut names: Vec<&str> = links.chain(sources).chain(media).take(MOST_NAMED).collect();
        let more = format!("{} more", count.saturating_sub(MOST_NAMED));
        if count > MOST_NAMED {
            names.push(&more);
        }
        let settings = if self.links.is_empty() { plain(&self.edits) } else { described(&self.edits) };
        let mut text = format!("{}: {settings}", names.join(", "));
        // Writing to a String can't fail.
        if let Some(ramp) = self.ramp {
            let _ = write!(text, ", over {} in {} steps", ramp.over, ramp.steps());
        }
        if let Some(Repeat { every, times }) = self.repeat {
            let _ = write!(text, ", every {every}");
            if let Some(times) = times {
                let _ = write!(text, " ({times} times)");
            }
        }
        text
    }
}

/// The settings of links that edits change.
fn described(edits: &[Edit]) -> String {
    let each = edits.iter().map(|edit| {
        let Spec { key, kind, params, .. } = edit.spec;
        // A kind without settings of its own: `queue codel`.
        let is_bare = edit.given.is_empty() && !params.is_empty();
        if is_bare { format!("{key} {kind}") } else { edit.describe() }
    });
    each.collect::<Vec<_>>().join(", ")
}

/// The settings of sources or media that edits change.
fn plain(edits: &[Edit]) -> String {
    let each = edits.iter().flat_map(|edit| {
        let params = edit.given.iter().map(|(at, value)| {
            let param = &edit.spec.params[*at];
            let name = if is_interval(param.kind, value) { INTERVAL } else { param.name };
            format!("{name} {}", value.print(param.kind))
        });
        let of_model = edit.spec.key == "background";
        of_model.then(|| format!("model {}", edit.spec.kind)).into_iter().chain(params)
    });
    each.collect::<Vec<_>>().join(", ")
}
