//! The registry of all blocks of links, and a link's configuration.

use longwire_block::{Spec, SpecError, Values};
use std::sync::LazyLock;

/// The rows of all blocks, in the order of the stages.
pub fn registry() -> Vec<&'static Spec> {
    ROWS.clone()
}

/// The rows, sorted once: each change of a link asks for them.
pub(crate) static ROWS: LazyLock<Vec<&'static Spec>> = LazyLock::new(|| {
    use crate::{delay::Delay, filter::Filter, impair::Impair, queue::Queue, transmit::Transmit};
    let stages = [Filter::SPECS, Impair::SPECS, Queue::SPECS, Transmit::SPECS, Delay::SPECS];
    // The blocks of a key are adjacent, the default first.
    let mut rows = stages.concat();
    rows.extend(longwire_random::process::SPECS);
    // Not available by itself: it comes with a medium.
    rows.retain(|spec| !spec.is(&<crate::transmit::shared::Shared as longwire_block::Block>::SPEC));
    let keys: Vec<&str> = rows.iter().map(|spec| spec.key).collect();
    rows.sort_by_key(|spec| keys.iter().position(|key| *key == spec.key));
    rows
});

/// The kind that means no block of a key.
pub const NONE: &str = "none";

/// The row for no block of a key: a change to it removes the link's block.
const fn nothing(key: &'static str) -> Spec {
    Spec {
        key,
        kind: NONE,
        summary: "Nothing: packets pass as if there were no such thing.",
        source: "own definition",
        params: &[],
    }
}

/// For each optional key, the row that removes its block.
static WITHOUT: [Spec; 7] = [
    nothing("mtu"),
    nothing("filter"),
    nothing("loss"),
    nothing("bit-error"),
    nothing("duplicate"),
    nothing("reorder"),
    nothing(crate::background::KEY),
];

/// The row that removes a link's block of this key; none for keys that are always present (a rate, a queue),
/// or whose default has no effect (a state that is up).
pub fn without(key: &str) -> Option<&'static Spec> {
    WITHOUT.iter().find(|spec| spec.key == key)
}

/// Configuration of a link: at most one block per key; other keys have their default.
#[derive(Debug, Clone, Default)]
pub struct LinkConfig {
    blocks: Vec<(&'static Spec, Values)>,
    /// Whether the link keeps a histogram of lateness.
    pub histogram: bool,
    /// Whether it serves packets even where everything could be decided on arrival: the same result with more
    /// work. Tests compare both.
    #[doc(hidden)]
    pub served: bool,
}

impl LinkConfig {
    /// A link of these blocks.
    pub fn new(blocks: Vec<(&'static Spec, Values)>, histogram: bool) -> Self {
        Self { blocks, histogram, served: false }
    }

    /// The configuration with the key of `spec` set to `values`.
    pub fn with(mut self, spec: &'static Spec, values: Values) -> Self {
        self.blocks.retain(|(other, _)| other.key != spec.key);
        self.blocks.push((spec, values));
        self
    }

    /// The configuration with `key` set from text, by the default block of that key: for tests and short
    /// forms.
    ///
    /// # Errors
    /// If there is no such key or its first parameter does not accept the text.
    pub fn with_text(self, key: &str, text: &str) -> Result<Self, SpecError> {
        let Some(spec) = registry().into_iter().find(|spec| spec.key == key) else {
            let known = registry().iter().map(|spec| spec.key).collect::<Vec<_>>().join(", ");
            return Err(SpecError::Unknown { key: "link", kind: "any", name: key.into(), known });
        };
        let values = Values::read(spec, &[(spec.params[0].name, text)])?;
        Ok(self.with(spec, values))
    }

    /// The blocks that were named.
    pub fn blocks(&self) -> &[(&'static Spec, Values)] {
        &self.blocks
    }

    /// The block for `key`, if given.
    pub fn block(&self, key: &str) -> Option<&(&'static Spec, Values)> {
        self.blocks.iter().find(|(spec, _)| spec.key == key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_unique_and_their_defaults_can_be_read() {
        let rows = registry();
        for spec in &rows {
            assert_eq!(rows.iter().filter(|s| (s.key, s.kind) == (spec.key, spec.kind)).count(), 1);
            assert!(!spec.summary.is_empty() && !spec.source.is_empty() && !spec.params.is_empty());
            for param in spec.params {
                assert!(!param.help.is_empty(), "{} {}", spec.kind, param.name);
                if let Some(default) = param.default.value() {
                    let value = param.read(default).unwrap();
                    assert_eq!(param.read(&value.print(param.kind)).unwrap(), value);
                }
            }
        }
    }

    #[test]
    fn a_key_is_set_once() {
        let config =
            LinkConfig::default().with_text("loss", "1 %").unwrap().with_text("loss", "2 %").unwrap();
        assert_eq!(config.blocks().len(), 1);
        assert!(LinkConfig::default().with_text("los", "1 %").unwrap_err().to_string().contains("loss"));
    }
}
