//! ns-2 commands for whole classes of queues.

use super::{NO_SETTING, Preset, Script};
use crate::Result;
use crate::ns_queue::Queue;

/// Most settings for all queues.
const MOST_DEFAULTS: usize = 100;

impl Script<'_> {
    /// `Queue/RED set thresh_ 5`: for queues created from then on. Without a value, it is read.
    pub(super) fn default(&mut self, line: usize, words: &[String]) -> Result<String> {
        let plain: Vec<String> = words.iter().map(|word| word.to_ascii_lowercase()).collect();
        match (&plain[..], words.get(3)) {
            ([class, set, key], _) if set == "set" => {
                let queue = self.queue_of(line, class.strip_prefix("queue/").unwrap_or_default())?;
                if let Some(value) = queue.unwrap_or_default().value(key, self.topology.dialect) {
                    return Ok(value);
                }
            }
            ([class, set, key, _], Some(value))
                if set == "set"
                    && Queue::default().set(line, key, Some(value))?
                    && self.defaults.len() < MOST_DEFAULTS =>
            {
                let (class, key) = (class.clone(), key.clone());
                self.defaults.push(Preset { class, key, value: value.clone() });
                return Ok(String::new());
            }
            _ => {}
        }
        self.skip(line, words, NO_SETTING)
    }

    /// A queue of this kind; one of DropTail, with a note, if the kind is unknown.
    pub(super) fn queue_or_tail(&mut self, line: usize, kind: &str) -> Result<Queue> {
        if let Some(queue) = self.queue_of(line, kind)? {
            return Ok(queue);
        }
        let why = "there is no such queue here, or in Emulab: it is taken for DropTail; drr and fq-codel \
            keep flows apart";
        self.notes.add(line, kind, why);
        Ok(self.queue_of(line, "DropTail")?.unwrap_or_default())
    }

    /// A queue of this kind with its class settings; none if the kind is unknown.
    fn queue_of(&self, line: usize, kind: &str) -> Result<Option<Queue>> {
        let Some(mut queue) = Queue::named(kind) else { return Ok(None) };
        let kind = kind.to_ascii_lowercase();
        for default in &self.defaults {
            if default.class.strip_prefix("queue/").is_none_or(|class| class == kind) {
                queue.set(line, &default.key, Some(&default.value))?;
            }
        }
        Ok(Some(queue))
    }
}
