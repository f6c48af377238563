//! Writes the running instance as a scenario: its original text, and later changes as events at time 0.

use super::blocks::ObjectEdits;
use super::routers::NONE;
use crate::objects::ObjectChange;
use crate::objects::changing::{LiveObjects, ObjectKind};
use crate::objects::links::LiveLinks;
use longwire_block::Value;
use longwire_block::change::Blocks;
use longwire_control::Kind;
use longwire_scenario::quoted;
use std::collections::HashMap;
use std::fmt::Write;

/// The line before the changes.
const MARKER: &str = "# Changes made while it ran, written by longwire; the next time they are replaced.";

/// A scenario without the changes that were written into it before.
pub(crate) fn without_changes(text: &str) -> &str {
    match text.find(MARKER) {
        Some(at) if at == 0 || text[..at].ends_with('\n') => text[..at].trim_end_matches('\n'),
        _ => text,
    }
}

/// A scenario being written.
pub(super) struct Writing {
    text: String,
    /// Whether changes are written into the text already.
    marked: bool,
    changes: String,
}

impl Writing {
    /// Starts with `text`.
    pub(super) fn new(text: &str) -> Self {
        let marked = without_changes(text).len() < text.len();
        Self { text: text.trim_end_matches('\n').into(), marked, changes: String::new() }
    }

    /// Writes links; those with equal changes share an entry.
    pub(super) fn links(&mut self, changed: &[ObjectEdits], links: &LiveLinks) {
        let mut entries: Vec<(String, Vec<&str>)> = Vec::new();
        let mut known = HashMap::new();
        for link in changed {
            let Some(place) = links.place(&link.name) else { continue };
            let text = block_lines(&links.known(place), &link.keys);
            let at = *known.entry(text.clone()).or_insert_with(|| {
                entries.push((text, Vec::new()));
                entries.len() - 1
            });
            entries[at].1.push(&link.name);
        }
        for (text, names) in entries {
            let names: Vec<_> = names.into_iter().map(quoted).collect();
            self.entry(&format!("link = [{}]\n{text}", names.join(", ")));
        }
    }

    /// Writes sources or media, whose settings are separate keys.
    pub(super) fn plain<W: ObjectKind>(
        &mut self,
        kind: Kind,
        changed: &[ObjectEdits],
        objects: &LiveObjects<W>,
    ) {
        for object in changed {
            let Some(place) = objects.place(&object.name) else { continue };
            let mut text = format!("{} = {}\n", kind.word(), quoted(&object.name));
            for (key, value) in objects.settings(place) {
                let _ = writeln!(text, "{key} = {}", quoted(&value));
            }
            self.entry(&text);
        }
    }

    /// Writes a router's routes, or a flow's weight.
    pub(super) fn router(&mut self, change: &ObjectChange) {
        if change.kind == Kind::Flow {
            let (router, flow) = change.name.split_once('/').unwrap_or_default();
            let weight = change.pairs.first().map_or("", |(_, weight)| weight);
            return self.entry(&format!(
                "router = {}\nflow = {}\nweight = {}\n",
                quoted(router),
                quoted(flow),
                quoted(weight)
            ));
        }
        let (mut add, mut remove) = (Vec::new(), Vec::new());
        for (key, way) in &change.pairs {
            let to = key.strip_prefix("route.").unwrap_or(key);
            match &**way {
                NONE => remove.push(quoted(to)),
                "blackhole" => add.push(quoted(&format!("blackhole {to}"))),
                way => add.push(quoted(&format!("{to} {way}"))),
            }
        }
        let mut text = format!("router = {}\n", quoted(&change.name));
        for (key, list) in [("add-route", add), ("remove-route", remove)] {
            if !list.is_empty() {
                let _ = writeln!(text, "{key} = [{}]", list.join(", "));
            }
        }
        self.entry(&text);
    }

    fn entry(&mut self, text: &str) {
        let _ = write!(self.changes, "\n[[at]]\ntime = \"0 s\"\n{text}");
    }

    /// The text.
    pub(super) fn finish(self) -> String {
        if self.changes.is_empty() {
            return self.text + "\n";
        }
        if self.marked {
            return format!("{}\n{}", self.text, self.changes);
        }
        format!("{}\n\n{MARKER}\n{}", self.text, self.changes)
    }
}

/// The blocks of these keys as lines, including keys without a block.
fn block_lines(blocks: &Blocks, keys: &[&'static str]) -> String {
    let mut text = String::new();
    for key in keys {
        let Some((spec, values)) = blocks.iter().find(|(spec, _)| spec.key == *key) else {
            let _ = writeln!(text, "{key} = {}", quoted(NONE));
            continue;
        };
        let params = spec.params.iter().zip(values.as_slice()).filter(|(_, value)| **value != Value::Absent);
        let params =
            params.map(|(param, value)| format!("{} = {}", param.name, quoted(&value.print(param.kind))));
        let all: Vec<_> = std::iter::once(format!("kind = {}", quoted(spec.kind))).chain(params).collect();
        let _ = writeln!(text, "{key} = {{ {} }}", all.join(", "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_written_behind_a_line_and_replaced() {
        let mut writing = Writing::new("seed = 1\n\n");
        writing.entry("link = \"a\"\n");
        let text = writing.finish();
        assert_eq!(text, format!("seed = 1\n\n{MARKER}\n\n[[at]]\ntime = \"0 s\"\nlink = \"a\"\n"));
        assert_eq!(without_changes(&text), "seed = 1");
        assert_eq!(Writing::new(without_changes(&text)).finish(), "seed = 1\n");
        let inside = format!("summary = \"{MARKER}\"\n");
        assert_eq!(without_changes(&inside), inside);
    }
}
