//! Packets that leave a link before its end: steered to another link by a filter, or sent back to the sender
//! of a packet that the link refused.

use std::collections::HashMap;

/// Paths of packets that are steered to another link than the first of their path.
#[derive(Debug, Clone, Default)]
pub struct SteeredPaths {
    paths: HashMap<(u32, u16), u32>,
}

impl SteeredPaths {
    /// Adds a rule: a packet on `path`, in front of the link from which a filter or a node steers it to
    /// target number `target`, continues on `instead`.
    pub fn add(&mut self, path: u32, target: u16, instead: u32) {
        self.paths.insert((path, target), instead);
    }

    /// The new path of a packet steered at `path`, if the plan has a path over its target.
    pub(crate) fn path(&self, path: u32, target: u16) -> Option<u32> {
        self.paths.get(&(path, target)).copied()
    }
}
