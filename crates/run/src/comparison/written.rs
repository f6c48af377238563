//! Writes the running instance as a scenario: its original text, and later changes as events at time 0.

use super::blocks::{ChangedLater, ChangedObject, StartBlocks};
use super::routers::NONE;
use crate::objects::ObjectChange;
use crate::objects::changing::AnyObjects;
use crate::objects::router_settings::ROUTE;
use longwire_block::Value;
use longwire_block::change::Blocks;
use longwire_control::Kind;
use longwire_scenario::quoted;
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

/// The line before the changes.
const MARKER: &str = "# Changes made while it ran, written by longwire; the next time they are replaced.";

/// A scenario without the changes that were written into it before. If users have written something behind
/// them, all of it is theirs.
pub(crate) fn without_changes(text: &str) -> &str {
    match text.rfind(MARKER) {
        Some(at) if (at == 0 || text[..at].ends_with('\n')) && is_written(&text[at + MARKER.len()..]) => {
            text[..at].trim_end_matches('\n')
        }
        _ => text,
    }
}

/// Whether what follows the line is as [`Writing`] writes it.
fn is_written(behind: &str) -> bool {
    let mut lines = behind.lines().filter(|line| !line.is_empty());
    while let Some(line) = lines.next() {
        let is_own = match line.as_bytes()[0] {
            b'[' => line == "[[at]]" && lines.next() == Some("time = \"0 s\""),
            first => first != b'#',
        };
        if !is_own {
            return false;
        }
    }
    true
}

/// A scenario with these changes behind it, as they are written; earlier ones stay before them.
pub fn with_changes(text: &str, changes: &str) -> String {
    let is_marked = without_changes(text).len() < text.len();
    let text = text.trim_end_matches('\n');
    match changes {
        "" => format!("{text}\n"),
        _ if is_marked => format!("{text}\n{changes}"),
        _ => format!("{text}\n\n{MARKER}\n{changes}"),
    }
}

/// The scenario that describes an instance.
#[derive(Debug, Clone)]
pub struct WrittenScenario {
    /// The scenario that was applied last, with the changes that had been written into it.
    pub text: Arc<str>,
    /// The changes that lead from its start to the instance, as events at time 0.
    pub changes: String,
}

impl WrittenScenario {
    /// The scenario that was applied last, without changes.
    pub fn base(&self) -> &str {
        without_changes(&self.text)
    }

    /// The scenario with its changes.
    pub fn whole(&self) -> String {
        with_changes(self.base(), &self.changes)
    }
}

/// Changes being written.
#[derive(Debug, Default)]
pub(super) struct Writing(String);

impl Writing {
    /// Writes the objects of a kind that are not set as at the `start`, except for what is `kept`.
    pub(super) fn objects(&mut self, objects: &AnyObjects, start: &StartBlocks, kept: &ChangedLater) {
        let changed = objects.changed_since(start, kept);
        match objects.kind().kind() {
            Kind::Link => self.links(&changed, objects),
            _ => self.plain(&changed, objects),
        }
    }

    /// Writes links; those with equal changes share an entry.
    fn links(&mut self, changed: &[ChangedObject], links: &AnyObjects) {
        let mut entries: Vec<(String, Vec<String>)> = Vec::new();
        let (names, mut known) = (links.names(), HashMap::new());
        for ChangedObject { place, keys } in changed {
            let text = block_lines(&links.known(*place), keys);
            let at = *known.entry(text.clone()).or_insert_with(|| {
                entries.push((text, Vec::new()));
                entries.len() - 1
            });
            entries[at].1.push(quoted(&names[*place as usize]));
        }
        for (text, names) in entries {
            self.entry(&format!("link = [{}]\n{text}", names.join(", ")));
        }
    }

    /// Writes sources or media, whose settings are separate keys: those of the blocks that differ. Others may
    /// be what a later event has made of them.
    fn plain(&mut self, changed: &[ChangedObject], objects: &AnyObjects) {
        let names = objects.names();
        for ChangedObject { place, keys } in changed {
            let kind = objects.kind().kind().word();
            let mut text = format!("{kind} = {}\n", quoted(&names[*place as usize]));
            let known = objects.known(*place);
            let differ: Blocks = known.iter().filter(|(spec, _)| keys.contains(&spec.key)).cloned().collect();
            for (key, value) in objects.kind().settings(&differ) {
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
            let to = key.strip_prefix(ROUTE).unwrap_or(key);
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
        let _ = write!(self.0, "\n[[at]]\ntime = \"0 s\"\n{text}");
    }

    /// The events.
    pub(super) fn entries(self) -> String {
        self.0
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
    use crate::objects::sources::LiveSources;
    use longwire_scenario::plan_of;

    #[test]
    fn of_a_source_only_what_differs_is_written() {
        let host = |name: &str, n: u8| format!("[[host]]\nname = \"{name}\"\naddress = \"10.0.0.{n}/24\"\n");
        let text = host("a", 1)
            + &host("b", 2)
            + "[[link]]\nbetween = [\"a\", \"b\"]\n[[source]]\nname = \"video\"\n\
               from = \"a\"\nto = \"b\"\nrate = \"1 Mbit/s\"\n";
        let sources = LiveSources::new(&Arc::new(plan_of(&text)), &[]);
        let written = |key| {
            let mut writing = Writing::default();
            writing.plain(&[ChangedObject { place: 0, keys: vec![key] }], &sources);
            writing.entries()
        };
        let (flow, model) = (written("flow"), written("background"));
        assert!(flow.contains("\nstate = \"up\"\n") && !flow.contains("\nrate = "), "{flow}");
        assert!(!model.contains("\nstate = ") && model.contains("\nrate = "), "{model}");
    }

    #[test]
    fn changes_are_written_behind_a_line_and_replaced() {
        let mut writing = Writing::default();
        writing.entry("link = \"a\"\n");
        let changes = writing.entries();
        let text = with_changes("seed = 1\n\n", &changes);
        assert_eq!(text, format!("seed = 1\n\n{MARKER}\n\n[[at]]\ntime = \"0 s\"\nlink = \"a\"\n"));
        assert_eq!(without_changes(&text), "seed = 1");
        let twice = with_changes(&text, &changes);
        assert_eq!((twice.matches(MARKER).count(), twice.matches("[[at]]").count()), (1, 2));
        assert_eq!(with_changes(without_changes(&text), ""), "seed = 1\n");
        let written = WrittenScenario { text: twice.into(), changes };
        assert_eq!((written.base(), written.whole()), ("seed = 1", text));
        let inside = format!("summary = \"{MARKER}\"\n");
        assert_eq!(without_changes(&inside), inside);
    }

    /// A file that was saved, and edited.
    #[test]
    fn what_users_write_behind_changes_stays() {
        let mut writing = Writing::default();
        writing.entry("link = \"a\"\ndelay = \"1 ms\"\n");
        let changes = writing.entries();
        let saved = with_changes("seed = 1\n", &changes);
        for own in ["[[link]]\nname = \"b\"", "[[at]]\ntime = \"5 s\"\nlink = \"a\"", "# Mine."] {
            let edited = format!("{saved}\n{own}\n");
            assert_eq!(without_changes(&edited), edited);
            let again = with_changes(&edited, &changes);
            assert_eq!(again.matches("0 s").count(), 2, "{again}");
            assert_eq!(without_changes(&again), edited.trim_end());
        }
    }
}
